"""l1 Laplace noise with more accuracy in some totals, kept and focused ones nested: exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from keepsum._arrays import BoolArray, Floats, IntArray
from keepsum.sampling.core.driving import Referee, cell_ranges, in_parallel, run
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import EXACT_STATE, WORD_BITS, State, Task, Words
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream
from keepsum.sampling.l1.focus.kernel_arguments import OFFSET, ROUNDING, FocusRoom, FocusTables, FocusTask
from keepsum.sampling.l1.focus.laws import ALWAYS, TAIL_BITS, FixedLaws, FloatLaw, float_laws
from keepsum.sampling.l1.focus.tree import ABSENT, NestedTotals, SumKind, SumKinds

# What parts of a sum are drawn by.
#
# Given the sum y of two parts with weights L and R, the left part is u with a chance proportional to
# p(u) = L(u) R(y - u), which is log-concave in u. Take m near its mode and a length b with p(m + b) <= p(m) / 2 and
# p(m - b) <= p(m) / 2. Then p halves with every b further on, and
#
#     p(m + x), p(m - 1 - x)  <=  peak 2^-k    for k b <= x < (k + 1) b,
#
# for any peak of at least max p. So draw a side, k = 0, 1, 2, ... with chance 2^-(k + 1), and x in its block
# uniformly; and accept with p(u) 2^k / peak. That takes 4 b peak / (sum of p) tries on average: 1.9 for a Gaussian p,
# 1.4 for e^-|u|, 4 if all weight is at m. Tables have an entry for each y, not for each y and u.
#
# If p(m + 1) and p(m - 1) exceed p(m) by a share of at most r, no p(m + j) exceeds p(m) (1 + r)^|j|, and those with
# |j| >= b are smaller than p(m): so peak = p(m) (1 + r)^b will do.


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


# What floats leave open about the parts of a sum, settled in integers of as many digits as it takes.


LEAST_BITS = 192  # of the tables that are asked first
KEPT = 1000  # envelopes that are kept for the next question


class FocusReferee:
    """Settles the comparisons of one sampler."""

    def __init__(self, kinds: Sequence[SumKind]) -> None:
        self._kinds = kinds
        self._laws = FixedLaws(kinds)
        self._envelopes: dict[tuple[int, int], tuple[int, int, Fraction]] = {}

    def accept(self, kind: int, y: int, u: int, factor: Fraction, uniform: LazyUniform) -> bool:
        """Whether the left part u of y is accepted, with its weights relative to those of 0, times a factor."""
        return uniform.below(self._digits(kind, y, u, factor))

    def draw(self, kind: int, y: int, extra: Stream) -> int:
        """The left part of a sum y >= 0 that the tables do not reach, drawn as the kernels do it (``envelopes``)."""
        middle, block, peak = self._envelope(kind, y)
        while True:
            upward, step = extra.bits(1), 0
            while not extra.bits(1):
                step += 1
            distance = step * block + extra.below(block)
            u = middle + distance if upward else middle - 1 - distance
            if self.accept(kind, y, u, 2**step / peak, LazyUniform(extra)):
                return u

    def _envelope(self, kind: int, y: int) -> tuple[int, int, Fraction]:
        """m, b and the peak, with as many digits as it takes to prove them."""
        known = self._envelopes.get((kind, y))
        bits = LEAST_BITS
        while known is None:
            known = self._proved(kind, y, bits)
            bits *= 2
        if len(self._envelopes) >= KEPT:
            self._envelopes.clear()
        self._envelopes[kind, y] = known
        return known

    def _proved(self, kind: int, y: int, bits: int) -> tuple[int, int, Fraction] | None:
        """The same with so many bits, None if these are too few. p rises up to its mode and falls from there on."""
        low, high = 0, y
        while low < high:
            middle = (low + high) // 2
            rises = self._weights(kind, y, middle + 1, bits)[0] > self._weights(kind, y, middle, bits)[0]
            low, high = (middle + 1, high) if rises else (low, middle)
        least, most = self._weights(kind, y, low, bits)
        highest = max(most, *(self._weights(kind, y, low + step, bits)[1] for step in (1, -1)))
        if not least or highest > least * (1 + Fraction(RISE)):
            return None
        block = 1
        while any(2 * self._weights(kind, y, low + step, bits)[1] > least for step in (block, -block)):
            block *= 2
        return low, block, Fraction(most, self._weights(kind, 0, 0, bits)[0]) * Fraction(PEAK_ROOM)

    def _digits(self, kind: int, y: int, u: int, factor: Fraction) -> Callable[[int], tuple[int, int]]:
        """The binary digits of the weight of a part, as ``LazyUniform.below`` asks for them."""

        def digits(count: int) -> tuple[int, int]:
            bits = LEAST_BITS
            while True:
                (low, high), (least, most) = self._weights(kind, y, u, bits), self._weights(kind, 0, 0, bits)
                low = (low * factor.numerator << count) // (most * factor.denominator)
                high = -(-(high * factor.numerator << count) // (least * factor.denominator))
                if high - low <= 2:
                    return low, high
                bits *= 2

        return digits

    def _weights(self, kind: int, y: int, u: int, bits: int) -> tuple[int, int]:
        """Bounds on p(u), times the scales of both parts."""
        left, right, *_ = self._kinds[kind]
        low = high = 1
        for part, total in ((left, u), (right, y - u)):
            if part != ABSENT:
                law = self._laws.law(part, bits)
                value = law[total]
                low, high = low * max(0, value - law.error), high * (value + law.error)
        return low, high


# l1 Laplace noise with more accuracy in some totals, kept and focused ones nested: exact.
#
# The noise has P(z) proportional to exp(-eps sum of |z_i| - sum over focused totals g of eps_g |z(g)|), z(g) its sum
# over the cells of g, on the vectors with z(g) = 0 for all kept totals. Given the sum of a total its parts are
# independent of everything else, and given the sum of two parts the left one has a chance proportional to the product
# of their weights, which contain everything that is below them, the weights of focused totals included. So sums are
# split from the roots down to the cells, each by a draw of ``envelopes``: about two tries per cell, whatever the
# epsilons and the totals.
#
# What a plan takes is in proportion to the entries of the tables (``laws.entries_of``): one for each sum that has a
# chance of 2^-64 or more, for each kind of sum. A county of 20 cells has some 60 / epsilon, and a million of entries
# take about 10 seconds. Sums beyond the tables are left to the referee, who makes tables that go as far as they must.


fill_trees = Kernel("fill_trees", Words, EXACT_STATE, FocusTables, FocusTask)

HALVING_BITS = 31  # of a proposal's word: the place takes 32, and the side one


class NestedFocus:
    """Double geometric noise under nested totals, some of them kept and some with a weight of their own.

    Parameters
    ----------
    totals
        The totals.
    as_sums
        Draw the sum of the cells that stand in a total and in no smaller one, not the cells; one for each such total.
    word_bits, tail_bits, halving_bits
        How many bits of a word an acceptance sees, how far tables go, and how many blocks a word tells apart; fewer
        only to test what happens where these do not suffice.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-eps |z|_1 - sum of eps_g |z(g)|) on the vectors with z(g) = 0 for all kept g.
    ``tests/statistical/test_focus.py``.
    """

    def __init__(
        self,
        totals: NestedTotals,
        word_bits: int = WORD_BITS,
        tail_bits: int = TAIL_BITS,
        halving_bits: int = HALVING_BITS,
        as_sums: bool = False,
    ) -> None:
        self.kinds = SumKinds(totals, as_sums)
        self.width = sum(count > 0 for count in totals.cells) if as_sums else sum(totals.cells)
        self._word_bits = word_bits
        self.laws = float_laws(self.kinds, tail_bits)
        self._envelopes = _envelopes(self.kinds, self.laws)
        self._tables = self._packed(halving_bits)
        self._referee = FocusReferee(self.kinds.all)

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw, the cells of the totals one after the other."""
        sizes = np.diff(self._tables.root_start)

        def work(first: int, last: int, stream: Stream) -> None:
            self._run(first, last, out.reshape(-1), stream)

        in_parallel(work, cell_ranges(sizes, len(out)), rng, threads)

    def _run(self, first: int, last: int, flat: IntArray, stream: Stream) -> State:
        height = max(_heights(self.kinds))
        room = FocusRoom(np.empty(height, dtype=np.int64), np.empty(height, dtype=np.int64))
        referee = Referee(
            self._word_bits,
            lambda state: _FarPart(self._referee, *_current(state, room)),
            lambda state, uniform: self._accepts(state, room, uniform),
        )
        return run(fill_trees, stream, self._tables, Task(first, last, flat, room), referee)

    def _accepts(self, state: State, room: FocusRoom, uniform: LazyUniform) -> int:
        """Whether a part that was proposed is accepted."""
        kind, y = _current(state, room)
        factor = 2 ** int(state.step) / Fraction(float(self._envelopes[kind].peak[y]))
        return int(self._referee.accept(kind, y, int(state.value), factor, uniform))

    def _packed(self, halving_bits: int) -> FocusTables:
        kinds, roots = self.kinds.all, self.kinds.roots
        values, envelopes = [law.values for law in self.laws], self._envelopes
        return FocusTables(
            left=np.array([ABSENT if kind.end else kind.left for kind in kinds], dtype=np.int64),
            right=np.array([ABSENT if kind.end else kind.right for kind in kinds], dtype=np.int64),
            value_start=_starts(values)[:-1],
            reach=np.array([law.reach for law in self.laws], dtype=np.int64),
            error=np.array([law.error for law in self.laws]),
            beyond=np.array([law.beyond for law in self.laws]),
            values=np.concatenate(values),
            split_start=_starts([split.peak for split in envelopes])[:-1],
            split_reach=np.array([len(split.peak) - 1 for split in envelopes], dtype=np.int64),
            middle=np.concatenate([split.middle for split in envelopes]),
            block=np.concatenate([split.block for split in envelopes]),
            peak=np.concatenate([split.peak for split in envelopes]),
            root_kind=np.array([root.kind for root in roots], dtype=np.int64),
            root_start=_starts([root.order for root in roots]),
            order=np.concatenate([root.order for root in roots]),
            halving_bits=halving_bits,
            shift=WORD_BITS - self._word_bits,
        )


