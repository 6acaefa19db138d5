"""What a change of one person does to focused totals, nested ones exactly and crossing ones at most."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from keepsum._arrays import BoolArray, IntArray, grouped, ranked, tallied
from keepsum.lattice.structure import FREE, Structure, counted
from keepsum.planning.crossing import CrossTable
from keepsum.planning.focus import FREE_PART, NOWHERE, OUTSIDE, FocusTotals, FocusTrees
from keepsum.planning.groups import BlockForm, BlockGroup
from keepsum.privacy.distance import Distance, Norm

# Classes of cells that count in the same focused totals, and the vectors through them.


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

    def by_part(self) -> list[IntArray]:
        """The classes of each part."""
        return grouped(self.part)


@dataclass(frozen=True)
class PresentClasses:
    """Classes with a value of the attribute: those that occur."""

    node: IntArray  # the class
    value: IntArray
    part: IntArray
    values: int

    @classmethod
    def of(cls, classes: Classes, of_cell: IntArray, value: IntArray, values: int) -> PresentClasses:
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

    def by_part(self) -> list[IntArray]:
        """The kinds of each part."""
        return grouped(self.part)

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


def by_class(node: IntArray, place: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Each class with the places of its values."""
    for members in grouped(node):
        yield int(node[members[0]]), place[members]


def best_other(numbers: IntArray, own: int) -> int | None:
    """The place of the largest number, but for one place; None if there is no other."""
    others = np.delete(numbers, own)
    if not len(others):
        return None
    best = int(others.argmax())
    return best + (best >= own)


# What a change of one person costs under a focus, where kept totals do not overlap.
#
# A change takes from a cell i and gives to a cell j. Of the vectors that keep every total and do so, those that
# change the fewest counts are considered, and of these the one with the largest loss: it may change focused totals
# more than others. Within a part (cells under no total, or a region with a kept sum) that is a move from i to j.
# Between parts it is a vector in each: a single count in a cell under no total, and in a region a move to or from any
# of its other cells. What they change in focused totals adds up, unless one total divides both parts: then it is an
# upper bound, and exact where some vectors attain it.
#
# Cells that count in the same focused totals of the same part form a *class*, which is all that costs depend on.
# Costs are compared as whole numbers, weights being brought to a common denominator.


MOST_WORK = 2 * 10**7  # pairs of classes that are compared
LARGEST_WEIGHT = 2**50  # so that a few of them add up in 64 bits
FEW_STARTS = 8
MOST_COMPARED = 5000  # pairs of vectors that are looked at for one that attains a bound
NO_CHANGE = -(2**62)


