"""Numbers of a sheet that are shown with leading zeros: a postal code 01234 may be stored as 1234 in the format 00000.

As a label it is what people see. A format of zeros alone is followed; any other one with several leading digits
(00000-0000) makes a label that is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from keepsum.sources.archives import column_number

STYLES = "xl/styles.xml"
UNKNOWN = 0  # instead of a number of digits
_TAG = re.compile(rb"<(?:[\w.-]+:)?(row|c)(\s[^<>]*)?/?>")
_PLACE = re.compile(rb"""\sr\s*=\s*["']([A-Z]{0,3})([0-9]{1,7})["']""")
_STYLE = re.compile(rb"""\ss\s*=\s*["']([0-9]{1,6})["']""")


def digits_of(code: str) -> int | None:
    r"""The number of digits that a format shows at least; UNKNOWN if it shows more than digits; None if it adds none.

    >>> [digits_of(code) for code in ("00000", "[$-409]00000;@", "General", "#,##0", "0.00", "00000-0000", '"Nr" 000')]
    [5, 5, None, None, None, 0, 0]
    >>> digits_of("[<=99999]00000;00000-0000")
    0
    """
    sections = code.split(";")
    first = re.sub(r"\[(?![<>=])[^\]]*\]|_.|\*.|\\(?=[ )(])", "", sections[0]).strip()
    if re.fullmatch(r"00+", first):
        return len(first)
    whole = first.partition(".")[0]
    return UNKNOWN if whole.count("0") > 1 and "E" not in first else None


def digits_by_place(members: Mapping[str, bytes], sheet: str | None) -> dict[tuple[int, int], int]:
    """For the cells of a sheet, by row and column from 0, whose format adds leading zeros: to how many digits.

    Where the parts of a workbook do not fit together, no format is followed.
    """
    styles = _digits_by_style(members.get(STYLES, b""))
    if sheet is None or not styles:
        return {}
    row = column = -1
    places: dict[tuple[int, int], int] = {}
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


def _digits_by_style(member: bytes) -> dict[int, int]:
    """The styles of cells whose format adds leading zeros, by their number."""
    try:
        root = ElementTree.fromstring(member)  # noqa: S314 - without entities, as was checked
    except (ElementTree.ParseError, ValueError):
        return {}
    codes = {entry.get("numFmtId"): str(entry.get("formatCode")) for entry in root.iter() if _is(entry, "numFmt")}
    styles: dict[int, int] = {}
    for group in root.iter():
        for number, entry in enumerate(group if _is(group, "cellXfs") else ()):
            digits = digits_of(codes.get(entry.get("numFmtId"), ""))
            if digits is not None:
                styles[number] = digits
    return styles


def _is(entry: ElementTree.Element, name: str) -> bool:
    return entry.tag.rpartition("}")[2] == name
