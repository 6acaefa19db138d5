"""From columns of labels and counts to the cells of a domain, with every way the data can be wrong.

Messages name the row and the column, never a count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum.axes import Axis, IntArray, Label, check_nesting, families_together, quoted
from keepsum.domain import Domain
from keepsum.errors import DataError, DomainError
from keepsum.memory import BYTES_A_CELL, check_room

INT64_MAX = 2**63 - 1
_PLAIN_DIGITS = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True)
class Source:
    """Named columns from anywhere: how to get labels and counts, and what to call a row in a message."""

    names: tuple[str, ...]
    labels: Callable[[str], list[Any]]
    counts: Callable[[str], Any]
    where: Callable[[int], str]

    def axes(self, count: str, wanted: str | Sequence[str] | None, within: Mapping[str, str]) -> list[str]:
        """The axis columns: those asked for with the parents of nested ones, or every column but the count."""
        if count not in self.names:
            raise DataError(f"Count column must be {self._one_of_the_columns()}, got {count!r}.")
        if wanted is None:
            wanted = [name for name in self.names if name != count]
        asked = [wanted] if isinstance(wanted, str) else list(wanted)
        for name in [*asked, *within, *within.values()]:
            if name not in self.names:
                raise DataError(f"Axis must be {self._one_of_the_columns()}, got {name!r}.")
            if name == count:
                raise DataError(f"Column {name!r} must be an axis or the count, not both.")
        check_nesting(self.names, within)
        if not asked:
            raise DataError("A table must have at least one axis, got only the count column. Name the axes.")
        return with_parents(asked, within)

    def _one_of_the_columns(self) -> str:
        """The columns for a message, unless they look like a row of data: no count is ever shown."""
        if any(not name.strip() or name.strip()[0].isdigit() for name in self.names):
            return "named in the header (the first line looks like data)"
        return f"one of the columns {quoted(self.names)}"


def check_counts(values: Any, where: Callable[[int], str], column: str, negative: bool = False) -> IntArray:
    """Counts as int64: whole, from 0 unless released ones may be negative, with a sum within 64 bits."""
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
        _refuse(array < 0, "is negative", where, column)
    if array.dtype.kind == "u":
        _refuse(array > INT64_MAX, "does not fit 64 bits", where, column)
    counts = array.astype(np.int64)
    # A sum of floats cannot wrap; where it comes near the limit the integers decide.
    if (
        counts.size
        and float(np.abs(counts.astype(np.float64)).sum()) > 2**62
        and sum(map(abs, counts.tolist())) > INT64_MAX
    ):
        raise DataError(
            f"Counts in column {column!r} must have a sum that fits 64 bits, theirs does not. Check the units."
        )
    return counts


def _refuse(bad: npt.NDArray[np.bool_], problem: str, where: Callable[[int], str], column: str) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        raise _bad_count(where(int(rows[0])), column, problem)


def _bad_count(place: str, column: str, problem: str) -> DataError:
    return DataError(f"Count in {place}, column {column!r}, must be a whole number from 0, but it {problem}.")


def _from_objects(values: list[Any], where: Callable[[int], str], column: str) -> IntArray:
    """Counts from Python objects: texts from a file, decimals, integers of any size."""
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
            return "is not written in plain digits (no thousands separators, no decimal points)"
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
    """None, NaN, and what pandas writes for them."""
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
        The cell of each row, if the order of the rows may be published.
    taken
        The axes whose categories were taken from the data.
    ranked
        Whether the rows stood in the order of their counts.
    """

    domain: Domain
    counts: IntArray
    rows: IntArray | None
    taken: list[str]
    ranked: bool


def arrange(
    columns: Mapping[str, Sequence[Any]],
    counts: IntArray,
    within: Mapping[str, str],
    declared: Domain | Mapping[str, Any],
    where: Callable[[int], str],
) -> Arranged:
    """Put every row in its cell, with the domain declared or taken from the data.

    The order of the rows and of categories taken from them is kept only if every cell has a row and the rows do not
    stand in the order of their counts: else it would tell which cells are empty, or which are large.
    """
    if isinstance(declared, Domain):
        domain, taken = declared, list[str]()
    else:
        domain, taken = domain_from(columns, within, declared)
    check_room(domain.size, f"A table of {domain.size:,} cells", BYTES_A_CELL)
    index = locate(columns, counts, domain, where)
    in_order = not taken and bool((np.diff(index) > 0).all())
    ranked = not in_order and ranks_tell(columns, counts)
    complete = int((index >= 0).sum()) == domain.size
    if taken and not isinstance(declared, Domain) and (ranked or not complete):
        domain, _ = domain_from(columns, within, declared, in_label_order=True)
        index = locate(columns, counts, domain, where)
    rows = index[index >= 0] if complete and not ranked else None
    return Arranged(domain, cells_of(index, counts, domain.size), rows, taken, ranked)


