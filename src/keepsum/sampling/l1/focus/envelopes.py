"""What parts of a sum are drawn by.

Given the sum y of two parts with weights L and R, the left part is u with a chance proportional to
p(u) = L(u) R(y - u), which is log-concave in u. Take m near its mode and a length b with p(m + b) <= p(m) / 2 and
p(m - b) <= p(m) / 2. Then p halves with every b further on, and

    p(m + x), p(m - 1 - x)  <=  peak 2^-k    for k b <= x < (k + 1) b,

for any peak of at least max p. So draw a side, k = 0, 1, 2, ... with chance 2^-(k + 1), and x in its block uniformly;
and accept with p(u) 2^k / peak. That takes 4 b peak / (sum of p) tries on average: 1.9 for a Gaussian p, 1.4 for
e^-|u|, 4 if all weight is at m. Tables have an entry for each y, not for each y and u.

If p(m + 1) and p(m - 1) exceed p(m) by a share of at most r, no p(m + j) exceeds p(m) (1 + r)^|j|, and those with
|j| >= b are smaller than p(m): so peak = p(m) (1 + r)^b will do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from keepsum._arrays import BoolArray, Floats, IntArray
from keepsum.sampling.l1.focus.kernel_arguments import ROUNDING
from keepsum.sampling.l1.focus.laws import FloatLaw

RISE = 2.0**-41  # r; blocks are shorter than 2^30
PEAK_ROOM = 1.001  # more than (1 + r)^b and the rounding of peaks
LONGEST_BLOCK = 2**30


@dataclass(frozen=True, eq=False)
class Envelope:
    """m, b and the peak for y = 0, 1, ..., which are as many as there are bounds for."""

    middle: IntArray
    block: IntArray
    peak: Floats


NOTHING = Envelope(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))


def envelope(left: FloatLaw, right: FloatLaw, reach: int) -> Envelope:
    """How sums split, for y = 0 to ``reach`` or as far as errors are small."""
    y = np.arange(reach + 1)
    middle = _modes(left, right, reach)
    least, most = _lower(left, right, y, middle), _upper(left, right, y, middle)
    for step in () if left is right else (1, -1):  # parts that are alike have the mode y / 2
        most = np.maximum(most, _upper(left, right, y, middle + step))
    known = np.cumprod(most <= least * (1 + RISE)).astype(bool)
    y, middle, least = y[known], middle[known], least[known]

    def halved(block: IntArray) -> BoolArray:
        ends = np.maximum(_upper(left, right, y, middle + block), _upper(left, right, y, middle - block))
        done: BoolArray = 2 * ends <= least
        return done

    block = _shortest(halved, len(y))
    good = np.cumprod(halved(block)).astype(bool)
    peak = left.values[middle] * right.values[np.minimum(y - middle, right.reach)] * PEAK_ROOM
    return Envelope(middle[good], block[good], peak[good])


def _modes(left: FloatLaw, right: FloatLaw, reach: int) -> IntArray:
    """About the mode for each y, m.

    L(u) R(y - u) is largest where steps of u and of y - u, from 0 on, have been taken in the order of what they cost.
    Quotients are the same on every machine, logarithms are not, and with m so are seeded draws.
    """
    y = np.arange(reach + 1)
    if left is right:
        return y // 2
    kept = [law.values[1:] / law.values[:-1] for law in (left, right)]
    cheapest = np.argsort(-np.concatenate(kept), kind="stable")
    modes = np.concatenate([[0], np.cumsum(cheapest < left.reach)])
    return modes[np.minimum(y, len(modes) - 1)]


def _shortest(halved: Callable[[IntArray], BoolArray], count: int) -> IntArray:
    """For each y the shortest block at whose end p has halved, by bisection; any if there is none."""
    low, high = np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.int64)
    while not (done := halved(high)).all() and high.max() < LONGEST_BLOCK:
        low, high = np.where(done, low, high), np.where(done, high, 2 * high)
    while (high - low > 1).any():
        between = (low + high) // 2
        done = halved(between)
        low, high = np.where(done, low, between), np.where(done, between, high)
    return high


def _lower(left: FloatLaw, right: FloatLaw, y: IntArray, u: IntArray) -> Floats:
    """Lower bounds on p(u)."""
    product: Floats = left.lower[left.place(u)] * right.lower[right.place(y - u)] * (1 - ROUNDING)
    return product


def _upper(left: FloatLaw, right: FloatLaw, y: IntArray, u: IntArray) -> Floats:
    """Upper bounds on p(u)."""
    product: Floats = left.upper[left.place(u)] * right.upper[right.place(y - u)] * (1 + ROUNDING)
    return product
