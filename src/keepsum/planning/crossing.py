"""Focused totals that cross: two-way tables whose rows and columns are kept or focused.

Cells are linked where they are in one focused total, or in one region with a kept sum. Linked cells whose totals are
not nested must form a table: each cell is in two totals besides that of them all, a row and a column. Nothing here
depends on epsilons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np

from keepsum._arrays import IntArray, grouped
from keepsum.errors import PlanError
from keepsum.lattice.graphs import connected_components
from keepsum.privacy.focus import Level
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.l1.splitting.slices import MarginWeights

Levels: TypeAlias = tuple[int, ...] | None  # that a total is focused on by, none if it is free; None for a kept one
KEPT: Levels = None
ROW, COLUMN, UNKNOWN = 0, 1, -1


class CrossingTotalsError(PlanError):
    """Focused and kept totals are neither nested nor the rows and columns of tables."""


@dataclass(frozen=True, eq=False)
class CrossTable:
    """A two-way table whose rows and columns are kept or focused.

    Attributes
    ----------
    cells
        Its cells, row by row and in each row column by column.
    row, column
        The row and the column of each.
    rows, columns, whole
        What each row, each column, and the grand total is.
    """

    cells: IntArray
    row: IntArray
    column: IntArray
    rows: tuple[Levels, ...]
    columns: tuple[Levels, ...]
    whole: Levels

    @cached_property
    def entries(self) -> IntArray:
        """The number of cells of each entry."""
        entries = np.zeros((len(self.rows), len(self.columns)), dtype=np.int64)
        np.add.at(entries, (self.row, self.column), 1)
        return entries

    @property
    def form(self) -> tuple[object, ...]:
        """What tables that are drawn alike have in common."""
        return self.entries.shape, self.entries.tobytes(), self.rows, self.columns, self.whole

    @property
    def kept(self) -> int:
        """How many totals are kept."""
        return sum(levels is KEPT for levels in (*self.rows, *self.columns, self.whole))

    @property
    def totals(self) -> int:
        """How many totals are kept or focused."""
        return len(self.rows) + len(self.columns) + (self.whole != ())

    def margins(self, mechanism: Mechanism) -> MarginWeights:
        """The totals with the epsilons of a mechanism."""

        def weight(levels: Levels) -> Fraction | None:
            if levels is None:
                return None
            return sum((mechanism.focus[level].weight for level in levels), Fraction(0))

        return MarginWeights(tuple(map(weight, self.rows)), tuple(map(weight, self.columns)), weight(self.whole))

    def alike(self) -> Iterator[IntArray]:
        """Places of cells whose noise has the same law: rows that are alike may be exchanged, and so may columns."""
        rows = _numbered([(levels, entries.tobytes()) for levels, entries in zip(self.rows, self.entries, strict=True)])
        columns = _numbered(
            [(levels, entries.tobytes()) for levels, entries in zip(self.columns, self.entries.T, strict=True)]
        )
        kind = rows[self.row] * (int(columns.max()) + 1) + columns[self.column]
        for value in np.unique(kind).tolist():
            yield np.flatnonzero(kind == value)


def _numbered(keys: Sequence[object]) -> IntArray:
    place = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([place[key] for key in keys], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Total:
    """A total within linked cells: what it is, and its cells as places among them."""

    levels: Levels
    cells: IntArray


def crossing_tables(focus: Sequence[Level], part: IntArray, labels: IntArray, free: int) -> list[CrossTable]:
    """The tables of linked cells whose totals are not nested.

    Parameters
    ----------
    focus
        The levels.
    part, labels
        The part of each cell, negative if it has none, and for each level the focused total that it counts in, or -1.
    free
        The part of cells under no kept total.

    Raises
    ------
    CrossingTotalsError
        If totals cross that are not the rows and columns of a table.
    """
    tables = []
    for cells in _linked(part, labels, free):
        totals = list(_totals(part[cells], labels[:, cells], free))
        if _are_nested(totals, len(cells)):
            continue
        table = _table(cells, totals)
        if table is None:
            named = sorted({level for total in totals for level in total.levels or ()})
            words = " and ".join(focus[level].totals for level in named)
            raise CrossingTotalsError(
                f"Focused totals that cross others must be the rows or the columns of two-way tables, and {words} are "
                f"not. Focus on fewer totals, keep fewer, or use Gaussian noise, whose focused totals may cross."
            )
        tables.append(table)
    return tables


def _linked(part: IntArray, labels: IntArray, free: int) -> Iterator[IntArray]:
    """The cells of each set that is linked, where there is a focused total."""
    chosen = np.flatnonzero((labels >= 0).any(axis=0) | ((part >= 0) & (part != free)))
    names, start = [np.where(part[chosen] == free, -1, part[chosen])], 0
    for label in labels:
        start = int(names[-1].max(initial=start)) + 1
        names.append(np.where(label[chosen] >= 0, start + label[chosen], -1))
    vertices = len(chosen) + max(int(name.max(initial=0)) for name in names) + 1
    tails = [np.flatnonzero(name >= 0) for name in names]
    heads = [len(chosen) + name[tail] for name, tail in zip(names, tails, strict=True)]
    _, component = connected_components(np.concatenate(tails), np.concatenate(heads), vertices)
    for members in grouped(component[: len(chosen)]):
        if (labels[:, chosen[members]] >= 0).any():
            yield chosen[members]


def _totals(part: IntArray, labels: IntArray, free: int) -> Iterator[_Total]:
    """The kept and the focused totals of linked cells; those with the same cells are one."""
    found: dict[bytes, _Total] = {}
    for region in np.unique(part[part != free]).tolist():
        cells = np.flatnonzero(part == region)
        found[cells.tobytes()] = _Total(KEPT, cells)
    for level, label in enumerate(labels):
        for name in np.unique(label[label >= 0]).tolist():
            cells = np.flatnonzero(label == name)
            known = found.get(cells.tobytes())
            if known is None or known.levels is not None:
                before = () if known is None or known.levels is None else known.levels
                found[cells.tobytes()] = _Total((*before, level), cells)
    yield from found.values()


def _are_nested(totals: Sequence[_Total], size: int) -> bool:
    """Whether each total is inside, around or apart from every other."""
    home = np.full(size, UNKNOWN, dtype=np.int64)
    for number, total in enumerate(sorted(totals, key=lambda total: -len(total.cells))):
        if (home[total.cells] != home[total.cells[0]]).any():
            return False
        home[total.cells] = number
    return True


def _table(cells: IntArray, totals: Sequence[_Total]) -> CrossTable | None:
    """The table of linked cells; None if there is none."""
    whole = next((total.levels for total in totals if len(total.cells) == len(cells)), ())
    sides = [total for total in totals if len(total.cells) < len(cells)]
    members = np.concatenate([total.cells for total in sides])
    if (np.bincount(members, minlength=len(cells)) != 2).any():
        return None
    number = np.repeat(np.arange(len(sides)), [len(total.cells) for total in sides])
    pairs = number[np.argsort(members, kind="stable")].reshape(-1, 2)  # the two totals of each cell
    side = _two_sides(pairs, len(sides))
    if side is None:
        return None
    place = np.empty(len(sides), dtype=np.int64)
    for value in (ROW, COLUMN):
        place[side == value] = np.arange(int((side == value).sum()))
    first = side[pairs[:, 0]] == ROW
    row, column = place[np.where(first, pairs[:, 0], pairs[:, 1])], place[np.where(first, pairs[:, 1], pairs[:, 0])]
    order = np.lexsort((column, row))
    rows = tuple(total.levels for total, value in zip(sides, side, strict=True) if value == ROW)
    columns = tuple(total.levels for total, value in zip(sides, side, strict=True) if value == COLUMN)
    return CrossTable(cells[order], row[order], column[order], rows, columns, whole)


def _two_sides(pairs: IntArray, count: int) -> IntArray | None:
    """A side for each total, such that no two with a cell in common are on the same; None if that is impossible.

    The first total of those that are linked through their cells is a row.
    """
    edges = np.unique(np.sort(pairs, axis=1), axis=0)
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for one, other in edges.tolist():
        neighbours[one].append(other)
        neighbours[other].append(one)
    side = [UNKNOWN] * count
    for start in range(count):
        waiting = [start] if side[start] == UNKNOWN else []
        side[start] = ROW if waiting else side[start]
        while waiting:
            total = waiting.pop()
            for other in neighbours[total]:
                if side[other] == UNKNOWN:
                    side[other] = 1 - side[total]
                    waiting.append(other)
                elif side[other] == side[total]:
                    return None
    return np.array(side, dtype=np.int64)
