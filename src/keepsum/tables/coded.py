"""Columns of labels as codes: the different values once, and for each row which of them it has.

A file has millions of rows but few different labels. What is checked, translated or looked up is the labels; rows are
arrays of integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arrays import IntArray, Integers


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of labels.

    Attributes
    ----------
    values
        The different values, each of which some row has, in the order of their first rows.
    codes
        The position of each row's value among them.

    Examples
    --------
    >>> column = Coded.of(["f", "m", "m", "f"])
    >>> column.values, column.codes.tolist()
    (['f', 'm'], [0, 1, 1, 0])
    >>> column.translated(str.upper).values
    ['F', 'M']
    """

    values: list[Any]
    codes: Integers

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
