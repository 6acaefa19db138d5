"""zCDP as (epsilon, delta): valid for the noise itself, as good as any order gives, and rounded up."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from accounting.divergences import gaussian, hockey_stick, outputs
from keepsum.errors import InputError
from keepsum.privacy.calibration import SMALLEST_DELTA, ceiling, delta_of, epsilon_of
from keepsum.sampling.core.balls import ball, precision
from support import mostly_audit

RHOS = [Fraction(1, 10**12), Fraction(1, 1000), Fraction(1, 8), Fraction(1, 2), Fraction(10), Fraction(10**6)]
DELTAS = [Fraction(1, 10**300), Fraction(1, 10**9), Fraction(1, 10**3), Fraction(1, 3), Fraction(999, 1000)]


def log_delta(rho: float, epsilon: float, orders):
    """The logarithm of Proposition 12, as Canonne, Kamath and Steinke write it."""
    return (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)


@pytest.mark.parametrize("sigma", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [0.25, 1, 2])
def test_holds_for_gaussian_noise(sigma, epsilon):
    """And is within a factor of 6 of what the noise really needs; the usual conversion is not as good."""
    pair = outputs([[1]], gaussian(sigma), [1], 12 * sigma)
    rho = Fraction(1, 2 * sigma**2)
    delta = float(delta_of(rho, Fraction(epsilon)))
    assert hockey_stick(pair, epsilon) <= delta
    if hockey_stick(pair, epsilon) > 1e-9:
        assert delta < 6 * hockey_stick(pair, epsilon)
    if epsilon > rho:
        assert delta < math.exp(-((epsilon - float(rho)) ** 2) / (4 * float(rho)))


@mostly_audit("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_no_order_gives_less(rho, delta):
    """Against two million orders, by the formula in its other form."""
    epsilon = epsilon_of(rho, delta)
    orders = 1 + np.exp(np.linspace(-30, 45, 2_000_001))
    inverse = math.log(delta.denominator) - math.log(delta.numerator)
    best = (
        orders * float(rho) + (inverse + (orders - 1) * np.log1p(-1 / orders) - np.log(orders)) / (orders - 1)
    ).min()
    assert float(epsilon) == pytest.approx(max(best, 0.0), rel=1e-9, abs=1e-12)
    assert epsilon == 0 or len(str(epsilon.numerator).rstrip("0")) <= 12 + 1  # twelve digits, times a power of 2 or 5


@mostly_audit("rho", [Fraction(1, 1000), Fraction(1, 8), Fraction(2)])
@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 10), Fraction(1), Fraction(5)])
def test_delta_of_an_epsilon(rho, epsilon):
    delta = delta_of(rho, epsilon)
    orders = 1 + np.exp(np.linspace(-30, 30, 2_000_001))
    best = math.exp(log_delta(float(rho), float(epsilon), orders).min())
    assert float(delta) == pytest.approx(max(best, 1e-300), rel=1e-9)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS[1:])
def test_the_two_directions_agree_on_the_safe_side(rho, delta):
    """The epsilon for a delta gives at most that delta; a little less gives more."""
    epsilon = epsilon_of(rho, delta)
    assert delta_of(rho, epsilon) <= ceiling(delta)  # as both are rounded up
    if epsilon:
        less = epsilon * (1 - Fraction(1, 10**10))
        assert delta_of(rho, less) > delta


def test_rounding_is_up_in_balls():
    """For an order that is the best to many digits the exact value lies just below."""
    rho, delta = Fraction(1, 2), Fraction(1, 10**6)
    epsilon = epsilon_of(rho, delta)
    orders = 1 + np.exp(np.linspace(0, 3, 3_000_001))
    best = Fraction(float(orders[np.argmin(log_delta(0.5, float(epsilon), orders))]))
    with precision(200):
        a, r = ball(best), ball(rho)
        exact = a * r + (-ball(delta).log() + (a - 1) * (1 - 1 / a).log() - a.log()) / (a - 1)
        assert exact < ball(epsilon) < exact + arb(2) ** -32


def test_extremes():
    assert epsilon_of(Fraction(0), Fraction(1, 10)) == delta_of(Fraction(0), Fraction(1)) == 0
    assert delta_of(Fraction(1, 100), Fraction(10**9)) == SMALLEST_DELTA
    assert delta_of(Fraction(10**9), Fraction(0)) == 1
    assert epsilon_of(Fraction(1, 100), Fraction(9, 10)) == 0


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 10**301), 0.5, None, "1e-6"])
def test_delta_must_be_a_fraction_between_0_and_1(delta):
    with pytest.raises(InputError, match="Delta must be a fraction below 1 and at least 1e-300"):
        epsilon_of(Fraction(1), delta)


@pytest.mark.parametrize("wrong", [Fraction(-1), 0.5, None])
def test_losses_must_be_fractions(wrong):
    for call in (lambda: epsilon_of(wrong, Fraction(1, 2)), lambda: delta_of(wrong, Fraction(1))):
        with pytest.raises(InputError, match="Rho must be a fraction of 0 or more"):
            call()
    with pytest.raises(InputError, match="Epsilon must be a fraction of 0 or more"):
        delta_of(Fraction(1), wrong)
