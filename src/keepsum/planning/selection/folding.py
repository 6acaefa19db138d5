"""Axes of two categories: the noise of a table only changes sign along them, so the table is drawn folded."""

from __future__ import annotations

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.grids import Grid
from keepsum.planning.selection.choice import Sampler, simulate_into
from keepsum.sampling.core.rng import Rng


class Folded:
    """A table with axes of two categories, along which the noise only changes sign.

    Halves of a table that differ only in sign count twice in the l1 norm, so each such axis doubles the epsilon with
    which the rest of the table is drawn.
    """

    def __init__(self, core: Sampler, tables: int, signs: IntArray) -> None:
        self._core, self._tables, self._signs = core, tables, signs
        self.width = core.width * len(signs)

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw."""
        core = np.empty((len(out), self._core.width), dtype=np.int64)
        self._core.draw_into(core, rng, threads)
        self._unfold(core, out)

    def simulate_into(self, out: IntArray, rng: Rng) -> None:
        """Fill ``out`` with rows for estimates, where the core is a chain."""
        core = np.empty((len(out), self._core.width), dtype=np.int64)
        simulate_into(self._core, core, rng)
        self._unfold(core, out)

    def _unfold(self, core: IntArray, out: IntArray) -> None:
        shaped = core.reshape(len(out), self._tables, 1, -1) * self._signs[:, None]
        out[:] = shaped.reshape(len(out), self.width)


def core_shape(grid: Grid) -> tuple[int, ...]:
    """The lengths of the axes of more than two categories, the longest first.

    >>> core_shape(Grid(np.arange(24).reshape(3, 2, 4)))
    (4, 3)
    """
    return tuple(sorted((n for n in grid.shape if n > 2), reverse=True))


def folded_order(grid: Grid) -> IntArray:
    """The columns of a grid with its axes of two categories first, then the longer of the others."""
    axes = sorted(range(len(grid.shape)), key=lambda axis: (grid.shape[axis] > 2, -grid.shape[axis], axis))
    return np.transpose(grid.column, axes).reshape(-1)


def fold_signs(pairs: int) -> IntArray:
    """The signs of the halves of a table with that many axes of two categories.

    >>> fold_signs(2).tolist()
    [1, -1, -1, 1]
    """
    return np.array([(-1) ** bin(k).count("1") for k in range(2**pairs)], dtype=np.int64)
