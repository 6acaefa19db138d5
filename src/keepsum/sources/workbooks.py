"""Sheets of Excel workbooks (.xlsx), read by calamine.

A workbook is a zip archive of XML. Small ones can unpack to very much, so sizes are checked before anything is
unpacked, and calamine is given the members that were checked, not the archive.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Any
from xml.etree import ElementTree

from keepsum._memory import check_room
from keepsum._text import MAX_NAMES, given
from keepsum.errors import DataError, InputError
from keepsum.sources.csv_files import check_header
from keepsum.sources.encodings import OLE2
from keepsum.tables.coded import Coded
from keepsum.tables.origins import Text
from keepsum.tables.source import Source

WORKBOOK = "xl/workbook.xml"
CHUNK = 2**22  # bytes of a sheet that are looked at together
BYTES_A_MEMBER_BYTE = 4  # of XML: the text, its copy, and the values in it
BYTES_A_VALUE = 100  # in an array that includes the empty cells
# Tags of rows and cells as every program writes them, with their place, which may be left out, and their end; the end
# of a text that cells refer to; a cell that refers to one. No group is tried again, so that no tag takes long.
PREFIX = rb"(?:[^\s<>/=\"':]*+:)*+"
ATTRIBUTES = rb"""(?:\s++(?!r\s*=)[^\s<>/=\"']++\s*+=\s*+(?:"[^"]*+"|'[^']*+'))*+"""
PLACE = re.compile(rb'<(?:c|row) r="([A-Z]{0,3})([0-9]{1,7})"')
ANY_PLACE = re.compile(rb"[\s\"']r\s*=")
START = re.compile(rb"<" + PREFIX + rb"(?:c|row)(?=[\s/>])")
TAG = re.compile(
    rb"<" + PREFIX + rb"(c|row)(?=[\s/>])" + ATTRIBUTES
    + rb"""(?:\s++r\s*+=\s*+["']([A-Z]{0,3})([0-9]{1,7})["'])?+""" + ATTRIBUTES + rb"\s*+(/?>(?:</)?)"
)  # fmt: skip
END_OF_TEXT = re.compile(rb"</" + PREFIX + rb"si\s*>")
SHARED = re.compile(rb"""\st\s*=\s*["']s["']""")
FORBIDDEN = (b"<!DOCTYPE", b"<!ENTITY", b"\0")  # no program writes them, and a few bytes could expand to very many
LARGE = 10**7  # cells of a sheet, most of which may be empty
SAVE_AS = "Save the sheet as .xlsx or CSV"


def workbook_source(data: bytes, name: str, sheet: str | None) -> tuple[Source, Text]:
    """The columns of a sheet, and the form in which they are released: plain CSV.

    Whole numbers and dates are labels as text, as in a CSV file. Blank rows are left out.
    """
    members = _members(data, name)
    calamine = _calamine(name)
    archive = _attempt(lambda: calamine.CalamineWorkbook.from_filelike(io.BytesIO(_stored(members))))
    if archive is None:
        raise _unreadable(name)
    chosen = _choose([entry.name for entry in archive.sheets_metadata if "WorkSheet" in str(entry.typ)], sheet, name)
    opened = _attempt(lambda: archive.get_sheet_by_name(chosen))
    rows = _attempt(lambda: opened.to_python(skip_empty_area=False))
    if rows is None:
        raise _unreadable(name)
    if merged := opened.merged_cell_ranges:
        raise DataError(
            f"Sheet {given(chosen)} of {name!r} must not have merged cells, but row {merged[0][0][0] + 1} has some. "
            f"Unmerge them, and repeat their label in every row."
        )
    part = _part(members, chosen)
    sheet_of = Sheet(chosen, name, rows, lambda place: part is not None and _is_formula(members[part], place))
    source = sheet_of.source()
    return source, Text(columns=source.names)


@dataclass(frozen=True)
class Sheet:
    """The values of a sheet, row by row from its first; empty cells are empty text."""

    name: str
    file: str
    rows: Sequence[Sequence[Any]]
    is_formula: Callable[[str], bool]  # whether a place such as C3 has a formula

    def source(self) -> Source:
        """The columns that the first row names."""
        names = self._header()
        position = {name: k for k, name in enumerate(names)}
        numbers = [k for k, row in enumerate(self.rows) if k and row.count("") < len(row)]

        return Source(
            names=names,
            labels=cache(lambda name: Coded.of(self._values(numbers, position[name])).translated(_label)),
            counts=lambda name: self._values(numbers, position[name]),
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
        header = [_name(value) for value in self.rows[0][:width]]
        if "" in header:
            raise DataError(
                f"Column {_letters(header.index(''))} of sheet {given(self.name)} must have a name in the first row. "
                f"Remove titles above the header, and columns that do not belong to the table."
            )
        check_header(header, self.file)
        return tuple(header)

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
        raise InputError(f"File {name!r} must have one sheet, or the sheet must be named with sheet=, got {choices}.")
    return names[0] if sheet is None else sheet


# -- the archive ------------------------------------------------------------------------------------


def _members(data: bytes, name: str) -> dict[str, bytes]:
    """The XML of a workbook, by the names of its members, once it is known to fit in memory."""
    if data.startswith(OLE2):
        raise DataError(
            f"File {name!r} must be an .xlsx workbook without a password, but it is password-protected or an old .xls. "
            f"{SAVE_AS}."
        )
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        archive = None
    if archive is None:
        raise _unreadable(name)
    if WORKBOOK not in archive.namelist():
        is_sheet = "content.xml" in archive.namelist() or "xl/workbook.bin" in archive.namelist()  # .ods, .xlsb
        kind, remedy = ("another kind of workbook", SAVE_AS) if is_sheet else ("a zip archive", "Unpack it first")
        raise DataError(f"File {name!r} must be a table, but it is {kind}. {remedy}.")
    entries = [entry for entry in archive.infolist() if entry.filename.endswith((".xml", ".rels"))]
    check_room(sum(entry.file_size for entry in entries), f"File {name!r}, unpacked,", BYTES_A_MEMBER_BYTE)
    try:
        # Not more is read of a member than the size that was checked, whatever it would unpack to.
        members = {entry.filename: archive.read(entry) for entry in entries}
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zlib.error):
        members = {}
    if not members or any(word in member for member in members.values() for word in FORBIDDEN):
        raise _unreadable(name)
    _check_values(members.values(), name)
    return members


def _check_values(members: Any, name: str) -> None:
    """Refuse sheets whose values would not fit in memory: one cell far away, or a long text in many cells.

    Calamine makes an array of all cells up to the last, and a copy of a text for each cell that has it.
    """
    longest, references = 0, 0
    for member in members:
        last = _last_place(member)
        if last is None or last[0] * last[1] > LARGE:
            last = _last_cell(member)
        if last is None:
            raise _unreadable(name)
        rows, columns = last
        check_room(rows * columns, f"A sheet of {name!r} with {rows:,} rows and {columns:,} columns", BYTES_A_VALUE)
        ends = [match.end() for match in END_OF_TEXT.finditer(member)]
        longest = max([longest, *(end - start for start, end in zip([0, *ends], ends, strict=False))])
        references += sum(1 for _ in SHARED.finditer(member))
    check_room(longest * references, f"The texts in {name!r}, the longest of {longest:,} characters,", 1)


def _pieces(member: bytes) -> Iterator[tuple[int, int]]:
    """Where parts of a sheet start and end, such that no tag is split."""
    start = 0
    while start < len(member):
        end = member.find(b">", start + CHUNK) + 1 or len(member)
        yield start, end
        start = end


def _last_place(member: bytes) -> tuple[int, int] | None:
    """The last row and column that a sheet names, also for an empty cell; None if a tag has no place, or two."""
    rows = columns = 0
    for start, end in _pieces(member):
        places = PLACE.findall(member, start, end)
        if not len(places) == len(START.findall(member, start, end)) == len(ANY_PLACE.findall(member, start, end)):
            return None
        rows = max([rows, *map(int, {row for _, row in places})])
        columns = max([columns, *map(_number, {letters for letters, _ in places})])
    return rows, columns


def _last_cell(member: bytes) -> tuple[int, int] | None:
    """The last row and column in which a sheet has a value, at most; None if it has tags as no program writes them."""
    rows = columns = unplaced_rows = unplaced = most_unplaced = 0
    for start, end in _pieces(member):
        tags = TAG.findall(member, start, end)
        if len(tags) != len(START.findall(member, start, end)):
            return None
        filled = [(letters, row) for _, letters, row, tag_end in tags if tag_end == b">"]
        rows = max([rows, *(int(row) for row in {row for _, row in filled} if row)])
        columns = max([columns, *(_number(letters) for letters in {letters for letters, _ in filled})])
        unplaced_rows += sum(1 for kind, _, row, _ in tags if kind == b"row" and not row)
        if any(kind == b"c" and not row for kind, _, row, _ in tags):
            for kind, _, row, _ in tags:
                unplaced = 0 if kind == b"row" else unplaced + (not row)
                most_unplaced = max(most_unplaced, unplaced)
    return rows + unplaced_rows, columns + most_unplaced


def _number(letters: bytes) -> int:
    """The number of a column from 1, by its letters."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _stored(members: Mapping[str, bytes]) -> bytes:
    """The archive of these members, uncompressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


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


def _unreadable(name: str) -> DataError:
    return DataError(f"File {name!r} must be a complete .xlsx workbook, but it cannot be read as one. {SAVE_AS} again.")


def _calamine(name: str) -> Any:
    try:
        import python_calamine
    except ImportError:
        raise InputError(
            f"Reading {name!r} needs python-calamine, which is not installed. Install keepsum[excel], or save the "
            f"sheet as CSV."
        ) from None
    return python_calamine
