"""Where records are: files, in which format, and addresses of databases and how they are shown."""

from __future__ import annotations

import glob
import os
import re
import stat
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from keepsum._arguments import check_path
from keepsum._saying import the
from keepsum.errors import DataError, InputError, UnreachableError

# Addresses of databases: what they may contain, and how they are shown.

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
    elif scheme_of(source) != ("sqlite") and may_hold_password(source) and not (_exists(source) or glob.glob(source)):  # noqa: PTH207
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


# Files of records: which ones are meant, and in which format they are.
#
# Files are recognised by their first bytes. Nothing that a user may have meant is left out in silence, and no file is
# counted twice.

Format: TypeAlias = Literal["csv", "parquet", "arrow", "duckdb", "sqlite"]
SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".csv.zst", ".parquet", ".pq", ".arrow", ".feather", ".ipc")


@dataclass(frozen=True)
class RecordFiles:
    """Files of one format, in the order of their names."""

    paths: tuple[Path, ...]
    format: Format

    @property
    def name(self) -> str:
        """What they are called in a message."""
        return f"File {self.paths[0].name!r}" if len(self.paths) == 1 else f"Files such as {self.paths[0].name!r}"


def find_files(source: Any) -> RecordFiles:
    """The files that a path, a pattern, a folder or a list of these means."""
    given = [source] if isinstance(source, (str, PathLike)) else list(source)
    if not given:
        raise InputError("The records must be in at least one file, got an empty list.")
    paths = [path for one in given for path in _files_at(one)]
    if len(given) > 1 and not all(path.exists() for path in paths):  # names in a list may be data by mistake
        raise DataError("Every file of records must exist, but one does not. Check the list.")
    _check_files(paths)
    formats = {_format(path) for path in paths}
    if len(formats) > 1:
        raise InputError("Files of records must be of one format, got several. Count them one after the other.")
    (form,) = formats
    if form in ("duckdb", "sqlite") and len(paths) > 1:
        raise InputError("A database must be a single file, got several. Name one of them.")
    return RecordFiles(tuple(paths), form)


def _files_at(path: Any) -> list[Path]:
    file = check_path(path, "The source of records")
    if file.is_dir():
        return _files_in(file)
    if file.exists() or not glob.has_magic(str(file)):
        return [file]
    matching = sorted(Path(name) for name in glob.glob(str(file), recursive=True))  # noqa: PTH207
    if file.name == "**":  # then files in folders match as well
        matching = [path for path in matching if not path.is_dir()]
    if any(path.is_dir() for path in matching):
        raise DataError(f"Pattern {shown_path(file)} must match files alone, but matches a folder. Name its files too.")
    if not matching:
        raise DataError(f"Pattern {shown_path(file)} must match at least one file, but matches none.")
    return matching


def _files_in(folder: Path) -> list[Path]:
    """All files of records in a folder and the folders in it; others must be hidden, and no data."""
    inside = [child for child in sorted(folder.rglob("*")) if child.is_symlink() or not child.is_dir()]
    inside = [child for child in inside if _has_suffix(child) or not _is_hidden(child.relative_to(folder))]
    for child in inside:
        if _is_hidden(child.relative_to(folder)) or not _has_suffix(child) or not child.is_file():
            raise DataError(
                f"Folder {the.file(folder.name)} must contain nothing but CSV, Parquet or Arrow files, but contains "
                f"{child.name!r}. Move it away, or pass a pattern such as '*.parquet'."
            )
    if not inside:
        raise DataError(f"Folder {the.file(folder.name)} must contain CSV, Parquet or Arrow files, but contains none.")
    return inside


def _is_hidden(inner: Path) -> bool:
    return any(part.startswith((".", "_")) for part in inner.parts)


def _has_suffix(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES)


def _check_files(paths: list[Path]) -> None:
    """Refuse what is no plain file, which may block or end, and a file that is given twice under any name."""
    seen: set[tuple[int, int]] = set()
    for path in paths:
        found = _stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise DataError(
                f"File {the.file(path.name)} must be a plain file, but is a pipe, a device or the like. Save the "
                "records as a file first."
            )
        if (found.st_dev, found.st_ino) in seen:
            raise InputError(f"Every file of records must be given once, got {path.name!r} twice.")
        seen.add((found.st_dev, found.st_ino))


def _stat(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
    raise UnreachableError(f"File {shown_path(path)} must be readable, but: {reason}.")


def shown_path(path: Path) -> str:
    """A path that a message repeats, unless it may be an address with a password by mistake."""
    return "of records" if may_hold_password(str(path)) else repr(str(path))


def _format(path: Path) -> Format:
    start = start_of(path)
    if start[:4] == b"PAR1":
        return "parquet"
    if start[:6] == b"ARROW1":
        return "arrow"
    if start[:16] == b"SQLite format 3\0":
        return "sqlite"
    if start[8:12] == b"DUCK" and start[14:16] == b"\0\0":  # not a CSV file with a column of that name
        return "duckdb"
    if path.suffix.lower() in (".db", ".sqlite", ".sqlite3", ".duckdb", ".parquet", ".pq"):
        raise DataError(f"File {the.file(path.name)} must be a database or Parquet file as its name says, but is not.")
    if start[:4] == b"PK\3\4":
        raise DataError(
            f"File {the.file(path.name)} must be CSV, Parquet or a database, but is a zip file or a spreadsheet."
        )
    return "csv"


def start_of(path: Path) -> bytes:
    """The first bytes of a file, which tell its format."""
    try:
        with path.open("rb") as file:
            return file.read(16)
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
    raise UnreachableError(f"File {the.file(path.name)} must be readable, but: {reason}.")


def escaped(path: Path) -> str:
    """The path of one file for DuckDB, which would take some characters for a pattern."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in os.path.abspath(path))  # noqa: PTH100
