"""Tables as files, in their original form, and in the canonical form whose hash a certificate contains."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arrays import IntArray
from keepsum.errors import DataError, InputError
from keepsum.tables.frames import CountedTable, column_order, frame_of
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
        form = table.origin if isinstance(table.origin, Text) else Text(tuple(column_order(table)))
        names = [name for name in form.columns if name in form.constants or name in column_order(table)]
        return b"".join(_csv_chunks(table, names, table.rows, form))
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
    names = (*table.domain.axes, table.count)
    digest = hashlib.sha256()
    for chunk in _csv_chunks(table, names, None, Text(names)):
        digest.update(chunk)
    return digest.hexdigest()


def _csv_chunks(table: CountedTable, names: Sequence[str], rows: IntArray | None, form: Text) -> Iterator[bytes]:
    """The file in pieces: the header, and then some rows at a time."""
    if form.byte_order_mark:
        yield b"\xef\xbb\xbf"
    yield _encoded(form.delimiter.join(_value(name, form, name in form.quoted_names) for name in names))
    ends = [form.delimiter] * (len(names) - 1) + [""]
    texts = [
        None if name == table.count else _Texts.of(_label_texts(table, name, form), form.newline * (k == 0), ends[k])
        for k, name in enumerate(names)
    ]
    codes = [None if name == table.count else _label_codes(table, name, form) for name in names]
    for start in range(0, table.domain.size, ROWS_PER_CHUNK):
        cells = slice(start, start + ROWS_PER_CHUNK) if rows is None else rows[start : start + ROWS_PER_CHUNK]
        columns = []
        for k, (column, of_cells) in enumerate(zip(texts, codes, strict=True)):
            if column is not None and of_cells is not None:
                columns.append((column, of_cells[cells]))
                continue
            numbers, places = _numbered(table.counts[cells])
            columns.append((_Texts.of(list(map(str, numbers.tolist())), form.newline * (k == 0), ends[k]), places))
        yield _joined(columns)
    if form.ends_with_newline:
        yield _encoded(form.newline)


def _numbered(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Numbers in order, and the place of each count among them: a whole range, unless the counts are far apart."""
    least, largest = int(counts.min()), int(counts.max())
    if largest - least > 4 * len(counts):
        return np.unique(counts, return_inverse=True)
    return np.arange(least, largest + 1), counts - least


def _label_texts(table: CountedTable, name: str, form: Text) -> list[str]:
    labels = [form.constants[name]] if name in form.constants else table.domain.axis(name).labels
    return [_value(label, form, name in form.quoted_columns) for label in labels]


def _label_codes(table: CountedTable, name: str, form: Text) -> IntArray:
    if name in form.constants:
        return np.zeros(table.domain.size, dtype=np.int64)
    return table.domain.codes(name)


@dataclass(frozen=True)
class _Texts:
    """Texts as one array of bytes, with the place where each starts and its length."""

    characters: npt.NDArray[np.uint8]
    starts: IntArray
    lengths: IntArray

    @classmethod
    def of(cls, texts: Sequence[str], before: str, after: str) -> _Texts:
        encoded = [_encoded(f"{before}{text}{after}") for text in texts]
        lengths = np.array([len(text) for text in encoded], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), np.cumsum(lengths) - lengths, lengths)


def _joined(columns: Sequence[tuple[_Texts, IntArray]]) -> bytes:
    """The rows one after another: for each, the text of every column."""
    before = np.cumsum([0, *(len(texts.characters) for texts, _ in columns)])
    starts = np.stack([(texts.starts + before[k])[codes] for k, (texts, codes) in enumerate(columns)], axis=1).ravel()
    lengths = np.stack([texts.lengths[codes] for texts, codes in columns], axis=1).ravel()
    starts -= np.cumsum(lengths) - lengths
    positions = np.repeat(starts, lengths)
    positions += np.arange(len(positions))
    joined: bytes = np.concatenate([texts.characters for texts, _ in columns])[positions].tobytes()
    return joined


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
