"""What a message may show: no control characters, and nothing of the user's input that could be a count.

Text from outside passes through :func:`printable` before it reaches a terminal; errors and warnings do this
themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from os import PathLike, fspath
from typing import Any

MAX_QUOTED = 60  # characters of a text that a message repeats
MAX_NAMES = 20  # names that a message lists


def printable(text: str) -> str:
    r"""Text on one line that is safe to print: control, format and separator characters are escaped.

    "Printable" is as Python defines it, which excludes C0, C1, DEL, bidirectional marks and overrides, zero-width
    characters, line and paragraph separators, unusual spaces and lone surrogates.

    >>> printable("Cook\nok  signature"), printable("a\x1b[2J\u202eb"), printable("naïve café × 5")
    ('Cook\\nok  signature', 'a\\x1b[2J\\u202eb', 'naïve café × 5')
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def percent(level: float) -> str:
    """A level in percent with every digit that it has, so that nothing but 1 is shown as certain.

    >>> percent(0.95), percent(0.57), percent(1 - 1e-8), percent(1 - 1e-15)
    ('95%', '57%', '99.999999%', '99.9999999999999%')
    """
    return f"{(100 * Decimal(repr(float(level)))).normalize():f}%"


def type_of(value: object) -> str:
    """The type of a value, without its contents.

    >>> type_of([15, 1, 20])
    "a value of type 'list'"
    """
    return f"a value of type {type(value).__name__!r}"


def given(value: object) -> str:
    """An option as the user gave it if it is text (shortened), a number or None; anything else by its type.

    >>> given("l3"), given(-1), given(None), given([15, 1, 20])
    ("'l3'", '-1', 'None', "a value of type 'list'")
    """
    import numpy as np  # here, so that a command can show its help without it

    if value is None or isinstance(value, (bool, np.bool_)):
        return str(value)
    if isinstance(value, (str, PathLike)):
        text = value if isinstance(value, str) else str(fspath(value))
        return repr(text) if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]!r}..."
    if isinstance(value, (int, float, Decimal, Fraction, np.integer, np.floating)):
        return _number(value)
    return type_of(value)


def _number(value: Any) -> str:
    """A number, unless it has more digits than Python converts to text."""
    parts = (value.numerator, value.denominator) if isinstance(value, (int, Fraction)) else ()
    return str(value) if all(abs(part) < 10**MAX_QUOTED for part in parts) else "a number with too many digits to show"


def shown_name(value: object) -> str:
    """A name from the user, who may have passed a column of data by mistake: no number is repeated.

    >>> shown_name("county"), shown_name("Alpha;Low;15"), shown_name(15), shown_name([15, 1, 20])
    ("'county'", 'text with a number in it', "a value of type 'int'", "a value of type 'list'")
    """
    if isinstance(value, str):
        return "text with a number in it" if has_number(value) else given(value)
    return type_of(value)


def shown_names(values: Iterable[object]) -> str:
    """Several names, if they are few and none could be a row of data.

    >>> shown_names(["county", "education"]), shown_names(["Alpha", "15"]), shown_names([])
    ("'county', 'education'", 'others', 'none')
    """
    names = list(values)
    if not names:
        return "none"
    safe = all(isinstance(name, str) and name.strip() and not has_number(name) for name in names)
    return ", ".join(map(given, names)) if safe and len(names) <= MAX_NAMES else "others"


def has_number(text: str) -> bool:
    """Whether text may contain a count (a word made of digits), in which case no message repeats it.

    >>> has_number("Alpha;Low;15"), has_number("population_2010")
    (True, False)
    """
    return any(word.isdigit() for word in re.split(r"\W+", text))


def are_showable(names: Iterable[str]) -> bool:
    """Whether the names of columns may be shown: a row of data in their place must not appear on a screen."""
    return not any(has_number(name) or not name.isprintable() for name in names)


def how_many(number: int, thing: str) -> str:
    """A number of things.

    >>> how_many(1, "cell"), how_many(1200, "cell")
    ('1 cell', '1,200 cells')
    """
    return f"{number:,} {thing}{'s' * (number != 1)}"
