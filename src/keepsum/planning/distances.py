"""The distance of one person, by attribute: how far apart real tables are that differ in one attribute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from keepsum._arrays import BoolArray, IntArray
from keepsum._saying import arg
from keepsum.errors import InputError, PlanError
from keepsum.lattice.determined import determined
from keepsum.lattice.graver import longest_change
from keepsum.lattice.structure import FORCED, Structure, decompose
from keepsum.planning.focus_changes import CrossingChanges, FocusedChanges
from keepsum.planning.quotient import Quotient
from keepsum.privacy.distance import Distance, Neighbours, Norm, Rule, farthest
from keepsum.privacy.focus import Level
from keepsum.tables.axes import NestedCells
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants, Margin

# The distances of a change of one attribute, as data.


@dataclass(frozen=True)
class AttributeDistance:
    """The distances of a change of one attribute.

    Attributes
    ----------
    axis
        The attribute.
    any_value
        The distance that covers a change to any other value; None if no change of this attribute is covered.
    other_value
        The distance that covers a change to some other value, where the totals allow that one; None if none is covered.
    fixed_values
        How many of its values no change can reach, because the kept totals fix all their cells.
    unprotected
        How many cells cannot change to every value that is not fixed: for them *any value* does not hold.
    stuck
        How many cells cannot change to any other value at all: for them *some other value* does not hold either.
    unknown
        How many cells have a value at a distance that is not known: no guarantee is stated for those.
    """

    axis: str
    any_value: Distance | None
    other_value: Distance | None
    fixed_values: int = 0
    unprotected: int = 0
    stuck: int = 0
    unknown: int = 0

    def times(self, changes: int) -> AttributeDistance:
        """The same for a person of several records, each of which changes: bounded by the sum of their distances."""
        any_value = None if self.any_value is None else self.any_value.times(changes)
        other_value = None if self.other_value is None else self.other_value.times(changes)
        return replace(self, any_value=any_value, other_value=other_value)

    @property
    def whole(self) -> bool:
        """Whether every cell can change to every value, at a distance that is known."""
        return self.any_value is not None and not (self.fixed_values or self.unprotected or self.unknown)


# The distance of one person where only margins are kept and there are no structural zeros: 2(k + 1).
#
# A change of an attribute changes those nested in it, too, and those that it is nested in up to some *top*. Let T be
# the attributes that change (the top and all that is nested in it), and k the number of maximal kept margins that
# meet T, where a margin of counties is one of states as well. Then some list of people with the same kept totals, in
# which this person's new value holds, differs in at most k + 1 people:
#
# - k = 0: this person alone moves.
# - k = 1: this person and another exchange T; everybody keeps all other attributes.
# - k >= 2, under margins that are decomposable: people exchange what is on one side of an edge of the junction tree
#   until one of them agrees with the new cell in all margins that meet T, and exchanges T with this person.
#
# Definition and proofs are in docs/one-person.md.


Axes: TypeAlias = frozenset[str]


@dataclass(frozen=True)
class Change:
    """A change of one attribute: the topmost one that changes, all that change, and the kept margins that they meet."""

    top: str
    changed: Axes
    met: tuple[Axes, ...]

    @property
    def people(self) -> int:
        """How many people change at most, this one included."""
        return len(self.met) + 1

    @property
    def rule(self) -> Rule:
        """Why no more do."""
        return ("move", "exchange", "junction tree")[min(len(self.met), 2)]

    def length(self, norm: Norm) -> int:
        """The l1 length, or the square of the l2 length: where people leave differs, where they go may not."""
        k = len(self.met)
        return 2 * (k + 1) if norm == "l1" or k == 0 else (k - 1) ** 2 + k + 3


@dataclass(frozen=True, eq=False)
class KeptMargins:
    """The kept margins of a table, each with all that its axes are nested in.

    Attributes
    ----------
    domain
        The cells.
    margins
        The maximal ones, of axes with several categories.
    """

    domain: Domain
    margins: tuple[Axes, ...]

    @classmethod
    def of(cls, invariants: Invariants) -> KeptMargins | None:
        """The margins; None if other totals are kept, or cells have no names."""
        domain = invariants.domain
        if domain is None or not all(isinstance(part, Margin) for part in invariants.parts):
            return None
        parts = [part for part in invariants.parts if isinstance(part, Margin)]
        several = {name for name in domain.axes if len(domain.axis(name)) > 1}
        kept = {frozenset(domain.closure(part.axes)) & several for part in parts}
        maximal = [margin for margin in kept if margin and not any(margin < other for other in kept)]
        return cls(domain, tuple(sorted(maximal, key=sorted)))

    # -- changes ------------------------------------------------------------------------------------

    @cached_property
    def several(self) -> tuple[str, ...]:
        """The axes with several categories."""
        return tuple(name for name in self.domain.axes if len(self.domain.axis(name)) > 1)

    def change(self, top: str) -> Change:
        """A change of an attribute and all that is nested in it, but of nothing that it is nested in."""
        changed = frozenset(name for name in self.several if top in self.domain.closure([name]))
        return Change(top, changed, tuple(margin for margin in self.margins if margin & changed))

    def is_known(self, change: Change) -> bool:
        """Whether the rule applies: margins that overlap with those that are met must be decomposable."""
        return len(change.met) < 2 or is_decomposable(_connected(self.margins, change.met[0]))

    def tops(self, axis: str) -> list[tuple[Change, IntArray]]:
        """The changes of an axis from its own upwards, and for which of its categories there is such a change."""
        family = self._family(axis)
        found = []
        name: str | None = axis
        while name is not None:
            above = self.domain.within.get(name)
            parent = np.zeros(family.size, dtype=np.int64) if above is None else family.codes[above]
            pairs = np.unique(np.stack([parent, family.codes[name]]), axis=1)
            several = np.bincount(pairs[0]) > 1
            there = np.unique(family.codes[axis][several[parent]])
            if len(there):
                found.append((self.change(name), there))
            name = above
        return found

    def within(self, axes: Axes, norm: Norm, focus: Focused) -> Distance | None:
        """The dearest change between two cells of one total of a margin; None if there is none, or it is not known."""
        changes = [change for axis in self.several for change, _ in self.tops(axis) if not change.changed & axes]
        if not changes or not all(self.is_known(change) for change in changes):
            return None
        return farthest([self.distance(change, norm, focus) for change in changes], focus.weights)

    def _family(self, axis: str) -> NestedCells:
        return next(family for family in self.domain.families if axis in family.codes)

    # -- distances ----------------------------------------------------------------------------------

    def attribute(
        self, axis: str, norm: Norm, focus: Focused, among: IntArray | None = None
    ) -> AttributeDistance | None:
        """The distances of an axis with several categories; None if the rule does not apply to all its changes.

        ``among`` are the categories of cells that can change, by default all.
        """
        tops = self.tops(axis)
        if not tops or not all(self.is_known(change) for change, _ in tops):
            return None
        distances = [self.distance(change, norm, focus) for change, _ in tops]
        if any(self.domain.within.get(name) == axis for name in self.several):
            # Of the categories nested in the new value the nearest counts, and fewer people may do.
            distances = [replace(d, exact=d.exact and d.rule != "junction tree") for d in distances]
        # Fewer attributes change below, and they meet no more margins: the nearest value is the lowest change.
        nearest: dict[int, Distance] = {}
        for (_, there), distance in zip(tops, distances, strict=True):
            for category in (there if among is None else np.intersect1d(there, among)).tolist():
                nearest.setdefault(category, distance)
        other = farthest([*nearest.values()], focus.weights)
        if focus.axes and not self._ascend(distances, focus):
            other = replace(other, exact=False)
        return AttributeDistance(axis, farthest(distances, focus.weights), other)

    @staticmethod
    def _ascend(distances: Sequence[Distance], focus: Focused) -> bool:
        """Whether changes further up are known to cost no less: somebody else who moves may change no focused total."""
        losses = [distance.weighed(focus.weights) for distance in distances]
        return losses == sorted(losses) and all(distance.exact for distance in distances[1:])

    def distance(self, change: Change, norm: Norm, focus: Focused) -> Distance:
        """The distance of a change, with what it does to focused totals."""
        exact = self._is_attained(change, norm) and (not focus.axes or len(change.met) < 2)
        if len(change.met) == 1:
            exact &= all(self._attains(change, axes) for axes in focus.axes if axes & change.changed)
        focused = tuple(self._focused(change, axes, norm) for axes in focus.axes)
        return Distance(norm, change.length(norm), exact, focused, change.rule)

    def _focused(self, change: Change, axes: Axes, norm: Norm) -> int:
        """What a change does at most to the totals of a margin, or the sum of the squares.

        This person moves between two totals if some of its axes change, and so does the one with whom they exchange:
        between the same two if its other axes are kept with those that change, but for what no kept total tells apart.
        """
        if len(change.met) > 1:
            return 2 * change.people if norm == "l1" else 2 * change.people**2
        if not axes & change.changed or any(axes <= margin for margin in change.met):
            return 0
        if not change.met or axes - change.changed <= change.met[0]:
            return 2
        return 4

    # -- whether some tables need as much -------------------------------------------------------------

    def _is_attained(self, change: Change, norm: Norm) -> bool:
        """Whether some list of people needs that many to change.

        One who moves does. Two who exchange do if they can differ in something else that is not kept with it. Under
        decomposable margins all do if there is a margin that does not meet the change, which only this person agrees
        with: a person for each of the others agrees with the new cell on it alone. In l2 not all of them need pile up.
        """
        if not change.met:
            return True
        if len(change.met) == 1:
            return self._attains(change, frozenset(self.several))
        piled = norm == "l2" and len(change.met) > 2
        return len(change.met) < len(self.margins) and self._branches and not piled

    def _attains(self, change: Change, axes: Axes) -> bool:
        """Whether people that agree on the margin that is met, but for what changes, can differ in other such axes."""
        for family in self.domain.families:
            own = change.top in family.codes
            others = [name for name in family.codes if name in axes and name not in change.met[0] | change.changed]
            if own or not others:
                continue
            kept, together = family.project(change.met[0])[0], family.project(change.met[0] | {*others})[0]
            if together > kept:
                return True
        return False

    @cached_property
    def _branches(self) -> bool:
        """Whether every category of an axis has several of each axis within it."""
        for family in self.domain.families:
            for name in family.codes:
                above = self.domain.within.get(name)
                if above is not None and name in self.several and above in self.several:
                    pairs = np.unique(np.stack([family.codes[above], family.codes[name]]), axis=1)
                    if np.bincount(pairs[0]).min() < 2:
                        return False
        return True


@dataclass(frozen=True)
class Focused:
    """The margins that a focus is on, and what cells and each of them weigh."""

    axes: tuple[Axes, ...] = ()
    weights: tuple[Fraction, ...] = ()

    @classmethod
    def of(cls, levels: Sequence[Level], weights: Sequence[Fraction], domain: Domain) -> Focused | None:
        """The margins; None if a focus is on subsets of cells."""
        if any(level.subsets is not None for level in levels):
            return None
        several = {name for name in domain.axes if len(domain.axis(name)) > 1}
        return cls(tuple(frozenset(domain.closure(level.axes)) & several for level in levels), tuple(weights))


def is_decomposable(margins: Iterable[Axes]) -> bool:
    """Whether margins have a junction tree: those that overlap with one other alone can be taken off one by one.

    >>> is_decomposable([frozenset("ab"), frozenset("bc"), frozenset("cd")])
    True
    >>> is_decomposable([frozenset("ab"), frozenset("bc"), frozenset("ac")])
    False
    """
    left = list(margins)
    while len(left) > 1:
        ear = next((margin for margin in left if _is_ear(margin, left)), None)
        if ear is None:
            return False
        left.remove(ear)
    return True


def _is_ear(margin: Axes, margins: Sequence[Axes]) -> bool:
    """Whether what a margin shares with all others it shares with one of them."""
    others = [other for other in margins if other is not margin]
    shared = margin & frozenset().union(*others)
    return any(shared <= other for other in others)


def _connected(margins: Sequence[Axes], first: Axes) -> list[Axes]:
    """The margins that overlap with one, or with those that do."""
    reached, found = set(first), [first]
    left = [margin for margin in margins if margin != first]
    while near := [margin for margin in left if margin & reached]:
        found += near
        reached |= frozenset().union(*near)
        left = [margin for margin in left if margin not in near]
    return found


# The distance of one person in real tables under any kept totals: an upper bound, block by block.
#
# Somebody leaves a cell i for the cell j that differs from i in the changed attribute alone. If some real table with
# the same kept totals has somebody in j, the nearest is no farther than the longest element of the Graver basis with
# a positive entry in j: the difference of two tables is a sum of such elements that have no opposite signs, and any
# one of them alone leads to a real table. Elements are within one block, and cells in the same totals count as one.
# So what a change costs at most is
#
# - 2 where no kept total tells i and j apart: this person moves;
# - the bound of the block if both are in one (``lattice/graver.py``); and
# - what each of two parts needs, together, if they are not: 2 for a region with a kept sum.
#
# The number of people stays the same. Where only margins are kept the figure is at least 2(k + 1), as without
# structural zeros: that others may take this person's place does not protect somebody whose other attributes are
# known. What is computed here is in the weak reading: everybody else may differ in any way. See docs/one-person.md.


PINNED = -1


class Bound(NamedTuple):
    """The most that a change needs: an l1 length and the square of an l2 length, whether it is attained, and why."""

    length: int
    squared: int
    exact: bool
    rule: Rule

    def at_least(self, change: Change | None) -> Bound:
        """Or the figure without structural zeros if that is larger; somebody who only moves needs no more."""
        if change is None or self.rule == "move":
            return self
        length, squared = max(self.length, change.length("l1")), max(self.squared, change.length("l2"))
        return self._replace(length=length, squared=squared, exact=self.exact and length == self.length)

    def distance(self, norm: Norm, single: Sequence[bool] = ()) -> Distance:
        """As a distance. As many people leave as come: that bounds what changes in focused totals.

        One that is the *single* one of its focus changes by no more than leave or come. In l2 the nearest table may be
        another one than in l1, but no more people leave than half the square of its distance.
        """
        people = (self.length if norm == "l1" else self.squared) // 2
        most = (people, 2 * people) if norm == "l1" else (people**2, 2 * people**2)
        focused = tuple(most[not alone] for alone in single)
        exact = self.exact and not focused
        return Distance(norm, self.length if norm == "l1" else self.squared, exact, focused, self.rule)


MOVE = Bound(2, 2, True, "move")
SUM = Bound(2, 2, False, "sums")
UNKNOWN = Bound(0, 0, False, "graver")


class CellLines(NamedTuple):
    """Cells along lines: those of a line differ in the attributes that change alone.

    Each has a line and a value of the attribute, the *region* of cells in the same totals, and the *part*: the sum or
    block that this is in. It stands for ``weight`` cells.
    """

    line: IntArray
    value: IntArray
    region: IntArray
    part: IntArray
    weight: IntArray

    def those(self, chosen: BoolArray) -> CellLines:
        """Some of the cells."""
        return CellLines(*(column[chosen] for column in self))


class RealTables:
    """Distances in real tables under any kept totals.

    Parameters
    ----------
    invariants, structure
        The kept totals over all cells, and their regions and blocks, of groups where cells are taken together.
    quotient
        The groups, if they are.
    symmetric
        Whether only margins are kept and there are no structural zeros: what some cell of a block needs, those of
        every line do.
    """

    def __init__(
        self, invariants: Invariants, structure: Structure, quotient: Quotient | None, symmetric: bool
    ) -> None:
        if invariants.domain is None:
            raise AssertionError("cells have names")
        self._domain, self._quotient, self._symmetric = invariants.domain, quotient, symmetric
        self._structure = structure if quotient is not None else with_people(invariants, structure)
        self._number = _numbers(self._structure)

    def attribute(
        self,
        axis: str,
        norm: Norm,
        single: Sequence[bool] = (),
        nearest: Change | None = None,
        farthest: Change | None = None,
    ) -> AttributeDistance:
        """The distances of an axis; ``nearest`` and ``farthest`` are its changes as if there were no zeros.

        ``single`` says of each focus whether it is on one total.
        """
        gaps, moving = self._gaps(axis)
        if not len(moving.line):
            return gaps
        several = _different(moving.line, moving.region) > 1
        lost = several & _any(moving.line, self._lengths[moving.part] == UNKNOWN.length)
        if lost.any():
            return replace(gaps, unknown=int(moving.weight[lost].sum()))
        to_any = self._to_any(moving.those(several)).at_least(farthest)
        if _branches(self._view(axis), axis):
            # Cells of a line may differ in more than such a change: which value is the nearest is not looked for.
            to_other = to_any._replace(exact=to_any.exact and to_any.rule == "move")
        else:
            to_other = self._to_other(moving).at_least(nearest)
        return replace(gaps, any_value=to_any.distance(norm, single), other_value=to_other.distance(norm, single))

    def gaps(self, axis: str) -> tuple[AttributeDistance, IntArray]:
        """What is not protected of an axis, without distances, and the values of cells that can change."""
        gaps, moving = self._gaps(axis)
        return gaps, np.unique(moving.value)

    def _gaps(self, axis: str) -> tuple[AttributeDistance, CellLines]:
        """What is not protected of an axis, and the cells that can change to another value."""
        lines, view = self._lines(axis), self._view(axis)
        can_change = lines.part != PINNED
        there = lines.those(can_change)
        reached = len(np.unique(there.value))
        branches = _branches(view, axis)
        values = _values(view, axis, can_change) if branches else _different(there.line, there.value)
        gaps = AttributeDistance(
            axis,
            None,
            None,
            fixed_values=len(self._domain.axis(axis)) - reached,
            unprotected=int(there.weight[values < reached].sum()),
            stuck=int(there.weight[values == 1].sum()),
        )
        return gaps, there.those(values > 1)

    def _lines(self, axis: str) -> CellLines:
        """The cells of the table, or its groups divided by an axis, along the family of that axis."""
        structure, quotient = self._structure, self._quotient
        view = self._view(axis)
        if quotient is None:
            region = structure.region
            weight = np.ones(len(region), dtype=np.int64)
        else:
            group, weight, _ = quotient.refined(axis)
            region = structure.region[group]
        others = [name for family in view.families if axis not in family.codes for name in family.codes]
        line = view.marginal_index(others) if others else np.zeros(len(region), dtype=np.int64)
        return CellLines(line, view.codes(axis), region, self._number[region], weight)

    def _view(self, axis: str) -> Domain:
        """The cells, or the groups divided by an axis."""
        return self._domain if self._quotient is None else self._domain.project([*self._quotient.axes, axis])

    @property
    def rules(self) -> frozenset[Rule]:
        """The rules by which the bounds of parts are known."""
        return frozenset(bound.rule for bound in self._bounds if bound.length != UNKNOWN.length)

    # -- the most over all cells and values -----------------------------------------------------------

    @cached_property
    def _bounds(self) -> list[Bound]:
        """The bound of each part."""
        known: dict[int, Bound] = {}
        for block in self._structure.blocks:
            if id(block.system) not in known:
                found = longest_change(block.system)
                known[id(block.system)] = (
                    UNKNOWN if found is None else Bound(found.length, found.squared, found.exact, found.rule)
                )
        sums = int(self._number.max(initial=-1)) + 1 - len(self._structure.blocks)
        return [SUM] * sums + [known[id(block.system)] for block in self._structure.blocks]

    @cached_property
    def _lengths(self) -> IntArray:
        return np.array([bound.length for bound in self._bounds], dtype=np.int64)

    @cached_property
    def _squares(self) -> IntArray:
        return np.array([bound.squared for bound in self._bounds], dtype=np.int64)

    def _to_any(self, lines: CellLines) -> Bound:
        """The most over cells in lines of several regions: a block's own bound, or those of two parts together."""
        if not len(lines.line):
            return MOVE
        inside = _different(lines.line, lines.part) == 1
        blocks = [self._bounds[part] for part in np.unique(lines.part[inside]).tolist()]
        most = _most(blocks) if blocks else MOVE
        if inside.all():
            return self._labelled(most)
        across = lines.those(~inside)
        length, squared = (_two_largest(across, of_part[across.part]) for of_part in (self._lengths, self._squares))
        dearest = self._bounds[int(across.part[self._lengths[across.part].argmax()])]
        return Bound(max(length, most.length), max(squared, most.squared), False, dearest.rule)

    def _to_other(self, lines: CellLines) -> Bound:
        """The most over cells, of what the nearest other value needs at most."""
        regions = len(self._structure.sizes)
        moves = _different(lines.line * regions + lines.region, lines.value) > 1
        if moves.all():
            return MOVE
        alone = ~moves & (_different(lines.line * len(self._bounds) + lines.part, lines.value) == 1)
        if alone.any():
            return self._to_any(lines.those(_any(lines.line, ~moves)))
        most = _most([self._bounds[part] for part in np.unique(lines.part[~moves]).tolist()])
        return self._labelled(most)

    def _labelled(self, bound: Bound) -> Bound:
        """A bound of one block; that every attribute attains it is known of full tables alone."""
        return bound._replace(exact=bound.exact and self._symmetric and bound.rule == "table")


