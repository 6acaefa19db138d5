"""Full tables recognised from their totals: systems that are all the (p-1)-way margins of a full p-way table.

They have closed forms: the lattice is a tensor product of root lattices A_n, its basis is a tensor product of
"star" bases, and its shortest vectors through any cell have 2^p entries of +-1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise, product

import numpy as np
from scipy import sparse

from keepsum._arrays import IntArray
from keepsum.lattice.graphs import connected_components
from keepsum.lattice.matrix import Row

# Directions are traced column by column in Python: at most one second.
DIRECTION_LIMIT = 20_000


@dataclass(frozen=True)
class Grid:
    """A full p-way table whose kept totals are all its (p-1)-way margins.

    ``column[i, j, ...]`` is the column of the matrix for that cell of the table.
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
        size-reduced and satisfies Lovász's condition even with delta = 1. In a tensor product, coefficients and
        norms multiply, and where one factor wraps around the norm increases.
        """
        vectors = []
        for place in product(*(range(1, n) for n in self.shape)):
            corners = product(*((0, i) for i in place))
            vectors.append({int(self.column[c]): 1 if sum(i > 0 for i in c) % 2 == 0 else -1 for c in corners})
        return vectors


def table_matrix(shape: tuple[int, ...]) -> sparse.csr_array:
    """All (p-1)-way margins of a p-way table, columns in row-major order.

    >>> table_matrix((2, 3)).toarray().tolist()
    [[1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    """
    ones = [sparse.csr_array(np.ones((1, n), dtype=np.int64)) for n in shape]
    identities = [sparse.csr_array(sparse.eye_array(n, dtype=np.int64)) for n in shape]
    margins = []
    for axis in range(len(shape)):
        factors = [ones[a] if a == axis else identities[a] for a in range(len(shape))]
        margins.append(reduce(sparse.kron, factors))
    return sparse.csr_array(sparse.vstack(margins))


def recognise(matrix: sparse.csr_array) -> Grid | None:
    """The full table whose margins a system of totals is, if there is one.

    The rows are sorted into classes that each partition the columns; a class coarser than another is redundant. If the
    remaining classes are the margins of a table, joining columns by all classes but one gives the layers along one
    axis, and the layers of all axes identify the cells.

    Examples
    --------
    >>> margins = sparse.csr_array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]])
    >>> recognise(margins).shape
    (2, 2)
    """
    matrix = matrix[np.flatnonzero(np.diff(matrix.indptr))]
    lengths = np.diff(matrix.indptr)
    if not len(lengths) or (matrix.data != np.repeat(matrix.data[matrix.indptr[:-1]], lengths)).any():
        return None  # a margin gives all its columns the same weight
    for find in (_classes_by_overlap, _classes_by_direction):
        classes = find(matrix)
        grid = _grid_of(classes) if classes is not None else None
        if grid is not None:
            return grid
    return None


def _grid_of(classes: list[IntArray]) -> Grid | None:
    """The table whose lines these classes are, if there is one."""
    if len(classes) < 2:
        return None
    if math.prod(int(np.count_nonzero(labels == labels[0])) for labels in classes) != len(classes[0]):
        return None  # the rows through a column are as long as the axes
    layers = [_layers([c for b, c in enumerate(classes) if b != a]) for a in range(len(classes))]
    shape = tuple(int(layer.max()) + 1 for layer in layers)
    width = len(classes[0])
    if math.prod(shape) != width or min(shape) < 2:
        return None
    column = np.full(width, -1, dtype=np.int64)
    column[np.ravel_multi_index(layers, shape)] = np.arange(width)
    if (column < 0).any():
        return None
    for labels, length in zip(classes, shape, strict=True):
        if (np.bincount(labels) != length).any():
            return None
    return Grid(column.reshape(shape))


def _classes_by_overlap(matrix: sparse.csr_array) -> list[IntArray] | None:
    """Put each row into the first class that it does not overlap, rows with few entries first.

    Correct for two-way tables with rows in any order, and for others if their margins follow one another. Classes that
    all partition the columns contain every column equally often, so nothing is tried unless the rows do.
    """
    width = matrix.shape[1]
    classes: list[IntArray] = []
    sizes: list[int] = []
    times = np.bincount(matrix.indices, minlength=width)
    most = int(times.max(initial=0))
    if (times < most).any():
        return None
    taken = np.zeros(width, dtype=np.int64 if most < 63 else object)  # the classes of each column, one bit each
    for i in np.argsort(np.diff(matrix.indptr), kind="stable").tolist():
        support = matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]]
        bits = int(np.bitwise_or.reduce(taken[support]))
        k = (~bits & (bits + 1)).bit_length() - 1
        if k == most:
            return None
        if k == len(classes):
            classes.append(np.full(width, -1, dtype=np.int64))
            sizes.append(0)
        classes[k][support] = sizes[k]
        taken[support] |= 1 << k
        sizes[k] += 1
    if any((labels < 0).any() for labels in classes):
        return None
    return _finest(classes, sizes)


def _classes_by_direction(matrix: sparse.csr_array) -> list[IntArray] | None:
    """Trace the directions of a table from one column to all others, whatever the order of its rows.

    Let e be a neighbour of c along a row. Any other row of e has the direction of the row of c that has a further
    column d such that a row of d meets both. In a table there is exactly one such row.
    """
    columns = matrix.tocsc()
    ways = np.diff(columns.indptr)
    if ways.min() < 3 or ways.max() != ways.min() or matrix.shape[1] > DIRECTION_LIMIT:
        return None
    of_first = np.diff(matrix.indptr)[columns.indices[: columns.indptr[1]]]
    if math.prod(of_first.tolist()) != matrix.shape[1]:
        return None  # see _grid_of
    rows_of = [columns.indices[a:b].tolist() for a, b in pairwise(columns.indptr)]
    cells_of = [set(matrix.indices[a:b].tolist()) for a, b in pairwise(matrix.indptr)]
    direction = {row: k for k, row in enumerate(rows_of[0])}
    seen, queue = {0}, [0]
    while queue:
        c = queue.pop()
        for e in {cell for row in rows_of[c] for cell in cells_of[row]} - seen:
            for row in rows_of[e]:
                if row not in direction:
                    others = [r for r in rows_of[c] if e not in cells_of[r]]
                    alongside = next((r for r in others if _alongside(row, r, c, rows_of, cells_of)), None)
                    if alongside is None:
                        return None
                    direction[row] = direction[alongside]
            seen.add(e)
            queue.append(e)
    return _classes_of(direction, matrix, int(ways[0])) if len(direction) == matrix.shape[0] else None


def _alongside(row: int, other: int, c: int, rows_of: list[list[int]], cells_of: list[set[int]]) -> bool:
    d = next((cell for cell in cells_of[other] if cell != c), c)
    return d != c and any(r != other and cells_of[r] & cells_of[row] for r in rows_of[d])


def _classes_of(direction: dict[int, int], matrix: sparse.csr_array, ways: int) -> list[IntArray] | None:
    classes = [np.full(matrix.shape[1], -1, dtype=np.int64) for _ in range(ways)]
    sizes = [0] * ways
    for row, k in direction.items():
        classes[k][matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]] = sizes[k]
        sizes[k] += 1
    if any((labels < 0).any() or len(np.unique(labels)) < size for labels, size in zip(classes, sizes, strict=True)):
        return None
    return classes


def _finest(classes: list[IntArray], sizes: list[int]) -> list[IntArray]:
    """Drop each class whose rows are unions of the rows of another class."""
    kept: list[int] = []
    for a in sorted(range(len(classes)), key=lambda k: -sizes[k]):
        pairs = (classes[b] * sizes[a] + classes[a] for b in kept)
        if all(len(np.unique(pair)) > sizes[b] for pair, b in zip(pairs, kept, strict=True)):
            kept.append(a)
    return [classes[a] for a in sorted(kept)]


def _layers(classes: list[IntArray]) -> IntArray:
    """The connected components of the columns when all columns of a row are joined."""
    width = len(classes[0])
    offset = width
    ends = []
    for labels in classes:
        ends.append(labels + offset)
        offset += int(labels.max()) + 1
    rows = np.tile(np.arange(width), len(classes))
    labels = connected_components(rows, np.concatenate(ends), offset)[1][:width]
    return np.unique(labels, return_inverse=True)[1]
