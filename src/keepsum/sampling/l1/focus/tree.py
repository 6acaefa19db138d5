"""Nested totals as sums of two parts each, all alike ones shared.

A forest of totals says which are kept, which have a weight of their own, and how many cells stand in each. The law of
the noise below a total depends on nothing but its *kind*: that of a cell, with its rate, or that of the sum of two
parts with their kinds, times exp(-weight |sum|). A total with many parts is a binary tree of sums without a weight: k
parts of one kind are 2^j of them and the rest, 2^j the largest power of two below k, so that totals of different sizes
share most of their kinds; parts of different kinds are halved, the smaller ones together.

A kept total has the sum 0. So what is below it is independent of all else, and it adds nothing to the totals above:
it is the root of a tree of its own. The sum of any other root is drawn first (``FREE``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from keepsum._arrays import IntArray

ABSENT = -1  # no part, no parent, no kind
ZERO = Fraction(0)


@dataclass(frozen=True)
class NestedTotals:
    """Nested totals and their cells.

    Attributes
    ----------
    parents
        The smallest total that contains each total, which comes before it; -1 if there is none.
    cells
        How many cells stand in each total and in no smaller one.
    weights
        The epsilon of each focused total, None for a kept one, 0 for one that is neither.
    epsilon
        That of every cell.

    Cells are numbered total by total.
    """

    parents: Sequence[int]
    cells: Sequence[int]
    weights: Sequence[Fraction | None]
    epsilon: Fraction

    def __post_init__(self) -> None:
        """Refuse what is no forest."""
        if not len(self.parents) == len(self.cells) == len(self.weights) or sum(self.cells) < 1:
            raise AssertionError("there must be a parent, a number of cells and a weight for each total, and a cell")
        if any(not ABSENT <= parent < node for node, parent in enumerate(self.parents)) or min(self.cells) < 0:
            raise AssertionError("parents must come before their children, and numbers of cells be 0 or more")
        if self.epsilon <= 0 or any(weight is not None and weight < 0 for weight in self.weights):
            raise AssertionError("epsilon must be positive, and no weight negative")


class SumKind(NamedTuple):
    """What the law of a sum depends on.

    A cell has no parts; its weight is its rate. A free root has one, ``left``, whose sum is drawn. Others have two.
    An ``end`` is not divided further: its sum is what is drawn.
    """

    left: int
    right: int
    weight: Fraction
    cells: int
    end: bool = False


class Root(NamedTuple):
    """A root: its kind, and its cells in the order in which they are drawn, the left part first."""

    kind: int
    order: IntArray


class SumPart(NamedTuple):
    """So many parts of one kind, and their cells in order."""

    kind: int
    copies: int
    order: IntArray


class SumKinds:
    """The kinds that nested totals have, parts before sums.

    Parameters
    ----------
    totals
        The totals.
    as_sums
        Draw the sum of the cells that stand in a total and in no smaller one, not the cells: in place of cells there is
        one sum for each total with cells of its own.

    Attributes
    ----------
    all
        The kinds.
    roots
        The roots.
    of_total, without_weight
        The kind of what is below each total, with its weight and without; -1 if there are no cells but those of kept
        totals.
    cell
        The kind of a cell.
    """

    def __init__(self, totals: NestedTotals, as_sums: bool = False) -> None:
        self.all: list[SumKind] = []
        self._as_sums = as_sums
        self._numbers: dict[SumKind, int] = {}
        self._multiples: dict[tuple[int, int], int] = {}
        self.roots: list[Root] = []
        self.of_total = [ABSENT] * len(totals.parents)
        self.without_weight = [ABSENT] * len(totals.parents)
        self.cell = self._number(SumKind(ABSENT, ABSENT, totals.epsilon, 1))
        self._gather(totals)

    def _gather(self, totals: NestedTotals) -> None:
        """Totals from the last to the first, so that all parts of one are there when its turn comes."""
        drawn = np.minimum(totals.cells, 1) if self._as_sums else np.asarray(totals.cells)
        starts = np.cumsum(drawn) - drawn
        parts: list[list[SumPart]] = [[] for _ in totals.parents]
        for node in reversed(range(len(totals.parents))):
            count, weight, parent = totals.cells[node], totals.weights[node], totals.parents[node]
            if count and self._as_sums:
                parts[node].append(SumPart(self._end(count), 1, starts[node] + np.arange(1)))
            elif count:
                parts[node].append(SumPart(self.cell, count, starts[node] + np.arange(count)))
            if not parts[node]:
                continue
            kind, order = self._sum(parts[node])
            parts[node] = []
            self.without_weight[node] = kind
            kind = self.of_total[node] = self._weighted(kind, weight or ZERO)
            if weight is None:
                self.roots.append(Root(kind, order))
            elif parent == ABSENT:
                self.roots.append(Root(self._number(SumKind(kind, ABSENT, ZERO, self.all[kind].cells)), order))
            else:
                parts[parent].append(SumPart(kind, 1, order))
        self.roots.reverse()

    def _sum(self, parts: list[SumPart]) -> tuple[int, IntArray]:
        """The kind of a sum of parts, and their cells in order."""
        ordered = sorted(parts, key=lambda part: (self.all[part.kind].cells, part.kind))
        counts: dict[int, int] = {}
        for part in ordered:
            counts[part.kind] = counts.get(part.kind, 0) + part.copies
        kinds = [self._multiple(kind, count) for kind, count in counts.items()]
        return self._joined(kinds), np.concatenate([part.order for part in ordered])

    def _multiple(self, kind: int, count: int) -> int:
        """The kind of the sum of so many parts of one kind."""
        if count == 1:
            return kind
        if (kind, count) not in self._multiples:
            half = 2 ** ((count - 1).bit_length() - 1)
            self._multiples[kind, count] = self._pair(self._multiple(kind, half), self._multiple(kind, count - half))
        return self._multiples[kind, count]

    def _end(self, count: int) -> int:
        """The kind of the sum of so many cells, which is not divided."""
        kind = self._multiple(self.cell, count)
        return kind if count == 1 else self._number(self.all[kind]._replace(end=True))

    def _joined(self, kinds: list[int]) -> int:
        """The kind of a sum of one of each."""
        if len(kinds) == 1:
            return kinds[0]
        half = len(kinds) // 2
        return self._pair(self._joined(kinds[:half]), self._joined(kinds[half:]))

    def _pair(self, left: int, right: int) -> int:
        return self._number(SumKind(left, right, ZERO, self.all[left].cells + self.all[right].cells))

    def _weighted(self, kind: int, weight: Fraction) -> int:
        """The kind with a further weight: of a cell, a higher rate."""
        return self._number(self.all[kind]._replace(weight=self.all[kind].weight + weight)) if weight else kind

    def _number(self, kind: SumKind) -> int:
        if kind not in self._numbers:
            self._numbers[kind] = len(self.all)
            self.all.append(kind)
        return self._numbers[kind]