class FocusedChanges:
    """The costs of changes.

    Parameters
    ----------
    nested
        The focused totals.
    weights
        What cells and the totals of each level weigh.
    norm
        How distance is measured. Counts and totals change by 1 at most, so that squared l2 lengths are l1 lengths.
    """

    def __init__(self, nested: FocusTrees, weights: Sequence[Fraction], norm: Norm = "l1") -> None:
        self.nested, self._given, self.norm = nested, tuple(weights), norm
        common = math.lcm(*(weight.denominator for weight in weights))
        self.weights = [int(weight * common) for weight in weights]
        self.cells = np.flatnonzero(nested.part != NOWHERE)
        weight = nested.structure.weight
        self._weight = None if weight is None else weight[self.cells]
        self.classes = Classes.of(nested.part[self.cells], nested.labels[:, self.cells], self._weight)
        self._compared = 0

    @property
    def possible(self) -> bool:
        """Whether costs can be computed: in numbers of 64 bits, and with few classes in each part."""
        sizes = np.bincount(self.classes.part)
        return max(self.weights) < LARGEST_WEIGHT and int((sizes.astype(np.float64) ** 2).sum()) <= MOST_WORK

    @property
    def levels(self) -> int:
        """How many levels there are."""
        return len(self.nested.margins)

    def most(self, length: int) -> tuple[int, ...]:
        """The most that a change of this length does to the totals of each level: one part alone divides a total."""
        return (length,) * self.levels

    def most_through(self, length: int) -> tuple[int, ...]:
        """The most that the smallest change through a cell, of this length, does to them."""
        return self.most(length)

    def proportional_to(self, weights: Sequence[Fraction]) -> bool:
        """Whether other weights order changes alike, because they differ by a common factor."""
        return all(a * self._given[0] == b * weights[0] for a, b in zip(weights, self._given, strict=True))

    def groups(self) -> Iterator[BlockGroup]:
        """All trees as one group of blocks, and tables of one form as another."""
        nested, trees = self.nested, self.nested.home >= 0
        if trees.any():
            cells = nested.structure.number_of(np.flatnonzero(trees))
            yield BlockGroup(nested.form, 1, cells, cells - nested.roots, nested.roots, self._smallest(trees))
        alike: dict[tuple[object, ...], list[CrossTable]] = {}
        for table in nested.tables:
            alike.setdefault(table.form, []).append(table)
        for tables in alike.values():
            inside = np.zeros(len(trees), dtype=bool)
            inside[np.concatenate([table.cells for table in tables])] = True
            cells, kept = int(inside.sum()), len(tables) * tables[0].kept
            smallest = self._smallest(inside)
            yield BlockGroup(_form(tables[0]), len(tables), cells, cells - kept, kept, smallest, tables=tuple(tables))

    def _smallest(self, inside: BoolArray) -> Distance:
        """The smallest change through one of these cells, for the cell where it is dearest, or an upper bound."""
        if self.possible:
            focused = np.unique(self.classes.of_cell[inside[self.cells]])
            vectors = self._through
            return vectors.distance(int(focused[vectors.costs[focused].argmax()]))
        length = 1 if (self.nested.part[inside] == FREE_PART).all() else 2
        return Distance(self.norm, length, exact=False, focused=(length,) * self.levels)

    @cached_property
    def alone(self) -> Distance | None:
        """The dearest change of a single count, where cells are under no total; None where none are.

        A move within totals that are focused on costs less than that.
        """
        free = np.flatnonzero(self.classes.part == FREE_PART)
        if not len(free):
            return None
        if not self.possible:
            return Distance(self.norm, 1, exact=False, focused=(1,) * self.levels)
        return self._through.distance(int(free[self._through.costs[free].argmax()]))

    # -- vectors -----------------------------------------------------------------------------------------

    def _moves(self, one: int, others: IntArray) -> tuple[IntArray, IntArray]:
        """What moves from a class to others of its part cost, and the changes of focused totals, level by level."""
        labels = self.classes.labels
        mine, theirs = labels[:, [one]], labels[:, others]
        changed = np.where(mine == theirs, 0, (mine >= 0).astype(np.int64) + (theirs >= 0))
        return 2 * self.weights[0] + np.tensordot(self.weights[1:], changed, 1), changed

    @cached_property
    def _through(self) -> Vectors:
        """The dearest of the shortest vectors through a cell of each class, that stay within its part."""
        classes = self.classes
        focused = (classes.labels >= 0).astype(np.int64)
        lengths = np.where(classes.part == FREE_PART, 1, 2)
        for members in classes.by_part():
            if classes.part[members[0]] == FREE_PART:
                continue
            for one in members.tolist():
                others = members if classes.sizes[one] > 1 else members[members != one]
                costs, changed = self._moves(one, others)
                focused[:, one] = changed[:, int(costs.argmax())]
        costs = np.asarray(self.weights[0] * lengths + np.tensordot(self.weights[1:], focused, 1))
        return Vectors(lengths, focused, costs, self.norm)

    # -- changes of an attribute ---------------------------------------------------------------------------

    def of_attribute(self, codes: IntArray, group: IntArray | None = None) -> tuple[Distance, Distance] | None:
        """The changes to any value and to the nearest other value; None if there are too many pairs to compare.

        Where cells are taken together, ``codes`` are of the groups divided by the attribute, and ``group`` says of
        which group each of these is.
        """
        cells, of_cell = self._divided(group)
        values, value = ranked(codes[cells])
        kinds = PresentClasses.of(self.classes, of_cell, value, values)
        if kinds.work > MOST_WORK:
            return None
        dearest, nearest = Best(), Best()
        elsewhere = kinds.elsewhere(self._through)
        for members in kinds.by_part():
            for any_value, other_value in self._from_part(kinds, members, elsewhere):
                dearest.take(*any_value)
                nearest.take(*other_value)
        return dearest.distance, nearest.distance

    def _divided(self, group: IntArray | None) -> tuple[IntArray, IntArray]:
        """The cells that can change, and the class of each, where groups may have been divided."""
        if group is None:
            return self.cells, self.classes.of_cell
        place = np.full(len(self.nested.part), -1, dtype=np.int64)
        place[self.cells] = np.arange(len(self.cells))
        cells = np.flatnonzero(place[group] >= 0)
        return cells, self.classes.of_cell[place[group[cells]]]

    def _from_part(
        self, kinds: PresentClasses, members: IntArray, elsewhere: Elsewhere
    ) -> Iterator[tuple[tuple[int, Distance], tuple[int, Distance]]]:
        """For each kind in a part, the dearest change to any value, and that to the nearest other value."""
        values, place = np.unique(kinds.value[members], return_inverse=True)
        order = np.argsort(place, kind="stable")  # by value
        starts = np.searchsorted(place[order], np.arange(len(values) + 1))
        part = int(kinds.part[members[0]])
        outside, others = elsewhere.ends(part, values), elsewhere.classes(part, values)
        for one, own in by_class(kinds.node[members], place):
            costs, changed = self._moves(one, kinds.node[members[order]])
            of_value = np.maximum.reduceat(costs, starts[:-1])
            for value in own.tolist():
                ends = [best_other(-of_value, value), best_other(of_value, value)]
                found = []
                for end, vector, sign in zip(ends, outside, (-1, 1), strict=True):
                    inside = NO_CHANGE if end is None else sign * int(of_value[end])
                    beyond = NO_CHANGE if vector is None else sign * self._joint_cost(one, vector)
                    if end is not None and inside >= beyond:
                        best = int(starts[end]) + int(costs[starts[end] : starts[end + 1]].argmax())
                        exact = sign > 0 or vector is None or self._joined(one, vector, others).exact
                        found.append((sign * inside, replace(move(changed[:, best], self.norm), exact=exact)))
                    elif vector is not None:
                        found.append((sign * beyond, self._joined(one, vector, [vector] if sign > 0 else others)))
                if found:
                    other_value, any_value = found
                    yield any_value, other_value

    def _joint_cost(self, one: int, other: int) -> int:
        """The cost of two vectors in different parts; at most so much where a focused total divides both."""
        return int(self._through.costs[one] + self._through.costs[other])

    def _joined(self, one: int, other: int, others: Sequence[int]) -> Distance:
        """Two vectors in different parts, exact if each of some is one that does not undo what the first changes."""
        joined = self._through.joined(one, other)
        if not self.nested.spanning:
            return joined
        self._compared += len(others)
        exact = self._compared <= MOST_COMPARED and all(self._adds_up(one, each) for each in others)
        return replace(joined, exact=exact)

    def _adds_up(self, one: int, other: int) -> bool:
        """Whether some of the dearest vectors that take from one class and give to the other change no total twice.

        What they change adds up if no total loses by one and gains by the other.
        """
        taken, given = self._ends(one), self._ends(other)
        labels = self.classes.labels
        if self._same(labels[:, [one]], labels[:, [other]]).any():
            return False
        return not len(taken) or not len(given) or not self._same(labels[:, taken], labels[:, given]).all()

    def _ends(self, one: int) -> IntArray:
        """Where the dearest moves from a class to others of its part end; nothing under no total."""
        part = self.classes.part[one]
        if part == FREE_PART:
            return np.zeros(0, dtype=np.int64)
        members = np.flatnonzero(self.classes.part == part)
        others = members if self.classes.sizes[one] > 1 else members[members != one]
        costs, _ = self._moves(one, others)
        ends: IntArray = others[costs == costs.max()]
        return ends

    @staticmethod
    def _same(mine: IntArray, theirs: IntArray) -> BoolArray:
        """For each pair of classes, whether both count in one focused total of some level."""
        return np.asarray(((mine[:, :, None] == theirs[:, None]) & (mine[:, :, None] >= 0)).any(axis=0))

    def moves_change_all(self, codes: IntArray, group: IntArray | None = None) -> tuple[bool, bool]:
        """Whether moves from some cell change a total of each level where they start, and another where they end.

        Whether a move to some other value does, and whether moves to all other values do. Looked for from a few cells
        only: it may be so although none is found.
        """
        cells, of_cell = self._divided(group)
        return moves_change_all(self.classes.labels[:, of_cell], codes[cells], self.classes.part[of_cell])

    @property
    def changes_all_twice(self) -> bool:
        """Whether the dearest changes through cells of two regions change four totals of every level, all together."""
        if self.nested.spanning:
            return False
        in_regions = self.classes.part != FREE_PART
        return self.possible and bool((self._through.focused[:, in_regions] == 2).all())

    # -- changes within a total ----------------------------------------------------------------------------

    def within(self, level: int) -> Distance | None:
        """The dearest change between two cells of one total of a level; None if no total has two cells that can change.

        None as well if there are too many pairs to compare.
        """
        total, count = self.nested.margins[level].labels[self.cells], len(self.classes.part)
        inside = total != OUTSIDE
        weight = None if self._weight is None else self._weight[inside]
        pairs, sizes = tallied(total[inside] * count + self.classes.of_cell[inside], weight)
        node, total = pairs % count, pairs // count
        cuts = np.flatnonzero(np.diff(total)) + 1
        if int((np.diff([0, *cuts, len(node)]).astype(np.float64) ** 2).sum()) > MOST_WORK:
            return None
        best = Best()
        for nodes, times in zip(np.split(node, cuts), np.split(sizes, cuts), strict=True):
            self._within_total(nodes, times, level, best)
        return None if best.cost is None else best.distance

    def _within_total(self, nodes: IntArray, times: IntArray, level: int, best: Best) -> None:
        part, vectors = self.classes.part[nodes], self._through
        for place, one in enumerate(nodes.tolist()):
            near = part == part[place]
            near[place] = times[place] > 1
            others, far = nodes[near], nodes[part != part[place]]
            if len(others):
                costs, changed = self._moves(one, others)
                chosen = int(costs.argmax())
                best.take(int(costs[chosen]), move(changed[:, chosen], self.norm))
            if len(far):
                other = int(far[vectors.costs[far].argmax()])
                if self.nested.spanning:
                    change = self._within_spanning(one, other, level)
                    best.take(int(change.weighed([Fraction(weight) for weight in self.weights])), change)
                else:
                    best.take(self._joint_cost(one, other), vectors.joined(one, other))

    def _within_spanning(self, one: int, other: int, level: int) -> Distance:
        """An upper bound on two vectors in different parts, one from and one to a cell of the same total of a level.

        What that total loses it gains: of this level at most the totals at the other ends of both vectors change.
        """
        lengths = self._through.lengths[[one, other]]
        focused = [int(lengths.sum())] * self.levels
        if self.classes.labels[level, one] >= 0 and self.classes.labels[level, other] >= 0:
            focused[level] = int((lengths - 1).sum())
        return Distance(self.norm, int(lengths.sum()), exact=False, focused=tuple(focused))


