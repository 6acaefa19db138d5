"""Databases opened for reading only, asked questions that can be stopped, and closed; their errors in our words."""

from __future__ import annotations

import os
import re
import stat
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from keepsum._memory import available, readable, resident
from keepsum._progress import check
from keepsum._saying import arg, the
from keepsum._signals import held_back, interruptible, let_through
from keepsum._text import MAX_NAMES, given
from keepsum.errors import DataError, InputError, KeepsumError, TooMuchWorkError, UnreachableError
from keepsum.sources.records.files import (
    FORMS,
    POSTGRES,
    PostgresAddress,
    find_files,
    postgres_address,
    scheme_of,
    sqlite_path,
)

# Errors of drivers in our own words.
#
# What a driver says may contain data, a path or a password. None of it is passed on, not even as the context of our
# error: it only decides which of the sentences below is said.

T = TypeVar("T")
MEMORY = "counting the records needs more memory than there is, and nothing is written to disk. Count fewer columns"
NO_SUCH_TABLE = "has no such table"
FAILED = "reading it failed"

# The name of the error's class, what its text contains, our words for it, and our error; the first that fits is said.
# What a server or a disk may do otherwise a moment later is an UnreachableError, what is so in the data a DataError.
# fmt: off
REASONS: list[tuple[str, str, str, type[KeepsumError]]] = [
    (r"OutOfMemory", r"", MEMORY, TooMuchWorkError),
    (r"", r"[Cc]onnection refused|[Tt]imeout expired|socket.*No such file|server closed",
     "no server answers there", UnreachableError),
    (r"", r"translate host name|resolve host|Name or service not known", "there is no such host", UnreachableError),
    (r"", r"password|authentication",
     "the server does not let this user in. Set PGPASSWORD, or use a password file", UnreachableError),
    (r"", r'database "[^"]*" does not exist', "the server has no such database", UnreachableError),
    (r"", r'role "[^"]*" does not exist', "the server has no such user", UnreachableError),
    (r"InsufficientPrivilege", r"", "this user may not read it", UnreachableError),
    (r"Duplicate", r"", "two of its columns have the same name. Rename one", DataError),
    (r"TableNotFound|UndefinedTable|CatalogException|InvalidSchemaName", r"",
     f"it {NO_SUCH_TABLE}. Check {arg.table}", DataError),
    (r"", r"no such table|Table with name", f"it {NO_SUCH_TABLE}. Check {arg.table}", DataError),
    (r"", r"not a database|not a valid DuckDB|read enough bytes|file is encrypted|file is malformed",
     "it is not such a database", DataError),
    (r"", r"database is locked|lock on file|Conflicting lock",
     "another process is writing to it. Try again later", UnreachableError),
    (r"", r"[Pp]ermission denied|unable to open", "it cannot be opened", UnreachableError),
    (r"", r"unicode|utf-?8|[Ee]ncoding|byte sequence", "it is not UTF-8 text. Save it as UTF-8", DataError),
    (r"", r"CSV|Expected Number of Columns",
     "it is not well-formed CSV with one kind of line ends, and as many values in every row as in the header",
     DataError),
    (r"", r"[Pp]arquet|thrift|snappy", "it is not a whole Parquet file", DataError),
    (r"ArrowInvalid|ArrowTypeError", r"", "a column has values of several types. Convert it to text first", DataError),
    (r"", r"unbound", "it is bound to no database. Take the table from a connection", DataError),
    (r"UnsupportedBackend|OperationNotDefined|UnsupportedOperation", r"",
     "its database cannot do what this needs", DataError),
    (r"IOException|OSError|OperationalError|InterfaceError|ConnectionException", r"", FAILED, UnreachableError),
    (r"", r"", FAILED, DataError),
]
# fmt: on


