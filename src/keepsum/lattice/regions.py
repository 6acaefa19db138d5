"""Regions: classes of cells that are part of exactly the same totals."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from keepsum._arrays import IntArray


def identical_columns(columns: sparse.csc_array) -> tuple[IntArray, IntArray]:
    """The class of each column, and the first column of each class; two columns share a class if they are equal.

    Classes are numbered by their first column. The first entries of all columns are compared at once, then the second
    ones, and so on: one sort per level and no hashing, so there are no collisions.

    Examples
    --------
    >>> classes, first = identical_columns(sparse.csc_array([[1, 1, 0, 1], [0, 2, 0, 0]]))
    >>> classes.tolist(), first.tolist()
    ([0, 1, 2, 0], [0, 1, 2])
    """
    lengths = np.diff(columns.indptr)
    longest = int(lengths.max(initial=0))
    # An entry is a row and a value; there are few values, so both are encoded in one number, starting at 1.
    entries = columns.indices.astype(np.int64) + 1
    if (columns.data != 1).any():
        values, value_code = np.unique(columns.data, return_inverse=True)
        entries = entries * len(values) + value_code
    equally_long = bool((lengths == longest).all())
    classes = np.zeros(columns.shape[1], dtype=np.int64)
    for level in range(longest):
        if equally_long:
            code = entries[level::longest]
        else:
            reached = np.flatnonzero(lengths > level)
            code = np.zeros(len(classes), dtype=np.int64)
            code[reached] = entries[columns.indptr[reached] + level]
        classes = _compress(_pair(classes, code))
    return _by_first(classes)


def _pair(a: IntArray, b: IntArray) -> IntArray:
    """One number per pair of numbers."""
    width = int(b.max(initial=0)) + 1
    if (int(a.max(initial=0)) + 1) * width >= 2**63:
        b = _compress(b)
        width = int(b.max(initial=0)) + 1
    return a * width + b


def _compress(values: IntArray) -> IntArray:
    """Renumber to 0, 1, 2, ... in increasing order."""
    top = int(values.max(initial=0)) + 1
    if top > 8 * len(values) + 1_000_000:
        return np.unique(values, return_inverse=True)[1]
    seen = np.zeros(top, dtype=bool)
    seen[values] = True
    return (np.cumsum(seen) - 1)[values]


def _by_first(classes: IntArray) -> tuple[IntArray, IntArray]:
    """Renumber the classes in the order of their first members, and return these members."""
    count = int(classes.max(initial=-1)) + 1
    first = np.empty(count, dtype=np.int64)
    first[classes[::-1]] = np.arange(len(classes) - 1, -1, -1)  # the last value written is the first member
    rank = np.empty(count, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(count)
    return rank[classes], np.sort(first)
