"""Addresses of databases: what they may contain, and how they are shown."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from keepsum._arguments import check_path
from keepsum.errors import InputError

POSTGRES = ("postgres", "postgresql")
OPTIONS = ("host", "port", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout")
_SCHEME = re.compile(r"\s*[a-zA-Z][a-zA-Z0-9+.-]+:")  # a single letter is a drive of Windows
_KEYWORDS = re.compile(r"\b(host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=", re.IGNORECASE)
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
    """Whether a source is the address of a database, in whatever form, rather than the path of a file.

    >>> [is_address(source) for source in ("postgres://me@host/db", " postgres:me", "host=here user=me", "people.csv")]
    [True, True, True, False]
    """
    return isinstance(source, str) and _looks_like_address(source) and not _exists(source)


def check_no_password(source: str) -> None:
    """Refuse an address that holds a password, or may: it is written down, and messages repeat it."""
    if scheme_of(source) in POSTGRES:
        postgres_address(source)
    elif scheme_of(source) != "sqlite" and may_hold_password(source) and not (_exists(source) or glob.glob(source)):  # noqa: PTH207
        raise InputError(f"The data must be a file that exists, or an address such as {FORMS} without a password.")


def _exists(source: str) -> bool:
    return os.path.exists(source)  # noqa: PTH110


def may_hold_password(text: str) -> bool:
    """Whether text that is no path after all may be an address, so that no message may repeat it."""
    plain = unquote(text).lower()
    return _looks_like_address(text) or "@" in plain or "password" in plain


def _looks_like_address(text: str) -> bool:
    plain = unquote(text)
    return "://" in plain or bool(_SCHEME.match(plain) or _KEYWORDS.search(plain))


def scheme_of(address: str) -> str:
    """The kind of a database, in small letters; none if there is no such prefix."""
    scheme, separator, _ = address.partition("://")
    return scheme.lower() if separator else ""


def sqlite_path(address: str) -> str:
    """The file of sqlite:///people.db, or of sqlite:////var/people.db for an absolute path."""
    path = unquote(address.split("://", 1)[1])
    if not path.startswith("/") or path == "/":
        raise InputError("The address of a SQLite database must be sqlite:/// and the path of a file.")
    check_path(path[1:], "The file of a SQLite database")
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
