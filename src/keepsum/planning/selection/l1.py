"""Samplers for l1 Laplace noise: the cheapest exact one that applies, else a general one, else none."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.grids import Grid
from keepsum.lattice.structure import Block, Structure
from keepsum.planning.selection import general, splitting
from keepsum.planning.selection.choice import (
    BUDGET,
    Choice,
    Folded,
    Reason,
    block_cells,
    core_shape,
    fold_signs,
    folded_order,
    free_cells,
    out_of_range,
    sums_cells,
)
from keepsum.planning.selection.general import BlockProblem, OutcomeStore, arrange, choose_general, limits_of
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.core.driving import PILOT_DRAWS
from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.forced_sums import ForcedSums, FreeCells
from keepsum.sampling.l1.rejection import SolvedRegions

# Blocks whose totals overlap, under l1 Laplace noise: exactly by solving or by layers, else by a general sampler.
#
# Not loaded where a two-way table is drawn exactly.


REJECTION_PILOT = 10**6  # what a pilot spends; it goes on to the whole budget only if nothing was accepted by then
# Three-way tables. Solving for regions is taken where a draw costs no more cells than this, a third of a millisecond.
QUICK, QUICK_PILOT = 3 * 10**4, 10**6
# What a pilot computes, some seconds, which at least one draw must be had for; the time of an entry and of a node, in
# cells.
LAYERS_PILOT = 10**7
ENTRY_COST, NODE_COST = 3, 4 * 10**4
# Entries of tables and laws kept at a time, below a gigabyte, and computed per proposal, some seconds.
LAYERS_KEPT, LAYERS_PROPOSAL = 10**8, 2 * 10**7
# Entries and coefficients of many digits that the referee computes: two minutes, once in 10^7 draws or so.
LAYERS_WEIGHTS, LAYERS_SETTLED = 3 * 10**5, 2 * 10**7
LOWEST_LAYERS_EPSILON, MOST_LAYERS_COLUMNS = Fraction(1, 50), 10  # beyond, such tables are too large anyway
EQUATIONS = 5 * 10**5  # entries of the dense matrix that is solved


def choose_other(problem: BlockProblem, cells: list[IntArray], store: OutcomeStore, table: Choice | None) -> Choice:
    """As pilots have chosen before, if they have; else an exact sampler, if one is fast enough, or a general one.

    ``table`` is what is known of the exact sampler of decomposable totals: that it is none, and why.
    """
    others = [*limits_of("general", vars(general)), *limits_of("splitting", vars(splitting))]
    limits = [*others, *limits_of("l1", globals())]
    return choose_general(arrange(problem, cells), store, limits, lambda: _choose_exact(problem, cells, table))


def _choose_exact(problem: BlockProblem, cells: list[IntArray], known: Choice | None) -> Choice:
    """Splitting columns or layers of tables, solving for the widest regions elsewhere; each where it is fast enough."""
    system, sizes = problem.system, problem.sizes
    decomposable = known or splitting.choose_decomposable(system, sizes, cells, problem.epsilon)
    is_table = system.grid is not None or system.two_way is not None
    if decomposable is not None and (decomposable.sampler is not None or is_table):
        return decomposable
    if system.grid is not None and sizes.max() == 1 and len(core_shape(system.grid)) == 3:
        return _three_way_choice(problem, system.grid, cells)
    return _by_solving(problem, cells, REJECTION_PILOT, BUDGET)


def _by_solving(problem: BlockProblem, cells: list[IntArray], pilot: int, budget: int) -> Choice:
    """Solve for the widest regions, if a pilot shows that a draw stays within the budget.

    Where a few proposals of the general sampler show that it is far beyond, there is no pilot.
    """
    in_order, system = np.concatenate(cells), problem.system
    if system.rank * system.width > EQUATIONS:
        return Choice.none(in_order, Reason("too_many_equations", limit=EQUATIONS))
    if problem.solving_is_out_of_reach(budget):
        return Choice.none(in_order, Reason("rarely_accepted", limit=budget))
    sampler = SolvedRegions(problem.epsilon, system.matrix, problem.sizes, len(cells))
    if not sampler.usable:
        return Choice.none(in_order, Reason("large_coefficients"))
    # The pilot draws noise with a fixed seed that is used for nothing else, so that a plan is always the same.
    source = rng(seed="keepsum pilot")
    accepted, proposals = sampler.pilot(source, -(-pilot // sampler.cells_per_try))
    if not accepted and budget > pilot:
        accepted, proposals = sampler.pilot(source, -(-budget // sampler.cells_per_try))
    if not accepted or proposals * sampler.cells_per_try > budget * accepted:
        return Choice.none(in_order, Reason("rarely_accepted", limit=budget))
    cost = len(cells) * proposals * sampler.cells_per_try // accepted
    return Choice("solved_regions", sampler, in_order, cost, acceptance=accepted / proposals)


def _three_way_choice(problem: BlockProblem, grid: Grid, cells: list[IntArray]) -> Choice:
    """A table under all margins of one way less, with three axes of more than two categories.

    Narrow noise in small tables is quickest by solving for regions; everything else is drawn by splitting the layers.
    """
    quick = _by_solving(problem, cells, QUICK_PILOT, QUICK)
    if quick.sampler is not None:
        return quick
    places = folded_order(grid)
    layered = _by_layers(grid, len(cells), problem.epsilon, np.concatenate([block[places] for block in cells]))
    if layered.sampler is not None:
        return layered
    solved = _by_solving(problem, cells, REJECTION_PILOT, BUDGET)
    return solved if solved.sampler is not None else layered


def _by_layers(grid: Grid, tables: int, epsilon: Fraction, cells: IntArray) -> Choice:
    """Split the layers of a three-way table if its tables are small enough and a pilot accepts a draw.

    The pilot draws noise with a fixed seed that is used for nothing else, so that a plan is always the same.
    """
    rows, layers, columns = core_shape(grid)
    pairs = len(grid.shape) - 3
    rate = epsilon * 2**pairs
    if rate < LOWEST_LAYERS_EPSILON or columns > MOST_LAYERS_COLUMNS:
        return Choice.none(cells, Reason("table_too_large"))
    from keepsum.sampling.l1.layers.nodes import entries_of as entries_of_layers  # brings scipy.fft
    from keepsum.sampling.l1.layers.sampler import LayerSplitting

    kept, proposal, weights = entries_of_layers(rate, (rows, layers, columns))
    if kept > LAYERS_KEPT or proposal > LAYERS_PROPOSAL or weights > LAYERS_WEIGHTS:
        return Choice.none(cells, Reason("table_too_large"))
    sampler = LayerSplitting(rate, (rows, layers, columns), tables)
    if not sampler.usable or sampler.settled > LAYERS_SETTLED:
        return Choice.none(cells, Reason("table_too_large"))
    effort = sampler.pilot(rng(seed="keepsum pilot"), LAYERS_PILOT, PILOT_DRAWS)
    if not effort.accepted:
        return Choice.none(cells, Reason("rarely_accepted", limit=LAYERS_PILOT))
    whole = Folded(sampler, tables, fold_signs(pairs)) if pairs else sampler
    spent = ENTRY_COST * effort.entries + NODE_COST * (layers - 1) * effort.proposals
    cost = tables * (spent // effort.accepted) + len(cells)
    return Choice("layer_splitting", whole, cells, cost, acceptance=effort.accepted / effort.proposals)


def choose_free(structure: Structure, mechanism: Mechanism) -> Choice:
    """Cells under no total."""
    epsilon, cells = 1 / mechanism.scale, free_cells(structure)
    missing = out_of_range("laplace-l1", epsilon)
    if missing is not None:
        return Choice.none(cells, missing)
    count = structure.number_of(cells)
    return Choice("independent_cells", FreeCells(epsilon, count), cells, count)


def choose_sums(structure: Structure, mechanism: Mechanism) -> Choice:
    """Regions whose sum the totals force to be 0."""
    epsilon = 1 / mechanism.scale
    cells, sizes = sums_cells(structure)
    missing = out_of_range("laplace-l1", epsilon)
    if missing is not None:
        return Choice.none(cells, missing)
    return Choice("part_by_part", ForcedSums(epsilon, sizes), cells, structure.number_of(cells))


def choose_overlap(structure: Structure, blocks: Sequence[Block], mechanism: Mechanism) -> Choice:
    """Blocks of one form whose totals overlap."""
    epsilon, system = 1 / mechanism.scale, blocks[0].system
    cells, sizes = block_cells(structure, blocks)
    missing = out_of_range("laplace-l1", epsilon)
    if missing is not None:
        return Choice.none(np.concatenate(cells), missing)
    store = OutcomeStore(f"laplace-l1 {epsilon}", system.matrix, sizes, len(cells))
    table = None if store.has_entry else splitting.choose_decomposable(system, sizes, cells, epsilon)
    if table is not None and table.sampler is not None:
        return table
    return choose_other(BlockProblem(system, sizes, len(cells), epsilon), cells, store, table)


def fits(structure: Structure, blocks: Sequence[Block], mechanism: Mechanism) -> bool:
    """Whether blocks of one form are exact if the tables of their sampler tell."""
    epsilon = 1 / mechanism.scale
    return out_of_range("laplace-l1", epsilon) is None and splitting.fits(
        blocks[0].system, block_cells(structure, blocks)[1], epsilon
    )
