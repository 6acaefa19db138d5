"""What real tables need, against what is stated: every change of one person in a fibre that its totals do not rule out.

*Any value* holds for each change. A statement of the strong reading is compared with the strong distance, every other
one with the weak distance. *Some other value* is about a value that each cell has, whatever the counts: people for whom
the totals rule it out, and every value that is left is farther, are counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import numpy as np

import keepsum as ks
from experiments.fibres.nearest import L1, Counts, Measure, Nearest
from experiments.fibres.systems import Change, System
from keepsum.planning.distances import AttributeDistance
from keepsum.privacy.distance import Distance


@dataclass(frozen=True)
class Stated:
    """What is stated of one attribute: lengths in the measure and their readings; ``None`` where nothing is claimed."""

    any_value: int | None
    other_value: int | None = None
    strong: bool = False
    exact: bool = False
    known: bool = True  # if not, no figure is given, and none is compared
    unprotected: bool = False  # whether it says that some cells, whose counts the totals determine, are not covered
    rule: str = ""


Statement: TypeAlias = Mapping[str, Stated]
Stating: TypeAlias = Callable[[System, Measure], Statement]


def stated_by_plan(system: System, measure: Measure = L1, focus: tuple[str, ...] = ()) -> Statement:
    """What a plan states for these totals, by attribute."""
    weights = {name: weight for name, (weight, _) in zip(focus, measure.focus, strict=True)}
    mechanism = ks.Laplace.per_unit(epsilon=measure.weight, norm=measure.norm, focus=weights or None)
    return {
        each.axis: _stated(each, measure) for each in ks.plan(keep=system.invariants, mechanism=mechanism).attributes
    }


def _stated(attribute: AttributeDistance, measure: Measure) -> Stated:
    def length(distance: Distance | None) -> int | None:
        if distance is None:
            return None
        weights = (measure.weight, *(weight for weight, _ in measure.focus))
        return sum(w * n for w, n in zip(weights, (distance.length, *distance.focused), strict=True))

    distance = attribute.any_value
    return Stated(
        length(distance),
        length(attribute.other_value),
        strong=getattr(distance, "reading", "weak") == "strong",
        exact=distance is not None and distance.exact,
        known=not attribute.unknown,
        unprotected=bool(attribute.unprotected or attribute.stuck or attribute.fixed_values),
        rule=getattr(distance, "rule", ""),
    )


@dataclass
class Found:
    """What a number of fibres had.

    Attributes
    ----------
    fibres, compared, ruled_out, without_figure, unprotected
        The fibres; the changes that were compared; those that the kept totals rule out; those without a figure; those
        from or to cells whose counts the kept totals determine, where the statement says that there are such.
    attained
        How many of the compared changes have the stated distance.
    exact, exact_attained
        Attributes of systems with a figure that is stated as exact, and those where a fibre has it.
    largest
        How often each pair of a found and a stated distance was the largest of its fibre.
    beyond
        Changes farther than stated, each with its fibre.
    elsewhere
        People whose nearest possible value is farther than *some other value*, though *any value* holds.
    """

    fibres: int = 0
    compared: int = 0
    ruled_out: int = 0
    without_figure: int = 0
    unprotected: int = 0
    attained: int = 0
    solved: int = 0
    largest: Counter[tuple[int, int]] = field(default_factory=Counter)
    exact: set[tuple[System, str]] = field(default_factory=set)
    exact_attained: set[tuple[System, str]] = field(default_factory=set)
    beyond: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The largest distance over the stated one."""
        return max((found / stated for found, stated in self.largest), default=0.0)

    def compare(self, system: System, x: Counts, statement: Statement, measure: Measure = L1) -> None:
        """Add every change of somebody in one table."""
        nearest = Nearest(system, x, measure)
        before, largest = len(self.beyond), (0, 1)
        for i in np.flatnonzero(x):
            by_axis: dict[str, list[int]] = {}
            for change in system.changes(int(i)):
                stated = statement.get(change.axis)
                if stated is None or not change.targets or any(x[j] for j in change.targets):
                    continue  # nobody has that value, or somebody is there already, with whom they trade places
                if not stated.known:
                    self.without_figure += 1
                    continue
                if stated.unprotected and (change.i in system.pinned or system.pinned.issuperset(change.targets)):
                    self.unprotected += 1
                    continue
                distance = self._change(nearest, change, stated)
                if distance is not None:
                    by_axis.setdefault(change.axis, []).append(distance)
                    largest = max(largest, (distance, stated.any_value or 1), key=lambda pair: pair[0] / pair[1])
            for axis, distances in by_axis.items():
                self._nearest_value(nearest, int(i), axis, min(distances), statement[axis])
        self.fibres += 1
        self.solved += nearest.solved
        if largest[0] and len(self.beyond) >= before:
            self.largest[largest] += 1

    def _change(self, nearest: Nearest, change: Change, stated: Stated) -> int | None:
        weak = nearest.weak(change)
        if weak is None:
            self.ruled_out += 1
            return None
        distance = nearest.strong(change) if stated.strong else weak
        self.compared += 1
        key = (nearest.system, change.axis)
        if stated.exact:
            self.exact.add(key)
        if stated.any_value is None or distance is None or distance > stated.any_value:
            self.beyond.append(f"{described(nearest, change)}: {distance}, stated {stated.any_value} {stated.rule}")
        elif distance == stated.any_value:
            self.attained += 1
            if stated.exact:
                self.exact_attained.add(key)
        return weak if distance is None else distance

    def _nearest_value(self, nearest: Nearest, i: int, axis: str, distance: int, stated: Stated) -> None:
        if None not in (stated.other_value, stated.any_value) and stated.other_value < distance <= stated.any_value:
            person = nearest.system.cells[i]
            self.elsewhere.append(f"{person} {axis}: {distance}, stated {stated.other_value}; {table(nearest)}")


def described(nearest: Nearest, change: Change) -> str:
    """A change and its table, to be looked at again."""
    return f"{nearest.system.cells[change.i]} {change.axis} -> {change.value} in {table(nearest)}"


def table(nearest: Nearest) -> str:
    """A table with its system."""
    system = nearest.system
    people = [(system.cells[k], int(nearest.x[k])) for k in np.flatnonzero(nearest.x)]
    axes = {axis.name: (axis.parent, axis.lies_in) if axis.parent else axis.length for axis in system.axes}
    margins = [sorted(margin) for margin in system.margins]
    return f"{people} of {axes} less {sorted(system.zeros)}, kept {margins} {list(system.weighted)}"


def compare_all(
    drawn: Iterable[tuple[System, Counts]], stating: Stating = stated_by_plan, measure: Measure = L1
) -> Found:
    """Compare every fibre with what is stated for its system."""
    found, statement = Found(), lru_cache(maxsize=8)(lambda system: stating(system, measure))
    for system, x in drawn:
        found.compare(system, x, statement(system), measure)
    return found
