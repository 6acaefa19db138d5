"""Files of records: which ones are meant, and in which format they are.

Files are recognised by their first bytes. Every value of a CSV file is read as text, so that codes such as 01 survive.
"""

from __future__ import annotations

import csv
import glob
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

from keepsum._arguments import check_path
from keepsum._text import shown_names
from keepsum.errors import DataError, InputError

Format: TypeAlias = Literal["csv", "parquet", "arrow", "duckdb", "sqlite"]
SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".csv.zst", ".parquet", ".pq", ".arrow", ".feather", ".ipc")
COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
DELIMITERS = (",", ";", "\t", "|")
LONGEST_HEADER = 10**5


@dataclass(frozen=True)
class RecordFiles:
    """Files of one format, in the order of their names."""

    paths: tuple[Path, ...]
    format: Format

    @property
    def name(self) -> str:
        """What they are called in a message."""
        return f"File {self.paths[0].name!r}" if len(self.paths) == 1 else f"Files such as {self.paths[0].name!r}"


def find_files(source: Any) -> RecordFiles:
    """The files that a path, a pattern, a folder or a list of these means."""
    given = [source] if isinstance(source, (str, PathLike)) else list(source)
    if not given:
        raise InputError("The records must be in at least one file, got an empty list.")
    paths = [path for one in given for path in _files_at(one)]
    if len(given) > 1 and not all(path.exists() for path in paths):  # names in a list may be data by mistake
        raise DataError("Every file of records must exist, but one does not. Check the list.")
    formats = {_format(path) for path in paths}
    if len(formats) > 1:
        raise InputError("Files of records must be of one format, got several. Count them one after the other.")
    (form,) = formats
    if form in ("duckdb", "sqlite") and len(paths) > 1:
        raise InputError("A database must be a single file, got several. Name one of them.")
    return RecordFiles(tuple(paths), form)


def _files_at(path: Any) -> list[Path]:
    file = check_path(path, "The source of records")
    if file.is_dir():
        inside = sorted(child for child in file.rglob("*") if child.is_file() and _is_data(child.relative_to(file)))
        if not inside:
            raise DataError(f"Folder {str(file)!r} must contain CSV or Parquet files, but contains none.")
        return inside
    if file.exists() or not glob.has_magic(str(file)):
        return [file]
    matching = sorted(Path(name) for name in glob.glob(str(file), recursive=True))  # noqa: PTH207
    matching = [path for path in matching if path.is_file()]
    if not matching:
        raise DataError(f"Pattern {str(file)!r} must match at least one file, but matches none.")
    return matching


def _is_data(inner: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in inner.parts)
    return not hidden and inner.name.lower().endswith(SUFFIXES)


def _format(path: Path) -> Format:
    start = _start_of(path)
    if start[:4] == b"PAR1":
        return "parquet"
    if start[:6] == b"ARROW1":
        return "arrow"
    if start[:16] == b"SQLite format 3\0":
        return "sqlite"
    if start[8:12] == b"DUCK":
        return "duckdb"
    if path.suffix.lower() in (".db", ".sqlite", ".sqlite3", ".duckdb", ".parquet", ".pq"):
        raise DataError(f"File {path.name!r} must be a database or Parquet file as its name says, but is not.")
    if start[:4] == b"PK\3\4":
        raise DataError(f"File {path.name!r} must be CSV, Parquet or a database, but is a zip file or a spreadsheet.")
    return "csv"


def _start_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(16)
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
    raise DataError(f"File {str(path)!r} must be readable, but: {reason}.")


def escaped(path: Path) -> str:
    """The path of one file for DuckDB, which would take some characters for a pattern."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in os.path.abspath(path))  # noqa: PTH100


# -- CSV --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """How CSV files are written: their columns, delimiter and compression."""

    columns: tuple[str, ...]
    delimiter: str
    compression: str


def layout_of(files: RecordFiles, wanted: Sequence[str]) -> Layout:
    """The common layout of CSV files; the delimiter is the one for which the header contains the wanted columns."""
    layouts = {_layout(path, wanted) for path in files.paths}
    if len(layouts) > 1:
        raise DataError("CSV files of records must have the same header and compression, but some differ.")
    return layouts.pop()


def _layout(path: Path, wanted: Sequence[str]) -> Layout:
    start = _start_of(path)
    compression = next((name for magic, name in COMPRESSIONS.items() if start.startswith(magic)), "none")
    line = _first_line(path, compression)
    if not line.strip():
        raise DataError(f"File {path.name!r} must start with a header, but its first line is empty.")
    delimiter = next((d for d in DELIMITERS if set(wanted) <= set(_split(line, d))), ",")
    columns = _split(line, delimiter)
    twice = sorted(name for name, times in Counter(columns).items() if times > 1)
    if twice:
        raise DataError(f"Columns of {path.name!r} must have different names, got {shown_names(twice)} twice.")
    return Layout(tuple(columns), delimiter, compression)


def _split(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter), [])


def _first_line(path: Path, compression: str) -> str:
    """The first line of a file, which holds the names of columns; whatever fails is said without it."""
    text = None
    try:
        with path.open("rb") as raw:
            text = _expanded(raw, compression).split(b"\n", 1)[0].decode("utf-8-sig")
    except (OSError, ValueError, csv.Error):
        pass
    if text is None or len(text) >= LONGEST_HEADER:
        raise DataError(f"File {path.name!r} must be UTF-8 text with a header, or a Parquet file, but is not.")
    return text.removesuffix("\r")


def _expanded(raw: BinaryIO, compression: str) -> bytes:
    if compression == "none":
        return raw.read(LONGEST_HEADER)
    import pyarrow

    with pyarrow.CompressedInputStream(raw, compression) as stream:
        return bytes(stream.read(LONGEST_HEADER))
