"""Titles and the lines below each: as text for a terminal, as HTML for a notebook."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Sequence

from keepsum._text import printable

WIDTH = 96


def as_text(sections: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Titles and lines in two columns."""
    return "\n".join(_section(printable(title), [printable(line) for line in lines]) for title, lines in sections)


def as_html(sections: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Titles and lines as a table, one row per title."""
    rows = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{html.escape(title)}</th>'
        f'<td style="text-align:left">{"<br>".join(html.escape(line) for line in lines)}</td></tr>'
        for title, lines in sections
    )
    return f"<table>{rows}</table>"


def _section(title: str, lines: Sequence[str]) -> str:
    wrapped = [
        part
        for line in lines
        for part in textwrap.wrap(
            line, WIDTH - 16, subsequent_indent=" " * _indent(line), break_long_words=False, break_on_hyphens=False
        )
    ]
    first, *rest = wrapped
    return "\n".join([f"{title:<14}  {first}", *(f"{'':<16}{line}" for line in rest)])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
