"""A bridge: the parts of all rows at a node, given that they add up to 0.

All rows but one are drawn freely, that one is solved for and accepted with its weight over its peak; otherwise all
rows are drawn again. Many tries are made at a time, and the first that succeeds counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.geometric import WORD_BITS
from keepsum.sampling.core.kernels import ACCEPT_BITS
from keepsum.sampling.core.rng import LazyUniform, Stream, Words
from keepsum.sampling.l1.layers.laws import RowLaw, Split, draw_parts, solved_chances

TRIES = 1.5  # tries made at a time, for each that is expected to be needed
MOST_PARTS = 10**5  # parts that are drawn at a time


@dataclass(frozen=True)
class Digits:
    """Uniform numbers of which so many digits are known, and where further digits come from."""

    stream: Stream
    count: int

    @classmethod
    def of(cls, stream: Stream, word_bits: int) -> Digits:
        """Digits of words of so many bits."""
        return cls(stream, min(ACCEPT_BITS, word_bits))

    @property
    def unit(self) -> float:
        """The width of the interval in which a number is known to lie."""
        return float(2.0**-self.count)

    def lows(self, words: Words) -> Floats:
        """The lower ends of the intervals."""
        lows: Floats = (words >> np.uint64(WORD_BITS - self.count)).astype(np.float64) * self.unit
        return lows

    def lazy(self, word: int) -> LazyUniform:
        """The number itself, for a referee."""
        return LazyUniform(self.stream.extra, word >> (WORD_BITS - self.count), self.count)

    def below(self, low: float, high: float, referee: Callable[[LazyUniform], bool]) -> bool:
        """Whether a new number lies below a real between ``low`` and ``high``, which the referee knows."""
        word = self.stream.word()
        number = (word >> (WORD_BITS - self.count)) * self.unit
        if number + self.unit <= low:
            return True
        return number < high and referee(self.lazy(word))


@dataclass(frozen=True)
class BridgeReferee:
    """Who settles what floats leave open: a part of a row, and whether the part of the row solved for is accepted."""

    draw: Callable[[RowLaw, LazyUniform], IntArray]
    accept: Callable[[RowLaw, IntArray, LazyUniform], bool]


def tries_at_once(rows: int, dimensions: int) -> int:
    """How many tries are made at a time: about as many as are needed, r^(d/2)."""
    return int(max(2, min(np.ceil(TRIES * rows ** (dimensions / 2)), MOST_PARTS // rows)))


def draw_bridge(
    split: Split, laws: Sequence[RowLaw], digits: Digits, tries: int, referee: BridgeReferee
) -> tuple[IntArray, int]:
    """The parts of all rows, their stored coordinates; and the number of tries."""
    solved = int(np.argmin([law.peak_chance for law in laws]))
    rows, box = len(laws), split.box
    members: dict[int, list[int]] = {}
    for i, law in enumerate(laws):
        if i != solved:
            members.setdefault(id(law), []).append(i)
    failed = 0
    while True:
        words = digits.stream.take(tries * rows).reshape(tries, rows)
        lows = digits.lows(words)
        parts = np.zeros((tries, rows, box.dimensions), dtype=np.int64)
        certain = np.ones((tries, rows), dtype=bool)
        for alike in members.values():
            drawn, known = draw_parts(laws[alike[0]], box, lows[:, alike].reshape(-1), digits.unit)
            parts[:, alike] = drawn.reshape(tries, len(alike), -1)
            certain[:, alike] = known.reshape(tries, len(alike))
        parts[:, solved] = -parts.sum(axis=1)
        low, high = solved_chances(laws[solved], split, parts[:, solved])
        number, known = lows[:, solved], certain.all(axis=1)
        accepted = known & (number + digits.unit <= low)
        rejected = known & (number >= high)
        for k in np.flatnonzero(~rejected).tolist():
            if accepted[k] or _settle(split, laws, solved, parts[k], certain[k], words[k], digits, referee):
                return parts[k], failed + k + 1
        failed += tries


def _settle(
    split: Split,
    laws: Sequence[RowLaw],
    solved: int,
    parts: IntArray,
    certain: Sequence[bool],
    words: Words,
    digits: Digits,
    referee: BridgeReferee,
) -> bool:
    """Whether a try is accepted that floats did not decide; its parts are put right."""
    for i, known in enumerate(certain):
        if not known:
            parts[i] = referee.draw(laws[i], digits.lazy(int(words[i])))
    parts[solved] = 0
    parts[solved] = -parts.sum(axis=0)
    low, high = solved_chances(laws[solved], split, parts[solved][None, :])
    number = float(digits.lows(words[solved : solved + 1])[0])
    if number + digits.unit <= low[0]:
        return True
    return bool(number < high[0]) and referee.accept(laws[solved], parts[solved], digits.lazy(int(words[solved])))
