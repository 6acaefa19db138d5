"""The table of a report: margins of error for every cell, shades, and a cross table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.releasing.facts import KeptRecord, MarginRecord
from keepsum.sources.writing import csv_file
from keepsum.tables.axes import Label
from keepsum.tables.released import ColumnLayout, ReleasedTable, fresh_name

# The released table with a margin of error for every cell: columns, for the page and for a file.


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """A column of labels: the different values, and which of them each row has.

    The values of a plain axis are in its own order; those of a nested one are in the order of their parents.
    """

    name: str
    values: tuple[str, ...]
    codes: IntArray
    kind: Literal["axis", "nested", "carried"]

    def label(self, row: int) -> str:
        """The label of a row."""
        return self.values[int(self.codes[row])]


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column of whole numbers."""

    name: str
    values: IntArray


@dataclass(frozen=True, eq=False)
class ReportCells:
    """The released table in the order of its rows."""

    cells: IntArray  # the cell of each row
    labels: tuple[LabelColumn, ...]  # the axes, and the columns that follow from them
    count: NumberColumn  # the published counts
    unbiased: NumberColumn | None  # the counts as they were drawn, where the published ones are others
    margins: IntArray  # the margin of error of each unbiased count
    # Whether the cell has no noise, because the kept totals determine it.
    is_exact: np.ndarray[tuple[int], np.dtype[np.bool_]]
    level: float  # the probability that the noise stays within the margin, at least

    @classmethod
    def of(
        cls, table: ReleasedTable, unbiased: ReleasedTable | None, margins: IntArray, pinned: IntArray, level: float
    ) -> ReportCells:
        """The rows of a released table, with the margins of its cells."""
        domain = table.domain
        rows = np.arange(domain.size) if table.rows is None else table.rows
        axes = (
            LabelColumn(name, _texts(domain.axis(name).labels), domain.codes(name)[rows], "axis")
            for name in domain.axes
        )
        nested = domain.within
        labels = (
            *(replace(column, kind="nested") if column.name in nested else column for column in axes),
            *(
                LabelColumn(column.name, _texts(column.values), domain.codes(column.axis)[rows], "carried")
                for column in table.carried
            ),
        )
        is_exact = np.zeros(domain.size, dtype=bool)
        is_exact[pinned] = True
        taken = [column.name for column in labels] + [table.count]
        drawn = None if unbiased is None else NumberColumn(fresh_name("unbiased", taken), unbiased.counts[rows])
        count = NumberColumn(table.count, table.counts[rows])
        return cls(rows, labels, count, drawn, margins[rows], is_exact[rows], level)

    def __len__(self) -> int:
        return len(self.margins)

    @property
    def drawn(self) -> IntArray:
        """The counts that the margins of error are of."""
        return self.count.values if self.unbiased is None else self.unbiased.values

    @cached_property
    def numbers(self) -> tuple[NumberColumn, ...]:
        """The columns of numbers in a file: counts, margins, and the ends of the intervals."""
        before = (self.count,) if self.unbiased is None else (self.count, self.unbiased)
        taken = [*(column.name for column in self.labels), *(column.name for column in before)]
        percent = f"{100 * self.level:.10g}"
        columns = {"margin": self.margins, "low": self.drawn - self.margins, "high": self.drawn + self.margins}
        return *before, *(
            NumberColumn(fresh_name(f"{name}_{percent}", taken), values) for name, values in columns.items()
        )

    def name(self, row: int) -> str:
        """The labels of a row, as one text."""
        return ", ".join(column.label(row) for column in self.labels if column.kind != "carried")

    def to_csv(self) -> bytes:
        """The table with its margins of error as a CSV file."""
        return csv_file(*_layout(self.labels, self.numbers))


def _layout(labels: Sequence[LabelColumn], numbers: Sequence[NumberColumn]) -> tuple[IntArray, ColumnLayout]:
    """Columns of numbers one after the other, and where each of them is."""
    rows = np.arange(len(numbers[0].values))
    layout = ColumnLayout(
        (*(column.name for column in labels), *(column.name for column in numbers)),
        rows,
        {column.name: (column.values, column.codes) for column in labels},
        {column.name: rows + k * len(rows) for k, column in enumerate(numbers)},
    )
    return np.concatenate([column.values for column in numbers]), layout


