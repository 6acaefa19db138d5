"""The margins of error of the totals of each focus, and of cells beside them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from keepsum.accuracy.levels import accuracy_by_level
from keepsum.accuracy.margins import Accuracy
from keepsum.planning.plan import CompiledPlan
from keepsum.privacy.numbers import shown


@dataclass(frozen=True)
class LevelFact:
    """A level: what it is, how many totals or cells it has, its epsilon, and their margins of error."""

    name: str
    number: int
    epsilon: str
    typical: int
    smallest: int
    largest: int
    source: str  # how the margins are known, in words; empty if they were computed


def level_facts(plan: CompiledPlan, level: float) -> tuple[LevelFact, ...]:
    """A row for each focus, and one for cells; none without a focus."""
    focus = plan.mechanism.focus
    if not focus:
        return ()
    found = accuracy_by_level(plan.blocks, level)
    levels = [_fact(own.totals, own.weight, row.accuracy) for own, row in zip(focus, found.levels, strict=True)]
    return (*levels, _fact("cells", 1 / plan.mechanism.scale, found))


def _fact(name: str, epsilon: Fraction, accuracy: Accuracy) -> LevelFact:
    margins = accuracy.margins
    return LevelFact(
        name,
        len(margins),
        shown(epsilon),
        accuracy.typical,
        int(margins.min()),
        int(margins.max()),
        accuracy.source,
    )
