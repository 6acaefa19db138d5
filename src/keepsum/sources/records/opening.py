"""Records as a table of ibis, wherever they are: opened for reading only, with the same columns in every file."""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from keepsum._arguments import check_text
from keepsum._extras import check_installed
from keepsum._saying import arg, the
from keepsum._text import shown_name, type_of
from keepsum.errors import DataError, InputError
from keepsum.sources.csv_files import DELIMITERS, LONGEST_HEADER
from keepsum.sources.reading import check_complete, open_columns
from keepsum.sources.records.connecting import (
    OpenRecords,
    attempt,
    duckdb_settings,
    open_address,
    open_duckdb,
    open_sqlite,
    opened,
    run_on,
)
from keepsum.sources.records.files import FORMS, RecordFiles, escaped, find_files, is_address, start_of
from keepsum.sources.uploads import Upload

# The columns of files of records: the same in every file, so that none is filled or converted in silence.
#
# Every value of a CSV file is read as text, so that codes such as 01 survive.

COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


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
                    f"Column {the.column(column)} must be of one type in all files of records, but {path.name!r} has "
                    f"another than {files.paths[0].name!r}. Convert the column."
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
class CsvLayout:
    """How CSV files are written: their columns, delimiter and compression."""

    columns: tuple[str, ...]
    delimiter: str
    compression: str


def layout_of(files: RecordFiles, wanted: Sequence[str]) -> CsvLayout:
    """The common layout of CSV files; the delimiter is the one for which the header contains the wanted columns."""
    layouts = {_layout(path, wanted) for path in files.paths}
    if len(layouts) > 1:
        raise DataError("CSV files of records must have the same header and compression, but some differ.")
    return layouts.pop()


def _layout(path: Path, wanted: Sequence[str]) -> CsvLayout:
    compression = _compression(path)
    if compression != "none":
        check_complete(path, compression)
    line = _first_line(path, compression)
    if not line.strip():
        raise DataError(f"File {the.file(path.name)} must start with a header, but its first line is empty.")
    delimiter = next((d for d in DELIMITERS if set(wanted) <= set(_split(line, d))), ",")
    columns = _split(line, delimiter)
    if "" in columns:
        raise DataError(
            f"Every column of {path.name!r} must have a name, but one has none. Name it, or remove a delimiter at the "
            f"end of the header."
        )
    if len(set(columns)) < len(columns):
        raise DataError(f"Columns of {path.name!r} must have different names, but two have the same. Rename one.")
    return CsvLayout(tuple(columns), delimiter, compression)


def _compression(path: Path) -> str:
    start = start_of(path)
    return next((name for magic, name in COMPRESSIONS.items() if start.startswith(magic)), "none")


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
        raise DataError(f"File {the.file(path.name)} must be UTF-8 text with a header, or a Parquet file, but is not.")
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
    line = _first_line(path, _compression(path))
    return max((_split(line, delimiter) for delimiter in DELIMITERS), key=len)


# Records as a table of ibis, wherever they are: opened for reading only, and without anything left on disk.
#
# Files and data frames are read by DuckDB in this process. It may load no extension, so that nothing is downloaded,
# and has no folder for temporary files. Databases are asked through ibis's own drivers.

FRAME = "The data frame"
SOURCES = f"a path, a list of paths, {FORMS}, a data frame or an ibis table"


@contextmanager
def open_records(source: Any, table: str | None, columns: Sequence[str]) -> Iterator[OpenRecords]:
    """Open records for as long as they are counted; ``columns`` are those that will be asked for."""
    if table is not None:
        check_text(table, "The table of a database")
    check_installed("Counting records", "sql")
    in_database = is_address(source)
    if _is_expression(source):
        records = _expression(source, columns)
    elif in_database:
        records = open_address(source, table)
    elif isinstance(source, Upload):
        records = _upload(source, columns)
    elif isinstance(source, (str, PathLike)) or _is_list_of_paths(source):
        files = find_files(source)
        in_database = files.format in ("sqlite", "duckdb")
        records = _files(files, table, columns)
    else:
        records = _frame(source, columns)
    try:
        if table is not None and not in_database:
            raise InputError(f"{arg.table} must name a table of a database, but the records are in none. Leave it out.")
        yield records
    except BaseException:
        with suppress(Exception):  # a database that does not listen to being cancelled is still busy
            records.close()
        raise
    records.close()


