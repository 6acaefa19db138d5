"""Focused totals beside kept ones: the trees that they form where they are nested, and the blocks elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from keepsum._arrays import BoolArray, IntArray, grouped
from keepsum._saying import the
from keepsum.errors import PlanError
from keepsum.lattice.determined import determined
from keepsum.lattice.structure import FOCUSED, FORCED, Block, Structure, counted, decompose
from keepsum.planning.crossing import CrossingTotalsError, CrossTable, crossing_tables
from keepsum.planning.groups import BlockForm, BlockGroup, groups_of
from keepsum.privacy.distance import Distance
from keepsum.privacy.focus import Level
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.l1.focus.tree import ABSENT, NestedTotals
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants, Margin, Rows

# The totals of one level of a focus: those of a margin, or of subsets of cells; no two have a cell in common.


OUTSIDE = -1  # of a cell that is in no total


@dataclass(frozen=True)
class FocusTotals:
    """The totals of one level.

    Attributes
    ----------
    part
        The totals as those that are kept.
    size
        The number of cells of the table.
    """

    part: Margin | Rows
    size: int

    @classmethod
    def of(cls, level: Level, domain: Domain) -> FocusTotals:
        """The totals of a level over a domain."""
        if level.subsets is None:
            return cls(Margin(domain, domain.closure(level.axes)), domain.size)
        if level.subsets.size != domain.size:
            raise PlanError(
                f"Subsets of a focus must be of the {domain.size:,} cells of the table, got {level.subsets.size:,}."
            )
        (rows,) = level.subsets.key.parts
        if not isinstance(rows, Rows):
            raise AssertionError("subsets are rows")
        return cls(rows, domain.size)

    @property
    def axes(self) -> tuple[str, ...] | None:
        """The axes of a margin, with the parents of nested ones; None for subsets."""
        return self.part.axes if isinstance(self.part, Margin) else None

    @property
    def height(self) -> int:
        """The number of totals."""
        return self.part.height

    @property
    def covers(self) -> bool:
        """Whether every cell is in a total."""
        return isinstance(self.part, Margin)

    @cached_property
    def labels(self) -> IntArray:
        """The total of each cell, or ``OUTSIDE``."""
        if isinstance(self.part, Margin):
            return np.asarray(self.part.domain.marginal_index(self.part.axes))
        labels = np.full(self.size, OUTSIDE, dtype=np.int64)
        rows = self.part.rows
        labels[rows.indices] = np.repeat(np.arange(self.height), np.diff(rows.indptr))
        return labels

    def coefficients(self) -> sparse.csr_array:
        """The totals as rows over the cells."""
        return self.part.coefficients()


# Focused totals beside kept ones: the trees that they form where they are nested, and the tables where they cross.
#
# The noise of a kept total is 0, so a focused total matters only through what of it lies in parts that it divides
# (cells under no total, or a region whose sum is kept). If that is a single part, and the focused totals of each part
# are inside or apart from each other, every part with focused totals is a tree, or several. Others must be tables
# (``crossing.py``). Nothing here depends on epsilons.


KEPT = -1  # in place of the level of a total
FREE_PART = 0  # cells under no kept total; regions with a kept sum are parts 1, 2, ... (``Structure.numbered_parts``)
NOWHERE = -1  # of a cell that is pinned, or in a block


@dataclass(frozen=True, eq=False)
class FocusTrees:
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
    def form(self) -> BlockForm:
        """All trees as one form."""
        sizes = self.sizes[self.sizes > 0]
        return BlockForm("nested", len(sizes), len(self.parents), int(sizes.min()), int(sizes.max()))

    def totals(self, mechanism: Mechanism) -> NestedTotals:
        """The totals with the epsilons of a mechanism."""
        weights = [None if level == KEPT else mechanism.focus[level].weight for level in self.levels.tolist()]
        return NestedTotals(self.parents.tolist(), self.sizes.tolist(), weights, 1 / mechanism.scale)


def nested_totals(focus: Sequence[Level], invariants: Invariants, structure: Structure) -> FocusTrees:
    """The trees and the tables that focused totals form with the kept ones.

    Raises
    ------
    PlanError
        If they cross, but not as rows and columns of a table; all totals of a level are kept; or two levels are the
        same totals.
    """
    margins = focused_margins(focus, invariants)
    part = structure.numbered_parts(with_blocks=False)[structure.region]
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
    return FocusTrees(margins, part, labels, parents, levels, home, noise, tuple(tables), spanning)


def focused_margins(focus: Sequence[Level], invariants: Invariants) -> tuple[FocusTotals, ...]:
    """The totals of each level."""
    domain = invariants.domain
    if domain is None:
        raise PlanError(
            "A focus must be on the axes of a table, and these cells have no names. Declare the totals with "
            f"{the.call('invariants.over(table.domain)')}."
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
    totals = [(level, cells) for level, label in enumerate(labels) for cells in grouped(label)]
    for level, cells in sorted(totals, key=lambda total: -len(total[1])):
        parent = int(home[cells[0]])
        if (home[cells] != parent).any():
            return None
        home[cells] = len(parents)
        parents.append(parent)
        levels.append(level)
    return np.array(parents, dtype=np.int64), np.array(levels, dtype=np.int64), home


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


# Focused totals beside kept ones: blocks of regions and totals, nested or not.
#
# With an entry y_g for each focused total g and the row z(g) - y_g = 0, noise with a focus is noise on a longer
# lattice, whose entries are weighed one by one: Gaussian noise has |z|^2 plus a weight times y_g^2 for each total, l1
# Laplace noise |z| plus a weight times |y_g|. So the longer matrix is decomposed like any other; its blocks have
# regions of cells, and focused totals as regions without cells. Totals that the kept ones determine are in no block.
# Nothing here depends on the weights. In l1 Laplace noise it is used for totals that ``focus.py`` has no trees and
# tables for.


@dataclass(frozen=True, eq=False)
class FocusedBlocks:
    """The longer lattice.

    Attributes
    ----------
    margins
        The totals of each level.
    structure
        The regions and blocks of the noise; focused totals are regions of 0 cells, behind all others.
    levels
        The level of each focused total.
    """

    margins: tuple[FocusTotals, ...]
    structure: Structure
    levels: IntArray

    @property
    def first_total(self) -> int:
        """The number of the first region that is a focused total."""
        return len(self.structure.sizes) - len(self.levels)

    def levels_of(self, block: Block) -> IntArray:
        """The levels of the focused totals of a block, which come behind its regions of cells."""
        return self.levels[np.sort(block.regions)[self._cell_regions(block) :] - self.first_total]

    def level_of_columns(self, block: Block) -> IntArray:
        """The level of each column of a block's system; -1 for regions of cells."""
        level = np.full(len(block.regions), -1, dtype=np.int64)
        totals = block.regions >= self.first_total
        level[totals] = self.levels[block.regions[totals] - self.first_total]
        return level

    def members(self, block: Block) -> list[IntArray]:
        """For each focused total of a block, the places of its regions among those of the block, both in order."""
        regions, totals = np.split(np.sort(block.regions), [self._cell_regions(block)])
        cells, starts = self.structure.cells_by_region
        first = cells[starts[regions]]
        numbers, starts = totals - self.first_total, np.searchsorted(self.levels, np.arange(len(self.margins) + 1))
        found: list[IntArray] = []
        for level, margin in enumerate(self.margins):
            label = margin.labels[first]
            order = np.argsort(label, kind="stable")
            wanted = numbers[self.levels[numbers] == level] - starts[level]
            low, high = (np.searchsorted(label[order], wanted, side=side) for side in ("left", "right"))
            found += [order[start:end] for start, end in zip(low.tolist(), high.tolist(), strict=True)]
        return found

    def totals_of_regions(self, block: Block) -> list[tuple[IntArray, IntArray]]:
        """For each level the total of each region of cells, in the order of the columns, and which totals are columns.

        The others have no noise in this block.
        """
        totals = block.regions >= self.first_total
        cells, starts = self.structure.cells_by_region
        first, numbers = cells[starts[block.regions[~totals]]], block.regions[totals] - self.first_total
        behind = np.searchsorted(self.levels, np.arange(len(self.margins) + 1))
        return [
            (margin.labels[first], numbers[(behind[level] <= numbers) & (numbers < behind[level + 1])] - behind[level])
            for level, margin in enumerate(self.margins)
        ]

    def _cell_regions(self, block: Block) -> int:
        return int((block.regions < self.first_total).sum())

    def groups(self, smallest: Distance) -> Iterator[BlockGroup]:
        """The blocks by form; ``smallest`` is the smallest change through a cell, for the cell where it is largest."""
        without = tuple(block for block in self.structure.blocks if self._cell_regions(block) == len(block.regions))
        for group in groups_of(replace(self.structure, blocks=without), smallest.norm):
            yield group.without_focus(len(self.margins))
        alike: dict[tuple[int, bytes, bytes], list[Block]] = {}
        for block in self.structure.blocks:
            if self._cell_regions(block) < len(block.regions):
                key = (
                    id(block.system),
                    self.structure.sizes[block.regions].tobytes(),
                    self.level_of_columns(block).tobytes(),
                )
                alike.setdefault(key, []).append(block)
        for blocks in alike.values():
            yield self._group(blocks, smallest)

    def _group(self, blocks: list[Block], smallest: Distance) -> BlockGroup:
        system, regions = blocks[0].system, self._cell_regions(blocks[0])
        sizes = self.structure.sizes[np.sort(blocks[0].regions)[:regions]]
        kept = system.rank - (system.width - regions)  # each focused total has a row of its own
        return BlockGroup(
            form=BlockForm("focused", regions, system.width - regions + kept, int(sizes.min()), int(sizes.max())),
            blocks=len(blocks),
            cells=int(sizes.sum()) * len(blocks),
            dimension=(int(sizes.sum()) - kept) * len(blocks),
            codimension=kept * len(blocks),
            distance=smallest,
            members=tuple(blocks),
        )


def focused_blocks(focus: Sequence[Level], invariants: Invariants) -> FocusedBlocks:
    """The longer lattice of kept and focused totals.

    Raises
    ------
    PlanError
        If all totals of a level are kept, or two levels are the same totals.
    """
    margins = focused_margins(focus, invariants)
    totals = sparse.vstack([margin.coefficients() for margin in margins], format="csr")
    count, size = totals.shape
    kept = invariants.coefficients
    matrix = sparse.block_array(
        [[kept, sparse.csr_array((kept.shape[0], count), dtype=np.int64)], [totals, -sparse.eye_array(count)]],
        format="csr",
        dtype=np.int64,
    )
    longer = decompose(sparse.csr_array(matrix))
    levels = np.repeat(np.arange(len(margins)), [margin.height for margin in margins])
    of_totals = longer.region[size:]
    for number, level in enumerate(focus):
        if (longer.part[of_totals[levels == number]] == FORCED).all():
            raise without_noise(level)
    sizes = longer.sizes.copy()
    sizes[of_totals] = 0
    region = longer.region[:size].copy()
    for array in (region, sizes):
        array.setflags(write=False)
    return FocusedBlocks(margins, Structure(region, sizes, longer.part, longer.blocks), levels)
