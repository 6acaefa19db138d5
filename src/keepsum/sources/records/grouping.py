"""Records grouped by their keys, where they are: the query that a database answers."""

from __future__ import annotations

from typing import Any

from keepsum.errors import DataError
from keepsum.sources.records.bounding import bounded_in_arrays
from keepsum.sources.records.declaring import CellsOfRecords
from keepsum.sources.records.keys import bin_key, bin_parts, label_key, unit_key
from keepsum.sources.records.opened import OpenRecords
from keepsum.sources.records.sqlite_files import check_text_order

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
    """One key per axis, and what identifies the unit."""
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
