"""Samplers of l1 Laplace noise with a focus: exact where totals are nested or can be summed out, else general."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy import sparse

from keepsum._arrays import BoolArray, IntArray
from keepsum._work import spend
from keepsum.lattice.families import families_of, summed_out
from keepsum.lattice.structure import Block, System, decompose
from keepsum.planning.crossing import CrossTable
from keepsum.planning.focus import OUTSIDE, FocusedBlocks, FocusTrees
from keepsum.planning.selection import general, splitting
from keepsum.planning.selection.choice import Choice, Reason, Sampler, block_cells, out_of_range, simulate_into
from keepsum.planning.selection.general import BlockProblem, OrderedProblem, OutcomeStore, choose_general, limits_of
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.core.rng import Rng
from keepsum.sampling.l1.focus.laws import entries_of
from keepsum.sampling.l1.focus.sampler import NestedFocus
from keepsum.sampling.l1.focus.tree import SumKinds
from keepsum.sampling.l1.forced_sums import ForcedSums
from keepsum.sampling.l1.splitting.bundles import SplitTable
from keepsum.sampling.l1.splitting.slices import KEPT, NOTHING, FocusedFamily, MarginWeights, two_way, with_slices

# The sampler of nested totals, some of them focused: exact.


MOST_ENTRIES = 4_000_000  # of the tables of sums: some 40 seconds, and 130 MB
MICROSECONDS = 10  # to make an entry
CELLS_DRAWN = 2  # proposals per cell, about


def choose_nested(nested: FocusTrees, mechanism: Mechanism) -> Choice:
    """All trees of focused totals."""
    cells, totals = nested.cells, nested.totals(mechanism)
    epsilons = [totals.epsilon, *(weight for weight in totals.weights if weight is not None)]
    missing = out_of_range("laplace-l1", *epsilons)
    if missing is not None:
        return Choice.none(cells, missing)
    in_groups = nested.structure.weight is not None  # then sums of groups are drawn
    entries = entries_of(SumKinds(totals, in_groups))
    if entries > MOST_ENTRIES:
        return Choice.none(cells, Reason("sums_too_wide"))
    spend(MICROSECONDS * entries)
    sampler, count = NestedFocus(totals, as_sums=in_groups), nested.structure.number_of(cells)
    return Choice("nested_totals", sampler, cells, CELLS_DRAWN * count)


# Two-way tables with focused margins as a longer lattice, for the general samplers.
#
# The lattice has an entry for each focused total, beside the entries of the table. Entries that the kept totals
# determine have sums of 0: they are no part of the problem, and their cells are drawn beside it.


def arranged_tables(
    matrix: sparse.csr_array, sizes: IntArray, epsilon: Fraction, weights: Sequence[Fraction], cells: IntArray
) -> OrderedProblem:
    """Tables of one form as the general samplers draw them.

    Parameters
    ----------
    matrix
        The totals over the entries of a table and then focused totals, see ``longer_matrix``.
    sizes
        The number of cells of each entry.
    epsilon, weights
        The epsilon of cells, and that of each focused total.
    cells
        The cells of all tables, one after the other, each entry by entry.
    """
    structure = decompose(matrix)
    moving = (structure.part >= 0)[structure.region]
    rest = sparse.csr_array(matrix[:, np.flatnonzero(moving)])
    rest = sparse.csr_array(rest[np.flatnonzero(np.diff(rest.indptr))])
    system = System.recognised(rest, sum(block.system.rank for block in structure.blocks))
    with_totals = np.concatenate([sizes, np.zeros(len(weights), dtype=np.int64)])[moving]
    epsilons = np.array([epsilon] * len(sizes) + list(weights), dtype=object)[moving]
    count, of_entries = len(cells) // int(sizes.sum()), moving[: len(sizes)]
    problem = BlockProblem(system, with_totals, count, epsilon, tuple(epsilons))
    if of_entries.all():
        return OrderedProblem(problem, cells, lambda sampler: sampler)
    fixed = ForcedSums(epsilon, np.tile(sizes[~of_entries], count))
    inside = np.tile(np.repeat(of_entries, sizes), count)
    return OrderedProblem(problem, cells, lambda sampler: Beside(sampler, fixed, inside))


class Beside:
    """Cells of a sampler, and beside them cells of entries whose sums are 0.

    ``inside`` says of each cell whether it is of the sampler.
    """

    def __init__(self, sampler: Sampler, fixed: ForcedSums, inside: BoolArray) -> None:
        self._sampler, self._fixed, self._inside = sampler, fixed, inside
        self.width = len(inside)

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw."""
        drawn = np.empty((len(out), self._sampler.width), dtype=np.int64)
        self._sampler.draw_into(drawn, rng, threads)
        self._put(drawn, out, rng, threads)

    def simulate_into(self, out: IntArray, rng: Rng) -> None:
        """Fill ``out`` with rows for estimates, where the sampler is a chain."""
        drawn = np.empty((len(out), self._sampler.width), dtype=np.int64)
        simulate_into(self._sampler, drawn, rng)
        self._put(drawn, out, rng, threads=1)

    def _put(self, drawn: IntArray, out: IntArray, rng: Rng, threads: int) -> None:
        fixed = np.empty((len(out), self._fixed.width), dtype=np.int64)
        self._fixed.draw_into(fixed, rng, threads)
        out[:, self._inside], out[:, ~self._inside] = drawn, fixed


