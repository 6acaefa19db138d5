"""The weights W(y) of what a row has below a node: floats with a proved bound on their errors.

An entry that is the sum of n cells has the law p of such a sum, any other sum at least the convolution F of its
children's weights, times the numbers t that the sampler chooses. Tables end at a ``reach``, the weights do not: beyond
it W(y) is c p(y), p the law of the sum of all cells below and c the ``ratio``, such that W <= c p for all y. As laws of
sums convolve to laws of sums, F <= c_L c_R p, so that c is hardly more than c_L c_R. They are bounded by moments, W(y)
<= D(q) e^(-q|y|) with D(q) the sum of W(y) e^(qy) over all y; those of a convolution are the products of those of its
factors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce

import numpy as np

from keepsum._arrays import Floats, IntArray

ULP = 2.0**-53
PIECE = 4096  # longer products of vectors are shared among threads, which costs more than it gains
ABOVE = 1.001  # what bounds on moments are raised by, for the rounding of the bounds themselves
_TILTS = np.array(
    [0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
)  # q, in units of epsilon


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Weights of y = 0, 1, ..., ``reach``; those of -y are the same.

    Attributes
    ----------
    values, errors
        The weights, and bounds on their absolute errors.
    rates
        Some q.
    log_moments
        For each q, the logarithm of an upper bound on the sum of W(y) e^(qy) over all y; it may be infinite.
    exponent
        The weights are those of the definition times 2^-``exponent``.
    ends
        Whether all weights beyond the reach are 0.
    ratio
        c; beyond the table, the weights are c times those of a sum of as many cells.
    """

    values: Floats
    errors: Floats
    rates: Floats
    log_moments: Floats
    exponent: int = 0
    ends: bool = False
    ratio: float = 1.0

    @property
    def reach(self) -> int:
        """The last y of the table."""
        return len(self.values) - 1

    @property
    def is_flat(self) -> bool:
        """Whether everything has the same weight."""
        return bool(np.isinf(self.log_moments).all())

    @property
    def beyond(self) -> float:
        """An upper bound on the weight of any y beyond the reach."""
        return 0.0 if self.ends else ABOVE * math.exp((self.log_moments - self.rates * (self.reach + 1)).min())

    @property
    def top(self) -> float:
        """An upper bound on all weights."""
        return max(float((self.values + self.errors).max()), self.beyond)

    def raised(self) -> RowWeights:
        """Upper bounds on the weights of the table."""
        return replace(self, values=self.values + self.errors)

    def two_sided(self) -> Floats:
        """The values from -reach to reach."""
        return mirrored(self.values)


def mirrored(values: Floats) -> Floats:
    """The values at -y and y, from those at y >= 0."""
    return np.concatenate([values[:0:-1], values])


@lru_cache(maxsize=256)
def leaf(epsilon: Fraction, cells: int, reach: int, tilted: tuple[Fraction, ...] = ()) -> RowWeights:
    """The law of a sum of so many cells, each with weight e^(-eps |z|); of 0 for no cell at all.

    ``tilted`` are the epsilons of all entries of a table, which have the same q; by default this one alone.
    """
    rate = float(epsilon)
    rates = _tilts(tilted or (epsilon,))
    if cells == 0:
        values = np.zeros(reach + 1)
        values[0] = 1.0
        return RowWeights(values, np.zeros(reach + 1), rates, np.zeros(len(rates)), ends=True)
    if cells == 1:
        exponents = rate * np.arange(reach + 1)
        values = np.exp(-exponents)
        finite, moments = rates < rate, np.full(len(rates), np.inf)
        q = rates[finite]
        moments[finite] = np.log(-np.expm1(-2 * rate) / (np.expm1(q - rate) * np.expm1(-q - rate)))
        # Twice for epsilon as a float and for the product, and some units for the exponential.
        return RowWeights(values, values * (3 * exponents + 8) * ULP, rates, moments)
    half = cells // 2
    return convolve(leaf(epsilon, half, reach, tilted), leaf(epsilon, cells - half, reach, tilted), reach)


