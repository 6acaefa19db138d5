"""Tables from files. Every value is read as text, so that codes such as 01001 survive."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from keepsum.axes import quoted
from keepsum.counting import Source
from keepsum.domain import Domain
from keepsum.errors import DataError, InputError
from keepsum.table import Table

DELIMITERS = (",", ";", "\t", "|")


def read_table(
    path: str | PathLike[str],
    count: str,
    axes: str | Sequence[str] | None = None,
    *,
    within: Mapping[str, str] | None = None,
    domain: Domain | Mapping[str, Any] | None = None,
) -> Table:
    r"""Read a table of counts from a CSV file with a header and one row a cell.

    Parameters
    ----------
    path
        The file, in UTF-8. The delimiter is the one of ``, ; tab |`` with which the header has the count column.
    count
        The column of counts, in plain digits.
    axes
        The columns that are axes; by default all but the count.
    within
        Which axis is nested in which: ``{"county": "state"}``.
    domain
        A ``Domain``, or a mapping from axes to their categories, for those that are declared.

    Examples
    --------
    >>> import keepsum as ks, pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "counties.csv")
    >>> _ = file.write_text("state,county,n\nIL,Cook,12\nIL,Lake,7\nWI,Lake,3\n")
    >>> states = {"state": ["IL", "WI"], "county": {"IL": ["Cook", "Lake"], "WI": ["Lake"]}}
    >>> ks.read_table(file, count="n", within={"county": "state"}, domain=states)
    Table(state 2 > county 3: 3 cells, counts not shown)
    >>> folder.cleanup()
    """
    if not isinstance(path, (str, PathLike)):
        raise InputError(f"The file must be given by its path, got {type(path).__name__!r}.")
    header, rows, lines = _read_rows(Path(path), count)
    place = {name: k for k, name in enumerate(header)}
    source = Source(
        names=tuple(header),
        labels=lambda name: [row[place[name]] for row in rows],
        counts=lambda name: [row[place[name]] for row in rows],
        where=lambda row: f"line {lines[row]}",
    )
    return Table.from_source(source, axes, count, within, domain)


def _read_rows(path: Path, count: str) -> tuple[list[str], list[list[str]], list[int]]:
    """The header, the rows, and the line on which each row ends."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            if not first.strip():
                raise DataError(f"File {path.name!r} must start with a header, but its first line is empty.")
            file.seek(0)
            reader = csv.reader(file, delimiter=_delimiter(first, count), strict=True)
            header = next(reader)
            _check_header(header, path.name)
            rows: list[list[str]] = []
            lines: list[int] = []
            for row in reader:
                if not row:
                    continue  # a blank line
                if len(row) != len(header):
                    raise DataError(
                        f"Line {reader.line_num} of {path.name!r} must have {len(header)} values like the header, "
                        f"it has {len(row)}."
                    )
                rows.append(row)
                lines.append(reader.line_num)
            return header, rows, lines
    except OSError as error:
        raise DataError(f"File {str(path)!r} must be readable, but: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise DataError(f"File {path.name!r} must be UTF-8 text. Save it as UTF-8 and try again.") from None
    except csv.Error as error:
        raise DataError(f"File {path.name!r} must be well-formed CSV, but: {error}.") from None


def _delimiter(header: str, count: str) -> str:
    """The delimiter with which the header names the count column; a comma if none does."""
    for delimiter in DELIMITERS:
        if count in next(csv.reader([header], delimiter=delimiter)):
            return delimiter
    return ","


def _check_header(header: list[str], name: str) -> None:
    twice = sorted({column for column in header if header.count(column) > 1})
    if twice:
        raise DataError(f"Columns of {name!r} must have different names, got {quoted(twice)} twice.")
