"""Totally unimodular totals, where simple sufficient conditions show it: every minor is 0, 1 or -1.

Then the Graver basis consists of the circuits, whose entries are 0, 1 and -1 (Sturmfels 1996, proposition 8.11): they
have at most one entry more than the rank. Sufficient is each of these, for the matrix or its transpose:

- columns of at most two entries, and the rows can be coloured so that two entries of a column have different colours
  where they agree in sign, and the same one otherwise (Heller, Tompkins 1956);
- consecutive ones in each row, as in totals of overlapping age ranges (Schrijver 1986, chapter 19).

The lattice depends on the row space only. So rows may be divided by a factor, or the matrix brought to the form (I, B)
by elimination: it is totally unimodular if and only if B is.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from keepsum.lattice.elimination import eliminate
from keepsum.lattice.graphs import connected_components
from keepsum.lattice.matrix import matrix_rows, rows_matrix

ELIMINATED = 10**7  # rows times rows times columns that are eliminated: a second at most


def is_unimodular(matrix: sparse.csr_array) -> bool:
    """Whether a lattice is certain to be that of a totally unimodular matrix; False if it is not known.

    >>> is_unimodular(sparse.csr_array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 3, 3, 3]]))
    True
    >>> is_unimodular(sparse.csr_array([[1, 1, 1], [1, 2, 3]]))
    False
    """
    lengths = np.diff(matrix.indptr)
    matrix = matrix[np.flatnonzero(lengths)]
    first = np.repeat(matrix.data[matrix.indptr[:-1]], lengths[lengths > 0])
    # Compared without abs, which wraps at -2^63.
    if ((matrix.data == first) | (matrix.data == -first)).all():
        signs = np.where(matrix.data == first, 1, -1)
        if _is_certain(sparse.csr_array((signs, matrix.indices, matrix.indptr), shape=matrix.shape)):
            return True
    height, width = matrix.shape
    if height * height * width > ELIMINATED:
        return False
    reduced = eliminate(matrix_rows(matrix), width, units_only=True)
    if reduced.leftover:
        return False
    rest = [{j: entry for j, entry in reduced.rows[i].items() if j != pivot} for i, pivot in reduced.pivots.items()]
    if any(abs(entry) != 1 for row in rest for entry in row.values()):
        return False
    free = sorted(set(range(width)) - set(reduced.pivots.values()))
    return _is_certain(rows_matrix([row for row in rest if row], width).tocsc()[:, free].tocsr())


def _is_certain(signs: sparse.csr_array) -> bool:
    """Whether one of the conditions holds for a matrix of 0, 1 and -1 or its transpose."""
    return any(has(m) for m in (signs, sparse.csr_array(signs.T)) for has in (_is_coloured, _has_intervals))


def _is_coloured(signs: sparse.csr_array) -> bool:
    """Whether the columns can be coloured as the rows of Heller and Tompkins, with rows of at most two entries.

    Each column has a vertex for either colour; a column whose vertices are connected would have both.
    """
    lengths = np.diff(signs.indptr)
    if (lengths > 2).any():
        return False
    start = signs.indptr[:-1][lengths == 2]
    one, other = signs.indices[start].astype(np.int64), signs.indices[start + 1].astype(np.int64)
    width = signs.shape[1]
    agree = (signs.data[start] == signs.data[start + 1]) * width
    tail, head = np.concatenate([one, one + width]), np.concatenate([other + agree, other + width - agree])
    component = connected_components(tail, head, 2 * width)[1]
    return bool((component[:width] != component[width:]).all())


def _has_intervals(signs: sparse.csr_array) -> bool:
    """Whether each row has one sign, in consecutive columns."""
    row = np.repeat(np.arange(signs.shape[0]), np.diff(signs.indptr))
    inside = np.diff(row) == 0
    steps = np.diff(signs.indices) == 1
    return bool((steps & (np.diff(signs.data) == 0))[inside].all())
