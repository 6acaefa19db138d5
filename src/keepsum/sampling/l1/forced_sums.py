"""l1 Laplace noise given the sum of a region: exact, in time about proportional to the cells.

Double geometric noise in n cells, given that it adds up to S: draw some of the cells freely, say with the sum T, and
accept them with chance p(S - T) / p(0), where p is the law of the sum of the m cells that are left (``sum_laws``). What
is left is the same question for m cells and the sum S - T, and the last cell is what remains.

A part that leaves m cells is tried p_m(0) / p_n(S) times on average, about sqrt(n / m) for S near 0, whatever has been
accepted before. With m a power of two, at least half of the cells that are left, a large region takes about 2.4 draws
per cell, and one of 32 cells 4.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from keepsum._arrays import IntArray
from keepsum._progress import portion
from keepsum.sampling.core.driving import Referee, cell_ranges, equal_ranges, in_parallel, run
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import EXACT_STATE, WORD_BITS, Cells, State, Task, Words, new_state
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream
from keepsum.sampling.l1.double_geometric import double_geometric
from keepsum.sampling.l1.kernel_arguments import NoiseTable, RegionTables, SumTables
from keepsum.sampling.l1.sum_laws import powers_below, sum_law, sum_tables

fill_cells = Kernel("fill_cells", Words, EXACT_STATE, NoiseTable, Cells)
fill_regions = Kernel("fill_regions", Words, EXACT_STATE, RegionTables, Task)
accept_part = Kernel("accept_part", Words, EXACT_STATE, SumTables, int)

# Of a region above this size, parts are shared between threads, each piece on a stream of its own.
LARGE = 2**19
PIECE = 2**19


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
        self._small = self._tables(self._sizes[small], self._goals[small], self._starts[small])

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw, the cells of the regions one after the other."""
        done = float(self._small.sizes.sum()) / self.width
        if len(self._small.sizes):
            with portion(0.0, done):
                self._fill(out.reshape(-1), self._small, cell_ranges(self._small.sizes, len(out), PIECE), rng, threads)
        for r in np.flatnonzero(self._sizes > LARGE).tolist():
            cells = slice(self._starts[r], self._starts[r] + self._sizes[r])
            for row in out:
                with portion(done, done):
                    self._draw_large(row[cells], int(self._goals[r]), rng, threads)
                done += float(self._sizes[r]) / (self.width * len(out))

    def _fill(
        self, flat: IntArray, tables: RegionTables, ranges: list[tuple[int, int]], rng: Rng, threads: int = 1
    ) -> None:
        """Regions in a run of cells, from the first job to before the last of each range."""

        def work(first: int, last: int, stream: Stream) -> None:
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
