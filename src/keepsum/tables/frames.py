"""Domains with counts as columns and as data frames: the same for confidential and for released tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from keepsum._arguments import check_text
from keepsum._arrays import IntArray
from keepsum._text import given, type_of
from keepsum.errors import DataError, InputError
from keepsum.tables.axes import Label
from keepsum.tables.domain import Domain
from keepsum.tables.origins import Frame, Origin


class CountedTable(Protocol):
    """A count for every cell of a domain."""

    @property
    def domain(self) -> Domain:
        """The cells."""

    @property
    def counts(self) -> IntArray:
        """One count per cell."""

    @property
    def count(self) -> str:
        """The name of the column of counts."""

    @property
    def origin(self) -> Origin | None:
        """What it came as."""

    @property
    def rows(self) -> IntArray | None:
        """The cell of each row, if their order is public; else cells in order."""


def check_counted(table: CountedTable) -> None:
    """The parts of a table must fit each other."""
    if not isinstance(table.domain, Domain):
        raise DataError(f"A table must have a Domain, got {type_of(table.domain)}. Use from_array.")
    is_int64 = isinstance(table.counts, np.ndarray) and table.counts.dtype == np.int64
    if not is_int64 or table.counts.shape != (table.domain.size,):
        raise DataError(f"Counts must be a flat array of {table.domain.size:,} 64-bit integers. Use from_array.")
    if check_text(table.count, "The name of the count column") in table.domain.axes:
        raise DataError(f"The count column must not have the name of an axis, got {table.count!r}.")


def column_order(table: CountedTable) -> list[str]:
    """The axes and the count, in the order in which the table came."""
    columns = [*table.domain.axes, table.count]
    return [name for name in table.origin.columns if name in columns] if table.origin is not None else columns


def columns_of(table: CountedTable) -> dict[str, list[Any]]:
    """The labels and the counts of every cell, column by column, in the order of a release."""
    columns: dict[str, list[Any]] = {}
    for name in column_order(table):
        if name == table.count:
            columns[name] = in_rows(table, table.counts).tolist()
        else:
            labels = table.domain.axis(name).labels
            columns[name] = [labels[code] for code in in_rows(table, table.domain.codes(name)).tolist()]
    return columns


def in_rows(table: CountedTable, values: IntArray) -> IntArray:
    """Values of cells, in the order of the table's rows."""
    return values if table.rows is None else values[table.rows]


def frame_of(table: CountedTable, backend: str | None = None) -> Any:
    """All cells and counts as a data frame of the kind that the table came as, or of the kind named."""
    import narwhals as nw

    origin = table.origin if isinstance(table.origin, Frame) else None
    wanted = backend if backend is not None else origin.backend if origin else None
    if wanted is None:
        raise InputError(
            "The library must be named for a table that did not come from a data frame. "
            "Call to_frame('pandas'), for example."
        )
    if not isinstance(wanted, str) or wanted not in ("pandas", "polars", "pyarrow", "modin", "cudf"):
        raise InputError(f"The library must be 'pandas', 'polars' or 'pyarrow', got {given(wanted)}.")
    frame = nw.from_dict(columns_of(table), backend=nw.Implementation.from_backend(wanted))  # type: ignore[arg-type]
    if origin is not None and wanted == origin.backend:
        for name in table.domain.axes:
            frame = _cast(frame, name, origin.dtypes[name], table.domain.axis(name).labels)
    return frame.to_native()


def _cast(frame: Any, name: str, dtype: Any, labels: Sequence[Label]) -> Any:
    """The labels in their original type, unless it is of another kind or cannot represent one of them.

    The codes of polars' Categorical depend on the order in which the process first saw a label, but no file has them.
    Counts never get their original type: whoever chose it may have looked at them, so it could reveal how large they
    are.
    """
    import narwhals as nw

    if isinstance(dtype, nw.Enum):
        dtype = nw.Enum(_distinct_texts(labels))  # with the categories and the order of the domain, not of the frame
    elif not (dtype.is_integer() if isinstance(labels[0], int) else dtype in (nw.String, nw.Categorical)):
        return frame
    try:
        changed = frame.with_columns(nw.col(name).cast(dtype))
        # Some libraries silently wrap or round values that do not fit.
        return changed if changed[name].to_list() == frame[name].to_list() else frame
    except Exception:
        return frame


def _distinct_texts(labels: Sequence[Label]) -> list[str]:
    """Distinct labels as text; the same label may occur under several parents."""
    return list(dict.fromkeys(map(str, labels)))
