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
from keepsum.sources.records.opened import OpenRecords, duckdb_settings, opened
from keepsum.sources.records.sqlite_files import open_sqlite_file, sqlite_table
from keepsum.sources.records.table_names import IN_SCHEMAS, IN_SQLITE, find_table, in_schemas

SERVER = "The database"  # what it is called in a message
READ_ONLY = "-c default_transaction_read_only=on -c client_min_messages=error"


def open_address(address: str, table: str | None) -> OpenRecords:
    """The records of a table in the database at an address."""
    check_address(address)
    if scheme_of(address) in POSTGRES:
        return _postgres(postgres_address(address), table)
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
    """The tables and views of the database at an address or in a file that its user may read."""
    if scheme_of(source) in POSTGRES:
        server = _connected(postgres_address(source))
        return _listed(lambda: server.con.execute(IN_SCHEMAS), server.disconnect, SERVER)
    path = Path(sqlite_path(source) if scheme_of(source) == "sqlite" else source)
    name = f"Database {path.name!r}"
    if find_files(path).format == "duckdb":
        backend = _connected_duckdb(path, name)
        return _listed(lambda: backend.con.execute(IN_SCHEMAS), backend.disconnect, name)
    connection, _ = open_sqlite_file(path, name)
    return _listed(lambda: connection.execute(IN_SQLITE), connection.close, name)


def _listed(ask: Callable[[], Any], close: Callable[[], None], name: str) -> list[str]:
    try:
        return sorted(row[0] for row in attempt(lambda: ask().fetchall(), name))
    finally:
        close()


def open_sqlite(path: Path, table: str | None) -> OpenRecords:
    """The records of a table in a SQLite file."""
    import ibis

    name = f"Database {path.name!r}"
    connection, unchanged = open_sqlite_file(path, name)
    backend = attempt(lambda: ibis.sqlite.from_connection(connection), name)

    def find(wanted: str) -> Any:
        return sqlite_table(backend, connection, wanted)

    def names() -> Any:
        return connection.execute(IN_SQLITE).fetchall()

    records = opened(backend, lambda: find_table(find, table, names, name), "sqlite", name)

    def run(expression: Any) -> Any:
        counted = records.run(expression)
        unchanged()
        return counted

    return OpenRecords(records.table, "sqlite", name, run, records.close)


def open_duckdb(path: Path, table: str | None) -> OpenRecords:
    """The records of a table in a DuckDB file."""
    name = f"Database {path.name!r}"
    backend = _connected_duckdb(path, name)

    def names() -> Any:
        return backend.con.execute(IN_SCHEMAS).fetchall()

    return opened(backend, lambda: find_table(in_schemas(backend), table, names, name), "duckdb", name)


def _connected_duckdb(path: Path, name: str) -> Any:
    import ibis

    def connect() -> Any:
        backend = ibis.duckdb.connect(path, read_only=True, **duckdb_settings())
        # A view in a database may name other files, or addresses: they are not opened.
        backend.con.execute("SET enable_external_access = false")
        return backend

    return attempt(connect, name)


def _postgres(address: PostgresAddress, table: str | None) -> OpenRecords:
    backend = _connected(address)

    def names() -> Any:
        backend.con.rollback()  # what failed before
        return backend.con.execute(IN_SCHEMAS).fetchall()

    return opened(backend, lambda: find_table(in_schemas(backend), table, names, SERVER), "postgres", SERVER)


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
