"""The cell of a record as expressions that a database evaluates: one key per axis.

The key of a label is text, and empty text is a missing label. The key of a bin is its number; numbers below 0 say why
there is none. So two records have equal keys if and only if they belong to the same cell, on every database, whatever
its collation and however it writes a number or a date.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from keepsum.errors import DataError
from keepsum.sources.records.bins import LARGEST_EDGE, Bins
from keepsum.tables.axes import Label

OUT_OF_RANGE, NOT_A_VALUE, MISSING = -1, -2, -3  # instead of the number of a bin
LARGEST_FLOAT = 1.7976931348623157e308
NOT_WHOLE = "not a whole number"  # the key of a number that is no label
_PLAIN = re.compile(r"0|-?[1-9][0-9]{0,15}")

# Values in columns of text, such as those of a CSV file.
WHOLE_TEXT = r"^ *[+-]?[0-9]{1,15} *$"
DECIMAL_TEXT = r"^ *[+-]?([0-9]{1,40}[.]?[0-9]{0,40}|[.][0-9]{1,40})([eE][+-]?[0-9]{1,2})? *$"
DATE_TEXT = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?)?$"


def label_key(column: Any, name: str, dialect: str, labels: Sequence[Label], missing: Label | None) -> Any:
    """The label of a record as text, empty if it is missing and no category is declared for that."""
    import ibis

    kind = column.type()
    if kind.is_null():
        text = ibis.literal("")
    elif kind.is_boolean():
        text = ibis.cases((column, "true"), (~column, "false"), else_="")
    elif kind.is_integer() or kind.is_uuid():
        text = column.cast("string").coalesce("")
    elif kind.is_string():
        text = _text(column, dialect).coalesce("")
    elif kind.is_date() and dialect != "sqlite":
        text = column.strftime("%Y-%m-%d").coalesce("")
    elif kind.is_date():
        text = _text(column.cast("string"), dialect).coalesce("")
    elif kind.is_floating() or kind.is_decimal():
        text = _whole_text(column, name, dialect, labels, missing)
    else:
        raise DataError(
            f"Column {name!r} must hold text, whole numbers, dates or true and false to be counted by, but holds "
            f"others. Cut numbers and times into bins with bins=, or convert the column to text."
        )
    if missing is not None:
        text = ibis.cases((text == "", str(missing)), else_=text)
    return _bytes(text) if dialect == "postgres" else text


def text_of_key(key: str, dialect: str) -> str:
    """A label from its key."""
    return bytes.fromhex(key).decode("utf-8") if dialect == "postgres" else key


def _text(column: Any, dialect: str) -> Any:
    """Text that is compared byte by byte, without the type or the collation of its column."""
    return column if dialect == "files" else column.concat("")


def _bytes(text: Any) -> Any:
    """The bytes of text in hexadecimal digits, which every collation sorts and groups as it should."""
    import ibis

    @ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
    def convert_to(text: str, encoding: str) -> bytes: ...  # type: ignore[empty-body]

    @ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
    def encode(data: bytes, form: str) -> str: ...  # type: ignore[empty-body]

    return encode(convert_to(text, "UTF8"), "hex")


def _whole_text(column: Any, name: str, dialect: str, labels: Sequence[Label], missing: Label | None) -> Any:
    """Whole numbers in a column of floats or decimals, such as a data frame has where some are missing."""
    import ibis

    plain = [label for label in map(str, labels) if missing is None or label != str(missing)]
    if not all(_PLAIN.fullmatch(label) for label in plain):
        raise DataError(
            f"Column {name!r} holds decimal numbers, so its categories must be whole numbers. Cut it into bins with "
            f"bins=, or convert the column to text."
        )
    number = column.cast("float64")
    whole, bounded = _whole(number)
    text = ibis.cases((whole, bounded.cast("int64").cast("string")), else_=NOT_WHOLE)
    return ibis.cases((_absent(number, column, dialect), ""), else_=text)


def _whole(number: Any) -> tuple[Any, Any]:
    """Whether a float is a whole number below 2^53, and a float that every database can convert: 0.5 if it is not."""
    import ibis

    bounded = ibis.cases((number.abs() < LARGEST_EDGE, number), else_=0.5)
    return bounded == bounded.floor(), bounded


def _absent(number: Any, column: Any, dialect: str) -> Any:
    """Whether a number is missing: null or NaN, which SQLite does not have."""
    return column.isnull() if dialect == "sqlite" else column.isnull() | number.isnan()


# -- bins -------------------------------------------------------------------------------------------


def bin_parts(column: Any, name: str, dialect: str, bins: Bins) -> tuple[Any, Any, Any]:
    """Whether a value is missing, whether it can be in a bin, and the value to compare with edges."""
    return (_dates if bins.kind == "date" else _numbers)(column, name, dialect, bins)


def bin_key(absent: Any, usable: Any, value: Any, bins: Bins, missing: bool) -> Any:
    """The number of a record's bin; below 0 if there is none."""
    import ibis

    edges = [_literal(edge, value) for edge in bins.edges]
    numbers = list(range(len(bins.labels)))  # between the edges; and what is below the first and above the last
    if edges[0] is not None:
        numbers.insert(0, OUT_OF_RANGE)
    if edges[-1] is not None:
        numbers.append(OUT_OF_RANGE)
    number = _between(value, [edge for edge in edges if edge is not None], numbers)
    absent_key = len(bins.labels) if missing else MISSING
    return ibis.cases((absent, absent_key), (~usable, NOT_A_VALUE), else_=number).cast("int64")


