"""Addresses of databases: what they may contain, and how they are shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from keepsum.errors import InputError

POSTGRES = ("postgres", "postgresql")
OPTIONS = ("host", "port", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
FORMS = "sqlite:///people.db or postgres://user@host/database"


@dataclass(frozen=True)
class PostgresAddress:
    """Where a Postgres server is; passwords are not part of it."""

    host: str | None
    port: int
    user: str | None
    database: str | None
    options: dict[str, str]


def is_address(source: Any) -> bool:
    """Whether a source is the address of a database rather than the path of a file."""
    return isinstance(source, str) and bool(_SCHEME.match(source))


def scheme_of(address: str) -> str:
    """The kind of a database, in small letters."""
    return address.split("://", 1)[0].lower()


def sqlite_path(address: str) -> str:
    """The file of sqlite:///people.db, or of sqlite:////var/people.db for an absolute path."""
    path = unquote(address.split("://", 1)[1])
    if not path.startswith("/") or path == "/":
        raise InputError("The address of a SQLite database must be sqlite:/// and the path of a file.")
    return path[1:]


def postgres_address(address: str) -> PostgresAddress:
    """The parts of postgres://user@host:5432/database?host=/run/postgresql."""
    parts, port = _split(address)
    given = dict(parse_qsl(parts.query, keep_blank_values=True)) if parts is not None else {}
    if parts is None or not set(given) <= {*OPTIONS, "password", "passfile"}:
        raise InputError(
            "The address of a database must be such as postgres://user@host/database or postgres://user@/database?"
            "host=/run/postgresql."
        )
    if parts.password is not None or "password" in given:
        raise InputError(
            "The address of a database must not contain a password. Set PGPASSWORD, or use a password file (.pgpass)."
        )
    host = given.pop("host", None) or parts.hostname
    number = given.pop("port", "")
    return PostgresAddress(
        host=host,
        port=int(number) if number.isdecimal() else port or 5432,
        user=None if parts.username is None else unquote(parts.username),
        database=unquote(parts.path.lstrip("/")) or None,
        options=given,
    )


def _split(address: str) -> tuple[SplitResult | None, int | None]:
    try:
        parts = urlsplit(address)
        return parts, parts.port
    except ValueError:  # a port that is no number, or half a bracket
        return None, None