def _is_list_of_paths(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and all(isinstance(item, (str, PathLike)) for item in source)


def _is_expression(source: Any) -> bool:
    ibis = sys.modules.get("ibis")
    return ibis is not None and isinstance(source, ibis.Table)


def _memory() -> Any:
    """DuckDB in memory. It may not choose to hold the records instead of the labels that they are joined to."""
    import ibis

    return ibis.duckdb.connect(**duckdb_settings(), disabled_optimizers="build_side_probe_side")


# -- files and data frames --------------------------------------------------------------------------


def _files(files: RecordFiles, table: str | None, columns: Sequence[str]) -> OpenRecords:
    if files.format == "sqlite":
        return open_sqlite(files.paths[0], table)
    if files.format == "duckdb":
        return open_duckdb(files.paths[0], table)
    if files.format != "csv":
        check_parts(files, columns)
    if files.format == "arrow":
        return _frame(attempt(lambda: _arrow(files.paths, columns), files.name), columns)
    paths = [escaped(path) for path in files.paths]
    layout = layout_of(files, columns) if files.format == "csv" else None
    backend = attempt(_memory, files.name)

    def find() -> Any:
        if layout is None:
            return backend.read_parquet(paths, hive_partitioning=False)
        return backend.read_csv(
            paths,
            columns=dict.fromkeys(layout.columns, "VARCHAR"),
            delim=layout.delimiter,
            quote='"',
            escape='"',
            header=True,
            auto_detect=False,
            compression=layout.compression,
        )

    return opened(backend, find, "files", files.name)


def _arrow(paths: Sequence[Path], columns: Sequence[str]) -> Any:
    import pyarrow
    from pyarrow import feather

    return pyarrow.concat_tables([_plain(feather.read_table(path, columns=list(columns))) for path in paths])


def _upload(file: Upload, columns: Sequence[str]) -> OpenRecords:
    """The columns of a file in memory, which are read as those of a table of counts: every value of CSV is text."""
    import ibis
    import pyarrow as pa

    name = f"File {file.name!r}"
    source = open_columns(file, *columns).source
    check_names(source.names, columns, name)

    def column(column_name: str) -> Any:
        labels = source.labels(column_name)
        return pa.DictionaryArray.from_arrays(labels.codes, pa.array(labels.values)).dictionary_decode()

    arrow = attempt(lambda: _plain(pa.table({each: column(each) for each in dict.fromkeys(columns)})), name)
    return opened(attempt(_memory, name), lambda: ibis.memtable(arrow), "files", name)


def _frame(frame: Any, columns: Sequence[str]) -> OpenRecords:
    import narwhals as nw

    data = attempt(lambda: nw.from_native(frame, pass_through=True), FRAME)
    if not isinstance(data, (nw.DataFrame, nw.LazyFrame)):
        raise InputError(f"The source of records must be {SOURCES}, got {type_of(frame)}.")
    names = attempt(lambda: data.collect_schema().names(), FRAME)
    kept = [name for name in dict.fromkeys(columns) if name in names]
    arrow = attempt(lambda: _as_arrow(data, kept), FRAME) if kept else _no_columns()
    import ibis

    backend = attempt(_memory, FRAME)
    return opened(backend, lambda: ibis.memtable(arrow), "files", FRAME)


def _no_columns() -> Any:
    raise DataError("The data frame must have the columns to count by, but has none of them. Check their names.")


def _as_arrow(data: Any, names: Sequence[str]) -> Any:
    import narwhals as nw

    chosen = data.select(*names)
    return _plain((chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen).to_arrow())


def _plain(table: Any) -> Any:
    """A table of Arrow without dictionaries and half floats, which DuckDB does not read."""
    import pyarrow as pa

    return table.cast(pa.schema([field.with_type(plain_type(field.type)) for field in table.schema]))


# -- ibis -------------------------------------------------------------------------------------------


def _expression(table: Any, columns: Sequence[str]) -> OpenRecords:
    """A table of ibis, evaluated where it is if text can be compared by its bytes there, and else fetched."""
    name = "The ibis table"
    backend = attempt(lambda: table._find_backend(use_default=True), name)
    if backend.name in ("duckdb", "sqlite", "postgres"):
        return OpenRecords(table, backend.name, name, run_on(backend, name), lambda: None)
    kept = [column for column in dict.fromkeys(columns) if column in table.columns]
    return _frame(attempt(lambda: run_on(backend, name)(table.select(kept)), name) if kept else _no_columns(), columns)
