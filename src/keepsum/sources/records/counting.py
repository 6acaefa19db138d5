"""Records counted into the declared cells: grouped by the database, then every cell gets its count, zero included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keepsum._arrays import IntArray
from keepsum._memory import BYTES_A_CELL, check_room
from keepsum.errors import DataError
from keepsum.sources.records.columns import check_names
from keepsum.sources.records.declaring import CellsOfRecords
from keepsum.sources.records.failures import attempt
from keepsum.sources.records.grouping import COUNT, STATE, group_records
from keepsum.sources.records.opening import open_records
from keepsum.sources.records.signs import (
    MISSING,
    NO_LABEL,
    NOT_A_VALUE,
    NOT_WHOLE,
    OUT_OF_RANGE,
    UNIT_MISSING,
    UNIT_TEXT,
    UNIT_UNUSABLE,
    UNIT_WHOLE,
)
from keepsum.sources.records.texts import text_of_key
from keepsum.tables.axes import Axis
from keepsum.tables.table import Table


def count_records(source: Any, cells: CellsOfRecords, table: str | None, count: str) -> Table:
    """The table of counts of records."""
    size = cells.domain.size
    check_room(size, f"A table of {size:,} cells", BYTES_A_CELL)
    unit = cells.records.unit
    columns = [*cells.domain.axes, *([] if unit is None else [unit])]
    with open_records(source, table, columns) as opened:
        check_names(opened.table.columns, columns, opened.name)
        groups = attempt(lambda: group_records(opened, cells), opened.name)
    if unit is not None:
        _check_units(set(groups[STATE].to_pylist()), unit)
    index = cells.domain.locate(_codes(groups, cells, opened.dialect))
    if (index < 0).any():
        raise DataError(
            "Records must not be in cells that are declared structural zeros, but some are. Correct the records or the "
            "declaration."
        )
    counts = np.zeros(size, dtype=np.int64)
    np.add.at(counts, index, groups[COUNT].to_numpy().astype(np.int64))
    return Table(cells.domain, counts, count, records=cells.records)


def _check_units(states: set[int], unit: str) -> None:
    """Refuse units that are not identified, or in two ways: the number 1 and the text 1 may be one person or two."""
    if UNIT_MISSING in states:
        raise DataError(
            f"Column {unit!r} must identify the unit of every record, but is missing in some. Complete it, or leave "
            f"those records out."
        )
    if UNIT_UNUSABLE in states or {UNIT_WHOLE, UNIT_TEXT} <= states:
        raise DataError(
            f"Column {unit!r} must hold either text or whole numbers to identify units, but holds others, or both. "
            f"Convert it to text or whole numbers."
        )


# -- from keys to cells -----------------------------------------------------------------------------


def _codes(groups: Any, cells: CellsOfRecords, dialect: str) -> Mapping[str, IntArray]:
    codes: dict[str, IntArray] = {}
    for k, name in enumerate(cells.domain.axes):
        axis = cells.domain.axis(name)
        if name in cells.bins:
            codes[name] = _bin_codes(groups[f"k{k}"].to_numpy().astype(np.int64), name)
        else:
            parents = None if axis.parent is None else codes[axis.parent.name]
            codes[name] = _label_codes(groups[f"k{k}"], axis, parents, dialect)
    return codes


def _bin_codes(keys: IntArray, name: str) -> IntArray:
    if (keys == MISSING).any():
        raise _missing(name)
    if (keys == NOT_A_VALUE).any():
        raise DataError(
            f"Values of column {name!r} must be numbers or dates like the edges of its bins, but some are not: whole "
            f"numbers between whole edges (write 0.0 to cut decimal numbers), finite ones, or dates such as 2020-01-31."
        )
    if (keys == OUT_OF_RANGE).any():
        raise DataError(
            f"Values of column {name!r} must lie in its bins, but some do not. Add edges, or leave an end open."
        )
    return keys


def _label_codes(keys: Any, axis: Axis, parents: IntArray | None, dialect: str) -> IntArray:
    """The code of each label, found once per distinct label (and parent)."""
    encoded = keys.combine_chunks().dictionary_encode()
    distinct = [text_of_key(key, dialect) for key in encoded.dictionary.to_pylist()]
    place = encoded.indices.to_numpy().astype(np.int64)
    if "" in distinct:
        raise _missing(axis.name)
    codes: IntArray
    if parents is None:
        lookup: dict[Any, int] = {str(label): code for label, code in axis.lookup().items()}
        codes = np.array([lookup.get(label, -1) for label in distinct], dtype=np.int64)[place]
    else:
        lookup = {(parent, str(label)): code for (parent, label), code in axis.lookup().items()}
        pairs = zip(parents.tolist(), place.tolist(), strict=True)
        codes = np.array([lookup.get((parent, distinct[label]), -1) for parent, label in pairs], dtype=np.int64)
    if (codes < 0).any():
        raise _undeclared(axis, distinct)
    return codes


def _missing(name: str) -> DataError:
    return DataError(
        f"Values of column {name!r} must not be missing (null, empty or NaN), but some are. Declare a category for "
        f"them with missing=, or leave those records out."
    )


def _undeclared(axis: Axis, labels: Sequence[str]) -> DataError:
    if NO_LABEL in labels:
        return DataError(
            f"Values of column {axis.name!r} must be text or whole numbers, but some are binary. Convert them to text."
        )
    if NOT_WHOLE in labels:
        return DataError(
            f"Values of column {axis.name!r} must be whole numbers, but some are not. Cut the column into bins with "
            f"bins=."
        )
    within_parent = "" if axis.parent is None else f" within its {axis.parent.name!r}"
    return DataError(
        f"Values of column {axis.name!r} must be declared categories{within_parent}, but some are not. Declare them "
        f"with domain=, or leave those records out."
    )
