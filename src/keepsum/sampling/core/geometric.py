"""Exact geometric draws: half a word and one look into a table.

The geometric law P(G >= k) = e^(-eps k) is what double geometric noise is made of. Its table (``alias``) has the
outcomes 0, 1, ..., n - 2 and "at least n - 1", to which another draw is added: the law has no memory.

For small eps the digits of G are used: with q = 2^j, G = q H + R, where H is geometric with q eps, R has the geometric
law cut off at q, and the two are independent. So a word is two draws, or one: H in its upper half and R in its lower.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from keepsum.sampling.core.alias import AliasTable
from keepsum.sampling.core.balls import ball
from keepsum.sampling.core.kernel_arguments import HALF_BITS, PAIR_BITS, GeometricTable
from keepsum.sampling.core.rng import Stream

WORD_BITS = 64
COLUMN_BITS = 8  # of a column of the table
LEAST_DIGITS = 2  # that are left to choose between the outcomes of a column
_SHORT = Fraction(1, 20)  # with eps of at least this, "at least 255" has a chance below 3e-6


class Geometric:
    """The geometric law with P(G >= k) = exp(-eps k), and its tables.

    Parameters
    ----------
    epsilon
        Any positive rational.
    word_bits
        How many bits of a word a comparison sees, of half a word at most 32; fewer than 64 only to test that ties are
        settled rightly.

    Guarantee
    ---------
    Exact: the kernels decide by exact thresholds, ``resolve`` settles ties with as many digits as they need.
    ``tests/statistical/test_geometric.py``.
    """

    def __init__(self, epsilon: Fraction, word_bits: int = WORD_BITS) -> None:
        self.epsilon = epsilon
        self.word_bits = word_bits
        low_bits = 0
        while epsilon * 2**low_bits < _SHORT:
            low_bits += 1
        self.low_bits = low_bits
        self.digits = max(min(HALF_BITS, word_bits), low_bits + LEAST_DIGITS)
        column_bits = min(COLUMN_BITS, self.digits - LEAST_DIGITS)
        self._last = 2**column_bits - 1
        self._high = AliasTable(lambda: _shares(epsilon * 2**low_bits, self._last + 1), column_bits, self.digits)
        self._low = AliasTable(lambda: _cut_shares(epsilon, 2**low_bits), low_bits, self.digits)
        none = np.empty(0, dtype=np.uint32)
        self.table = GeometricTable(
            high=self._high.thresholds,
            high_others=self._high.others,
            low=self._low.thresholds if low_bits else none,
            low_others=self._low.others if low_bits else none.astype(np.uint16),
            last=self._last,
            low_bits=low_bits,
            digits=self.digits,
            high_width=self.digits - column_bits,
            low_width=self.digits - low_bits,
            shift=WORD_BITS - word_bits,
        )

    def resolve(self, word: int, extra: Stream) -> int:
        """What a word with a tie, or with the table's last outcome, comes to: two draws as one number, or one draw."""
        upper, lower = word >> (WORD_BITS - self.digits), (word & (2**HALF_BITS - 1)) >> (HALF_BITS - self.digits)
        if self.low_bits:
            return (self._geometric(upper, extra) << self.low_bits) + self._low.settle(lower, extra)
        return (self._geometric(upper, extra) << PAIR_BITS) + self._geometric(lower, extra)

    def _geometric(self, number: int, extra: Stream) -> int:
        """A draw with the first table: each time that it is the last outcome or more, another one is added."""
        value = self._high.settle(number, extra)
        if value < self._last:
            return value
        return value + self._geometric(extra.bits(self.digits), extra)


@lru_cache(maxsize=64)
def geometric(epsilon: Fraction, word_bits: int = WORD_BITS) -> Geometric:
    """The law for an epsilon, made once."""
    return Geometric(epsilon, word_bits)


def _shares(epsilon: Fraction, count: int) -> Sequence[arb]:
    """P(G = k) for all k but the last, and P(G >= k) for that, times their number."""
    stays = ball(-epsilon).exp()
    powers = _powers(stays, count)
    return [count * power * (1 - stays) for power in powers[:-1]] + [count * powers[-1]]


def _cut_shares(epsilon: Fraction, count: int) -> Sequence[arb]:
    """P(G = k | G < count) times their number."""
    stays = ball(-epsilon).exp()
    factor = count * (1 - stays) / -(ball(-epsilon * count).expm1())
    return [factor * power for power in _powers(stays, count)]


def _powers(base: arb, count: int) -> list[arb]:
    powers = [arb(1)]
    while len(powers) < count:
        powers.append(powers[-1] * base)
    return powers
