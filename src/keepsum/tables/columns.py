"""Columns of untrusted Parquet and Arrow files: size-checked before they are decoded, validated before use."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from keepsum._extras import missing
from keepsum._memory import BYTES_A_CELL, check_room
from keepsum._saying import the
from keepsum.errors import DataError, InputError, KeepsumError
from keepsum.tables.origins import INDEX, Frame
from keepsum.tables.source import Coded, Source

# The size to which the compressed buffers of an Arrow file claim to expand, read without expanding any.
#
# A kilobyte of zstd can expand to thirty megabytes, and pyarrow allocates whatever a file claims. The layout is that
# of Footer, Block, Message, RecordBatch and DictionaryBatch in Arrow's File.fbs and Message.fbs.

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


# A bad offset in an Arrow buffer can crash the reader or make it read foreign memory; a few bytes can expand to
# millions of rows, or to a long text in each of them. So the number of rows is checked first, columns are decoded one
# at a time when they are needed, each is validated in full, and equal texts share one object.

PARQUET, ARROW = b"PAR1", b"ARROW1"


def is_columnar(data: bytes) -> bool:
    """Whether these are the first bytes of a Parquet or an Arrow file."""
    return data.startswith((PARQUET, ARROW))


def columnar_source(data: bytes, name: str) -> tuple[Source, Frame]:
    """The columns of a Parquet or Arrow file, and its origin."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError(missing(f"Reading {name!r}", "parquet", "pyarrow", instead="Convert it to CSV")) from None
    file = "parquet" if data.startswith(PARQUET) else "arrow"
    opened = _attempt(lambda: _parquet(data, name) if file == "parquet" else _arrow(data, name))
    if opened is None:
        raise _unreadable(name)
    schema, rows, read_column = opened
    types = _attempt(lambda: _column_types(schema))
    if types is None:
        raise _unreadable(name)

    def validated(column_name: str) -> Any:
        column = _attempt(lambda: read_column(column_name))
        if column is None or len(column) != rows or not _is_valid(column):
            raise _unreadable(name)
        return column

    source = Source(
        names=tuple(types),
        labels=cache(lambda column_name: coded(validated(column_name), column_name)),
        counts=lambda column_name: _counts(validated(column_name), column_name),
        where=lambda row: f"row {row + 1}",
        whole=lambda column_name: types[column_name].is_integer(),
        height=rows,
    )
    return source, Frame("pyarrow", source.names, types, file)


def check_frame(frame: Any) -> None:
    """Refuse a frame with invalid Arrow buffers."""
    if not all(map(_is_valid, _arrow_columns(frame))):
        raise InputError("Columns of the frame must be valid Arrow data, but one has offsets or indices out of range.")


def _arrow_columns(frame: Any) -> Iterator[Any]:
    """The columns of a frame that are Arrow data: all of a pyarrow table, and the Arrow-backed ones of pandas."""
    library = type(frame).__module__.partition(".")[0]
    if library == "pyarrow":
        yield from frame.columns
    elif library == "pandas":
        for place, dtype in enumerate(frame.dtypes):
            if hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", None) == "pyarrow":
                yield frame.iloc[:, place].array.__arrow_array__()


def _attempt(step: Callable[[], Any]) -> Any:
    """The result of a step, or None if it fails: a forged file may cause any error in the libraries that read it."""
    try:
        return step()
    except KeepsumError:
        raise
    except Exception:
        return None


def _is_valid(column: Any) -> bool:
    return _attempt(lambda: column.validate(full=True) or True) is True


def _unreadable(name: str) -> DataError:
    return DataError(f"File {the.file(name)} must be a complete Parquet or Arrow file, but it cannot be read as one.")


def _check_rows(rows: int, name: str) -> None:
    check_room(rows, f"File {name!r} with {rows:,} rows, one per cell,", BYTES_A_CELL)


def _parquet(data: bytes, name: str) -> tuple[Any, int, Callable[[str], Any]]:
    """Schema, number of rows, and a function that decodes a column; text columns stay dictionary-encoded."""
    import pyarrow
    from pyarrow import parquet

    types = pyarrow.types
    schema = parquet.read_schema(pyarrow.BufferReader(data))
    texts = [field.name for field in schema if types.is_large_string(field.type) or types.is_string(field.type)]
    opened = parquet.ParquetFile(pyarrow.BufferReader(data), read_dictionary=texts)
    rows: int = opened.metadata.num_rows
    groups = [opened.metadata.row_group(k).num_rows for k in range(opened.metadata.num_row_groups)]
    if min([rows, *groups]) < 0 or sum(groups) != rows:
        raise _unreadable(name)
    _check_rows(rows, name)

    def column(column_name: str) -> Any:
        _check_type(schema.field(column_name).type, column_name)
        table = opened.read(columns=[column_name])
        return table.column(table.schema.get_field_index(column_name))

    return schema, rows, column


