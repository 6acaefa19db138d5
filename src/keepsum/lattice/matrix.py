"""Integer matrices: validated on input, multiplied without overflow.

A matrix is a ``scipy.sparse.csr_array`` of int64 without stored zeros. Small exact computations use rows as
dictionaries of Python integers, which cannot overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from flint import fmpz_mat
from scipy import sparse

from keepsum._arguments import as_array
from keepsum._arrays import IntArray
from keepsum.errors import InputError, PlanError

Row: TypeAlias = dict[int, int]

INT64_MAX = 2**63 - 1


def as_matrix(values: Any, what: str = "Matrix") -> sparse.csr_array:
    """Check that values form a two-dimensional integer matrix, and return it in the form used everywhere here."""
    if sparse.issparse(values):
        result = _from_sparse(values, what)
    else:
        array = as_integers(values, what)
        if array.ndim != 2 or array.shape[1] == 0:
            raise InputError(f"{what} must have two dimensions and at least one column, got shape {array.shape}.")
        result = sparse.csr_array(array)
    result.eliminate_zeros()
    result.sort_indices()
    return frozen(result)


def frozen(matrix: sparse.csr_array) -> sparse.csr_array:
    """The same matrix, read-only."""
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.setflags(write=False)
    return matrix


def as_integers(values: Any, what: str) -> IntArray:
    """Values as a new int64 array; anything but whole numbers that fit is refused, never rounded or wrapped."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{what} must have whole numbers as entries, got a masked array with missing entries.")
    return _as_int64(_as_array(values, what), what)


def _from_sparse(values: Any, what: str) -> sparse.csr_array:
    """A copy of a sparse matrix; duplicate entries are summed."""
    if len(values.shape) != 2 or values.shape[1] == 0:
        raise InputError(f"{what} must have two dimensions and at least one column, got shape {values.shape}.")
    listed = sparse.coo_array(values)
    data = _as_int64(listed.data, what)
    without_duplicates = getattr(values, "has_canonical_format", False)
    if not without_duplicates and sum(abs(entry) for entry in data.tolist()) > INT64_MAX:
        raise InputError(
            f"{what} must not have duplicate entries whose sum may exceed 64-bit integers. Call sum_duplicates() first."
        )
    return sparse.csr_array((data, (listed.row, listed.col)), shape=listed.shape)


def _as_array(values: Any, what: str) -> npt.NDArray[Any]:
    array = as_array(values)
    if array is None:
        raise InputError(f"{what} must have rows of one length, got rows of different lengths.")
    if isinstance(values, np.ndarray) or array.dtype.kind != "f":
        return array
    # numpy converts a list with an integer beyond 64 bits to floats: use the integers of the list instead.
    objects = np.asarray(values, dtype=object)
    return objects if all(isinstance(entry, int) for entry in objects.ravel().tolist()) else array


def _as_int64(data: npt.NDArray[Any], what: str) -> IntArray:
    """Whole numbers within int64, or an error; nothing is rounded or wrapped."""
    too_large = f"{what} must have entries that fit 64-bit integers, got a larger one. Divide rows by a common factor."
    not_whole = f"{what} must have whole numbers as entries, got something else."
    if data.dtype.kind in "bi":
        return data.astype(np.int64)
    if data.dtype.kind == "u":
        if data.size and int(data.max()) > INT64_MAX:
            raise InputError(too_large)
        return data.astype(np.int64)
    if data.dtype.kind == "f":
        if not np.isfinite(data).all() or (data != np.rint(data)).any():
            raise InputError(not_whole)
        if data.size and np.abs(data).max() >= 2**53:
            raise InputError(f"{what} must not have floats of 2^53 or more, which lose the last digit. Use integers.")
        return data.astype(np.int64)
    entries = data.ravel().tolist()
    if data.dtype.kind != "O" or not all(isinstance(entry, (int, np.integer)) for entry in entries):
        raise InputError(not_whole)
    if any(abs(int(entry)) > INT64_MAX for entry in entries):
        raise InputError(too_large)
    return np.array(entries, dtype=np.int64).reshape(data.shape)


