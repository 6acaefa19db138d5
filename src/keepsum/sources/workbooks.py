"""Sheets of Excel workbooks (.xlsx), read by calamine.

A workbook is a zip archive of XML. Calamine is given the members that were checked (``archives.py``), not the archive.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Any
from xml.etree import ElementTree

from keepsum._extras import missing
from keepsum._text import MAX_NAMES, given
from keepsum.errors import DataError, InputError
from keepsum.sources.archives import WORKBOOK, members_of, stored, unreadable
from keepsum.sources.csv_files import check_header
from keepsum.sources.number_formats import UNKNOWN, NumberFormat, formats_by_place
from keepsum.tables.coded import Coded
from keepsum.tables.findings import Sheets, refuse
from keepsum.tables.origins import Text
from keepsum.tables.source import Source


def workbook_source(data: bytes, name: str, sheet: str | None) -> tuple[Source, Text]:
    """The columns of a sheet, and the form in which they are released: plain CSV.

    Whole numbers and dates are labels as text, as in a CSV file. Blank rows are left out.
    """
    members = members_of(data, name)
    calamine = _calamine(name)
    archive = _attempt(lambda: calamine.CalamineWorkbook.from_filelike(io.BytesIO(stored(members))))
    if archive is None:
        raise unreadable(name)
    chosen = _choose([entry.name for entry in archive.sheets_metadata if "WorkSheet" in str(entry.typ)], sheet, name)
    opened = _attempt(lambda: archive.get_sheet_by_name(chosen))
    rows = _attempt(lambda: opened.to_python(skip_empty_area=False))
    if rows is None:
        raise unreadable(name)
    if merged := opened.merged_cell_ranges:
        raise DataError(
            f"Sheet {given(chosen)} of {name!r} must not have merged cells, but row {merged[0][0][0] + 1} has some. "
            f"Unmerge them, and repeat their label in every row."
        )
    part = _part(members, chosen)
    sheet_of = Sheet(
        chosen,
        name,
        rows,
        lambda place: part is not None and _is_formula(members[part], place),
        formats_by_place(members, part),
    )
    source = sheet_of.source()
    return source, Text(columns=source.names)


@dataclass(frozen=True)
class Sheet:
    """The values of a sheet, row by row from its first; empty cells are empty text."""

    name: str
    file: str
    rows: Sequence[Sequence[Any]]
    is_formula: Callable[[str], bool]  # whether a place such as C3 has a formula
    formats: Mapping[tuple[int, int], NumberFormat]  # of cells that show more than digits, by row and column

    def source(self) -> Source:
        """The columns that the first row names."""
        names = self._header()
        position = {name: k for k, name in enumerate(names)}
        numbers = [k for k, row in enumerate(self.rows) if k and row.count("") < len(row)]

        return Source(
            names=names,
            labels=cache(lambda name: Coded.of(self._labels(numbers, position[name])).translated(_label)),
            counts=lambda name: self._counts(numbers, position[name]),
            where=lambda row: f"row {numbers[row] + 1} of sheet {given(self.name)}",
            height=len(numbers),
        )

    def _header(self) -> tuple[str, ...]:
        width = len(self.rows[0]) if self.rows else 0
        while width and all(row[width - 1] == "" for row in self.rows):
            width -= 1
        if not width or all(value == "" for value in self.rows[0]):
            raise DataError(
                f"Sheet {given(self.name)} of {self.file!r} must start with a header, but its first row is empty."
            )
        header = [_name(self._shown(value, 0, column)) for column, value in enumerate(self.rows[0][:width])]
        if "" in header:
            raise DataError(
                f"Column {_letters(header.index(''))} of sheet {given(self.name)} must have a name in the first row. "
                f"Remove titles above the header, and columns that do not belong to the table."
            )
        check_header(header, self.file)
        return tuple(header)

    def _labels(self, numbers: Sequence[int], column: int) -> list[Any]:
        """The values of a column of labels, numbers with leading zeros as they are shown."""
        values = self._values(numbers, column)
        if not self._has_formats(column):
            return values
        return [self._shown(value, row, column) for value, row in zip(values, numbers, strict=True)]

    def _shown(self, value: Any, row: int, column: int) -> Any:
        """A number with the leading zeros that its format shows; anything else as it is."""
        shown = self.formats.get((row, column))
        digits = None if shown is None else shown.digits
        label = _label(value)
        if digits is None or isinstance(value, str) or not isinstance(label, str) or not label.isdecimal():
            return value
        if digits == UNKNOWN:
            raise DataError(
                f"Cell {_letters(column)}{row + 1} of sheet {given(self.name)} must have a label, but it has a number "
                f"in a format that shows more than its digits. Format the column as text, and write the labels out."
            )
        return label.zfill(digits)

    def _counts(self, numbers: Sequence[int], column: int) -> list[Any]:
        """The values of a column of counts, which must be the numbers that people see."""
        values = self._values(numbers, column)
        for value, row in zip(values, numbers, strict=True) if self._has_formats(column) else ():
            shown = self.formats.get((row, column))
            if shown is not None and shown.other_number and isinstance(value, (int, float)):
                raise DataError(
                    f"Cell {_letters(column)}{row + 1} of sheet {given(self.name)} must show the count that it has, "
                    f"but its format shows another number (percent, thousands, or digits as text). Format the column "
                    f"as numbers, and check them."
                )
        return values

    def _has_formats(self, column: int) -> bool:
        return any(place == column for _, place in self.formats)

    def _values(self, numbers: Sequence[int], column: int) -> list[Any]:
        """The values of a column in some rows, None where there is none."""
        values = [self.rows[k][column] if self.rows[k][column] != "" else None for k in numbers]
        place = f"{_letters(column)}{numbers[values.index(None)] + 1}" if None in values else None
        if place is not None and self.is_formula(place):
            raise DataError(
                f"Cell {place} of sheet {given(self.name)} must have a value, but it has a formula without a stored "
                f"result. Open the workbook in a spreadsheet program, and save it."
            )
        return values


def _label(value: Any) -> Any:
    """A label as the sheet would have it in a CSV file; each by itself, because other rows may depend on the counts.

    >>> [_label(value) for value in ("01", 1.0, 1.5, date(2026, 11, 17), datetime(2026, 11, 17, 8, 30), True)]
    ['01', '1', 1.5, '2026-11-17', '2026-11-17 08:30:00', True]
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else value