# The samplers of two-way tables whose margins are focused or kept: exact by splitting columns, else a general one.


def choose_crossed(tables: Sequence[CrossTable], mechanism: Mechanism) -> Choice:
    """Tables of one form."""
    table, epsilon = tables[0], 1 / mechanism.scale
    cells = np.concatenate([each.cells for each in tables])
    missing = out_of_range("laplace-l1", *epsilons_of(mechanism))
    if missing is not None:
        return Choice.none(cells, missing)
    matrix, weights = longer_matrix(table.entries, table.margins(mechanism))
    sizes = table.entries[table.entries > 0]
    store = OutcomeStore(f"laplace-l1 {epsilon} crossed {[str(w) for w in weights]}", matrix, sizes, len(tables))
    exact = None if store.has_entry else _by_splitting(tables, mechanism)
    if exact is not None and exact.sampler is not None:
        return exact
    limits = [*limits_of("general", vars(general)), *limits_of("splitting", vars(splitting))]
    arranged = arranged_tables(matrix, sizes, epsilon, weights, cells)
    return choose_general(arranged, store, limits, lambda: exact or _by_splitting(tables, mechanism))


def _by_splitting(tables: Sequence[CrossTable], mechanism: Mechanism) -> Choice:
    """The longer side, with what is added, as rows."""
    table, margins = tables[0], tables[0].margins(mechanism)
    entries, order = table.entries, np.arange(len(table.cells))
    if margins.shape[0] < margins.shape[1]:
        entries, margins, order = entries.T, margins.transposed, np.lexsort((table.row, table.column))
    cells: IntArray = np.concatenate([each.cells[order] for each in tables])
    return splitting.by_splitting(1 / mechanism.scale, two_way(entries, margins), len(tables), cells)


def longer_matrix(entries: IntArray, margins: MarginWeights) -> tuple[sparse.csr_array, list[Fraction]]:
    """The totals of a table over its entries, row by row, and focused totals, with the weights of the latter.

    A kept total has the row z(g) = 0, a focused one z(g) - y_g = 0 with an entry y_g of its own.

    >>> margins = MarginWeights((KEPT, KEPT), (Fraction(1), Fraction(2)))
    >>> matrix, weights = longer_matrix(np.array([[1, 2], [0, 1]]), margins)
    >>> matrix.toarray().tolist(), [str(weight) for weight in weights]
    ([[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [1, 0, 0, -1, 0], [0, 1, 1, 0, -1]], ['1', '2'])
    """
    row, column = np.nonzero(entries)
    totals = [(weight, row == i) for i, weight in enumerate(margins.rows)]
    totals += [(weight, column == j) for j, weight in enumerate(margins.columns)]
    totals += [(margins.whole, np.ones(len(row), dtype=bool))]
    stated = [(weight, members) for weight, members in totals if weight != NOTHING]
    weights = [weight for weight, _ in stated if weight is not KEPT]
    added = sparse.coo_array(
        (
            -np.ones(len(weights), dtype=np.int64),
            ([k for k, (weight, _) in enumerate(stated) if weight is not KEPT], range(len(weights))),
        ),
        shape=(len(stated), len(weights)),
    )
    sums = sparse.csr_array(np.array([members for _, members in stated], dtype=np.int64))
    return sparse.csr_array(sparse.hstack([sums, added], format="csr", dtype=np.int64)), weights


# The samplers of l1 Laplace noise with a focus on totals that cross in any way: exact, else a general one.
#
# Families of totals, kept or focused, such as a total for each category of each of several axes, are drawn exactly
# where they can be summed out with what focused ones add (``slices.py``). For others an entry for each focused total
# (``focus.py``) makes noise with a focus noise on a longer lattice, whose entries have epsilons of their
# own. A mixture of lattice Gaussians draws it, by rejection or by a chain, or heat-bath moves do.