def with_people(invariants: Invariants, structure: Structure) -> Structure:
    """The structure of the kept totals with the number of people, which they need not determine."""
    everybody = sparse.csr_array(np.ones((1, invariants.size), dtype=np.int64))
    if determined(structure, everybody).all():
        return structure
    return decompose(sparse.csr_array(sparse.vstack([invariants.coefficients, everybody])))


def _numbers(structure: Structure) -> IntArray:
    """For each region the number of its part: sums first, then blocks."""
    sums = np.flatnonzero((structure.part == FORCED) & (structure.sizes > 1))
    number = np.full(len(structure.sizes), PINNED, dtype=np.int64)
    number[sums] = np.arange(len(sums))
    blocks = structure.part >= 0
    number[blocks] = len(sums) + structure.part[blocks]
    return number


def _branches(view: Domain, axis: str) -> bool:
    """Whether an axis shares what it is nested in with another: cells of its line may differ in that one as well."""
    family = next(family for family in view.families if axis in family.codes)
    above = view.closure([axis])
    return any(
        name not in above and axis not in view.closure([name]) for name in family.codes if len(view.axis(name)) > 1
    )


def _values(view: Domain, axis: str, chosen: BoolArray) -> IntArray:
    """How many values of an axis each chosen cell has or can change to, among the chosen cells.

    A change has a topmost axis: cells that agree in all but it and what is nested in it, and differ in it.
    """
    value = view.codes(axis)[chosen]
    values = np.ones(len(value), dtype=np.int64)
    top: str | None = axis
    while top is not None:
        others = [name for name in view.axes if top not in view.closure([name])]
        line = view.marginal_index(others)[chosen] if others else np.zeros(len(value), dtype=np.int64)
        alike = line * len(view.axis(top)) + view.codes(top)[chosen]
        values += _different(line, value) - _different(alike, value)
        top = view.within.get(top)
    return values


