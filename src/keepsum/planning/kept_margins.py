"""The distance of one person where only margins are kept and there are no structural zeros: 2(k + 1).

A change of an attribute changes those nested in it, too, and those that it is nested in up to some *top*. Let T be the
attributes that change (the top and all that is nested in it), and k the number of maximal kept margins that meet T,
where a margin of counties is one of states as well. Then some list of people with the same kept totals, in which this
person's new value holds, differs in at most k + 1 people:

- k = 0: this person alone moves.
- k = 1: this person and another exchange T; everybody keeps all other attributes.
- k >= 2, under margins that are decomposable: people exchange what is on one side of an edge of the junction tree until
  one of them agrees with the new cell in all margins that meet T, and exchanges T with this person.

Definition and proofs are in docs/one-person.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np

from keepsum._arrays import IntArray
from keepsum.planning.attribute_distance import AttributeDistance
from keepsum.privacy.distance import Distance, Norm, Rule, farthest
from keepsum.privacy.focus import Level
from keepsum.tables.axes import Family
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants, Margin

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

    def _family(self, axis: str) -> Family:
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
