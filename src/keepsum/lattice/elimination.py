"""Exact elimination on sparse rows, unit pivots first.

Rows of kept totals are mostly 0 and 1, so nearly every pivot is +-1 and the rows stay small. Rows without a unit
pivot go to python-flint (``kernel``, ``smith``) or, where only the row space matters, are eliminated with any pivot
and divided by their common factor (``structure``).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from math import gcd

from keepsum._work import spend
from keepsum.lattice.matrix import Row


@dataclass(frozen=True)
class Reduced:
    """The result of an elimination.

    Attributes
    ----------
    pivots
        For each pivot row its pivot column.
    rows
        All rows after elimination. A pivot column is zero outside its pivot row. With unit pivots its entry is 1.
    """

    pivots: dict[int, int]
    rows: list[Row]

    @property
    def leftover(self) -> list[int]:
        """The nonzero rows without a pivot."""
        return [i for i, row in enumerate(self.rows) if row and i not in self.pivots]

    def substitutions(self, width: int) -> dict[int, Row]:
        """For each column without a pivot, the vector that is 1 there and solves for the (unit) pivot columns."""
        pivots = set(self.pivots.values())
        solved = {j: {j: 1} for j in range(width) if j not in pivots}
        for i, pivot in self.pivots.items():
            for j, entry in self.rows[i].items():
                if j != pivot and j < width:
                    solved[j][pivot] = -entry
        return solved


def eliminate(rows: list[Row], width: int, units_only: bool) -> Reduced:
    """Gauss-Jordan elimination, sparsest rows and columns first.

    Columns from ``width`` on take part in row operations but are never pivots: append the identity there to record
    the operations.

    Parameters
    ----------
    units_only
        Pivot on +-1 only, which keeps every row operation unimodular. Otherwise any pivot is allowed, and each row is
        divided by the common factor of its entries.

    Examples
    --------
    >>> eliminate([{0: 1, 1: 1}, {1: 1, 2: 2}], width=3, units_only=True).rows
    [{0: 1, 2: -2}, {1: 1, 2: 2}]
    >>> eliminate([{0: 2, 1: 3, 2: 5}], width=3, units_only=True).leftover
    [0]
    """
    work = [dict(row) for row in rows]
    holders: dict[int, set[int]] = {}
    for i, row in enumerate(work):
        for column in row:
            holders.setdefault(column, set()).add(i)
    queue = [(len(row), i) for i, row in enumerate(work)]
    heapq.heapify(queue)
    pivots: dict[int, int] = {}
    while queue:
        weight, i = heapq.heappop(queue)
        if i in pivots or weight != len(work[i]):
            continue  # stale: the row has changed since and is in the queue again
        chosen = _pivot(work[i], holders, width, units_only)
        if chosen is None:
            continue
        j = pivots[i] = chosen
        if units_only and work[i][j] == -1:
            work[i] = {column: -entry for column, entry in work[i].items()}
        for k in sorted(holders[j] - {i}):
            _subtract(work, holders, k, i, j, units_only)
            heapq.heappush(queue, (len(work[k]), k))
    return Reduced(pivots, work)


def _pivot(row: Row, holders: dict[int, set[int]], width: int, units_only: bool) -> int | None:
    """The column of the smallest entry; ties go to the sparsest column, then to the first."""
    allowed = [
        (abs(entry), len(holders[j]), j)
        for j, entry in row.items()
        if j < width and (not units_only or entry in (1, -1))
    ]
    return min(allowed)[2] if allowed else None


def _subtract(work: list[Row], holders: dict[int, set[int]], k: int, i: int, j: int, units_only: bool) -> None:
    """Clear column j of row k with pivot row i."""
    target, source = work[k], work[i]
    spend(len(target) + len(source))
    common = gcd(source[j], target[j])
    scale, factor = source[j] // common, target[j] // common
    if scale != 1:
        for column in target:
            target[column] *= scale
    for column, entry in source.items():
        value = target.get(column, 0) - factor * entry
        if value:
            if column not in target:
                holders[column].add(k)
            target[column] = value
        elif column in target:
            del target[column]
            holders[column].discard(k)
    if not units_only:
        _divide_by_common_factor(target)


def _divide_by_common_factor(row: Row) -> None:
    common = gcd(*row.values())
    if common > 1:
        for column in row:
            row[column] //= common
