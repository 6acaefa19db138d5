"""Records as a table of ibis, wherever they are: opened for reading only, and without anything left on disk.

Files and data frames are read by DuckDB in this process. It may load no extension, so that nothing is downloaded, and
has no folder for temporary files. Databases are asked through ibis's own drivers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any

from keepsum._arguments import check_text
from keepsum._extras import check_installed
from keepsum._text import type_of
from keepsum.errors import DataError, InputError
from keepsum.sources.reading import open_columns
from keepsum.sources.records.columns import check_names, check_parts, layout_of, plain_type
from keepsum.sources.records.connecting import open_address, open_duckdb, open_sqlite
from keepsum.sources.records.databases import FORMS, is_address
from keepsum.sources.records.failures import attempt
from keepsum.sources.records.files import RecordFiles, escaped, find_files
from keepsum.sources.records.opened import OpenRecords, duckdb_settings, opened
from keepsum.sources.records.running import run_on
from keepsum.sources.uploads import Upload

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
            raise InputError("table= must name a table of a database, but the records are in none. Leave it out.")
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
    """Some columns of a frame; lazy ones are collected."""
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
