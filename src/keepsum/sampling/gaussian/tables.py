"""Gaussian noise in full tables with all margins of one way less kept: tensor products of kept sums."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from flint import arb

from keepsum.sampling.core.driving import PILOT_DRAWS, TASK_CELLS, UNLIMITED, State, in_parallel, run
from keepsum.sampling.core.geometric import WORD_BITS
from keepsum.sampling.core.kernels import JOB, TRIES
from keepsum.sampling.core.rng import Rng, Stream
from keepsum.sampling.gaussian.sums import Blocks, Floats, IntArray, Variances, log_thetas
from keepsum.sampling.gaussian.tables_kernels import fill_tables, innovations


class TableGaussian(Blocks):
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
        super().__init__(word_bits, np.prod(np.meshgrid(*along), axis=0).reshape(-1), count)
        self._shape = np.array(shape, dtype=np.int64)
        self._count = count
        self._cells = int(np.prod(self._shape))
        self.width = self._cells * count
        self.dimension = int(np.prod(self._shape - 1)) * count
        inner = [int(np.prod(self._shape[axis + 1 :])) for axis in range(len(shape) - 1)]
        self._level_start = np.cumsum([0, *inner]).astype(np.int64)

    def fill(self, out: IntArray, variances: Variances, deciding: bool, rng: Rng, threads: int) -> Floats:
        """Fill ``out``, one row a draw, the tables one after the other, each in row-major order."""
        jobs = len(out) * self._count
        thetas = np.zeros(0 if deciding else jobs)
        step = max(1, TASK_CELLS // (8 * self._cells))

        def task(first: int, stream: Stream) -> None:
            self._run(first, min(first + step, jobs), out.reshape(-1), variances, deciding, thetas, stream)

        in_parallel([lambda stream, f=first: task(f, stream) for first in range(0, jobs, step)], rng, threads)  # type: ignore[misc]
        return thetas if deciding else thetas.reshape(-1, self._count).sum(axis=1)

    def pilot(self, variance: Fraction, rng: Rng, most: int) -> tuple[int, int]:
        """Draw until a hundred tables are accepted or ``most`` tries are made; how many of each there were."""
        out = np.empty(PILOT_DRAWS * self._cells, dtype=np.int64)
        variances = Variances.constant(variance, PILOT_DRAWS)
        state = self._run(0, PILOT_DRAWS, out, variances, True, np.zeros(0), rng.stream(), most)
        return int(state[JOB]), int(state[TRIES])

    @property
    def cells_per_try(self) -> int:
        """What a try costs."""
        return self._cells

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
        def variance(state: State) -> arb:
            return variances.exact((first + int(state[JOB])) // self._count)

        def chance(state: State) -> arb:
            start = (first + int(state[JOB])) * self._cells
            steps = table_steps(flat[start : start + self._cells], self._shape)
            there, centred = log_thetas(steps, variance(state))
            return there - centred

        room = int(self._level_start[-1])
        scratch = (np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64), self._level_start)
        arguments = (
            self._tables,
            variances.floats,
            self._shape,
            self._count,
            first,
            last,
            flat,
            deciding,
            thetas,
            most,
        )
        index = np.zeros(len(self._shape), dtype=np.int64)
        return run(fill_tables, stream, self.referee(variance, chance), (*arguments, *scratch, index, np.zeros(3)))

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
        left = [int(n) - i for n, i in zip(shape.tolist(), index, strict=True)]
        if min(left) > 1:
            bottom = int(np.prod(left))
            share = Fraction(int(np.prod([n - 1 for n in left])), bottom)
            yield int(cells[place]) - Fraction(int(numerators[place]), bottom), share
