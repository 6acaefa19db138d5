"""Tables as files, in their original form, and in the canonical form whose hash a certificate contains."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePath
from typing import Any

from keepsum.errors import DataError, InputError
from keepsum.tables.frames import CountedTable, columns_of, frame_of, plain_columns
from keepsum.tables.origins import Frame, Text

KINDS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv",
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
ROWS_PER_CHUNK = 50_000  # rows formatted as text at a time


def kind_of(path: PurePath) -> str:
    """The format of a file with this name: csv, parquet or arrow."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"The file name of a table must end in .csv, .parquet or .arrow, got {path.name!r}.")
    if kind != "csv":
        _pyarrow(path.name)
    return kind


def own_kind(table: CountedTable) -> str:
    """The format of the file that a table came from, by default CSV."""
    return (table.origin.file if isinstance(table.origin, Frame) else None) or "csv"


def table_bytes(table: CountedTable, kind: str) -> bytes:
    """A table as the contents of a file."""
    if kind == "csv":
        return b"".join(_csv_chunks(table, columns_of(table), table.origin if isinstance(table.origin, Text) else None))
    pyarrow = _pyarrow(f"a table as {kind}")
    frame = frame_of(table, "pyarrow")
    sink = io.BytesIO()
    if kind == "parquet":
        from pyarrow import parquet

        parquet.write_table(frame, sink)
    else:
        with pyarrow.ipc.new_file(sink, frame.schema) as writer:
            writer.write_table(frame)
    return sink.getvalue()


def table_hash(table: CountedTable) -> str:
    r"""The SHA-256 of a table, independent of the format of its file.

    It is the hash of the canonical CSV file: UTF-8, the axes in the order of the domain followed by the count, every
    cell in the order of the domain, commas, line feeds, quotes only where they are needed.

    Examples
    --------
    >>> import hashlib, keepsum as ks
    >>> table = ks.Table.from_array([3, -1 + 1], axes={"sex": ["f", "m"]}, count="n")
    >>> table_hash(table) == hashlib.sha256(b"sex,n\nf,3\nm,0\n").hexdigest()
    True
    """
    digest = hashlib.sha256()
    for chunk in _csv_chunks(table, plain_columns(table)):
        digest.update(chunk)
    return digest.hexdigest()


def _csv_chunks(table: CountedTable, columns: dict[str, list[Any]], form: Text | None = None) -> Iterator[bytes]:
    form = Text(tuple(columns)) if form is None else form
    if form.byte_order_mark:
        yield b"\xef\xbb\xbf"
    yield _encoded(form.delimiter.join(_value(name, form, name in form.quoted_names) for name in columns))
    labels = [label for name in table.domain.axes for label in table.domain.axis(name).labels]
    # The csv module does not quote a carriage return if lines end in a line feed.
    by_hand = bool(form.quoted_columns) or any("\r" in label for label in labels if isinstance(label, str))
    quoted = [name in form.quoted_columns for name in columns] if by_hand else []
    rows = zip(*columns.values(), strict=True)
    while chunk := list(islice(rows, ROWS_PER_CHUNK)):
        yield _encoded(form.newline + _lines(chunk, form, quoted))
    if form.ends_with_newline:
        yield _encoded(form.newline)


def _lines(rows: list[tuple[Any, ...]], form: Text, quoted: list[bool]) -> str:
    if quoted:
        return form.newline.join(
            form.delimiter.join(_value(value, form, q) for value, q in zip(row, quoted, strict=True)) for row in rows
        )
    text = io.StringIO()
    csv.writer(text, delimiter=form.delimiter, lineterminator=form.newline).writerows(rows)
    return text.getvalue()[: -len(form.newline)]


def _value(value: Any, form: Text, quoted: bool) -> str:
    text = str(value)
    if quoted or any(character in text for character in (form.delimiter, '"', "\n", "\r")):
        return '"' + text.replace('"', '""') + '"'
    return text


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # not passed on, because it contains the text
        pass
    raise DataError("Labels must be text that UTF-8 can encode, but one contains half a character. Correct it.")


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise InputError(f"Writing {what} needs pyarrow, which is not installed. Install keepsum[cli].") from None
    return pyarrow
