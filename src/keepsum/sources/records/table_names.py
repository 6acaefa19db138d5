"""A table of a database by its name; if it is not there, the message lists those that are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keepsum._text import MAX_NAMES, given
from keepsum.errors import DataError, InputError
from keepsum.sources.records.failures import NO_SUCH_TABLE, attempt

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
        raise InputError(f"The table of the database must be named. Name it with table={_among(names, what)}.")
    try:
        return attempt(lambda: find(table), what)
    except DataError as error:
        if NO_SUCH_TABLE not in str(error):
            raise
    raise DataError(f"{what} must be readable, but it {NO_SUCH_TABLE}. Check table={_among(names, what)}.")


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
    except DataError:
        return ""
    if not listed:
        return "; it has none that this user may read"
    more = f" and {len(listed) - MAX_NAMES:,} others" if len(listed) > MAX_NAMES else ""
    return f", one of {', '.join(map(given, listed[:MAX_NAMES]))}{more}"
