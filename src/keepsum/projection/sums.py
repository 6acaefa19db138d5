"""Cells with a given sum, nearest to their counts and not negative: a closed form.

Cells x with counts y and sum s are nearest where each is max(y - level, 0) for one level, as in the projection on a
simplex. In integers: the smallest level at which these add up to at most s, and one more for the first cells that are
not below it, until the sum is s.

It is the nearest table in l2: a unit costs the change of (x - y)^2, the first at least as much as the last one, and the
units that are cheapest are those of the largest y - x, so giving them out one by one (a greedy algorithm on a separable
convex function) ends here; the units that cost the same at the end go to the first cells. It is nearest in l1 too: if
s is below the sum of max(y, 0) the level is positive, so no cell is above its max(y, 0); otherwise none is below
it. Either way the l1 distance is the sum of max(-y, 0) plus |s - sum of max(y, 0)|, and no table has less, because each
cell is at least max(-y, 0) away plus |x - max(y, 0)|.
"""

from __future__ import annotations

import numpy as np

from keepsum._arrays import BoolArray, IntArray


def fill(region: IntArray, counts: IntArray, sums: IntArray) -> IntArray:
    """The nearest cells that are not negative, in l1 and in l2, with the given sum in each region.

    Parameters
    ----------
    region
        The region of each cell.
    counts
        The count of each cell.
    sums
        The sum of each region, not negative.

    Examples
    --------
    >>> fill(np.zeros(5, dtype=np.int64), np.array([5, -2, 1, 4, 4]), np.array([12])).tolist()
    [5, 0, 1, 3, 3]
    """
    cells, rank, starts, sizes = _largest_first(region, counts, len(sums))
    ordered = counts[cells]
    below = np.concatenate([[0], np.cumsum(ordered)])
    upto = below[1:] - np.repeat(below[starts], sizes)  # the sum of this cell and of the larger ones
    # At the level of a cell, the larger ones add up to this; it grows from cell to cell.
    enough = upto - rank * ordered <= np.repeat(sums, sizes)
    above = np.bincount(region[cells], weights=enough, minlength=len(sums)).astype(np.int64)
    filled = np.flatnonzero(sizes)
    last = starts[filled] + above[filled] - 1
    level = np.zeros(len(sums), dtype=np.int64)
    level[filled] = -((sums[filled] - upto[last]) // above[filled])
    result: IntArray = np.maximum(counts - level[region], 0)
    rest = sums.copy()
    np.subtract.at(rest, region, result)
    result += _first(region, counts >= level[region], rest)
    return result


def _largest_first(region: IntArray, counts: IntArray, number: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Cells by region, the largest count first; their rank from 1; where regions start, and their sizes."""
    order = np.lexsort((-counts, region))
    sizes = np.bincount(region, minlength=number)
    starts = np.cumsum(sizes) - sizes
    return order, np.arange(len(order)) - np.repeat(starts, sizes) + 1, starts, sizes


def _first(region: IntArray, chosen: BoolArray, numbers: IntArray) -> IntArray:
    """1 for the first cells of each region among those chosen, as many as its number; 0 for the others."""
    order = np.argsort(region, kind="stable")
    flags = chosen[order]
    seen = np.cumsum(flags)
    sizes = np.bincount(region, minlength=len(numbers))
    starts = np.cumsum(sizes) - sizes
    before = np.concatenate([[0], seen])[starts]
    one = np.empty(len(region), dtype=np.int64)
    one[order] = flags & (seen - np.repeat(before, sizes) <= np.repeat(numbers, sizes))
    return one
