"""rho-zCDP as (epsilon, delta), as well as Renyi divergences allow, rounded up.

If the Renyi divergence of every order alpha > 1 is at most alpha rho, then for every alpha

    delta = exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha

(Canonne, Kamath and Steinke 2020, *The Discrete Gaussian for Differential Privacy*, Proposition 12). Every alpha is
valid, so the best one is searched for in floating-point numbers, and what it gives is computed in ball arithmetic and
rounded up. With a = alpha - 1 the logarithm of delta is

    a ((1 + a) rho - epsilon) - ln(1 + a) - a ln(1 + 1/a).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from keepsum.errors import InputError
from keepsum.privacy.calibration import SIGMA_BITS, rounded_up
from keepsum.privacy.numbers import shown
from keepsum.sampling.core.balls import ball, precision

SMALLEST_DELTA = Fraction(1, 10**300)
_GRID = [x / 2 for x in range(-160, 161)]  # ln(alpha - 1), from 1e-35 to 1e35


def delta_of(rho: Fraction, epsilon: Fraction) -> Fraction:
    """The smallest delta that follows from rho-zCDP for this epsilon, rounded up to twelve digits, at least 1e-300.

    >>> float(delta_of(Fraction(1, 2), Fraction(4)))
    0.000195795416958
    """
    _check(rho, "Rho")
    _check(epsilon, "Epsilon")
    if rho == 0:
        return Fraction(0)
    r, e = float(rho), float(epsilon)
    a = _best(lambda a: a * ((1 + a) * r - e) - math.log1p(a) - a * math.log1p(1 / a))
    with precision(SIGMA_BITS):
        logarithm = _log_delta(rho, epsilon, a)
        if not logarithm < 0:
            return Fraction(1)
        if logarithm < ball(SMALLEST_DELTA).log():
            return SMALLEST_DELTA
    return min(Fraction(1), rounded_up(lambda: _log_delta(rho, epsilon, a).exp()))


def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """The smallest epsilon that follows from rho-zCDP for this delta, rounded up to twelve digits.

    >>> float(epsilon_of(Fraction(1, 2), Fraction(1, 10**6)))
    5.22153444454
    """
    _check(rho, "Rho")
    check_delta(delta)
    if rho == 0:
        return Fraction(0)
    r, inverse = float(rho), math.log(delta.denominator) - math.log(delta.numerator)
    a = _best(lambda a: (1 + a) * r + (inverse - math.log1p(a)) / a - math.log1p(1 / a))

    def exact() -> arb:
        b = ball(a)
        return (1 + b) * ball(rho) - (ball(delta).log() + b.log1p()) / b - (1 / b).log1p()

    with precision(SIGMA_BITS):
        if exact() <= 0:
            return Fraction(0)
    epsilon = rounded_up(exact)
    with precision(SIGMA_BITS):
        if not _log_delta(rho, epsilon, a) <= ball(delta).log():
            raise AssertionError("epsilon was rounded to the wrong side")
    return epsilon


def check_delta(delta: Fraction) -> Fraction:
    """A delta that losses are converted to."""
    if not isinstance(delta, Fraction) or not SMALLEST_DELTA <= delta < 1:
        got = shown(delta) if isinstance(delta, Fraction) else f"a value of type {type(delta).__name__!r}"
        raise InputError(f"Delta must be a fraction below 1 and at least 1e-300, got {got}.")
    return delta


def _check(number: Fraction, what: str) -> None:
    if not isinstance(number, Fraction) or number < 0:
        raise InputError(f"{what} must be a fraction of 0 or more.")


def _log_delta(rho: Fraction, epsilon: Fraction, a: Fraction) -> arb:
    b = ball(a)
    return b * ((1 + b) * ball(rho) - ball(epsilon)) - b.log1p() - b * (1 / b).log1p()


def _best(value: Callable[[float], float]) -> Fraction:
    """The a = alpha - 1 with the smallest value: on a grid, then by golden sections around its best point."""
    middle = min(_GRID, key=lambda x: value(math.exp(x)))
    low, high, ratio = middle - 0.5, middle + 0.5, (math.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if value(math.exp(left)) <= value(math.exp(right)):
            high = right
        else:
            low = left
    return Fraction(math.exp((low + high) / 2))
