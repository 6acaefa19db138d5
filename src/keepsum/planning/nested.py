"""Focused totals beside kept ones: the trees that they form where they are nested, and the tables where they cross.

The noise of a kept total is 0, so a focused total matters only through what of it lies in parts that it divides (cells
under no total, or a region whose sum is kept). If that is a single part, and the focused totals of each part are inside
or apart from each other, every part with focused totals is a tree, or several. Others must be tables (``crossing.py``).
Nothing here depends on epsilons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from keepsum._arrays import BoolArray, IntArray
from keepsum.errors import PlanError
from keepsum.lattice.determined import determined
from keepsum.lattice.structure import FOCUSED, FORCED, FREE, Structure, counted
from keepsum.planning.crossing import CrossingTotalsError, CrossTable, crossing_tables
from keepsum.planning.focus_totals import OUTSIDE, FocusTotals
from keepsum.planning.groups import Form
from keepsum.privacy.focus import Level
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.l1.focus.tree import ABSENT, Totals
from keepsum.tables.invariants import Invariants

KEPT = -1  # in place of the level of a total
FREE_PART = 0  # cells under no kept total; regions with a kept sum are parts 1, 2, ...
NOWHERE = -1  # of a cell that is pinned, or in a block


@dataclass(frozen=True, eq=False)
class Nested:
    """The trees of focused totals, and the tables of those that cross.

    Attributes
    ----------
    margins
        The totals of each level.
    part
        The part of each cell: ``FREE_PART``, a region with a kept sum, or ``NOWHERE``.
    labels
        For each level, the focused total that each cell counts in; -1 if it does not.
    parents, levels
        The totals: the smallest that contains each, which comes before it, or -1; and the level of each, or ``KEPT``.
    home
        The smallest total of each cell, -1 for cells without a focus, and in tables.
    structure
        The regions of the noise: those of the kept totals, cells with the same ``home``, and those of each table.
    tables
        The tables of focused totals that cross.
    spanning
        Whether some focused total divides several parts.
    """

    margins: tuple[FocusTotals, ...]
    part: IntArray
    labels: IntArray
    parents: IntArray
    levels: IntArray
    home: IntArray
    structure: Structure
    tables: tuple[CrossTable, ...] = ()
    spanning: bool = False

    @cached_property
    def crossed(self) -> BoolArray:
        """Which cells are in tables."""
        inside = np.zeros(len(self.part), dtype=bool)
        for table in self.tables:
            inside[table.cells] = True
        return inside

    @cached_property
    def cells(self) -> IntArray:
        """The cells with a focus, total by total: the order in which they are drawn."""
        return np.argsort(self.home, kind="stable")[int((self.home < 0).sum()) :]

    @cached_property
    def sizes(self) -> IntArray:
        """How many cells stand in each total and in no smaller one."""
        weight, inside = self.structure.weight, self.home >= 0
        return counted(self.home[inside], None if weight is None else weight[inside], len(self.parents))

    @property
    def roots(self) -> int:
        """How many kept totals contain focused ones."""
        return int((self.levels == KEPT).sum())

    @property
    def form(self) -> Form:
        """All trees as one form."""
        sizes = self.sizes[self.sizes > 0]
        return Form("nested", len(sizes), len(self.parents), int(sizes.min()), int(sizes.max()))

    def totals(self, mechanism: Mechanism) -> Totals:
        """The totals with the epsilons of a mechanism."""
        weights = [None if level == KEPT else mechanism.focus[level].weight for level in self.levels.tolist()]
        return Totals(self.parents.tolist(), self.sizes.tolist(), weights, 1 / mechanism.scale)


def nested_totals(focus: Sequence[Level], invariants: Invariants, structure: Structure) -> Nested:
    """The trees and the tables that focused totals form with the kept ones.

    Raises
    ------
    PlanError
        If they cross, but not as rows and columns of a table; all totals of a level are kept; or two levels are the
        same totals.
    """
    margins = focused_margins(focus, invariants)
    part = _parts(structure)
    divided = [_divided(level, margin, structure, part) for level, margin in zip(focus, margins, strict=True)]
    labels, spanning = np.stack([label for label, _ in divided]), any(spans for _, spans in divided)
    trees, tables = None if spanning else _trees(part, labels), []
    if trees is None:
        tables = crossing_tables(focus, part, labels, FREE_PART)
        inside = np.concatenate([table.cells for table in tables])
        others = labels.copy()
        others[:, inside] = -1
        trees = _trees(part, others)
        if trees is None:
            raise AssertionError("what is not in a table is nested")
    parents, levels, home = trees
    noise = _with_homes(structure, home, len(parents), tables)
    return Nested(margins, part, labels, parents, levels, home, noise, tuple(tables), spanning)


def focused_margins(focus: Sequence[Level], invariants: Invariants) -> tuple[FocusTotals, ...]:
    """The totals of each level."""
    domain = invariants.domain
    if domain is None:
        raise PlanError(
            "A focus must be on the axes of a table, and these cells have no names. Declare the totals with "
            "invariants.over(table.domain)."
        )
    margins: list[FocusTotals] = []
    for level in focus:
        margin = FocusTotals.of(level, domain)
        if margin in margins:
            other = focus[margins.index(margin)]
            raise PlanError(
                f"A focus must be given once: {level.totals} and {other.totals} are the same totals. Leave one out."
            )
        margins.append(margin)
    return tuple(margins)


def _parts(structure: Structure) -> IntArray:
    """The part of each cell."""
    number = np.full(len(structure.sizes), NOWHERE, dtype=np.int64)
    number[structure.part == FREE] = FREE_PART
    sums = np.flatnonzero((structure.part == FORCED) & (structure.sizes > 1))
    number[sums] = 1 + np.arange(len(sums))
    return number[structure.region]


def _divided(level: Level, margin: FocusTotals, structure: Structure, part: IntArray) -> tuple[IntArray, bool]:
    """The total of a level that each cell counts in: the one that divides the cell's part, if it does.

    And whether one of them divides several parts.
    """
    total = margin.labels
    if structure.blocks and not _determined_in_blocks(margin, structure):
        raise CrossingTotalsError(
            f"{_sentence(level)} must not be focused on under kept totals that overlap. Focus on others, or keep fewer."
        )
    inside = np.flatnonzero((part != NOWHERE) & (total != OUTSIDE))
    count = int(part.max(initial=0)) + 1
    pairs, place, cells = np.unique(total[inside] * count + part[inside], return_inverse=True, return_counts=True)
    size = np.bincount(part[part != NOWHERE], minlength=count)
    divides = (pairs % count == FREE_PART) | (cells < size[pairs % count])
    spans = bool(np.bincount((pairs // count)[divides], minlength=margin.height).max(initial=0) > 1)
    if not divides.any():
        raise without_noise(level)
    labels = np.full(len(part), -1, dtype=np.int64)
    labels[inside] = np.where(divides[place], total[inside], -1)
    return labels, spans


def without_noise(level: Level) -> PlanError:
    """What is raised where all totals of a level are kept."""
    return PlanError(
        f"A focus must be on totals that have noise, and the kept ones determine {'all ' * bool(level.axes)}"
        f"{level.totals}. Leave it out."
    )


def _sentence(level: Level) -> str:
    """The totals at the start of a sentence."""
    return level.totals[0].upper() + level.totals[1:]


def _determined_in_blocks(margin: FocusTotals, structure: Structure) -> bool:
    """Whether the kept totals determine what of each total lies in blocks where they overlap."""
    rows = margin.coefficients().tocoo()
    chosen = structure.part[structure.region[rows.col]] >= 0
    entries = (rows.data[chosen], (rows.row[chosen], rows.col[chosen]))
    return bool(determined(structure, sparse.csr_array(entries, shape=rows.shape)).all())


def _trees(part: IntArray, labels: IntArray) -> tuple[IntArray, IntArray, IntArray] | None:
    """Parents, levels and homes: totals are taken by size, and each must be inside one of those before it, or apart.

    None if one is neither.
    """
    touched = np.unique(part[(labels >= 0).any(axis=0)])
    parents, levels = [], []
    home = np.full(len(part), -1, dtype=np.int64)
    roots = touched[touched != FREE_PART]
    if len(roots):
        number = np.full(int(part.max()) + 2, -1, dtype=np.int64)
        number[roots] = np.arange(len(roots))
        home = number[part]  # the last number, -1, is that of cells without a part
        parents, levels = [ABSENT] * len(roots), [KEPT] * len(roots)
    for level, cells in sorted(_totals(labels), key=lambda total: -len(total[1])):
        parent = int(home[cells[0]])
        if (home[cells] != parent).any():
            return None
        home[cells] = len(parents)
        parents.append(parent)
        levels.append(level)
    return np.array(parents, dtype=np.int64), np.array(levels, dtype=np.int64), home


def _totals(labels: IntArray) -> Iterator[tuple[int, IntArray]]:
    """The level and the cells of each focused total."""
    for level, label in enumerate(labels):
        order = np.argsort(label, kind="stable")[int((label < 0).sum()) :]
        for cells in np.split(order, np.flatnonzero(np.diff(label[order])) + 1) if len(order) else ():
            yield level, cells


def _with_homes(structure: Structure, home: IntArray, count: int, tables: Sequence[CrossTable]) -> Structure:
    """The structure with a further region for each total that has cells of its own, and for each entry of a table.

    Regions keep their numbers, which blocks refer to; emptied ones stay, without any cell.
    """
    before = len(structure.sizes)
    region = np.where(home >= 0, before + home, structure.region)
    for table in tables:
        _, entry = np.unique(table.row * len(table.columns) + table.column, return_inverse=True)
        region[table.cells] = before + count + entry
        count += int(entry.max()) + 1
    sizes = counted(region, structure.weight, before + count)
    part = np.concatenate([structure.part, np.full(count, FOCUSED, dtype=np.int64)])
    part[sizes == 0] = FOCUSED
    for array in (region, sizes, part):
        array.setflags(write=False)
    return Structure(region, sizes, part, structure.blocks, structure.weight)