def attempt(action: Callable[[], T], what: str) -> T:
    """Do what a driver does, or raise an error that says in our own words what failed.

    Warnings of drivers are about their own use of each other, and may show data as well: they are not passed on either.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return action()
    except (KeepsumError, MemoryError):
        raise
    except Exception as error:
        reason, problem = _reason(type(error).__name__, str(error))
    raise problem(f"{what} must be readable, but {reason}.")


def _reason(kind: str, text: str) -> tuple[str, type[KeepsumError]]:
    """What went wrong, for a driver's error of this class and with this text, and the error that says so.

    >>> _reason("OperationalError", 'connection to server at "10.0.0.1" failed: Connection refused')
    ('no server answers there', <class 'keepsum.errors.UnreachableError'>)
    >>> _reason("ConversionException", "Could not convert 'Alice' to INT64")
    ('reading it failed', <class 'keepsum.errors.DataError'>)
    """
    return next(
        (words, problem)
        for named, pattern, words, problem in REASONS
        if re.search(named, kind) and re.search(pattern, text)
    )


# Questions to a database that can be stopped, and that take no more memory than they may.
#
# A view may never come to an end, and a driver takes no notice of signals. So a question runs in a thread of its own,
# and whoever waits for it looks again and again: a signal, the page's button or too much memory ends it. A connection
# to SQLite belongs to its thread; it lets us look from there.

STEPS = 10**6  # of SQLite's virtual machine between two looks: some hundredths of a second


def most_memory() -> int | None:
    """The bytes that counting may take: three quarters of those that are free now; None if the system does not say."""
    free = available()
    return None if free is None else free // 4 * 3


def memory_setting() -> dict[str, str]:
    """The same limit as a setting of DuckDB, which otherwise takes four fifths of the machine."""
    most = most_memory()
    return {} if most is None else {"memory_limit": f"{max(1, most // 2**20)} MiB"}


def run_on(backend: Any, name: str) -> Callable[[Any], Any]:
    """Evaluate expressions on a connection of ibis, as Arrow tables."""

    def run(expression: Any) -> Any:
        look = _look(name)
        if backend.name == "sqlite":
            return _in_sqlite(backend, expression, look)
        try:
            return interruptible(lambda: backend.to_pyarrow(expression), look, _cancel(backend))
        except Exception as error:
            if type(error).__name__ != "OutOfMemoryException":
                raise
        raise _too_large(name, backend.con.execute("SELECT current_setting('memory_limit')").fetchone()[0])

    return run


def _cancel(backend: Any) -> Callable[[], None] | None:
    """How a question is cancelled from another thread; None where only its own driver knows."""
    cancelled_by = {"duckdb": "interrupt", "postgres": "cancel"}.get(backend.name)
    return None if cancelled_by is None else getattr(backend.con, cancelled_by)


def _look(name: str) -> Callable[[], None]:
    """What is done now and then: it raises an error where somebody stops the work, or it takes too much memory."""
    before, most = resident(), most_memory()

    def look() -> None:
        check()
        now = resident()
        if most is not None and before is not None and now is not None and now - before > most:
            raise _too_large(name, readable(most))

    return look


def _too_large(name: str, limit: str) -> TooMuchWorkError:
    return TooMuchWorkError(
        f"{name} must be countable with {limit} of memory, but needs more, and nothing is written to disk. Count fewer "
        f"columns, or use a larger machine."
    )


def _in_sqlite(backend: Any, expression: Any, look: Callable[[], None]) -> Any:
    """In this thread. SQLite swallows what is raised inside of it, so signals are let through where we look."""
    raised: list[BaseException] = []

    def looked() -> int:
        try:
            with let_through():
                look()
        except BaseException as reason:  # raised again below
            raised.append(reason)
        return len(raised)  # anything but 0 ends the question

    backend.con.set_progress_handler(looked, STEPS)
    try:
        with held_back():
            return backend.to_pyarrow(expression)
    except Exception:
        if not raised:
            raise
    finally:
        backend.con.set_progress_handler(None, 0)
    raise raised[0]


# Records that are open: what is asked of them, and how they are closed.


def duckdb_settings() -> dict[str, str]:
    """No extension is downloaded or loaded, nothing is written to disk, and some memory is left."""
    return {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "temp_directory": "",
        "preserve_insertion_order": "false",
        **memory_setting(),
    }


@dataclass(frozen=True)
class OpenRecords:
    """Records that can be counted."""

    table: Any  # the records as a table of ibis
    dialect: str  # where they are: ``"files"`` (DuckDB in this process), or the name of a database of ibis
    name: str  # what they are called in a message
    run: Callable[[Any], Any]  # evaluate an expression over them, as an Arrow table
    close: Callable[[], None]  # close them


def opened(backend: Any, find: Callable[[], Any], dialect: str, name: str) -> OpenRecords:
    """The records of a connection, which is closed if they are not there."""
    try:
        records = attempt(find, name)
    except BaseException:
        backend.disconnect()
        raise
    return OpenRecords(records, dialect, name, run_on(backend, name), backend.disconnect)


# SQLite files, read without writing anything beside them.
#
# A database with a write-ahead log needs an index of it (``-shm``), which SQLite creates even to read. If there is no
# log, everything is in the database itself, so it is opened as a file that nobody changes, and whether that was so is
# checked afterwards. If a program has it open, log and index exist and are shared with it.


def open_sqlite_file(path: Path, name: str) -> tuple[Any, Callable[[], None]]:
    """A connection that only reads, and a check that what was read is of one moment."""
    path = path.resolve()  # the log is beside the file itself, not beside a link to it
    log, index = (path.with_name(f"{path.name}-{ending}") for ending in ("wal", "shm"))
    before = _state(path), _state(log)
    alone = _has_log(path) and (before[1] is None or before[1][0] == 0)
    if _has_log(path) and not alone and not index.exists():
        raise DataError(
            f"{name} must have been closed by the program that wrote it, but was not. Open and close it with that "
            f"program."
        )

    def connect() -> Any:
        import sqlite3

        uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if alone else ''}"
        connection = sqlite3.connect(uri, uri=True)
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection

    def unchanged() -> None:
        if alone and before != (_state(path), _state(log)):
            raise DataError(f"{name} must not change while it is read, but did. Try again later.")

    return attempt(connect, name), unchanged


def check_text_order(backend: Any, name: str) -> None:
    """Refuse a database that sorts text by other bytes than UTF-8: it would count other records of a unit."""
    (encoding,) = backend.con.execute("PRAGMA encoding").fetchone()
    if encoding != "UTF-8":
        raise DataError(
            f"{name} must store text in UTF-8 to bound the records of a unit, because the first ones in the order of "
            f"its bytes are counted, but stores it in {encoding}. Copy it to a database with PRAGMA encoding = 'UTF-8'."
        )


def _has_log(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(20)[18:20] == b"\x02\x02"


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        now = path.stat()
    except OSError:
        return None
    return now.st_size, now.st_mtime_ns, now.st_ino


# A table of a database by its name; if it is not there, the message lists those that are.

IN_SQLITE = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
_TABLES = "FROM information_schema.tables WHERE table_schema NOT IN ('information_schema', 'pg_catalog')"
IN_SCHEMAS = (
    "SELECT CASE WHEN table_schema IN ('main', 'public') THEN table_name ELSE table_schema || '.' || table_name END "
    f"{_TABLES}"
)
PLACES = f"SELECT table_catalog, table_schema, table_name {_TABLES}"


def find_table(
    find: Callable[[str], Any], table: str | None, names: Callable[[], Sequence[tuple[str]]], what: str
) -> Any:
    """The table that ``find`` finds; ``names`` lists all there are, which only the curator sees."""
    if table is None:
        raise InputError(f"The table of the database must be named. Name it {arg.table:with}{_among(names, what)}.")
    try:
        return attempt(lambda: find(table), what)
    except InputError as error:
        if NO_SUCH_TABLE not in str(error):
            raise
    raise DataError(f"{what} must be readable, but it {NO_SUCH_TABLE}. Check {arg.table}{_among(names, what)}.")


def in_schemas(backend: Any) -> Callable[[str], Any]:
    """Find a table of DuckDB or Postgres by the name that it is listed by, or with its schema: ``census.people``.

    Names of schemas and tables may contain dots, so a name is compared with those that there are. What the server knows
    by another spelling, such as capital letters, is left to it.
    """

    def find(table: str) -> Any:
        places = backend.con.execute(PLACES).fetchall()
        with_schema = [place for place in places if f"{place[1]}.{place[2]}" == table]
        found = with_schema or [place for place in places if place[1] in ("main", "public") and place[2] == table]
        if len(found) > 1:
            raise DataError(f"The name of a table must be that of one, got {given(table)}, which several have.")
        if found:
            ((catalog, schema, name),) = found
            return backend.table(name, database=(catalog, schema))
        schema, _, name = table.rpartition(".")
        return backend.table(name, database=schema or None)

    return find


def _among(names: Callable[[], Sequence[tuple[str]]], what: str) -> str:
    """The tables that there are, to choose from; nothing if they cannot be listed."""
    try:
        listed = sorted(row[0] for row in attempt(names, what))
    except InputError:
        return ""
    if not listed:
        return "; it has none that this user may read"
    more = f" and {len(listed) - MAX_NAMES:,} others" if len(listed) > MAX_NAMES else ""
    return f", one of {', '.join(map(given, listed[:MAX_NAMES]))}{more}"


# Databases opened for reading only: SQLite, DuckDB and Postgres, through ibis's own drivers.

SERVER = "The database"  # what it is called in a message
READ_ONLY = "-c default_transaction_read_only=on -c client_min_messages=error"


def open_address(address: str, table: str | None) -> OpenRecords:
    """The records of a table in the database at an address."""
    check_address(address)
    if scheme_of(address) in POSTGRES:
        backend = _connected(postgres_address(address))

        def names() -> Any:
            backend.con.rollback()  # what failed before
            return backend.con.execute(IN_SCHEMAS).fetchall()

        return opened(backend, lambda: find_table(in_schemas(backend), table, names, SERVER), "postgres", SERVER)
    return open_sqlite(Path(sqlite_path(address)), table)


def check_address(address: str) -> None:
    """Refuse an address that cannot be opened, or that holds a password; no server is asked."""
    if scheme_of(address) in POSTGRES:
        postgres_address(address)
    elif scheme_of(address) == "sqlite":
        path = Path(sqlite_path(address))
        if find_files(path).format != "sqlite":
            raise DataError(f"File {the.file(path.name)} must be a SQLite database, but is not.")
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
        # A table or view, with the types of columns that matter: its values are judged one by one
        import ibis
        import ibis.expr.operations as ops

        declared = connection.execute("SELECT name, type FROM pragma_table_xinfo(?)", [wanted]).fetchall()
        if not declared:
            return backend.table(wanted)  # which says that there is none
        types = {name: "boolean" if "BOOL" in kind.upper() else "string" for name, kind in declared}
        namespace = ops.Namespace(database="main")
        return ops.DatabaseTable(name=wanted, schema=ibis.schema(types), source=backend, namespace=namespace).to_expr()

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
