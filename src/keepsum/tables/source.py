"""Named columns of any origin, as codes, and which of them are axes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arguments import check_texts
from keepsum._arrays import IntArray, Integers
from keepsum._saying import arg, the
from keepsum._text import shown_name, shown_names
from keepsum.errors import DataError
from keepsum.tables.axes import MAX_AXES, check_nesting
from keepsum.tables.counts import are_whole, is_missing
from keepsum.tables.findings import Numbers, refuse

# Columns of labels as codes: the different values once, and for each row which of them it has.
#
# A file has millions of rows but few different labels. What is checked, translated or looked up is the labels; rows
# are arrays of integers.


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of labels.

    Examples
    --------
    >>> column = Coded.of(["f", "m", "m", "f"])
    >>> column.values, column.codes.tolist()
    (['f', 'm'], [0, 1, 1, 0])
    >>> column.translated(str.upper).values
    ['F', 'M']
    """

    values: list[Any]  # the different values, each of which some row has, in the order of their first rows
    codes: Integers  # the position of each row's value among them

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of(cls, rows: Sequence[Any]) -> Coded:
        """The column with these values in its rows; values of different types, such as 1 and True, are different."""
        keys: Sequence[Any] = rows
        if len(set(map(type, rows))) > 1:
            keys = list(zip(map(type, rows), rows, strict=True))
        try:
            first = dict.fromkeys(keys)
        except TypeError:  # unhashable values such as lists, which are no labels
            return cls(list(rows), np.arange(len(rows)))
        place = {key: code for code, key in enumerate(first)}
        codes = np.fromiter((place[key] for key in keys), dtype=np.int32, count=len(rows))
        return cls([key if keys is rows else key[1] for key in first], codes)

    @classmethod
    def from_codes(cls, values: Sequence[Any], codes: Integers) -> Coded:
        """The column of a dictionary and codes; values that no row has are left out."""
        if _is_in_order(codes, len(values)):
            return cls(list(values), codes)
        first_rows = np.full(len(values), len(codes), dtype=np.int64)
        first_rows[codes[::-1]] = np.arange(len(codes))[::-1]  # the last assignment counts: that of the first row
        order = np.argsort(first_rows, kind="stable")
        order = order[first_rows[order] < len(codes)]
        new_codes = np.zeros(len(values), dtype=np.int32)
        new_codes[order] = np.arange(len(order))
        return cls([values[code] for code in order.tolist()], new_codes[codes])

    def translated(self, translate: Callable[[Any], Any]) -> Coded:
        """The column with other values; if two become equal, their rows have the same value."""
        return self.replaced([translate(value) for value in self.values])

    def replaced(self, values: Sequence[Any]) -> Coded:
        """The column with these values instead, in the same order."""
        merged = Coded.of(values)
        if len(merged.values) == len(self.values):
            return Coded(list(values), self.codes)
        return Coded(merged.values, merged.codes[self.codes])

    def rows(self, chosen: Integers | npt.NDArray[np.bool_]) -> Coded:
        """Some of the rows."""
        return Coded.from_codes(self.values, self.codes[chosen])

    def first_row(self, is_wanted: Callable[[Any], bool]) -> int | None:
        """The first row whose value is wanted; None if there is none."""
        for code, value in enumerate(self.values):  # in the order of their first rows
            if is_wanted(value):
                return int(np.argmax(self.codes == code))
        return None

    def looked_up(self, places: Mapping[Any, int]) -> IntArray:
        """The place of each row's value; -1 for a value that has none."""
        table: IntArray = np.array([places.get(value, -1) for value in self.values], dtype=np.int64)
        return table[self.codes]

    def to_list(self) -> list[Any]:
        """The value of each row."""
        return [self.values[code] for code in self.codes.tolist()]


def _is_in_order(codes: Integers, values: int) -> bool:
    """Whether every value has a row, and the first rows of the values are in order."""
    if not len(codes) or int(codes[0]) != 0:
        return False
    largest = np.maximum.accumulate(codes)
    return int(largest[-1]) == values - 1 and bool((np.diff(largest) <= 1).all())


def combined(columns: Sequence[Coded]) -> Integers:
    """A number for each row, equal for two rows if and only if they agree on every column.

    >>> combined([Coded.of(["a", "a", "b"]), Coded.of([1, 2, 1])]).tolist()
    [0, 1, 2]
    """
    keys: Integers = np.zeros(len(columns[0]), dtype=np.int64)
    width = 1
    for column in columns:
        if width * len(column.values) >= 2**62:
            distinct, keys = np.unique(keys, return_inverse=True)
            width = len(distinct)
        keys = keys * max(1, len(column.values)) + column.codes
        width *= max(1, len(column.values))
    return keys


# Messages name the row and the column, never a count.

DEFAULT_COUNT = "count"  # what the column of counts is called if nobody says otherwise
_NUMBER = re.compile(r"[+-]?[\d.,'\s]*\d(?:[eE][+-]?\d+)?\s*%?")  # in any script, with thousands separators


