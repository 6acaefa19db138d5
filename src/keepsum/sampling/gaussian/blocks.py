"""Gaussian noise in any other block: the sums of its regions by a triangular factor, then their cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import arb

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.balls import ball
from keepsum.sampling.core.driving import run
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import EXACT_STATE, WORD_BITS, State, Task, Words
from keepsum.sampling.core.rng import Stream
from keepsum.sampling.gaussian.factors import Factor
from keepsum.sampling.gaussian.kernel_arguments import SAMPLE, BlockRoom, BlockTables, BlockTask
from keepsum.sampling.gaussian.parts import CountedBlocks, Variances, log_thetas
from keepsum.sampling.gaussian.sums import sum_shares, sum_steps

fill_gaussian_blocks = Kernel("fill_gaussian_blocks", Words, EXACT_STATE, BlockTables, BlockTask)


class BlockGaussian(CountedBlocks):
    """Gaussian noise in blocks of regions under overlapping totals.

    The cells of a region with sum S have |z|^2 = |z - S/n|^2 + S^2/n, so the sums are drawn first, on their own lattice
    with the quadratic form sum of S^2/n, and then the cells of each region given its sum. Under a focus the form has a
    term w S^2 more for each focused total, whose sum is one more entry of the lattice's vectors.

    Parameters
    ----------
    factor
        The triangular factor of the lattice of sums.
    sizes
        The number of cells of each region.
    count
        How many such blocks a draw has.
    weights
        Those of focused totals, where a cell has 1.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-(|z|^2 + sum of w z(g)^2) / 2 sigma^2) on the lattice, z(g) the sums of focused
    totals. ``tests/statistical/test_gaussian.py``, ``tests/statistical/test_gaussian_focus.py``.
    """

    def __init__(
        self,
        factor: Factor,
        sizes: npt.ArrayLike,
        count: int = 1,
        word_bits: int = WORD_BITS,
        weights: Sequence[Fraction] = (),
    ) -> None:
        self._sizes = np.asarray(sizes, dtype=np.int64)
        inside, counts = sum_shares(self._sizes)
        every = np.concatenate([np.ones(len(factor.shares)), counts]) * count
        shares = np.concatenate([factor.shares, inside])
        super().__init__(word_bits, shares, every, int(self._sizes.sum()), count)
        self._factor = factor
        self._form = [*(Fraction(1, n) for n in self._sizes.tolist()), *weights]
        self._starts = np.cumsum(self._sizes) - self._sizes
        self.dimension = (len(factor.shares) + self._cells - len(self._sizes)) * count

    @property
    def cells_per_try(self) -> int:
        """What a try costs: cells, and multiplications by the factor, which are quicker."""
        return self._cells + len(self._factor.tables.rows) // 16

    def _run(self, task: Task, variances: Variances, deciding: bool, stream: Stream) -> State:
        factor = self._factor
        count = len(factor.shares)
        room = BlockRoom(
            log_weights=task.room,
            coordinates=np.zeros(count, dtype=np.int64),
            centres=np.zeros(count),
            sums=np.zeros(len(self._form), dtype=np.int64),
        )

        def variance(state: State) -> arb:
            return variances.exact(self._row(task, state))

        def centre(state: State) -> tuple[Fraction, Fraction] | None:
            if state.phase != SAMPLE:
                return None
            j = count - 1 - int(state.region)
            drawn_around = room.centres[j]
            return Fraction(drawn_around) - math.floor(drawn_around + 0.5), Fraction(factor.shares[j])

        def chance(state: State) -> arb:
            there, centred = log_thetas(self._steps(self._block(task, state), room.centres), variance(state))
            return there - centred - self._mismatch(room.coordinates, room.centres, room.sums, variance(state))

        referee = self.referee(variance, chance, centre)
        tables = BlockTables(
            gaussian=self._tables,
            variances=variances.floats,
            deciding=deciding,
            factor=factor.tables,
            form=np.array([float(weight) for weight in self._form]),
            sizes=self._sizes,
            starts=self._starts,
            width=self._cells,
            per_row=self._count,
        )
        return run(fill_gaussian_blocks, stream, tables, task._replace(room=room), referee)

    def _steps(self, cells: IntArray, centres: Floats) -> Iterable[tuple[Fraction, Fraction]]:
        for centre, share in zip(centres.tolist(), self._factor.shares.tolist(), strict=True):
            yield Fraction(centre), Fraction(share)
        for start, size in zip(self._starts.tolist(), self._sizes.tolist(), strict=True):
            region = cells[start : start + size]
            yield from sum_steps(region, int(region.sum()))

    def _mismatch(self, coordinates: IntArray, centres: Floats, sums: IntArray, variance: arb) -> arb:
        """Half of the difference of the quadratic forms over sigma^2, exactly."""
        exact = sum((s * s * weight for s, weight in zip(sums.tolist(), self._form, strict=True)), Fraction(0))
        steps = zip(coordinates.tolist(), centres.tolist(), self._factor.shares.tolist(), strict=True)
        proposed = sum(((v - Fraction(c)) ** 2 / Fraction(share) for v, c, share in steps), Fraction(0))
        if proposed > exact:
            raise AssertionError("the factor's quadratic form exceeds the lattice's")
        return ball(exact - proposed) / (2 * variance)

    def log_weight(self, row: IntArray, variance: arb) -> arb:
        """Block by block: coordinates are found again from the sums, and centres from the coordinates."""
        if len(self._form) > len(self._sizes):
            raise AssertionError("noise of a random width has no focus")
        total = arb(0)
        for cells in row.reshape(self._count, self._cells):
            sums = np.add.reduceat(cells, self._starts)
            coordinates = self._factor.coordinates(sums)
            centres = self._factor.centres(coordinates)
            total += log_thetas(self._steps(cells, centres), variance)[0]
            total -= self._mismatch(coordinates, centres, sums, variance)
        return total
