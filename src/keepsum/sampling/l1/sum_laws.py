"""How likely a sum of double geometric noise is, against the sum 0.

With a = e^-eps, let p_n(t) be the chance that the noise of n cells adds up to t. In closed form

    p_n(t) / p_n(0) = a^|t| A(|t|) / A(0),    A(t) = sum over i < n of C(n - 1 - t, i) C(n - 1 + t, n - 1 - i) a^(2 i),

which suits few cells. For many cells there is the transform. The noise of a cell has f(u) = 1 / (1 + c sin(u / 2)^2),
c = 4 a / (1 - a)^2, so that for each whole L

    (1 / L) sum over j < L of f(2 pi j / L)^n cos(2 pi j t / L) = p_n(t) + p_n(t + L) + p_n(t - L) + ...

Few j matter, and Chernoff's bound says how little the other sums do.

A law is symmetric and falls away from 0. A kernel reads it from a table of every 2^s-th sum, and takes it to be linear
in between. That errs by at most 2^(2 s) / 8 times a bound on the second derivative of a smooth function that runs
through all p_n(t) / p_n(0): for n = 1 that is e^(-eps t), and otherwise the transform at every real t, for which

    |p_n''| <= (1 / 2 pi) integral of f(u)^n u^2  <=  (pi^2 / 2) (p_n(0) - p_n(1)),    since u^2 <= pi^2 sin(u / 2)^2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, ctx, fmpq, fmpz_poly

from keepsum._arrays import Floats
from keepsum.sampling.core.balls import ball, digits, precision
from keepsum.sampling.core.kernel_arguments import WORD_BITS
from keepsum.sampling.core.rng import LazyUniform
from keepsum.sampling.l1.kernel_arguments import SumTables

FEW = 8  # cells, up to which the closed form is used
TABLE_BITS = 64  # of the balls that a table is made of
INTERPOLATION = 2.0**-16  # what linear interpolation may err by
LAST = 2.0**-24  # a table ends with the first value below this


class SumLaw:
    """The law of the sum of the noise of ``size`` cells, and its table."""

    def __init__(self, size: int, epsilon: Fraction) -> None:
        self.size, self.epsilon = size, epsilon
        curvature = self._curvature()
        self.stride_bits = 0
        while 4.0 ** (self.stride_bits + 1) / 8 * curvature <= INTERPOLATION:
            self.stride_bits += 1
        self.values, rounding = self._table(2**self.stride_bits)
        between = 4.0**self.stride_bits / 8 * curvature if self.stride_bits else 0.0
        self.error = 1.001 * (between + rounding) + 8 * 2.0**-53  # the last for the arithmetic in between

    def ratio(self, total: int) -> arb:
        """The chance of a sum against that of 0, as a ball of the precision at hand.

        Sums so far out that all digits at hand are 0 are not computed: that would take as long as they are far.
        """
        if total == 0:
            return arb(1)
        bound = (2 * chernoff(self.size, self.epsilon, abs(total)) * self._width()).abs_upper()
        if bound < arb(2) ** -ctx.prec:
            return arb(bound / 2, bound / 2)
        if self.size <= FEW:
            return _by_series(self.size, self.epsilon, [abs(total)])[0]
        return _Transform(self.size, self.epsilon, abs(total), ctx.prec).ratio(abs(total))

    def accept(self, total: int, uniform: LazyUniform) -> int:
        """Whether a uniform number lies below the ratio, decided exactly."""
        return int(uniform.below(digits(lambda: self.ratio(total))))

    def _width(self) -> arb:
        """1 / p_n(0) is at most twice this: at least half of all sums lie within sqrt(2) deviations, none likelier."""
        rate = ball(-self.epsilon).exp()
        variance = self.size * 2 * rate / (1 - rate) ** 2
        return 2 * ((2 * variance).sqrt() + 1) + 1

    def _curvature(self) -> float:
        """A bound on the second derivative of a function through all values."""
        with precision(TABLE_BITS):
            if self.size == 1:
                return _above(ball(self.epsilon) ** 2)
            return _above(arb.pi() ** 2 / 2 * (1 - self.ratio(1)))

    def _table(self, stride: int) -> tuple[Floats, float]:
        """The values at multiples of the stride until they are small, and a bound on their errors."""
        count = -(-_reach(self.size, self.epsilon) // stride) + 2
        if self.size <= FEW:
            return _cut(self._values([i * stride for i in range(count)])), 2.0**-52
        with precision(TABLE_BITS):
            transform = _Transform(self.size, self.epsilon, count * stride, TABLE_BITS)
            values, error = transform.ratios(stride, count)
            return _cut(values), error

    def _values(self, totals: Sequence[int]) -> Floats:
        """Ratios by the closed form, whose terms may cancel: with as many digits as that takes."""
        bits = TABLE_BITS
        while True:
            with precision(bits):
                ratios = _by_series(self.size, self.epsilon, totals)
            if all(ratio.rad() < 2.0**-60 for ratio in ratios):
                return np.array([float(ratio.mid()) for ratio in ratios])
            bits *= 2


@lru_cache(maxsize=4096)
def sum_law(size: int, epsilon: Fraction) -> SumLaw:
    """The law for a number of cells, made once."""
    return SumLaw(size, epsilon)


def powers_below(size: int) -> list[int]:
    """1, 2, 4, ... below a size."""
    return [2**i for i in range((size - 1).bit_length())]


def sum_tables(sizes: Sequence[int], epsilon: Fraction, word_bits: int = WORD_BITS) -> SumTables:
    """The tables of the laws of several sizes, as the kernels read them."""
    laws = [sum_law(size, epsilon) for size in sizes]
    return SumTables(
        values=np.concatenate([np.empty(0), *(law.values for law in laws)]),
        starts=np.cumsum([0, *(len(law.values) for law in laws)]),
        stride_bits=np.array([law.stride_bits for law in laws], dtype=np.int64),
        scales=np.array([0.5**law.stride_bits for law in laws], dtype=np.float64),
        errors=np.array([law.error for law in laws], dtype=np.float64),
        shift=WORD_BITS - word_bits,
    )


def _by_series(size: int, epsilon: Fraction, totals: Sequence[int]) -> list[arb]:
    """The ratios of several sums by the closed form."""
    rate = ball(-epsilon).exp()
    square = rate**2
    whole = _series(size, 0)(square)
    return [rate**total * _series(size, total)(square) / whole for total in totals]


def _series(size: int, total: int) -> fmpz_poly:
    """The polynomial A(t) in a^2."""
    terms = []
    left, right = 1, math.comb(size - 1 + total, size - 1)
    for i in range(size):
        terms.append(left * right)
        left = left * (size - 1 - total - i) // (i + 1)
        right = right * (size - 1 - i) // (total + i + 1)
    return fmpz_poly(terms)


class _Transform:
    """The transform of a law, fine enough for sums up to ``farthest`` and for an error of 2^-bits or so."""

    def __init__(self, size: int, epsilon: Fraction, farthest: int, bits: int) -> None:
        self.size, self.epsilon = size, epsilon
        self.length = 2
        while self.length < 2 * farthest or self._others() * self.length > arb(2) ** -bits:
            self.length *= 2
        rate = ball(-epsilon).exp()
        self._spread = 4 * rate / (1 - rate) ** 2
        self.factors = [arb(1)]
        while len(self.factors) <= self.length // 2:
            factor = self._factor(len(self.factors))
            if factor * self.length < arb(2) ** -bits:
                break
            self.factors.append(2 * factor)
        if len(self.factors) > self.length // 2:
            self.factors[-1] /= 2  # the frequency L / 2 is its own opposite
            omitted = arb(0)
        else:
            omitted = self._factor(len(self.factors)) * self.length
        # What is left out of L p_n(t): the frequencies above, which have smaller factors, and the other sums.
        self._omitted = arb(0, (omitted + self._others() * self.length).abs_upper())

    def ratio(self, total: int) -> arb:
        """p_n(t) / p_n(0)."""
        return self._mass(total) / self._mass(0)

    def _mass(self, total: int) -> arb:
        """L p_n(t)."""
        turns = (fmpq(2 * (j * total % self.length), self.length) for j in range(len(self.factors)))
        return sum((f * arb.cos_pi_fmpq(t) for f, t in zip(self.factors, turns, strict=True)), self._omitted)

    def ratios(self, stride: int, count: int) -> tuple[Floats, float]:
        """The ratios at multiples of a stride, and a bound on their errors.

        Of a product of J numbers with rounded ones, each right to 2^-53, a float is off by (J + 2) 2^-53 of the sum of
        the factors, in any order of summation. Twice that, and some more, pays for the factors' own errors, which at
        small eps are several times 2^-53, for products of errors, and for the division.
        """
        turns = self.length // stride
        factors = np.array([float(factor.mid()) for factor in self.factors])
        places = np.multiply.outer(np.arange(count), np.arange(len(factors))) % turns
        whole = self._mass(0)
        values = _cosines(turns)[places] @ factors / float(whole.mid())
        rounding = (len(factors) + 12) * 2.0**-52 * _above(arb(factors.sum()) / whole)
        return values, rounding + _above(2 * self._omitted.abs_upper() / whole)

    def _factor(self, j: int) -> arb:
        """f(2 pi j / L)^n."""
        sine = arb.sin_pi_fmpq(fmpq(j, self.length))
        return (-self.size * (self._spread * sine**2).log1p()).exp()

    def _others(self) -> arb:
        """A bound on p_n(t + L) + p_n(t - L) + ... for |t| <= L / 2: the chance of sums from L / 2 on, twice."""
        return 2 * chernoff(self.size, self.epsilon, self.length // 2)


@lru_cache(maxsize=16)
def _cosines(turns: int) -> Floats:
    """The cosines of all multiples of a turn's share."""
    with precision(TABLE_BITS):
        return np.array([float(arb.cos_pi_fmpq(fmpq(2 * i, turns)).mid()) for i in range(turns)])


