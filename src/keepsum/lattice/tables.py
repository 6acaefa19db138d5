"""Tables in disguise: systems of totals that are all the (p-1)-way margins of a full p-way table.

They have closed forms: the lattice is a tensor product of root lattices A_n, its basis is a tensor product of
"star" bases, and its shortest vectors through any cell have 2^p entries of +-1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy import sparse

from keepsum.lattice.matrix import IntArray, Row


@dataclass(frozen=True)
class Grid:
    """A full p-way table whose kept totals are all its (p-1)-way margins.

    ``column[i, j, ...]`` is the column of the matrix at that place of the table.
    """

    column: IntArray

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis, at least 2."""
        return self.column.shape

    @property
    def dimension(self) -> int:
        """The dimension of the lattice, the product of (n - 1)."""
        return math.prod(n - 1 for n in self.shape)

    def basis(self) -> list[Row]:
        """The tensor product of the star bases ``e_0 - e_i``; it is LLL-reduced.

        The star basis of A_n has Gram-Schmidt coefficients 1/(i+1) <= 1/2 and squared norms (i+1)/i, so it is
        size-reduced and satisfies Lovasz's condition even with delta = 1. In a tensor product coefficients and
        norms multiply, and where one factor wraps around the norm rises.
        """
        vectors = []
        for place in product(*(range(1, n) for n in self.shape)):
            corners = product(*((0, i) for i in place))
            vectors.append({int(self.column[c]): 1 if sum(i > 0 for i in c) % 2 == 0 else -1 for c in corners})
        return vectors


def recognise(matrix: sparse.csr_array) -> Grid | None:
    """The table that a system of totals stands for, if it is one.

    The rows are sorted into classes that each divide all columns; classes coarser than another say nothing new.
    If the rest are the margins of a table, then joining the columns by all classes but one leaves the layers
    along one axis, and the layers of all axes tell the cells apart.

    Examples
    --------
    >>> margins = sparse.csr_array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]])
    >>> recognise(margins).shape
    (2, 2)
    """
    classes = _parallel_classes(matrix)
    if classes is None or len(classes) < 2:
        return None
    layers = [_layers([c for b, c in enumerate(classes) if b != a]) for a in range(len(classes))]
    shape = tuple(int(layer.max()) + 1 for layer in layers)
    width = matrix.shape[1]
    if math.prod(shape) != width or min(shape) < 2:
        return None
    place = np.ravel_multi_index(layers, shape)
    column = np.full(width, -1, dtype=np.int64)
    column[place] = np.arange(width)
    if (column < 0).any():
        return None
    for labels, length in zip(classes, shape, strict=True):
        if (np.bincount(labels) != length).any():
            return None
    return Grid(column.reshape(shape))


def _parallel_classes(matrix: sparse.csr_array) -> list[IntArray] | None:
    """Sort the rows into classes of disjoint rows that cover everything; None if that fails.

    Each row goes to the first class that it does not overlap, light rows first.
    """
    if (matrix.data != 1).any():
        return None
    classes: list[IntArray] = []
    sizes: list[int] = []
    weights = np.diff(matrix.indptr)
    most = int(np.bincount(matrix.indices, minlength=matrix.shape[1]).max(initial=0))
    for i in np.argsort(weights, kind="stable").tolist():
        support = matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]]
        k = next((k for k, labels in enumerate(classes) if (labels[support] < 0).all()), len(classes))
        if k == most:
            return None
        if k == len(classes):
            classes.append(np.full(matrix.shape[1], -1, dtype=np.int64))
            sizes.append(0)
        classes[k][support] = sizes[k]
        sizes[k] += 1
    if any((labels < 0).any() for labels in classes):
        return None
    return _finest(classes, sizes)


def _finest(classes: list[IntArray], sizes: list[int]) -> list[IntArray]:
    """Leave out each class whose rows are unions of the rows of another class."""
    kept: list[int] = []
    for a in sorted(range(len(classes)), key=lambda k: -sizes[k]):
        pairs = (classes[b] * sizes[a] + classes[a] for b in kept)
        if all(len(np.unique(pair)) > sizes[b] for pair, b in zip(pairs, kept, strict=True)):
            kept.append(a)
    return [classes[a] for a in sorted(kept)]


def _layers(classes: list[IntArray]) -> IntArray:
    """The connected components of the columns when all columns of a row are joined."""
    from scipy.sparse.csgraph import connected_components

    width = len(classes[0])
    offset = width
    ends = []
    for labels in classes:
        ends.append(labels + offset)
        offset += int(labels.max()) + 1
    rows = np.tile(np.arange(width), len(classes))
    graph = sparse.coo_array((np.ones(len(rows), dtype=np.int8), (rows, np.concatenate(ends))), shape=(offset, offset))
    labels = connected_components(graph, directed=False)[1][:width]
    return np.unique(labels, return_inverse=True)[1]
