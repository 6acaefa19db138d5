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
from keepsum._extras import missing
from keepsum._saying import the
from keepsum.errors import DataError, InputError
from keepsum.tables.origins import Frame, TextFile
from keepsum.tables.released import ColumnLayout, CountedTable, canonical_layout, frame_of, layout_of

KINDS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv",
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
COMPRESSED = (".gz", ".zst", ".zstd", ".bz2", ".xz", ".zip")
ROWS_PER_CHUNK = 50_000  # rows formatted as text at a time


def kind_of(path: PurePath) -> str:
    """The format of a file with this name: csv, parquet or arrow."""
    kind = KINDS.get(path.suffix.lower())
    if path.suffix.lower() in COMPRESSED:
        raise InputError(
            f"A table must be written uncompressed, because the hash in a certificate is of the plain file, got "
            f"{the.file(path.name)}. Write {path.stem!r}, and compress a copy."
        )
    if kind is None:
        raise InputError(f"The file name of a table must end in .csv, .parquet or .arrow, got {the.file(path.name)}.")
    if kind != "csv":
        _pyarrow(path.name)
    return kind


def own_kind(table: CountedTable) -> str:
    """The format of the file that a table came from, by default CSV."""
    return (table.origin.file if isinstance(table.origin, Frame) else None) or "csv"


def table_bytes(table: CountedTable, kind: str, layout: ColumnLayout | None = None) -> bytes:
    """A table as the contents of a file, with the columns of its own form or of a layout."""
    if kind == "csv":
        layout = layout_of(table) if layout is None else layout
        form = table.origin if isinstance(table.origin, TextFile) else TextFile(layout.names)
        return b"".join(_csv_chunks(table.counts, layout, form))
    pyarrow = _pyarrow(f"a table as {kind}")
    frame = frame_of(table, "pyarrow", layout)
    sink = io.BytesIO()
    if kind == "parquet":
        from pyarrow import parquet

        parquet.write_table(frame, sink)
    else:
        with pyarrow.ipc.new_file(sink, frame.schema) as writer:
            writer.write_table(frame)
    return sink.getvalue()


def csv_file(counts: IntArray, layout: ColumnLayout) -> bytes:
    """Columns of labels and numbers as a plain CSV file: UTF-8, commas, line feeds, quotes only where needed."""
    return b"".join(_csv_chunks(counts, layout, TextFile(layout.names)))


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
    return hash_and_file(table, keep=False)[0]


def hash_and_file(table: CountedTable, keep: bool = True) -> tuple[str, bytes | None]:
    """The hash of a table, and its CSV file if that is the canonical one and is to be kept."""
    layout = canonical_layout(table)
    form = TextFile(layout.names)
    keep = keep and table.origin in (None, form) and table.rows is None and not table.carried
    digest, file = hashlib.sha256(), io.BytesIO()
    for chunk in _csv_chunks(table.counts, layout, form):
        digest.update(chunk)
        if keep:
            file.write(chunk)
    return digest.hexdigest(), file.getvalue() if keep else None


def canonical_piece(counts: IntArray, layout: ColumnLayout, first: bool = False, last: bool = False) -> bytes:
    """Some rows of the canonical CSV file, with its header before the first and its end behind the last.

    Pieces one behind the other are the whole file.
    """
    form = TextFile(layout.names)
    chunks = [*([_header(layout, form)] if first else []), *_row_chunks(counts, layout, form)]
    return b"".join(chunks) + (_encoded(form.newline) if last else b"")


def _header(layout: ColumnLayout, form: TextFile) -> bytes:
    return _encoded(form.delimiter.join(_value(name, form, name in form.quoted_names) for name in layout.names))


def _csv_chunks(counts: IntArray, layout: ColumnLayout, form: TextFile) -> Iterator[bytes]:
    if form.byte_order_mark:
        yield b"\xef\xbb\xbf"
    yield _header(layout, form)
    yield from _row_chunks(counts, layout, form)
    if form.ends_with_newline:
        yield _encoded(form.newline)


def _row_chunks(counts: IntArray, layout: ColumnLayout, form: TextFile) -> Iterator[bytes]:
    last = layout.names[-1]
    ends = {name: (form.newline * (name == layout.names[0]), form.delimiter * (name != last)) for name in layout.names}
    texts = {
        name: _Texts.of([_value(label, form, name in form.quoted_columns) for label in values], *ends[name])
        for name, (values, _) in layout.labels.items()
    }
    height = len(counts) if layout.rows is None else len(layout.rows)
    for start in range(0, height, ROWS_PER_CHUNK):
        chunk = slice(start, start + ROWS_PER_CHUNK)
        rows = chunk if layout.rows is None else layout.rows[chunk]
        columns = []
        for name in layout.names:
            if name in texts:
                columns.append((texts[name], layout.labels[name][1][rows]))
                continue
            cells = layout.counts[name]
            numbers, places = _numbered(counts[rows if cells is None else cells[chunk]])
            columns.append((_Texts.of(list(map(str, numbers.tolist())), *ends[name]), places))
        yield _joined(columns)


def _numbered(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Numbers in order, and the place of each count among them: a whole range, unless the counts are far apart."""
    least, largest = int(counts.min()), int(counts.max())
    if largest - least > 4 * len(counts):
        return np.unique(counts, return_inverse=True)
    return np.arange(least, largest + 1), counts - least


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
    before = np.cumsum([0, *(len(texts.characters) for texts, _ in columns)])
    starts = np.stack([(texts.starts + before[k])[codes] for k, (texts, codes) in enumerate(columns)], axis=1).ravel()
    lengths = np.stack([texts.lengths[codes] for texts, codes in columns], axis=1).ravel()
    starts -= np.cumsum(lengths) - lengths
    positions = np.repeat(starts, lengths)
    positions += _counting(len(positions))
    joined: bytes = np.concatenate([texts.characters for texts, _ in columns])[positions].tobytes()
    return joined


class _Counting:
    """The numbers from 0 on, made once for chunks of about the same length."""

    numbers: IntArray = np.arange(0)


def _counting(length: int) -> IntArray:
    if length > len(_Counting.numbers):
        _Counting.numbers = np.arange(length + length // 8)
    return _Counting.numbers[:length]


def _value(value: Any, form: TextFile, quoted: bool) -> str:
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
        raise InputError(missing(f"Writing {what}", "parquet", "pyarrow")) from None
    return pyarrow
