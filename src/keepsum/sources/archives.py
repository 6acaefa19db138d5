"""The XML of a workbook, checked before anything reads it: a small file may unpack or expand to very much.

Calamine makes an array of all cells up to the last one, and a copy of a text for each cell that has it; if memory runs
out, the process is aborted. So sizes are worked out from the XML, whose tags must be as programs write them.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping

from keepsum._memory import check_room
from keepsum._progress import portion, reporter
from keepsum.errors import DataError
from keepsum.sources.encodings import OLE2

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
            f"File {name!r} must be an .xlsx workbook without a password, but it is password-protected or an old .xls. "
            f"{SAVE_AS}."
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
        raise DataError(f"File {name!r} must be a table, but it is {kind}. {remedy}.")
    entries = [entry for entry in archive.infolist() if entry.filename.endswith((".xml", ".rels"))]
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > max(FEW_BYTES, MOST_TIMES * len(data)):
        raise DataError(
            f"File {name!r} must be a workbook as programs write them, but it unpacks to more than {MOST_TIMES} times "
            f"its size. {SAVE_AS} again."
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
    return DataError(f"File {name!r} must be a complete .xlsx workbook, but it cannot be read as one. {SAVE_AS} again.")
