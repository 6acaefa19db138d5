"""Files of records: which ones are meant, and in which format they are.

Files are recognised by their first bytes. Nothing that a user may have meant is left out in silence, and no file is
counted twice.
"""

from __future__ import annotations

import glob
import os
import stat
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

from keepsum._arguments import check_path
from keepsum.errors import DataError, InputError
from keepsum.sources.records.databases import may_hold_password

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
                f"Folder {folder.name!r} must contain nothing but CSV, Parquet or Arrow files, but contains "
                f"{child.name!r}. Move it away, or pass a pattern such as '*.parquet'."
            )
    if not inside:
        raise DataError(f"Folder {folder.name!r} must contain CSV, Parquet or Arrow files, but contains none.")
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
                f"File {path.name!r} must be a plain file, but is a pipe, a device or the like. Save the records as a "
                f"file first."
            )
        if (found.st_dev, found.st_ino) in seen:
            raise InputError(f"Every file of records must be given once, got {path.name!r} twice.")
        seen.add((found.st_dev, found.st_ino))


def _stat(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
    raise DataError(f"File {shown_path(path)} must be readable, but: {reason}.")


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
        raise DataError(f"File {path.name!r} must be a database or Parquet file as its name says, but is not.")
    if start[:4] == b"PK\3\4":
        raise DataError(f"File {path.name!r} must be CSV, Parquet or a database, but is a zip file or a spreadsheet.")
    return "csv"


def start_of(path: Path) -> bytes:
    """The first bytes of a file, which tell its format."""
    try:
        with path.open("rb") as file:
            return file.read(16)
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
    raise DataError(f"File {path.name!r} must be readable, but: {reason}.")


def escaped(path: Path) -> str:
    """The path of one file for DuckDB, which would take some characters for a pattern."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in os.path.abspath(path))  # noqa: PTH100
