"""At most so many records of each unit, in arrays: less than half the CPU time of a window function.

Where units are whole numbers, a record is one number: its unit, then its cell in the order of labels and bins. Sorted,
the records of a unit follow each other in that order, and the first of each are counted. Whatever does not fit is left
to the database, which counts the same records: text units, values that belong to no cell, and numbers too large.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from keepsum._arrays import IntArray
from keepsum.sources.records.declaring import CellsOfRecords
from keepsum.sources.records.signs import UNIT_WHOLE

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
    """The unit and the cell of every record; null if it has none."""
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
