"""Vectors of c integers with sum 0, none larger than a reach: a box, stored by all coordinates but the last.

Weights are arrays over the box, one axis for each stored coordinate, with index 0 at -reach. Places where the last
coordinate would be beyond the reach are in the array but not in the box; weights are 0 there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from keepsum._arrays import BoolArray, Floats, IntArray


@dataclass(frozen=True)
class Box:
    """The vectors of ``columns`` integers with sum 0 and entries from -``reach`` to ``reach``."""

    columns: int
    reach: int

    @property
    def dimensions(self) -> int:
        """The number of coordinates that are stored."""
        return self.columns - 1

    @property
    def side(self) -> int:
        """The values of a coordinate."""
        return 2 * self.reach + 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an array over the box."""
        return (self.side,) * self.dimensions

    @property
    def size(self) -> int:
        """The number of entries of an array over the box."""
        return int(self.side**self.dimensions)

    @property
    def block(self) -> int:
        """The entries of a block: sums over the box are sums of blocks, so that rounding errors stay small."""
        return int(self.side ** (self.dimensions // 2))

    @cached_property
    def lengths(self) -> IntArray:
        """The sum of the absolute values of all coordinates, for each place."""
        axes = np.meshgrid(*self._axes, indexing="ij", sparse=True)
        total: IntArray = sum((np.abs(axis) for axis in axes), np.abs(sum(axes)))
        return total

    @cached_property
    def heights(self) -> IntArray:
        """The largest absolute value of all coordinates, for each place: beyond the reach outside the box."""
        axes = np.meshgrid(*self._axes, indexing="ij", sparse=True)
        height: IntArray = np.abs(sum(axes))
        for axis in axes:
            height = np.maximum(height, np.abs(axis))
        return height

    @cached_property
    def inside(self) -> BoolArray:
        """Which places of the array are in the box."""
        return self.heights <= self.reach

    @cached_property
    def orbits(self) -> tuple[IntArray, IntArray]:
        """Vectors that differ by the order of coordinates and by sign, of those in the box.

        Returns
        -------
        tuple
            A vector of each orbit, all its coordinates; and the orbit of each place, -1 outside the box.
        """
        places = np.flatnonzero(self.inside)
        stored = np.stack(np.unravel_index(places, self.shape), axis=1).astype(np.int32) - self.reach
        vectors = np.sort(np.column_stack([stored, -stored.sum(axis=1)]).astype(np.int32), axis=1)
        powers = self.side ** np.arange(self.columns, dtype=np.int64)
        codes = np.minimum((vectors + self.reach) @ powers, (self.reach - vectors[:, ::-1]) @ powers)
        _, first, orbit = np.unique(codes, return_index=True, return_inverse=True)
        orbit_of = np.full(self.size, -1, dtype=np.int64)
        orbit_of[places] = orbit.reshape(-1)
        return vectors[first].astype(np.int64), orbit_of.reshape(self.shape)

    @property
    def _axes(self) -> list[IntArray]:
        return [np.arange(-self.reach, self.reach + 1, dtype=np.int64)] * self.dimensions

    def place(self, vector: IntArray) -> tuple[int, ...]:
        """The index of a vector, given by its stored coordinates; it must be in the array."""
        return tuple((vector + self.reach).tolist())

    def holds(self, vectors: IntArray) -> BoolArray:
        """Whether vectors, given by their stored coordinates along the last axis, are in the box."""
        largest: IntArray = np.maximum(np.abs(vectors).max(axis=-1), np.abs(vectors.sum(axis=-1)))
        return largest <= self.reach

    def product(self, left: Floats, right: Floats, y: IntArray) -> Floats:
        """left(u) right(y - u) over the box, for weights with right(-v) = right(v)."""
        joint = np.zeros(self.shape)
        lows, highs = np.maximum(0, y), self.side + np.minimum(0, y)
        if (lows < highs).all():
            here = tuple(slice(a, b) for a, b in zip(lows.tolist(), highs.tolist(), strict=True))
            there = tuple(slice(a, b) for a, b in zip((lows - y).tolist(), (highs - y).tolist(), strict=True))
            np.multiply(left[here], right[there], out=joint[here])
        return joint

    def total(self, weights: Floats) -> float:
        """The sum over the box, axis by axis."""
        while weights.ndim:
            weights = weights.sum(axis=-1)
        return float(weights)

    def marginal(self, weights: Floats, axis: int) -> Floats:
        """The sums over all coordinates but one."""
        behind = weights.reshape(*self.shape[: axis + 1], -1).sum(axis=-1)
        marginal: Floats = behind.reshape(-1, self.side).sum(axis=0)
        return marginal


def height(vector: IntArray) -> int:
    """The largest absolute value of all coordinates of a vector, the last one included."""
    return max(int(np.abs(vector).max()), abs(int(vector.sum())))


def folded(weights: Floats, reach: int, points: int) -> Floats:
    """Weights over a box added up modulo ``points`` in each coordinate, with the vector 0 at index 0.

    >>> folded(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 2, 3).tolist()
    [3.0, 5.0, 7.0]
    """
    front = -reach % points
    for axis in range(weights.ndim):
        width = front + weights.shape[axis]
        turns = -(-width // points)
        shape = list(weights.shape)
        shape[axis] = turns * points
        padded = np.zeros(shape)
        padded[(slice(None),) * axis + (slice(front, width),)] = weights
        shape[axis : axis + 1] = [turns, points]
        weights = padded.reshape(shape).sum(axis=axis)
    return weights
