"""Tables from CSV, Parquet, Arrow and Excel files, compressed or not, recognised by their first bytes."""

from __future__ import annotations

import gzip
import importlib
import io
import stat
import sys
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from keepsum._arguments import check_path, check_text
from keepsum._extras import missing
from keepsum._memory import BYTES_A_BYTE, check_room
from keepsum._saying import arg, the
from keepsum._text import type_of
from keepsum.errors import DataError, InputError, UnreachableError
from keepsum.sources.csv_files import check_encoding, csv_source, is_workbook, refuse_null_characters, to_utf8
from keepsum.sources.sdmx import check_flags, observations
from keepsum.sources.uploads import Upload
from keepsum.tables.columns import columnar_source, is_columnar
from keepsum.tables.declared import DeclaredColumns
from keepsum.tables.domain import Domain
from keepsum.tables.origins import Frame, Origin
from keepsum.tables.source import Coded, Source
from keepsum.tables.table import Table, table_of

# Files compressed by gzip or zstd, recognised by their first bytes and unpacked as far as memory allows.

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
CHUNK = 2**24  # bytes unpacked at a time
PIECE = 2**20  # the same where they are not kept


def unpacked(data: bytes, name: str) -> bytes:
    """The contents of a compressed file; any other file as it is.

    >>> unpacked(gzip.compress(b"sex,n"), "counts.csv.gz"), unpacked(b"sex,n", "counts.csv")
    (b'sex,n', b'sex,n')
    """
    if data.startswith(GZIP):
        return _read(gzip.GzipFile(fileobj=io.BytesIO(data)), name, "gzip")
    if data.startswith(ZSTD):
        return _read(_zstd(data, name), name, "zstd")
    return data


def _read(stream: Any, name: str, kind: str) -> bytes:
    """All that a stream unpacks to: a small file may unpack to more than fits in memory."""
    chunks: list[bytes] = []
    size = 0
    errors: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, *_zstd_errors())
    try:
        while chunk := stream.read(CHUNK):
            chunks.append(chunk)
            size += len(chunk)
            check_room(size, f"File {name!r}, unpacked,", BYTES_A_BYTE)
        return b"".join(chunks)
    except errors:  # not passed on, because some contain what was read
        chunks.clear()
    raise _incomplete(name, kind)


def check_complete(path: Path, kind: str) -> None:
    """Refuse a compressed file that is damaged or cut off, by unpacking all of it and keeping nothing.

    For programs that count as far as such a file goes, and compare no checksum.
    """
    import pyarrow

    complete = False
    try:
        with pyarrow.OSFile(str(path)) as file, pyarrow.CompressedInputStream(file, kind) as stream:
            while stream.read(PIECE):
                pass
        complete = True
    except OSError:  # not passed on, because some contain what was read
        pass
    if not complete:
        raise _incomplete(path.name, kind)


def _incomplete(name: str, kind: str) -> DataError:
    return DataError(
        f"File {the.file(name)} must be a complete {kind} file, but it is damaged or cut off. Copy or compress it "
        "again."
    )


def _zstd(data: bytes, name: str) -> Any:
    """The stream of a zstd file, by the standard library where it can (Python 3.14), else by pyarrow."""
    zstd = _standard_zstd()
    if zstd is not None:
        return zstd.ZstdFile(io.BytesIO(data))
    try:
        import pyarrow
    except ImportError:
        raise InputError(missing(f"Reading {name!r}", "parquet", "pyarrow", instead="Unpack the file")) from None
    return pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd")


def _standard_zstd() -> Any:
    try:
        return importlib.import_module("compression.zstd")
    except ImportError:
        return None


def _zstd_errors() -> tuple[type[Exception], ...]:
    zstd = _standard_zstd()
    return () if zstd is None else (zstd.ZstdError,)


# A released table as Spark writes it: a folder of Parquet files, each with some of its rows.

ENDING = ".parquet"


def is_parquet_folder(path: Path) -> bool:
    """Whether a table is a folder of Parquet files, by its name."""
    return path.suffix == ENDING and path.is_dir()


