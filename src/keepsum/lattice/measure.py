"""The length of a lattice vector in the norm of a mechanism, as one integer that can be compared and added."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from keepsum._arrays import IntArray

UNKNOWN = 2**58  # the key of a vector that may exist but was not found
NONE = 2**60  # the key of a vector that does not exist
SHIFT = 31  # a packed key is the l1 length shifted left by this many bits, minus the squared l2 length


@dataclass(frozen=True)
class Measure:
    """The length of a vector as one integer, its *key*, which is additive over vectors on disjoint columns.

    Under totals with weights 0 and 1 (``fewest_first``) the vectors that change the fewest counts come first, and among
    them the longest in the l2 norm. Otherwise vectors are compared by length.

    Examples
    --------
    >>> measure = Measure("l2", fewest_first=True)
    >>> short, long = measure.key(4, 4), measure.key(4, 6)
    >>> min(short, long) == long, measure.lengths(np.array([long + measure.key(2, 2)])).tolist()
    (True, [8])
    """

    norm: Literal["l1", "l2"]
    fewest_first: bool

    @property
    def packed(self) -> bool:
        """Whether a key holds both lengths."""
        return self.norm == "l2" and self.fewest_first

    def key(self, l1: int, squared_l2: int) -> int:
        """The key of a vector with these lengths; the vector with the smallest key is the one that matters."""
        larger = l1 if self.norm == "l1" else max(l1, squared_l2)
        if larger >= 2**26:  # so that the sum of two keys stays below UNKNOWN
            return UNKNOWN
        if self.packed:
            return (l1 << SHIFT) - squared_l2
        return l1 if self.norm == "l1" else squared_l2

    def lengths(self, keys: IntArray) -> IntArray:
        """The l1 lengths or the squared l2 lengths; sums with ``UNKNOWN`` or ``NONE`` become these again."""
        lengths = -keys % (1 << SHIFT) if self.packed else keys
        return np.where(keys >= NONE, NONE, np.where(keys >= UNKNOWN, UNKNOWN, lengths))

    def entries(self, keys: IntArray) -> IntArray:
        """The smallest l1 length that vectors with these keys can have."""
        fewest = -(-keys >> SHIFT) if self.packed else keys
        return np.where(keys >= NONE, NONE, np.where(keys >= UNKNOWN, UNKNOWN, fewest))

    def of(self, entries: Iterable[int], sizes: Iterable[int]) -> int:
        """The key of a vector of region sums, where each region has the given number of cells.

        Where the shortest l2 vector counts, each sum is spread evenly over the cells of its region; where the longest
        counts, it goes to one cell.
        """
        sums = [abs(entry) for entry in entries]
        squares = [n * n if self.fewest_first else _spread(n, size) for n, size in zip(sums, sizes, strict=True)]
        return self.key(sum(sums), sum(squares))


def _spread(total: int, cells: int) -> int:
    """The smallest sum of squares of this many integers with this sum."""
    each, remainder = divmod(total, cells)
    return (cells - remainder) * each**2 + remainder * (each + 1) ** 2
