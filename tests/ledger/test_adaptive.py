"""Whether a budget limits somebody who chooses each release after seeing the outputs before, by dynamic programming.

They release Gaussian noise of growing rho, and may at any time spend what is left as one pure loss p, of which
randomised response is the worst. The true delta is the largest mean of max(0, 1 - e^(epsilon - loss)) over all such
strategies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from keepsum.accounting.composition import compose
from keepsum.accounting.total import Cost, Total
from keepsum.ledger.entries import UNIT, Budget
from keepsum.privacy.calibration import epsilon_of

EPSILON, DELTA, STEPS = 3, Fraction(1, 100), 24
GRID = np.arange(-1.5 * EPSILON, 3 * EPSILON, EPSILON / 2000)  # of accumulated losses
Allows = Callable[[Total], bool]


def by_the_budget(total: Total) -> bool:
    """What a ledger asks, where the first release had Gaussian noise."""
    budget = Budget.per_unit(EPSILON, DELTA)
    return budget.allows(budget.spent(total, UNIT, gaussian=True))


def by_the_smallest(total: Total) -> bool:
    """The wrong rule: the smallest epsilon that any rule gives."""
    return total.at(UNIT, DELTA).epsilon <= EPSILON


def largest(fits: Callable[[Fraction], bool], high: float) -> Fraction:
    low = 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(Fraction(middle)) else (low, middle)
    return Fraction(math.floor(low * 10**9), 10**9)


def true_delta(allows: Allows) -> float:
    """Delta of the best strategy among those that the rule allows on every path."""
    most = largest(lambda rho: epsilon_of(rho, DELTA) <= EPSILON, 10.0)
    spent = [Fraction(math.floor(most * 10**9 * 1.4 ** (k - STEPS)), 10**9) for k in range(STEPS + 1)]
    steps = [after - before for before, after in zip([Fraction(0), *spent], spent, strict=False)]

    def excess(losses: np.ndarray) -> np.ndarray:
        return np.maximum(0, -np.expm1(EPSILON - losses))

    value = excess(GRID)
    for total, rho in zip(reversed(spent), reversed(steps), strict=True):
        gaussian = Cost("l2", rho=total)
        assert allows(compose([gaussian]))
        rest = largest(lambda p: p == 0 or allows(compose([gaussian, Cost("l1", p)])), EPSILON)  # noqa: B023
        if rest:
            p = float(rest)
            right = 1 / (1 + math.exp(-p))
            value = np.maximum(value, right * excess(GRID + p) + (1 - right) * excess(GRID - p))
        r = float(rho)
        reach = math.ceil(9 / math.sqrt(2 * r)) + 3
        outputs = np.arange(-reach, reach + 1)
        chances = np.exp(-r * outputs**2)
        chances /= chances.sum()
        value = sum(
            chance * np.interp(GRID + loss, GRID, value)
            for chance, loss in zip(chances, r * (1 - 2 * outputs), strict=True)
            if chance > 1e-12
        )
    return float(np.interp(0.0, GRID, value))


@pytest.mark.audit
def test_a_budget_limits_adaptive_choices_and_the_smallest_of_several_rules_does_not():
    assert true_delta(by_the_budget) <= float(DELTA)
    assert true_delta(by_the_smallest) > 1.5 * float(DELTA)
