"""Databases opened for reading only: SQLite, DuckDB and Postgres, through ibis's own drivers."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keepsum.errors import DataError, InputError
from keepsum.sources.records.databases import (
    FORMS,
    POSTGRES,
    PostgresAddress,
    postgres_address,
    scheme_of,
    sqlite_path,
)
from keepsum.sources.records.failures import attempt
from keepsum.sources.records.files import find_files
from keepsum.sources.records.opened import SETTINGS, OpenRecords, opened
from keepsum.sources.records.sqlite_files import open_sqlite_file, sqlite_table

SERVER = "The database"  # what it is called in a message
READ_ONLY = "-c default_transaction_read_only=on -c client_min_messages=error"


def open_address(address: str, table: str | None) -> OpenRecords:
    """The records of a table in the database at an address."""
    check_address(address)
    if scheme_of(address) in POSTGRES:
        return _postgres(postgres_address(address), _named(table))
    return open_sqlite(Path(sqlite_path(address)), table)


def check_address(address: str) -> None:
    """Refuse an address that cannot be opened, or that holds a password; no server is asked."""
    if scheme_of(address) in POSTGRES:
        postgres_address(address)
    elif scheme_of(address) == "sqlite":
        path = Path(sqlite_path(address))
        if find_files(path).format != "sqlite":
            raise DataError(f"File {path.name!r} must be a SQLite database, but is not.")
    else:
        raise InputError(f"The address of a database must be such as {FORMS}, got one of another kind.")


def tables_at(source: str) -> list[str]:
    """The tables and views of the database at an address or in a file; of Postgres, those in the schema of the user."""
    if scheme_of(source) in POSTGRES:
        server = _connected(postgres_address(source))
        return _listed(server.list_tables, server.disconnect, SERVER)
    path = Path(sqlite_path(source) if scheme_of(source) == "sqlite" else source)
    name = f"Database {path.name!r}"
    if find_files(path).format == "duckdb":
        backend = _connected_duckdb(path, name)
        return _listed(lambda: _first(backend.con.execute("SHOW TABLES")), backend.disconnect, name)
    connection, _ = open_sqlite_file(path, name)
    tables = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*'"
    return _listed(lambda: _first(connection.execute(tables)), connection.close, name)


def _first(cursor: Any) -> list[str]:
    return [row[0] for row in cursor.fetchall()]


def _listed(find: Callable[[], list[str]], close: Callable[[], None], name: str) -> list[str]:
    try:
        return sorted(attempt(find, name))
    finally:
        close()


def _named(table: str | None) -> str:
    if table is None:
        raise InputError("The table of the database must be named. Name it with table=.")
    return table


def open_sqlite(path: Path, table: str | None) -> OpenRecords:
    """The records of a table in a SQLite file."""
    import ibis

    name, wanted = f"Database {path.name!r}", _named(table)
    connection, unchanged = open_sqlite_file(path, name)
    backend = attempt(lambda: ibis.sqlite.from_connection(connection), name)
    records = opened(backend, lambda: sqlite_table(backend, connection, wanted), "sqlite", name)

    def run(expression: Any) -> Any:
        counted = records.run(expression)
        unchanged()
        return counted

    return OpenRecords(records.table, "sqlite", name, run, records.close)


def open_duckdb(path: Path, table: str | None) -> OpenRecords:
    """The records of a table in a DuckDB file."""
    name, wanted = f"Database {path.name!r}", _named(table)
    backend = _connected_duckdb(path, name)
    schema, inner = _split(wanted)
    return opened(backend, lambda: backend.table(inner, database=schema), "duckdb", name)


def _connected_duckdb(path: Path, name: str) -> Any:
    import ibis

    def connect() -> Any:
        backend = ibis.duckdb.connect(path, read_only=True, **SETTINGS)
        # A view in a database may name other files, or addresses: they are not opened.
        backend.con.execute("SET enable_external_access = false")
        return backend

    return attempt(connect, name)


def _postgres(address: PostgresAddress, table: str) -> OpenRecords:
    backend = _connected(address)
    schema, inner = _split(table)
    return opened(backend, lambda: backend.table(inner, database=schema), "postgres", SERVER)


def _connected(address: PostgresAddress) -> Any:
    import ibis

    _check_password_file(address)
    return attempt(
        lambda: ibis.postgres.connect(
            host=address.host,
            port=address.port,
            user=address.user,
            database=address.database,
            options=READ_ONLY,
            client_encoding="UTF8",
            **address.options,
        ),
        SERVER,
    )


def _check_password_file(address: PostgresAddress) -> None:
    """Refuse a password file that Postgres's library would ignore, with a warning of its own on standard error."""
    if os.environ.get("PGPASSWORD") or os.name != "posix":
        return
    file = address.options.get("passfile") or os.environ.get("PGPASSFILE") or Path("~/.pgpass").expanduser()
    try:
        mode = os.stat(file).st_mode  # noqa: PTH116
    except (OSError, ValueError):  # there is none
        return
    if not stat.S_ISREG(mode) or mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(
            "The password file must be a plain file that only its owner may read, but is not. Change its permissions: "
            "chmod 600."
        )


def _split(table: str) -> tuple[str | None, str]:
    """The schema, if there is one, and the table: ``census.people``."""
    schema, _, inner = table.rpartition(".")
    return schema or None, inner
