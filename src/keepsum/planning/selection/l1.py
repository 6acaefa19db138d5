"""Samplers for l1 Laplace noise: the cheapest exact one that applies, else a general one, else the reasons why not."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.grids import Grid
from keepsum.lattice.structure import Block, Structure, System
from keepsum.lattice.two_way import TwoWay
from keepsum.planning.selection.cells import block_cells, free_cells, sums_cells
from keepsum.planning.selection.choice import BUDGET, Choice, Method, Reason, Rejection, Sampler
from keepsum.planning.selection.folding import Folded, core_shape, fold_signs, folded_order
from keepsum.planning.selection.general import choose_general
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.core.driving import PILOT_DRAWS
from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.forced_sums import ForcedSums, FreeCells
from keepsum.sampling.l1.layers.nodes import entries_of as entries_of_layers
from keepsum.sampling.l1.layers.sampler import LayerSplitting
from keepsum.sampling.l1.rejection import SolvedRegions
from keepsum.sampling.l1.splitting.laws import Labelling, entries_of
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting
from keepsum.sampling.l1.splitting.tree import grow

# What a pilot spends; it goes on to the whole budget only if nothing was accepted by then.
REJECTION_PILOT = 10**6
# The same for parts of rows: for each number of labels, and then, if nothing was accepted, some seconds at most.
SPLITTING_PILOT, LONGER_PILOTS = 10**6, (10**7, 3 * 10**7)
PART_COST = 4  # the time that a part of a row takes, in cells
# How many labels nodes have: more only where fewer proposals than this are accepted. Wide tables start with some.
LABELLINGS, OFTEN, WIDE = (Labelling(1, 1), Labelling(4, 4), Labelling(8, 8), Labelling(12, 16)), 0.25, 64
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
LOWEST_EPSILON, HIGHEST_EPSILON = Fraction(1, 10**4), Fraction(50)  # that these samplers support
# Entries of the tables of a tree that are computed, without labels and with: some ten seconds.
ENTRIES, LABELLED_ENTRIES = 10**9, 2 * 10**8
EQUATIONS = 5 * 10**5  # entries of the dense matrix that is solved


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
    return Choice("part_by_part", ForcedSums(epsilon, sizes), cells, len(cells))


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
    """Splitting columns or layers of tables, solving for the widest regions elsewhere; each where it is fast enough."""
    if system.grid is not None and sizes.max() == 1 and len(core_shape(system.grid)) <= 2:
        places = folded_order(system.grid)
        return _table_choice(system.grid, len(cells), epsilon, np.concatenate([block[places] for block in cells]))
    if system.grid is not None and sizes.max() == 1 and len(core_shape(system.grid)) == 3:
        return _three_way_choice(system, system.grid, cells, epsilon)
    if system.two_way is not None:
        entries, places = entry_order(system.two_way, sizes)
        in_order = np.concatenate([block[places] for block in cells])
        return _by_splitting(epsilon, entries, len(cells), in_order)
    return _by_solving(system, sizes, cells, epsilon, REJECTION_PILOT, BUDGET)


def _by_solving(
    system: System, sizes: IntArray, cells: list[IntArray], epsilon: Fraction, pilot: int, budget: int
) -> Choice:
    """Solve for the widest regions, if a pilot shows that a draw stays within the budget."""
    in_order = np.concatenate(cells)
    if system.rank * system.width > EQUATIONS:
        return Choice.none(in_order, Reason("too_many_equations", limit=EQUATIONS))
    sampler = SolvedRegions(epsilon, system.matrix, sizes, len(cells))
    if not sampler.usable:
        return Choice.none(in_order, Reason("large_coefficients"))
    return _by_rejection("solved_regions", sampler, in_order, len(cells), pilot, budget)


def _three_way_choice(system: System, grid: Grid, cells: list[IntArray], epsilon: Fraction) -> Choice:
    """A table under all margins of one way less, with three axes of more than two categories.

    Narrow noise in small tables is quickest by solving for regions; everything else is drawn by splitting the layers.
    """
    ones = np.ones(system.width, dtype=np.int64)
    quick = _by_solving(system, ones, cells, epsilon, QUICK_PILOT, QUICK)
    if quick.sampler is not None:
        return quick
    places = folded_order(grid)
    layered = _by_layers(grid, len(cells), epsilon, np.concatenate([block[places] for block in cells]))
    if layered.sampler is not None:
        return layered
    solved = _by_solving(system, ones, cells, epsilon, REJECTION_PILOT, BUDGET)
    return solved if solved.sampler is not None else layered


def _table_choice(grid: Grid, tables: int, epsilon: Fraction, cells: IntArray) -> Choice:
    """A table under all margins of one way less, with at most two axes of more than two categories."""
    core = core_shape(grid)
    pairs = len(grid.shape) - len(core)
    signs = fold_signs(pairs)
    rate = epsilon * 2**pairs
    if len(core) == 2:
        return _by_splitting(rate, np.ones(core, dtype=np.int64), tables, cells, signs)
    inner: Sampler = ForcedSums(rate, [core[0]] * tables) if core else FreeCells(rate, tables)
    return Choice("part_by_part", Folded(inner, tables, signs), cells, len(cells))


def entry_order(table: TwoWay, sizes: IntArray) -> tuple[IntArray, IntArray]:
    """The number of cells of each entry, the longer side as rows, and the cells of a block entry by entry.

    >>> corner = TwoWay(np.array([0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, 2]))
    >>> entries, places = entry_order(corner, np.array([1, 2, 1, 1, 3]))
    >>> entries.tolist(), places.tolist()
    ([[1, 1], [2, 1], [0, 3]], [0, 3, 1, 2, 4, 5, 6, 7])
    """
    row, column = (table.row, table.column) if table.shape[0] >= table.shape[1] else (table.column, table.row)
    entries = np.zeros((max(table.shape), min(table.shape)), dtype=np.int64)
    entries[row, column] = sizes
    starts = np.cumsum(sizes) - sizes
    order = np.lexsort((column, row))
    return entries, np.concatenate([np.arange(starts[k], starts[k] + sizes[k]) for k in order.tolist()])


def _by_splitting(
    epsilon: Fraction, entries: IntArray, tables: int, cells: IntArray, signs: IntArray | None = None
) -> Choice:
    """Split the columns of a two-way table if its tables are small enough and a pilot accepts a draw.

    The pilots draw noise with a fixed seed that is used for nothing else, so that a plan is always the same.
    """
    source = rng(seed="keepsum pilot")
    trials: list[_Trial] = []
    for labelling in _labellings(epsilon, entries):
        sampler = ColumnSplitting(epsilon, entries, tables, labelling=labelling)
        if not sampler.usable:
            break
        trials.append(_Trial(sampler, *sampler.pilot(source, SPLITTING_PILOT)))
        if trials[-1].accepted >= OFTEN * trials[-1].proposals:
            break
    if not trials:
        return Choice.none(cells, Reason("table_too_large"))
    best = min(trials, key=lambda trial: trial.parts / max(trial.accepted, 0.5))
    for most in LONGER_PILOTS:
        if not best.accepted:
            best = _Trial(best.sampler, *best.sampler.pilot(source, most, 2))
    if not best.accepted:
        return Choice.none(cells, Reason("rarely_accepted", limit=LONGER_PILOTS[-1]))
    whole = best.sampler if signs is None else Folded(best.sampler, tables, signs)
    cost = tables * (PART_COST * best.parts // best.accepted) + len(cells)
    return Choice("column_splitting", whole, cells, cost, acceptance=best.accepted / best.proposals)


class _Trial(NamedTuple):
    """What a pilot of a sampler showed."""

    sampler: ColumnSplitting
    accepted: int
    proposals: int
    parts: int


def _labellings(epsilon: Fraction, entries: IntArray) -> list[Labelling]:
    """Numbers of labels whose tables are not too large, fewest first; for wide tables some, if possible."""
    tree, (plain, *labelled) = grow(entries), LABELLINGS
    fitting = [labelling for labelling in labelled if entries_of(epsilon, tree, labelling) <= LABELLED_ENTRIES]
    if (fitting and entries.shape[1] >= WIDE) or entries_of(epsilon, tree, plain) > ENTRIES:
        return fitting
    return [plain, *fitting]


def _by_layers(grid: Grid, tables: int, epsilon: Fraction, cells: IntArray) -> Choice:
    """Split the layers of a three-way table if its tables are small enough and a pilot accepts a draw.

    The pilot draws noise with a fixed seed that is used for nothing else, so that a plan is always the same.
    """
    rows, layers, columns = core_shape(grid)
    pairs = len(grid.shape) - 3
    rate = epsilon * 2**pairs
    if rate < LOWEST_LAYERS_EPSILON or columns > MOST_LAYERS_COLUMNS:
        return Choice.none(cells, Reason("table_too_large"))
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


def _by_rejection(method: Method, sampler: Rejection, cells: IntArray, blocks: int, pilot: int, budget: int) -> Choice:
    """Take a rejection sampler if a pilot shows that a draw stays within the budget.

    The pilot draws noise with a fixed seed that is used for nothing else, so that a plan is always the same.
    """
    source = rng(seed="keepsum pilot")
    accepted, proposals = sampler.pilot(source, -(-pilot // sampler.cells_per_try))
    if not accepted and budget > pilot:
        accepted, proposals = sampler.pilot(source, -(-budget // sampler.cells_per_try))
    if not accepted or proposals * sampler.cells_per_try > budget * accepted:
        return Choice.none(cells, Reason("rarely_accepted", limit=budget))
    cost = blocks * proposals * sampler.cells_per_try // accepted
    return Choice(method, sampler, cells, cost, acceptance=accepted / proposals)