def _tilts(epsilons: Sequence[Fraction]) -> Floats:
    """The q for entries of some epsilons, ascending; of 0 there are none."""
    return np.unique(np.concatenate([float(epsilon) * _TILTS for epsilon in epsilons if epsilon]))


def flat(epsilons: Sequence[Fraction], reach: int) -> RowWeights:
    """Weight 1 for everything; its table must go as far as that of the weights that it is multiplied with.

    These bound what lies beyond, so that it counts as ended.
    """
    rates = _tilts(epsilons)
    return RowWeights(np.ones(reach + 1), np.zeros(reach + 1), rates, np.full(len(rates), np.inf), ends=True)


def sum_of(rates: tuple[Fraction, ...], load: Sequence[int], reach: int) -> RowWeights:
    """The law of the sum of so many entries of each of these epsilons; that of one with epsilon 0 is ``flat``."""
    parts = [(rate, count) for rate, count in zip(rates, load, strict=True) if count]
    if any(rate == 0 for rate, _ in parts):
        return flat(rates, reach)
    laws = [leaf(rate, count, reach, rates) for rate, count in parts or [(rates[0], 0)]]
    return reduce(lambda left, right: convolve(left, right, reach), laws)


def lowest_of(rates: Sequence[Fraction]) -> Fraction:
    """The smallest epsilon, but for 0."""
    return min(rate for rate in rates if rate)


def convolve(left: RowWeights, right: RowWeights, reach: int) -> RowWeights:
    """F, the convolution of two weights, scaled by a power of two so that F(0) is near 1.

    Three errors: of the factors, of the sums (positive terms, so relative errors are at most their number times 2^-53),
    and of what lies beyond the tables.
    """
    terms = 2 * min(left.reach, right.reach) + 1
    values = convolution(left.two_sided(), right.values, reach)
    higher = values
    if left.errors.any() or right.errors.any():
        higher = convolution(mirrored(left.values + left.errors), right.values + right.errors, reach)
    errors = (higher - values) + (2 * terms + 8) * ULP * higher + beyond_tables(left, right, np.arange(reach + 1))
    exponent = math.frexp(values[0])[1]
    scale = 2.0**-exponent
    return RowWeights(
        values * scale,
        errors * scale,
        left.rates,
        left.log_moments + right.log_moments - exponent * math.log(2) + 1e-12,
        left.exponent + right.exponent + exponent,
        left.ends and right.ends,
    )


def beyond_tables(
    left: RowWeights, right: RowWeights, sums: IntArray, growth: float = 0.0, left_reach: int | None = None
) -> Floats:
    """A bound on the sum of W_L(u) W_R(y - u) e^(s|u|) over the u where either table has ended, for some y >= 0.

    For u > R, W_R(y - u) <= D_R e^(-q(u - y)), and the sum of W_L(u) e^(-qu + su) over u > R is at most
    e^(-(2q - s) R) D_L; likewise at the other end, and with the roles changed, where |u| <= |y - u| + y. Or no W_R is
    larger than its top, and the sum of W_L(u) e^(su) is at most e^(-(q - s) R) D_L: less where one side has far more
    cells than the other. ``growth`` is s, at most twice the smallest q that is used. With ``left_reach``, the left
    table ends there.
    """
    q, y = left.rates[:, None], sums[None, :]
    total = np.zeros(len(sums))
    ends = left.reach if left_reach is None else left_reach
    for weights, other, end, shift in ((left, right, ends, 0.0), (right, left, right.reach, growth)):
        if not weights.ends:
            moments = weights.log_moments[:, None]
            both = moments + other.log_moments[:, None] + (q + shift) * y - (2 * q - growth) * end
            one = moments + math.log(other.top) + shift * y - (q - growth) * end
            both, one = both[left.rates > growth / 2 + 1e-12], one[left.rates > growth + 1e-12]
            exponent = np.minimum(np.concatenate([both, one]).min(axis=0), 700.0)
            total += 2 * ABOVE * np.exp(exponent)
    return total


