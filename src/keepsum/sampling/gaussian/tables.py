"""Gaussian noise in full tables with all margins of one way less kept: tensor products of kept sums."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from flint import arb

from keepsum._arrays import IntArray
from keepsum.sampling.core.driving import run
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import EXACT_STATE, WORD_BITS, OutInts, State, Task, Words
from keepsum.sampling.core.rng import Stream
from keepsum.sampling.gaussian.kernel_arguments import FullRoom, FullTables, FullTask
from keepsum.sampling.gaussian.parts import CountedBlocks, Variances, log_thetas

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
