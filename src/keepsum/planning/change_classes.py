"""Classes of cells that count in the same focused totals, and the vectors through them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from keepsum._arrays import BoolArray, IntArray
from keepsum.lattice.structure import counted
from keepsum.planning.nested import FREE_PART
from keepsum.privacy.distance import Distance, Norm

PAIRS_PER_PART = 2000  # that take as long as what is done once for each part
NOTHING = -1


@dataclass(frozen=True)
class Classes:
    """Classes of cells: the part and the focused totals of each, how many cells it has, and the class of each cell."""

    part: IntArray
    labels: IntArray
    sizes: IntArray
    of_cell: IntArray

    @classmethod
    def of(cls, part: IntArray, labels: IntArray, weight: IntArray | None = None) -> Classes:
        """The classes of cells, by the part and the focused totals of each; ``weight`` says how many it stands for."""
        key = part
        for label in labels:
            _, key = np.unique(key * (int(label.max(initial=0)) + 2) + label + 1, return_inverse=True)
        _, first, of_cell = np.unique(key, return_index=True, return_inverse=True)
        return cls(part[first], labels[:, first], counted(of_cell, weight), of_cell)

    def by_part(self) -> Iterator[IntArray]:
        """The classes of each part."""
        return _grouped(self.part)


@dataclass(frozen=True)
class Kinds:
    """Classes with a value of the attribute: those that occur."""

    node: IntArray  # the class
    value: IntArray
    part: IntArray
    values: int

    @classmethod
    def of(cls, classes: Classes, of_cell: IntArray, value: IntArray, values: int) -> Kinds:
        """The kinds that occur, from the class and the value of each cell."""
        pairs = np.unique(of_cell * values + value)
        node = pairs // values
        return cls(node, pairs % values, classes.part[node], values)

    @property
    def work(self) -> float:
        """How many pairs are compared."""
        kinds = np.bincount(self.part).astype(np.float64)
        classes = np.bincount(self.part[np.flatnonzero(np.diff(self.node, prepend=-1))], minlength=len(kinds))
        return float((kinds * classes).sum()) + float((kinds > 0).sum()) * (self.values + PAIRS_PER_PART)

    def by_part(self) -> Iterator[IntArray]:
        """The kinds of each part."""
        return _grouped(self.part)

    def elsewhere(self, vectors: Vectors) -> Elsewhere:
        """For each value the class to give to from another part: under no total if there is one, the dearest."""
        free, forced = np.full((2, self.values), NOTHING)
        order = np.argsort(vectors.costs[self.node], kind="stable")
        is_free = self.part[order] == FREE_PART
        free[self.value[order[is_free]]] = self.node[order[is_free]]
        forced[self.value[order[~is_free]]] = self.node[order[~is_free]]
        return Elsewhere(free, forced, vectors)


@dataclass(frozen=True)
class Elsewhere:
    """The class to give to for each value, under no total and in regions; -1 if there is none."""

    free: IntArray
    forced: IntArray
    vectors: Vectors

    def ends(self, part: int, inside: IntArray) -> tuple[int | None, int | None]:
        """The cheapest and the dearest class for a value that does not occur in a part."""
        nodes = np.array(self.classes(part, inside), dtype=np.int64)
        if not len(nodes):
            return None, None
        costs = self.vectors.costs[nodes]
        return int(nodes[costs.argmin()]), int(nodes[costs.argmax()])

    def classes(self, part: int, inside: IntArray) -> list[int]:
        """The class for each value that does not occur in a part."""
        chosen = self.forced if part == FREE_PART else np.where(self.free >= 0, self.free, self.forced)
        there: BoolArray = chosen >= 0
        there[inside] = False
        classes: list[int] = chosen[there].tolist()
        return classes


@dataclass(frozen=True)
class Vectors:
    """Vectors, one for each class: their lengths, what they change in the totals of each level, and their costs."""

    lengths: IntArray
    focused: IntArray
    costs: IntArray
    norm: Norm = "l1"

    def distance(self, one: int) -> Distance:
        """One of them."""
        return Distance(self.norm, int(self.lengths[one]), focused=tuple(self.focused[:, one].tolist()))

    def joined(self, one: int, other: int) -> Distance:
        """Two of them, in different parts."""
        focused = (self.focused[:, one] + self.focused[:, other]).tolist()
        return Distance(self.norm, int(self.lengths[one] + self.lengths[other]), focused=tuple(focused))


class Best:
    """The dearest change so far."""

    def __init__(self) -> None:
        self.cost: int | None = None
        self._change: Distance | None = None

    def take(self, cost: int, change: Distance) -> None:
        """Take a change in."""
        if self._change is None or self.cost is None or (cost, change.exact) > (self.cost, self._change.exact):
            self.cost, self._change = cost, change

    @property
    def distance(self) -> Distance:
        """The change."""
        if self._change is None:
            raise AssertionError("some change is possible")
        return self._change


def move(changed: IntArray, norm: Norm = "l1") -> Distance:
    """A move within a part that changes focused totals so."""
    return Distance(norm, 2, focused=tuple(changed.tolist()))


def _grouped(part: IntArray) -> Iterator[IntArray]:
    """The places of each number."""
    order = np.argsort(part, kind="stable")
    cuts = [0, *(np.flatnonzero(np.diff(part[order])) + 1).tolist(), len(order)]
    return (order[start:end] for start, end in pairwise(cuts))


def by_class(node: IntArray, place: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Each class with the places of its values."""
    for members in _grouped(node):
        yield int(node[members[0]]), place[members]


def best_other(numbers: IntArray, own: int) -> int | None:
    """The place of the largest number, but for one place; None if there is no other."""
    others = np.delete(numbers, own)
    if not len(others):
        return None
    best = int(others.argmax())
    return best + (best >= own)
