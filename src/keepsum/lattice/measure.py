"""How long a lattice vector is, in the norm of a mechanism: one whole number that is compared and added."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from keepsum.lattice.matrix import IntArray

UNKNOWN = 2**58  # the length of what may exist, but is not known
NONE = 2**60  # the length of what does not exist
SHIFT = 31  # a number that holds both lengths is the l1 length so far to the left, less the squared l2 length


@dataclass(frozen=True)
class Measure:
    """How long a vector is, as one whole number that adds up over vectors on different columns.

    Under totals of weights 0 and 1 (``fewest_first``) the vectors that change the fewest counts are compared, and of
    these the longest in the l2 norm stands for all; else vectors are compared by their own length.

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
        """Whether a number holds both lengths."""
        return self.norm == "l2" and self.fewest_first

    def key(self, l1: int, squared_l2: int) -> int:
        """The number of a vector of these lengths; the smaller number is the vector that counts."""
        longest = l1 if self.norm == "l1" else max(l1, squared_l2)
        if longest >= 2**26:  # so that no sum of two numbers comes near to what is not known
            return UNKNOWN
        if self.packed:
            return (l1 << SHIFT) - squared_l2
        return l1 if self.norm == "l1" else squared_l2

    def lengths(self, keys: IntArray) -> IntArray:
        """The l1 lengths, or the squared l2 lengths; ``UNKNOWN`` and ``NONE`` stay, also with something added."""
        lengths = -keys % (1 << SHIFT) if self.packed else keys
        return np.where(keys >= NONE, NONE, np.where(keys >= UNKNOWN, UNKNOWN, lengths))

    def entries(self, keys: IntArray) -> IntArray:
        """The least l1 length that vectors of these numbers can have."""
        fewest = -(-keys >> SHIFT) if self.packed else keys
        return np.where(keys >= NONE, NONE, np.where(keys >= UNKNOWN, UNKNOWN, fewest))

    def of(self, entries: Iterable[int], sizes: Iterable[int]) -> int:
        """The number of a vector of sums, each over so many cells.

        Vectors that are compared by their l2 length spread a sum evenly over its cells; the longest does not.
        """
        counted = [abs(entry) for entry in entries]
        squares = [n * n if self.fewest_first else _spread(n, size) for n, size in zip(counted, sizes, strict=True)]
        return self.key(sum(counted), sum(squares))


def _spread(total: int, cells: int) -> int:
    """The smallest sum of squares of that many whole numbers with that sum."""
    each, more = divmod(total, cells)
    return (cells - more) * each**2 + more * (each + 1) ** 2
