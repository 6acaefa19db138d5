"""One kind of noise at several losses, under the same kept totals: what each costs and how accurate it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from keepsum._progress import doing
from keepsum.accuracy.margins import Accuracy, accuracy
from keepsum.accuracy.targets import Answer, Search
from keepsum.errors import PlanError
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.privacy.families import Family
from keepsum.privacy.loss import Loss
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.privacy.numbers import shown
from keepsum.tables.invariants import Invariants
from keepsum.tables.records import Records

LARGEST_TARGET = 10**9
KEPT_PLANS = 3  # the answer of a search is among the last ones looked at
MARGINS_OF = ("typical", "largest")


@dataclass(frozen=True)
class Point:
    """One loss and its margins of error.

    Attributes
    ----------
    value
        The parameter of the request.
    mechanism
        The noise, per unit of distance.
    person
        The loss for one person, whose any attribute changes to any value.
    smallest, typical, largest
        Margins of error of the cells; the typical one is the median.
    draws
        The simulated draws behind them; 0 if all were computed.
    """

    value: Fraction
    mechanism: Mechanism
    person: Loss
    smallest: int
    typical: int
    largest: int
    draws: int

    def margin(self, of: str) -> int:
        """The typical margin, or the largest."""
        return self.typical if of == "typical" else self.largest


@dataclass(frozen=True, eq=False)
class Candidates:
    """Plans that differ only in one parameter of their noise; they share their structure and distances."""

    family: Family
    first: CompiledPlan
    level: float
    _points: dict[Fraction, Point] = field(default_factory=dict)
    _last: dict[Fraction, CompiledPlan] = field(default_factory=dict)  # the plans made last: samplers may be large

    @classmethod
    def of(
        cls, invariants: Invariants, mechanism: Request | Mechanism, records: Records | None, level: float
    ) -> Candidates:
        """The candidates of which this mechanism is one."""
        family = Family.of(mechanism)
        return cls(family, compile_plan(invariants, family.member, records=records), level)

    def around(self, value: Fraction) -> Candidates:
        """The same candidates, with this one as the first."""
        return Candidates(Family(self.family.at(value)), self.plan(value), self.level, self._points, self._last)

    def plan(self, value: Fraction) -> CompiledPlan:
        """The plan with this parameter."""
        if value == self.family.value:
            return self.first
        if value not in self._last:
            while len(self._last) >= KEPT_PLANS:
                self._last.pop(next(iter(self._last)))
            mechanism = self.family.at(value)
            self._last[value] = compile_plan(self.first.invariants, mechanism, self.first.records, [self.first])
        return self._last[value]

    def person(self, value: Fraction) -> Loss:
        """The loss for one person with this parameter."""
        return self.plan(value).stated_loss

    def accuracy(self, plan: CompiledPlan) -> Accuracy:
        """The margins of error of a plan, which must have a sampler for every block."""
        plan.check_samplers()
        return accuracy(plan.blocks, self.level)

    def point(self, value: Fraction) -> Point:
        """What the parameter costs and how accurate it is."""
        if value not in self._points:
            plan = self.plan(value)
            doing(f"working out margins of error at {self.family.parameter} {shown(value)}")
            found = self.accuracy(plan)
            smallest, largest = int(found.margins.min()), int(found.margins.max())
            self._points[value] = Point(
                value,
                plan.mechanism,
                plan.stated_loss,
                smallest,
                found.typical,
                largest,
                found.draws,
            )
        return self._points[value]

    def least_loss(self, margin: int, of: str) -> Answer:
        """The least loss whose typical, or largest, margin is at most this one.

        Raises
        ------
        PlanError
            If there is none, or if the typical cell has no noise at any loss.
        """
        if of == "typical" and len(self.first.pinned) > self.first.size // 2:
            raise PlanError(
                f"The typical margin of error is 0 at any {self.family.parameter}, because the kept totals determine "
                f"most cells. Ask for the largest margin, with of='largest'."
            )
        family = self.family
        return Search(
            lambda value: self.point(value).margin(of), margin, family.value, family.power, family.parameter
        ).answer()
