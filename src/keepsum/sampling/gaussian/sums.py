"""Gaussian noise on free cells, in regions with their sums kept, and in full tables one way short."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import arb

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.driving import TASK_CELLS, cell_ranges, equal_ranges, in_parallel, run
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import EXACT_STATE, WORD_BITS, OutInts, State, Task, Words
from keepsum.sampling.core.rng import Rng, Stream
from keepsum.sampling.gaussian.kernel_arguments import (
    WIDE_VARIANCE,
    FreeTables,
    FullRoom,
    FullTables,
    FullTask,
    SumsTables,
    WeightsTask,
)
from keepsum.sampling.gaussian.parts import (
    Blocks,
    CountedBlocks,
    SamplerPart,
    Variances,
    log_return_chance,
    log_theta,
    log_theta_floats,
    log_thetas,
)

# Gaussian noise on free cells and in regions with their sums kept.


fill_gaussian_cells = Kernel("fill_gaussian_cells", Words, EXACT_STATE, FreeTables, Task)
fill_gaussian_sums = Kernel("fill_gaussian_sums", Words, EXACT_STATE, SumsTables, WeightsTask)


class FreeGaussian(Blocks):
    """Independent discrete Gaussian noise in each cell.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-z^2 / 2 sigma^2) in each cell. ``tests/statistical/test_gaussian.py``.
    """

    def __init__(self, width: int, word_bits: int = WORD_BITS) -> None:
        super().__init__(word_bits, np.ones(1), width)
        self.width = self.dimension = width

    def fill(self, out: IntArray, variances: Variances, deciding: bool, rng: Rng, threads: int) -> Floats:
        """Fill ``out``, one row per draw."""
        flat = out.reshape(-1)
        tables = FreeTables(self._tables, variances.floats, self.width)

        def work(first: int, last: int, stream: Stream) -> None:
            def row(state: State) -> int:
                return (first + int(state.cell)) // self.width

            referee = self.referee(lambda state: variances.exact(row(state)), lambda _: arb(0))
            run(fill_gaussian_cells, stream, tables, Task(first, last, flat), referee)

        in_parallel(work, equal_ranges(len(flat), TASK_CELLS), rng, threads)
        if deciding:
            return np.zeros(0)
        narrow = variances.floats < WIDE_VARIANCE
        thetas = np.zeros(len(out))
        thetas[narrow] = self.width * log_theta_floats(variances.floats[narrow])
        return thetas

    def log_weight(self, row: IntArray, variance: arb) -> arb:
        """The same factor for each cell."""
        return self.width * log_theta(variance, arb(0))


class SumsGaussian(Blocks):
    """Gaussian noise in regions, given the sum of each.

    Parameters
    ----------
    sizes
        The number of cells of each region.
    sums
        The sum of each region's noise; by default all are 0, as kept totals force them to be.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-|z|^2 / 2 sigma^2) on the vectors with these sums.
    ``tests/statistical/test_gaussian.py``.
    """

    def __init__(self, sizes: npt.ArrayLike, word_bits: int = WORD_BITS, sums: npt.ArrayLike | None = None) -> None:
        self._sizes = np.asarray(sizes, dtype=np.int64)
        self._goals = np.zeros_like(self._sizes) if sums is None else np.asarray(sums, dtype=np.int64)
        super().__init__(word_bits, *sum_shares(self._sizes))
        self._starts = np.cumsum(self._sizes) - self._sizes
        self.width = int(self._sizes.sum())
        self.dimension = self.width - len(self._sizes)

    def fill(self, out: IntArray, variances: Variances, deciding: bool, rng: Rng, threads: int) -> Floats:
        """Fill ``out``, one row per draw, the cells of the regions one after the other."""
        flat, count = out.reshape(-1), len(self._sizes)
        log_weights = np.zeros(0 if deciding else len(out) * count)
        tables = SumsTables(
            self._tables, variances.floats, deciding, self._sizes, self._goals, self._starts, self.width
        )

        def work(first: int, last: int, stream: Stream) -> None:
            def job(state: State) -> tuple[int, int]:
                return divmod(first + int(state.job), count)

            def variance(state: State) -> arb:
                return variances.exact(job(state)[0])

            def chance(state: State) -> arb:
                row, region = job(state)
                cells = out[row, self._starts[region] : self._starts[region] + self._sizes[region]]
                there, centred = log_thetas(sum_steps(cells, int(self._goals[region])), variance(state))
                return there - centred

            task = Task(first, last, flat, log_weights)
            run(fill_gaussian_sums, stream, tables, task, self.referee(variance, chance))

        in_parallel(work, cell_ranges(self._sizes, len(out)), rng, threads)
        return log_weights if deciding else log_weights.reshape(-1, count).sum(axis=1)

    def log_weight(self, row: IntArray, variance: arb) -> arb:
        """Region by region."""
        total = arb(0)
        regions = zip(self._starts.tolist(), self._sizes.tolist(), self._goals.tolist(), strict=True)
        for start, size, goal in regions:
            total += log_thetas(sum_steps(row[start : start + size], goal), variance)[0]
        return total


def sum_shares(sizes: IntArray) -> tuple[Floats, Floats]:
    """The shares (r - 1)/r of the cells of regions, and how many have each."""
    largest = int(sizes.max(initial=1))
    at_least = len(sizes) - np.cumsum(np.bincount(sizes, minlength=largest + 1))  # regions larger than r
    remaining = np.arange(2, largest + 1)
    return (remaining - 1) / remaining, at_least[remaining - 1].astype(np.float64)


def sum_steps(cells: IntArray, goal: int) -> Iterable[tuple[Fraction, Fraction]]:
    """Centre and share of each cell but the last, given those before and that all add up to ``goal``."""
    rest = goal
    for place, value in enumerate(cells[:-1].tolist()):
        remaining = len(cells) - place
        yield Fraction(rest, remaining), Fraction(remaining - 1, remaining)
        rest -= value


def sum_acceptance(size: int, variance: float) -> float:
    """The acceptance rate of a region: its lattice's weight against the product of its coordinates'.

    The vectors with sum 0 weigh rho(Z)^n times the chance that n free cells add up to 0.
    """
    if variance >= WIDE_VARIANCE:
        return 1.0
    remaining = np.arange(2, size + 1)
    conditional = variance * (remaining - 1) / remaining
    one = float(log_theta_floats(np.array([variance]))[0]) + math.log(2 * math.pi * variance) / 2
    each = log_theta_floats(conditional) + np.log(2 * math.pi * conditional) / 2
    # The differences are summed, not the terms: both sums are of the size of the region.
    return math.exp(min(0.0, log_return_chance(size, math.sqrt(variance)) + one + float((one - each).sum())))


class LatticeGaussian:
    """Gaussian noise of one width on some blocks, each accepted on its own.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-|z|^2 / 2 sigma^2) on the lattice. ``tests/statistical/test_gaussian.py``.
    """

    def __init__(self, part: SamplerPart, variance: Fraction) -> None:
        self._part, self._variance = part, variance
        self.width = part.width

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw."""
        self._part.fill(out, Variances.constant(self._variance, len(out)), True, rng, threads)


