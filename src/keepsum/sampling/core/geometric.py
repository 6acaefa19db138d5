"""Exact geometric draws: one word against a table of exact thresholds.

The geometric law P(G >= k) = e^(-eps k) is what double geometric noise is made of. A word of w bits is the start of
the binary digits of a uniform U, and G is the smallest k with U < F(k). The table holds floor(2^w F(k)): a word
below it decides "yes", one above "no", and a word equal to it is a tie that more digits must settle.

For small eps the digits of G are used: with q = 2^j, G = q H + R, where H is geometric with q eps, R has the geometric
law cut off at q, and the two are independent. Two short tables then replace a long one.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from keepsum.sampling.core.balls import ball, digits, floor_exact, precision
from keepsum.sampling.core.kernel_arguments import GeometricTable, Guide, Words
from keepsum.sampling.core.rng import LazyUniform, Stream

WORD_BITS = 64
_GUIDE_BITS = 10
_SHORT = Fraction(1, 20)  # with eps of at least this the table has at most 888 thresholds


class Geometric:
    """The geometric law with P(G >= k) = exp(-eps k), and its table.

    Parameters
    ----------
    epsilon
        Any positive rational.
    word_bits
        How many bits of a word a comparison sees; fewer than 64 only to test that ties are settled rightly.

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
        size = 2**low_bits
        high = _thresholds(lambda k: _cdf(epsilon * size, k, None), word_bits, None)
        low = _thresholds(lambda k: _cdf(epsilon, k, size), word_bits, size) if low_bits else high[:0]
        guide_bits = guide_bits_of(word_bits)
        self.table = GeometricTable(
            high=high,
            high_guide=guide_of(high, word_bits, guide_bits),
            low=low,
            low_guide=guide_of(low, word_bits, guide_bits) if low_bits else np.empty(0, dtype=np.uint16),
            low_bits=low_bits,
            shift=WORD_BITS - word_bits,
            guide_shift=word_bits - guide_bits,
        )

    @property
    def words_per_draw(self) -> int:
        """How many words a draw takes."""
        return 2 if self.low_bits else 1

    def resolve(self, words: Words, extra: Stream) -> int:
        """A draw whose words tie with a threshold: the same comparison with more digits."""
        size = 1 << self.low_bits
        high = self._settle(int(words[0]), extra, self.table.high, lambda k: _cdf(self.epsilon * size, k, None))
        if not self.low_bits:
            return high
        low = self._settle(int(words[1]), extra, self.table.low, lambda k: _cdf(self.epsilon, k, size))
        return high * size + low

    def _settle(self, word: int, extra: Stream, table: Words, cdf: Callable[[int], arb]) -> int:
        bits = word >> (WORD_BITS - self.word_bits)
        uniform = LazyUniform(extra, bits, self.word_bits)
        k = int(np.searchsorted(table, np.uint64(bits)))
        while not uniform.below(digits(lambda k=k: cdf(k))):  # type: ignore[misc]
            k += 1
        return k


@lru_cache(maxsize=64)
def geometric(epsilon: Fraction, word_bits: int = WORD_BITS) -> Geometric:
    """The law for an epsilon, made once."""
    return Geometric(epsilon, word_bits)


def guide_bits_of(word_bits: int) -> int:
    """How many bits of a word choose its place in a guide."""
    return min(_GUIDE_BITS, word_bits)


def _cdf(epsilon: Fraction, k: int, size: int | None) -> arb:
    """P(G <= k), G geometric, or cut off below ``size``."""
    if size is not None and k >= size - 1:
        return arb(1)
    whole = arb(1) if size is None else -(ball(-epsilon * size)).expm1()
    return -(ball(-epsilon * (k + 1))).expm1() / whole


def _thresholds(cdf: Callable[[int], arb], word_bits: int, size: int | None) -> Words:
    """floor(2^w F(k)) for k = 0, 1, ... until all words lie below the last one or tie with it."""
    last = 2**word_bits - 1
    thresholds: list[int] = []
    with precision(word_bits + 64):
        while not thresholds or thresholds[-1] < last:
            k = len(thresholds)
            if size is not None and k == size - 1:
                thresholds.append(last)  # F = 1: nothing lies above, so the tie at the last word is none in truth
                break
            thresholds.append(floor_exact(lambda k=k: cdf(k), word_bits))  # type: ignore[misc]
    return np.array(thresholds, dtype=np.uint64)


def guide_of(table: Words, word_bits: int, guide_bits: int) -> Guide:
    """For each value of a word's first bits, the first threshold that such a word can reach."""
    starts = np.arange(2**guide_bits, dtype=np.uint64) << np.uint64(word_bits - guide_bits)
    return np.searchsorted(table, starts).astype(np.uint16)
