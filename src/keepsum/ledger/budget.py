"""Budgets: how much all releases of a dataset may lose together, and in which currency."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from keepsum._arguments import check_flag
from keepsum.accounting.conversion import SMALLEST_DELTA
from keepsum.accounting.total import Total
from keepsum.errors import BudgetError, InputError
from keepsum.privacy.calibration import rounded_up
from keepsum.privacy.distance import Distance
from keepsum.privacy.loss import Loss
from keepsum.privacy.numbers import Number, exact, exact_in_range, shown, shown_briefly, three_digits_up
from keepsum.sampling.core.balls import ball

UNIT = Distance("l1", 1)


@dataclass(frozen=True, init=False)
class Budget:
    """What all releases of a dataset may lose together.

    Parameters
    ----------
    epsilon
        Per unit of l1 distance, or per person. Gaussian noise and sampling that is not exact need a delta too.
    delta
        The delta that may go with epsilon; with rho, how far all noise together may be from its target, in total
        variation.
    rho
        Instead of epsilon: zero-concentrated differential privacy, at l1 distance 1 or per person. Laplace noise counts
        as epsilon^2 / 2.
    per_person
        Whether it is per person: for any change of one attribute of one person, under the kept totals of all releases
        together.

    Examples
    --------
    >>> import keepsum as ks
    >>> ks.Budget(1)
    Budget(epsilon=1)
    >>> ks.Budget(epsilon=1, delta="1e-6", per_person=True)
    Budget(epsilon=1, delta=1e-6, per_person=True)
    >>> print(ks.Budget(rho=0.5))
    rho 0.5 (zCDP) at l1 distance 1
    """

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    per_person: bool

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        per_person: bool = False,
    ) -> None:
        if (epsilon is None) == (rho is None):
            raise InputError("A budget must have an epsilon or a rho, and not both.")
        set_field = object.__setattr__
        set_field(self, "epsilon", None if epsilon is None else exact_in_range(epsilon, "The budget's epsilon"))
        set_field(self, "delta", None if delta is None else exact(delta, "The budget's delta"))
        set_field(self, "rho", None if rho is None else exact_in_range(rho, "The budget's rho"))
        set_field(self, "per_person", check_flag(per_person, "per_person="))
        if self.delta is not None and not SMALLEST_DELTA <= self.delta < 1:
            raise InputError(f"The budget's delta must be below 1 and at least 1e-300, got {shown(self.delta)}.")

    def __repr__(self) -> str:
        numbers = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        parts = [f"{name}={shown(number)}" for name, number in numbers.items() if number is not None]
        return f"Budget({', '.join([*parts, *(['per_person=True'] if self.per_person else [])])})"

    def __str__(self) -> str:
        return f"{Loss(self.epsilon, self.delta, self.rho)} {self.unit}"

    @property
    def unit(self) -> str:
        """What it is per, in words."""
        if self.per_person:
            return "per person"
        return "at l1 distance 1" if self.rho is not None else "per unit of l1 distance"

    def spent(self, total: Total | None, distance: Distance) -> Loss:
        """What these releases have cost together, in the currency of the budget.

        The epsilon of a budget with a delta is the smallest one at what sampling leaves of that delta. It may be more
        than the budget.

        Raises
        ------
        BudgetError
            If it cannot be stated in this currency, whatever the amount.
        """
        zero = Fraction(0)
        if total is None:
            return Loss(rho=zero) if self.rho is not None else Loss(zero)
        if self.rho is not None:
            self._check_error(total.error)
            return Loss(rho=total.zcdp * (distance.length if distance.norm == "l2" else distance.length**2))
        if self.delta is None:
            if total.rho:
                raise BudgetError(
                    "Gaussian noise must be charged to a budget with a delta or in rho, and this one has an epsilon "
                    "alone. Change the budget, or use Laplace noise."
                )
            self._check_error(total.error)
            return total.at(distance)
        left = self.delta - self._of_sampling(total.error)
        if left < SMALLEST_DELTA:
            raise BudgetError(
                f"Noise must be near enough to its target: all sampling together adds more than the budget's delta "
                f"{shown_briefly(self.delta)}. Use exact sampling, or change the budget."
            )
        return Loss(total.at(distance, left).epsilon, self.delta)

    def allows(self, loss: Loss) -> bool:
        """Whether so much may be spent."""
        if self.rho is not None:
            return loss.rho is not None and loss.rho <= self.rho
        return loss.epsilon is not None and self.epsilon is not None and loss.epsilon <= self.epsilon

    def limit(self) -> Fraction:
        """The epsilon or rho that may be spent."""
        limit = self.rho if self.rho is not None else self.epsilon
        if limit is None:
            raise AssertionError("a budget has an epsilon or a rho")
        return limit

    def amount(self, loss: Loss) -> Fraction:
        """The number of a loss that counts."""
        amount = loss.rho if self.rho is not None else loss.epsilon
        if amount is None:
            raise AssertionError("a loss in another currency")
        return amount

    def _check_error(self, error: Fraction) -> None:
        """Sampling that is not exact must be allowed for by a delta."""
        if error > (self.delta or 0):
            limit = "with a delta" if self.delta is None else f"with a delta of more than {shown_briefly(self.delta)}"
            raise BudgetError(
                f"Noise whose sampling is not exact must be charged to a budget {limit}: all noise together is within "
                f"total variation {three_digits_up(float(error))} of its target. Change the budget, or use exact "
                f"sampling."
            )

    def _of_sampling(self, error: Fraction) -> Fraction:
        """What sampling adds to delta as long as epsilon is within the budget: (1 + e^epsilon) times its error."""
        if not error:
            return Fraction(0)
        epsilon = self.limit()
        return Fraction(1) if epsilon > 1000 else rounded_up(lambda: ball(error) * (1 + ball(epsilon).exp()))


def as_budget(value: Budget | Number) -> Budget:
    """A budget, given as one or as its epsilon per unit of l1 distance."""
    return value if isinstance(value, Budget) else Budget(value)