# Gaussian noise in full tables with all margins of one way less kept: tensor products of kept sums.


fill_gaussian_tables = Kernel("fill_gaussian_tables", Words, EXACT_STATE, FullTables, FullTask)
innovations = Kernel("innovations", IntArray, OutInts, IntArray, int)


class TableGaussian(CountedBlocks):
    """Gaussian noise in full tables with all margins of one way less kept.

    Parameters
    ----------
    shape
        The number of categories of each axis, two axes or more.
    count
        How many such tables a draw has.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-|z|^2 / 2 sigma^2) on the tables whose margins are 0.
    ``tests/statistical/test_gaussian.py``.
    """

    def __init__(self, shape: tuple[int, ...], count: int = 1, word_bits: int = WORD_BITS) -> None:
        along = [1 - 1 / np.arange(2, n + 1) for n in shape]
        shares = np.prod(np.meshgrid(*along), axis=0).reshape(-1)
        super().__init__(word_bits, shares, count, int(np.prod(shape)), count)
        self._shape = np.array(shape, dtype=np.int64)
        self.dimension = int(np.prod(self._shape - 1)) * count
        inner = [int(np.prod(self._shape[axis + 1 :])) for axis in range(len(shape) - 1)]
        self._level_start = np.cumsum([0, *inner]).astype(np.int64)

    def _run(self, task: Task, variances: Variances, deciding: bool, stream: Stream) -> State:
        def variance(state: State) -> arb:
            return variances.exact(self._row(task, state))

        def chance(state: State) -> arb:
            there, centred = log_thetas(table_steps(self._block(task, state), self._shape), variance(state))
            return there - centred

        tables = FullTables(self._tables, variances.floats, deciding, self._shape, self._level_start, self._count)
        size = int(self._level_start[-1])
        room = FullRoom(
            log_weights=task.room,
            sums=np.zeros(size, dtype=np.int64),
            innovation=np.zeros(size, dtype=np.int64),
            indices=np.zeros(len(self._shape), dtype=np.int64),
        )
        return run(fill_gaussian_tables, stream, tables, task._replace(room=room), self.referee(variance, chance))

    def log_weight(self, row: IntArray, variance: arb) -> arb:
        """Table by table."""
        tables = row.reshape(self._count, self._cells)
        total = arb(0)
        for table in tables:
            total += log_thetas(table_steps(table, self._shape), variance)[0]
        return total


def table_steps(cells: IntArray, shape: IntArray) -> Iterable[tuple[Fraction, Fraction]]:
    """Centre and share of each cell that is drawn: a cell less its innovation."""
    numerators = np.empty(len(cells), dtype=np.int64)
    innovations(np.ascontiguousarray(cells), numerators, shape, -1)
    for place, index in enumerate(np.ndindex(*shape.tolist())):
        remaining = [int(n) - i for n, i in zip(shape.tolist(), index, strict=True)]
        if min(remaining) > 1:
            bottom = int(np.prod(remaining))
            share = Fraction(int(np.prod([n - 1 for n in remaining])), bottom)
            yield int(cells[place]) - Fraction(int(numerators[place]), bottom), share
