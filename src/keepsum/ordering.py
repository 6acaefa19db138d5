"""Whether the order in which rows and categories come would tell something of the counts."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum.axes import IntArray
from keepsum.domain import Domain


def runs_through(domain: Domain, rows: IntArray) -> bool:
    """Whether rows go through all cells as nested loops over the axes would, in whatever order of the loops."""
    places = np.arange(math.prod(domain.shape)).reshape(domain.shape)
    number = np.cumsum(domain.is_cell) - 1
    for loops in permutations(range(len(domain.shape))):
        order = places.transpose(loops).reshape(-1)
        if domain.structural_zeros:
            order = number[order[domain.is_cell[order]]]
        if np.array_equal(order[:100], rows[:100]) and np.array_equal(order, rows):
            return True
    return False


def ranks_tell(domain: Domain, name: str, counts: IntArray) -> bool:
    """Whether the categories of an axis stand in the order of their totals, more than chance would have it.

    Publishing them in that order would publish ranks. An order that the labels explain tells nothing. Of orders that
    are chance about one in a hundred is taken for a ranking; then the labels decide the order, which does no harm.

    >>> import keepsum as ks
    >>> towns = ks.Domain({"town": [f"town {k}" for k in (3, 1, 4, 2, 7, 6, 8, 5)]})
    >>> ranks_tell(towns, "town", np.array([99, 80, 41, 40, 33, 12, 1, 3])), ranks_tell(towns, "town", np.arange(8) % 3)
    (True, False)
    """
    axis = domain.axis(name)
    totals = np.bincount(domain.codes(name), weights=counts, minlength=len(axis))
    parents = np.zeros(len(axis), dtype=np.int64) if axis.parent_codes is None else axis.parent_codes
    starts = np.flatnonzero(np.diff(parents, prepend=-1))
    scores: list[float] = []
    chance = 0.0  # logarithm of the chance that all runs are in order
    cells, longest = 0, {1: 0, -1: 0}
    for start, run in zip(starts.tolist(), np.split(totals, starts[1:]), strict=True):
        labels = axis.labels[start : start + len(run)]
        if len(run) < 2 or (run == run[0]).all() or all(a < b for a, b in pairwise(labels)):  # type: ignore[operator]
            continue
        scores.append(_rank_correlation(run) * math.sqrt(len(run) - 1))
        cells += len(run)
        for sign in longest:
            longest[sign] += _longest_rising((sign * run).tolist())
        ties = np.unique(run, return_counts=True)[1]
        chance -= math.lgamma(len(run) + 1) - sum(math.lgamma(n + 1) for n in ties.tolist())
    if not scores:
        return False
    out_of_order = cells - max(longest.values())
    nearly = chance + 2 * out_of_order * math.log(cells) < math.log(1 / 50) and out_of_order <= max(1, cells // 20)
    return nearly or abs(sum(scores)) / math.sqrt(len(scores)) > 2.58


def _longest_rising(values: list[float]) -> int:
    """The length of the longest part that never falls."""
    ends: list[float] = []
    for value in values:
        place = bisect_right(ends, value)
        ends[place : place + 1] = [value]
    return len(ends)


def _rank_correlation(totals: npt.NDArray[Any]) -> float:
    """Spearman's correlation of totals with their places."""
    ranks = np.unique(totals, return_inverse=True)[1].astype(np.float64)
    return float(np.corrcoef(np.arange(len(totals)), ranks)[0, 1])
