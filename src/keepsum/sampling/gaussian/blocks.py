"""Gaussian noise in any other block: the sums of its regions by a triangular factor, then their cells."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import arb

from keepsum.sampling.core.balls import ball
from keepsum.sampling.core.driving import PILOT_DRAWS, TASK_CELLS, UNLIMITED, State, in_parallel, run
from keepsum.sampling.core.geometric import WORD_BITS
from keepsum.sampling.core.kernels import JOB, PHASE, REGION, TRIES
from keepsum.sampling.core.rng import Rng, Stream
from keepsum.sampling.gaussian.blocks_kernels import fill_blocks
from keepsum.sampling.gaussian.factors import Factor
from keepsum.sampling.gaussian.integers_kernels import SAMPLE
from keepsum.sampling.gaussian.sums import Blocks, Floats, IntArray, Variances, log_thetas, sum_shares, sum_steps


class BlockGaussian(Blocks):
    """Gaussian noise in blocks of regions under overlapping totals.

    The cells of a region with sum S have |z|^2 = |z - S/n|^2 + S^2/n, so the sums are drawn first, on their own lattice
    with the quadratic form sum of S^2/n, and then the cells of each region given its sum.

    Parameters
    ----------
    factor
        The triangular factor of the lattice of sums.
    sizes
        The number of cells of each region.
    count
        How many such blocks a draw has.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-|z|^2 / 2 sigma^2) on the lattice. ``tests/statistical/test_gaussian.py``.
    """

    def __init__(self, factor: Factor, sizes: npt.ArrayLike, count: int = 1, word_bits: int = WORD_BITS) -> None:
        self._sizes = np.asarray(sizes, dtype=np.int64)
        inside, counts = sum_shares(self._sizes)
        every = np.concatenate([np.ones(len(factor.shares)), counts]) * count
        super().__init__(word_bits, np.concatenate([factor.shares, inside]), every)
        self._factor = factor
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._count = count
        self._cells = int(self._sizes.sum())
        self.width = self._cells * count
        self.dimension = (len(factor.shares) + self._cells - len(self._sizes)) * count

    @property
    def cells_per_try(self) -> int:
        """What a try costs: cells, and multiplications by the factor, which are quicker."""
        return self._cells + len(self._factor.rows) // 16

    def fill(self, out: IntArray, variances: Variances, deciding: bool, rng: Rng, threads: int) -> Floats:
        """Fill ``out``, one row a draw, the blocks one after the other, region by region."""
        jobs = len(out) * self._count
        thetas = np.zeros(0 if deciding else jobs)
        step = max(1, TASK_CELLS // (8 * self.cells_per_try))

        def task(first: int, stream: Stream) -> None:
            self._run(first, min(first + step, jobs), out.reshape(-1), variances, deciding, thetas, stream)

        in_parallel([lambda stream, f=first: task(f, stream) for first in range(0, jobs, step)], rng, threads)  # type: ignore[misc]
        return thetas if deciding else thetas.reshape(-1, self._count).sum(axis=1)

    def pilot(self, variance: Fraction, rng: Rng, most: int) -> tuple[int, int]:
        """Draw until a hundred blocks are accepted or ``most`` tries are made; how many of each there were."""
        draws = max(1, min(PILOT_DRAWS, 10**7 // self._cells))
        out = np.empty(draws * self._cells, dtype=np.int64)
        variances = Variances.constant(variance, draws)
        state = self._run(0, draws, out, variances, True, np.zeros(0), rng.stream(), most)
        return int(state[JOB]), int(state[TRIES])

    def _run(
        self,
        first: int,
        last: int,
        flat: IntArray,
        variances: Variances,
        deciding: bool,
        thetas: Floats,
        stream: Stream,
        most: int = UNLIMITED,
    ) -> State:
        factor = self._factor
        count = len(factor.shares)
        coordinates, centres = np.zeros(count, dtype=np.int64), np.zeros(count)
        sums = np.zeros(len(self._sizes), dtype=np.int64)

        def variance(state: State) -> arb:
            return variances.exact((first + int(state[JOB])) // self._count)

        def centre(state: State) -> tuple[Fraction, Fraction] | None:
            if state[PHASE] != SAMPLE:
                return None
            j = count - 1 - int(state[REGION])
            return Fraction(centres[j]) - math.floor(centres[j] + 0.5), Fraction(factor.shares[j])

        def chance(state: State) -> arb:
            start = (first + int(state[JOB])) * self._cells
            cells = flat[start : start + self._cells]
            there, centred = log_thetas(self._steps(cells, centres), variance(state))
            return there - centred - self._mismatch(coordinates, centres, sums, variance(state))

        arguments = (
            self._tables,
            variances.floats,
            *factor.arrays(),
            self._sizes,
            self._starts,
            self._cells,
            self._count,
        )
        jobs = (first, last, flat, deciding, thetas, most)
        scratch = (coordinates, centres, sums, np.zeros(3))
        return run(fill_blocks, stream, self.referee(variance, chance, centre), (*arguments, *jobs, *scratch))

    def _steps(self, cells: IntArray, centres: Floats) -> Iterable[tuple[Fraction, Fraction]]:
        for centre, share in zip(centres.tolist(), self._factor.shares.tolist(), strict=True):
            yield Fraction(centre), Fraction(share)
        for start, size in zip(self._starts.tolist(), self._sizes.tolist(), strict=True):
            own = cells[start : start + size]
            yield from sum_steps(own, int(own.sum()))

    def _mismatch(self, coordinates: IntArray, centres: Floats, sums: IntArray, variance: arb) -> arb:
        """Half of the difference of the quadratic forms over sigma^2, exactly."""
        wanted = sum(
            (Fraction(s * s, n) for s, n in zip(sums.tolist(), self._sizes.tolist(), strict=True)), Fraction(0)
        )
        steps = zip(coordinates.tolist(), centres.tolist(), self._factor.shares.tolist(), strict=True)
        proposed = sum(((v - Fraction(c)) ** 2 / Fraction(share) for v, c, share in steps), Fraction(0))
        if proposed > wanted:
            raise AssertionError("the factor's quadratic form exceeds the lattice's")
        return ball(wanted - proposed) / (2 * variance)

    def log_weight(self, row: IntArray, variance: arb) -> arb:
        """Block by block: coordinates are found again from the sums, and centres from the coordinates."""
        total = arb(0)
        for cells in row.reshape(self._count, self._cells):
            sums = np.add.reduceat(cells, self._starts)
            coordinates = self._factor.coordinates(sums)
            centres = self._factor.centres(coordinates)
            total += log_thetas(self._steps(cells, centres), variance)[0]
            total -= self._mismatch(coordinates, centres, sums, variance)
        return total
