"""A bridge: the parts of all rows at a node, given that they add up to 0.

All rows but one are drawn freely, that one is solved for and accepted with its weight over its peak; otherwise all
rows are drawn again. Many tries are made at a time, and the first that succeeds counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from keepsum._arrays import BoolArray, Floats, IntArray
from keepsum.sampling.core.kernel_arguments import ACCEPT_BITS, WORD_BITS
from keepsum.sampling.core.rng import LazyUniform, Stream, Words
from keepsum.sampling.l1.layers.laws import NUMBER_BITS, RowLaw, Split, part_weights, pick_parts
from keepsum.sampling.l1.splitting.weights import ULP

TRIES = 1.5  # tries made at a time, for each that is expected to be needed
MOST_PARTS = 10**5  # parts that are drawn at a time


@dataclass(frozen=True)
class Digits:
    """Uniform numbers of which so many digits are known at first, and where all digits come from."""

    stream: Stream
    count: int

    @classmethod
    def of(cls, stream: Stream, word_bits: int) -> Digits:
        """The digits of words of so many bits."""
        return cls(stream, min(ACCEPT_BITS, word_bits))

    def below(self, low: Floats, high: Floats, referee: Callable[[int, LazyUniform], bool]) -> BoolArray:
        """For each pair of bounds, whether a new number lies below a real between them, which the referee knows."""
        words: Words = self.stream.take(len(low)) >> np.uint64(WORD_BITS - self.count)
        numbers, unit = words.astype(np.float64) * 2.0**-self.count, 2.0**-self.count
        answers: BoolArray = numbers + unit <= low
        for k in np.flatnonzero(~answers & (numbers < high)).tolist():
            answers[k] = referee(k, LazyUniform(self.stream.extra, int(words[k]), self.count))
        return answers


@dataclass(frozen=True)
class PartsReferee:
    """Who settles what floats leave open about a row.

    ``accept(y, u, top, uniform)`` is whether the part u is accepted by its weight over ``top``;
    ``draw_outside(law, uniform)`` is a part outside the box, or None where none is accepted.
    """

    accept: Callable[[IntArray, IntArray, Fraction, LazyUniform], bool]
    draw_outside: Callable[[RowLaw, LazyUniform], IntArray | None]


def tries_at_once(rows: int, dimensions: int) -> int:
    """How many tries are made at a time: about as many as are needed, r^(d/2)."""
    return int(max(2, min(np.ceil(TRIES * rows ** (dimensions / 2)), MOST_PARTS // rows)))


def draw_bridge(
    split: Split, laws: Sequence[RowLaw], digits: Digits, tries: int, referee: PartsReferee
) -> tuple[IntArray, int]:
    """The parts of all rows, their stored coordinates; and the number of tries that were made, those behind it too."""
    # Rounded, so that the last digits of floats, which differ between processors, do not decide between equal rows.
    solved = int(np.argmin(np.round(np.log2([law.peak_chance for law in laws]), 6)))
    alike: dict[bytes, list[int]] = {}  # by their vectors, so that the same seed gives the same draws
    for i, law in enumerate(laws):
        if i != solved:
            alike.setdefault(law.y.tobytes(), []).append(i)
    failed = 0
    while True:
        parts = np.zeros((tries, len(laws), split.box.dimensions), dtype=np.int64)
        for rows in alike.values():
            drawn = draw_parts(split, laws[rows[0]], digits, tries * len(rows), referee)
            parts[:, rows] = drawn.reshape(tries, len(rows), -1)
        parts[:, solved] = -parts.sum(axis=1)
        accepted = accept_solved(split, laws[solved], digits, parts[:, solved], referee)
        if accepted.any():
            first = int(accepted.argmax())
            return parts[first], failed + tries
        failed += tries


def draw_parts(split: Split, law: RowLaw, digits: Digits, count: int, referee: PartsReferee) -> IntArray:
    """So many parts of a row, independent of each other."""
    box = split.box
    parts = np.empty((count, box.dimensions), dtype=np.int64)
    waiting = np.arange(count)
    while len(waiting):
        numbers = (digits.stream.take(len(waiting)) >> np.uint64(WORD_BITS - NUMBER_BITS)).astype(np.int64)
        places, envelopes = pick_parts(law, box, numbers)
        picked = np.stack(np.unravel_index(places, box.shape), axis=1) - box.reach
        accepted = _accept_picked(split, law, digits, picked, envelopes, referee)
        outside = (numbers >= law.upto[-1]) & (numbers - law.upto[-1] < 2**law.outside_bits)
        for k in np.flatnonzero(outside).tolist():
            known = LazyUniform(digits.stream.extra, int(numbers[k] - law.upto[-1]), law.outside_bits)
            part = referee.draw_outside(law, known)
            if part is not None:
                picked[k], accepted[k] = part, True
        parts[waiting[accepted]] = picked[accepted]
        waiting = waiting[~accepted]
    return parts


def _accept_picked(
    split: Split, law: RowLaw, digits: Digits, picked: IntArray, envelopes: IntArray, referee: PartsReferee
) -> BoolArray:
    """Whether parts are accepted by their weights over their envelopes; those without one are not."""
    inside = envelopes > 0
    lower, upper = part_weights(split, law, picked)
    factors = np.where(inside, law.scale / np.maximum(envelopes, 1), 0.0)
    scale = Fraction(law.scale)

    def settle(k: int, uniform: LazyUniform) -> bool:
        return bool(inside[k]) and referee.accept(law.y, picked[k], int(envelopes[k]) / scale, uniform)

    return digits.below(lower * factors * (1 - 8 * ULP), upper * factors * (1 + 8 * ULP), settle)


def accept_solved(split: Split, law: RowLaw, digits: Digits, parts: IntArray, referee: PartsReferee) -> BoolArray:
    """Whether the parts that were solved for are accepted, by their weights over the peak."""
    lower, upper = part_weights(split, law, parts)

    def settle(k: int, uniform: LazyUniform) -> bool:
        return referee.accept(law.y, parts[k], Fraction(law.peak), uniform)

    return digits.below(lower / law.peak * (1 - 8 * ULP), upper / law.peak * (1 + 8 * ULP), settle)
