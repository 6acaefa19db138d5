"""Tables from CSV, Parquet, Arrow and Excel files, recognised by their first bytes.

Every value of a CSV file is read as text, so that codes such as 01001 survive.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, BinaryIO

from keepsum._arguments import check_path, check_text, check_texts, check_within
from keepsum._memory import BYTES_A_BYTE, check_room
from keepsum._text import shown_name, shown_names, type_of
from keepsum.errors import DataError, InputError
from keepsum.sources.compressed import unpacked
from keepsum.sources.csv_files import csv_source
from keepsum.sources.encodings import check_encoding, is_workbook, to_utf8
from keepsum.sources.sdmx import Observations, observations
from keepsum.tables.columns import columnar_source, is_columnar
from keepsum.tables.domain import Domain
from keepsum.tables.origins import Origin
from keepsum.tables.source import Source
from keepsum.tables.table import Table, check_drop_rows


def read_table(
    path: str | PathLike[str] | BinaryIO,
    count: str,
    axes: str | Sequence[str] | None = None,
    *,
    within: Mapping[str, str] | None = None,
    domain: Domain | Mapping[str, Any] | None = None,
    drop: Collection[str] | None = None,
    keep_order: bool = False,
    dense: bool = False,
    drop_rows: Mapping[str, Any] | None = None,
    sheet: str | None = None,
    encoding: str | None = None,
    structure: str | PathLike[str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> Table:
    r"""Read a table of counts from a file with named columns and one row per cell.

    A release has all cells in the order of the declared categories, or in the natural order of the labels (5-9 before
    10-14) where none are declared, whatever the order of the rows.

    Parameters
    ----------
    path
        A CSV, Parquet, Arrow or Excel (.xlsx) file, or a file opened in binary mode; it may be compressed by gzip or
        zstd. The delimiter of a CSV file is the one of ``, ; tab |`` for which the header contains the count column.
    count
        The column of counts, in plain digits.
    axes
        The columns that are axes. By default all but the count; a column of numbers, which may be another measure, must
        then be declared.
    within
        The parent of each nested axis: ``{"county": "state"}``.
    domain
        The categories: a ``Domain``, or a mapping from some axes to their categories.
    drop
        Columns to leave out. If given, every column must be an axis, the count or listed here; otherwise columns
        that are not in ``axes`` are left out.
    keep_order
        Declare that the order of the rows is public: the rows of a release, and undeclared categories, are then in the
        order of the file. Every cell must have a row. The certificate records it.
    dense
        Declare that every combination of categories is a cell, although the labels look nested or most combinations
        have no row.
    drop_rows
        Rows to leave out, such as totals, by column and label: ``{"county": "Total"}``.
    sheet
        The sheet of a workbook that has several.
    encoding
        The encoding of a CSV file that is not UTF-8, such as ``"windows-1252"``; UTF-16 with a byte order mark is
        recognised. A release is UTF-8.
    structure
        The SDMX structure file of an SDMX-CSV file: its code lists are the declared categories of dimensions, without
        codes that are sums of others.
    flags
        The attributes of an SDMX-CSV file that a release has with one value for all counts, by default
        ``{"OBS_STATUS": "E", "CONF_STATUS": "F"}``: estimated, and free for publication.

    Examples
    --------
    >>> import keepsum as ks, pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "counties.csv")
    >>> _ = file.write_text("state,county,n\nIL,Cook,12\nIL,Lake,7\nWI,Lake,3\n")
    >>> states = {"state": ["IL", "WI"], "county": {"IL": ["Cook", "Lake"], "WI": ["Lake"]}}
    >>> ks.read_table(file, count="n", within={"county": "state"}, domain=states)
    Table(state 2 > county 3: 3 cells, counts not shown)
    >>> folder.cleanup()
    """
    count = check_text(count, "The count column")
    dropped = None if drop is None else check_texts(drop, "Columns to drop")
    totals = check_drop_rows(drop_rows)
    file = open_columns(path, count, sheet=sheet, encoding=encoding)
    columns = Observations(file.source.without_rows(totals), file.origin, count, axes, dropped, domain)
    columns = observations(columns, check_within(within), structure, flags)
    source, axes, count, domain = columns.source, columns.axes, columns.count, columns.domain
    if dropped is not None:
        declared = domain if isinstance(domain, (Domain, Mapping)) else {}
        axes = resolve_axes(source, count, axes, check_within(within), dropped, declared)
    table = Table.from_source(source, axes, count, within, domain, columns.origin, keep_order, dense)
    del file, columns, source
    return_memory()
    return table


def return_memory() -> None:
    """Give back what pyarrow keeps for later after a file is read."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None:
        pyarrow.default_memory_pool().release_unused()


