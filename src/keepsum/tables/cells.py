"""From columns of labels and counts to the cells of a domain, with a check for everything that can be wrong.

Messages name the row and the column, never a count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arguments import check_texts
from keepsum._arrays import IntArray
from keepsum._memory import BYTES_A_CELL, check_room
from keepsum._text import shown_name, shown_names, type_of
from keepsum.errors import DataError, DomainError, InputError
from keepsum.lattice.matrix import INT64_MAX
from keepsum.tables.axes import MAX_AXES, Axis, Label, check_nesting, group_families, quoted
from keepsum.tables.domain import Domain
from keepsum.tables.labels import as_declared, natural_order

LONGEST_LABEL = 10_000
_PLAIN_DIGITS = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?[\d.,'\s]*\d(?:[eE][+-]?\d+)?\s*%?")  # in any script, with thousands separators


@dataclass(frozen=True)
class Source:
    """Named columns of any origin: how to get their labels and counts, and what to call a row in a message."""

    names: tuple[str, ...]
    labels: Callable[[str], list[Any]]
    counts: Callable[[str], Any]
    where: Callable[[int], str]
    whole: Callable[[str], bool] = lambda name: False  # whether the type of a column is an integer type
    height: int | None = None  # the number of rows, if it is known before any column is read

    def axes(
        self,
        count: str,
        wanted: str | Sequence[str] | None,
        within: Mapping[str, str],
        declared: Collection[str] = (),
    ) -> list[str]:
        """The axis columns: the given ones with the parents of nested axes, or every column but the count."""
        known_names = set(self.names)
        if not isinstance(count, str) or count not in known_names:
            raise DataError(
                f"The count column must be {self.column_choices()}, got {shown_name(count)}. Name it with count=."
            )
        axes = [name for name in self.names if name != count] if wanted is None else check_texts(wanted, "Axes")
        for name in [*axes, *within, *within.values()]:
            if name not in known_names:
                raise DataError(f"An axis must be {self.column_choices()}, got {shown_name(name)}.")
            if name == count:
                raise DataError(f"Column {name!r} must be an axis or the count, not both.")
        if len(set(axes)) > MAX_AXES:
            raise DataError(
                f"A table must have at most {MAX_AXES} axes, got {len(set(axes)):,} columns. Choose them with axes=."
            )
        check_nesting(self.names, within)
        if wanted is None:
            known = {*declared, *within, *within.values()}
            self._refuse_measures(name for name in axes if name not in known)
        if not axes:
            raise DataError("A table must have at least one axis, got only the count column. Add a column of labels.")
        return with_parents(axes, within)

    def _refuse_measures(self, undeclared: Iterable[str]) -> None:
        """Refuse a column of numbers that nobody declared: it may be another measure, which would be published.

        One number anywhere is enough: the labels decide, never how many rows there are or which ones.
        """
        for name in undeclared:
            if any(_is_number(label) and not is_missing(label) for label in _distinct(self.labels(name))):
                raise DataError(
                    f"Column {name!r} must be declared, because it contains numbers: it may be another measure, and an "
                    f"axis is published as it is. Choose the axes with axes=, declare its categories with domain=, or "
                    f"drop the column."
                )

    def column_choices(self) -> str:
        """The columns to choose from, for a message; not if they look like a row of data, which may contain a count."""
        names = self._safe_names()
        return f"one of the columns {names}" if names else "named in the header (the first line may be data)"

    def actual_columns(self) -> str:
        """The columns that the header has, for a message."""
        return self._safe_names() or "others (the first line may be data)"

    def _safe_names(self) -> str:
        """The names of the columns, or nothing if they are many or a number in one may be a count."""
        names = shown_names(self.names)
        return "" if names == "others" else names


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return bool(_NUMBER.fullmatch(value.strip()))
    return isinstance(value, (int, float, Decimal, np.number)) and not isinstance(value, bool)


def check_counts(values: Any, where: Callable[[int], str], column: str, negative: bool = False) -> IntArray:
    """Counts as int64: whole numbers whose sum fits 64 bits, and not negative unless they are released ones.

    What is refused here depends on the counts. Only the curator sees the message, and nothing is published with it.
    """
    if isinstance(values, np.ma.MaskedArray):
        _refuse(np.ma.getmaskarray(values), "is missing", where, column)
    array = np.asarray(values, dtype=object) if isinstance(values, list) else np.asarray(values)
    if array.dtype.kind in "mM":
        raise _bad_count(where(0), column, "is a time")
    if array.dtype.kind not in "iuf":
        array = _from_objects(array.tolist(), where, column)
    if array.dtype.kind == "f":
        _refuse(np.isnan(array), "is missing", where, column)
        _refuse(array != np.rint(array), "is not a whole number", where, column)
        _refuse(np.abs(array) >= 2**53, "is a float too large to be exact", where, column)
    if not negative:
        _refuse(array < 0, "is negative; counts start at 0", where, column)
    if array.dtype.kind == "u":
        _refuse(array > INT64_MAX, "does not fit 64 bits", where, column)
    counts = array.astype(np.int64)
    # A sum of floats cannot overflow; near the limit, the sum of integers decides.
    if (
        counts.size
        and float(np.abs(counts.astype(np.float64)).sum()) > 2**62
        and sum(map(abs, counts.tolist())) > INT64_MAX
    ):
        raise DataError(
            f"Counts in column {column!r} must have a sum that fits 64 bits; it does not fit. Check the units."
        )
    return counts


def _refuse(bad: npt.NDArray[np.bool_], problem: str, where: Callable[[int], str], column: str) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        raise _bad_count(where(int(rows[0])), column, problem)


def _bad_count(place: str, column: str, problem: str) -> DataError:
    return DataError(f"Count in {place}, column {column!r}, must be a whole number, but it {problem}.")


def _from_objects(values: list[Any], where: Callable[[int], str], column: str) -> IntArray:
    """Counts from Python objects: text from a file, decimals, integers of any size."""
    if all(type(value) is str and value.isascii() and value.isdigit() and len(value) < 19 for value in values):
        return np.array(list(map(int, values)), dtype=np.int64)  # the usual case for files
    counts = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values):
        count = _as_int(value)
        if isinstance(count, str):
            raise _bad_count(where(row), column, count)
        counts[row] = count
    return counts


def _as_int(value: Any) -> int | str:
    """The count as an integer within 64 bits, or what is wrong with it."""
    if is_missing(value) or (isinstance(value, str) and not value.strip()):
        return "is missing"
    if isinstance(value, str):
        text = value.strip()
        if not _PLAIN_DIGITS.fullmatch(text):
            return "is not in plain digits (without thousands separators or decimal points)"
        value = int(text) if len(text) <= 20 else 10**20 * (-1 if text[0] == "-" else 1)
    if isinstance(value, (bool, np.timedelta64)) or not isinstance(value, (int, float, Decimal, np.number)):
        return "is not a number"
    if isinstance(value, (float, np.floating)) and abs(float(value)) >= 2**53:
        return "is a float too large to be exact"
    try:
        number = int(value)
    except (ValueError, ArithmeticError, TypeError):  # an infinite decimal, a complex number
        return "is not a whole number"
    if number != value:
        return "is not a whole number"
    return number if abs(number) <= INT64_MAX else "does not fit 64 bits"


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or a missing value of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, (float, np.floating)) and bool(value != value)


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
    """

    domain: Domain
    counts: IntArray
    rows: IntArray | None
    taken: list[str]


