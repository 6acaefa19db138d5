"""Totals of two-way tables with structural zeros, and what it takes to be the same totals."""

from __future__ import annotations

import numpy as np
from flint import fmpz_mat

import keepsum as ks
from keepsum.lattice.two_way import TwoWay


def rank(A) -> int:
    return int(fmpz_mat(np.asarray(A).astype(int).tolist()).rank()) if len(A) else 0


def margins_of(row, column):
    """The totals of rows and columns, one row of the matrix each."""
    row, column = np.asarray(row), np.asarray(column)
    return np.array([row == i for i in np.unique(row)] + [column == j for j in np.unique(column)]).astype(np.int64)


def assert_same_totals(table: TwoWay, A):
    """The table has one entry per region, none twice, and its margins span the row space of the totals."""
    assert len(table.row) == len(table.column) == A.shape[1]
    assert len(set(zip(table.row.tolist(), table.column.tolist(), strict=True))) == A.shape[1]
    rows, columns = table.shape
    assert (np.bincount(table.row, minlength=rows) > 0).all()
    assert (np.bincount(table.column, minlength=columns) > 0).all()
    B = margins_of(table.row, table.column)
    assert rank(A) == rank(B) == rank(np.vstack([A, B]))


def entries(mask):
    """The rows and columns of the entries of a table that are not structural zeros."""
    return np.nonzero(np.asarray(mask))


def subsets(row, column, *more):
    A = margins_of(row, column)
    totals = [np.flatnonzero(total).tolist() for total in A]
    return ks.Invariants.subsets(len(row), [*totals, *more])


HOLES = entries([[1, 1, 0, 1, 1, 0], [0, 1, 1, 1, 0, 1], [1, 0, 1, 1, 1, 1], [1, 1, 1, 0, 0, 1]])
FULL = entries(np.ones((3, 5)))
