"""Tables from CSV, Parquet and Arrow files, recognised by their first bytes.

Every value of a CSV file is read as text, so that codes such as 01001 survive.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, BinaryIO

from keepsum._arguments import check_path
from keepsum._memory import BYTES_A_BYTE, check_room
from keepsum._text import type_of
from keepsum.errors import DataError, InputError
from keepsum.sources.csv_files import csv_source
from keepsum.tables.columns import columnar_source, is_columnar
from keepsum.tables.declared import Declared
from keepsum.tables.domain import Domain
from keepsum.tables.origins import Origin
from keepsum.tables.source import Source
from keepsum.tables.table import Table

CHUNK = 2**24  # bytes decoded at a time


def read_table(
    path: str | PathLike[str] | BinaryIO,
    count: str = "count",
    axes: str | Sequence[str] | None = None,
    *,
    within: Mapping[str, str] | None = None,
    domain: Domain | Mapping[str, Any] | None = None,
    drop: Collection[str] | None = None,
    keep_order: bool = False,
    dense: bool = False,
    drop_rows: Mapping[str, Any] | None = None,
    carry: str | Sequence[str] = (),
    wide: str | Mapping[str, Sequence[str]] | None = None,
) -> Table:
    r"""Read a table of counts from a file with named columns and one row per cell.

    A release has all cells in the order of the declared categories, or in the natural order of the labels (5-9 before
    10-14) where none are declared, whatever the order of the rows.

    Parameters
    ----------
    path
        A CSV file in UTF-8, a Parquet or an Arrow file, or a file opened in binary mode. The delimiter of a CSV file is
        the one of ``, ; tab |`` for which the header contains the count column.
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
    carry
        Columns that follow from an axis, such as the code of a county: a release has them as they are.
    wide
        For a wide table, the axis whose categories are columns, and these: ``{"race": ["white", "black"]}``; or the
        axis alone, if all columns but the axes are counts. A release is wide too. ``count`` is then the name that the
        counts get.

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
    declared = Declared.checked(
        count, axes, within=within, domain=domain, drop=drop, drop_rows=drop_rows, carry=carry, wide=wide,
        keep_order=keep_order, dense=dense,
    )  # fmt: skip
    return table_in(path, declared)


def table_in(path: str | PathLike[str] | BinaryIO, declared: Declared) -> Table:
    """The table in a file."""
    expected = [declared.count] if declared.wide is None else [*(declared.wide[1] or ()), *(declared.axes or ())]
    file = open_columns(path, *expected)
    table = Table.from_source(file.source, declared, file.origin, stacklevel=4)
    del file
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


def open_columns(path: str | PathLike[str] | BinaryIO, *counts: str) -> Columns:
    """The columns of a CSV, Parquet or Arrow file, given the names of those with counts."""
    data, name = _contents(path)
    if is_columnar(data):
        return Columns(*columnar_source(data, name))
    if not is_utf8(data):
        raise DataError(f"File {name!r} must be UTF-8 text. Save it as UTF-8 and try again.")
    return Columns(*csv_source(data, name, counts))


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


def is_utf8(data: bytes) -> bool:
    """Whether a file is UTF-8, decoded piece by piece."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(data)
    try:
        for start in range(0, len(data), CHUNK):
            decoder.decode(view[start : start + CHUNK])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:  # not passed on, because it contains the file
        return False
    return True


def as_utf8(data: bytes) -> str | None:
    """The text of a file; None if it is not UTF-8.

    The error is not passed on, because it contains the whole file.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
