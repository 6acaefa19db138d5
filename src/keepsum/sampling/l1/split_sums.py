"""The sums of the parts of a region, given the sum of all: exact, without drawing any cell.

Cells of a region that is too large to be filled in one go are cut into parts, and the parts are filled given their sums
(``forced_sums``). With p_n the law of the sum of n cells (``sum_laws``), the left of two parts of a and b cells has the
sum u with a chance proportional to p_a(u) p_b(y - u), y being the sum of both. That is log-concave in u, and is drawn
by the envelope of ``focus/envelopes``, with every comparison decided in ball arithmetic. Many parts are halved first.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import arb, ctx

from keepsum._arrays import IntArray
from keepsum.sampling.core.balls import ball, digits, precision
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream
from keepsum.sampling.l1.sum_laws import sum_law

LEAST_BITS = 128
RISE = Fraction(1, 2**41)  # by which the weights beside m may exceed that of m; see ``focus/envelopes``
GAUSSIAN_HALF = 1.2  # deviations at which a Gaussian has fallen to about half: where a block may end
PEAK_ROOM = Fraction(1001, 1000)  # more than (1 + RISE)^b, for blocks b up to 2^30


class SumSplit:
    """The law of the sum of the first of two parts, given the sum of both.

    Guarantee
    ---------
    Exact: P(u) is proportional to p_a(u) p_b(y - u). ``tests/statistical/test_split_sums.py``.
    """

    def __init__(self, epsilon: Fraction, left: int, right: int, total: int) -> None:
        self._left, self._right, self._total = sum_law(left, epsilon), sum_law(right, epsilon), total
        self._weights: dict[tuple[int, int], arb] = {}
        share = left * right / (left + right)
        wide = max(1, math.ceil(GAUSSIAN_HALF * math.sqrt(share * 0.5) / math.sinh(float(epsilon) / 2)))
        self._middle, self._block = self._envelope(total * left // (left + right), wide)

    def draw(self, stream: Stream) -> int:
        """The sum of the first part."""
        while True:
            upward, step = stream.bits(1), 0
            while not stream.bits(1):
                step += 1
            distance = step * self._block + stream.below(self._block)
            u = self._middle + distance if upward else self._middle - 1 - distance
            if self._accepts(u, step, LazyUniform(stream)):
                return u

    def _accepts(self, u: int, step: int, uniform: LazyUniform) -> bool:
        """Whether u is accepted, which lies in block ``step``."""
        return uniform.below(digits(lambda: 2**step * self._weight(u) / (self._weight(self._middle) * ball(PEAK_ROOM))))

    def _weight(self, u: int) -> arb:
        """p_a(u) p_b(y - u), times a constant, as a ball of the precision at hand."""
        key = u, ctx.prec
        if key not in self._weights:
            self._weights[key] = self._left.ratio(u) * self._right.ratio(self._total - u)
        return self._weights[key]

    def _envelope(self, guess: int, block: int) -> tuple[int, int]:
        """A sum m near the mode, and a length b at which weights have halved: both proved, with enough digits."""
        bits = LEAST_BITS
        while True:
            with precision(bits):
                middle = self._mode(guess)
                here, beside = self._weight(middle), [self._weight(middle + step) for step in (1, -1)]
                if all(bool(weight <= here * (1 + ball(RISE))) for weight in beside):
                    while not all(bool(2 * self._weight(middle + step) <= here) for step in (block, -block)):
                        block *= 2
                    return middle, block
            bits *= 2

    def _mode(self, start: int) -> int:
        """Where weights stop to rise, as far as the digits at hand tell: by steps that double, and then halve."""
        for side in (1, -1):
            place, step = start, 1
            while bool(self._weight(place + side * step) > self._weight(place)):
                place, step = place + side * step, 2 * step
            while step > 1:
                step //= 2
                if bool(self._weight(place + side * step) > self._weight(place)):
                    place += side * step
            start = place
        return start


def split_sums(epsilon: Fraction, sizes: IntArray, total: int, rng: Rng) -> IntArray:
    """The sums of the parts of a region, given the sum of all.

    Examples
    --------
    >>> from keepsum.sampling.core.rng import rng
    >>> sums = split_sums(Fraction(1, 2), np.array([100, 50, 7]), 3, rng(seed=1))
    >>> len(sums), int(sums.sum())
    (3, 3)
    """
    stream, ends = rng.stream(), np.concatenate([[0], np.cumsum(sizes)])
    sums = np.empty(len(sizes), dtype=np.int64)
    waiting = [(0, len(sizes), total)]
    while waiting:
        first, last, whole = waiting.pop()
        if last - first == 1:
            sums[first] = whole
            continue
        half = (first + last) // 2
        left, right = int(ends[half] - ends[first]), int(ends[last] - ends[half])
        drawn = SumSplit(epsilon, left, right, whole).draw(stream)
        waiting += [(half, last, whole - drawn), (first, half, drawn)]
    return sums
