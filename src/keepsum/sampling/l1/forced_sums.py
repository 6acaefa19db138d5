"""l1 Laplace noise given the sum of a region: exact, in time about proportional to the cells, or to the parts."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from keepsum._arrays import IntArray
from keepsum._progress import portion
from keepsum.sampling.core.balls import ball, digits, precision
from keepsum.sampling.core.driving import Referee, cell_ranges, equal_ranges, in_parallel, run
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import EXACT_STATE, WORD_BITS, Cells, State, Task, Words, new_state
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream
from keepsum.sampling.l1.double_geometric import double_geometric
from keepsum.sampling.l1.kernel_arguments import NoiseTable, RegionTables, SumTables
from keepsum.sampling.l1.sum_laws import powers_below, sum_law, sum_tables

# l1 Laplace noise given the sum of a region: exact, in time about proportional to the cells.
#
# Double geometric noise in n cells, given that it adds up to S: draw some of the cells freely, say with the sum T,
# and accept them with chance p(S - T) / p(0), where p is the law of the sum of the m cells that are left
# (``sum_laws``). What is left is the same question for m cells and the sum S - T, and the last cell is what remains.
#
# A part that leaves m cells is tried p_m(0) / p_n(S) times on average, about sqrt(n / m) for S near 0, whatever has
# been accepted before. With m a power of two, at least half of the cells that are left, a large region takes about
# 2.4 draws per cell, and one of 32 cells 4.


fill_cells = Kernel("fill_cells", Words, EXACT_STATE, NoiseTable, Cells)
fill_regions = Kernel("fill_regions", Words, EXACT_STATE, RegionTables, Task)
accept_part = Kernel("accept_part", Words, EXACT_STATE, SumTables, int)

# Of a region above this size, parts are shared between threads, each piece on a stream of its own.
LARGE = 2**19
PIECE = 2**19
WORDS_PER_CELL = 0.75  # the median of what large regions take


class FreeCells:
    """Independent double geometric noise in each cell.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-eps |z|) in each cell. ``tests/statistical/test_double_geometric.py``.
    """

    def __init__(self, epsilon: Fraction, width: int, word_bits: int = WORD_BITS) -> None:
        self.width = width
        self._law = double_geometric(epsilon, word_bits)
        self._referee = Referee(word_bits, lambda _: self._law, no_acceptance)

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw."""
        self.fill(out.reshape(-1), rng, threads)

    def fill(self, cells: IntArray, rng: Rng, threads: int = 1) -> int:
        """Fill cells, and return their sum."""

        def work(first: int, last: int, stream: Stream) -> int:
            stream.expect((last - first + 1) // 2)
            state = run(fill_cells, stream, self._law.table, Cells(cells, first, last - first), self._referee)
            return int(state.total)

        return sum(in_parallel(work, equal_ranges(len(cells), PIECE), rng, threads))


class ForcedSums:
    """Double geometric noise in regions, given the sum of each.

    Parameters
    ----------
    epsilon
        The privacy loss per unit of l1 distance.
    sizes
        The number of cells of each region.
    sums
        The sum of each region's noise; by default all are 0, as kept totals force them to be. A sum that free noise
        hardly ever has takes as long as it is unlikely.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-eps |z|_1) on the vectors with these sums. ``tests/statistical/test_sums.py``.
    """

    def __init__(
        self,
        epsilon: Fraction,
        sizes: npt.ArrayLike,
        sums: npt.ArrayLike | None = None,
        word_bits: int = WORD_BITS,
    ) -> None:
        self._epsilon, self._word_bits = epsilon, word_bits
        self._sizes = np.asarray(sizes, dtype=np.int64)
        self._goals = np.zeros_like(self._sizes) if sums is None else np.asarray(sums, dtype=np.int64)
        if self._sizes.min(initial=1) < 1:
            raise AssertionError("a region has at least one cell")
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._law = double_geometric(epsilon, word_bits)
        self._sums = sum_tables(powers_below(int(self._sizes.max(initial=1))), epsilon, word_bits)
        self.width = int(self._sizes.sum())
        small = self._sizes <= LARGE
        self._large = np.flatnonzero(~small).tolist()
        self._small_share = float(self._sizes[small].sum()) / max(self.width, 1)
        self._small = self._tables(self._sizes[small], self._goals[small], self._starts[small])

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw, the cells of the regions one after the other."""
        done = self._small_share
        if len(self._small.sizes):
            with portion(0.0, done):
                self._fill(out.reshape(-1), self._small, cell_ranges(self._small.sizes, len(out), PIECE), rng, threads)
        for r in self._large:
            cells = slice(self._starts[r], self._starts[r] + self._sizes[r])
            for row in out:
                with portion(done, done):
                    self._draw_large(row[cells], int(self._goals[r]), rng, threads)
                done += float(self._sizes[r]) / (self.width * len(out))

    def _fill(
        self, flat: IntArray, tables: RegionTables, ranges: list[tuple[int, int]], rng: Rng, threads: int = 1
    ) -> None:
        """Regions in a run of cells, from the first job to before the last of each range."""
        words = WORDS_PER_CELL * len(flat)  # of all ranges

        def work(first: int, last: int, stream: Stream) -> None:
            stream.expect(int(words * (last - first) / ranges[-1][1]))

            def answer(state: State, uniform: LazyUniform) -> int:
                size = int(tables.sizes[(first + state.job) % len(tables.sizes)])
                return accept_rest(size, self._epsilon, state, uniform)

            referee = Referee(self._word_bits, lambda _: self._law, answer)
            run(fill_regions, stream, tables, Task(first, last, flat), referee)

        in_parallel(work, ranges, rng, threads)

    def _draw_large(self, cells: IntArray, rest: int, rng: Rng, threads: int) -> None:
        """One region: parts that are shared between threads until few cells are left."""
        free = FreeCells(self._epsilon, 0, self._word_bits)
        filled = 0
        while len(cells) - filled > LARGE:
            level = (len(cells) - filled - 1).bit_length() - 1
            part = cells[filled : len(cells) - 2**level]
            total = free.fill(part, rng, threads)
            if self._accepts(level, rest - total, rng):
                filled += len(part)
                rest -= total
        sizes, goals = np.array([len(cells) - filled]), np.array([rest])
        self._fill(cells[filled:], self._tables(sizes, goals, np.zeros_like(sizes)), [(0, 1)], rng)

    def _accepts(self, level: int, total: int, rng: Rng) -> bool:
        """Whether 2^level cells are accepted to have a sum."""
        law = sum_law(2**level, self._epsilon)
        referee = Referee(self._word_bits, lambda _: self._law, lambda _, uniform: law.accept(total, uniform))
        return bool(run(accept_part, rng.stream(8), self._sums, level, referee, new_state(rest=total)).total)

    def _tables(self, sizes: IntArray, goals: IntArray, starts: IntArray) -> RegionTables:
        return RegionTables(self._law.table, self._sums, sizes, goals, starts, self.width)


def accept_rest(size: int, epsilon: Fraction, state: State, uniform: LazyUniform) -> int:
    """Whether the cells that are left of a region are accepted to have the sum that is left to them."""
    level = (size - int(state.filled) - 1).bit_length() - 1
    return sum_law(2**level, epsilon).accept(int(state.rest - state.total), uniform)


def no_acceptance(state: State, uniform: LazyUniform) -> int:
    """For kernels that accept every draw."""
    raise AssertionError(f"no acceptance is open, state {state!r}, {uniform}")


# The sums of the parts of a region, given the sum of all: exact, without drawing any cell.
#
# Cells of a region that is too large to be filled in one go are cut into parts, and the parts are filled given their
# sums (``forced_sums``). With p_n the law of the sum of n cells (``sum_laws``), the left of two parts of a and b
# cells has the sum u with a chance proportional to p_a(u) p_b(y - u), y being the sum of both. That is log-concave in
# u, and is drawn by the envelope of ``focus/envelopes``, with every comparison decided in ball arithmetic. Many parts
# are halved first.


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
