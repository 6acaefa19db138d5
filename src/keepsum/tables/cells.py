"""From columns of labels and counts to the cells of a domain, and columns that follow from an axis."""

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
from keepsum._saying import arg, the
from keepsum._text import type_of
from keepsum.errors import DataError, DomainError, InputError
from keepsum.lattice.matrix import INT64_MAX
from keepsum.tables.axes import Axis, Label, as_declared, group_families, natural_order, quoted
from keepsum.tables.counts import is_missing
from keepsum.tables.domain import Domain
from keepsum.tables.findings import BlankTotals, refuse
from keepsum.tables.source import Coded, combined, with_parents
from keepsum.tables.total_labels import is_total
from keepsum.tables.traps import follows

# From columns of labels and counts to the cells of a domain, with a check for everything that can be wrong.
#
# Messages name the row and the column, never a count.

LONGEST_LABEL = 10_000


@dataclass(frozen=True)
class CellCounts:
    """The counts of every cell of a domain."""

    # The cells and their counts.
    domain: Domain
    counts: IntArray
    rows: IntArray | None  # the cell of each row, if the order of the rows is public
    taken: list[str]  # the axes whose categories were taken from the data
    columns: Mapping[str, Coded]  # the labels of each row, in the types of the domain


def arrange(
    columns: Mapping[str, Coded],
    counts: IntArray,
    within: Mapping[str, str],
    declared: Domain | Mapping[str, Any],
    where: Callable[[int], str],
    keep_order: bool,
) -> CellCounts:
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
            f"of 0, or {arg.keep_order(True):leave out}."
        )
    return CellCounts(domain, cells_of(index, counts, domain.size), rows, taken, columns)


def _as_declared(column: Coded, declared: Any) -> Coded:
    return column.replaced(as_declared(column.values, declared))


def locate(columns: Mapping[str, Coded], counts: IntArray, domain: Domain, where: Callable[[int], str]) -> IntArray:
    """The cell of each row, -1 for a structural zero; two rows with the same cell are refused."""
    index = domain.locate(category_codes(columns, domain, where))
    stray = np.flatnonzero((index < 0) & (counts != 0))
    if len(stray):
        raise DataError(
            f"Cell in {the.row(where(int(stray[0])))} must be empty, because it is declared a structural zero, but "
            f"it has a count. Correct the row or the declaration."
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
        f"Each cell must have one row, but {the.row(where(first))} and {the.row(where(second))} are the same cell. "
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
        f"Category in {the.row(where(int(np.argmax(codes < 0))))}, column {the.column(axis.name)}, is not a declared "
        f"category{within_parent}. Correct the row, or declare the category."
    )


def check_declared(declared: Mapping[str, Any], columns: Collection[str]) -> None:
    """Check that categories are declared for axes only."""
    if not isinstance(declared, Mapping):
        raise InputError(
            f"{arg.domain} must be a Domain or a mapping from axes to categories, got {type_of(declared)}."
        )
    for name in declared:
        if name not in columns:
            raise DomainError(
                f"Categories must be declared for an axis, one of {quoted(columns)}, got {the.name(name)}."
            )


def domain_from(
    columns: Mapping[str, Coded], within: Mapping[str, str], declared: Mapping[str, Any], keep_order: bool
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
            raise DataError(
                f"Categories of axis {the.column(name)} must be declared if the data has no rows. {arg.domain:Pass}."
            )
        distinct = _distinct_paths([columns[n] for n in with_parents([name], within)])
        if not keep_order:
            distinct.sort(key=lambda labels: [natural_order(label) for label in labels])
        categories[name] = [labels[0] for labels in distinct] if len(distinct[0]) == 1 else distinct
    return Domain(categories, within), taken


def _distinct_paths(path: Sequence[Coded]) -> list[tuple[Any, ...]]:
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
            f"Category in {the.row(where(row))}, column {the.column(name)}, must not be missing. Use a label such as "
            "'unknown'."
        )
    for code, value in enumerate(texts):
        if not _is_label(value):
            raise DataError(
                f"Category in {the.row(where(int(np.argmax(column.codes == code))))}, column {the.column(name)}, must "
                f"be text (of at most {LONGEST_LABEL:,} characters) or a whole number. Convert the column to text, or "
                "leave it out of the axes."
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


# Columns that follow from an axis, such as the code of a county, and are published with it.


@dataclass(frozen=True)
class Carried:
    """A column whose value follows from the category on an axis."""

    # The column, and the axis that it follows from.
    name: str
    axis: str
    values: tuple[Label, ...]  # its value for each category of the axis


def carry(
    carried: Mapping[str, Coded],
    axes: Mapping[str, str | None],
    columns: Mapping[str, Coded],
    domain: Domain,
    where: Callable[[int], str],
) -> tuple[Carried, ...]:
    """The carried columns, each with the axis that is declared for it, or the innermost one.

    The data must not choose the axis: which ones a column follows from depends on which cells have rows.
    """
    if not carried:
        return ()
    codes = category_codes(columns, domain, where)
    return tuple(_carry(name, column, codes, axes[name], domain) for name, column in carried.items())


def _carry(name: str, column: Coded, codes: Mapping[str, IntArray], declared: str | None, domain: Domain) -> Carried:
    axis = _innermost(name, domain) if declared is None else domain.axis(declared).name
    if not follows(codes[axis], column.codes):
        raise DataError(
            f"A column to carry must have one value for each category of its axis, but {name!r} has several for one "
            f"of {axis!r}. Name another axis, or leave the column out {arg.drop:with}."
        )
    first_rows = np.full(len(domain.axis(axis)), -1)
    first_rows[codes[axis][::-1]] = np.arange(len(column))[::-1]
    if first_rows.min() < 0:
        raise DataError(
            f"A column to carry must have a value for each category of its axis, but some categories of {axis!r} have "
            f"no row, and leaving {name!r} empty there would show it. Add rows with a count of 0, or leave it out "
            f"{arg.drop:with}."
        )
    return Carried(name, axis, tuple(column.values[code] for code in column.codes[first_rows].tolist()))


def _innermost(name: str, domain: Domain) -> str:
    """The axis that no other is nested in, if there is one such axis only."""
    leaves = [axis for axis in domain.axes if axis not in domain.within.values()]
    if len(leaves) > 1:
        example = {name: leaves[0]}
        raise DataError(
            "A column to carry must come with the axis that it follows from if there are several, such as "
            f"{arg.carry(example)}, got {name!r} alone."
        )
    return leaves[0]
