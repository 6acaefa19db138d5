"""What the kernels of this folder read and write, by name."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from keepsum._arrays import IntArray
from keepsum.sampling.core.kernel import OUT
from keepsum.sampling.core.kernel_arguments import OutInts

OutInt8s: TypeAlias = Annotated[npt.NDArray[np.int8], OUT]


class Entries(NamedTuple):
    """A two-way table: nodes are rows, then columns.

    ``row`` and ``column`` are the nodes of each entry, ``start`` where its cells begin, ``counts`` the counts of these,
    the largest first, ``upto`` the sum of this count and the larger ones; ``pointers`` and ``at`` are the entries of
    each node. ``step`` is what a unit costs more above the positive counts than below them (0 for l2).
    """

    row: IntArray
    column: IntArray
    start: IntArray
    counts: IntArray
    upto: IntArray
    pointers: IntArray
    at: IntArray
    step: int
    rows: int


class Flow(NamedTuple):
    """The sum of each entry, and of each node its price and its excess; what a search writes on its way."""

    sums: OutInts
    price: OutInts
    excess: OutInts
    distance: OutInts
    seen: OutInt8s
    next_arc: OutInts
    path: OutInts
    entry: OutInts
    heap_distance: OutInts
    heap_node: OutInts
