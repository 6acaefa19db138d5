"""The names of the columns of any source, without its rows where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keepsum._extras import check_installed
from keepsum.errors import KeepsumError
from keepsum.sources.csv_files import to_utf8
from keepsum.sources.reading import FileForm, open_columns, unpacked
from keepsum.sources.records.connecting import tables_at
from keepsum.sources.records.files import find_files, is_address, start_of
from keepsum.sources.records.opening import header_of, open_records
from keepsum.tables.findings import UndeclaredError
from keepsum.tables.source import Source

LARGE = 2**26  # bytes; of larger files only the header is read
DATABASES = (b"SQLite format 3\0", b"DUCK")


def is_database(source: str) -> bool:
    """Whether a source is the address of a database, or a file with one."""
    if is_address(source):
        return True
    return Path(source).is_file() and any(mark in start_of(Path(source)) for mark in DATABASES)


def table_names(source: str) -> list[str]:
    """The tables of a database."""
    check_installed("Counting records", "sql")
    return tables_at(source)


@dataclass(frozen=True)
class Header:
    """The names of the columns, and the columns themselves if they may hold counts and were read."""

    names: list[str]
    columns: Source | None = None

    def columns_where(self, holds: Callable[[list[Any]], bool]) -> list[str]:
        """The columns whose different values are of some kind; none if only the names were read."""
        return [] if self.columns is None else self.columns.columns_where(holds)


def header_in(source: str, table: str | None, form: FileForm) -> Header:
    """The columns of a file of counts or of records, of a folder or a pattern, or of a table of a database.

    A file that is no table is refused as ``keepsum release`` does.
    """
    if is_database(source):
        with open_records(source, table, []) as records:
            return Header(list(records.table.columns))
    path = Path(source)
    if form == FileForm() and (not path.is_file() or path.stat().st_size > LARGE):
        return Header(header_of(find_files(source)))
    try:
        columns = open_columns(source, form=form).source
        return Header(list(columns.names), columns)
    except UndeclaredError:
        raise
    except KeepsumError as error:
        problem = error
    return Header(_only_column(path, form, problem))


def _only_column(path: Path, form: FileForm, problem: KeepsumError) -> list[str]:
    """The one column of a text file, which may have records but no counts; any other file has a ``problem``."""
    if form != FileForm() or not path.is_file():
        raise problem
    to_utf8(unpacked(path.read_bytes(), path.name), path.name)
    names = header_of(find_files(path))
    if len(names) != 1 or not names[0].strip():
        raise problem
    return names
