"""Text that databases compare byte by byte, whatever the collation of a column or of the database.

Under a collation that ignores case or accents, a database would count "a" and "A" as one cell, and take the persons "x"
and "X" for one unit.
"""

from __future__ import annotations

from typing import Any


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