def _name(value: Any) -> str:
    """The name of a column; years and the like may be numbers."""
    return str(_label(value))


def _letters(column: int) -> str:
    """The name of a column in a spreadsheet.

    >>> _letters(0), _letters(25), _letters(26), _letters(701), _letters(702)
    ('A', 'Z', 'AA', 'ZZ', 'AAA')
    """
    letters = ""
    column += 1
    while column:
        column, place = divmod(column - 1, 26)
        letters = chr(ord("A") + place) + letters
    return letters


def _choose(names: Sequence[str], sheet: str | None, name: str) -> str:
    """The sheet that is asked for, or the only one."""
    choices = ", ".join(map(given, names)) if len(names) <= MAX_NAMES else f"{len(names):,} sheets"
    if sheet is not None and sheet not in names:
        raise InputError(f"The sheet of {name!r} must be one of {choices or 'none'}, got {given(sheet)}.")
    if sheet is None and len(names) != 1:
        refuse(Sheets(name, tuple(names)))
    return names[0] if sheet is None else sheet


# -- reading it -------------------------------------------------------------------------------------


def _part(members: Mapping[str, bytes], sheet: str) -> str | None:
    """The member that holds a sheet; None if that cannot be told."""
    try:
        book = ElementTree.fromstring(members[WORKBOOK])  # noqa: S314 - without entities, as was checked
        links = ElementTree.fromstring(members["xl/_rels/workbook.xml.rels"])  # noqa: S314
    except (ElementTree.ParseError, KeyError, ValueError):
        return None
    targets = {link.get("Id"): str(link.get("Target")).removeprefix("/xl/") for link in links}
    for entry in book.iter():
        if entry.tag.endswith("}sheet") and entry.get("name") == sheet:
            wanted = next((value for key, value in entry.attrib.items() if key.endswith("}id")), None)
            part = f"xl/{targets.get(wanted)}"
            return part if part in members else None
    return None


def _is_formula(member: bytes, place: str) -> bool:
    pattern = rb"""\sr=["']%s["'][^>]*(?<!/)>\s*<(?:\w+:)?f[\s/>]""" % place.encode()
    return re.search(pattern, member) is not None


def _attempt(step: Callable[[], Any]) -> Any:
    """The result of a step, or None if it fails: a forged file may cause any error, also a panic of calamine."""
    try:
        return step()
    except BaseException as problem:
        if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
            raise
    return None


def _calamine(name: str) -> Any:
    try:
        import python_calamine
    except ImportError:
        instead = "Save the sheet as CSV"
        raise InputError(missing(f"Reading {name!r}", "excel", "python-calamine", instead=instead)) from None
    return python_calamine
