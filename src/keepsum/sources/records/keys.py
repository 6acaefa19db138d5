"""The cell of a record as expressions that a database evaluates: one key per axis."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from keepsum._saying import arg, the
from keepsum.errors import DataError
from keepsum.sources.records.declaring import (
    DATE_TEXT,
    DECIMAL_TEXT,
    LARGEST_FLOAT,
    MISSING,
    NO_LABEL,
    NOT_A_VALUE,
    NOT_WHOLE,
    OUT_OF_RANGE,
    UNIT_MISSING,
    UNIT_TEXT,
    UNIT_UNUSABLE,
    UNIT_WHOLE,
    WHOLE_TEXT,
    Bins,
    day_number,
    matches,
    whole,
)
from keepsum.tables.axes import Label

# Text that databases compare byte by byte, whatever the collation of a column or of the database.
#
# Under a collation that ignores case or accents, a database would count "a" and "A" as one cell, and take the persons
# "x" and "X" for one unit.


def text_of(column: Any, dialect: str) -> Any:
    """A column of text without what its type or its collation would add; null is empty."""
    import ibis

    if dialect != "postgres":
        return column.cast("string").coalesce("")

    @ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
    def convert_from(data: bytes, encoding: str) -> str: ...  # type: ignore[empty-body]

    # Patterns are refused under some collations. Text that is made of bytes has none.
    return convert_from(_utf8(column.cast("string")), "UTF8").coalesce("")


def is_empty(text: Any, dialect: str) -> Any:
    """Whether text has no characters: by its length, as a collation may take an accent for nothing."""
    return text == "" if dialect == "files" else text.length() == 0


def key_of(text: Any, dialect: str) -> Any:
    """What a database groups and sorts by the bytes of text; :func:`text_of_key` turns it back into text."""
    import ibis

    if dialect == "files":  # a connection of our own, without any collation
        return text

    if dialect == "duckdb":

        @ibis.udf.scalar.builtin(name="encode")  # type: ignore[untyped-decorator]
        def blob(text: str) -> bytes: ...  # type: ignore[empty-body]

        return blob(text)

    @ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
    def encode(data: bytes, form: str) -> str: ...  # type: ignore[empty-body]

    return encode(_utf8(text), "hex")


def text_of_key(key: str | bytes, dialect: str) -> str:
    """A label from its key."""
    if isinstance(key, bytes):
        return key.decode("utf-8")
    return bytes.fromhex(key).decode("utf-8") if dialect == "postgres" else key


def _utf8(text: Any) -> Any:
    import ibis

    @ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
    def convert_to(text: str, encoding: str) -> bytes: ...  # type: ignore[empty-body]

    return convert_to(text, "UTF8")


# The key of a label is text, and empty text is a missing label. The key of a bin is its number; numbers below 0 say
# why there is none. So two records have equal keys if and only if they belong to the same cell, on every database,
# whatever its collation and however it writes a number or a date.

_PLAIN = re.compile(r"0|-?[1-9][0-9]{0,15}")


def label_key(column: Any, name: str, dialect: str, labels: Sequence[Label], missing: Label | None) -> Any:
    """The label of a record, empty if it is missing and no category is declared for that."""
    import ibis

    if dialect == "sqlite":
        text = _sqlite_label_text(column)
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
        f"Column {the.column(name)} must hold text, whole numbers, dates or true and false to be counted by, but holds "
        f"others. Cut numbers and times into bins {arg.bins:with}, or convert the column to text."
    )


def _whole_text(column: Any, name: str, labels: Sequence[Label], missing: Label | None) -> Any:
    """Whole numbers in a column of floats or decimals, such as a data frame has where some are missing."""
    import ibis

    plain = [label for label in map(str, labels) if missing is None or label != str(missing)]
    if not all(_PLAIN.fullmatch(label) for label in plain):
        raise DataError(
            f"Column {the.column(name)} holds decimal numbers, so its categories must be whole numbers. Cut it into "
            f"bins {arg.bins:with}, or convert the column to text."
        )
    number = column.cast("float64")
    is_whole, bounded = whole(number)
    text = ibis.cases((is_whole, bounded.cast("int64").cast("string")), else_=NOT_WHOLE)
    return ibis.cases((column.isnull() | number.isnan(), ""), else_=text)


# -- bins -------------------------------------------------------------------------------------------


def bin_parts(column: Any, name: str, dialect: str, bins: Bins) -> tuple[Any, Any, Any]:
    """Whether a value is missing, whether it can be in a bin, and the value to compare with edges."""
    if dialect == "sqlite":
        return _sqlite_bin_parts(column, bins.kind)
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
        raise DataError(
            f"Column {the.column(name)} must hold numbers to be cut into bins of numbers, but holds others."
        )
    if kind.is_integer() and between_whole:
        return column.isnull(), ibis.literal(True), column
    number = column.cast("float64")
    usable = whole(number)[0] if between_whole else number.abs() <= LARGEST_FLOAT
    return column.isnull() | number.isnan(), usable, number


def _parsed(text: Any, dialect: str, as_whole: bool) -> tuple[Any, Any]:
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
            f"Column {the.column(name)} must hold dates, or times without a time zone, to be cut into bins of dates: "
            "the date of a time depends on the zone. Convert the column to dates first."
        )
    if kind.is_string():
        text = text_of(column, dialect)
        return is_empty(text, dialect), *day_number(text, matches(text, DATE_TEXT, dialect))
    if not (kind.is_date() or kind.is_timestamp()):
        raise DataError(f"Column {the.column(name)} must hold dates to be cut into bins of dates, but holds others.")
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
        return _sqlite_unit_key(column)
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
            f"Column {the.column(name)} must hold text or whole numbers to identify units, but holds others. Convert "
            "it to text or whole numbers."
        )
    text = text_of(column, dialect)
    return key_of(text, dialect), _state(is_empty(text, dialect), UNIT_TEXT)


def _state(missing: Any, present: int) -> Any:
    import ibis

    return ibis.cases((missing, UNIT_MISSING), else_=present)


# -- SQLite -----------------------------------------------------------------------------------------
#
# A column holds values of any type whatever type it declares. So each value is judged by its own storage class: the
# type that a column declares, or that its first row happens to have, says nothing about the others. Only 0 and 1 in a
# column declared BOOLEAN mean false and true.


def _sqlite_label_text(column: Any) -> Any:
    """The label of a record as text: text itself, the digits of a whole number; empty if it is missing."""
    import ibis

    storage, value = _stored(column)
    text = value.concat("").coalesce("")
    is_whole, bounded = whole(value.cast("float64"))
    real = ibis.cases((is_whole, bounded.cast("int64").cast("string")), else_=NOT_WHOLE)
    integer = text
    if column.type().is_boolean():
        integer = ibis.cases((text == "1", "true"), (text == "0", "false"), else_=text)
    return ibis.cases(
        (storage == "integer", integer), (storage == "real", real), (storage == "blob", NO_LABEL), else_=text
    )


def _sqlite_bin_parts(column: Any, kind: str) -> tuple[Any, Any, Any]:
    import ibis

    storage, value = _stored(column)
    text = ibis.cases((storage == "text", value.concat("")), else_="no text")
    absent = (storage == "null") | (text == "")
    if kind == "date":
        return absent, *day_number(text, matches(text, DATE_TEXT, "sqlite"))
    number = value.cast("float64")
    as_text = matches(text, WHOLE_TEXT if kind == "whole" else DECIMAL_TEXT, "sqlite")
    as_number = whole(number)[0] if kind == "whole" else number.abs() <= LARGEST_FLOAT
    usable = ibis.cases((storage == "text", as_text), (storage.isin(["integer", "real"]), as_number), else_=False)
    return absent, usable, number


def _sqlite_unit_key(column: Any) -> tuple[Any, Any]:
    """What identifies a unit, with its storage class so that no unit hides another, and its state."""
    import ibis

    storage, value = _stored(column)
    text = value.concat("").coalesce("")
    state = ibis.cases(
        (text == "", UNIT_MISSING),
        (storage == "text", UNIT_TEXT),
        (storage == "integer", UNIT_WHOLE),
        else_=UNIT_UNUSABLE,
    )
    return storage.concat(" ", text), state


def _stored(column: Any) -> tuple[Any, Any]:
    """The storage class of a value, and the value as it is, which ibis is told is text: it would convert others.

    ``likely`` returns its argument. Appending nothing makes it text that is compared by its bytes.
    """
    import ibis

    @ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
    def likely(value) -> str: ...  # type: ignore[empty-body,no-untyped-def]

    value = likely(column)
    return value.typeof(), value
