"""Samplers for l1 Laplace noise: the cheapest exact one that applies, else a general one, else the reasons why not."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.grids import Grid
from keepsum.lattice.structure import Block, Structure, System
from keepsum.planning.selection.cells import block_cells, free_cells, sums_cells
from keepsum.planning.selection.choice import BUDGET, Choice, Method, Reason, Rejection, Sampler
from keepsum.planning.selection.folding import Folded, core_shape, fold_signs, folded_order
from keepsum.planning.selection.general import choose_general
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.compositions import ForcedSums, FreeCells
from keepsum.sampling.l1.rejection import SolvedRegions
from keepsum.sampling.l1.two_rows import TwoRows, room_for

# What a pilot spends; it goes on to the whole budget only if nothing was accepted by then.
REJECTION_PILOT = 10**6
LOWEST_EPSILON, HIGHEST_EPSILON = Fraction(1, 10**4), Fraction(50)  # that these samplers support
# Memory: entries of all convolutions of a table (8 MB), and of the dense matrix that is solved.
CONVOLUTIONS, EQUATIONS = 10**6, 5 * 10**5


def choose_free(structure: Structure, mechanism: Mechanism) -> Choice:
    """Cells under no total."""
    epsilon, cells = 1 / mechanism.scale, free_cells(structure)
    if not LOWEST_EPSILON <= epsilon <= HIGHEST_EPSILON:
        return _out_of_range(cells)
    return Choice("independent_cells", FreeCells(epsilon, len(cells)), cells, len(cells))


def choose_sums(structure: Structure, mechanism: Mechanism) -> Choice:
    """Regions whose sum the totals force to be 0."""
    epsilon = 1 / mechanism.scale
    cells, sizes = sums_cells(structure)
    if not LOWEST_EPSILON <= epsilon <= HIGHEST_EPSILON:
        return _out_of_range(cells)
    return Choice("uniform_compositions", ForcedSums(epsilon, sizes), cells, len(cells))


def choose_overlap(structure: Structure, blocks: Sequence[Block], mechanism: Mechanism) -> Choice:
    """Blocks of one form whose totals overlap."""
    epsilon, system = 1 / mechanism.scale, blocks[0].system
    cells, sizes = block_cells(structure, blocks)
    if not LOWEST_EPSILON <= epsilon <= HIGHEST_EPSILON:
        return _out_of_range(np.concatenate(cells))
    exact = _choose_exact(system, sizes, cells, epsilon)
    return exact if exact.sampler is not None else choose_general(system, sizes, cells, epsilon, exact.reasons)


def _out_of_range(cells: IntArray) -> Choice:
    return Choice.none(cells, Reason("epsilon_out_of_range", lowest=str(LOWEST_EPSILON), highest=str(HIGHEST_EPSILON)))


def _choose_exact(system: System, sizes: IntArray, cells: list[IntArray], epsilon: Fraction) -> Choice:
    """Two rows for tables, solving for the widest regions elsewhere; each where it is fast enough."""
    if system.grid is not None and sizes.max() == 1 and len(core_shape(system.grid)) <= 2:
        places = folded_order(system.grid)
        return _table_choice(system.grid, len(cells), epsilon, np.concatenate([block[places] for block in cells]))
    in_order = np.concatenate(cells)
    if system.rank * system.width > EQUATIONS:
        return Choice.none(in_order, Reason("too_many_equations", limit=EQUATIONS))
    sampler = SolvedRegions(epsilon, system.matrix, sizes, len(cells))
    if not sampler.usable:
        return Choice.none(in_order, Reason("large_coefficients"))
    return _by_rejection("solved_regions", sampler, in_order, len(cells))


def _table_choice(grid: Grid, tables: int, epsilon: Fraction, cells: IntArray) -> Choice:
    """A table under all margins of one way less, with at most two axes of more than two categories."""
    core = core_shape(grid)
    pairs = len(grid.shape) - len(core)
    signs = fold_signs(pairs)
    rate = epsilon * 2**pairs
    if len(core) == 2:
        if core[1] * room_for(rate, core[0], core[1]) > CONVOLUTIONS:
            return Choice.none(cells, Reason("table_too_large"))
        rows = TwoRows(rate, core[0], core[1], tables)
        return _by_rejection("two_rows", rows, cells, tables, Folded(rows, tables, signs))
    inner: Sampler = ForcedSums(rate, [core[0]] * tables) if core else FreeCells(rate, tables)
    return Choice("uniform_compositions", Folded(inner, tables, signs), cells, len(cells))


def _by_rejection(
    method: Method, sampler: Rejection, cells: IntArray, blocks: int, whole: Sampler | None = None
) -> Choice:
    """Take a rejection sampler if a pilot shows that a draw stays within the budget.

    The pilot draws noise with a fixed seed that is used for nothing else, so that a plan is always the same.
    """
    source = rng(seed="keepsum pilot")
    accepted, proposals = sampler.pilot(source, -(-REJECTION_PILOT // sampler.cells_per_try))
    if not accepted:
        accepted, proposals = sampler.pilot(source, -(-BUDGET // sampler.cells_per_try))
    if not accepted or proposals * sampler.cells_per_try > BUDGET * accepted:
        return Choice.none(cells, Reason("rarely_accepted", limit=BUDGET))
    cost = blocks * proposals * sampler.cells_per_try // accepted
    return Choice(method, whole or sampler, cells, cost, acceptance=accepted / proposals)
