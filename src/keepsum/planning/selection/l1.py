"""Samplers for l1 Laplace noise: the cheapest exact one that applies, else a general one, else the reasons why not."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.structure import Block, Structure
from keepsum.planning.selection.cells import block_cells, free_cells, sums_cells
from keepsum.planning.selection.choice import Choice, Reason
from keepsum.planning.selection.outcomes import OutcomeStore
from keepsum.planning.selection.splitting import choose_decomposable
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.l1.forced_sums import ForcedSums, FreeCells

LOWEST_EPSILON, HIGHEST_EPSILON = Fraction(1, 10**4), Fraction(50)  # that these samplers support


def choose_free(structure: Structure, mechanism: Mechanism) -> Choice:
    """Cells under no total."""
    epsilon, cells = 1 / mechanism.scale, free_cells(structure)
    if not LOWEST_EPSILON <= epsilon <= HIGHEST_EPSILON:
        return _out_of_range(cells)
    count = structure.number_of(cells)
    return Choice("independent_cells", FreeCells(epsilon, count), cells, count)


def choose_sums(structure: Structure, mechanism: Mechanism) -> Choice:
    """Regions whose sum the totals force to be 0."""
    epsilon = 1 / mechanism.scale
    cells, sizes = sums_cells(structure)
    if not LOWEST_EPSILON <= epsilon <= HIGHEST_EPSILON:
        return _out_of_range(cells)
    return Choice("part_by_part", ForcedSums(epsilon, sizes), cells, structure.number_of(cells))


def choose_overlap(structure: Structure, blocks: Sequence[Block], mechanism: Mechanism) -> Choice:
    """Blocks of one form whose totals overlap."""
    epsilon, system = 1 / mechanism.scale, blocks[0].system
    cells, sizes = block_cells(structure, blocks)
    if not LOWEST_EPSILON <= epsilon <= HIGHEST_EPSILON:
        return _out_of_range(np.concatenate(cells))
    store = OutcomeStore(f"laplace-l1 {epsilon}", system.matrix, sizes, len(cells))
    table = None if store.has_entry else choose_decomposable(system, sizes, cells, epsilon)
    if table is not None and table.sampler is not None:
        return table
    from keepsum.planning.selection.general import Problem  # not loaded where columns are split
    from keepsum.planning.selection.overlapping import choose_other

    return choose_other(Problem(system, sizes, len(cells), epsilon), cells, store, table)


def _out_of_range(cells: IntArray) -> Choice:
    return Choice.none(cells, Reason("epsilon_out_of_range", lowest=str(LOWEST_EPSILON), highest=str(HIGHEST_EPSILON)))
