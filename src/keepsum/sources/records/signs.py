"""What keys say about values that belong to no cell, and what text must look like to be a number or a date."""

from __future__ import annotations

from typing import Any

from keepsum.sources.records.bins import LARGEST_EDGE

OUT_OF_RANGE, NOT_A_VALUE, MISSING = -1, -2, -3  # instead of the number of a bin
NOT_WHOLE, NO_LABEL = "\x01 not a whole number", "\x01 not a label"  # instead of a label, and never one themselves
UNIT_WHOLE, UNIT_TEXT, UNIT_MISSING, UNIT_UNUSABLE = 0, 1, 2, 3  # how a unit is identified
LARGEST_FLOAT = 1.7976931348623157e308

# Values in columns of text, such as those of a CSV file.
WHOLE_TEXT = r" *[+-]?[0-9]{1,15} *"
DECIMAL_TEXT = r" *[+-]?([0-9]{1,40}[.]?[0-9]{0,40}|[.][0-9]{1,40})([eE][+-]?[0-9]{1,2})? *"
_ANY_YEAR = (
    r"[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_LEAP_YEAR = r"([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?"
DATE_TEXT = rf"({_ANY_YEAR}|{_LEAP_YEAR})([ T]{_TIME})?"


def matches(text: Any, pattern: str, dialect: str) -> Any:
    """Whether all of a text is like a pattern. In SQLite, whose patterns are Python's, $ would allow a line end."""
    return text.re_search(rf"^({pattern})\Z" if dialect == "sqlite" else f"^({pattern})$")


def whole(number: Any) -> tuple[Any, Any]:
    """Whether a float is a whole number below 2^53, and a float that every database can convert: 0.5 if it is not."""
    import ibis

    bounded = ibis.cases((number.abs() < LARGEST_EDGE, number), else_=0.5)
    return bounded == bounded.floor(), bounded


def day_number(text: Any, usable: Any) -> tuple[Any, Any]:
    """Whether text is a date, and the date as a number such as 20200131, which no collation compares differently."""
    import ibis

    safe = ibis.cases((usable, text), else_="0001-01-01")  # so that no order of evaluation can make the cast fail
    number = safe.left(10).replace("-", "").cast("int64")
    return usable & (number >= 1_01_01), number  # there is no year 0
