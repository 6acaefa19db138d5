"""Domains with counts as columns and data frames, and the table after its release, whose counts are shown."""

from __future__ import annotations

import html
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from keepsum._arguments import check_text
from keepsum._arrays import IntArray
from keepsum._text import given, how_many, printable, type_of
from keepsum.errors import DataError, InputError
from keepsum.tables.axes import Label
from keepsum.tables.cells import Carried
from keepsum.tables.domain import Domain
from keepsum.tables.origins import Frame, Origin, TextFile

# What confidential and released tables have in common: a count for every cell, and the form in which they came.


class CountedTable(Protocol):
    """A count for every cell of a domain."""

    @property
    def domain(self) -> Domain:
        """The cells."""

    @property
    def counts(self) -> IntArray:
        """One count per cell."""

    @property
    def count(self) -> str:
        """The name of the column of counts."""

    @property
    def origin(self) -> Origin | None:
        """What it came as."""

    @property
    def rows(self) -> IntArray | None:
        """The cell of each row, if their order is public; else cells in order."""

    @property
    def carried(self) -> tuple[Carried, ...]:
        """Columns that follow from an axis."""


def check_counted(table: CountedTable) -> None:
    """The parts of a table must fit each other."""
    if not isinstance(table.domain, Domain):
        raise DataError(f"A table must have a Domain, got {type_of(table.domain)}. Use from_array.")
    is_int64 = isinstance(table.counts, np.ndarray) and table.counts.dtype == np.int64
    if not is_int64 or table.counts.shape != (table.domain.size,):
        raise DataError(f"Counts must be a flat array of {table.domain.size:,} 64-bit integers. Use from_array.")
    if check_text(table.count, "The name of the count column") in table.domain.axes:
        raise DataError(f"The count column must not have the name of an axis, got {table.count!r}.")
    _check_wide(table)


def _check_wide(table: CountedTable) -> None:
    """The categories of one plain axis can be columns, if each has a name of its own and every cell exists."""
    axis = table.origin.wide if table.origin is not None else None
    if axis is None:
        return
    domain = table.domain
    if axis in domain.within or axis in domain.within.values():
        raise InputError(f"The axis of a wide table must not be nested, got {axis!r}. Make the table long first.")
    if domain.structural_zeros:
        raise InputError("A wide table must not have structural zeros. Make the table long first.")
    others = {*domain.axes, *(column.name for column in table.carried)}
    if others & set(map(str, domain.axis(axis).labels)):
        raise InputError("Columns of a wide table must have names that no axis has, got one. Rename a column.")


# The columns of a table as files and frames have them: long, with a row per cell, or wide.


@dataclass(frozen=True, eq=False)
class ColumnLayout:
    """The columns of a table."""

    names: tuple[str, ...]  # the columns in order
    rows: IntArray | None  # A cell of each row; None for every cell in order
    # The columns of labels: the different values, and the position of each cell's value among them.
    labels: dict[str, tuple[Sequence[Label], IntArray]]
    counts: dict[str, IntArray | None]  # the columns of counts: the cell of each row, None for that of ``rows``

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


def canonical_layout(table: CountedTable) -> ColumnLayout:
    """The axes in the order of the domain, then the count; every cell in order."""
    labels: dict[str, tuple[Sequence[Label], IntArray]] = {
        name: (table.domain.axis(name).labels, table.domain.codes(name)) for name in table.domain.axes
    }
    return ColumnLayout((*labels, table.count), None, labels, {table.count: None})


def layout_of(table: CountedTable) -> ColumnLayout:
    """The columns and the rows of a table in the form in which it came, with the columns that are carried along."""
    plain = canonical_layout(table)
    labels = plain.labels | {c.name: (c.values, table.domain.codes(c.axis)) for c in table.carried}
    if isinstance(table.origin, TextFile):
        everywhere = np.zeros(table.domain.size, dtype=np.int64)
        labels |= {name: ((value,), everywhere) for name, value in table.origin.constants.items()}
    wide = table.origin.wide if table.origin is not None else None
    rows, counts = (table.rows, plain.counts) if wide is None else _spread(table, wide)
    if wide is not None:
        del labels[wide]
    known = [*(table.origin.columns if table.origin is not None else ()), *labels, *counts]
    names = tuple(name for name in dict.fromkeys(known) if name in labels or name in counts)
    return ColumnLayout(names, rows, labels, counts)


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


def columns_of(
    table: CountedTable, layout: ColumnLayout | None = None, most: int | None = None
) -> dict[str, list[Any]]:
    """The labels and the counts of every cell, column by column, in the order of a release; of so many rows at most."""
    layout = layout_of(table) if layout is None else layout
    columns: dict[str, list[Any]] = {}
    for name in layout.names:
        if name in layout.counts:
            columns[name] = table.counts[layout.cells(name, table.domain.size)][:most].tolist()
        else:
            values, codes = layout.labels[name]
            rows = codes if layout.rows is None else codes[layout.rows]
            columns[name] = [values[code] for code in rows[:most].tolist()]
    return columns


def frame_of(table: CountedTable, backend: str | None = None, layout: ColumnLayout | None = None) -> Any:
    """All cells and counts as a data frame of the kind that the table came as, or of the kind named."""
    layout = layout_of(table) if layout is None else layout
    return _framed(columns_of(table, layout), {n: v for n, (v, _) in layout.labels.items()}, table.origin, backend)


