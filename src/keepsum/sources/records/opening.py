"""Records as a table of ibis, wherever they are: opened for reading only, and without anything left on disk.

Files and data frames are read by DuckDB in this process. It may load no extension, so that nothing is downloaded, and
has no folder for temporary files. Databases are asked through ibis's own drivers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from keepsum._arguments import check_text
from keepsum._text import type_of
from keepsum.errors import DataError, InputError
from keepsum.sources.records.databases import (
    FORMS,
    POSTGRES,
    PostgresAddress,
    is_address,
    postgres_address,
    scheme_of,
    sqlite_path,
)
from keepsum.sources.records.failures import attempt
from keepsum.sources.records.files import RecordFiles, escaped, find_files, layout_of

# No extension is downloaded or loaded, and nothing is written to disk.
SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
    "preserve_insertion_order": "false",
}
READ_ONLY = "-c default_transaction_read_only=on -c client_min_messages=error"
FRAME = "The data frame"
SOURCES = f"a path, a list of paths, {FORMS}, a data frame or an ibis table"


@dataclass(frozen=True)
class OpenRecords:
    """Records that can be counted.

    Attributes
    ----------
    table
        The records as a table of ibis.
    dialect
        Where they are: ``"files"`` (DuckDB in this process), or the name of a database of ibis.
    name
        What they are called in a message.
    run
        Evaluate an expression over them, as an Arrow table.
    """

    table: Any
    dialect: str
    name: str
    run: Callable[[Any], Any]


@contextmanager
def open_records(source: Any, table: str | None, columns: Sequence[str]) -> Iterator[OpenRecords]:
    """Open records for as long as they are counted; ``columns`` are those that will be asked for."""
    if table is not None:
        check_text(table, "The table of a database")
    _check_installed()
    if _is_expression(source):
        opened, close = _expression(source), None
    elif is_address(source):
        opened, close = _address(source, table)
    elif isinstance(source, (str, PathLike)) or _is_list_of_paths(source):
        opened, close = _files(find_files(source), table, columns)
    else:
        opened, close = _frame(source, columns)
    if table is not None and opened.dialect in ("files", "expression"):
        raise InputError("table= must name a table of a database, but the records are in no database. Leave it out.")
    try:
        yield opened
    finally:
        if close is not None:
            close()


def _check_installed() -> None:
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("ibis", "duckdb", "pyarrow")):
        raise InputError("Counting records needs ibis and DuckDB. Install them: pip install 'keepsum[sql]'")


def _is_list_of_paths(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and all(isinstance(item, (str, PathLike)) for item in source)


def _is_expression(source: Any) -> bool:
    ibis = sys.modules.get("ibis")
    return ibis is not None and isinstance(source, ibis.Table)


def _memory(**settings: str) -> Any:
    import ibis

    return ibis.duckdb.connect(**SETTINGS, **settings)


def _opened(backend: Any, find: Callable[[], Any], dialect: str, name: str) -> tuple[OpenRecords, Callable[[], None]]:
    """The records of a connection, which is closed if they are not there."""
    try:
        records = attempt(find, name)
    except BaseException:
        backend.disconnect()
        raise
    return OpenRecords(records, dialect, name, backend.to_pyarrow), backend.disconnect


# -- files and data frames --------------------------------------------------------------------------


def _files(files: RecordFiles, table: str | None, columns: Sequence[str]) -> tuple[OpenRecords, Callable[[], None]]:
    if files.format == "sqlite":
        return _sqlite(files.paths[0], table)
    if files.format == "duckdb":
        return _duckdb(files.paths[0], table)
    if table is not None:
        raise InputError("table= must name a table of a database, but the records are in a file. Leave it out.")
    if files.format == "arrow":
        return _frame(attempt(lambda: _arrow(files.paths), files.name), columns)
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

    return _opened(backend, find, "files", files.name)


def _arrow(paths: Sequence[Path]) -> Any:
    import pyarrow
    from pyarrow import feather

    return pyarrow.concat_tables([feather.read_table(path) for path in paths])


def _frame(frame: Any, columns: Sequence[str]) -> tuple[OpenRecords, Callable[[], None]]:
    import narwhals as nw

    data = nw.from_native(frame, pass_through=True)
    if not isinstance(data, (nw.DataFrame, nw.LazyFrame)):
        raise InputError(f"The source of records must be {SOURCES}, got {type_of(frame)}.")
    names = attempt(lambda: data.collect_schema().names(), FRAME)
    kept = [name for name in dict.fromkeys(columns) if name in names]
    arrow = attempt(lambda: _as_arrow(data, kept), FRAME) if kept else _no_columns()
    import ibis

    backend = attempt(_memory, FRAME)
    return _opened(backend, lambda: ibis.memtable(arrow), "files", FRAME)


def _no_columns() -> Any:
    raise DataError("The data frame must have the columns to count by, but has none of them. Check their names.")


def _as_arrow(data: Any, names: Sequence[str]) -> Any:
    """Some columns of a frame; lazy ones are collected, and dictionaries become plain columns."""
    import narwhals as nw
    import pyarrow as pa

    chosen = data.select(*names)
    arrow = (chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen).to_arrow()
    plain = [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in arrow.schema]
    return arrow.cast(pa.schema(plain))


# -- databases --------------------------------------------------------------------------------------


def _address(address: str, table: str | None) -> tuple[OpenRecords, Callable[[], None]]:
    if scheme_of(address) in POSTGRES:
        return _postgres(postgres_address(address), _named(table))
    if scheme_of(address) == "sqlite":
        path = Path(sqlite_path(address))
        if find_files(path).format != "sqlite":
            raise DataError(f"File {path.name!r} must be a SQLite database, but is not.")
        return _sqlite(path, table)
    raise InputError(f"The address of a database must be such as {FORMS}, got one of another kind.")


def _named(table: str | None) -> str:
    if table is None:
        raise InputError("The table of the database must be named. Name it with table=.")
    return table


def _sqlite(path: Path, table: str | None) -> tuple[OpenRecords, Callable[[], None]]:
    import ibis

    name, wanted = f"Database {path.name!r}", _named(table)

    def connect() -> Any:
        import sqlite3

        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        connection.execute("PRAGMA temp_store = MEMORY")
        return ibis.sqlite.from_connection(connection)

    backend = attempt(connect, name)
    return _opened(backend, lambda: backend.table(wanted), "sqlite", name)


def _duckdb(path: Path, table: str | None) -> tuple[OpenRecords, Callable[[], None]]:
    import ibis

    name, wanted = f"Database {path.name!r}", _named(table)

    def connect() -> Any:
        backend = ibis.duckdb.connect(path, read_only=True, **SETTINGS)
        # A view in a database may name other files, or addresses: they are not opened.
        backend.con.execute("SET enable_external_access = false")
        return backend

    backend = attempt(connect, name)
    schema, inner = _split(wanted)
    return _opened(backend, lambda: backend.table(inner, database=schema), "duckdb", name)


def _postgres(address: PostgresAddress, table: str) -> tuple[OpenRecords, Callable[[], None]]:
    import ibis

    name = "The database"
    backend = attempt(
        lambda: ibis.postgres.connect(
            host=address.host,
            port=address.port,
            user=address.user,
            database=address.database,
            options=READ_ONLY,
            client_encoding="UTF8",
            **address.options,
        ),
        name,
    )
    schema, inner = _split(table)
    return _opened(backend, lambda: backend.table(inner, database=schema), "postgres", name)


def _split(table: str) -> tuple[str | None, str]:
    """The schema, if there is one, and the table: ``census.people``."""
    schema, _, inner = table.rpartition(".")
    return schema or None, inner


def _expression(table: Any) -> OpenRecords:
    """A table of ibis, evaluated where it is."""
    name = "The ibis table"
    backend = attempt(lambda: table._find_backend(use_default=True), name)
    return OpenRecords(table, backend.name, name, backend.to_pyarrow)
