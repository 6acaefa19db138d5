"""The standard deviation of the noise in sums of released counts: in closed form, or simulated."""

from __future__ import annotations

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.accuracy.block_laws import free_cell
from keepsum.accuracy.focused import law_of_piece
from keepsum.accuracy.free_cells import FreeCell
from keepsum.accuracy.simulation import FEWEST_DRAWS, simulated
from keepsum.accuracy.sum_pieces import SumPieces
from keepsum.accuracy.table_sums import is_table, table_variances
from keepsum.planning.durations import simulation_nanoseconds
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice

HARDEST_EFFORT = 10**10  # nanoseconds for the fewest draws; beyond this nothing is simulated


def sum_deviations(blocks: BlockSamplers, sums: IntArray, count: int) -> Floats | None:
    """The standard deviation of each of ``count`` sums; ``sums`` says in which of them each cell is.

    None where it is not known: a block has no sampler, or takes too long to simulate.
    """
    if any(choice.sampler is None for choice in blocks.choices):
        return None
    pieces = SumPieces.of_plan(blocks, sums, count)
    drawn = pieces.drawn(blocks)
    if any(FEWEST_DRAWS * simulation_nanoseconds(groups[0][1]) > HARDEST_EFFORT for groups in drawn):
        return None
    variances = _known_variances(pieces, free_cell(blocks.mechanism))
    for groups in drawn:
        noise = simulated(blocks, groups[0][1], patient=True)
        if noise is None:
            raise AssertionError("it is patient")
        if all(is_table(blocks.noise_structure, group) for group, _ in groups):
            for group, part in groups:
                columns = noise[:, part.first : part.first + len(part.cells)]
                variances += table_variances(blocks.noise_structure, group, part.cells, columns, sums, count)
        else:
            # Groups that one sampler draws together are not independent: cells are summed before they are squared.
            variances += _mean_squares(noise, [part for _, part in groups], sums, count)
    return np.sqrt(variances)


def _known_variances(pieces: SumPieces, cell: FreeCell | None) -> Floats:
    """What pieces with a known law add to each sum."""
    if cell is None:
        return np.zeros(len(pieces.of_sum))
    kinds = [sum(times * law_of_piece(piece, cell).variance for piece, times in kind) for kind in pieces.kinds]
    return np.asarray(np.array(kinds, dtype=np.float64)[pieces.of_sum])


def _mean_squares(noise: IntArray, together: list[Choice], sums: IntArray, count: int) -> Floats:
    """The mean square of each sum over simulated draws; the mean is 0 by symmetry."""
    place = np.zeros(noise.shape[1], dtype=np.int64)
    for group in together:
        place[group.first : group.first + len(group.cells)] = sums[group.cells]
    squares = np.zeros(count)
    for row in noise:
        squares += np.bincount(place, weights=row, minlength=count) ** 2
    return squares / len(noise)
