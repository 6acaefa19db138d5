"""The kinds of arrays that every folder speaks of."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Integers: TypeAlias = npt.NDArray[np.integer[Any]]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]


def ranked(codes: Integers) -> tuple[int, IntArray]:
    """How many different codes there are, and the rank of each entry among them; linear for small codes from 0 on.

    >>> count, ranks = ranked(np.array([7, 3, 3, 9]))
    >>> count, ranks.tolist()
    (3, [1, 0, 0, 2])
    """
    if not _is_small(codes):
        present, ranks = np.unique(codes, return_inverse=True)
        return len(present), ranks
    there = np.bincount(codes) > 0
    rank: IntArray = np.cumsum(there) - 1
    return int(there.sum()), rank[codes]


def tallied(keys: Integers, weight: IntArray | None = None) -> tuple[IntArray, IntArray]:
    """The different keys in order, and how often each occurs, times its weight; linear for small keys from 0 on.

    >>> keys, counts = tallied(np.array([7, 3, 3, 9]))
    >>> keys.tolist(), counts.tolist()
    ([3, 7, 9], [2, 1, 1])
    """
    if weight is not None:
        present, places = np.unique(keys, return_inverse=True)
        totals = np.zeros(len(present), dtype=np.int64)
        np.add.at(totals, places, weight)
        return present.astype(np.int64), totals
    if not _is_small(keys):
        return np.unique(keys, return_counts=True)
    counts = np.bincount(keys)
    present = np.flatnonzero(counts)
    return present, counts[present]


def grouped(labels: Integers) -> list[IntArray]:
    """The places of each label, label by label; negative labels are left out.

    >>> [places.tolist() for places in grouped(np.array([7, 3, -1, 3]))]
    [[1, 3], [0]]
    """
    order = np.argsort(labels, kind="stable")[int((labels < 0).sum()) :]
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if len(order) else []


def _is_small(keys: Integers) -> bool:
    """Whether an array over all keys is no larger than a few of one entry per key."""
    return bool(len(keys)) and int(keys.min()) >= 0 and int(keys.max()) <= 8 * len(keys) + 1000
