"""SQLite files, read without writing anything beside them.

A database with a write-ahead log needs an index of it (``-shm``), which SQLite creates even to read. If there is no
log, everything is in the database itself, so it is opened as a file that nobody changes, and whether that was so is
checked afterwards. If a program has it open, log and index exist and are shared with it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from keepsum.errors import DataError
from keepsum.sources.records.failures import attempt


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


def sqlite_table(backend: Any, connection: Any, table: str) -> Any:
    """A table or view, with the types of columns that matter: its values are judged one by one."""
    import ibis
    import ibis.expr.operations as ops

    declared = connection.execute("SELECT name, type FROM pragma_table_xinfo(?)", [table]).fetchall()
    if not declared:
        return backend.table(table)  # which says that there is none
    types = {name: "boolean" if "BOOL" in kind.upper() else "string" for name, kind in declared}
    namespace = ops.Namespace(database="main")
    return ops.DatabaseTable(name=table, schema=ibis.schema(types), source=backend, namespace=namespace).to_expr()


def check_text_order(backend: Any, name: str) -> None:
    """Refuse a database that sorts text by other bytes than UTF-8: it would count other records of a unit."""
    (encoding,) = backend.con.execute("PRAGMA encoding").fetchone()
    if encoding != "UTF-8":
        raise DataError(
            f"{name} must store text in UTF-8 to bound the records of a unit, because the first ones in the order of "
            f"its bytes are counted, but stores it in {encoding}. Copy it to a database with PRAGMA encoding = 'UTF-8'."
        )


def _has_log(path: Path) -> bool:
    """Whether a database has a write-ahead log, by its header."""
    with path.open("rb") as file:
        return file.read(20)[18:20] == b"\x02\x02"


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        now = path.stat()
    except OSError:
        return None
    return now.st_size, now.st_mtime_ns, now.st_ino
