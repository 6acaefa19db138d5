"""The size to which the compressed buffers of an Arrow file claim to expand, read without expanding any.

A kilobyte of zstd can expand to thirty megabytes, and pyarrow allocates whatever a file claims. The layout is that of
Footer, Block, Message, RecordBatch and DictionaryBatch in Arrow's File.fbs and Message.fbs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

MAGIC = 6  # bytes of ARROW1 at the end, after the length of the footer
DICTIONARIES, BATCHES = 2, 3  # fields of Footer
HEADER = 2  # a field of Message
DATA = 1  # a field of DictionaryBatch
BUFFERS, COMPRESSION = 2, 3  # fields of RecordBatch
CONTINUATION = 0xFFFFFFFF


def unpacked_size(data: bytes) -> int:
    """The total claimed size of all buffers in bytes; a batch that is listed twice counts twice.

    Raises
    ------
    ValueError
        If the index points outside the file.
    """
    length = _number(data, "<i", len(data) - MAGIC - 4)
    footer = _root(data, len(data) - MAGIC - 4 - length)
    sizes: dict[tuple[int, int, bool], int] = {}
    total = 0
    for field in (DICTIONARIES, BATCHES):
        for position in _vector(data, footer, field, 24):
            block = (_number(data, "<q", position), _number(data, "<i", position + 8), field == DICTIONARIES)
            if block not in sizes:
                sizes[block] = _block_size(data, *block)
            total += sizes[block]
    return total


def _block_size(data: bytes, offset: int, metadata: int, dictionary: bool) -> int:
    """The claimed size of the buffers of one batch; 0 if they are not compressed."""
    start = offset + (8 if _number(data, "<I", offset) == CONTINUATION else 4)
    batch = _table(data, _root(data, start), HEADER)
    if dictionary and batch is not None:
        batch = _table(data, batch, DATA)
    if batch is None or _table(data, batch, COMPRESSION) is None:
        return 0
    total = 0
    for position in _vector(data, batch, BUFFERS, 16):
        length = _number(data, "<q", position + 8)
        if length:
            size = _number(data, "<q", offset + metadata + _number(data, "<q", position))
            total += length if size == -1 else size  # -1: this buffer is not compressed
            if size < -1 or length < 0:
                raise ValueError("a buffer has a negative size")
    return total


def _number(data: bytes, form: str, position: int) -> int:
    if not 0 <= position <= len(data) - struct.calcsize(form):
        raise ValueError("the index points outside the file")
    return int(struct.unpack_from(form, data, position)[0])


def _root(data: bytes, start: int) -> int:
    """The position of the root table of a flatbuffer."""
    return start + _number(data, "<I", start)


def _field(data: bytes, table: int, field: int) -> int | None:
    """The position of a field of a table; None if the field is absent."""
    index = table - _number(data, "<i", table)
    if 4 + 2 * field >= _number(data, "<H", index):
        return None
    offset = _number(data, "<H", index + 4 + 2 * field)
    return table + offset if offset else None


def _table(data: bytes, table: int, field: int) -> int | None:
    """The position of the table that a field refers to."""
    position = _field(data, table, field)
    return None if position is None else position + _number(data, "<I", position)


def _vector(data: bytes, table: int, field: int, width: int) -> Iterator[int]:
    """The positions of the entries of a vector of structs."""
    start = _table(data, table, field)
    if start is not None:
        for k in range(_number(data, "<I", start)):
            yield start + 4 + k * width