def _between(value: Any, edges: Sequence[Any], numbers: Sequence[int]) -> Any:
    """The number of the interval of a value, found by halving: of one interval more than there are edges."""
    import ibis

    if not edges:
        return ibis.literal(numbers[0], type="int64")
    half = len(edges) // 2
    below = _between(value, edges[:half], numbers[: half + 1])
    return ibis.cases((value < edges[half], below), else_=_between(value, edges[half + 1 :], numbers[half + 1 :]))


def _literal(edge: Any, value: Any) -> Any:
    """An edge of the type of the values that it is compared with."""
    import ibis

    if isinstance(edge, date):
        return str(edge) if value.type().is_string() else ibis.literal(edge)
    if isinstance(edge, Decimal):
        return float(edge)
    return float(edge) if edge is not None and value.type().is_floating() else edge


def _numbers(column: Any, name: str, dialect: str, bins: Bins) -> tuple[Any, Any, Any]:
    import ibis

    kind = column.type()
    whole = bins.kind == "whole"
    if kind.is_null():
        return ibis.literal(True), ibis.literal(True), ibis.literal(0)
    if kind.is_string():
        text = _text(column, dialect).coalesce("")
        return text == "", *_parsed(text, dialect, whole)
    if not kind.is_numeric():
        raise DataError(f"Column {name!r} must hold numbers to be cut into bins of numbers, but holds others.")
    if dialect == "sqlite":
        return _sqlite_numbers(column, whole)
    if kind.is_integer() and whole:
        return column.isnull(), ibis.literal(True), column
    number = column.cast("float64")
    usable = _whole(number)[0] if whole else number.abs() <= LARGEST_FLOAT
    return _absent(number, column, dialect), usable, number


def _parsed(text: Any, dialect: str, whole: bool) -> tuple[Any, Any]:
    """Whether text is a number, and the number."""
    import ibis

    usable = text.re_search(WHOLE_TEXT if whole else DECIMAL_TEXT)
    if whole and dialect == "files":  # twice as fast: most numbers are in plain digits, and need no pattern
        number = text.try_cast("int64")
        usable = ibis.cases((number.cast("string") == text, True), else_=usable) & number.notnull()
        return usable & number.between(1 - 10**15, 10**15 - 1), number
    safe = ibis.cases((usable, text), else_="0")  # so that no order of evaluation can make the cast fail
    return usable, safe.cast("int64" if whole else "float64")


def _sqlite_numbers(column: Any, whole: bool) -> tuple[Any, Any, Any]:
    """The same where a column may hold values of any type."""
    number = column.cast("float64")
    usable = column.typeof().isin(["integer", "real"]) & (_whole(number)[0] if whole else number.abs() <= LARGEST_FLOAT)
    return column.isnull() | (column.cast("string") == ""), usable, number


def _dates(column: Any, name: str, dialect: str, bins: Bins) -> tuple[Any, Any, Any]:
    """Dates are compared as text if the column is text."""
    import ibis

    kind = column.type()
    if kind.is_null():
        return ibis.literal(True), ibis.literal(True), ibis.literal("")
    if kind.is_timestamp() and kind.timezone is not None:
        raise DataError(
            f"Column {name!r} must hold dates, or times without a time zone, to be cut into bins of dates: the date of "
            f"a time depends on the zone. Convert the column to dates first."
        )
    if kind.is_string() or (dialect == "sqlite" and kind.is_temporal()):
        text = _text(column.cast("string"), dialect).coalesce("")
        return text == "", text.re_search(DATE_TEXT), text.left(10)
    if not (kind.is_date() or kind.is_timestamp()):
        raise DataError(f"Column {name!r} must hold dates to be cut into bins of dates, but holds others.")
    value = column.date() if kind.is_timestamp() else column
    usable = (value >= ibis.literal(date.min)) & (value <= ibis.literal(date.max))  # not infinite
    return column.isnull(), usable, value


# -- units ------------------------------------------------------------------------------------------


def unit_key(column: Any, name: str, dialect: str) -> tuple[Any, Any]:
    """What identifies a unit, and whether that is missing."""
    import ibis

    kind = column.type()
    if kind.is_null():
        return ibis.literal(""), ibis.literal(True)
    if kind.is_integer() and dialect != "sqlite":
        return column, column.isnull()
    if kind.is_floating() or kind.is_decimal():
        return column, _absent(column.cast("float64"), column, dialect)
    if not (kind.is_string() or kind.is_integer() or kind.is_uuid()):
        raise DataError(f"Column {name!r} must hold text or numbers to identify units, but holds others.")
    text = _text(column.cast("string"), dialect).coalesce("")
    return _bytes(text) if dialect == "postgres" else text, text == ""