def frame_with(
    domain: Domain, numbers: Mapping[str, IntArray], origin: Origin | None = None, backend: str | None = None
) -> Any:
    """All cells with numbers for each, in columns of their own: a frame of the kind of the origin, or as named."""
    columns: dict[str, list[Any]] = {}
    labels: dict[str, Sequence[Label]] = {}
    for name in domain.axes:
        labels[name] = domain.axis(name).labels
        columns[name] = [labels[name][code] for code in domain.codes(name).tolist()]
    for name, values in numbers.items():
        columns[fresh_name(name, columns)] = values.tolist()
    return _framed(columns, labels, origin, backend)


def _framed(
    columns: dict[str, list[Any]], labels: Mapping[str, Sequence[Label]], source: Origin | None, backend: str | None
) -> Any:
    import narwhals as nw

    origin = source if isinstance(source, Frame) else None
    wanted = backend if backend is not None else origin.backend if origin else None
    if wanted is None:
        raise InputError(
            "The library must be named for a table that did not come from a data frame. "
            "Call to_frame('pandas'), for example."
        )
    if not isinstance(wanted, str) or wanted not in ("pandas", "polars", "pyarrow", "modin", "cudf"):
        raise InputError(f"The library must be 'pandas', 'polars' or 'pyarrow', got {given(wanted)}.")
    try:
        frame = nw.from_dict(columns, backend=nw.Implementation.from_backend(wanted))  # type: ignore[arg-type]
    except ModuleNotFoundError:
        raise InputError(
            f"A frame of {wanted} needs {wanted}, which is not installed. Install it with: pip install {wanted}"
        ) from None
    if origin is not None and wanted == origin.backend:
        for name, values in labels.items():
            frame = _cast(frame, name, origin.dtypes[name], values) if name in origin.dtypes else frame
    return frame.to_native()


def _cast(frame: Any, name: str, dtype: Any, labels: Sequence[Label]) -> Any:
    """The labels in their original type, unless it is of another kind or cannot represent one of them.

    The codes of polars' Categorical depend on the order in which the process first saw a label, but no file has them.
    Counts never get their original type: whoever chose it may have looked at them, so it could reveal how large they
    are.
    """
    import narwhals as nw

    if isinstance(dtype, nw.Enum):
        dtype = nw.Enum(_distinct_texts(labels))  # with the categories and the order of the domain, not of the frame
    elif not (dtype.is_integer() if isinstance(labels[0], int) else dtype in (nw.String, nw.Categorical)):
        return frame
    try:
        changed = frame.with_columns(nw.col(name).cast(dtype))
        # Some libraries silently wrap or round values that do not fit.
        return changed if changed[name].to_list() == frame[name].to_list() else frame
    except Exception:
        return frame


def _distinct_texts(labels: Sequence[Label]) -> list[str]:
    return list(dict.fromkeys(map(str, labels)))


# The first rows of a released table, as text for a console and as HTML for a notebook. Never of a confidential one.

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
        return f"and {how_many(self.more, 'more row')}"


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedTable:
    """Published counts over a domain, as a release or a file of one has them.

    Not a ``Table``, whose counts are confidential: it cannot be released again by mistake.

    Attributes
    ----------
    domain, counts
        The cells, and the released count of each.
    count
        The name of the column of counts.
    origin, rows
        What the table came as, and the cell of each row if their order is public.
    carried
        Columns that follow from an axis.
    """

    domain: Domain
    counts: IntArray
    count: str = "count"
    origin: Origin | None = None
    rows: IntArray | None = None
    carried: tuple[Carried, ...] = ()

    def __post_init__(self) -> None:
        check_counted(self)
        self.counts.setflags(write=False)

    def to_dict(self) -> dict[str, list[Any]]:
        """The labels and the counts of every cell, column by column."""
        return columns_of(self)

    def to_frame(self, backend: str | None = None) -> Any:
        """All cells and counts as a data frame of the caller's own kind, or of the kind named.

        Axes have the types that they came with, where these have room for all categories; counts are 64-bit integers.

        Parameters
        ----------
        backend
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``; needed if the table did not come from a frame.
        """
        return frame_of(self, backend)

    def __repr__(self) -> str:
        return f"ReleasedTable({repr(self.domain)[7:-1]})\n{FirstRows.of(self).as_text()}"

    def _repr_html_(self) -> str:
        return FirstRows.of(self).as_html()


# A released table with the ends of the interval of each count as columns of their own, for frames and files.


@dataclass(frozen=True, eq=False)
class IntervalTable:
    """Released counts with their intervals; a ``CountedTable`` with a layout of its own."""

    # Those of the released table.
    domain: Domain
    counts: IntArray  # the released counts of all cells, then the low ends, then the high ends
    count: str
    origin: Origin | None
    rows: IntArray | None
    carried: tuple[Carried, ...]
    # The columns: those of the released table with one row per count, also if it is wide, and after the count its
    # interval, such as ``count_low`` and ``count_high``.
    layout: ColumnLayout

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
        layout = ColumnLayout(names, rows, plain.labels, columns)
        return cls(table.domain, counts, table.count, origin, table.rows, table.carried, layout)
