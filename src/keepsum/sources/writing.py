"""Tables as files, in the shape in which they came, and in the one form whose hash a certificate holds."""

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
CHUNK = 50_000  # rows turned into text at a time


def kind_of(path: PurePath) -> str:
    """What a file of that name holds: csv, parquet or arrow."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"A table's file must end in .csv, .parquet or .arrow, got {path.name!r}.")
    if kind != "csv":
        _pyarrow(path.name)
    return kind


def own_kind(table: CountedTable) -> str:
    """The kind of file that a table came from, or CSV."""
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
    r"""The SHA-256 of a table, whatever file it stands in.

    It is that of the plainest CSV file: UTF-8, the axes in the domain's order and then the count, every cell in the
    domain's order, commas, line feeds, quotes only where they are needed.

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


def _csv_chunks(table: CountedTable, columns: dict[str, list[Any]], shape: Text | None = None) -> Iterator[bytes]:
    shape = Text(tuple(columns)) if shape is None else shape
    if shape.byte_order_mark:
        yield b"\xef\xbb\xbf"
    yield _encoded(shape.delimiter.join(_value(name, shape, name in shape.quoted_names) for name in columns))
    labels = [label for name in table.domain.axes for label in table.domain.axis(name).labels]
    # The csv module leaves a carriage return without quotes where lines end in a line feed.
    by_hand = bool(shape.quoted_columns) or any("\r" in label for label in labels if isinstance(label, str))
    quoted = [name in shape.quoted_columns for name in columns] if by_hand else []
    rows = zip(*columns.values(), strict=True)
    while chunk := list(islice(rows, CHUNK)):
        yield _encoded(shape.newline + _lines(chunk, shape, quoted))
    if shape.ends_with_newline:
        yield _encoded(shape.newline)


def _lines(rows: list[tuple[Any, ...]], shape: Text, quoted: list[bool]) -> str:
    if quoted:
        return shape.newline.join(
            shape.delimiter.join(_value(value, shape, q) for value, q in zip(row, quoted, strict=True)) for row in rows
        )
    text = io.StringIO()
    csv.writer(text, delimiter=shape.delimiter, lineterminator=shape.newline).writerows(rows)
    return text.getvalue()[: -len(shape.newline)]


def _value(value: Any, shape: Text, quoted: bool) -> str:
    text = str(value)
    if quoted or any(mark in text for mark in (shape.delimiter, '"', "\n", "\r")):
        return '"' + text.replace('"', '""') + '"'
    return text


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # which holds the text, so it is not passed on
        pass
    raise DataError("Labels must be text that UTF-8 can write, but one has half a character. Clean it.")


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise InputError(f"Writing {what} needs pyarrow, which is not installed. Install keepsum[cli].") from None
    return pyarrow
