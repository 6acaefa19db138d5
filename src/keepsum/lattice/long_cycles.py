"""Two-way tables with structural zeros: the longest cycle that a real table may need to fill an empty entry.

Graver elements are the cycles of the bipartite graph of rows and columns, with entries +1 and -1 in turn (``cycles``).
Let x have people in the entries of the cycle that decrease, one each, and in no others. The cycle is

    r0 +c0 -r1 +c1 -r2 ... +c(k-1) -r0,    + an entry that increases, - one that decreases,

through the entry j of row r0 and column c0. Another cycle through j that decreases entries of x only follows the same
rows and columns, but for jumps forward: an entry of row ra and column cb, 1 <= a < b. So a cycle of length 2k is needed
if and only if none of these entries exists: in the order of the cycle, zeros form a triangle. The rows r1, r2, ... then
have at least k - 2, k - 3, ... structural zeros, and so have the columns c(k-1), c(k-2), ...
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from keepsum._arrays import IntArray
from keepsum._work import spend
from keepsum.lattice.two_way import TwoWay

# Steps of the search, two to a microsecond, and entries of a table that is searched.
SEARCHED, ENTRIES = 1_000_000, 4_000


def longest_needed(table: TwoWay) -> tuple[int, bool]:
    """The longest cycle that a real table may need, and whether that is exact or an upper bound.

    >>> longest_needed(TwoWay(np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 1, 2, 2, 0])))
    (6, True)
    """
    bound = _bound(table)
    longest = _searched(table, bound) if len(table.row) <= ENTRIES else None
    return (2 * bound, False) if longest is None else (2 * longest, True)


def _bound(table: TwoWay) -> int:
    """Half the length of any needed cycle at most, from the numbers of structural zeros."""
    rows, columns = table.shape
    sides = (columns - np.bincount(table.row), rows - np.bincount(table.column))
    return min(rows, columns, *(2 + _staircase(zeros) for zeros in sides))


def _staircase(zeros: IntArray) -> int:
    """The largest m for which m of these numbers are at least m, m - 1, ..., 1.

    >>> _staircase(np.array([1, 1, 1])), _staircase(np.array([1, 5, 2])), _staircase(np.array([0, 0]))
    (1, 3, 0)
    """
    sums = np.minimum.accumulate(np.sort(zeros)[::-1] + np.arange(len(zeros)))
    return int((sums >= np.arange(1, len(zeros) + 1)).sum())


def _searched(table: TwoWay, bound: int) -> int | None:
    """Half the length of the longest needed cycle, by depth-first search; None if that takes too many steps."""
    rows, columns = table.shape
    of_row, of_column = [0] * rows, [0] * columns  # the columns of each row and the rows of each column, a bit each
    for r, c in zip(table.row.tolist(), table.column.tolist(), strict=True):
        of_row[r] |= 1 << c
        of_column[c] |= 1 << r
    longest = steps = 0
    for first, c0 in zip(table.row.tolist(), table.column.tolist(), strict=True):
        # The last column of a path, its rows, the columns of those but the first and the number of columns.
        stack = [(c0, 1 << first, 1 << c0, 1)]
        while stack and longest < bound:
            last, used, reached, count = stack.pop()
            for r in _bits(of_column[last] & ~used):
                forward = of_row[r] & ~reached
                reach = reached | of_row[r]
                further = count + 1 + columns - reach.bit_count()  # at most as many columns on any path from here
                steps += 1 + forward.bit_count()
                if steps > SEARCHED:
                    spend(SEARCHED // 2)
                    return None
                for c in _bits(forward):
                    if of_column[c] >> first & 1:
                        longest = max(longest, count + 1)
                    if further > longest:
                        stack.append((c, used | 1 << r, reach, count + 1))
    spend(steps // 2)
    return longest


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
