"""The released table with a margin of error for every cell: columns, for the page and for a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from keepsum._arrays import IntArray
from keepsum.sources.writing import csv_file
from keepsum.tables.axes import Label
from keepsum.tables.layout import Layout
from keepsum.tables.released import ReleasedTable


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
class Cells:
    """The released table in the order of its rows.

    Attributes
    ----------
    cells
        The cell of each row.
    labels
        The axes, and the columns that follow from them.
    count
        The published counts.
    unbiased
        The counts as they were drawn, where the published ones are others.
    margins
        The margin of error of each unbiased count.
    is_exact
        Whether the cell has no noise, because the kept totals determine it.
    level
        The probability that the noise stays within the margin, at least.
    """

    cells: IntArray
    labels: tuple[LabelColumn, ...]
    count: NumberColumn
    unbiased: NumberColumn | None
    margins: IntArray
    is_exact: np.ndarray[tuple[int], np.dtype[np.bool_]]
    level: float

    @classmethod
    def of(
        cls, table: ReleasedTable, unbiased: ReleasedTable | None, margins: IntArray, pinned: IntArray, level: float
    ) -> Cells:
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
        drawn = None if unbiased is None else NumberColumn(_free("unbiased", taken), unbiased.counts[rows])
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
        return *before, *(NumberColumn(_free(f"{name}_{percent}", taken), values) for name, values in columns.items())

    def name(self, row: int) -> str:
        """The labels of a row, as one text."""
        return ", ".join(column.label(row) for column in self.labels if column.kind != "carried")

    def to_csv(self) -> bytes:
        """The table with its margins of error as a CSV file."""
        return csv_file(*_layout(self.labels, self.numbers))


def _layout(labels: Sequence[LabelColumn], numbers: Sequence[NumberColumn]) -> tuple[IntArray, Layout]:
    """Columns of numbers one after the other, and where each of them is."""
    rows = np.arange(len(numbers[0].values))
    layout = Layout(
        (*(column.name for column in labels), *(column.name for column in numbers)),
        rows,
        {column.name: (column.values, column.codes) for column in labels},
        {column.name: rows + k * len(rows) for k, column in enumerate(numbers)},
    )
    return np.concatenate([column.values for column in numbers]), layout


def _texts(labels: Iterable[Label]) -> tuple[str, ...]:
    return tuple(map(str, labels))


def _free(name: str, taken: Sequence[str]) -> str:
    """A name that no other column has."""
    while name in taken:
        name += "_"
    return name
