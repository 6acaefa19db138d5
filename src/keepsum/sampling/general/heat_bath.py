"""Narrow noise on any lattice: a chain of heat-bath moves along short lattice vectors.

At large epsilon, or small sigma, noise is mostly 0 with short vectors here and there, and a move along each of them
forgets it. From 0, one step is a sweep through all moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.lattice.grids import Grid
from keepsum.lattice.matrix import Row, dense
from keepsum.sampling.general.kernel_arguments import FAINT, MOST_SHIFT, BathTables
from keepsum.sampling.general.scales import UNIT, log_sum_law

MOST_MOVES = 40_000
TABLE_DEPTH = 60.0  # a cell's law is tabulated to e^-60


@dataclass(frozen=True, eq=False)
class HeatBath:
    """Moves and the laws of the regions that they change.

    Attributes
    ----------
    logs
        The different log laws of a region's sum at 0, 1, ...
    law
        Which of them each region has.
    moves
        Short vectors that generate the lattice.
    slips
        By how much an entry of the laws may be off, beside the rounding of a float.
    """

    logs: tuple[Floats, ...]
    law: IntArray
    moves: tuple[Row, ...]
    slips: float = 0.0

    @property
    def regions(self) -> int:
        """The number of regions."""
        return len(self.law)

    @property
    def cost(self) -> int:
        """What a sweep costs, in cells drawn freely: a move looks at about four weights."""
        return 2 * sum(len(vector) for vector in self.moves) + 4 * len(self.moves)

    @property
    def has_room(self) -> bool:
        """Whether every law is narrow enough: sums within twelve standard deviations of 0, and so moves within 24."""
        return max(int((logs > -0.5).sum()) for logs in self.logs) * 24 <= MOST_SHIFT

    def rounding(self, sweeps: int) -> float:
        """The total variation that float64 adds to a draw of so many sweeps, at most.

        The tables are right to ``slips``; on all regions together they are another law, off by expm1(2 d slips)/2 at
        most, and what they leave out is less than ``cut``. A move adds up one entry for each of its t regions, at most
        L in size: (t^2 + t) L + 8 units of a logarithm, and as much of its law. It is drawn by inversion, with two
        units for each of the k within e^FAINT of the likeliest: four times as many as sums are that likely, because
        centres may lie apart. What is fainter is less than 2^-56. Each move of a draw may go wrong by that.
        """
        largest = max(float(-logs.min()) for logs in self.logs)
        within = 4 * max(int((logs > FAINT).sum()) for logs in self.logs) + 2
        lengths = np.array([len(vector) for vector in self.moves], dtype=np.float64)
        move = (lengths**2 + lengths) * largest + 8 + 2 * min(within, 2 * MOST_SHIFT + 1) + 1
        slips = self.regions * (self.slips + 4 * largest * UNIT)
        law = math.expm1(2 * slips) / 2 if slips < 0.1 else 1.0
        cut = math.fsum(_beyond(logs) for logs in self.logs) * self.regions
        return law + cut + sweeps * float(move.sum()) * UNIT

    @cached_property
    def tables(self) -> BathTables:
        """What the kernels read."""
        return BathTables(
            law=self.law,
            starts=np.cumsum([0, *(len(logs) for logs in self.logs)]).astype(np.int64),
            logs=np.concatenate(self.logs),
            pointers=np.cumsum([0, *(len(vector) for vector in self.moves)]).astype(np.int64),
            regions=np.array([region for vector in self.moves for region in vector], dtype=np.int64),
            values=np.array([value for vector in self.moves for value in vector.values()], dtype=np.int64),
        )


def _beyond(logs: Floats) -> float:
    """The chance of a sum beyond its table, at most: ratios fall (``scales.log_tail``)."""
    return float(4 * math.exp(logs[-1] - logs.max()) / -math.expm1(logs[-1] - logs[-2]))


def laplace_logs(epsilon: float, size: int) -> Floats:
    """The log law of a region's sum under l1 Laplace noise."""
    if size > 1:
        law = log_sum_law(epsilon, size)
        return np.asarray(law - law[0])
    return -epsilon * np.arange(int(TABLE_DEPTH / epsilon) + 4, dtype=np.float64)


def gaussian_logs(variance: float) -> Floats:
    """The log law of a cell under Gaussian noise."""
    return -(np.arange(int(math.sqrt(2 * TABLE_DEPTH * variance)) + 4, dtype=np.float64) ** 2) / (2 * variance)


def table_moves(grid: Grid) -> tuple[Row, ...] | None:
    """All vectors with 2^p entries +-1 at the corners of a box: the shortest of a table's lattice."""
    count = math.prod(n * (n - 1) // 2 for n in grid.shape)
    if count > MOST_MOVES:
        return None
    return tuple(_boxes(grid))


def _boxes(grid: Grid) -> Iterator[Row]:
    for sides in product(*(combinations(range(n), 2) for n in grid.shape)):
        corners = product(*((0, 1) for _ in sides))
        yield {
            int(grid.column[tuple(side[c] for side, c in zip(sides, corner, strict=True))]): (-1) ** sum(corner)
            for corner in corners
        }


def short_moves(basis: Sequence[Row]) -> tuple[Row, ...] | None:
    """A basis, and the sums and differences of two of its vectors that are no longer than the longest of it."""
    moves = {_key(vector): vector for vector in basis}
    for first, second, sign in _short_pairs(basis):
        one, two = basis[first], basis[second]
        vector = {r: one.get(r, 0) + sign * two.get(r, 0) for r in sorted(one.keys() | two.keys())}
        vector = {r: value for r, value in vector.items() if value}
        moves.setdefault(_key(vector), vector)
        if len(moves) > MOST_MOVES:
            return None
    return tuple(moves.values())


def _short_pairs(basis: Sequence[Row]) -> Iterator[tuple[int, int, int]]:
    """Two vectors that touch, and the sign with which their sum is no longer than the longest of all."""
    matrix = dense(basis, 1 + max(max(vector) for vector in basis))
    longest = np.abs(matrix).sum(axis=1).max()
    for first in range(len(basis)):
        one, others = matrix[first], matrix[first + 1 :]
        touching = ((one != 0) & (others != 0)).any(axis=1)
        sums, differences = (np.abs(one + sign * others).sum(axis=1) <= longest for sign in (1, -1))
        for second in np.flatnonzero(touching & (sums | differences)).tolist():
            for sign, short in ((1, sums), (-1, differences)):
                if short[second]:
                    yield first, first + 1 + second, sign


def _key(vector: Row) -> frozenset[tuple[int, int]]:
    """The same for a vector and its negative."""
    sign = 1 if vector[min(vector)] > 0 else -1
    return frozenset((region, sign * value) for region, value in vector.items())
