"""Integer matrices: checked on the way in, multiplied without ever wrapping.

A matrix is a ``scipy.sparse.csr_array`` of int64 without stored zeros. Small exact work goes through rows
as dictionaries of Python integers, which cannot overflow.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from flint import fmpz_mat
from scipy import sparse

from keepsum.errors import InputError

IntArray: TypeAlias = npt.NDArray[np.int64]
Row: TypeAlias = dict[int, int]

INT64_MAX = 2**63 - 1


def as_matrix(values: Any, what: str = "Matrix") -> sparse.csr_array:
    """Check that values are a two-dimensional integer matrix and bring it into the one form we use."""
    if sparse.issparse(values):
        matrix = sparse.csr_array(values)
        data, shape = matrix.data, matrix.shape
    else:
        dense = _as_array(values, what)
        data, shape, matrix = dense, dense.shape, None
    if len(shape) != 2 or shape[1] == 0:
        raise InputError(f"{what} must have two dimensions and at least one column, got shape {shape}.")
    data = _as_int64(data, what)
    if matrix is None:
        result = sparse.csr_array(data)
    else:
        result = sparse.csr_array((data, matrix.indices, matrix.indptr), shape=shape)
        _sum_duplicates(result, what)
    result.eliminate_zeros()
    result.sort_indices()
    return result


def _as_array(values: Any, what: str) -> npt.NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{what} must have rows of one length, got rows of several.") from None
    if isinstance(values, np.ndarray) or array.dtype.kind != "f":
        return array
    # numpy turns a list with an integer beyond 64 bits into floats: take the list's own integers instead.
    objects = np.asarray(values, dtype=object)
    return objects if all(isinstance(entry, int) for entry in objects.ravel().tolist()) else array


def _as_int64(data: npt.NDArray[Any], what: str) -> IntArray:
    """Whole numbers within int64, or an error; never a rounding or a wrap."""
    too_large = f"{what} must have entries within 64-bit integers, got one beyond. Divide the row by a common factor."
    not_whole = f"{what} must have whole numbers as entries, got something else."
    if data.dtype == bool or np.issubdtype(data.dtype, np.signedinteger):
        return data.astype(np.int64)
    if np.issubdtype(data.dtype, np.unsignedinteger):
        if data.size and int(data.max()) > INT64_MAX:
            raise InputError(too_large)
        return data.astype(np.int64)
    if np.issubdtype(data.dtype, np.floating):
        if not np.isfinite(data).all() or (data != np.rint(data)).any():
            raise InputError(not_whole)
        if data.size and np.abs(data).max() >= 2**53:
            raise InputError(f"{what} must not have floats of 2^53 and more, which hide the last digit. Use integers.")
        return data.astype(np.int64)
    entries = data.ravel().tolist()
    if not all(isinstance(entry, int) for entry in entries):
        raise InputError(not_whole)
    if any(abs(entry) > INT64_MAX for entry in entries):
        raise InputError(too_large)
    return np.array(entries, dtype=np.int64).reshape(data.shape)


def _sum_duplicates(matrix: sparse.csr_array, what: str) -> None:
    """A sparse matrix may list an entry several times; its value is their sum."""
    if matrix.has_canonical_format:
        return
    magnitude = sum(abs(int(entry)) for entry in matrix.data.tolist())
    if magnitude > INT64_MAX:
        raise InputError(f"{what} lists an entry twice, and the sum may not fit 64-bit integers. Merge the entries.")
    matrix.sum_duplicates()


def magnitude(values: npt.NDArray[Any]) -> int:
    """The largest absolute value, as a Python integer (numpy's abs wraps at -2^63)."""
    return max(int(values.max()), -int(values.min())) if values.size else 0


def product(matrix: sparse.csr_array, vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The exact product ``vectors @ matrix.T``, for one vector or for rows of vectors.

    int64 where the sums provably fit, Python integers (dtype object) where they might not.
    """
    heaviest = int(np.diff(matrix.indptr).max(initial=0))
    if heaviest * magnitude(matrix.data) * magnitude(vectors) <= INT64_MAX:
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


def rows_matrix(rows: list[Row], width: int) -> sparse.csr_array:
    """The matrix with those rows; entries must fit int64."""
    indptr = np.cumsum([0, *(len(row) for row in rows)])
    indices = np.array([j for row in rows for j in sorted(row)], dtype=np.int64)
    data = np.array([row[j] for row in rows for j in sorted(row)], dtype=np.int64)
    return sparse.csr_array((data, indices, indptr), shape=(len(rows), width))


def to_flint(rows: list[Row], width: int) -> fmpz_mat:
    """The rows as a dense flint matrix."""
    if not rows:
        return fmpz_mat(0, width)
    return fmpz_mat([[row.get(j, 0) for j in range(width)] for row in rows])


def from_flint(matrix: fmpz_mat) -> list[Row]:
    """The rows of a flint matrix, zeros left out."""
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
