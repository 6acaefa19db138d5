"""Keys in SQLite, where a column holds values of any type whatever type it declares.

Each value is judged by its own storage class: the type that a column declares, or that its first row happens to have,
says nothing about the others. Only 0 and 1 in a column declared BOOLEAN mean false and true.
"""

from __future__ import annotations

from typing import Any

from keepsum.sources.records.signs import (
    DATE_TEXT,
    DECIMAL_TEXT,
    LARGEST_FLOAT,
    NO_LABEL,
    NOT_WHOLE,
    UNIT_MISSING,
    UNIT_TEXT,
    UNIT_UNUSABLE,
    UNIT_WHOLE,
    WHOLE_TEXT,
    day_number,
    matches,
    whole,
)


def label_text(column: Any) -> Any:
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


def bin_parts(column: Any, kind: str) -> tuple[Any, Any, Any]:
    """Whether a value is missing, whether it can be in a bin, and the value to compare with edges."""
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


def unit_key(column: Any) -> tuple[Any, Any]:
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
