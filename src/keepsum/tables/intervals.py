"""A released table with the ends of the interval of each count as columns of their own, for frames and files."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from keepsum._arrays import IntArray
from keepsum.tables.carried import Carried
from keepsum.tables.domain import Domain
from keepsum.tables.layout import Layout, fresh_name, layout_of
from keepsum.tables.origins import Origin
from keepsum.tables.released import ReleasedTable


@dataclass(frozen=True, eq=False)
class IntervalTable:
    """Released counts with their intervals; a ``CountedTable`` with a layout of its own.

    Attributes
    ----------
    domain, count, origin, rows, carried
        Those of the released table.
    counts
        The released counts of all cells, then the low ends, then the high ends.
    layout
        The columns: those of the released table with one row per count, also if it is wide, and after the count its
        interval, such as ``count_low`` and ``count_high``.
    """

    domain: Domain
    counts: IntArray
    count: str
    origin: Origin | None
    rows: IntArray | None
    carried: tuple[Carried, ...]
    layout: Layout

    @classmethod
    def of(cls, table: ReleasedTable, margins: IntArray) -> IntervalTable:
        """A released table, with margins of error around its counts."""
        origin = None if table.origin is None else replace(table.origin, wide=None)
        plain = layout_of(replace(table, origin=origin))
        low = fresh_name(f"{table.count}_low", plain.names)
        high = fresh_name(f"{table.count}_high", [*plain.names, low])
        cells = plain.cells(table.count, table.domain.size)
        columns: dict[str, IntArray | None] = {
            table.count: cells,
            low: cells + table.domain.size,
            high: cells + 2 * table.domain.size,
        }
        place = plain.names.index(table.count) + 1
        names = (*plain.names[:place], low, high, *plain.names[place:])
        counts = np.concatenate([table.counts, table.counts - margins, table.counts + margins])
        rows = np.arange(table.domain.size) if plain.rows is None else plain.rows
        layout = Layout(names, rows, plain.labels, columns)
        return cls(table.domain, counts, table.count, origin, table.rows, table.carried, layout)