def table_moments(values: Floats, rates: Floats, log_moments: Floats, ends: bool) -> Floats:
    """Bounds on moments, from the weights of a table and bounds on the moments of those beyond it.

    Let V be larger than the weights beyond the table, and D(q) its moments, whose logarithms are ``log_moments``. The
    sum of V(y) e^(qy) over all |y| > R is at most 2 D(q') e^(-(q' - q)(R + 1)) for any q' >= q.
    """
    y = np.arange(len(values))
    with np.errstate(divide="ignore"):
        logs = np.log(values) + np.where(y == 0, 0.0, math.log(2))
    bounds = np.empty(len(rates))
    for k, q in enumerate(rates):
        inside = logs + q * y + np.log1p(np.exp(-2 * q * y)) - math.log(2)  # e^(qy) and e^(-qy)
        beyond = -np.inf if ends else math.log(2) + (log_moments[k:] - (rates[k:] - q) * len(values)).min()
        bounds[k] = np.logaddexp(np.logaddexp.reduce(inside), beyond) + math.log(ABOVE)
    return bounds


def convolution(left: Floats, right: Floats, reach: int) -> Floats:
    """The sums of left(u) right(|y - u|) over u, for y = 0 to ``reach``; ``left`` has both sides, ``right`` one."""
    end = len(left) // 2
    distance = np.abs(np.arange(-end, reach + end + 1))  # |v| = |y - u|, for all y and u that occur
    inside = distance < len(right)
    shifted = np.zeros(len(distance))
    shifted[inside] = right[distance[inside]]
    total = np.zeros(reach + 1)
    for first in range(0, len(left), PIECE):
        part = left[first : first + PIECE]
        start = len(left) - first - len(part)  # a convolution turns its second argument round
        total += np.convolve(shifted[start : start + reach + len(part)], part, mode="valid")
    return total


@lru_cache(maxsize=4096)
def drawn_reach(rates: tuple[Fraction, ...], load: tuple[int, ...], tail_bits: int) -> int:
    """How far the sum of so many entries of each epsilon goes: beyond, with a chance below 2^-``tail_bits`` or so.

    A guess by Chernoff's bound for two independent sums that cancel, which decides nothing but when the referee is
    asked. Entries of epsilon 0 go as far as the others let them.
    """
    counts = [(float(rate), count) for rate, count in zip(rates, load, strict=True) if rate and count]
    counts = counts or [(float(rates[0]), 1)]
    q = min(rate for rate, _ in counts) * np.linspace(0.05, 0.97, 47)
    total = tail_bits * math.log(2) + sum(
        count * (2 * np.log(-np.expm1(-rate)) - np.log(np.expm1(q - rate) * np.expm1(-q - rate)))
        for rate, count in counts
    )
    return math.ceil(float((total / (2 * q)).min())) + 1


@lru_cache(maxsize=4096)
def cancelling_reach(
    rates: tuple[Fraction, ...], load: tuple[int, ...], rest: tuple[int, ...], log_chance: float
) -> int:
    """How far the sum of one load goes if that of the rest is its opposite: beyond, with about this chance.

    By Chernoff's bound for each of the two. Where the rest is far wider it hardly matters, and the sum goes farther
    than one of two that are alike. A guess, as ``drawn_reach``.
    """
    bounds = [_chernoff(rates, one) for one in (load, rest) if any(one)]

    def is_beyond(reach: int) -> bool:
        return sum(float((q * reach - logs).max(initial=0.0)) for q, logs in bounds) >= -log_chance

    low, high = -1, 1
    while not is_beyond(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_beyond(middle) else (middle, high)
    return high


def _chernoff(rates: tuple[Fraction, ...], load: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Some q, and the logarithms of the moments of e^(qy) of a sum of so many entries of each epsilon but 0."""
    counts = [(float(rate), count) for rate, count in zip(rates, load, strict=True) if rate and count]
    q = min(rate for rate, _ in counts) * np.linspace(0.02, 0.98, 49)
    logs = np.zeros(len(q))
    for rate, count in counts:
        logs += count * (2 * np.log(-np.expm1(-rate)) - np.log(np.expm1(q - rate) * np.expm1(-q - rate)))
    return q, logs