def locate(
    columns: Mapping[str, Sequence[Any]],
    counts: IntArray,
    domain: Domain,
    where: Callable[[int], str],
) -> IntArray:
    """The cell of each row, -1 for a structural zero; no cell twice."""
    index = domain.locate(_codes(columns, domain, where))
    stray = np.flatnonzero((index < 0) & (counts != 0))
    if len(stray):
        raise DataError(
            f"Cell in {where(int(stray[0]))} is declared a structural zero, but it has a count. "
            f"Correct the row or the declaration."
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


def ranks_tell(columns: Mapping[str, Sequence[Any]], counts: IntArray) -> bool:
    """Whether the rows stand in the order of their counts, on the whole or within each run of some axis.

    Rows published in that order would publish the ranks of their counts. An order that the labels explain tells
    nothing, and of tables in no such order chance makes at most one in 10,000 look like it.

    >>> towns = [f"town {k}" for k in (3, 1, 4, 2, 7, 6, 8, 5)]
    >>> ranks_tell({"town": towns}, np.array([99, 80, 41, 40, 33, 12, 3, 1]))
    True
    >>> ranks_tell({"town": sorted(towns)}, np.array([99, 80, 41, 40, 33, 12, 3, 1]))
    False
    """
    steps = np.diff(counts)
    changes = {name: np.array([a != b for a, b in pairwise(labels)], dtype=bool) for name, labels in columns.items()}
    for cut in [np.zeros(len(steps), dtype=bool), *changes.values()]:
        inside = steps[~cut]
        if (inside > 0).any() and (inside < 0).any():
            continue
        if _log_orders(counts, cut) > math.log(10_000) and not _labels_explain(columns, changes, cut):
            return True
    return False


def _labels_explain(
    columns: Mapping[str, Sequence[Any]], changes: Mapping[str, npt.NDArray[np.bool_]], cut: npt.NDArray[np.bool_]
) -> bool:
    """Whether some axis changes within the runs and its labels never fall there."""
    for name, labels in columns.items():
        falls = np.array([a > b for a, b in pairwise(map(_sort_key, labels))], dtype=bool)
        if (changes[name] & ~cut).any() and not (falls & ~cut).any():
            return True
    return False


def _log_orders(counts: IntArray, cut: npt.NDArray[np.bool_]) -> float:
    """The logarithm of the number of different orders that the counts of each run could stand in."""
    run = np.concatenate([[0], np.cumsum(cut)])
    ties = np.unique(np.stack([run, counts]), axis=1, return_counts=True)[1]
    return sum(math.lgamma(n + 1) for n in np.bincount(run).tolist()) - sum(math.lgamma(n + 1) for n in ties.tolist())


def _sort_key(label: Label) -> tuple[bool, Label]:
    """Labels of two kinds are refused later; until then they can be compared."""
    return isinstance(label, str), label


def _refuse_duplicates(index: IntArray, rows: IntArray, where: Callable[[int], str]) -> None:
    order = np.argsort(index, kind="stable")
    twice = np.flatnonzero(np.diff(index[order]) == 0)
    if len(twice):
        first, second = rows[order[twice[0]]], rows[order[twice[0] + 1]]
        raise DataError(
            f"Cells must have one row each, but {where(int(first))} and {where(int(second))} are the same cell. "
            f"Add them up first, or name the axis that tells them apart."
        )


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
    label = keys[row] if axis.parent is None else keys[row][1]
    above = "" if axis.parent is None else f" within its {axis.parent.name}"
    raise DataError(
        f"Category in {where(row)}, column {axis.name!r}, must be one of the declared ones, "
        f"got {label!r}, which is none{above}."
    )


def domain_from(
    columns: Mapping[str, Sequence[Any]],
    within: Mapping[str, str],
    declared: Mapping[str, Any],
    in_label_order: bool = False,
) -> tuple[Domain, list[str]]:
    """The domain of the axis columns, and the axes whose categories had to be taken from the data.

    Categories taken from the data stand in the order of their first rows, or in that of their labels.
    """
    for name in declared:
        if name not in columns:
            raise DomainError(f"Declared categories must belong to an axis, one of {quoted(columns)}, got {name!r}.")
    categories: dict[str, Any] = {}
    taken: list[str] = []
    for name in families_together(list(columns), within):
        if name in declared:
            categories[name] = declared[name]
            continue
        taken.append(name)
        path = [name]
        while path[0] in within:
            path.insert(0, within[path[0]])
        if not len(columns[name]):
            raise DataError(f"Categories of axis {name!r} must be declared when the data has no rows. Pass domain=.")
        distinct = list(dict.fromkeys(zip(*(columns[n] for n in path), strict=True)))
        if in_label_order:
            distinct.sort(key=lambda labels: [_sort_key(label) for label in labels])
        categories[name] = [labels[0] for labels in distinct] if len(path) == 1 else distinct
    return Domain(categories, within), taken


def check_labels(values: Sequence[Any], where: Callable[[int], str], column: str) -> list[Label]:
    """Labels as text or whole numbers; another one is an error that names its row and does not show it."""
    distinct: Iterable[Any]
    try:
        distinct = dict.fromkeys(values)
    except TypeError:  # lists and the like among them
        distinct = values
    if not all(isinstance(value, (str, int, np.integer)) and value != "" for value in distinct):
        for row, value in enumerate(values):
            if is_missing(value) or (isinstance(value, str) and not value):
                raise DataError(
                    f"Category in {where(row)}, column {column!r}, must not be missing. Write a word for it."
                )
            if not isinstance(value, (str, int, np.integer)):
                raise DataError(
                    f"Category in {where(row)}, column {column!r}, must be text or a whole number. "
                    f"Convert the column to text, or leave it out of the axes."
                )
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def with_parents(axes: Sequence[str], within: Mapping[str, str]) -> list[str]:
    """The axes with the parents that were left unsaid, each right before its child.

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
