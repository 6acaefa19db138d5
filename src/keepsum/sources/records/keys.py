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
from keepsum.sources.records import sqlite_keys
from keepsum.sources.records.bins import Bins
from keepsum.sources.records.signs import (
    DATE_TEXT,
    DECIMAL_TEXT,
    LARGEST_FLOAT,
    MISSING,
    NOT_A_VALUE,
    NOT_WHOLE,
    OUT_OF_RANGE,
    UNIT_MISSING,
    UNIT_TEXT,
    UNIT_WHOLE,
    WHOLE_TEXT,
    day_number,
    matches,
    whole,
)
from keepsum.sources.records.texts import is_empty, key_of, text_of
from keepsum.tables.axes import Label

_PLAIN = re.compile(r"0|-?[1-9][0-9]{0,15}")


def label_key(column: Any, name: str, dialect: str, labels: Sequence[Label], missing: Label | None) -> Any:
    """The label of a record, empty if it is missing and no category is declared for that."""
    import ibis

    if dialect == "sqlite":
        text = sqlite_keys.label_text(column)
        return text if missing is None else ibis.cases((text == "", str(missing)), else_=text)
    text = _label_text(column, name, dialect, labels, missing)
    if missing is not None:
        text = ibis.cases((is_empty(text, dialect), str(missing)), else_=text)
    return key_of(text, dialect)


def _label_text(column: Any, name: str, dialect: str, labels: Sequence[Label], missing: Label | None) -> Any:
    import ibis

    kind = column.type()
    if kind.is_null():
        return ibis.literal("")
    if kind.is_boolean():
        return ibis.cases((column, "true"), (~column, "false"), else_="")
    if kind.is_integer() or kind.is_uuid():
        return column.cast("string").coalesce("")
    if kind.is_string():
        return text_of(column, dialect)
    if kind.is_date():
        return column.strftime("%Y-%m-%d").coalesce("")
    if kind.is_floating() or kind.is_decimal():
        return _whole_text(column, name, labels, missing)
    raise DataError(
        f"Column {name!r} must hold text, whole numbers, dates or true and false to be counted by, but holds "
        f"others. Cut numbers and times into bins with bins=, or convert the column to text."
    )


def _whole_text(column: Any, name: str, labels: Sequence[Label], missing: Label | None) -> Any:
    """Whole numbers in a column of floats or decimals, such as a data frame has where some are missing."""
    import ibis

    plain = [label for label in map(str, labels) if missing is None or label != str(missing)]
    if not all(_PLAIN.fullmatch(label) for label in plain):
        raise DataError(
            f"Column {name!r} holds decimal numbers, so its categories must be whole numbers. Cut it into bins with "
            f"bins=, or convert the column to text."
        )
    number = column.cast("float64")
    is_whole, bounded = whole(number)
    text = ibis.cases((is_whole, bounded.cast("int64").cast("string")), else_=NOT_WHOLE)
    return ibis.cases((column.isnull() | number.isnan(), ""), else_=text)


# -- bins -------------------------------------------------------------------------------------------


def bin_parts(column: Any, name: str, dialect: str, bins: Bins) -> tuple[Any, Any, Any]:
    """Whether a value is missing, whether it can be in a bin, and the value to compare with edges."""
    if dialect == "sqlite":
        return sqlite_keys.bin_parts(column, bins.kind)
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
        return int(edge.isoformat().replace("-", "")) if value.type().is_integer() else ibis.literal(edge)
    if isinstance(edge, Decimal):
        return float(edge)
    return float(edge) if edge is not None and value.type().is_floating() else edge


def _numbers(column: Any, name: str, dialect: str, bins: Bins) -> tuple[Any, Any, Any]:
    import ibis

    kind = column.type()
    between_whole = bins.kind == "whole"
    if kind.is_null():
        return ibis.literal(True), ibis.literal(True), ibis.literal(0)
    if kind.is_string():
        text = text_of(column, dialect)
        return is_empty(text, dialect), *_parsed(text, dialect, between_whole)
    if not kind.is_numeric():
        raise DataError(f"Column {name!r} must hold numbers to be cut into bins of numbers, but holds others.")
    if kind.is_integer() and between_whole:
        return column.isnull(), ibis.literal(True), column
    number = column.cast("float64")
    usable = whole(number)[0] if between_whole else number.abs() <= LARGEST_FLOAT
    return column.isnull() | number.isnan(), usable, number


def _parsed(text: Any, dialect: str, as_whole: bool) -> tuple[Any, Any]:
    """Whether text is a number, and the number."""
    import ibis

    usable = matches(text, WHOLE_TEXT if as_whole else DECIMAL_TEXT, dialect)
    if as_whole and dialect == "files":  # twice as fast: most numbers are in plain digits, and need no pattern
        number = text.try_cast("int64")
        usable = ibis.cases((number.cast("string") == text, True), else_=usable) & number.notnull()
        return usable & number.between(1 - 10**15, 10**15 - 1), number
    safe = ibis.cases((usable, text), else_="0")  # so that no order of evaluation can make the cast fail
    return usable, safe.cast("int64" if as_whole else "float64")


def _dates(column: Any, name: str, dialect: str, bins: Bins) -> tuple[Any, Any, Any]:
    """Dates are compared as numbers if the column is text."""
    import ibis

    kind = column.type()
    if kind.is_null():
        return ibis.literal(True), ibis.literal(True), ibis.literal(0)
    if kind.is_timestamp() and kind.timezone is not None:
        raise DataError(
            f"Column {name!r} must hold dates, or times without a time zone, to be cut into bins of dates: the date of "
            f"a time depends on the zone. Convert the column to dates first."
        )
    if kind.is_string():
        text = text_of(column, dialect)
        return is_empty(text, dialect), *day_number(text, matches(text, DATE_TEXT, dialect))
    if not (kind.is_date() or kind.is_timestamp()):
        raise DataError(f"Column {name!r} must hold dates to be cut into bins of dates, but holds others.")
    value = column.date() if kind.is_timestamp() else column
    usable = (value >= ibis.literal(date.min)) & (value <= ibis.literal(date.max))  # not infinite
    return column.isnull(), usable, value


# -- units ------------------------------------------------------------------------------------------


def unit_key(column: Any, name: str, dialect: str) -> tuple[Any, Any]:
    """What identifies a unit, and whether that is text, a whole number or missing.

    Floats are refused: they may have been rounded, so that different units look the same.
    """
    import ibis

    if dialect == "sqlite":
        return sqlite_keys.unit_key(column)
    kind = column.type()
    if kind.is_null():
        return ibis.null("int64"), ibis.literal(UNIT_MISSING)
    if kind.is_integer():
        return column, _state(column.isnull(), UNIT_WHOLE)
    if kind.is_decimal():  # that of Postgres has a NaN
        missing = column.isnull() | (column.cast("string") == "NaN") if dialect == "postgres" else column.isnull()
        return column, _state(missing, UNIT_WHOLE)
    if not (kind.is_string() or kind.is_uuid()):
        raise DataError(
            f"Column {name!r} must hold text or whole numbers to identify units, but holds others. Convert it to text "
            f"or whole numbers."
        )
    text = text_of(column, dialect)
    return key_of(text, dialect), _state(is_empty(text, dialect), UNIT_TEXT)


def _state(missing: Any, present: int) -> Any:
    import ibis

    return ibis.cases((missing, UNIT_MISSING), else_=present)
