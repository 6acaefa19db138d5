"""Numbers of a sheet that are shown otherwise than by their digits.

A postal code 01234 may be stored as 1234 in the format 00000, and as a label it is what people see. A format of zeros
alone is followed; any other one that shows more than the digits (00000-0000, "FIPS "0, 0%) makes a label that is not
guessed. A count is the stored number, unless its format shows another one: 12 as 12000 (0"000"), as 1200% or as 0 (0,).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree import ElementTree

from keepsum.sources.archives import column_number

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
