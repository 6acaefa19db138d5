"""The shares of a budget with the least weighted mean squared error, in thousandths.

Shares are whole numbers of thousandths that add up to 1,000. From those that would be best if every level had noise of
its own (proportional to the cube root of its weight), thousandths are moved from one level to another, as long as that
lowers the error, in steps that become smaller. At the end no move of one thousandth does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from typing import TypeAlias

from keepsum._arrays import Floats
from keepsum._progress import doing
from keepsum.accuracy.level_errors import LevelErrors
from keepsum.accuracy.person_loss import PersonLoss
from keepsum.errors import PlanError
from keepsum.planning.plan import compile_plan
from keepsum.planning.selection.l1 import HIGHEST_EPSILON, LOWEST_EPSILON
from keepsum.privacy.laplace import Laplace
from keepsum.privacy.numbers import shown
from keepsum.tables.invariants import Invariants
from keepsum.tables.records import Records

WHOLE = 1000
STEPS = (128, 64, 32, 16, 8, 4, 2, 1)
Parts: TypeAlias = tuple[int, ...]  # thousandths: of cells, then of each level


@dataclass(frozen=True, eq=False)
class Budget:
    """A budget to be shared: all that the error depends on but the shares.

    Attributes
    ----------
    invariants, records
        The kept totals, and how many records one person has at most.
    axes
        The totals of each level.
    epsilon
        That of one person.
    weights
        How much the mean squared errors of cells, and of each level, count.
    """

    invariants: Invariants
    records: Records | None
    axes: tuple[tuple[str, ...], ...]
    epsilon: Fraction
    weights: tuple[Fraction, ...]

    def mechanism(self, parts: Parts) -> Laplace:
        """The noise with these shares; levels without any are left out."""
        shares = {axes: Fraction(part, WHOLE) for axes, part in zip(self.axes, parts[1:], strict=True) if part}
        if not shares:
            return Laplace(self.epsilon)
        return Laplace(self.epsilon, focus=shares, cell_share=Fraction(parts[0], WHOLE))


@dataclass(eq=False)
class ShareSearch:
    """Errors with any shares, and the best shares."""

    budget: Budget
    _errors: LevelErrors
    _loss: PersonLoss
    _known: dict[tuple[float, ...], Floats | None] = field(default_factory=dict)

    @classmethod
    def of(cls, budget: Budget) -> ShareSearch:
        """The search for a budget.

        Raises
        ------
        PlanError
            If there is no such noise: totals cross, or all totals of a level are kept.
        """
        equal = Laplace(1, focus=dict.fromkeys(budget.axes, 1))
        plan = compile_plan(budget.invariants, equal, budget.records)
        if plan.blocks.nested is None or plan.blocks.nested.tables:
            raise PlanError(
                "Shares must be computed for nested levels under kept totals that do not overlap, and these cross, or "
                "overlap. Name fewer levels, keep fewer totals, or give shares of your own."
            )
        return cls(budget, LevelErrors(plan.blocks.nested), PersonLoss(plan))

    def best(self) -> Parts:
        """The shares with the least error."""
        doing("looking for the best shares")
        parts = self._start()
        for step in STEPS:
            while (better := min([parts, *_moved(parts, step)], key=self.error)) != parts:
                parts = better
        return parts

    def epsilons(self, parts: Sequence[Fraction | int]) -> list[Fraction]:
        """The epsilons of cells and levels, with shares of any sum."""
        loss = self._loss(parts)
        return [self.budget.epsilon * part / loss for part in parts]

    def errors(self, parts: Sequence[Fraction | int]) -> Floats | None:
        """The mean squared errors of cells and levels; None where there is no sampler for such noise."""
        epsilons = self.epsilons(parts)
        if not epsilons[0] or not all(LOWEST_EPSILON <= e <= HIGHEST_EPSILON for e in epsilons if e):
            return None
        key = tuple(map(float, epsilons))
        if key not in self._known:
            self._known[key] = self._errors(key)
        return self._known[key]

    def error(self, parts: Sequence[Fraction | int]) -> float:
        """The weighted mean of the mean squared errors; infinite where there is no such noise."""
        errors, weights = self.errors(parts), [float(weight) for weight in self.budget.weights]
        return float("inf") if errors is None else float((errors * weights).sum()) / sum(weights)

    def _start(self) -> Parts:
        roots = [float(weight) ** (1 / 3) for weight in self.budget.weights]
        parts = [max(1, round(WHOLE * root / sum(roots))) for root in roots]
        parts[parts.index(max(parts))] += WHOLE - sum(parts)
        for start in (tuple(parts), _equal(len(roots))):
            if self.error(start) < float("inf"):
                return start
        raise PlanError(
            f"Epsilon {shown(self.budget.epsilon)} per person must leave every level an epsilon from "
            f"{shown(LOWEST_EPSILON)} to {shown(HIGHEST_EPSILON)}, and sums that are not too wide, and does not. "
            f"Choose another epsilon, or fewer levels."
        )


def _moved(parts: Parts, step: int) -> Iterator[Parts]:
    """So many thousandths moved from one level to another; cells keep one at least."""
    for giver, taker in permutations(range(len(parts)), 2):
        moved = list(parts)
        moved[giver] -= step
        moved[taker] += step
        if moved[0] >= 1 and moved[giver] >= 0:
            yield tuple(moved)


def _equal(count: int) -> Parts:
    return tuple(WHOLE // count + (place < WHOLE % count) for place in range(count))
