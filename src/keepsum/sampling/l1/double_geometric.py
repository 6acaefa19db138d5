"""Exact double geometric draws: half a word and one look into a table.

Double geometric noise Z has P(Z = z) proportional to e^(-eps |z|). A number v = 0, 1, 2, ... and a sign say what it is,
v itself or -1 - v, and v is geometric whatever the sign: P(V >= v) = e^(-eps v). So the table (``alias``) has for each
sign the outcomes 0, 1, ..., n - 2 and "at least n - 1", to which a geometric draw is added: the law has no memory.

For small eps the digits of v are used: with q = 2^j, v = q h + r, where h is geometric with q eps, r has the geometric
law cut off at q, and the two and the sign are independent. So a word is two draws, or one: the sign and h in its upper
half and r in its lower.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from keepsum._arrays import IntArray
from keepsum.sampling.core.balls import ball
from keepsum.sampling.core.kernel_arguments import HALF_BITS, WORD_BITS
from keepsum.sampling.core.rng import Stream
from keepsum.sampling.core.tabulated import AliasTable
from keepsum.sampling.l1.kernel_arguments import (
    FEW_COLUMNS,
    LOW_DIGITS,
    MANY_COLUMNS,
    OR_MORE,
    PAIR_BITS,
    NoiseTable,
)

LOWEST = Fraction(1, 10**4)  # the lowest epsilon: two tables reach so far
LEAST_DIGITS = 2  # that are left to choose between the outcomes of a column
_SHORT = Fraction(1, 10)  # with eps of at least this, a table of 256 columns will do
_FAR = Fraction(127, 10)  # the last outcome is so far out, times eps, that "or more" has a chance below 4e-6


class DoubleGeometric:
    """The law with P(z) proportional to exp(-eps |z|), and its tables.

    Parameters
    ----------
    epsilon
        A positive rational, at least 1e-4.
    word_bits
        How many bits of a word a comparison sees; fewer than 64 only to test that ties are settled rightly.

    Guarantee
    ---------
    Exact: the kernels decide by exact thresholds, ``resolve`` settles ties with as many digits as they need.
    ``tests/statistical/test_double_geometric.py``.
    """

    def __init__(self, epsilon: Fraction, word_bits: int = WORD_BITS) -> None:
        if epsilon < LOWEST:
            raise AssertionError(f"epsilon must be at least {LOWEST}, got {epsilon}")
        self.epsilon = epsilon
        self.word_bits = word_bits
        self._column_bits = FEW_COLUMNS if epsilon >= _SHORT else MANY_COLUMNS
        self._last = 2 ** (self._column_bits - 1) - 1
        low_bits = 0
        while epsilon * 2**low_bits * self._last < _FAR:
            low_bits += 1
        self.low_bits = low_bits
        step = 2**low_bits
        high_digits = max(min(HALF_BITS, word_bits), self._column_bits + LEAST_DIGITS)
        low_digits = min(LOW_DIGITS + low_bits, max(word_bits, low_bits + LEAST_DIGITS))
        self._high = AliasTable(
            lambda: _shares(epsilon, step, self._last + 1), self._column_bits, high_digits, HALF_BITS
        )
        self._low = AliasTable(lambda: _cut_shares(epsilon, step), low_bits, low_digits, LOW_DIGITS + low_bits)
        self.table = NoiseTable(
            high=self._high.columns(_outcomes(self._last)),
            low=self._low.columns(np.arange(step)) if low_bits else np.empty(0, dtype=np.uint64),
            column_bits=self._column_bits,
            low_bits=low_bits,
            usable=np.uint64(self._usable),
        )

    @property
    def _usable(self) -> int:
        """The bits of a word that draws see: of both halves alike, or of each as its table has digits."""
        upper = _first_bits(self._high.digits)
        lower = upper if not self.low_bits else _first_bits(self._low.digits)
        return upper << HALF_BITS | lower

    def resolve(self, word: int, extra: Stream) -> int:
        """What a word with a tie, or with an outcome that stands for itself or more, comes to: one number.

        Draws are numbers 2 v, or 2 v + 1 with the negative sign: one, or two behind each other.
        """
        upper, lower = word >> HALF_BITS, word & (2**HALF_BITS - 1)
        first = self._draw(upper >> (HALF_BITS - self._high.digits), extra)
        if not self.low_bits:
            return (first << PAIR_BITS) + self._draw(lower >> (HALF_BITS - self._high.digits), extra)
        rest = self._low.settle(lower >> (HALF_BITS - self._low.digits), extra)
        return (first >> 1 << self.low_bits + 1) + (rest << 1) + (first & 1)

    def _draw(self, number: int, extra: Stream) -> int:
        """A sign and h with the first table: as often as it is the last outcome or more, a geometric draw is added."""
        outcome, last = self._high.settle(number, extra), self._last
        negative = int(outcome > last)
        value = 2 * last + 1 - outcome if negative else outcome
        if value == last:
            value += self._geometric(extra)
        return 2 * value + negative

    def _geometric(self, extra: Stream) -> int:
        """Without its sign a draw that is not negative is geometric."""
        while True:
            drawn = self._draw(extra.bits(self._high.digits), extra)
            if not drawn & 1:
                return drawn >> 1


@lru_cache(maxsize=64)
def double_geometric(epsilon: Fraction, word_bits: int = WORD_BITS) -> DoubleGeometric:
    """The law for an epsilon, made once."""
    return DoubleGeometric(epsilon, word_bits)


def _first_bits(count: int) -> int:
    """Half a word with so many bits set."""
    return (1 << HALF_BITS) - (1 << HALF_BITS - count)


def _outcomes(last: int) -> IntArray:
    """What the outcomes of the first table stand for."""
    upward = np.arange(last + 1)
    outcomes = np.concatenate([upward, -1 - upward[::-1]])
    outcomes[[last, last + 1]] = OR_MORE
    return outcomes


def _shares(epsilon: Fraction, step: int, count: int) -> Sequence[arb]:
    """The chances of each sign and h, times their number; the last h stands for itself or more.

    Outcome k is h = k without a sign below ``count``, and with the sign from there on, with h = 2 count - 1 - k.
    """
    stays, rate = ball(-epsilon * step).exp(), ball(-epsilon).exp()
    powers = _powers(stays, count)
    chances = [2 * count * power * (1 - stays) / (1 + rate) for power in powers[:-1]]
    chances.append(2 * count * powers[-1] / (1 + rate))
    return [*chances, *(chance * rate for chance in reversed(chances))]


def _cut_shares(epsilon: Fraction, count: int) -> Sequence[arb]:
    """P(R = r) for a geometric R given that it is below ``count``, times their number."""
    stays = ball(-epsilon).exp()
    factor = count * (1 - stays) / -(ball(-epsilon * count).expm1())
    return [factor * power for power in _powers(stays, count)]


def _powers(base: arb, count: int) -> list[arb]:
    powers = [arb(1)]
    while len(powers) < count:
        powers.append(powers[-1] * base)
    return powers