class _FarPart:
    """The left part of a sum that the tables do not reach, in place of a law that words are looked up in."""

    def __init__(self, referee: FocusReferee, kind: int, y: int) -> None:
        self._referee, self._kind, self._y = referee, kind, y

    def resolve(self, word: int, extra: Stream) -> int:
        """The part; the word that the kernel stopped at is not used."""
        return self._referee.draw(self._kind, self._y, extra) + OFFSET


def _current(state: State, room: FocusRoom) -> tuple[int, int]:
    """The kind and the size of the sum that is being split; a negative one is split like its opposite."""
    top = int(state.node) - 1
    return int(room.kinds[top]), abs(int(room.sums[top]))


def _envelopes(kinds: SumKinds, laws: list[FloatLaw]) -> list[Envelope]:
    """How the sums of each kind split, as far as their laws reach; of a root only 0 does."""

    def of(number: int) -> Envelope:
        left, right, *_, end = kinds.all[number]
        if left == ABSENT or end:
            return NOTHING
        return envelope(laws[left], ALWAYS if right == ABSENT else laws[right], laws[number].reach)

    return [of(number) for number in range(len(kinds.all))]


def _heights(kinds: SumKinds) -> list[int]:
    """How many sums wait at most, from a sum of each kind on: the right part waits for the left one."""
    heights: list[int] = []
    for left, right, *_, end in kinds.all:
        below = 1 if left == ABSENT or end else heights[left] + (right != ABSENT)
        heights.append(max(below, 1 if right == ABSENT or end else heights[right]))
    return heights


def _starts(arrays: Sequence[np.ndarray[tuple[int], np.dtype[np.generic]]]) -> IntArray:
    """Where each of some arrays starts when they are joined, and where the last one ends."""
    return np.cumsum([0, *(len(array) for array in arrays)])
