"""How large a margin of error is beside its count: the counts that say least, and all of them as points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.report.cells import Cells

LISTED = 10
MOST_POINTS, BINS = 1500, 48  # points that are drawn one by one; bins to a side if there are more cells


@dataclass(frozen=True)
class Uncertain:
    """A count whose margin of error is large beside it."""

    name: str
    count: int
    margin: int
    relative: float


@dataclass(frozen=True, eq=False)
class Points:
    """Counts, relative margins, and how many cells each point stands for."""

    counts: Floats
    relative: Floats
    cells: IntArray


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Margins of error as parts of their counts; only of counts above 0 that have noise.

    Attributes
    ----------
    exact
        Cells without noise.
    positive
        Cells with noise whose count is above 0.
    not_positive
        Cells with noise whose count is 0 or less, so that there is nothing to compare the margin with.
    at_least_all
        Cells with a count above 0 whose margin is at least as large as the count.
    within_tenth
        Cells with noise whose margin is at most a tenth of the count.
    largest
        The counts above 0 with the largest relative margins, the largest first.
    points
        All of those whose margin is above 0.
    """

    exact: int
    positive: int
    not_positive: int
    at_least_all: int
    within_tenth: int
    largest: tuple[Uncertain, ...]
    points: Points


def uncertainty_of(cells: Cells) -> Uncertainty:
    """How large margins are beside the counts that they are of."""
    counts, noisy = cells.drawn, ~cells.is_exact
    rows = np.flatnonzero(noisy & (counts > 0))
    of, margins = counts[rows], cells.margins[rows]
    relative = margins / of
    order = np.lexsort((rows, -relative))[:LISTED]
    return Uncertainty(
        exact=int(cells.is_exact.sum()),
        positive=len(rows),
        not_positive=int((noisy & (counts <= 0)).sum()),
        at_least_all=int((margins >= of).sum()),
        within_tenth=int((margins <= of // 10).sum()),
        largest=tuple(
            Uncertain(cells.name(int(rows[k])), int(of[k]), int(margins[k]), float(relative[k])) for k in order
        ),
        points=_points(of[margins > 0].astype(np.float64), relative[margins > 0]),
    )


def _points(counts: Floats, relative: Floats) -> Points:
    """Each count as a point, or if there are many, the middles of bins on logarithmic scales."""
    if len(counts) <= MOST_POINTS:
        return Points(counts, relative, np.ones(len(counts), dtype=np.int64))
    (x, low_x, wide_x), (y, low_y, wide_y) = _binned(np.log10(counts)), _binned(np.log10(relative))
    bins, cells = np.unique(x * BINS + y, return_counts=True)
    return Points(10 ** (low_x + wide_x * (bins // BINS + 0.5)), 10 ** (low_y + wide_y * (bins % BINS + 0.5)), cells)


def _binned(values: Floats) -> tuple[IntArray, float, float]:
    """The bin of each value, where the first one starts, and how wide they are."""
    low, width = float(values.min()), max(float(np.ptp(values)), 1e-9) / BINS
    return np.minimum(((values - low) / width).astype(np.int64), BINS - 1), low, width
