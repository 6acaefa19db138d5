"""The standard deviation of the noise in sums of released counts: in closed form, or simulated."""

from __future__ import annotations

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.accuracy.focused import FocusedNoise
from keepsum.accuracy.law import CellLaw, cell_law
from keepsum.accuracy.simulation import FEWEST_DRAWS, simulated
from keepsum.accuracy.table_sums import is_table, table_variances
from keepsum.lattice.structure import FORCED, Structure
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice

HARDEST_EFFORT = 5 * 10**8  # cells, for the fewest draws; beyond this (some ten seconds) nothing is simulated


def sum_deviations(blocks: BlockSamplers, sums: IntArray, count: int) -> Floats | None:
    """The standard deviation of each of ``count`` sums; ``sums`` says in which of them each cell is.

    None where it is not known: a block has no sampler, or takes too long to simulate.
    """
    law = cell_law(blocks.mechanism)
    variances = np.zeros(count)
    together: dict[int, Choice] = {}
    for group, choice in zip(blocks.groups, blocks.choices, strict=True):
        if group.form.kind == "nested" and (known := _focused_variances(blocks, sums, count)) is not None:
            variances += known
        elif law is not None and group.in_closed_form:
            _add_known(variances, law, blocks.noise_structure, choice.cells, sums)
        elif choice.sampler is None or FEWEST_DRAWS * max(1, choice.simulation_cost) > HARDEST_EFFORT:
            return None
        else:
            together[id(choice.sampler)] = choice
    for key, choice in together.items():
        drawn = [pair for pair in zip(blocks.groups, blocks.choices, strict=True) if id(pair[1].sampler) == key]
        noise = simulated(blocks, choice, patient=True)
        if noise is None:
            raise AssertionError("it is patient")
        if all(is_table(blocks.noise_structure, group) for group, _ in drawn):
            for group, part in drawn:
                columns = noise[:, part.first : part.first + len(part.cells)]
                variances += table_variances(blocks.noise_structure, group, part.cells, columns, sums, count)
        else:
            # Groups that one sampler draws together are not independent: cells are summed before they are squared.
            variances += _mean_squares(noise, [part for _, part in drawn], sums, count)
    return np.sqrt(variances)


def _add_known(variances: Floats, law: CellLaw, structure: Structure, cells: IntArray, sums: IntArray) -> None:
    """Cells under no total are independent; k of the n cells of a region whose sum is fixed are exchangeable.

    Such k cells have variance v k (n - k) / (n - 1), where v is the variance of one, because all n have variance 0.
    """
    region = structure.region[cells]
    keys, k = np.unique(sums[cells] * len(structure.sizes) + region, return_counts=True)
    total, region = np.divmod(keys, len(structure.sizes))
    size = np.where(structure.part[region] == FORCED, structure.sizes[region], 0)
    one = {value: 0.0 if value == 1 else law.variance(value) for value in np.unique(size).tolist()}
    shrink = np.where(size > 1, (size - k) / np.maximum(size - 1, 1), 1.0)
    np.add.at(variances, total, np.array([one[value] for value in size.tolist()]) * k * shrink)


def _focused_variances(blocks: BlockSamplers, sums: IntArray, count: int) -> Floats | None:
    """What cells under a focus add to each sum; None where the law of one is not known."""
    focused = FocusedNoise.of(blocks)
    pieces = None if focused is None else focused.pieces_of_sums(sums, count)
    if pieces is None or any(each is None for each in pieces):
        return None
    return np.array([sum(times * piece.variance for piece, times in (each or {}).items()) for each in pieces])


def _mean_squares(noise: IntArray, together: list[Choice], sums: IntArray, count: int) -> Floats:
    """The mean square of each sum over simulated draws; the mean is 0 by symmetry."""
    place = np.zeros(noise.shape[1], dtype=np.int64)
    for group in together:
        place[group.first : group.first + len(group.cells)] = sums[group.cells]
    squares = np.zeros(count)
    for row in noise:
        squares += np.bincount(place, weights=row, minlength=count) ** 2
    return squares / len(noise)
