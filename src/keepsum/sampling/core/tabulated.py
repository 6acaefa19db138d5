"""Laws on a few or on all whole numbers, drawn with one look into a table, as exactly as with real numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from keepsum._arrays import IntArray
from keepsum.sampling.core.balls import digits, precision
from keepsum.sampling.core.kernel_arguments import OUTCOME_BITS, WORD_BITS, Guide, PackedTables, Words
from keepsum.sampling.core.rng import LazyUniform, Stream

# Laws of n outcomes drawn with one look into a table, as exactly as with real numbers (Walker's alias method).
#
# With n = 2^b columns, b random bits choose a column, and a uniform number chooses between the two outcomes that
# share it: the column's own if it is below what that one keeps, else the other. What a column keeps is a real number
# x, known as a ball to any precision. The table holds floor(2^w x): w digits below it or above it decide, and equal
# ones are a tie, which more digits must settle.


START_BITS = 256  # of the balls that decide which outcomes share a column


@dataclass(frozen=True, eq=False)
class AliasTable:
    """A law of 2^b outcomes.

    Attributes
    ----------
    shares
        The probabilities times the number of outcomes, as balls of the precision at hand: irrational numbers.
    column_bits
        b.
    digits
        How many random bits a draw has, those of the column included.
    length
        How many it has if all of them are used: fewer are used only to test that ties are settled rightly.
    """

    shares: Callable[[], Sequence[arb]]
    column_bits: int
    digits: int
    length: int

    @cached_property
    def steps(self) -> list[tuple[int, int]]:
        """For each column in turn that keeps less than 1, its outcome and the one that it is shared with."""
        bits = START_BITS
        while True:
            with precision(bits):
                steps = _steps(list(self.shares()))
            if steps is not None:
                return steps
            bits *= 2

    @cached_property
    def others(self) -> npt.NDArray[np.uint16]:
        """The outcome that each column is shared with; itself for one that is not."""
        others = np.arange(2**self.column_bits, dtype=np.uint16)
        for column, other in self.steps:
            others[column] = other
        return others

    @cached_property
    def thresholds(self) -> Words:
        """floor(2^w x) for each column, x what it keeps; 2^w for the column that is not shared."""
        width = self.digits - self.column_bits
        bits = START_BITS
        while True:
            with precision(bits):
                floors = [(share * 2**width).floor().unique_fmpz() for share in self._kept()]
            if None not in floors:
                return np.array([int(floor) for floor in floors], dtype=np.uint64)
            bits *= 2

    def columns(self, values: IntArray) -> Words:
        """A column as the kernels read it: what it keeps, what its own outcome stands for, and what the other does.

        What it keeps has as many digits as a draw of half a word leaves to it. A column that keeps all of it, 1, is
        entered as 0: its outcomes are the same.
        """
        mask = np.uint64(2**OUTCOME_BITS - 1)
        own, other = (values[outcomes].astype(np.uint64) & mask for outcomes in (slice(None), self.others))
        kept = self.thresholds & np.uint64(2 ** (self.digits - self.column_bits) - 1)
        aligned = kept << np.uint64(self.length - self.digits)
        packed: Words = aligned << np.uint64(2 * OUTCOME_BITS) | own << np.uint64(OUTCOME_BITS) | other
        return packed

    def settle(self, number: int, extra: Stream) -> int:
        """The outcome of so many digits, with more of them where they do not decide."""
        width = self.digits - self.column_bits
        column = number >> width
        uniform = LazyUniform(extra, number & (2**width - 1), width)
        return column if uniform.below(digits(lambda: self._kept()[column])) else int(self.others[column])

    def _kept(self) -> list[arb]:
        """What each column keeps, with the precision at hand."""
        if ctx.prec not in self._known:
            self._known[ctx.prec] = _kept(self.shares(), self.steps)
        return self._known[ctx.prec]

    @cached_property
    def _known(self) -> dict[int, list[arb]]:
        return {}


def _steps(shares: Sequence[arb]) -> list[tuple[int, int]] | None:
    """Which columns are shared with what: each that has less than 1 with one that has more; None if balls are too wide.

    All shares add up to the number of columns, so that the last one is left with 1.
    """
    rest = list(shares)
    steps: list[tuple[int, int]] = []
    small = [k for k, share in enumerate(rest) if share < 1]
    large = [k for k, share in enumerate(rest) if share > 1]
    while len(steps) < len(rest) - 1:
        if not small or not large:
            return None
        column, other = small.pop(), large[-1]
        steps.append((column, other))
        rest[other] += rest[column] - 1
        if rest[other] < 1:
            small.append(large.pop())
        elif not rest[other] > 1:
            large.pop()
    return steps


def _kept(shares: Sequence[arb], steps: Sequence[tuple[int, int]]) -> list[arb]:
    """What each column keeps: its share when its turn comes, and 1 for the last."""
    rest = list(shares)
    for column, other in steps:
        rest[other] += rest[column] - 1
    rest[steps[-1][1]] = arb(1)
    return rest


# Laws on 0, 1, 2, ... drawn by one word against a table of exact thresholds.
#
# A word is the start of the binary digits of a uniform U, and the draw is the smallest k with U < F(k). The table
# holds floor(2^w F(k)): a word below it decides "yes", one above "no", and a word equal to it is a tie that more
# digits settle.


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
