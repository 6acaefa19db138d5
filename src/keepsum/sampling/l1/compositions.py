"""l1 Laplace noise given the sum of a region: exact, in time about proportional to the cells.

Double geometric noise is G - H with G, H independent geometric vectors. Given their totals both are uniform weak
compositions. Given that the totals differ by S, the total N of G has weight nb(N) nb(N - S), nb the law of a sum of n
geometrics. So draw G and accept it with chance nb(N - S) / nb(mode), about 0.7 for S near 0; then draw H freely and
repair its total to N - S ball by ball, which keeps it a uniform composition (about sqrt(n)/eps balls).

For a sum far out G and H may have other rates, eps - t and eps + t: their product is what counts, so the law given the
sum is the same, and the total is hit more often.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from keepsum._arrays import IntArray
from keepsum.sampling.core.balls import ball, digits, precision
from keepsum.sampling.core.driving import TASK_CELLS, Referee, cell_ranges, equal_ranges, in_parallel, run
from keepsum.sampling.core.geometric import WORD_BITS, Geometric, geometric
from keepsum.sampling.core.kernel_arguments import Cells, PackedTables, State, SumLaw, Task, new_state
from keepsum.sampling.core.kernels import fill_cells, place_bars, repair_cells
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream
from keepsum.sampling.core.tabulated import TabulatedLaw, pack
from keepsum.sampling.core.totals import total_law
from keepsum.sampling.l1.compositions_kernels import (
    BY_BARS,
    BY_REPAIR,
    BY_TABLE,
    NEGATIVE,
    accept_total,
    fill_free,
    fill_regions,
)
from keepsum.sampling.l1.kernel_arguments import RegionTables

# A region above this size is filled in parts, each on a stream of its own.
LARGE = 2**19
PART_CELLS = 2**18
# Up to this size, and from this epsilon on, a region's total has a table: some 4,000 thresholds at most.
SMALL = 32
SMALL_EPSILON = Fraction(1, 50)


@lru_cache(maxsize=100_000)
def mode(n: int, epsilon: Fraction) -> int:
    """The most likely sum of n geometrics: the smallest m with a (m + n) <= m + 1."""
    if n == 1:
        return 0  # (a n - 1)/(1 - a) is the integer -1, which no ball tells from its neighbours
    bits = 128
    while True:
        with precision(bits):
            a = ball(-epsilon).exp()
            ceiling = ((a * n - 1) / (1 - a)).ceil().unique_fmpz()
        if ceiling is not None:
            return max(0, int(ceiling))
        bits *= 2


def mass_ratio(n: int, epsilon: Fraction, total: int) -> arb:
    """The chance of ``total`` for a sum of n geometrics, against the mode's, as a ball."""
    m = mode(n, epsilon)
    if total == m:
        return arb(1)
    gammas = arb(total + n).lgamma() + arb(m + 1).lgamma() - arb(m + n).lgamma() - arb(total + 1).lgamma()
    return (gammas - ball(epsilon) * (total - m)).exp()


def rate_of(epsilon: Fraction) -> float:
    """e^-eps, the float nearest to it (an error of at most half a unit in the last place)."""
    with precision(128):
        return float(ball(-epsilon).exp())


def methods(sizes: IntArray, goals: IntArray, epsilon: Fraction, tilt: Fraction) -> npt.NDArray[np.int64]:
    """Which way is quickest for each region; all are exact.

    Small regions with sum 0 have a table for their total. Elsewhere repair moves about sqrt(2 n a)/(1 - a) balls, each
    after some ten proposals, and placing bars takes about log2 n steps per cell to sort them.
    """
    rate = float(epsilon)
    balls = np.sqrt(2 * sizes * math.exp(-rate)) / -math.expm1(-rate)
    bars = sizes + 10 * balls > 3 * sizes * np.log2(sizes + 1)
    small = has_table(sizes, epsilon) & (goals == 0) & (tilt == 0)
    return np.where(small, BY_TABLE, np.where(bars, BY_BARS, BY_REPAIR))


