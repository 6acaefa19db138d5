"""Records counted into the declared cells, at most so many of each unit: every cell gets its count, zero included."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from keepsum._arrays import IntArray
from keepsum._memory import BYTES_A_CELL, check_room
from keepsum._saying import arg, the
from keepsum.errors import DataError
from keepsum.sources.records.connecting import OpenRecords, attempt, check_text_order
from keepsum.sources.records.declaring import (
    MISSING,
    NO_LABEL,
    NOT_A_VALUE,
    NOT_WHOLE,
    OUT_OF_RANGE,
    UNIT_MISSING,
    UNIT_TEXT,
    UNIT_UNUSABLE,
    UNIT_WHOLE,
    CellsOfRecords,
)
from keepsum.sources.records.keys import bin_key, bin_parts, label_key, text_of_key, unit_key
from keepsum.sources.records.opening import check_names, open_records
from keepsum.tables.axes import Axis
from keepsum.tables.table import Table

# At most so many records of each unit, in arrays: less than half the CPU time of a window function.
#
# Where units are whole numbers, a record is one number: its unit, then its cell in the order of labels and bins.
# Sorted, the records of a unit follow each other in that order, and the first of each are counted. Whatever does not
# fit is left to the database, which counts the same records: text units, values that belong to no cell, and numbers
# too large.

MOST_CELLS = 2**24  # of which all are counted at once
LARGEST = 2**63


def bounded_in_arrays(records: Any, cells: CellsOfRecords, run: Callable[[Any], Any]) -> Any:
    """How many of the first records of each unit have each key, as an Arrow table; None if the database must say.

    ``records`` has the column ``unit`` and one key per axis: labels as text, and numbers of bins.
    """
    import pyarrow as pa

    number = _as_number(records["unit"])
    ranked = {f"k{k}": _sorted_labels(cells, name) for k, name in enumerate(cells.domain.axes)}
    sizes = [len(labels) for labels in ranked.values()]
    size = int(np.prod(sizes, dtype=object))
    if number is None or not 0 < size <= MOST_CELLS:
        return None
    fetched = run(_coded(records.mutate(unit=number), ranked, cells))
    units, places = fetched["unit"], fetched["cell"]
    if units.null_count or places.null_count or not len(units):
        return None
    counts = _first_of_each(units.to_numpy(), places.to_numpy(), size, cells.records.changes)
    if counts is None:
        return None
    nonzero = np.flatnonzero(counts)
    groups = dict(zip(ranked, np.unravel_index(nonzero, sizes), strict=True))
    columns = {key: pa.array(ranked[key]).take(pa.array(rank)) for key, rank in groups.items()}
    return pa.table({**columns, "state": np.full(len(nonzero), UNIT_WHOLE), "n": counts[nonzero]})


def _sorted_labels(cells: CellsOfRecords, name: str) -> list[Any]:
    """The keys of an axis in the order in which a database sorts them: labels by their bytes, bins by number."""
    axis = cells.domain.axis(name)
    if name in cells.bins:
        return list(range(len(axis.labels)))
    return sorted({str(label) for label in axis.labels} - {""}, key=str.encode)


def _as_number(unit: Any) -> Any:
    """A unit as a whole number, null where it is not the digits of one; None if its type is another."""
    import ibis

    if unit.type().is_integer():
        return unit
    if not unit.type().is_string():
        return None
    number = unit.try_cast("int64")
    return ibis.cases((number.cast("string") == unit, number))  # 7 and 007 are two units


def _coded(records: Any, ranked: dict[str, list[Any]], cells: CellsOfRecords) -> Any:
    import ibis
    import pyarrow as pa

    cell: Any = ibis.literal(0, type="int64")
    for (key, labels), name in zip(ranked.items(), cells.domain.axes, strict=True):
        if name in cells.bins:
            rank = ibis.cases((records[key] >= 0, records[key]))
        else:
            label, place = f"label_{key}", f"place_{key}"
            known = ibis.memtable(pa.table({label: pa.array(labels, pa.string()), place: range(len(labels))}))
            records = records.left_join(known, records[key] == known[label])
            rank = records[place]
        cell = cell * len(labels) + rank
    return records.select(unit=records["unit"], cell=cell.cast("int32"))


def _first_of_each(units: IntArray, places: IntArray, size: int, most: int) -> IntArray | None:
    """How many of the first records of each unit are in each cell; None if a number would not fit 64 bits."""
    lowest, highest = int(units.min()), int(units.max())
    if lowest < -LARGEST or highest >= LARGEST or (highest - lowest + 1) * size >= LARGEST:
        return None
    records: IntArray = units.astype(np.int64) - lowest
    records *= size
    records += places
    records.sort()
    owners = records // size
    records -= owners * size
    counted = np.ones(len(records), dtype=bool)
    counted[most:] = owners[most:] != owners[:-most]
    return np.bincount(records[counted], minlength=size)


# Records grouped by their keys, where they are: the query that a database answers.

COUNT, UNIT, ROW, STATE, READ = "n", "unit", "place", "state", "read"
MOST_RECORDS = 10**10  # of a database: a view may never come to an end, as a file does


def group_records(opened: OpenRecords, cells: CellsOfRecords) -> Any:
    """How many records there are with each key, as an Arrow table.

    One group more than there are cells is enough: one of those cannot be a cell, and the error says why.
    """
    import ibis

    records = _with_keys(opened, cells)
    if cells.records.unit is not None:
        if opened.dialect == "files":
            groups = bounded_in_arrays(records, cells, opened.run)
            if groups is not None:
                return groups
        if opened.dialect == "sqlite":
            check_text_order(opened.table.get_backend(), opened.name)
        records = _bounded(records, cells, opened.dialect)
    keys = [name for name in records.columns if name != READ]
    numbers = {COUNT: ibis._.count()} | ({READ: ibis._[READ].max()} if READ in records.columns else {})
    groups = opened.run(records.group_by(keys).agg(**numbers).limit(cells.domain.size + 1))
    if opened.dialect != "files":
        _check_end(groups, opened.name)
    return groups


def _check_end(groups: Any, name: str) -> None:
    """Refuse more records than are read of a database."""
    read = max(groups[READ].to_pylist(), default=0) if READ in groups.column_names else sum(groups[COUNT].to_pylist())
    if read > MOST_RECORDS:
        raise DataError(
            f"{name} must have at most {MOST_RECORDS:,} records, but has more. Count a part of them, or correct the "
            f"view if it never comes to an end."
        )


def _with_keys(opened: OpenRecords, cells: CellsOfRecords) -> Any:
    unit, table = cells.records.unit, _up_to_most(opened, cells)
    owner: dict[str, Any] = {}
    if unit is not None:
        owner[UNIT], owner[STATE] = unit_key(table[unit], unit, opened.dialect)
    values = table.select(**_values(table, opened.dialect, cells), **owner)
    keys = {f"k{k}": _key(values, cells, k, name) for k, name in enumerate(cells.domain.axes)}
    return values.select(**keys, **{name: values[name] for name in owner})


def _up_to_most(opened: OpenRecords, cells: CellsOfRecords) -> Any:
    """The records, of a database one more than are allowed: it has no end of its own. Files have."""
    if opened.dialect == "files":
        return opened.table
    unit = cells.records.unit
    return opened.table.select([*cells.domain.axes, *([] if unit is None else [unit])]).limit(MOST_RECORDS + 1)


def _bounded(records: Any, cells: CellsOfRecords, dialect: str) -> Any:
    """The first records of each unit in the order of their keys: no other unit and no order of rows matters."""
    import ibis

    keys = [f"k{k}" for k in range(len(cells.domain.axes))]
    place = ibis.row_number().over(group_by=UNIT, order_by=keys)
    # What is left out is in no group, so that groups do not tell how many records were read.
    read = {} if dialect == "files" else {READ: ibis._.count().over()}
    return records.mutate(**{ROW: place}, **read).filter(ibis._[ROW] < cells.records.changes).drop(UNIT, ROW)


def _values(table: Any, dialect: str, cells: CellsOfRecords) -> dict[str, Any]:
    """What the keys are made from, so that text is parsed once: the key of a label itself, or the parts of a bin's."""
    values: dict[str, Any] = {}
    for k, name in enumerate(cells.domain.axes):
        column = table[name]
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
            f"Column {the.column(unit)} must identify the unit of every record, but is missing in some. Complete it, "
            "or leave those records out."
        )
    if UNIT_UNUSABLE in states or {UNIT_WHOLE, UNIT_TEXT} <= states:
        raise DataError(
            f"Column {the.column(unit)} must hold either text or whole numbers to identify units, but holds others, or "
            "both. Convert it to text or whole numbers."
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
            f"Values of column {the.column(name)} must be numbers or dates like the edges of its bins, but some are "
            "not: whole numbers between whole edges (write 0.0 to cut decimal numbers), finite ones, or dates such as "
            "2020-01-31."
        )
    if (keys == OUT_OF_RANGE).any():
        raise DataError(
            f"Values of column {the.column(name)} must lie in its bins, but some do not. Add edges, or leave an end "
            "open."
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
        f"Values of column {the.column(name)} must not be missing (null, empty or NaN), but some are. Declare a "
        f"category for them {arg.missing:with}, or leave those records out."
    )


def _undeclared(axis: Axis, labels: Sequence[str]) -> DataError:
    if NO_LABEL in labels:
        return DataError(
            f"Values of column {the.column(axis.name)} must be text or whole numbers, but some are binary. Convert "
            "them to text."
        )
    if NOT_WHOLE in labels:
        return DataError(
            f"Values of column {the.column(axis.name)} must be whole numbers, but some are not. Cut the column into "
            f"bins {arg.bins:with}."
        )
    within_parent = "" if axis.parent is None else f" within its {axis.parent.name!r}"
    return DataError(
        f"Values of column {the.column(axis.name)} must be declared categories{within_parent}, but some are not. "
        f"Declare them {arg.domain:with}, or leave those records out."
    )
