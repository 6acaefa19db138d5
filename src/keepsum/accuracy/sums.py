"""The standard deviation of the noise in sums of released counts: in closed form, or simulated."""

from __future__ import annotations

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.accuracy.law import CellLaw, cell_law
from keepsum.lattice.structure import FORCED, Structure
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice, simulate_into
from keepsum.sampling.core.rng import rng

# Simulated cells for a group of blocks, rejected ones included; the most draws, and the fewest, of very wide samplers.
SUM_CELLS, MOST_SUM_DRAWS, FEWEST_SUM_DRAWS, FEWEST_WIDE_DRAWS = 2 * 10**7, 2000, 40, 8
WIDE = 5 * 10**5
MOST_EFFORT = 5 * 10**8  # cells; beyond this (some ten seconds) nothing is simulated


def sum_deviations(blocks: BlockSamplers, sums: IntArray, count: int) -> Floats | None:
    """The standard deviation of each of ``count`` sums; ``sums`` says in which of them each cell is.

    None where it is not known: a block has no sampler, or takes too long to simulate.
    """
    law = cell_law(blocks.mechanism)
    variances = np.zeros(count)
    simulated: dict[int, Choice] = {}
    for group, choice in zip(blocks.groups, blocks.choices, strict=True):
        if law is not None and not group.members:
            _add_known(variances, law, blocks.structure, choice.cells, sums)
        elif choice.sampler is None or _draws(choice) * max(1, choice.simulation_cost) > MOST_EFFORT:
            return None
        else:
            simulated[id(choice.sampler)] = choice
    for key, choice in simulated.items():
        # Groups that one sampler draws together are not independent: their cells are summed before they are squared.
        together = [other for other in blocks.choices if id(other.sampler) == key]
        variances += _simulated(choice, together, sums, count)
    return np.sqrt(variances)


def _add_known(variances: Floats, law: CellLaw, structure: Structure, cells: IntArray, sums: IntArray) -> None:
    """Cells under no total are independent; k of the n cells of a region whose sum is fixed are exchangeable.

    Such k cells have variance v k (n - k) / (n - 1), where v is the variance of one, because all n have variance 0.
    """
    region = structure.region[cells]
    pairs, k = np.unique(np.stack([sums[cells], region]), axis=1, return_counts=True)
    size = np.where(structure.part[pairs[1]] == FORCED, structure.sizes[pairs[1]], 0)
    one = {value: 0.0 if value == 1 else law.variance(value) for value in np.unique(size).tolist()}
    shrink = np.where(size > 1, (size - k) / np.maximum(size - 1, 1), 1.0)
    np.add.at(variances, pairs[0], np.array([one[value] for value in size.tolist()]) * k * shrink)


def _draws(choice: Choice) -> int:
    fewest = FEWEST_SUM_DRAWS if choice.sampler is None or choice.sampler.width <= WIDE else FEWEST_WIDE_DRAWS
    return max(fewest, min(MOST_SUM_DRAWS, SUM_CELLS // max(1, choice.simulation_cost)))


def _simulated(choice: Choice, together: list[Choice], sums: IntArray, count: int) -> Floats:
    """The mean square of each sum over simulated draws; the mean is 0 by symmetry."""
    if choice.sampler is None:
        raise AssertionError("checked by the caller")
    noise = np.empty((_draws(choice), choice.sampler.width), dtype=np.int64)
    simulate_into(choice.sampler, noise, rng(seed="keepsum sums"))
    place = np.zeros(choice.sampler.width, dtype=np.int64)
    for group in together:
        place[group.first : group.first + len(group.cells)] = sums[group.cells]
    squares = np.zeros(count)
    for row in noise:
        squares += np.bincount(place, weights=row, minlength=count) ** 2
    return squares / len(noise)