def _texts(labels: Iterable[Label]) -> tuple[str, ...]:
    return tuple(map(str, labels))


# How large a margin of error is beside its count: the counts that say least, and all of them as points.

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
    """Margins of error as parts of their counts; only of counts above 0 that have noise."""

    exact: int  # cells without noise
    positive: int  # cells with noise whose count is above 0
    not_positive: int  # cells with noise whose count is 0 or less, so that there is nothing to compare the margin with
    at_least_all: int  # cells with a count above 0 whose margin is at least as large as the count
    within_tenth: int  # cells with noise whose margin is at most a tenth of the count
    largest: tuple[Uncertain, ...]  # the counts above 0 with the largest relative margins, the largest first
    points: Points  # all of those whose margin is above 0


def uncertainty_of(cells: ReportCells) -> Uncertainty:
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


# A table of two axes as a cross table, with the kept totals at its edges.

MOST_CELLS, MOST_COLUMNS = 2000, 12  # that are still read at a glance; nothing else decides


@dataclass(frozen=True, eq=False)
class CrossTabulation:
    """Rows, columns, and a cell of the released table for each pair, or -1 where there is none.

    Totals are those that the release keeps, and so exact; None where it does not keep them.
    """

    row_axis: str
    column_axis: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: IntArray
    row_totals: list[int] | None
    column_totals: list[int] | None
    total: int | None


def cross_table(table: ReleasedTable, kept: KeptRecord) -> CrossTabulation | None:
    """The cross table of two axes that are not nested, if it is small; the shorter axis has the columns."""
    domain = table.domain
    if len(domain.axes) != 2 or domain.within or domain.size > MOST_CELLS:
        return None
    first, second = domain.axes
    across = second if len(domain.axis(second)) <= len(domain.axis(first)) else first
    down = first if across == second else second
    if len(domain.axis(across)) > MOST_COLUMNS:
        return None
    cells = np.full((len(domain.axis(down)), len(domain.axis(across))), -1)
    cells[domain.codes(down), domain.codes(across)] = np.arange(domain.size)
    total = _totals(kept, ())
    by_row, by_column = _totals(kept, (down,)), _totals(kept, (across,))
    known = next((sum(totals.values()) for totals in (total, by_row, by_column) if totals is not None), None)
    rows, columns = domain.axis(down).labels, domain.axis(across).labels
    return CrossTabulation(
        down,
        across,
        tuple(map(str, rows)),
        tuple(map(str, columns)),
        cells,
        None if by_row is None else [by_row.get((label,), 0) for label in rows],
        None if by_column is None else [by_column.get((label,), 0) for label in columns],
        known,
    )


def _totals(kept: KeptRecord, axes: tuple[str, ...]) -> dict[tuple[Label, ...], int] | None:
    for part in kept.parts:
        if isinstance(part, MarginRecord) and tuple(part.axes) == axes:
            return {tuple(total.labels): int(total.value) for total in part.totals}
    return None


# How cells are shaded: by the size of the count, or by the margin of error beside it; the script does the same.

STEPS = 6
# The upper ends of relative margins, of all steps but the last.
RELATIVE = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)


def count_step(count: int, largest: int) -> int:
    """The step of a count on a logarithmic scale from 0 to the largest one; 0 for counts that are not above 0.

    >>> [count_step(count, 1000) for count in (-5, 0, 1, 10, 100, 1000)]
    [0, 0, 1, 3, 5, 6]
    """
    if count <= 0:
        return 0
    return min(STEPS, math.ceil(STEPS * math.log1p(count) / math.log1p(largest) - 1e-9))


def relative_step(count: int, margin: int) -> int:
    """The step of a relative margin: the last one if it is larger than the count.

    >>> [relative_step(100, margin) for margin in (0, 1, 10, 30, 100, 200)]
    [0, 0, 2, 4, 5, 6]
    """
    if margin == 0:
        return 0
    if count <= 0:
        return STEPS
    return next((step for step, end in enumerate(RELATIVE) if margin <= end * count), STEPS)
