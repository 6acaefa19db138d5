r"""What a message may show: text without control characters, and of what users gave nothing that could be a count.

Every text that comes from outside goes through :func:`printable` before it is put on a terminal; errors and warnings
do so by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from os import PathLike, fspath
from typing import Any

import numpy as np

LONGEST = 60  # characters of a text that a message repeats
MOST_NAMES = 20  # names that a message lists


def printable(text: str) -> str:
    r"""A text as one line that does what it says: control, format and separator characters are written as escapes.

    Python's own idea of what can be printed: none of C0, C1, DEL, bidirectional marks and overrides, zero-width
    characters, line and paragraph separators, unusual spaces and halves of characters.

    >>> printable("Cook\nok  signature"), printable("a\x1b[2J\u202eb"), printable("naïve café × 5")
    ('Cook\\nok  signature', 'a\\x1b[2J\\u202eb', 'naïve café × 5')
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def type_of(value: object) -> str:
    """What sort of value it is, and nothing of what it holds.

    >>> type_of([15, 1, 20])
    "a value of type 'list'"
    """
    return f"a value of type {type(value).__name__!r}"


def given(value: object) -> str:
    """An option that a user gave: a short text, a number or none of them as it is; anything else by its kind.

    >>> given("l3"), given(-1), given(None), given([15, 1, 20])
    ("'l3'", '-1', 'None', "a value of type 'list'")
    """
    if value is None or isinstance(value, (bool, np.bool_)):
        return str(value)
    if isinstance(value, (str, PathLike)):
        text = value if isinstance(value, str) else str(fspath(value))
        return repr(text) if len(text) <= LONGEST else f"{text[:LONGEST]!r}..."
    if isinstance(value, (int, float, Decimal, Fraction, np.integer, np.floating)):
        return _number(value)
    return type_of(value)


def _number(value: Any) -> str:
    """A number, unless it is so long that Python refuses to write it."""
    parts = (value.numerator, value.denominator) if isinstance(value, (int, Fraction)) else ()
    return str(value) if all(abs(part) < 10**LONGEST for part in parts) else "one of very many digits"


def shown_name(value: object) -> str:
    """A name that a user gave where a column of data might have been given by mistake: no number is repeated.

    >>> shown_name("county"), shown_name("Alpha;Low;15"), shown_name(15), shown_name([15, 1, 20])
    ("'county'", 'text with a number in it', "a value of type 'int'", "a value of type 'list'")
    """
    if isinstance(value, str):
        return "text with a number in it" if has_number(value) else given(value)
    return type_of(value)


def shown_names(values: Iterable[object]) -> str:
    """Several names, if there are few and none may be a row of data.

    >>> shown_names(["county", "education"]), shown_names(["Alpha", "15"]), shown_names([])
    ("'county', 'education'", 'others', 'none')
    """
    listed = list(values)
    if not listed:
        return "none"
    plain = all(isinstance(value, str) and value.strip() and not has_number(value) for value in listed)
    return ", ".join(map(given, listed)) if plain and len(listed) <= MOST_NAMES else "others"


def has_number(text: str) -> bool:
    """Whether a text may hold a count, so that no message repeats it: a word of digits.

    >>> has_number("Alpha;Low;15"), has_number("population_2010")
    (True, False)
    """
    return any(word.isdigit() for word in re.split(r"\W+", text))