def chernoff(size: int, epsilon: Fraction, total: int) -> arb:
    """A bound on the chance that the noise of so many cells adds up to ``total`` or more: (M(s) e^(-s t / n))^n.

    M(s) = (1 - a)^2 / ((1 - a e^s) (1 - a e^-s)); any s between 0 and eps will do, and this one is near the best.
    """
    s = arb(_slope(size, float(epsilon), total))
    rate = ball(-epsilon).exp()
    moment = (1 - rate) ** 2 / ((1 - rate * s.exp()) * (1 - rate * (-s).exp()))
    return (size * moment.log() - s * total).exp()


def _slope(size: int, epsilon: float, total: int) -> float:
    """Where M(s) e^(-s t / n) is least: M'/M = t / n is quadratic in e^s."""
    r, c = total / size, math.cosh(epsilon)
    s = math.log((r * c + math.sqrt(r * r * c * c - r * r + 1)) / (1 + r))
    return min(max(s, 0.0), 0.999 * epsilon)


def _reach(size: int, epsilon: Fraction) -> int:
    """A sum beyond which the ratio is below LAST, or nearly so: it says how long a table is, nothing else."""
    variance = size * 0.5 / math.sinh(float(epsilon) / 2) ** 2
    target = math.log(LAST) - 0.5 * math.log1p(2 * math.pi * variance)
    low, high = 0, 1
    while _log_chernoff(size, float(epsilon), high) > target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _log_chernoff(size, float(epsilon), middle) > target else (low, middle)
    return high


def _log_chernoff(size: int, epsilon: float, total: int) -> float:
    s = _slope(size, epsilon, total)
    rate = math.exp(-epsilon)
    moment = 2 * math.log1p(-rate) - math.log1p(-rate * math.exp(s)) - math.log1p(-rate * math.exp(-s))
    return size * moment - s * total


def _cut(values: Floats) -> Floats:
    """The values up to the first small one."""
    return values[: int(np.argmax(values < LAST)) + 1] if (values < LAST).any() else values


def _above(value: arb) -> float:
    """A float that is not below a ball."""
    return float(np.nextafter(float(value.abs_upper()), np.inf))
