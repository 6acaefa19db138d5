"""A table as a picture: rows and columns of cells with totals at the edges, a page of rows at a time.

The last axis that is not nested, if it has few categories, goes across; all others go down. What a cell shows is given:
nothing before a release, made-up noise in a preview, and released counts after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keepsum._arrays import IntArray
from keepsum.accuracy.disclosure import Bounds
from keepsum.accuracy.sums import sum_accuracy
from keepsum.planning.plan import CompiledPlan
from keepsum.report.page import number
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants, Margin

ROWS = 100  # of a page
MOST_COLUMNS = 16
MOST_EDGES = 2_000  # rows whose totals get a margin of error


@dataclass(frozen=True)
class GridCell:
    """A cell or a total: its number if it is a cell, a text and a smaller one, classes, and a sentence on it."""

    number: int | None
    text: str = ""
    small: str = ""
    marks: str = ""
    title: str = ""


@dataclass(frozen=True)
class GridRow:
    """The labels of a row, whether the totals of each are kept, its cells, and its total."""

    labels: list[tuple[str, bool]]
    cells: list[GridCell | None]
    total: GridCell


@dataclass(frozen=True)
class TablePicture:
    """A page of a picture of a table."""

    row_axes: list[str]
    column_axis: str | None
    columns: list[tuple[str, bool]]
    rows: list[GridRow]
    totals: list[GridCell]
    whole: GridCell
    page: int
    pages: int
    first: int
    last: int
    height: int

    @property
    def has_known(self) -> bool:
        """Whether a cell on the page is known from the kept totals."""
        return any(cell is not None and "pinned" in cell.marks for row in self.rows for cell in row.cells)


@dataclass(frozen=True, eq=False)
class Edges:
    """Margins of error of the totals at the edges: of rows, of columns, and of all; None where they are too many."""

    rows: IntArray | None
    columns: IntArray | None
    whole: IntArray | None


@dataclass(frozen=True, eq=False)
class PictureContent:
    """What a picture shows: numbers or none, margins of error, and which cells are known."""

    values: IntArray | None = None
    margins: IntArray | None = None
    pinned: IntArray | None = None
    bounds: Bounds | None = None
    edges: Edges | None = None

    def on(self, cells: IntArray) -> _Known:
        """What is known of some cells."""
        known = _Known()
        if self.pinned is not None:
            known.pinned.update(np.intersect1d(cells, self.pinned).tolist())
        if self.bounds is not None:
            known.bounded.update(np.intersect1d(cells, self.bounds.cells).tolist())
        return known


@dataclass
class _Known:
    """Cells of a page that the kept totals determine, and those that they bound; the bounds are confidential."""

    pinned: set[int] = field(default_factory=set)
    bounded: set[int] = field(default_factory=set)


def kept_axes(kept: Invariants | None) -> list[frozenset[str]]:
    """The axes of each kept margin."""
    parts = () if kept is None else kept.parts
    return [frozenset(part.axes) for part in parts if isinstance(part, Margin)]


def grid_of(domain: Domain, kept: Invariants | None, page: int, shown: PictureContent) -> TablePicture:
    """A page of the picture."""
    across = _across(domain)
    down = [name for name in domain.axes if name != across]
    margins = kept_axes(kept)
    if not down:
        down, across = [domain.axes[0]], None
    row_of, height = domain.marginal_index(down), domain.project(down).size
    edges = shown.edges or Edges(None, None, None)
    pages = -(-height // ROWS)
    page = min(max(page, 1), pages)
    first, last = (page - 1) * ROWS, min(page * ROWS, height)
    labels = [str(label) for label in domain.axis(across).labels] if across is not None else [""]
    column_of = domain.codes(across) if across is not None else np.zeros(domain.size, dtype=np.int64)
    place = np.full((last - first, len(labels)), -1, dtype=np.int64)
    on_page = np.flatnonzero((row_of >= first) & (row_of < last))
    place[row_of[on_page] - first, column_of[on_page]] = on_page
    known = shown.on(on_page)
    rows_kept = _is_kept(domain, down, margins)
    column_kept = across is not None and _is_kept(domain, [across], margins)
    projected = domain.project(down)
    by_axis = {axis: _is_kept(domain, [axis], margins) for axis in down}
    sums = _sums(shown.values, row_of, height)
    rows = []
    for k in range(last - first):
        named = projected.cell(first + k)
        total = _total(None if sums is None else int(sums[first + k]), rows_kept, _at(edges.rows, first + k))
        rows.append(
            GridRow(
                [(str(named[axis]), by_axis[axis]) for axis in down],
                [None if cell < 0 else _cell(domain, int(cell), shown, known) for cell in place[k].tolist()],
                total,
            )
        )
    sums_across = _sums(shown.values, column_of, len(labels))
    totals = [
        _total(
            None if sums_across is None else int(sums_across[k]),
            column_kept or (across is None and bool(margins)),
            _at(edges.columns, k),
        )
        for k in range(len(labels))
    ]
    whole = _total(None if shown.values is None else int(shown.values.sum()), bool(margins), _at(edges.whole, 0))
    columns = [(label, column_kept) for label in labels]
    return TablePicture(down, across, columns, rows, totals, whole, page, pages, first + 1, last, height)


def _across(domain: Domain) -> str | None:
    nested = {*domain.within, *domain.within.values()}
    fitting = [name for name in domain.axes if name not in nested and len(domain.axis(name)) <= MOST_COLUMNS]
    return fitting[-1] if fitting and len(domain.axes) > 1 else None


def _is_kept(domain: Domain, axes: Sequence[str], margins: list[frozenset[str]]) -> bool:
    """Whether the totals of these axes follow from a kept margin."""
    wanted = frozenset(domain.closure(axes))
    return any(wanted <= margin for margin in margins)


def _sums(values: IntArray | None, place: IntArray, height: int) -> Any:
    if values is None:
        return None
    sums = np.zeros(height, dtype=np.int64)
    np.add.at(sums, place, values)
    return sums


def _cell(domain: Domain, cell: int, shown: PictureContent, known: _Known) -> GridCell:
    text = "" if shown.values is None else number(int(shown.values[cell]))
    small = "" if shown.margins is None else f"±{int(shown.margins[cell]):,}"
    marks, title = ["cell"], ""
    if cell in known.pinned:
        marks.append("pinned")
        text, title = text or "exact", "determined by the kept totals: published without noise"
    elif cell in known.bounded:
        marks.append("bounded")
        text, title = text or "±", "bounded by the kept totals"
    elif shown.values is None:
        marks.append("blank")
        text = "±"
    return GridCell(cell, text, small, " ".join(marks), f"{domain.name(cell)}{f': {title}' if title else ''}")


def _total(value: int | None, kept: bool, margin: int | None) -> GridCell:
    text = "=" if kept and value is None else "" if value is None else number(value)
    small = "" if value is None else "exact" if kept else "" if margin is None else f"±{margin:,}"
    return GridCell(None, text, small, "total kept" if kept else "total", "kept exactly" if kept else "has noise")


def _at(margins: IntArray | None, place: int) -> int | None:
    return None if margins is None else int(margins[place])


def edges_of(domain: Domain, plan: CompiledPlan, level: float) -> Edges:
    """Margins of error of the totals at the edges of a picture."""

    def margins(axes: Sequence[str]) -> IntArray | None:
        height = domain.project(axes).size if axes else 1
        if height > MOST_EDGES:
            return None
        sums = domain.marginal_index(axes) if axes else np.zeros(domain.size, dtype=np.int64)
        return sum_accuracy(plan.blocks, sums, height, level, simultaneous=False).margins

    axes = edge_axes(domain)
    if not axes:
        return Edges(None, margins(()), margins(()))
    down, across = axes
    return Edges(margins(down), margins(across), margins(()))


def edge_axes(domain: Domain) -> list[list[str]]:
    """The axes of the totals of rows, and of those of columns; none if every cell is a row."""
    across = _across(domain)
    down = [name for name in domain.axes if name != across]
    return [down, [across]] if down and across is not None else []