def _most(bounds: list[Bound]) -> Bound:
    """The longest bound, with the largest square of any."""
    return max(bounds)._replace(squared=max(bound.squared for bound in bounds))


def _different(group: IntArray, key: IntArray) -> IntArray:
    """For each entry how many different keys its group has.

    >>> _different(np.array([0, 0, 0, 1]), np.array([5, 5, 7, 5])).tolist()
    [2, 2, 2, 1]
    """
    _, group = np.unique(group, return_inverse=True)
    width = int(key.max(initial=0)) + 1
    pairs = np.unique(group * width + key)
    return np.asarray(np.bincount(pairs // width)[group])


def _any(group: IntArray, true: BoolArray) -> BoolArray:
    """For each entry whether any of its group is true."""
    _, group = np.unique(group, return_inverse=True)
    return np.asarray(np.bincount(group, weights=true)[group] > 0)


def _two_largest(lines: CellLines, lengths: IntArray) -> int:
    """The largest sum of the lengths of two different parts of one line."""
    _, first = np.unique(np.stack([lines.line, lines.part]), axis=1, return_index=True)
    order = first[np.lexsort((-lengths[first], lines.line[first]))]
    line, length = lines.line[order], lengths[order]
    start = np.flatnonzero(np.diff(line, prepend=-1))
    return int((length[start] + length[start + 1]).max())


# The distance of one person, by attribute: how far apart real tables are that differ in one person's value.
#
# For an axis t, a cell i and a value v other than that of i, j is the cell that differs from i in t alone (what is
# nested in t follows, and so does what t is nested in). The distance is that of the nearest *real* table, without
# negative counts, with the same kept totals and the same number of people, in which somebody is in j. *Any value* is
# the largest over tables, i and v; *some other value* is the largest, over i, of the smallest over v. Where the
# totals rule a change out nothing is claimed. Docs/one-person.md has the definition, in two readings, and the proofs.


AnyChanges: TypeAlias = FocusedChanges | CrossingChanges


@dataclass(frozen=True, eq=False)
class Distances:
    """The distances between real tables that differ by a change of one person, computed at first use.

    A person of several records changes by ``changes`` records at most. When one has changed, it is set aside, and
    another changes in the rest: their distances together are enough.

    Attributes
    ----------
    invariants, structure
        The kept totals, and their regions and blocks.
    norm
        How distance is measured.
    changes
        How many records of one person change at most.
    levels, weights
        The totals of a focus, and what cells and those of each level weigh.
    focused
        What changes do to focused totals, by vectors of the lattice.
    quotient
        The groups that cells are taken together in, if they are.
    """

    invariants: Invariants
    structure: Structure
    norm: Norm
    changes: int = 1
    focused: AnyChanges | None = None
    quotient: Quotient | None = None
    levels: tuple[Level, ...] = ()
    weights: tuple[Fraction, ...] = ()

    @cached_property
    def by_attribute(self) -> tuple[AttributeDistance, ...]:
        """The distances of each attribute with several categories; none for cells without names."""
        domain = self.invariants.domain
        if domain is None:
            return ()
        axes = [name for name in domain.axes if len(domain.axis(name)) > 1]
        return tuple(self._attribute(name).times(self.changes) for name in axes)

    @cached_property
    def alone(self) -> Distance | None:
        """Under a focus, the dearest change of a single count under no total, which may cost more than a move."""
        found = None if self.focused is None else self.focused.alone
        return None if found is None else found.times(self.changes)

    @cached_property
    def within_levels(self) -> tuple[Distance | None, ...]:
        """For each focus, the dearest change between two cells of one of its totals; None where that is not known."""
        focus, margins = self._focus, self._margins
        if focus is None or margins is None or self._has_zeros:
            return tuple(None for _ in self.levels)
        found = (margins.within(axes, self.norm, focus) for axes in focus.axes)
        return tuple(None if distance is None else distance.times(self.changes) for distance in found)

    @cached_property
    def person(self) -> Distance | None:
        """The distance of one person: the largest over all attributes; under a focus, that of the largest loss.

        None where none can be stated: cells have no names, no attribute can change, or some distance is not known.
        """
        if any(attribute.unknown for attribute in self.by_attribute):
            return None
        found = covered(self.by_attribute, Neighbours(), self.alone)
        return farthest(found, self.weights) if found else None

    def of_neighbours(self, neighbours: Neighbours) -> Distance:
        """The distance of the changes that a requested loss covers.

        Raises
        ------
        InputError
            If they name an attribute that the table does not have.
        PlanError
            If no loss can be stated for them.
        """
        found = covered(protected(self.by_attribute, neighbours), neighbours, self.alone)
        if not found:
            raise PlanError(
                "A loss for one person needs named attributes with several categories that can change, and this table "
                f"has none. Ask for a loss per unit of distance, {arg.per_unit:with}."
            )
        return farthest(found, self.weights)

    @property
    def rules(self) -> frozenset[Rule]:
        """The rules by which something is known of a part of the totals."""
        return self._real.rules

    # -- the rules ------------------------------------------------------------------------------------

    def _attribute(self, axis: str) -> AttributeDistance:
        margins, focus = self._margins, self._focus
        if margins is not None and focus is not None and not self._has_zeros:
            if not len(self.structure.pinned):
                found = margins.attribute(axis, self.norm, focus)
            else:
                gaps, changing = self._real.gaps(axis)
                if not len(changing):
                    return gaps
                found = margins.attribute(axis, self.norm, focus, changing)
                if found is not None:
                    found = replace(gaps, any_value=found.any_value, other_value=found.other_value)
            if found is not None:
                return found
        changes = [change for change, _ in margins.tops(axis)] if margins is not None else []
        nearest, dearest = (changes[0], changes[-1]) if changes else (None, None)
        single = [level.subsets is not None and len(level.subsets.names) == 1 for level in self.levels]
        return self._real.attribute(axis, self.norm, single, nearest, dearest)

    @cached_property
    def _margins(self) -> KeptMargins | None:
        return KeptMargins.of(self.invariants)

    @cached_property
    def _focus(self) -> Focused | None:
        domain = self.invariants.domain
        return None if domain is None else Focused.of(self.levels, self.weights, domain)

    @cached_property
    def _real(self) -> RealTables:
        symmetric = self._margins is not None and not self._has_zeros
        return RealTables(self.invariants, self.structure, self.quotient, symmetric)

    @property
    def _has_zeros(self) -> bool:
        return self.invariants.domain is not None and bool(self.invariants.domain.structural_zeros)


def covered(attributes: Sequence[AttributeDistance], neighbours: Neighbours, alone: Distance | None) -> list[Distance]:
    """The distances of changes that a loss covers; with one person more or fewer if it covers every change."""
    to_any = neighbours.to == "any value"
    found = [attribute.any_value if to_any else attribute.other_value for attribute in attributes]
    distances = [distance for distance in found if distance is not None]
    if distances and alone is not None and neighbours == Neighbours():
        distances.append(alone)
    return distances


def protected(attributes: Sequence[AttributeDistance], neighbours: Neighbours) -> Sequence[AttributeDistance]:
    """The attributes of these neighbours, each with distances that are known."""
    if neighbours.attributes is not None:
        named = {attribute.axis: attribute for attribute in attributes}
        for name in neighbours.attributes:
            if name not in named:
                raise InputError(
                    f"Attributes must be axes with more than one category, got {name!r}. Check the spelling."
                )
        attributes = [named[name] for name in neighbours.attributes]
        for attribute in attributes:
            if attribute.any_value is None and not attribute.unknown:
                raise PlanError(
                    f"No change of {attribute.axis} keeps every total, so it cannot be protected. Keep fewer totals."
                )
    for attribute in attributes:
        if attribute.unknown:
            raise PlanError(
                f"The loss for a change of {attribute.axis} is not known for these totals. Ask for a loss per unit of "
                f"distance, {arg.per_unit:with}, or keep fewer totals, such as one margin less."
            )
    return attributes
