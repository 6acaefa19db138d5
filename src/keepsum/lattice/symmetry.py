"""Whether the entries of totals in families are all alike: each can be moved to any other, with every family kept.

Families are partitions of the entries (``families.py``). If entries have coordinates, a number on each of some axes,
every combination of numbers is one entry, and each family says what some of the coordinates are, then permuting the
numbers of one axis moves the classes of every family to classes of it. So it keeps the lattice, and as it keeps the
length of noise, too, noise has the same law in all entries that have equally many cells.

Axes are looked for from the coarsest partition to the finest, joins of families included: that of {AB, BC} is B. Where
a class of the axes that are known is made up of n classes of the partition, these are numbered 0 to n - 1 in any order,
and that is one more axis if n is the same for all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.families import Collapse
from keepsum.lattice.graphs import connected_components

PARTITIONS = 32  # families and their joins: more are not looked at


def families_of(collapses: Sequence[Collapse]) -> list[IntArray] | None:
    """The class of each entry in each family; None if there are structural zeros."""
    labels = []
    entry = np.arange(len(collapses[0].row))
    for collapse in collapses:
        column, row = collapse.column[entry], collapse.row[entry]
        if row.min(initial=0) < 0:
            return None
        labels.append(column)
        entry = row
    return [*labels, entry]


def all_alike(collapses: Sequence[Collapse]) -> bool:
    """Whether every entry can be moved to every other one; False also where axes are not found.

    Examples
    --------
    >>> from scipy import sparse
    >>> from keepsum.lattice.families import collapses_of
    >>> i, j, k = np.indices((2, 3, 3)).reshape(3, 18)
    >>> totals = np.array([*(i == n for n in range(2)), *(j == n for n in range(3)), *(k == n for n in range(3))])
    >>> all_alike(collapses_of(sparse.csr_array(totals.astype(np.int64))))
    True
    >>> all_alike(collapses_of(sparse.csr_array(totals[:, :-1].astype(np.int64))))  # one entry is missing
    False
    """
    families = families_of(collapses)
    partitions = None if families is None else _with_joins([_numbered(family) for family in families])
    if partitions is None:
        return False
    axes: list[IntArray] = []
    for partition in sorted(partitions, key=lambda labels: int(labels.max())):
        coarser = _product([axis for axis in axes if _says(partition, axis)], len(partition))
        axis = _within(coarser, partition)
        if axis is None:
            return False
        if axis.any():
            axes.append(axis)
    entries = len(axes[0]) if axes else 0
    return (
        math.prod(int(axis.max()) + 1 for axis in axes) == entries == int(_product(axes, entries).max(initial=-1)) + 1
    )


def _with_joins(families: list[IntArray]) -> list[IntArray] | None:
    """The partitions, and the finest ones that are coarser than two of them; None if there are very many."""
    found = {family.tobytes(): family for family in families}
    waiting = list(found.values())
    while waiting:
        one = waiting.pop()
        for other in list(found.values()):
            joined = _join(one, other)
            if joined.tobytes() not in found:
                found[joined.tobytes()] = joined
                waiting.append(joined)
        if len(found) > PARTITIONS:
            return None
    return list(found.values())


def _join(one: IntArray, other: IntArray) -> IntArray:
    """The finest partition of which both are refinements."""
    classes = int(one.max()) + 1
    _, component = connected_components(one, classes + other, classes + int(other.max()) + 1)
    return _numbered(np.asarray(component)[one])


def _numbered(labels: IntArray) -> IntArray:
    """The same partition with classes numbered by their first entries."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _says(partition: IntArray, axis: IntArray) -> bool:
    """Whether the class of an entry says what its number on the axis is."""
    value = np.zeros(int(partition.max()) + 1, dtype=np.int64)
    value[partition] = axis
    return bool((value[partition] == axis).all())


def _product(axes: Sequence[IntArray], entries: int) -> IntArray:
    """The partition by several axes; by none, all entries are together."""
    together = np.zeros(entries, dtype=np.int64)
    for axis in axes:
        together = _numbered(together * (int(axis.max()) + 1) + axis)
    return together


def _within(coarser: IntArray, partition: IntArray) -> IntArray | None:
    """The classes of the partition numbered within each class of the coarser one; None if these have not as many."""
    classes = int(partition.max()) + 1
    parent = np.zeros(classes, dtype=np.int64)
    parent[partition] = coarser
    counts = np.bincount(parent)
    if (counts != counts[0]).any():
        return None
    order = np.argsort(parent, kind="stable")
    number = np.empty(classes, dtype=np.int64)
    number[order] = np.arange(classes) % counts[0]
    return number[partition]