UNEQUAL = 20  # times the smallest epsilon: beyond, tables of laws go too far


def choose_focused(focused: FocusedBlocks, blocks: Sequence[Block], mechanism: Mechanism) -> Choice:
    """Blocks of one form with focused totals: as pilots have chosen before, if they have, or by new ones."""
    cells, sizes = block_cells(focused.structure, blocks)
    in_order = np.concatenate(cells)
    epsilons = epsilons_of(mechanism)
    missing = out_of_range("laplace-l1", *epsilons)
    if missing is not None:
        return Choice.none(in_order, missing)
    levels = focused.level_of_columns(blocks[0]).tolist()
    problem = BlockProblem(
        blocks[0].system, sizes, len(blocks), epsilons[0], tuple(epsilons[1 + level] for level in levels)
    )
    kind = f"laplace-l1 focus {[str(epsilon) for epsilon in problem.epsilons]}"
    store = OutcomeStore(kind, problem.system.matrix, sizes, len(blocks))
    exact = None if store.has_entry else _by_elimination(focused, blocks[0], epsilons, len(blocks), in_order)
    if exact is not None and exact.sampler is not None:
        return exact
    arranged = OrderedProblem(problem, in_order, lambda sampler: sampler)
    limits = [*limits_of("general", vars(general)), *limits_of("splitting", vars(splitting)), ("UNEQUAL", UNEQUAL)]
    return choose_general(
        arranged, store, limits, lambda: exact or _by_elimination(focused, blocks[0], epsilons, len(blocks), in_order)
    )


def epsilons_of(mechanism: Mechanism) -> list[Fraction]:
    """The epsilon of cells, and that of each level."""
    return [1 / mechanism.scale, *(level.weight for level in mechanism.focus)]


def _by_elimination(
    focused: FocusedBlocks, block: Block, epsilons: Sequence[Fraction], count: int, cells: IntArray
) -> Choice:
    """The exact sampler of blocks whose families can be summed out; ``cells`` are those of all, in order."""
    if max(epsilons) > UNEQUAL * min(epsilons):
        return Choice.none(cells, Reason("sums_too_wide"))
    table = table_of(focused, block, epsilons)
    if table is None:
        return Choice.none(cells, Reason("totals_cross"))
    return splitting.by_splitting(epsilons[0], table, count, cells, method="axis_elimination")


def table_of(focused: FocusedBlocks, block: Block, epsilons: Sequence[Fraction]) -> SplitTable | None:
    """A block with what its focused totals add, if all its families can be summed out; None otherwise.

    ``epsilons`` are those of cells and of each level. Some families that could not be if they were kept, such as the
    three two-way margins of three axes, can be with slices, but then too few proposals are accepted to find out.
    """
    totals = block.regions >= focused.first_total
    families: list[FocusedFamily] = []
    for (labels, present), epsilon in zip(focused.totals_of_regions(block), epsilons[1:], strict=True):
        if not len(present):
            continue
        if labels.min() == OUTSIDE:
            return None
        numbers, classes = np.unique(labels, return_inverse=True)
        weights = tuple(epsilon if number in present else KEPT for number in numbers.tolist())
        families = _with(families, FocusedFamily(classes.reshape(-1).astype(np.int64), weights))
    matrix = block.system.matrix
    with_total = np.diff(sparse.csr_array(matrix[:, np.flatnonzero(totals)]).indptr) > 0
    of_cells = sparse.csr_array(matrix[np.flatnonzero(~with_total)][:, np.flatnonzero(~totals)])
    sizes = focused.structure.sizes[block.regions[~totals]]
    for kept in families_of(of_cells) if of_cells.shape[0] else [[]]:
        if summed_out([*kept, *(family.classes for family in families)], len(sizes)) is None:
            continue
        table = with_slices(sizes, kept, families)
        if table is not None:
            return table
    return None


def _with(families: list[FocusedFamily], new: FocusedFamily) -> list[FocusedFamily]:
    """Families with one more; within a block it may be one of them, whose weights are then added up."""
    for k, known in enumerate(families):
        if np.array_equal(known.classes, new.classes):
            pairs = zip(known.weights, new.weights, strict=True)
            weights = tuple(KEPT if one is KEPT or two is KEPT else one + two for one, two in pairs)
            return [*families[:k], FocusedFamily(known.classes, weights), *families[k + 1 :]]
    return [*families, new]
