"""Where each cell of a table stands: in which group, in which order, and which cells are filled together.

A *position* numbers the cells group by group, those of a group in label order. A *task* is a run of positions: some
whole groups, or a part of a large one. Both depend on the declared domain and the kept totals alone, never on the data
or on how Spark distributes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from keepsum._arrays import IntArray
from keepsum.planning.quotient import Quotient
from keepsum.tables.domain import Domain

TASK_CELLS = 2**20  # of a task, at most


@dataclass(frozen=True, eq=False)
class Order:
    """The order of the cells of one family of axes: those in the same place of the groups' margin stand together."""

    place: IntArray  # of each cell of the family
    rows: IntArray  # the cells, place by place
    starts: IntArray  # where each place starts among them, and where the last one ends
    rank: IntArray  # of each cell among those of its place

    @classmethod
    def of(cls, place: IntArray) -> Order:
        """The order by places."""
        rows = np.argsort(place, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(place))])
        rank = np.empty_like(rows)
        rank[rows] = np.arange(len(rows)) - starts[place[rows]]
        return cls(place, rows, starts, rank)

    @property
    def counts(self) -> IntArray:
        """How many cells there are in each place."""
        return np.diff(self.starts)


@dataclass(frozen=True, eq=False)
class Layout:
    """The cells of a table in groups, cut into tasks.

    Examples
    --------
    >>> from keepsum.tables.invariants import Invariants
    >>> domain = Domain({"sex": ["f", "m"], "age": [0, 1, 2]})
    >>> layout = Layout.of(Quotient.of(Invariants.margins(domain, [["age"]])), task_cells=4)
    >>> layout.cells(0, 6).tolist(), layout.positions(np.arange(6)).tolist()
    ([0, 3, 1, 4, 2, 5], [0, 2, 4, 1, 3, 5])
    >>> layout.starts.tolist(), layout.task(np.arange(6)).tolist()
    ([0, 4, 6], [0, 0, 0, 0, 1, 1])
    """

    domain: Domain
    orders: tuple[Order, ...]
    ends: IntArray  # the position behind each group
    pieces: IntArray  # where the pieces of groups start that are filled given their sum; and the end
    starts: IntArray  # where tasks start, each with a piece; and the end

    @classmethod
    def of(cls, quotient: Quotient, task_cells: int = TASK_CELLS) -> Layout:
        """The cells of the groups of a plan."""
        orders = tuple(map(Order.of, quotient.places(quotient.axes)))
        ends = np.cumsum(quotient.sizes)
        pieces = np.concatenate([[0], _pieces(quotient.sizes, ends, task_cells)])
        return cls(quotient.domain, orders, ends, pieces, _starts(pieces, task_cells))

    @property
    def tasks(self) -> int:
        """How many tasks there are."""
        return len(self.starts) - 1

    @property
    def size(self) -> int:
        """How many cells there are."""
        return int(self.ends[-1])

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many places each family has."""
        return tuple(len(order.starts) - 1 for order in self.orders)

    def group(self, positions: IntArray) -> IntArray:
        """The group of each position."""
        return np.searchsorted(self.ends, positions, side="right")

    def task(self, positions: IntArray) -> IntArray:
        """The task of each position."""
        return np.searchsorted(self.starts, positions, side="right") - 1

    def pieces_of(self, task: int) -> tuple[IntArray, IntArray]:
        """The numbers and the sizes of the pieces of a task."""
        first, last = np.searchsorted(self.pieces, self.starts[task : task + 2])
        return np.arange(first, last), np.diff(self.pieces[first : last + 1])

    def positions(self, cells: IntArray) -> IntArray:
        """The position of each cell, given by its number in the domain."""
        rows = np.unravel_index(cells, self.domain.shape)
        group = np.zeros(len(cells), dtype=np.int64)
        inside = np.zeros(len(cells), dtype=np.int64)
        for order, row in zip(self.orders, rows, strict=True):
            place = order.place[row]
            group = group * (len(order.starts) - 1) + place
            inside = inside * order.counts[place] + order.rank[row]
        return self._before(group) + inside

    def rows(self, first: int, last: int) -> list[IntArray]:
        """For each family, its cell at each of some positions."""
        positions = np.arange(first, last)
        group = self.group(positions)
        inside = positions - self._before(group)
        places = np.unravel_index(group, self.shape)
        rows = []
        for order, place in zip(reversed(self.orders), reversed(places), strict=True):
            inside, rank = np.divmod(inside, order.counts[place])
            rows.append(order.rows[order.starts[place] + rank])
        return rows[::-1]

    def cells(self, first: int, last: int) -> IntArray:
        """The number in the domain of the cell at each of some positions."""
        return np.ravel_multi_index(self.rows(first, last), self.domain.shape).astype(np.int64)

    def codes(self, rows: list[IntArray]) -> dict[str, IntArray]:
        """The categories of cells that are given by those of their families."""
        families = zip(self.domain.families, rows, strict=True)
        return {name: codes[row] for family, row in families for name, codes in family.codes.items()}

    def _before(self, group: IntArray) -> IntArray:
        return np.where(group > 0, self.ends[group - 1], 0)


def _pieces(sizes: IntArray, ends: IntArray, most: int) -> IntArray:
    """Where pieces end: a group is one, or as many of about the same size as it takes."""
    large = np.flatnonzero(sizes > most)
    if not len(large):
        return ends
    inner = []
    for group in large.tolist():
        size = int(sizes[group])
        count = -(-size // most)
        inner.append(int(ends[group]) - size + np.arange(1, count) * size // count)
    return np.union1d(ends, np.concatenate(inner))


def _starts(pieces: IntArray, most: int) -> IntArray:
    starts = [0]
    while starts[-1] < pieces[-1]:
        place = int(np.searchsorted(pieces, starts[-1] + most, side="right")) - 1
        starts.append(int(pieces[place]))
    return np.array(starts, dtype=np.int64)