def _arrow(data: bytes, name: str) -> tuple[Any, int, Callable[[str], Any]]:
    """The same for an Arrow file, whose record batches are decoded together."""
    import pyarrow

    check_room(unpacked_size(data), f"File {name!r}, unpacked,", 1)
    opened = pyarrow.ipc.open_file(data)
    batches = []
    rows = checked = 0
    for k in range(opened.num_record_batches):
        batches.append(opened.get_batch(k))
        rows += batches[-1].num_rows
        if rows > 2 * checked:  # a forged index may list one batch many times
            _check_rows(rows, name)
            checked = rows
    table = pyarrow.Table.from_batches(batches, opened.schema)

    def column(column_name: str) -> Any:
        _check_type(table.schema.field(column_name).type, column_name)
        return table.column(column_name)

    return opened.schema, rows, column


def _check_type(column_type: Any, column: str) -> None:
    """Refuse lists, bytes and the like: they are neither labels nor counts, and a few bytes may expand to very many."""
    from pyarrow import types

    value_type = column_type.value_type if types.is_dictionary(column_type) else column_type
    numbers = types.is_primitive(value_type) or types.is_decimal(value_type)
    if not (_is_text(value_type) or types.is_null(value_type) or numbers):
        raise DataError(f"Column {the.column(column)} must contain text or numbers, got another type. Leave it out.")


def _is_text(column_type: Any) -> bool:
    """Whether a column contains text; polars writes views of it, which may all be of one long text."""
    from pyarrow import types

    return bool(types.is_string(column_type) or types.is_large_string(column_type) or types.is_string_view(column_type))


def _column_types(schema: Any) -> dict[str, Any]:
    import narwhals as nw

    if len(set(schema.names)) < len(schema.names):
        raise DataError("Columns of the file must have different names, got one twice.")
    columns = nw.from_native(schema.empty_table(), eager_only=True).schema
    return {name: column_type for name, column_type in columns.items() if not INDEX.fullmatch(name)}


def values_of(series: Any, name: str) -> list[Any]:
    """The values of a column of any data frame; refuses times that Python has not, because they would be cut off."""
    import narwhals as nw

    dtype = series.dtype
    in_nanoseconds = isinstance(dtype, nw.Datetime) and dtype.time_unit == "ns"
    if not (in_nanoseconds and (series.dt.nanosecond() % 1000 != 0).any()):
        try:
            return list(series.to_list())
        except (ValueError, OverflowError):  # without pandas Arrow does not cut them off
            pass
        except BaseException as problem:  # polars panics
            if type(problem).__name__ != "PanicException":
                raise
    raise DataError(
        f"Times in column {the.column(name)} must be whole microseconds of the years 1 to 9999, but one is not. "
        "Convert them to text."
    )


def coded(column: Any, name: str = "") -> Coded:
    """An Arrow column as labels and codes, with None for a missing value."""
    import narwhals as nw
    import pyarrow
    from pyarrow import types

    def values_in(array: Any) -> list[Any]:
        return values_of(nw.from_native(array, series_only=True), name)

    column = column if isinstance(column, pyarrow.ChunkedArray) else pyarrow.chunked_array([column])
    is_encodable = _is_text(column.type) or types.is_dictionary(column.type) or types.is_integer(column.type)
    if not len(column) or not is_encodable:
        return Coded.of(values_in(column))
    if not types.is_dictionary(column.type):  # values in the order of their first rows
        encoded = column.dictionary_encode().combine_chunks()
        values = encoded.dictionary.to_pylist()
        if not encoded.null_count:
            return Coded(values, encoded.indices.to_numpy())
    else:
        encoded = column.unify_dictionaries().combine_chunks()
        values = values_in(pyarrow.chunked_array([encoded.dictionary]))
        if not encoded.null_count and None not in values and len(set(values)) == len(values):
            return Coded.from_codes(values, encoded.indices.to_numpy())
    different = Coded.of([*values, None])  # a forged dictionary has a value twice
    codes = encoded.indices.cast("int64").fill_null(len(values)).to_numpy()
    return Coded.from_codes(different.values, different.codes[codes])


def _counts(column: Any, name: str) -> Any:
    from pyarrow import types

    is_machine = types.is_integer(column.type) or types.is_float64(column.type)
    return column.to_numpy() if is_machine and not column.null_count else coded(column, name).to_list()