@dataclass(frozen=True)
class Columns:
    """The named columns of a file, and its origin."""

    source: Source
    origin: Origin


def open_columns(
    path: str | PathLike[str] | BinaryIO, count: str, *, sheet: str | None = None, encoding: str | None = None
) -> Columns:
    """The columns of a CSV, Parquet, Arrow or .xlsx file, compressed or not."""
    sheet = None if sheet is None else check_text(sheet, "The sheet")
    encoding = None if encoding is None else check_encoding(encoding)
    packed, name = _contents(path)
    data = unpacked(packed, name)
    if sheet is not None and not is_workbook(data):
        raise InputError(f"A sheet must be named for a workbook only, and {name!r} is not one. Leave out sheet=.")
    if encoding is not None and (is_workbook(data) or is_columnar(data)):
        raise InputError(
            f"An encoding must be named for a text file only, and {name!r} is not one. Leave out encoding=."
        )
    if is_columnar(data):
        return Columns(*columnar_source(data, name))
    if is_workbook(data):
        from keepsum.sources.workbooks import workbook_source

        return Columns(*workbook_source(data, name, sheet))
    return Columns(*csv_source(to_utf8(data, name, encoding), name, count))


def _contents(path: str | PathLike[str] | BinaryIO) -> tuple[bytes, str]:
    """The bytes of a file and its name for messages."""
    if isinstance(path, (str, PathLike)):
        file = check_path(path, "The file")
        try:
            check_room(file.stat().st_size, f"File {file.name!r}", BYTES_A_BYTE)
            return file.read_bytes(), file.name
        except OSError as error:
            raise DataError(f"File {str(path)!r} must be readable, but: {error.strerror or error}.") from None
    data = path.read() if callable(getattr(path, "read", None)) else None
    if not isinstance(data, bytes):
        raise InputError(f"The file must be a path or a file opened in binary mode, got {type_of(path)}.")
    return data, "standard input"


def resolve_axes(
    source: Source,
    count: str,
    axes: str | Sequence[str] | None,
    within: Mapping[str, str],
    drop: Sequence[str],
    declared: Domain | Collection[str],
) -> list[str]:
    """The axes, provided that every other column is the count, a parent or dropped explicitly."""
    for name in drop:
        if name not in source.names:
            raise DataError(f"A column to drop must be {source.column_choices()}, got {shown_name(name)}.")
        if name == count:
            raise DataError(f"The count column {shown_name(name)} must not be dropped.")
    if axes is None:
        rest = replace(source, names=tuple(name for name in source.names if name not in drop))
        names = rest.axes(count, None, within, declared.axes if isinstance(declared, Domain) else declared)
    else:
        names = source.axes(count, axes, within)
    both = [name for name in names if name in drop]
    if both:
        raise DataError(f"A column to drop must not be an axis, got {shown_names(both)}.")
    extra = [name for name in source.names if name not in names and name != count and name not in drop]
    if extra:
        raise DataError(
            f"Every column must be an axis, a parent, the count or dropped, got {shown_names(extra)} as well. "
            f"Include more columns with axes=, or leave them out with drop=."
        )
    return names


def as_utf8(data: bytes) -> str | None:
    """The text of a file; None if it is not UTF-8.

    The error is not passed on, because it contains the whole file.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
