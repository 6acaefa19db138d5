"""Laws on 0, 1, 2, ... drawn by one word against a table of exact thresholds.

A word is the start of the binary digits of a uniform U, and the draw is the smallest k with U < F(k). The table holds
floor(2^w F(k)): a word below it decides "yes", one above "no", and a word equal to it is a tie that more digits settle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from flint import arb

from keepsum.sampling.core.balls import precision
from keepsum.sampling.core.kernel_arguments import WORD_BITS, Guide, PackedTables, Words
from keepsum.sampling.core.rng import LazyUniform, Stream

_GUIDE_BITS = 10


class TabulatedLaw(ABC):
    """A law given by its weights, and its table; a subclass says what the weights are.

    Guarantee
    ---------
    Exact: thresholds by ball arithmetic, ties settled by ``resolve``. ``tests/statistical/test_sums.py`` and
    ``tests/statistical/test_gaussian.py``.
    """

    def __init__(self, word_bits: int = WORD_BITS) -> None:
        self.word_bits = word_bits
        self.table = self._thresholds()
        self.guide = guide_of(self.table, word_bits, guide_bits_of(word_bits))

    @abstractmethod
    def partial_weights(self, bits: int) -> tuple[list[arb], arb]:
        """The weights of k <= 0, k <= 1, ... until the rest is below 2^-bits of them, and of all k, as balls."""

    def resolve(self, word: int, extra: Stream) -> int:
        """A draw whose word ties with a threshold: the same comparison with more digits."""
        bits = word >> (WORD_BITS - self.word_bits)
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
            thresholds = []
            with precision(self.word_bits + 2 * extra):
                for share in shares:
                    floor = (share * arb(2) ** self.word_bits).floor().unique_fmpz()
                    if floor is None:
                        break
                    thresholds.append(int(floor))
                    if thresholds[-1] == 2**self.word_bits - 1:
                        return np.array(thresholds, dtype=np.uint64)
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
        sums, whole = self.partial_weights(bits)
        with precision(bits + 64):
            return [part / whole for part in sums]


def pack(laws: Sequence[TabulatedLaw], word_bits: int) -> tuple[PackedTables, list[int], list[int]]:
    """The tables of several laws one behind the other, and where each table and each guide starts."""
    tables = [law.table for law in laws] or [np.empty(0, dtype=np.uint64)]
    guides = [law.guide for law in laws] or [np.empty(0, dtype=np.uint16)]
    packed = PackedTables(
        np.concatenate(tables),
        np.concatenate(guides),
        WORD_BITS - word_bits,
        word_bits - guide_bits_of(word_bits),
    )
    table_starts = np.cumsum([0, *(len(table) for table in tables[:-1])])
    guide_starts = np.cumsum([0, *(len(guide) for guide in guides[:-1])])
    return packed, table_starts.tolist(), guide_starts.tolist()


def guide_bits_of(word_bits: int) -> int:
    """How many bits of a word choose its place in a guide."""
    return min(_GUIDE_BITS, word_bits)


def guide_of(table: Words, word_bits: int, guide_bits: int) -> Guide:
    """For each value of a word's first bits, the first threshold that such a word can reach."""
    starts = np.arange(2**guide_bits, dtype=np.uint64) << np.uint64(word_bits - guide_bits)
    return np.searchsorted(table, starts).astype(np.uint16)
