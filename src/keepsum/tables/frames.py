"""Domains with counts as columns and as data frames: the same for confidential and for released tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keepsum._arrays import IntArray
from keepsum._text import given
from keepsum.errors import InputError
from keepsum.tables.axes import Label
from keepsum.tables.counted import CountedTable
from keepsum.tables.domain import Domain
from keepsum.tables.layout import Layout, fresh_name, layout_of
from keepsum.tables.origins import Frame, Origin


def columns_of(table: CountedTable, layout: Layout | None = None, most: int | None = None) -> dict[str, list[Any]]:
    """The labels and the counts of every cell, column by column, in the order of a release; of so many rows at most."""
    layout = layout_of(table) if layout is None else layout
    columns: dict[str, list[Any]] = {}
    for name in layout.names:
        if name in layout.counts:
            columns[name] = table.counts[layout.cells(name, table.domain.size)][:most].tolist()
        else:
            values, codes = layout.labels[name]
            rows = codes if layout.rows is None else codes[layout.rows]
            columns[name] = [values[code] for code in rows[:most].tolist()]
    return columns


def frame_of(table: CountedTable, backend: str | None = None, layout: Layout | None = None) -> Any:
    """All cells and counts as a data frame of the kind that the table came as, or of the kind named."""
    layout = layout_of(table) if layout is None else layout
    return _framed(columns_of(table, layout), {n: v for n, (v, _) in layout.labels.items()}, table.origin, backend)


def frame_with(
    domain: Domain, numbers: Mapping[str, IntArray], origin: Origin | None = None, backend: str | None = None
) -> Any:
    """All cells with numbers for each, in columns of their own: a frame of the kind of the origin, or as named."""
    columns: dict[str, list[Any]] = {}
    labels: dict[str, Sequence[Label]] = {}
    for name in domain.axes:
        labels[name] = domain.axis(name).labels
        columns[name] = [labels[name][code] for code in domain.codes(name).tolist()]
    for name, values in numbers.items():
        columns[fresh_name(name, columns)] = values.tolist()
    return _framed(columns, labels, origin, backend)


def _framed(
    columns: dict[str, list[Any]], labels: Mapping[str, Sequence[Label]], source: Origin | None, backend: str | None
) -> Any:
    import narwhals as nw

    origin = source if isinstance(source, Frame) else None
    wanted = backend if backend is not None else origin.backend if origin else None
    if wanted is None:
        raise InputError(
            "The library must be named for a table that did not come from a data frame. "
            "Call to_frame('pandas'), for example."
        )
    if not isinstance(wanted, str) or wanted not in ("pandas", "polars", "pyarrow", "modin", "cudf"):
        raise InputError(f"The library must be 'pandas', 'polars' or 'pyarrow', got {given(wanted)}.")
    try:
        frame = nw.from_dict(columns, backend=nw.Implementation.from_backend(wanted))  # type: ignore[arg-type]
    except ModuleNotFoundError:
        raise InputError(
            f"A frame of {wanted} needs {wanted}, which is not installed. Install it with: pip install {wanted}"
        ) from None
    if origin is not None and wanted == origin.backend:
        for name, values in labels.items():
            frame = _cast(frame, name, origin.dtypes[name], values) if name in origin.dtypes else frame
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