@dataclass(frozen=True)
class Source:
    """Named columns of any origin: how to get their labels and counts, and what to call a row in a message."""

    names: tuple[str, ...]
    labels: Callable[[str], Coded]
    counts: Callable[[str], Any]
    where: Callable[[int], str]
    whole: Callable[[str], bool] = lambda name: False  # whether the type of a column is an integer type
    height: int | None = None  # the number of rows, if it is known before any column is read

    def axes(
        self, count: str, wanted: str | Sequence[str] | None, within: Mapping[str, str], declared: Collection[str] = ()
    ) -> list[str]:
        """The axis columns: the given ones with the parents of nested axes, or every column but the count."""
        known_names = set(self.names)
        if count == DEFAULT_COUNT and count not in known_names:
            several = len(self.columns_where(are_whole)) > 1
            raise DataError(
                f"The column of counts must be named: {self.column_choices()}. {arg.count.of('COLUMN'):Pass}"
                f"{f', or name the columns {arg.wide:with} if several have counts' if several else ''}."
            )
        if not isinstance(count, str) or count not in known_names:
            raise DataError(
                f"The count column must be {self.column_choices()}, got {shown_name(count)}. Name it {arg.count:with}."
            )
        axes = [name for name in self.names if name != count] if wanted is None else check_texts(wanted, "Axes")
        for name in [*axes, *within, *within.values()]:
            if name not in known_names:
                raise DataError(f"An axis must be {self.column_choices()}, got {the.name(name)}.")
            if name == count:
                raise DataError(f"Column {the.column(name)} must be an axis or the count, not both.")
        if len(set(axes)) > MAX_AXES:
            raise DataError(
                f"A table must have at most {MAX_AXES} axes, got {len(set(axes)):,} columns. Choose them "
                f"{arg.axes:with}."
            )
        check_nesting(self.names, within)
        if wanted is None:
            known = {*declared, *within, *within.values()}
            self._refuse_measures(tuple(axes), known)
        if not axes:
            raise DataError("A table must have at least one axis, got only the count column. Add a column of labels.")
        return with_parents(axes, within)

    def columns_where(self, holds: Callable[[list[Any]], bool]) -> list[str]:
        """The columns whose different values are of some kind."""
        return [name for name in self.names if holds(self.labels(name).values)]

    def check_column(self, name: str, what: str, count: str | None = None) -> None:
        """Refuse a name that is no column, or is the count."""
        if name not in self.names:
            raise DataError(f"{what} must be {self.column_choices()}, got {the.name(name)}.")
        if name == count:
            raise DataError(f"{what} must not be the count column {shown_name(name)}.")

    def melted(self, axis: str, columns: Sequence[str], count: str) -> Source:
        """A wide table as a long one: a row for each count, and an axis for the names of their columns."""
        width = len(columns)
        others = tuple(name for name in self.names if name not in columns)
        if count in others:
            raise DataError(
                f"The counts of a wide table must get a name that no column has, got {shown_name(count)}. Name them "
                f"{arg.count:with}."
            )

        def labels(name: str) -> Coded:
            if name == axis:
                rows = self.labels(columns[0]) if self.height is None else ()
                height = len(rows) if self.height is None else self.height
                return Coded(list(columns), np.tile(np.arange(width, dtype=np.int32), height))
            column = self.labels(name)
            return Coded(column.values, np.repeat(column.codes, width))

        def counts(_: str) -> Any:
            parts = [self.counts(name) for name in columns]
            if all(isinstance(part, np.ndarray) for part in parts):
                return np.stack(parts, axis=1).ravel()
            return [value for row in zip(*parts, strict=True) for value in row]

        return replace(
            self,
            names=(*others, axis, count),
            labels=labels,
            counts=counts,
            where=lambda row: f"{self.where(row // width)} under {shown_name(columns[row % width])}",
            whole=lambda name: name in others and self.whole(name),
            height=None if self.height is None else self.height * width,
        )

    def without_rows(self, chosen: Mapping[str, Any] | None) -> Source:
        """The columns without the rows that have one of the given labels, by column."""
        if not chosen:
            return self
        stays: Any = None
        for name, labels in chosen.items():
            if name not in self.names:
                raise DataError(f"A column of rows to drop must be {self.column_choices()}, got {the.name(name)}.")
            column = self.labels(name)
            wanted = [labels] if isinstance(labels, (str, int)) else list(labels)
            missing = next((label for label in wanted if str(label) not in map(str, column.values)), None)
            if missing is not None:
                raise DataError(
                    f"Rows to drop must be in the data, but column {the.column(name)} has no label "
                    f"{shown_name(missing)}. Check the spelling."
                )
            texts = set(map(str, wanted))
            here = np.array([str(value) not in texts for value in column.values], dtype=bool)[column.codes]
            stays = here if stays is None else stays & here
        rows = np.flatnonzero(stays)

        def counts(name: str) -> Any:
            values = self.counts(name)
            return [values[row] for row in rows.tolist()] if isinstance(values, list) else values[rows]

        return replace(
            self,
            labels=lambda name: self.labels(name).rows(rows),
            counts=counts,
            where=lambda row: self.where(int(rows[row])),
            height=len(rows),
        )

    def _refuse_measures(self, axes: tuple[str, ...], known: Collection[str]) -> None:
        """Refuse a column of numbers that nobody declared: it may be another measure, which would be published.

        One number anywhere is enough: the labels decide, never how many rows there are or which ones.
        """
        undeclared = [name for name in axes if name not in known]
        numbers = [
            name
            for name in undeclared
            if any(_is_number(label) and not is_missing(label) for label in self.labels(name).values)
        ]
        if numbers:
            whole = sum(are_whole(self.labels(name).values) for name in numbers)
            refuse(Numbers(tuple(numbers), axes, may_be_wide=whole > 1))

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
