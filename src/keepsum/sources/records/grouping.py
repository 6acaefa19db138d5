"""Records grouped by their keys, where they are: the query that a database answers."""

from __future__ import annotations

from typing import Any

from keepsum.sources.records.bounding import bounded_in_arrays
from keepsum.sources.records.declaring import CellsOfRecords
from keepsum.sources.records.keys import bin_key, bin_parts, label_key, unit_key
from keepsum.sources.records.opened import OpenRecords
from keepsum.sources.records.sqlite_files import check_text_order

COUNT, UNIT, ROW, STATE = "n", "unit", "place", "state"


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
        records = _bounded(records, cells)
    counted = records.group_by(records.columns).agg(**{COUNT: ibis._.count()})
    return opened.run(counted.limit(cells.domain.size + 1))


def _with_keys(opened: OpenRecords, cells: CellsOfRecords) -> Any:
    """One key per axis, and what identifies the unit."""
    unit = cells.records.unit
    owner: dict[str, Any] = {}
    if unit is not None:
        owner[UNIT], owner[STATE] = unit_key(opened.table[unit], unit, opened.dialect)
    values = opened.table.select(**_values(opened, cells), **owner)
    keys = {f"k{k}": _key(values, cells, k, name) for k, name in enumerate(cells.domain.axes)}
    return values.select(**keys, **{name: values[name] for name in owner})


def _bounded(records: Any, cells: CellsOfRecords) -> Any:
    """The first records of each unit in the order of their keys: no other unit and no order of rows matters."""
    import ibis

    keys = [f"k{k}" for k in range(len(cells.domain.axes))]
    place = ibis.row_number().over(group_by=UNIT, order_by=keys)
    return records.mutate(**{ROW: place}).filter(ibis._[ROW] < cells.records.changes).drop(UNIT, ROW)


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