def _form(table: CrossTable) -> BlockForm:
    sizes = table.entries[table.entries > 0]
    return BlockForm("crossed", len(sizes), table.totals, int(sizes.min()), int(sizes.max()), table.entries.shape)


def moves_change_all(labels: IntArray, value: IntArray, part: IntArray) -> tuple[bool, bool]:
    """Whether moves from some cell change all levels twice, from the totals, the value and the part of each cell."""
    inside = (labels >= 0).all(axis=0)
    starts, values, to_some, to_all = np.flatnonzero(inside), ranked(value)[0], False, False
    for one in starts[:: max(1, len(starts) // FEW_STARTS)].tolist():
        far = inside & (part == part[one]) & (value != value[one]) & (labels != labels[:, [one]]).all(axis=0)
        to_some |= bool(far.any())
        to_all |= bool(far.any()) and ranked(value[far])[0] == values - 1
    return to_some, to_all


# What a change of one person does to focused totals that cross others: upper bounds.
#
# In l1 Laplace noise, a change of l1 length n does at most n to the totals of a level together, which have no cell in
# common. In Gaussian noise, a change D takes p counts and gives q, p + q at most the square n of its l2 length, as
# entries are whole numbers. Over the totals g of a level the sum of D(g)^2 is at most p^2 + q^2: what is given and
# what is taken have different signs. Where the kept totals determine the grand total p = q, so that this is at most
# n^2 / 2; elsewhere p and q are at least 1, so that it is at most (n - 1)^2 + 1, or 1 for a single count. A level of
# one total changes by the larger of p and q alone. Under totals with negative weights the smallest change through a
# cell may only give, or only take: that is at most n^2.


class CrossingChanges:
    """Bounds on what changes do to focused totals.

    Parameters
    ----------
    margins
        The totals of each level.
    structure
        The regions and blocks of the kept totals.
    balanced
        Whether all changes that keep the totals take as much as they give.
    one_sided
        Whether some change of several cells may only give, or only take.
    weights
        What cells and the totals of each level weigh.
    norm
        How distance is measured.
    """

    possible = False  # exact costs are not computed
    changes_all_twice = False

    def __init__(
        self,
        margins: Sequence[FocusTotals],
        structure: Structure,
        balanced: bool,
        one_sided: bool,
        weights: Sequence[Fraction],
        norm: Norm,
    ) -> None:
        self._margins, self._structure, self._given = margins, structure, tuple(weights)
        self._balanced, self._one_sided = balanced, one_sided
        self.norm = norm

    @property
    def levels(self) -> int:
        """How many levels there are."""
        return len(self._margins)

    def proportional_to(self, weights: Sequence[Fraction]) -> bool:
        """Bounds are the same for all weights."""
        return len(weights) == len(self._given)

    def most(self, length: int) -> tuple[int, ...]:
        """The most that a change of this length, or squared l2 length, does to the totals of each level.

        In Gaussian noise, one that takes and gives.
        """
        if length == 1 or self.norm == "l1":
            return (length,) * self.levels
        larger, smaller = (length // 2, length // 2) if self._balanced else (length - 1, 1)
        return tuple(larger**2 + smaller**2 * (margin.height > 1) for margin in self._margins)

    def most_through(self, length: int) -> tuple[int, ...]:
        """The most that the smallest change through a cell, of this squared length, does to them."""
        return (length**2,) * self.levels if self._one_sided and self.norm == "l2" else self.most(length)

    @cached_property
    def alone(self) -> Distance | None:
        """The change of a single count, where cells are under no total; None where none are."""
        if not (self._structure.part == FREE).any():
            return None
        return Distance(self.norm, 1, exact=all(margin.covers for margin in self._margins), focused=(1,) * self.levels)

    def of_attribute(self, codes: IntArray, group: IntArray | None = None) -> None:
        """Only bounds are known."""

    def within(self, level: int) -> None:
        """Only bounds are known."""

    def moves_change_all(self, codes: IntArray, group: IntArray | None = None) -> tuple[bool, bool]:
        """As that of ``FocusedChanges``; cells are never taken together here."""
        part = self._structure.numbered_parts(with_blocks=False)[self._structure.region]
        cells = np.flatnonzero(part != NOWHERE)
        labels = np.stack([margin.labels[cells] for margin in self._margins])
        return moves_change_all(labels, codes[cells], part[cells])