def arrange(
    columns: Mapping[str, Sequence[Any]],
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
        columns = {name: as_declared(labels, declared.axis(name).labels) for name, labels in columns.items()}
        domain, taken = declared, list[str]()
    else:
        columns = {name: as_declared(labels, declared.get(name)) for name, labels in columns.items()}
        domain, taken = domain_from(columns, within, declared, keep_order)
    check_room(domain.size, f"A table of {domain.size:,} cells", BYTES_A_CELL)
    index = locate(columns, counts, domain, where)
    rows = index[index >= 0] if keep_order else None
    if rows is not None and len(rows) < domain.size:
        raise DataError(
            "Every cell must have a row if the order of the rows is kept, but some have none. Add rows with a count "
            "of 0, or leave out keep_order=True."
        )
    return Arranged(domain, cells_of(index, counts, domain.size), rows, taken)


def locate(
    columns: Mapping[str, Sequence[Any]],
    counts: IntArray,
    domain: Domain,
    where: Callable[[int], str],
) -> IntArray:
    """The cell of each row, -1 for a structural zero; two rows with the same cell are refused."""
    index = domain.locate(_codes(columns, domain, where))
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


def _refuse_duplicates(index: IntArray, rows: IntArray, where: Callable[[int], str]) -> None:
    order = np.argsort(index, kind="stable")
    twice = np.flatnonzero(np.diff(index[order]) == 0)
    if len(twice):
        raise _same_cell(int(rows[order[twice[0]]]), int(rows[order[twice[0] + 1]]), where)


def _same_cell(first: int, second: int, where: Callable[[int], str]) -> DataError:
    return DataError(
        f"Each cell must have one row, but {where(first)} and {where(second)} are the same cell. "
        f"Add them up first, or add the axis that distinguishes them."
    )


def refuse_many_rows(columns: Mapping[str, Sequence[Any]], where: Callable[[int], str]) -> None:
    """Refuse more rows than there are combinations of labels, without reading more rows than that.

    A small compressed file can expand to millions of identical rows.
    """
    rows = len(next(iter(columns.values())))
    combinations = 1
    for labels in columns.values():
        combinations *= len(_distinct(labels))
        if combinations >= rows:
            return
    seen: dict[tuple[Any, ...], int] = {}
    for row, cell in enumerate(zip(*columns.values(), strict=True)):
        if seen.setdefault(cell, row) != row:
            raise _same_cell(seen[cell], row, where)


def _distinct(labels: Sequence[Any]) -> Collection[Any]:
    try:
        return dict.fromkeys(labels)
    except TypeError:  # unhashable values such as lists, which are refused later
        return labels


def _codes(columns: Mapping[str, Sequence[Any]], domain: Domain, where: Callable[[int], str]) -> dict[str, IntArray]:
    codes: dict[str, IntArray] = {}
    for name in domain.axes:
        axis = domain.axis(name)
        keys: Sequence[Any] = columns[name]
        if axis.parent is not None:
            keys = list(zip(codes[axis.parent.name].tolist(), columns[name], strict=True))
        codes[name] = _encode(keys, axis, where)
    return codes


def _encode(keys: Sequence[Any], axis: Axis, where: Callable[[int], str]) -> IntArray:
    lookup = axis.lookup()
    try:
        return np.fromiter((lookup[key] for key in keys), dtype=np.int64, count=len(keys))
    except KeyError:
        row = next(row for row, key in enumerate(keys) if key not in lookup)
    within_parent = "" if axis.parent is None else f" within its {axis.parent.name}"
    raise DataError(
        f"Category in {where(row)}, column {axis.name!r}, is not a declared category{within_parent}. "
        f"Correct the row, or declare the category."
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
    columns: Mapping[str, Sequence[Any]],
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
        path = with_parents([name], within)
        if not len(columns[name]):
            raise DataError(f"Categories of axis {name!r} must be declared if the data has no rows. Pass domain=.")
        distinct = list(dict.fromkeys(zip(*(columns[n] for n in path), strict=True)))
        if not keep_order:
            distinct.sort(key=lambda labels: [natural_order(label) for label in labels])
        categories[name] = [labels[0] for labels in distinct] if len(path) == 1 else distinct
    return Domain(categories, within), taken


def check_labels(values: Sequence[Any], where: Callable[[int], str], column: str) -> list[Label]:
    """Labels as text or whole numbers; the error for anything else names the row and does not show the value."""
    if not all(map(_is_label, _distinct(values))):
        for row, value in enumerate(values):
            if is_missing(value) or (isinstance(value, str) and not value):
                raise DataError(
                    f"Category in {where(row)}, column {column!r}, must not be missing. Use a label such as 'unknown'."
                )
            if not _is_label(value):
                raise DataError(
                    f"Category in {where(row)}, column {column!r}, must be text (of at most {LONGEST_LABEL:,} "
                    f"characters) or a whole number. Convert the column to text, or leave it out of the axes."
                )
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _is_label(value: Any) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= LONGEST_LABEL
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and abs(int(value)) <= INT64_MAX


def with_parents(axes: Sequence[str], within: Mapping[str, str]) -> list[str]:
    """The axes with the ancestors of nested ones, each before its children.

    >>> with_parents(["county", "sex"], {"county": "state"})
    ['state', 'county', 'sex']
    """
    names: list[str] = []
    for axis in axes:
        path = [axis]
        while path[0] in within:
            path.insert(0, within[path[0]])
        names += [name for name in path if name not in names]
    return names
