"""The first rows of a released table, as text for a console and as HTML for a notebook. Never of a confidential one."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from keepsum._text import printable
from keepsum.tables.counted import CountedTable
from keepsum.tables.frames import columns_of
from keepsum.tables.layout import layout_of

SHOWN_ROWS = 20


@dataclass(frozen=True)
class FirstRows:
    """The first rows, column by column, and how many more there are."""

    columns: dict[str, list[Any]]
    more: int

    @classmethod
    def of(cls, table: CountedTable) -> FirstRows:
        """The first rows in the form that the table came in."""
        layout = layout_of(table)
        height = table.domain.size if layout.rows is None else len(layout.rows)
        return cls(columns_of(table, layout, SHOWN_ROWS), max(0, height - SHOWN_ROWS))

    def as_text(self) -> str:
        """Rows in columns, numbers to the right."""
        aligned = []
        for name, values in self.columns.items():
            texts = [printable(name), *(printable(str(value)) for value in values)]
            width = max(map(len, texts))
            right = all(isinstance(value, int) for value in values)
            aligned.append([text.rjust(width) if right else text.ljust(width) for text in texts])
        lines = ["  ".join(row).rstrip() for row in zip(*aligned, strict=True)]
        return "\n".join([*lines, *([self._and_more] if self.more else [])])

    def as_html(self) -> str:
        """Rows as a table."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in row) + "</tr>"
            for row in zip(*self.columns.values(), strict=True)
        )
        return f"<table><tr>{head}</tr>{rows}</table>{f'<p>{self._and_more}</p>' if self.more else ''}"

    @property
    def _and_more(self) -> str:
        return f"and {self.more:,} more row{'s' * (self.more != 1)}"