def magnitude(values: npt.NDArray[Any]) -> int:
    """The largest absolute value, as a Python integer (numpy's abs wraps at -2^63)."""
    return max(int(values.max()), -int(values.min())) if values.size else 0


def product(matrix: sparse.csr_array, vectors: IntArray) -> npt.NDArray[Any]:
    """The exact product ``vectors @ matrix.T``, for one vector or for rows of vectors.

    int64 where the sums provably fit, otherwise Python integers (dtype object).
    """
    longest_row = int(np.diff(matrix.indptr).max(initial=0))
    if longest_row * magnitude(matrix.data) * magnitude(vectors) <= INT64_MAX:
        return np.asarray((matrix @ vectors.T).T)
    rows = matrix_rows(matrix)
    stack = np.atleast_2d(vectors).tolist()
    exact = [[sum(a * vector[j] for j, a in row.items()) for row in rows] for vector in stack]
    result = np.empty((len(stack), len(rows)), dtype=object)
    result[:] = exact
    return result[0] if vectors.ndim == 1 else result


def matrix_rows(matrix: sparse.csr_array) -> list[Row]:
    """The rows as dictionaries from column to entry."""
    bounds = matrix.indptr.tolist()
    columns, entries = matrix.indices.tolist(), matrix.data.tolist()
    return [dict(zip(columns[a:b], entries[a:b], strict=True)) for a, b in pairwise(bounds)]


def rows_matrix(rows: Sequence[Mapping[int, int]], width: int) -> sparse.csr_array:
    """The matrix with these rows, whose entries fit int64."""
    indptr = np.cumsum([0, *(len(row) for row in rows)])
    indices = np.array([j for row in rows for j in sorted(row)], dtype=np.int64)
    data = np.array([row[j] for row in rows for j in sorted(row)], dtype=np.int64)
    return sparse.csr_array((data, indices, indptr), shape=(len(rows), width))


def vectors_matrix(vectors: Sequence[Mapping[int, int]], width: int) -> sparse.csr_array:
    """The matrix with these columns; an error if one changes a cell by more than a count can hold."""
    if any(abs(value) > INT64_MAX for vector in vectors for value in vector.values()):
        raise PlanError(
            "These totals leave only changes of a cell beyond 64-bit integers: no noise can keep them. "
            "Keep fewer totals, or totals with smaller coefficients."
        )
    return sparse.csr_array(rows_matrix(vectors, width).T)


def to_flint(rows: list[Row], width: int) -> fmpz_mat:
    """The rows as a dense flint matrix."""
    if not rows:
        return fmpz_mat(0, width)
    return fmpz_mat([[row.get(j, 0) for j in range(width)] for row in rows])


def from_flint(matrix: fmpz_mat) -> list[Row]:
    """The rows of a flint matrix, without zeros."""
    return [{j: int(entry) for j, entry in enumerate(row) if entry != 0} for row in matrix.tolist()]


def dense(rows: Iterable[Row], width: int) -> npt.NDArray[Any]:
    """The rows as an array: int64 if every entry fits, Python integers (dtype object) otherwise."""
    listed = list(rows)
    fits = all(abs(entry) <= INT64_MAX for row in listed for entry in row.values())
    result = np.zeros((len(listed), width), dtype=np.int64 if fits else object)
    for i, row in enumerate(listed):
        for j, entry in row.items():
            result[i, j] = entry
    return result


def indicators(supports: Sequence[IntArray], width: int) -> sparse.csr_array:
    """Sets of columns as rows of ones.

    >>> indicators([np.array([0, 2]), np.array([1])], 3).toarray().tolist()
    [[1, 0, 1], [0, 1, 0]]
    """
    bounds = np.cumsum([0, *(len(support) for support in supports)])
    columns = np.concatenate([np.empty(0, dtype=np.int64), *supports])
    return sparse.csr_array((np.ones(len(columns), dtype=np.int64), columns, bounds), shape=(len(supports), width))
