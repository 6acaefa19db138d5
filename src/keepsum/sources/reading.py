"""Tables from CSV, Parquet, Arrow and Excel files, recognised by their first bytes.

Every value of a CSV file is read as text, so that codes such as 01001 survive.
"""

from __future__ import annotations

import stat
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from keepsum._arguments import check_path, check_text
from keepsum._memory import BYTES_A_BYTE, check_room
from keepsum._text import type_of
from keepsum.errors import DataError, InputError
from keepsum.sources.compressed import unpacked
from keepsum.sources.csv_files import csv_source, refuse_null_characters
from keepsum.sources.encodings import check_encoding, is_workbook, to_utf8
from keepsum.sources.parquet_folders import folder_source, is_parquet_folder
from keepsum.sources.sdmx import check_flags, observations
from keepsum.sources.uploads import Upload
from keepsum.tables.columns import columnar_source, is_columnar
from keepsum.tables.declared import Declared
from keepsum.tables.domain import Domain
from keepsum.tables.origins import Origin
from keepsum.tables.source import Source
from keepsum.tables.table import Table, table_of

CHUNK = 2**24  # bytes of a pipe that are read at a time


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
    carry: str | Sequence[str] | Mapping[str, str] = (),
    wide: str | Mapping[str, Sequence[str]] | None = None,
    sheet: str | None = None,
    encoding: str | None = None,
    structure: str | PathLike[str] | None = None,
    flags: Mapping[str, str] | None = None,
    quote_formulas: bool = False,
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
    carry
        Columns that follow from an axis, such as the code of a county: a release has them as they are. With several
        axes, name the one: ``{"fips": "county"}``.
    wide
        For a wide table, the axis whose categories are columns, and these: ``{"race": ["white", "black"]}``; or the
        axis alone, if all columns but the axes are counts. A release is wide too. ``count`` is then the name that the
        counts get.
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
    quote_formulas
        Put an apostrophe before labels that a spreadsheet would run as formulas, such as ``=cmd()``. The table then has
        the quoted labels, and so have its release and the certificate.

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
        keep_order=keep_order, dense=dense, quote_formulas=quote_formulas,
    )  # fmt: skip
    return table_in(path, declared, FileForm.checked(sheet, encoding, structure, flags))


@dataclass(frozen=True)
class FileForm:
    """What must be said about some files: the sheet of a workbook, an encoding, the structure and flags of SDMX-CSV."""

    sheet: str | None = None
    encoding: str | None = None
    structure: str | PathLike[str] | None = None
    flags: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def checked(cls, sheet: Any, encoding: Any, structure: Any, flags: Any) -> FileForm:
        """The same, if every argument is of a kind that can be used."""
        return cls(
            None if sheet is None else check_text(sheet, "The sheet"),
            None if encoding is None else check_encoding(encoding),
            structure,
            check_flags(flags),
        )


def table_in(path: str | PathLike[str] | BinaryIO | Upload, declared: Declared, form: FileForm | None = None) -> Table:
    """The table in a file."""
    form = FileForm() if form is None else form
    expected = [declared.count] if declared.wide is None else [*(declared.wide[1] or ()), *(declared.axes or ())]
    file = open_columns(path, *expected, form=form)
    source, origin, declared = observations(file.source, file.origin, declared, form.structure, form.flags)
    table = table_of(source, declared, origin, stacklevel=4)
    del file, source
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
    path: str | PathLike[str] | BinaryIO | Upload, *counts: str, form: FileForm | None = None, released: bool = False
) -> Columns:
    """The columns of a CSV, Parquet, Arrow or .xlsx file, compressed or not, given the names of those with counts.

    A released table may have any labels that a frame has.
    """
    form = FileForm() if form is None else form
    if released and isinstance(path, Path) and is_parquet_folder(path):
        return Columns(*folder_source(path))
    packed, name = _contents(path)
    data = unpacked(packed, name)
    if form.sheet is not None and not is_workbook(data):
        raise InputError(f"A sheet must be named for a workbook only, and {name!r} is not one. Leave out sheet=.")
    if form.encoding is not None and (is_workbook(data) or is_columnar(data)):
        raise InputError(
            f"An encoding must be named for a text file only, and {name!r} is not one. Leave out encoding=."
        )
    if is_columnar(data):
        return Columns(*columnar_source(data, name))
    if is_workbook(data):
        from keepsum.sources.workbooks import workbook_source

        return Columns(*workbook_source(data, name, form.sheet))
    text = to_utf8(data, name, form.encoding)
    if not released:
        refuse_null_characters(text, name)
    return Columns(*csv_source(text, name, counts))


def _contents(path: str | PathLike[str] | BinaryIO | Upload) -> tuple[bytes, str]:
    """The bytes of a file and its name for messages."""
    if isinstance(path, Upload):
        check_room(len(path.data), f"File {path.name!r}", BYTES_A_BYTE)
        return path.data, path.name
    if isinstance(path, (str, PathLike)):
        file = check_path(path, "The file")
        if not str(path):
            raise InputError("The file must be a path, got an empty one.")
        try:
            return _bytes_of(file), file.name
        except OSError as error:
            raise DataError(f"File {str(path)!r} must be readable, but: {error.strerror or error}.") from None
    if not callable(getattr(path, "read", None)):
        raise InputError(f"The file must be a path or a file opened in binary mode, got {type_of(path)}.")
    return _all_of(path, "Standard input"), "standard input"


def _bytes_of(file: Path) -> bytes:
    """The contents of a file or a pipe."""
    status = file.stat()
    if stat.S_ISDIR(status.st_mode):
        raise DataError(f"File {str(file)!r} must be a table, but it is a folder. Name a file in it.")
    if stat.S_ISREG(status.st_mode):
        check_room(status.st_size, f"File {file.name!r}", BYTES_A_BYTE)
        return file.read_bytes()
    if not stat.S_ISFIFO(status.st_mode):  # a device may go on forever
        raise DataError(f"File {str(file)!r} must be a file or a pipe, but it is a device.")
    with file.open("rb") as pipe:
        return _all_of(pipe, f"File {file.name!r}")


def _all_of(stream: BinaryIO, what: str) -> bytes:
    """All that a stream has, as far as it fits in memory: its size is not known before."""
    chunks: list[bytes] = []
    size = 0
    while chunk := stream.read(CHUNK):
        if not isinstance(chunk, bytes):
            raise InputError(f"The file must be a path or a file opened in binary mode, got {type_of(stream)}.")
        chunks.append(chunk)
        size += len(chunk)
        check_room(size, what, BYTES_A_BYTE)
    return b"".join(chunks)


def as_utf8(data: bytes) -> str | None:
    """The text of a file; None if it is not UTF-8.

    The error is not passed on, because it contains the whole file.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