def has_table(size: Any, epsilon: Fraction) -> Any:
    """Whether a region of that size (or each of these sizes) has a table for its total."""
    return (size <= SMALL) & (epsilon >= SMALL_EPSILON)


class FreeCells:
    """Independent double geometric noise in each cell.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-eps |z|) in each cell. ``tests/statistical/test_geometric.py``.
    """

    def __init__(self, epsilon: Fraction, width: int, word_bits: int = WORD_BITS) -> None:
        self.width = width
        self._law = geometric(epsilon, word_bits)
        self._referee = Referee(word_bits, lambda _: self._law, no_acceptance)

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw."""
        flat = out.reshape(-1)

        def work(first: int, last: int, stream: Stream) -> None:
            room = np.empty(last - first, dtype=np.int64)
            run(fill_free, stream, self._law.table, Task(first, last, flat, room), self._referee)

        in_parallel(work, equal_ranges(len(flat), TASK_CELLS), rng, threads)


class ForcedSums:
    """Double geometric noise in regions, given the sum of each.

    Parameters
    ----------
    epsilon
        The privacy loss per unit of l1 distance.
    sizes
        The number of cells of each region.
    sums
        The sum of each region's noise; by default all are 0, as kept totals force them to be.
    tilt
        With t, the positive parts have rate eps - t and the negative ones eps + t, which changes how often a sum
        is hit but not the law given the sum.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-eps |z|_1) on the vectors with these sums. ``tests/statistical/test_sums.py``.
    """

    def __init__(
        self,
        epsilon: Fraction,
        sizes: npt.ArrayLike,
        sums: npt.ArrayLike | None = None,
        tilt: Fraction = Fraction(0),
        word_bits: int = WORD_BITS,
    ) -> None:
        self._sizes = np.asarray(sizes, dtype=np.int64)
        self._goals = np.zeros_like(self._sizes) if sums is None else np.asarray(sums, dtype=np.int64)
        self._plus = geometric(epsilon - tilt, word_bits)
        self._minus = geometric(epsilon + tilt, word_bits)
        distinct, place = np.unique(self._sizes, return_inverse=True)
        self._modes = np.array([mode(n, epsilon + tilt) for n in distinct.tolist()], dtype=np.int64)[place]
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._rate = rate_of(epsilon + tilt)
        self._methods = methods(self._sizes, self._goals, epsilon + tilt, tilt)
        self._laws = {
            n: total_law(n, epsilon, word_bits) for n in np.unique(self._sizes[self._methods == BY_TABLE]).tolist()
        }
        self.width = int(self._sizes.sum())

    @classmethod
    def one(cls, epsilon: Fraction, size: int, total: int, word_bits: int = WORD_BITS) -> ForcedSums:
        """One region with a sum that may lie far out: the rates are tilted so that it is hit often."""
        return cls(epsilon, [size], [total], _tilt(epsilon, size, total), word_bits)

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw, the cells of the regions one after the other."""
        small = np.flatnonzero(self._sizes <= LARGE)
        if len(small):
            self._draw_small(out, small, rng, threads)
        for r in np.flatnonzero(self._sizes > LARGE).tolist():
            cells = slice(self._starts[r], self._starts[r] + self._sizes[r])
            for row in out:
                self._draw_large(row[cells], r, rng, threads)

    def _draw_small(self, out: IntArray, regions: IntArray, rng: Rng, threads: int) -> None:
        sizes = self._sizes[regions]
        totals, table_starts, guide_starts = self._packed(sizes)
        tables = RegionTables(
            plus=self._plus.table,
            minus=self._minus.table,
            rate=self._rate,
            totals=totals,
            sizes=sizes,
            goals=self._goals[regions],
            modes=self._modes[regions],
            methods=self._methods[regions],
            table_starts=table_starts,
            guide_starts=guide_starts,
            starts=self._starts[regions],
            width=self.width,
        )
        flat, largest = out.reshape(-1), int(sizes.max())

        def work(first: int, last: int, stream: Stream) -> None:
            referee = self._referee(lambda state: int(regions[(first + state.job) % len(regions)]))
            run(fill_regions, stream, tables, Task(first, last, flat, np.empty(largest, dtype=np.int64)), referee)

        in_parallel(work, cell_ranges(sizes, len(out)), rng, threads)

    def _draw_large(self, cells: IntArray, r: int, rng: Rng, threads: int) -> None:
        """One region in parts, which share nothing but its total."""
        size, goal = int(self._sizes[r]), int(self._goals[r])
        referee = self._referee(lambda _: r)
        law = SumLaw(size, self._rate, int(self._modes[r]), self._minus.table.shift)
        accepted = np.zeros(1, dtype=np.int64)
        while not accepted[0]:
            total, _ = self._fill_parts(cells, self._plus, rng, threads)
            run(accept_total, rng.stream(8), law, accepted, referee, new_state(negative_total=total - goal))
        negative = Cells(np.empty(size, dtype=np.int64), 0, size)
        if self._methods[r] == BY_BARS:
            run(place_bars, rng.stream(), total - goal, negative, referee)
        else:
            drawn, largest = self._fill_parts(negative.out, self._minus, rng, threads)
            start = new_state(current_total=drawn, largest=largest)
            run(repair_cells, rng.stream(), total - goal, negative, referee, start)
        cells -= negative.out

    def _fill_parts(self, cells: IntArray, law: Geometric, rng: Rng, threads: int) -> tuple[int, int]:
        """Geometric draws in every cell; their sum and their largest."""
        referee = Referee(law.word_bits, lambda _: law, no_acceptance)

        def work(first: int, last: int, stream: Stream) -> State:
            return run(fill_cells, stream, law.table, Cells(cells, first, last - first), referee)

        states = in_parallel(work, equal_ranges(len(cells), PART_CELLS), rng, threads)
        return sum(int(state.total) for state in states), max(int(state.largest) for state in states)

    def _referee(self, region_at: Callable[[State], int]) -> Referee:
        """Settles totals, positive and negative parts of the region that a kernel is at."""

        def law(state: State) -> Geometric | TabulatedLaw:
            region = region_at(state)
            if self._methods[region] == BY_TABLE:
                return self._laws[int(self._sizes[region])]
            return self._minus if state.stage == NEGATIVE else self._plus

        def answer(state: State, uniform: LazyUniform) -> int:
            size = int(self._sizes[region_at(state)])
            return accept_sum(size, self._minus.epsilon, int(state.negative_total), uniform)

        return Referee(self._minus.word_bits, law, answer)

    def _packed(self, sizes: IntArray) -> tuple[PackedTables, IntArray, IntArray]:
        """The tables of totals, and for each region where its table starts (0 where it has none)."""
        known = list(self._laws)
        totals, tables, guides = pack([self._laws[n] for n in known], self._minus.word_bits)
        place = {n: k for k, n in enumerate(known)}
        places = [place.get(n, 0) for n in sizes.tolist()]
        return totals, np.array([tables[k] for k in places]), np.array([guides[k] for k in places])


def accept_sum(size: int, epsilon: Fraction, total: int, uniform: LazyUniform) -> int:
    """Whether a uniform number lies below the mass ratio, decided exactly."""
    return int(uniform.below(digits(lambda: mass_ratio(size, epsilon, total))))


def no_acceptance(state: State, uniform: LazyUniform) -> int:
    """For kernels that accept every draw."""
    raise AssertionError(f"no acceptance is open, state {state!r}, {uniform}")


def _tilt(epsilon: Fraction, size: int, total: int) -> Fraction:
    """A change of rate, by any rational, that brings the mean of the difference near the total.

    It only has to be good, not exact: the law given the sum is the same for every tilt.
    """
    rate = float(epsilon)
    deviation = math.sqrt(2 * size * math.exp(-rate)) / -math.expm1(-rate)
    if abs(total) <= 3 * deviation:
        return Fraction(0)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = size * (1 / math.expm1(rate * (1 - middle)) - 1 / math.expm1(rate * (1 + middle)))
        low, high = (middle, high) if mean < abs(total) else (low, middle)
    share = min(Fraction(low).limit_denominator(2**20), 1 - Fraction(1, 2**20))
    return epsilon * share * (1 if total > 0 else -1)
