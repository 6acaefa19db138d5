"""The width of Gaussian noise: sigma from a guarantee, and rho-zCDP as (epsilon, delta), rounded up and checked."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt
from flint import arb

from keepsum._saying import arg
from keepsum.errors import InputError
from keepsum.privacy.numbers import shown
from keepsum.sampling.core.balls import ball, precision

# The width of Gaussian noise: sigma from a guarantee, rounded up and checked.
#
# The guarantee of the definition is, for tables at l2 distance r with the same kept totals,
#
#     Pr[M(x) in E] <= e^(eps r) Pr[M(x') in E] + (e^(eps r) - 1)/(e^eps - 1) delta.
#
# The proof that the default needs no factor for the dimension is in ``docs/gaussian.md``.


DIGITS = 12
SIGMA_BITS = 192
LIMIT = 1 / Fraction(math.e).limit_denominator(10**6)  # the paper's theorem is for 0 < delta < epsilon < 1/e


class LatticeShape(Protocol):
    """What calibration needs to know about a lattice."""

    @property
    def dimension(self) -> int:
        """Its dimension."""

    @property
    def log_volume(self) -> float | None:
        """The logarithm of its volume; None where that is not known."""

    @property
    def shortest(self) -> int:
        """The squared length of its shortest vectors, or a lower bound."""


def rounded_up(value: Callable[[], arb]) -> Fraction:
    """A real number rounded up to a decimal of twelve digits."""
    with precision(SIGMA_BITS):
        mantissa, exponent = value().upper().man_exp()
    return ceiling(Fraction(int(mantissa)) * Fraction(2) ** int(exponent))


def ceiling(number: Fraction) -> Fraction:
    """The next number of twelve digits, in integer arithmetic.

    >>> ceiling(Fraction(2, 3)), ceiling(Fraction(5))
    (Fraction(666666666667, 1000000000000), Fraction(5, 1))
    """
    places = DIGITS - len(str(number.numerator // number.denominator))
    if number < 1:
        places = DIGITS + len(str(number.denominator // number.numerator)) - 1
    unit = Fraction(10) ** -places
    return math.ceil(number / unit) * unit


def floor(number: Fraction) -> Fraction:
    """A number rounded down to about twelve digits, if it is small.

    >>> floor(Fraction(2, 3)), floor(Fraction(1, 300))
    (Fraction(333333333333, 500000000000), Fraction(333333333333, 100000000000000))
    """
    places = DIGITS + len(str(number.denominator // number.numerator)) - 1
    return Fraction(math.floor(number * 10**places), 10**places)


def zcdp(epsilon: Fraction, delta: Fraction) -> Fraction:
    """sigma^2 = (2 ln(1/delta) + eps) / eps^2: enough at every distance, on every lattice.

    Examples
    --------
    >>> zcdp(Fraction(1), Fraction(1, 10**6))
    Fraction(33442476917, 6250000000)
    """

    def exact() -> arb:
        return (ball(epsilon) - 2 * ball(delta).log()).sqrt() / ball(epsilon)

    sigma = rounded_up(exact)
    with precision(SIGMA_BITS):
        if not ball(sigma**2 * epsilon**2 - epsilon) >= -2 * ball(delta).log():
            raise AssertionError("sigma was rounded to the wrong side")
    return sigma


def of_rho(rho: Fraction) -> Fraction:
    """sigma^2 = 1 / (2 rho): rho-zCDP at l2 distance 1."""
    sigma = rounded_up(lambda: (1 / (2 * ball(rho))).sqrt())
    if 2 * rho * sigma**2 < 1:
        raise AssertionError("sigma was rounded to the wrong side")
    return sigma


def rho_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho with rho + 2 sqrt(rho ln(1/delta)) <= epsilon, rounded down to twelve digits.

    rho-zCDP is then (epsilon, delta)-differential privacy (Bun and Steinke 2016, Proposition 1.3).

    >>> rho_of(Fraction(1), Fraction(1, 10**6))
    Fraction(174689047691, 10000000000000)
    """

    def inverse() -> arb:
        root = -ball(delta).log()
        return ((root + ball(epsilon)).sqrt() + root.sqrt()) ** 2 / ball(epsilon) ** 2  # 1 / (difference of roots)^2

    rho = floor(1 / rounded_up(inverse))
    with precision(SIGMA_BITS):
        if not 2 * (-ball(rho) * ball(delta).log()).sqrt() <= ball(epsilon - rho):
            raise AssertionError("rho was rounded to the wrong side")
    return rho