def folder_source(path: Path) -> tuple[Source, Frame]:
    """The columns of all files of a folder together, in the order of their names; hidden ones are not of the table."""
    files = sorted(file for file in path.iterdir() if not file.name.startswith((".", "_")))
    if not files or any(file.suffix != ENDING or not file.is_file() for file in files):
        raise DataError(f"Folder {the.file(path.name)} must have Parquet files, and nothing else.")
    check_room(sum(file.stat().st_size for file in files), f"Folder {path.name!r}", BYTES_A_BYTE)
    parts = [columnar_source(file.read_bytes(), file.name) for file in files]
    sources, (first, *others) = [source for source, _ in parts], [frame for _, frame in parts]
    if any(frame.columns != first.columns or frame.dtypes != first.dtypes for frame in others):
        raise DataError(f"Files in folder {the.file(path.name)} must have the same columns, and some have others.")
    joined = Source(
        names=sources[0].names,
        labels=cache(lambda name: _labels([source.labels(name) for source in sources])),
        counts=lambda name: _counts([source.counts(name) for source in sources]),
        where=lambda row: f"row {row + 1}",
        whole=sources[0].whole,
        height=sum(source.height or 0 for source in sources),
    )
    return joined, first


def _labels(parts: Sequence[Coded]) -> Coded:
    values = list(chain.from_iterable(part.values for part in parts))
    before = np.cumsum([0, *(len(part.values) for part in parts)])
    codes = np.concatenate([part.codes + start for part, start in zip(parts, before[:-1].tolist(), strict=True)])
    return Coded(values, codes).replaced(values)


def _counts(parts: Sequence[Any]) -> Any:
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        masks = [np.ma.getmaskarray(part) for part in parts]
        return np.ma.MaskedArray(np.concatenate([np.ma.getdata(part) for part in parts]), np.concatenate(masks))
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return list(chain.from_iterable(parts))


# Every value of a CSV file is read as text, so that codes such as 01001 survive.


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
    declared = DeclaredColumns.checked(
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


def table_in(
    path: str | PathLike[str] | BinaryIO | Upload, declared: DeclaredColumns, form: FileForm | None = None
) -> Table:
    """The table in a file."""
    form = FileForm() if form is None else form
    expected = [declared.count] if declared.wide is None else [*(declared.wide[1] or ()), *(declared.axes or ())]
    file = open_columns(path, *expected, form=form)
    source, origin, declared = observations(file.source, file.origin, declared, form.structure, form.flags)
    table = table_of(source, declared, origin, stacklevel=4)
    del file, source
    # Give back what pyarrow keeps for later after a file is read
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None:
        pyarrow.default_memory_pool().release_unused()
    return table


@dataclass(frozen=True)
class FileColumns:
    """The named columns of a file, and its origin."""

    source: Source
    origin: Origin


def open_columns(
    path: str | PathLike[str] | BinaryIO | Upload, *counts: str, form: FileForm | None = None, released: bool = False
) -> FileColumns:
    """The columns of a CSV, Parquet, Arrow or .xlsx file, compressed or not, given the names of those with counts.

    A released table may have any labels that a frame has.
    """
    form = FileForm() if form is None else form
    if released and isinstance(path, Path) and is_parquet_folder(path):
        return FileColumns(*folder_source(path))
    packed, name = _contents(path)
    data = unpacked(packed, name)
    if form.sheet is not None and not is_workbook(data):
        raise InputError(f"A sheet must be named for a workbook only, and {name!r} is not one. {arg.sheet:Leave out}.")
    if form.encoding is not None and (is_workbook(data) or is_columnar(data)):
        raise InputError(
            f"An encoding must be named for a text file only, and {name!r} is not one. {arg.encoding:Leave out}."
        )
    if is_columnar(data):
        return FileColumns(*columnar_source(data, name))
    if is_workbook(data):
        from keepsum.sources.workbooks import workbook_source

        return FileColumns(*workbook_source(data, name, form.sheet))
    text = to_utf8(data, name, form.encoding)
    if not released:
        refuse_null_characters(text, name)
    return FileColumns(*csv_source(text, name, counts))


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
            raise UnreachableError(f"File {the.file(path)} must be readable, but: {error.strerror or error}.") from None
    if not callable(getattr(path, "read", None)):
        raise InputError(f"The file must be a path or a file opened in binary mode, got {type_of(path)}.")
    return _all_of(path, "Standard input"), "standard input"


def _bytes_of(file: Path) -> bytes:
    status = file.stat()
    if stat.S_ISDIR(status.st_mode):
        raise DataError(f"File {the.file(file)} must be a table, but it is a folder. Name a file in it.")
    if stat.S_ISREG(status.st_mode):
        check_room(status.st_size, f"File {file.name!r}", BYTES_A_BYTE)
        return file.read_bytes()
    if not stat.S_ISFIFO(status.st_mode):  # a device may go on forever
        raise DataError(f"File {the.file(file)} must be a file or a pipe, but it is a device.")
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
