"""How much memory the packed buffers of an Arrow file claim, read from its index without unpacking any.

A kilobyte of zstd can stand for thirty megabytes, and pyarrow takes whatever a file claims. The layout is that of
Footer, Block, Message, RecordBatch and DictionaryBatch in Arrow's own File.fbs and Message.fbs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

MAGIC = 6  # bytes of ARROW1 at the end, behind the length of the footer
DICTIONARIES, BATCHES = 2, 3  # fields of Footer
HEADER = 2  # field of Message
DATA = 1  # field of DictionaryBatch
BUFFERS, COMPRESSION = 2, 3  # fields of RecordBatch
CONTINUATION = 0xFFFFFFFF


def unpacked_size(data: bytes) -> int:
    """The bytes that all packed buffers say they unpack to, a part that is listed twice counted twice.

    Raises
    ------
    ValueError
        If the index leads out of the file.
    """
    length = _number(data, "<i", len(data) - MAGIC - 4)
    footer = _root(data, len(data) - MAGIC - 4 - length)
    sizes: dict[tuple[int, int, bool], int] = {}
    total = 0
    for field in (DICTIONARIES, BATCHES):
        for place in _vector(data, footer, field, 24):
            block = (_number(data, "<q", place), _number(data, "<i", place + 8), field == DICTIONARIES)
            if block not in sizes:
                sizes[block] = _of_block(data, *block)
            total += sizes[block]
    return total


def _of_block(data: bytes, offset: int, metadata: int, dictionary: bool) -> int:
    """What the buffers of one part unpack to; 0 if they are not packed."""
    start = offset + (8 if _number(data, "<I", offset) == CONTINUATION else 4)
    batch = _table(data, _root(data, start), HEADER)
    if dictionary and batch is not None:
        batch = _table(data, batch, DATA)
    if batch is None or _table(data, batch, COMPRESSION) is None:
        return 0
    total = 0
    for place in _vector(data, batch, BUFFERS, 16):
        length = _number(data, "<q", place + 8)
        if length:
            size = _number(data, "<q", offset + metadata + _number(data, "<q", place))
            total += length if size == -1 else size  # -1: this one is not packed
            if size < -1 or length < 0:
                raise ValueError("a buffer has a negative size")
    return total


def _number(data: bytes, form: str, place: int) -> int:
    if not 0 <= place <= len(data) - struct.calcsize(form):
        raise ValueError("the index of the file leads out of it")
    return int(struct.unpack_from(form, data, place)[0])


def _root(data: bytes, start: int) -> int:
    """The place of the table that a flatbuffer is."""
    return start + _number(data, "<I", start)


def _field(data: bytes, table: int, field: int) -> int | None:
    """The place of a field of a table; None if it is not there."""
    index = table - _number(data, "<i", table)
    if 4 + 2 * field >= _number(data, "<H", index):
        return None
    offset = _number(data, "<H", index + 4 + 2 * field)
    return table + offset if offset else None


def _table(data: bytes, table: int, field: int) -> int | None:
    """The place of a table that a field refers to."""
    place = _field(data, table, field)
    return None if place is None else place + _number(data, "<I", place)


def _vector(data: bytes, table: int, field: int, width: int) -> Iterator[int]:
    """The places of the entries of a list of structs."""
    start = _table(data, table, field)
    if start is not None:
        for k in range(_number(data, "<I", start)):
            yield start + 4 + k * width