def tight(epsilon: Fraction, delta: Fraction, shortest: int) -> Fraction:
    """The smallest sigma that the same proof gives for a lattice whose shortest vectors have that squared length.

    With r the shortest length and G = ln((e^eps - 1)/(delta (e^(eps r) - 1))),
    sigma = (sqrt(2 G) + sqrt(2 G + 2 eps r)) / (2 eps). It is checked at every distance that a lattice can have.
    """

    def exact() -> arb:
        e, r = ball(epsilon), arb(shortest).sqrt()
        gap = (e.expm1() / (ball(delta) * (e * r).expm1())).log()
        gap = gap if gap > 0 else arb(0)
        return ((2 * gap).sqrt() + (2 * gap + 2 * e * r).sqrt()) / (2 * e)

    proved = zcdp(epsilon, delta)  # for every distance
    sigma, step = min(rounded_up(exact), proved), Fraction(1, 10**9)
    while sigma < proved and not enough(sigma, epsilon, delta, shortest):
        sigma, step = min(ceiling(sigma * (1 + step)), proved), 2 * step
    return sigma


def enough(sigma: Fraction, epsilon: Fraction, delta: Fraction, shortest: int = 1) -> bool:
    """Whether the tail of the proof is small enough at every distance sqrt(k), k = shortest, shortest + 1, ...

    (sigma^2 eps - r/2)^2 / 2 sigma^2 >= ln((e^eps - 1)/(delta (e^(eps r) - 1))), until the delta term is 1 or more.
    It must hold with a margin larger than floating-point error.
    """
    s, e = float(sigma), float(epsilon)
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)
    last = (max(0.0, float(log_expm1(e)) - log_delta) / e + 1) ** 2
    if last > 10**6:
        return sigma >= zcdp(epsilon, delta)  # too many distances to check: only what is proved for all
    r = np.sqrt(np.arange(shortest, math.ceil(last) + 1, dtype=np.float64))
    needed = float(log_expm1(e)) - log_delta - log_expm1(e * r)
    reach = s * s * e - r / 2
    tail = np.where(reach > 0, reach**2 / (2 * s * s), 0.0)
    return bool((tail >= needed + 1e-13 * np.abs(needed)).all())


def log_expm1(x: npt.NDArray[np.float64] | float) -> npt.NDArray[np.float64]:
    """ln(e^x - 1), for any x > 0."""
    return np.asarray(x + np.log(-np.expm1(-np.asarray(x))))


def paper(epsilon: Fraction, delta: Fraction, dimension: int, log_volume: float) -> Fraction:
    """The paper's sigma^2 = 2 c ln(1/delta) / eps^2, with c from its own inequality for this lattice.

    The inequality is (c - 1) ln(1/delta) - eps - m ln t - ln K >= 0 with t = 2 c ln(1/delta)/eps, the largest that t
    can be, and K = 4 * 2^m V_m / sqrt(det). The c for which it holds are not an interval, so c is just above
    the largest that fails, and at least 1.

    Parameters
    ----------
    epsilon, delta
        The guarantee, with 0 < delta < epsilon < 1/e as the paper's theorem requires.
    dimension
        m, the dimension of the lattice.
    log_volume
        ln sqrt(det), the logarithm of the lattice's volume.
    """
    if not delta < epsilon < LIMIT:
        raise InputError(f"The paper's calibration needs delta < epsilon < 1/e. Use {arg.calibration('zcdp')}.")
    log_inverse = math.log(delta.denominator) - math.log(delta.numerator)
    ratio = paper_ratio(float(epsilon), log_inverse, dimension, log_volume)
    c = Fraction(ratio * (1 + 1e-9)).limit_denominator(10**9) + Fraction(1, 10**9)
    return rounded_up(lambda: (-2 * ball(c) * ball(delta).log()).sqrt() / ball(epsilon))


def log_constant(dimension: int, log_volume: float) -> float:
    """Ln K, K = 4 * 2^m V_m / sqrt(det), V_m the volume of the unit ball."""
    ball_volume = dimension / 2 * math.log(math.pi) - math.lgamma(dimension / 2 + 1)
    return math.log(4) + dimension * math.log(2) + ball_volume - log_volume


def paper_ratio(epsilon: float, log_inverse_delta: float, dimension: int, log_volume: float) -> float:
    """The largest c that fails the paper's inequality, or 1."""

    def slack(c: float) -> float:
        t = 2 * c * log_inverse_delta / epsilon
        constant = log_constant(dimension, log_volume)
        return (c - 1) * log_inverse_delta - epsilon - dimension * math.log(t) - constant

    # The slack falls until c = m / ln(1/delta) and then rises.
    low = max(1.0, dimension / log_inverse_delta)
    if slack(low) >= 0:
        return low if low > 1.0 and slack(1.0) < 0 else 1.0
    high = 2 * low
    while slack(high) < 0:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if slack(middle) < 0 else (low, middle)
    return high


# rho-zCDP as (epsilon, delta), as well as Renyi divergences allow, rounded up.
#
# If the Renyi divergence of every order alpha > 1 is at most alpha rho, then for every alpha
#
#     delta = exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha
#
# (Canonne, Kamath and Steinke 2020, *The Discrete Gaussian for Differential Privacy*, Proposition 12). Every alpha is
# valid, so the best one is searched for in floating-point numbers, and what it gives is computed in ball arithmetic
# and rounded up. With a = alpha - 1 the logarithm of delta is
#
#     a ((1 + a) rho - epsilon) - ln(1 + a) - a ln(1 + 1/a).


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
