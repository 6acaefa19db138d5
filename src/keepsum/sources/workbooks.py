"""Sheets of Excel workbooks (.xlsx), read by calamine once their XML is checked."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Any, NamedTuple
from xml.etree import ElementTree

from keepsum._extras import missing
from keepsum._memory import check_room
from keepsum._progress import portion, reporter
from keepsum._saying import the
from keepsum._text import MAX_NAMES, given
from keepsum.errors import DataError, InputError
from keepsum.sources.csv_files import OLE2, check_header
from keepsum.tables.findings import Sheets, refuse
from keepsum.tables.origins import TextFile
from keepsum.tables.source import Coded, Source

# The XML of a workbook, checked before anything reads it: a small file may unpack or expand to very much.
#
# Calamine makes an array of all cells up to the last one, and a copy of a text for each cell that has it; if memory
# runs out, the process is aborted. So sizes are worked out from the XML, whose tags must be as programs write them.

WORKBOOK = "xl/workbook.xml"
CHUNK = 2**22  # bytes of a sheet that are looked at together
BYTES_A_MEMBER_BYTE = 4  # of XML: the text, its copy, and the values in it
MOST_TIMES, FEW_BYTES = 100, 2**26  # that a workbook may unpack to: programs write XML that packs 10 to 20 times
BYTES_A_VALUE = 100  # in an array that includes the empty cells
# Tags of rows and cells as every program writes them, with their place, which may be left out, and their end; the end
# of a text that cells refer to; a cell that refers to one. No group is tried again, so that no tag takes long.
PREFIX = rb"(?:[^\s<>/=\"':]*+:)*+"
ATTRIBUTES = rb"""(?:\s++(?!r\s*=)[^\s<>/=\"']++\s*+=\s*+(?:"[^"]*+"|'[^']*+'))*+"""
PLACE = re.compile(rb'<(?:c|row) r="([A-Z]{0,3})([0-9]{1,7})"')
ANY_PLACE = re.compile(rb"r(?<=[\s\"']r)\s*+=")  # the letter first: it is looked for much faster than a class is
START = re.compile(rb"<" + PREFIX + rb"(?:c|row)(?=[\s/>])")
TAG = re.compile(
    rb"<" + PREFIX + rb"(c|row)(?=[\s/>])" + ATTRIBUTES
    + rb"""(?:\s++r\s*+=\s*+["']([A-Z]{0,3})([0-9]{1,7})["'])?+""" + ATTRIBUTES + rb"\s*+(/?>(?:</)?)"
)  # fmt: skip
END_OF_TEXT = re.compile(rb"</" + PREFIX + rb"si\s*>")
SHARED = re.compile(rb"""t(?<=["'\s]t)\s*+=\s*+["']s["']""")
FORBIDDEN = (b"<!DOCTYPE", b"<!ENTITY", b"\0")  # no program writes them, and a few bytes could expand to very many
LARGE = 10**7  # cells of a sheet, most of which may be empty
SAVE_AS = "Save the sheet as .xlsx or CSV"


def members_of(data: bytes, name: str) -> dict[str, bytes]:
    """The XML of a workbook, by the names of its members, once it is known to fit in memory."""
    if data.startswith(OLE2):
        raise DataError(
            f"File {the.file(name)} must be an .xlsx workbook without a password, but it is password-protected or an "
            f"old .xls. {SAVE_AS}."
        )
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except Exception:  # a forged archive may cause any error
        archive = None
    if archive is None:
        raise unreadable(name)
    if WORKBOOK not in archive.namelist():
        is_sheet = "content.xml" in archive.namelist() or "xl/workbook.bin" in archive.namelist()  # .ods, .xlsb
        kind, remedy = ("another kind of workbook", SAVE_AS) if is_sheet else ("a zip archive", "Unpack it first")
        raise DataError(f"File {the.file(name)} must be a table, but it is {kind}. {remedy}.")
    entries = [entry for entry in archive.infolist() if entry.filename.endswith((".xml", ".rels"))]
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > max(FEW_BYTES, MOST_TIMES * len(data)):
        raise DataError(
            f"File {the.file(name)} must be a workbook as programs write them, but it unpacks to more than "
            f"{MOST_TIMES} times its size. {SAVE_AS} again."
        )
    check_room(unpacked, f"File {name!r}, unpacked,", BYTES_A_MEMBER_BYTE)
    try:
        # Not more is read of a member than the size that was checked, whatever it would unpack to.
        members = {entry.filename: archive.read(entry) for entry in entries}
    except Exception:
        members = {}
    if not members or any(word in member for member in members.values() for word in FORBIDDEN):
        raise unreadable(name)
    with portion(0.0, 1.0):
        _check_values(members.values(), name)
    return members


def _check_values(members: Iterable[bytes], name: str) -> None:
    """Refuse sheets whose values would not fit in memory: one cell far away, or a long text in many cells."""
    longest, references = 0, 0
    for member in members:
        last = _last_place(member)
        if last is None or last[0] * last[1] > LARGE:
            last = _last_cell(member)
        if last is None:
            raise unreadable(name)
        rows, columns = last
        check_room(rows * columns, f"A sheet of {name!r} with {rows:,} rows and {columns:,} columns", BYTES_A_VALUE)
        text = 0  # where the last text ended
        for start, end in _pieces(member):
            for match in END_OF_TEXT.finditer(member, start, end):
                longest, text = max(longest, match.end() - text), match.end()
            references += sum(1 for _ in SHARED.finditer(member, start, end))
    check_room(longest * references, f"The texts in {name!r}, the longest of {longest:,} characters,", 1)


def _pieces(member: bytes) -> Iterator[tuple[int, int]]:
    """Where parts of a sheet start and end, such that no tag is split."""
    start, report = 0, reporter()
    while start < len(member):
        if report is not None:
            report(0.0)  # here ends work that was stopped
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
        columns = max([columns, *map(column_number, {letters for letters, _ in places})])
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
        columns = max([columns, *(column_number(letters) for letters in {letters for letters, _ in filled})])
        unplaced_rows += sum(1 for kind, _, row, _ in tags if kind == b"row" and not row)
        if any(kind == b"c" and not row for kind, _, row, _ in tags):
            for kind, _, row, _ in tags:
                unplaced = 0 if kind == b"row" else unplaced + (not row)
                most_unplaced = max(most_unplaced, unplaced)
    return rows + unplaced_rows, columns + most_unplaced


def column_number(letters: bytes) -> int:
    """The number of a column from 1, by its letters."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def stored(members: Mapping[str, bytes]) -> bytes:
    """The archive of these members, uncompressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def unreadable(name: str) -> DataError:
    """The error for a file that is no workbook, or a damaged or forged one."""
    return DataError(
        f"File {the.file(name)} must be a complete .xlsx workbook, but it cannot be read as one. {SAVE_AS} again."
    )


# Numbers of a sheet that are shown otherwise than by their digits.
#
# A postal code 01234 may be stored as 1234 in the format 00000, and as a label it is what people see. A format of
# zeros alone is followed; any other one that shows more than the digits (00000-0000, "FIPS "0, 0%) makes a label that
# is not guessed. A count is the stored number, unless its format shows another one: 12 as 12000 (0"000"), as 1200% or
# as 0 (0,).

STYLES = "xl/styles.xml"
UNKNOWN = 0  # instead of a number of digits
BUILT_IN = {"9": "0%", "10": "0.00%"}  # of the formats that no file spells out, those that matter here
_TAG = re.compile(rb"<(?:[\w.-]+:)?(row|c)(\s[^<>]*)?/?>")
_PLACE = re.compile(rb"""\sr\s*=\s*["']([A-Z]{0,3})([0-9]{1,7})["']""")
_STYLE = re.compile(rb"""\ss\s*=\s*["']([0-9]{1,6})["']""")
# Literal text in quotes or after a backslash, what shows nothing (colours, gaps), and the pattern of digits.
_TOKEN = re.compile(r'"([^"]*)"?|\\(.)|\[(?![<>=])[^\]]*\]|[_*].|(.)', re.DOTALL)
_SCALED = re.compile(r"%|[0#?],+(?![0#?,])")  # a comma after the last digit divides by a thousand


class NumberFormat(NamedTuple):
    """How a format shows whole numbers."""

    digits: int | None  # of a label at least; UNKNOWN if it shows more than digits, None if it adds none
    other_number: bool  # whether it shows another number than the stored one


def format_of(code: str) -> NumberFormat:
    r"""What a format shows.

    >>> [format_of(code).digits for code in ("00000", "[$-409]00000;@", "General", "#,##0", "0.00", "0.00E+00")]
    [5, 5, None, None, None, None]
    >>> [format_of(code).digits for code in ("00000-0000", '"Nr" 000', "[<=99999]00000;00000-0000", '"FIPS "0', "0%")]
    [0, 0, 0, 0, 0]
    >>> [format_of(code).other_number for code in ('0"000"', "0%", "0,", '0.0,,"M"', "#,##0", '0 "people"')]
    [True, True, True, True, False, False]
    """
    sections = [_parts(section) for section in _sections(code)]
    literal, pattern = sections[0]
    other_number = any(re.search("[0-9]", text) or _SCALED.search(rest) for text, rest in sections[:2])
    if re.fullmatch(r"00+", pattern) and not literal:
        return NumberFormat(len(pattern), other_number)
    several_zeros = pattern.partition(".")[0].count("0") > 1 and "E" not in pattern
    more = several_zeros or literal or _SCALED.search(pattern)
    return NumberFormat(UNKNOWN if more else None, other_number)


def _sections(code: str) -> list[str]:
    """The formats of positive and negative numbers, zero and text; a semicolon in quotes is none between them."""
    return re.findall(r'((?:"[^"]*"?|\\.|[^;"\\])*)(?:;|\Z)', code, re.DOTALL) or [""]


def _parts(section: str) -> tuple[str, str]:
    """The literal text of a section, but for blanks and brackets, and its pattern of digits."""
    tokens = _TOKEN.findall(section)
    literal = "".join(quoted + escaped for quoted, escaped, _ in tokens)
    return re.sub(r"[\s()]", "", literal), "".join(rest for _, _, rest in tokens).strip()


def formats_by_place(members: Mapping[str, bytes], sheet: str | None) -> dict[tuple[int, int], NumberFormat]:
    """For the cells of a sheet, by row and column from 0, whose format shows more than digits: what it shows.

    Where the parts of a workbook do not fit together, no format is followed.
    """
    styles = _formats_by_style(members.get(STYLES, b""))
    if sheet is None or not styles:
        return {}
    row = column = -1
    places: dict[tuple[int, int], NumberFormat] = {}
    for kind, attributes in _TAG.findall(members[sheet]):
        place = _PLACE.search(attributes)
        if kind == b"row":
            row, column = (row + 1 if place is None else int(place[2]) - 1), -1
            continue
        column = column + 1 if place is None else column_number(place[1]) - 1
        row = row if place is None else int(place[2]) - 1
        style = _STYLE.search(attributes)
        if style is not None and int(style[1]) in styles:
            places[row, column] = styles[int(style[1])]
    return places


def _formats_by_style(member: bytes) -> dict[int, NumberFormat]:
    """The styles of cells whose format shows more than digits, by their number."""
    try:
        root = ElementTree.fromstring(member)  # noqa: S314 - without entities, as was checked
    except (ElementTree.ParseError, ValueError):
        return {}
    spelled = {
        str(entry.get("numFmtId")): str(entry.get("formatCode")) for entry in root.iter() if _is(entry, "numFmt")
    }
    codes = BUILT_IN | spelled
    styles: dict[int, NumberFormat] = {}
    for group in root.iter():
        for number, entry in enumerate(group if _is(group, "cellXfs") else ()):
            shown = format_of(codes.get(str(entry.get("numFmtId")), ""))
            if shown != NumberFormat(None, other_number=False):
                styles[number] = shown
    return styles


def _is(entry: ElementTree.Element, name: str) -> bool:
    return entry.tag.rpartition("}")[2] == name


# A workbook is a zip archive of XML. Calamine is given the members that were checked (``workbooks.py``), not the
# archive.


def workbook_source(data: bytes, name: str, sheet: str | None) -> tuple[Source, TextFile]:
    """The columns of a sheet, and the form in which they are released: plain CSV.

    Whole numbers and dates are labels as text, as in a CSV file. Blank rows are left out.
    """
    members = members_of(data, name)
    try:
        import python_calamine
    except ImportError:
        instead = "Save the sheet as CSV"
        raise InputError(missing(f"Reading {name!r}", "excel", "python-calamine", instead=instead)) from None
    calamine = python_calamine
    archive = _attempt(lambda: calamine.CalamineWorkbook.from_filelike(io.BytesIO(stored(members))))
    if archive is None:
        raise unreadable(name)
    # The sheet that is asked for, or the only one
    names = [entry.name for entry in archive.sheets_metadata if "WorkSheet" in str(entry.typ)]
    choices = ", ".join(map(given, names)) if len(names) <= MAX_NAMES else f"{len(names):,} sheets"
    if sheet is not None and sheet not in names:
        raise InputError(f"The sheet of {name!r} must be one of {choices or 'none'}, got {given(sheet)}.")
    if sheet is None and len(names) != 1:
        refuse(Sheets(name, tuple(names)))
    chosen = names[0] if sheet is None else sheet
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
    return source, TextFile(columns=source.names)


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
