"""Columns of Parquet and Arrow files that nobody vouches for: bounded before they are decoded, validated before use.

A bad offset in an Arrow buffer makes whoever follows it crash, or read memory that is not its own; a few bytes can
stand for millions of rows, or for a long text in each of them. So the number of rows is looked at first, columns are
decoded one by one when they are asked for, each is validated in full, and equal texts are one object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from keepsum._memory import BYTES_A_CELL, check_room
from keepsum.errors import DataError, InputError
from keepsum.tables.cells import Source
from keepsum.tables.origins import INDEX, Frame
from keepsum.tables.unpacking import unpacked_size

PARQUET, ARROW = b"PAR1", b"ARROW1"


def is_columnar(data: bytes) -> bool:
    """Whether these are the first bytes of a Parquet or an Arrow file."""
    return data.startswith((PARQUET, ARROW))


def columnar_source(data: bytes, name: str) -> tuple[Source, Frame]:
    """The columns of a Parquet or an Arrow file, and what it was."""
    _need_pyarrow(name)
    file = "parquet" if data.startswith(PARQUET) else "arrow"
    opened = _done(lambda: _parquet(data, name) if file == "parquet" else _arrow(data, name))
    if opened is None:
        raise _unreadable(name)
    schema, rows, column = opened
    described = _done(lambda: _described(schema))
    if described is None:
        raise _unreadable(name)

    def checked(column_name: str) -> Any:
        found = _done(lambda: column(column_name))
        if found is None or len(found) != rows or not _is_valid(found):
            raise _unreadable(name)
        return found

    source = Source(
        names=tuple(described),
        labels=lambda column_name: _shared(checked(column_name)),
        counts=lambda column_name: _counts(checked(column_name)),
        where=lambda row: f"row {row + 1}",
        whole=lambda column_name: described[column_name].is_integer(),
        height=rows,
    )
    return source, Frame("pyarrow", source.names, described, file)


def check_frame(frame: Any) -> None:
    """Refuse a frame over Arrow buffers that do not hold what they say."""
    if not all(map(_is_valid, _arrow_columns(frame))):
        raise InputError("Columns of the frame must be valid Arrow data, one has offsets or indices that lead astray.")


def _arrow_columns(frame: Any) -> Iterator[Any]:
    """The columns of a frame that are Arrow data: all of pyarrow's, and those of pandas that say so."""
    home = type(frame).__module__.partition(".")[0]
    if home == "pyarrow":
        yield from frame.columns
    elif home == "pandas":
        for place, dtype in enumerate(frame.dtypes):
            if hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", None) == "pyarrow":
                yield frame.iloc[:, place].array.__arrow_array__()


def _done(step: Callable[[], Any]) -> Any:
    """What a step gives, or None: of a forged file anything may be wrong, in any of the libraries that read it."""
    try:
        return step()
    except DataError:
        raise
    except Exception:
        return None


def _is_valid(column: Any) -> bool:
    return _done(lambda: column.validate(full=True) or True) is True


def _unreadable(name: str) -> DataError:
    return DataError(f"File {name!r} must be a whole Parquet or Arrow file, but it cannot be read as one.")


def _check_rows(rows: int, name: str) -> None:
    check_room(rows, f"File {name!r} with {rows:,} rows, one for each cell,", BYTES_A_CELL)


def _parquet(data: bytes, name: str) -> tuple[Any, int, Callable[[str], Any]]:
    """Schema, number of rows, and how to decode a column; texts stay the codes that they are in the file."""
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
        _refuse_other(schema.field(column_name).type, column_name)
        found = opened.read(columns=[column_name])
        return found.column(found.schema.get_field_index(column_name))

    return schema, rows, column


def _arrow(data: bytes, name: str) -> tuple[Any, int, Callable[[str], Any]]:
    """The same of an Arrow file, whose parts are decoded together."""
    import pyarrow

    check_room(unpacked_size(data), f"File {name!r}, unpacked,", 1)
    opened = pyarrow.ipc.open_file(data)
    batches = []
    rows = checked = 0
    for k in range(opened.num_record_batches):
        batches.append(opened.get_batch(k))
        rows += batches[-1].num_rows
        if rows > 2 * checked:  # a part may be listed many times over
            _check_rows(rows, name)
            checked = rows
    table = pyarrow.Table.from_batches(batches, opened.schema)

    def column(column_name: str) -> Any:
        _refuse_other(table.schema.field(column_name).type, column_name)
        return table.column(column_name)

    return opened.schema, rows, column


def _refuse_other(kind: Any, column: str) -> None:
    """Lists, bytes and the like are neither labels nor counts, and a few of them may stand for very many."""
    from pyarrow import types

    held = kind.value_type if types.is_dictionary(kind) else kind
    if not (types.is_string(held) or types.is_large_string(held) or types.is_null(held)) and not (
        types.is_primitive(held) or types.is_decimal(held)
    ):
        raise DataError(f"Column {column!r} must hold text or numbers, it holds something else. Drop it.")


def _described(schema: Any) -> dict[str, Any]:
    """The columns and their types, as they are written again."""
    import narwhals as nw

    names = list(schema.names)
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise DataError("Columns of the file must have different names, got one twice.")
    columns = nw.from_native(schema.empty_table(), eager_only=True).schema
    return {name: kind for name, kind in columns.items() if not INDEX.fullmatch(name)}


def _shared(column: Any) -> list[Any]:
    """The values of a column, equal texts being one object; None where one is missing."""
    from pyarrow import types

    kind = column.type
    if not (types.is_dictionary(kind) or types.is_string(kind) or types.is_large_string(kind)):
        return list(column.to_pylist())
    if not len(column):
        return []
    coded = column if types.is_dictionary(kind) else column.dictionary_encode()
    whole = coded.unify_dictionaries().combine_chunks()
    values = [*whole.dictionary.to_pylist(), None]
    return [values[code] for code in whole.indices.cast("int64").fill_null(-1).to_pylist()]


def _counts(column: Any) -> Any:
    """Machine numbers as an array, anything else as a list."""
    from pyarrow import types

    plain = types.is_integer(column.type) or types.is_float64(column.type)
    return column.to_numpy() if plain and not column.null_count else _shared(column)


def _need_pyarrow(name: str) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError(
            f"Reading {name!r} needs pyarrow, which is not installed. Install keepsum[cli], or convert it to CSV."
        ) from None
