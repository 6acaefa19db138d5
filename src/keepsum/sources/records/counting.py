"""Records counted into the declared cells: grouped by the database, then every cell gets its count, zero included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from keepsum._arrays import IntArray
from keepsum._memory import BYTES_A_CELL, check_room
from keepsum._text import shown_name, shown_names
from keepsum.errors import DataError
from keepsum.sources.records.declaring import CellsOfRecords
from keepsum.sources.records.failures import attempt
from keepsum.sources.records.keys import (
    MISSING,
    NOT_A_VALUE,
    NOT_WHOLE,
    OUT_OF_RANGE,
    bin_key,
    bin_parts,
    label_key,
    text_of_key,
    unit_key,
)
from keepsum.sources.records.opening import OpenRecords, open_records
from keepsum.tables.axes import Axis
from keepsum.tables.table import Table

COUNT, UNIT, ROW, NO_UNIT = "n", "unit", "place", "no_unit"


def count_records(source: Any, cells: CellsOfRecords, table: str | None, count: str) -> Table:
    """The table of counts of records."""
    size = cells.domain.size
    check_room(size, f"A table of {size:,} cells", BYTES_A_CELL)
    unit = cells.records.unit
    columns = [*cells.domain.axes, *([] if unit is None else [unit])]
    with open_records(source, table, columns) as opened:
        _check_columns(opened, columns)
        groups = attempt(lambda: opened.run(_grouped(opened, cells)), opened.name)
    if unit is not None and any(groups[NO_UNIT].to_pylist()):
        raise DataError(
            f"Column {unit!r} must identify the unit of every record, but is missing in some. Complete it, or leave "
            f"those records out."
        )
    index = cells.domain.locate(_codes(groups, cells, opened.dialect))
    if (index < 0).any():
        raise DataError(
            "Records must not be in cells that are declared structural zeros, but some are. Correct the records or the "
            "declaration."
        )
    counts = np.zeros(size, dtype=np.int64)
    np.add.at(counts, index, groups[COUNT].to_numpy().astype(np.int64))
    return Table(cells.domain, counts, count, records=cells.records)


def _check_columns(opened: OpenRecords, columns: list[str]) -> None:
    names = opened.table.columns
    absent = [name for name in columns if name not in names]
    if absent:
        known = shown_names(names)
        choices = "" if known == "others" else f" Its columns are {known}."
        raise DataError(f"{opened.name} must have a column {shown_name(absent[0])}, but has none.{choices}")
    times = Counter(name.casefold() for name in names)
    alike = next((name for name in columns if times[name.casefold()] > 1), None)
    if alike is not None:  # a database that ignores case would read one for the other, and bound the wrong unit
        raise DataError(
            f"{opened.name} must not have columns whose names differ only in case, but two are named {alike!r} but for "
            f"that. Rename one."
        )


def _grouped(opened: OpenRecords, cells: CellsOfRecords) -> Any:
    """How many records there are with each key.

    One group more than there are cells is enough: one of those cannot be a cell, and the error says why.
    """
    import ibis

    unit = cells.records.unit
    owner: dict[str, Any] = {}
    if unit is not None:
        owner[UNIT], owner[NO_UNIT] = unit_key(opened.table[unit], unit, opened.dialect)
    values = opened.table.select(**_values(opened, cells), **owner)
    keys = {f"k{k}": _key(values, cells, k, name) for k, name in enumerate(cells.domain.axes)}
    records = values.select(**keys, **{name: values[name] for name in owner})
    if unit is not None:
        # The first records of each unit in the order of their keys: no other unit and no order of rows matters.
        place = ibis.row_number().over(group_by=UNIT, order_by=list(keys))
        records = records.mutate(**{ROW: place}).filter(ibis._[ROW] < cells.records.changes).drop(UNIT, ROW)
    return records.group_by(records.columns).agg(**{COUNT: ibis._.count()}).limit(cells.domain.size + 1)


def _values(opened: OpenRecords, cells: CellsOfRecords) -> dict[str, Any]:
    """What the keys are made from, so that text is parsed once: the key of a label itself, or the parts of a bin's."""
    values: dict[str, Any] = {}
    for k, name in enumerate(cells.domain.axes):
        column, dialect = opened.table[name], opened.dialect
        if name in cells.bins:
            values |= zip(_parts(k), bin_parts(column, name, dialect, cells.bins[name]), strict=True)
        else:
            values[f"k{k}"] = label_key(column, name, dialect, cells.domain.axis(name).labels, cells.missing.get(name))
    return values


def _parts(k: int) -> tuple[str, str, str]:
    return f"absent{k}", f"usable{k}", f"value{k}"


def _key(values: Any, cells: CellsOfRecords, k: int, name: str) -> Any:
    if name not in cells.bins:
        return values[f"k{k}"]
    absent, usable, value = (values[part] for part in _parts(k))
    return bin_key(absent, usable, value, cells.bins[name], name in cells.missing)


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
        raise _undeclared(axis, NOT_WHOLE in distinct)
    return codes


def _missing(name: str) -> DataError:
    return DataError(
        f"Values of column {name!r} must not be missing (null, empty or NaN), but some are. Declare a category for "
        f"them with missing=, or leave those records out."
    )


def _undeclared(axis: Axis, not_whole: bool) -> DataError:
    if not_whole:
        return DataError(
            f"Values of column {axis.name!r} must be whole numbers, but some are not. Cut the column into bins with "
            f"bins=."
        )
    within_parent = "" if axis.parent is None else f" within its {axis.parent.name!r}"
    return DataError(
        f"Values of column {axis.name!r} must be declared categories{within_parent}, but some are not. Declare them "
        f"with domain=, or leave those records out."
    )
