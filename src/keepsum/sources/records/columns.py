"""The columns of files of records: the same in every file, so that none is filled or converted in silence.

Every value of a CSV file is read as text, so that codes such as 01 survive.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from keepsum._text import shown_name
from keepsum.errors import DataError
from keepsum.sources.compressed import check_complete
from keepsum.sources.records.failures import attempt
from keepsum.sources.records.files import RecordFiles, start_of

COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
DELIMITERS = (",", ";", "\t", "|")
LONGEST_HEADER = 10**5


def check_names(names: Sequence[str], wanted: Sequence[str], name: str) -> None:
    """Refuse columns that are not there, or there twice. Names in the source are not shown: they may be a record."""
    absent = next((column for column in wanted if column not in names), None)
    if absent is not None:
        raise DataError(f"{name} must have a column {shown_name(absent)}, but has none. Check the names of columns.")
    times = Counter(column.casefold() for column in names)
    alike = next((column for column in wanted if times[column.casefold()] > 1), None)
    if alike is not None:  # a database that ignores case would read one for the other, and bound the wrong unit
        raise DataError(
            f"{name} must not have columns whose names differ only in case, but two are named {alike!r} but for "
            f"that. Rename one."
        )


# -- Parquet and Arrow ------------------------------------------------------------------------------


def check_parts(files: RecordFiles, wanted: Sequence[str]) -> None:
    """Refuse files whose columns are of different types: DuckDB would convert all to those of the first."""
    types: dict[str, Any] = {}
    for path in files.paths:
        schema = attempt(lambda path=path: _schema(path, files.format), f"File {path.name!r}")  # type: ignore[misc]
        check_names(schema.names, wanted, f"File {path.name!r}")
        for column in wanted:
            kind = plain_type(schema.field(column).type)
            if types.setdefault(column, kind) != kind:
                raise DataError(
                    f"Column {column!r} must be of one type in all files of records, but {path.name!r} has another "
                    f"than {files.paths[0].name!r}. Convert the column."
                )


def _schema(path: Path, form: str) -> Any:
    if form == "parquet":
        import pyarrow.parquet

        return pyarrow.parquet.read_schema(path)
    import pyarrow.ipc

    with pyarrow.ipc.open_file(path) as file:
        return file.schema


def plain_type(kind: Any) -> Any:
    """The type of values, however they are stored."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return pa.string() if is_text else pa.float32() if pa.types.is_float16(kind) else kind


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
    start = start_of(path)
    compression = next((name for magic, name in COMPRESSIONS.items() if start.startswith(magic)), "none")
    if compression != "none":
        check_complete(path, compression)
    line = _first_line(path, compression)
    if not line.strip():
        raise DataError(f"File {path.name!r} must start with a header, but its first line is empty.")
    delimiter = next((d for d in DELIMITERS if set(wanted) <= set(_split(line, d))), ",")
    columns = _split(line, delimiter)
    if "" in columns:
        raise DataError(
            f"Every column of {path.name!r} must have a name, but one has none. Name it, or remove a delimiter at the "
            f"end of the header."
        )
    if len(set(columns)) < len(columns):
        raise DataError(f"Columns of {path.name!r} must have different names, but two have the same. Rename one.")
    return Layout(tuple(columns), delimiter, compression)


def _split(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # a name of more than 100,000 characters
        return []


def _first_line(path: Path, compression: str) -> str:
    """The first line of a file, which holds the names of columns; whatever fails is said without it."""
    text = None
    try:
        with path.open("rb") as raw:
            text = re.split(rb"\r\n|\n|\r", _expanded(raw, compression), maxsplit=1)[0].decode("utf-8-sig")
    except (OSError, ValueError):
        pass
    if text is None or len(text) >= LONGEST_HEADER:
        raise DataError(f"File {path.name!r} must be UTF-8 text with a header, or a Parquet file, but is not.")
    return text


def _expanded(raw: BinaryIO, compression: str) -> bytes:
    if compression == "none":
        return raw.read(LONGEST_HEADER)
    import pyarrow

    with pyarrow.CompressedInputStream(raw, compression) as stream:
        return bytes(stream.read(LONGEST_HEADER))


# -- the header alone -------------------------------------------------------------------------------


def header_of(files: RecordFiles) -> list[str]:
    """The names of the columns of the first file; the delimiter of a CSV file is the one that gives most of them."""
    path = files.paths[0]
    if files.format != "csv":
        return list(attempt(lambda: _schema(path, files.format), f"File {path.name!r}").names)
    start = start_of(path)
    compression = next((name for magic, name in COMPRESSIONS.items() if start.startswith(magic)), "none")
    line = _first_line(path, compression)
    return max((_split(line, delimiter) for delimiter in DELIMITERS), key=len)
