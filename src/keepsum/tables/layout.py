"""The columns of a table as files and frames have them: long, with a row per cell, or wide."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np

from keepsum._arrays import IntArray
from keepsum.tables.axes import Label
from keepsum.tables.counted import CountedTable
from keepsum.tables.origins import Text


@dataclass(frozen=True, eq=False)
class Layout:
    """The columns of a table.

    Attributes
    ----------
    names
        The columns in order.
    rows
        A cell of each row; None for every cell in order.
    labels
        The columns of labels: the different values, and the position of each cell's value among them.
    counts
        The columns of counts: the cell of each row, None for that of ``rows``.
    """

    names: tuple[str, ...]
    rows: IntArray | None
    labels: dict[str, tuple[Sequence[Label], IntArray]]
    counts: dict[str, IntArray | None]

    def cells(self, name: str, size: int) -> IntArray:
        """The cell of each row that a column shows the count of."""
        cells = self.counts[name]
        if cells is not None:
            return cells
        return np.arange(size) if self.rows is None else self.rows


def fresh_name(name: str, taken: Container[str]) -> str:
    """A name for a column, with underscores if there is one of this name already."""
    while name in taken:
        name += "_"
    return name


def canonical_layout(table: CountedTable) -> Layout:
    """The axes in the order of the domain, then the count; every cell in order."""
    labels: dict[str, tuple[Sequence[Label], IntArray]] = {
        name: (table.domain.axis(name).labels, table.domain.codes(name)) for name in table.domain.axes
    }
    return Layout((*labels, table.count), None, labels, {table.count: None})


def layout_of(table: CountedTable) -> Layout:
    """The columns and the rows of a table in the form in which it came, with the columns that are carried along."""
    plain = canonical_layout(table)
    labels = plain.labels | {c.name: (c.values, table.domain.codes(c.axis)) for c in table.carried}
    if isinstance(table.origin, Text):
        everywhere = np.zeros(table.domain.size, dtype=np.int64)
        labels |= {name: ((value,), everywhere) for name, value in table.origin.constants.items()}
    wide = table.origin.wide if table.origin is not None else None
    rows, counts = (table.rows, plain.counts) if wide is None else _spread(table, wide)
    if wide is not None:
        del labels[wide]
    known = [*(table.origin.columns if table.origin is not None else ()), *labels, *counts]
    names = tuple(name for name in dict.fromkeys(known) if name in labels or name in counts)
    return Layout(names, rows, labels, counts)


def _spread(table: CountedTable, axis: str) -> tuple[IntArray, dict[str, IntArray | None]]:
    """A cell of each row of a wide table, and for each category of an axis the cell of each row."""
    domain = table.domain
    others = [name for name in domain.axes if name != axis]
    row = domain.marginal_index(others) if others else np.zeros(domain.size, dtype=np.int64)
    codes = domain.codes(axis)
    cells = np.empty((int(row.max()) + 1, len(domain.axis(axis))), dtype=np.int64)
    cells[row, codes] = np.arange(domain.size)
    if table.rows is not None:  # in the order of the file: each row once, where its first cell is
        order = row[table.rows]
        cells = cells[order[np.sort(np.unique(order, return_index=True)[1])]]
    return cells[:, 0], {str(label): cells[:, code] for code, label in enumerate(domain.axis(axis).labels)}
