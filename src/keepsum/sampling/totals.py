"""The total of the positive parts of a small region whose noise has sum 0, drawn by one word.

Given sum 0, both the positive and the negative parts of double geometric noise have the same total N, with weight
C(N + n - 1, n - 1)^2 e^(-2 eps N). For small regions this law has a short table of certified thresholds, like a
geometric one.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from flint import arb

from keepsum.sampling.certified import ball, precision
from keepsum.sampling.geometric import WORD_BITS, Guide, guide_bits_of, guide_of
from keepsum.sampling.rng import LazyUniform, Stream, Words


class TotalTables(NamedTuple):
    """The tables of several sizes, one behind the other, as the kernels read them."""

    table: Words
    guide: Guide
    shift: int
    guide_shift: int


class TotalLaw:
    """The law of N for a region of n cells, and its table.

    Guarantee
    ---------
    Exact: certified thresholds, ties settled by ``resolve``. ``tests/statistical/test_sums.py``.
    """

    words_per_draw = 1

    def __init__(self, size: int, epsilon: Fraction, word_bits: int = WORD_BITS) -> None:
        self.size, self.epsilon, self.word_bits = size, epsilon, word_bits
        self.table = self._thresholds()
        self.guide = guide_of(self.table, word_bits, guide_bits_of(word_bits))

    def resolve(self, words: Words, extra: Stream) -> int:
        """A draw whose word ties with a threshold: the same comparison with more digits."""
        bits = int(words[0]) >> (WORD_BITS - self.word_bits)
        uniform = LazyUniform(extra, bits, self.word_bits)
        k = int(np.searchsorted(self.table, np.uint64(bits)))
        while not uniform.below(lambda digits, k=k: self._enclosure(k, digits)):  # type: ignore[misc]
            k += 1
        return k

    def _thresholds(self) -> Words:
        """floor(2^w F(k)) until all words lie below the last one or tie with it."""
        extra = 64
        while True:
            shares = self._shares(self.word_bits + extra)
            found = []
            with precision(self.word_bits + 2 * extra):
                for share in shares:
                    floor = (share * arb(2) ** self.word_bits).floor().unique_fmpz()
                    if floor is None:
                        break
                    found.append(int(floor))
                    if found[-1] == 2**self.word_bits - 1:
                        return np.array(found, dtype=np.uint64)
            extra *= 2

    def _enclosure(self, k: int, bits: int) -> tuple[int, int]:
        """Integers around 2^bits F(k)."""
        extra = 64
        while True:
            shares = self._shares(bits + extra)
            with precision(bits + 2 * extra):
                share = shares[min(k, len(shares) - 1)]
                low = (share * arb(2) ** bits).floor().unique_fmpz()
            if low is not None and k < len(shares):
                return int(low), int(low) + 1
            extra *= 2

    def _shares(self, bits: int) -> list[arb]:
        """F(0), F(1), ... as balls, as far as they differ from 1 by 2^-bits."""
        sums, whole = _partial_weights(self.size, self.epsilon, bits)
        with precision(bits + 64):
            return [part / whole for part in sums]


def whole_weight(size: int, epsilon: Fraction, bits: int) -> arb:
    """The sum over N of C(N + n - 1, n - 1)^2 e^(-2 eps N), to about 2^-bits."""
    return _partial_weights(size, epsilon, bits)[1]


def _partial_weights(size: int, epsilon: Fraction, bits: int) -> tuple[list[arb], arb]:
    """The weights of N <= 0, N <= 1, ... until the rest is below 2^-bits of them, and of all N, as balls."""
    with precision(bits + 64):
        a2 = ball(-2 * epsilon).exp()
        weight, total = arb(1), arb(1)
        sums = [total]
        k = 0
        while True:
            weight *= (arb(k + size) / (k + 1)) ** 2 * a2
            k += 1
            # The ratio of weights falls with k, so once it is below 1 the rest is at most a geometric series.
            following = (arb(k + size) / (k + 1)) ** 2 * a2
            if following < 1:
                rest = weight / (1 - following)
                if rest < total * arb(2) ** -bits:
                    return sums, total + rest * (arb(1) / 2 + arb(0, 0.5))  # between total and total + rest
            total += weight
            sums.append(total)


@lru_cache(maxsize=512)
def total_law(size: int, epsilon: Fraction, word_bits: int = WORD_BITS) -> TotalLaw:
    """The law for a size and an epsilon, made once."""
    return TotalLaw(size, epsilon, word_bits)


def pack(laws: Sequence[TotalLaw], word_bits: int) -> tuple[TotalTables, list[int], list[int]]:
    """The tables of several laws one behind the other, and where each table and each guide starts."""
    tables = [law.table for law in laws] or [np.empty(0, dtype=np.uint64)]
    guides = [law.guide for law in laws] or [np.empty(0, dtype=np.uint16)]
    packed = TotalTables(
        np.concatenate(tables),
        np.concatenate(guides),
        WORD_BITS - word_bits,
        word_bits - guide_bits_of(word_bits),
    )
    table_starts = np.cumsum([0, *(len(table) for table in tables[:-1])])
    guide_starts = np.cumsum([0, *(len(guide) for guide in guides[:-1])])
    return packed, table_starts.tolist(), guide_starts.tolist()
