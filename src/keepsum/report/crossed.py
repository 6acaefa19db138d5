"""A table of two axes as a cross table, with the kept totals at its edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keepsum._arrays import IntArray
from keepsum.releasing.facts import KeptRecord, MarginRecord
from keepsum.tables.axes import Label
from keepsum.tables.released import ReleasedTable

MOST_CELLS, MOST_COLUMNS = 2000, 12  # that are still read at a glance; nothing else decides


@dataclass(frozen=True, eq=False)
class CrossTable:
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


def cross_table(table: ReleasedTable, kept: KeptRecord) -> CrossTable | None:
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
    return CrossTable(
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
    """The kept totals of a margin, by their labels; a category of structural zeros alone has none."""
    for part in kept.parts:
        if isinstance(part, MarginRecord) and tuple(part.axes) == axes:
            return {tuple(total.labels): int(total.value) for total in part.totals}
    return None
