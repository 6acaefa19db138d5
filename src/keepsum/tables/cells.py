"""From columns of labels and counts to the cells of a domain, with a check for everything that can be wrong.

Messages name the row and the column, never a count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

import numpy as np

from keepsum._arguments import plain_text
from keepsum._arrays import IntArray, Integers
from keepsum._memory import BYTES_A_CELL, check_room
from keepsum._text import shown_name, type_of
from keepsum.errors import DataError, DomainError, InputError
from keepsum.lattice.matrix import INT64_MAX
from keepsum.tables.axes import Axis, group_families, quoted
from keepsum.tables.coded import Coded, combined
from keepsum.tables.counts import is_missing
from keepsum.tables.domain import Domain
from keepsum.tables.findings import BlankTotals, refuse
from keepsum.tables.labels import as_declared, natural_order
from keepsum.tables.source import with_parents
from keepsum.tables.total_labels import is_total

LONGEST_LABEL = 10_000


@dataclass(frozen=True)
class Arranged:
    """The counts of every cell of a domain.

    Attributes
    ----------
    domain, counts
        The cells and their counts.
    rows
        The cell of each row, if the order of the rows is public.
    taken
        The axes whose categories were taken from the data.
    columns
        The labels of each row, in the types of the domain.
    """

    domain: Domain
    counts: IntArray
    rows: IntArray | None
    taken: list[str]
    columns: Mapping[str, Coded]


def arrange(
    columns: Mapping[str, Coded],
    counts: IntArray,
    within: Mapping[str, str],
    declared: Domain | Mapping[str, Any],
    where: Callable[[int], str],
    keep_order: bool,
) -> Arranged:
    """Put every row into its cell, with the domain declared or taken from the data.

    The order of the rows, and which zero cells have a row, have no influence unless the order of the rows is public. In
    that case every cell must have a row, because which cells lack one is not public.
    """
    if isinstance(declared, Domain):
        columns = {name: _as_declared(column, declared.axis(name).labels) for name, column in columns.items()}
        domain, taken = declared, list[str]()
    else:
        columns = {name: _as_declared(column, declared.get(name)) for name, column in columns.items()}
        domain, taken = domain_from(columns, within, declared, keep_order)
    check_room(domain.size, f"A table of {domain.size:,} cells", BYTES_A_CELL)
    index = locate(columns, counts, domain, where)
    rows = index[index >= 0] if keep_order else None
    if rows is not None and len(rows) < domain.size:
        raise DataError(
            "Every cell must have a row if the order of the rows is kept, but some have none. Add rows with a count "
            "of 0, or leave out keep_order=True."
        )
    return Arranged(domain, cells_of(index, counts, domain.size), rows, taken, columns)


def _as_declared(column: Coded, declared: Any) -> Coded:
    return column.replaced(as_declared(column.values, declared))


def locate(columns: Mapping[str, Coded], counts: IntArray, domain: Domain, where: Callable[[int], str]) -> IntArray:
    """The cell of each row, -1 for a structural zero; two rows with the same cell are refused."""
    index = domain.locate(category_codes(columns, domain, where))
    stray = np.flatnonzero((index < 0) & (counts != 0))
    if len(stray):
        raise DataError(
            f"Cell in {where(int(stray[0]))} must be empty, because it is declared a structural zero, but it has a "
            f"count. Correct the row or the declaration."
        )
    rows = np.flatnonzero(index >= 0)
    _refuse_duplicates(index[rows], rows, where)
    return index


def cells_of(index: IntArray, counts: IntArray, size: int) -> IntArray:
    """The counts of every cell; a cell without a row is zero."""
    cells = np.zeros(size, dtype=np.int64)
    rows = index >= 0
    cells[index[rows]] = counts[rows]
    return cells


def _refuse_duplicates(index: Integers, rows: IntArray, where: Callable[[int], str]) -> None:
    if len(index) and np.bincount(index).max() > 1:
        order = np.argsort(index, kind="stable")
        twice = np.flatnonzero(np.diff(index[order]) == 0)
        raise _same_cell(int(rows[order[twice[0]]]), int(rows[order[twice[0] + 1]]), where)


def _same_cell(first: int, second: int, where: Callable[[int], str]) -> DataError:
    return DataError(
        f"Each cell must have one row, but {where(first)} and {where(second)} are the same cell. "
        f"Add them up first, or add the axis that distinguishes them."
    )


def refuse_many_rows(columns: Mapping[str, Coded], where: Callable[[int], str]) -> None:
    """Refuse more rows than there are combinations of labels, before anything is made for each row.

    A small compressed file can expand to millions of identical rows.
    """
    rows = len(next(iter(columns.values())))
    combinations = math.prod(len(column.values) for column in columns.values())
    if combinations >= rows:
        return
    first_rows = [Coded(column.values, column.codes[: combinations + 1]) for column in columns.values()]
    first_row: dict[int, int] = {}
    for row, cell in enumerate(combined(first_rows).tolist()):
        if first_row.setdefault(cell, row) != row:
            raise _same_cell(first_row[cell], row, where)


def category_codes(columns: Mapping[str, Coded], domain: Domain, where: Callable[[int], str]) -> dict[str, IntArray]:
    """The category of each row on every axis; a label that is not declared is refused."""
    codes: dict[str, IntArray] = {}
    for name in domain.axes:
        axis = domain.axis(name)
        if axis.parent is None:
            codes[name] = columns[name].looked_up(axis.lookup())
        else:
            codes[name] = _nested_codes(columns[name], axis, codes[axis.parent.name])
        _refuse_undeclared(codes[name], axis, where)
    return codes


def _nested_codes(column: Coded, axis: Axis, parent_codes: IntArray) -> IntArray:
    """The category of each row, given that of its parent; -1 where there is none."""
    if axis.parent is None or axis.parent_codes is None:
        raise AssertionError("a nested axis has the codes of its parents")
    places = {label: place for place, label in enumerate(dict.fromkeys(axis.labels))}
    labels = np.array([places[label] for label in axis.labels])
    declared_keys = axis.parent_codes * len(places) + labels
    row_labels = column.looked_up(places)
    keys = np.where(row_labels < 0, -1, parent_codes * len(places) + row_labels)
    if len(axis.parent) * len(places) <= len(keys):  # a table over all pairs is smaller than the rows
        category = np.full(len(axis.parent) * len(places) + 1, -1)  # the last one for rows without a declared label
        category[declared_keys] = np.arange(len(declared_keys))
        return category[keys]
    order = np.argsort(declared_keys)
    place = np.minimum(np.searchsorted(declared_keys[order], keys), len(order) - 1)
    return np.where(declared_keys[order][place] == keys, order[place], -1)


def _refuse_undeclared(codes: IntArray, axis: Axis, where: Callable[[int], str]) -> None:
    if not len(codes) or codes.min() >= 0:
        return
    within_parent = "" if axis.parent is None else f" within its {axis.parent.name}"
    raise DataError(
        f"Category in {where(int(np.argmax(codes < 0)))}, column {axis.name!r}, is not a declared "
        f"category{within_parent}. Correct the row, or declare the category."
    )


def check_declared(declared: Mapping[str, Any], columns: Collection[str]) -> None:
    """Check that categories are declared for axes only."""
    if not isinstance(declared, Mapping):
        raise InputError(f"domain= must be a Domain or a mapping from axes to categories, got {type_of(declared)}.")
    for name in declared:
        if name not in columns:
            raise DomainError(
                f"Categories must be declared for an axis, one of {quoted(columns)}, got {shown_name(name)}."
            )


def domain_from(
    columns: Mapping[str, Coded],
    within: Mapping[str, str],
    declared: Mapping[str, Any],
    keep_order: bool,
) -> tuple[Domain, list[str]]:
    """The domain of the axis columns, and the axes whose categories were taken from the data.

    Categories taken from the data are in the natural order of their labels or, with ``keep_order``, of their first
    rows.
    """
    check_declared(declared, columns)
    categories: dict[str, Any] = {}
    taken: list[str] = []
    for name in group_families(list(columns), within):
        if name in declared:
            categories[name] = declared[name]
            continue
        taken.append(name)
        if not len(columns[name]):
            raise DataError(f"Categories of axis {name!r} must be declared if the data has no rows. Pass domain=.")
        distinct = _distinct_paths([columns[n] for n in with_parents([name], within)])
        if not keep_order:
            distinct.sort(key=lambda labels: [natural_order(label) for label in labels])
        categories[name] = [labels[0] for labels in distinct] if len(distinct[0]) == 1 else distinct
    return Domain(categories, within), taken


def _distinct_paths(path: Sequence[Coded]) -> list[tuple[Any, ...]]:
    """The different combinations of labels, in the order of their first rows."""
    if len(path) == 1:
        return [(label,) for label in path[0].values]
    first_rows = np.sort(np.unique(combined(path), return_index=True)[1])
    labels = [[column.values[code] for code in column.codes[first_rows].tolist()] for column in path]
    return list(zip(*labels, strict=True))


# -- labels -----------------------------------------------------------------------------------------


def check_labels(
    column: Coded, where: Callable[[int], str], name: str, axes: Mapping[str, Coded] | None = None
) -> Coded:
    """Labels as text or whole numbers; the error for anything else names the row and does not show the value.

    A missing label in a row that another of the ``axes`` labels as a total does not stand for somebody unknown.
    """
    texts = _dates_as_text(column.values)
    row = column.first_row(lambda value: is_missing(value) or value == "") if not all(map(_is_label, texts)) else None
    if row is not None:
        _refuse_row_of_totals(row, where, name, axes or {})
        raise DataError(
            f"Category in {where(row)}, column {name!r}, must not be missing. Use a label such as 'unknown'."
        )
    for code, value in enumerate(texts):
        if not _is_label(value):
            raise DataError(
                f"Category in {where(int(np.argmax(column.codes == code)))}, column {name!r}, must be text (of at most "
                f"{LONGEST_LABEL:,} characters) or a whole number. Convert the column to text, or leave it out of the "
                f"axes."
            )
    return column.replaced([plain_text(value) if isinstance(value, str) else int(value) for value in texts])


def _refuse_row_of_totals(row: int, where: Callable[[int], str], name: str, axes: Mapping[str, Coded]) -> None:
    """Refuse a row with a missing label that is a row of totals by the label of another axis."""
    for axis, column in axes.items():
        label = column.values[column.codes[row]]
        if is_total(label, axis):
            refuse(BlankTotals(axis, label, name, where(row)))


def _dates_as_text(values: list[Any]) -> list[Any]:
    """Dates and times in ISO form; times that are all midnight are dates.

    >>> _dates_as_text([date(2026, 11, 17), "x"]), _dates_as_text([datetime(2026, 11, 17), datetime(2026, 11, 18)])
    (['2026-11-17', 'x'], ['2026-11-17', '2026-11-18'])
    """
    times = [value for value in values if isinstance(value, datetime) and not is_missing(value)]
    days = all(value.tzinfo is None and value.time() == time(0) for value in times)

    def as_text(value: Any) -> Any:
        if isinstance(value, datetime) and not is_missing(value):
            return value.date().isoformat() if days else value.isoformat(sep=" ")
        return value.isoformat() if isinstance(value, date) and not is_missing(value) else value

    return [as_text(value) for value in values]


def _is_label(value: Any) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= LONGEST_LABEL
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and abs(int(value)) <= INT64_MAX
