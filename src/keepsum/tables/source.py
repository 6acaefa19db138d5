"""Named columns of any origin, and which of them are axes.

Messages name the row and the column, never a count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from keepsum._arguments import check_texts
from keepsum._text import shown_name, shown_names
from keepsum.errors import DataError
from keepsum.tables.axes import MAX_AXES, check_nesting
from keepsum.tables.coded import Coded
from keepsum.tables.counts import is_missing
from keepsum.tables.findings import Numbers, refuse
from keepsum.tables.whole_numbers import are_whole

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
        self,
        count: str,
        wanted: str | Sequence[str] | None,
        within: Mapping[str, str],
        declared: Collection[str] = (),
    ) -> list[str]:
        """The axis columns: the given ones with the parents of nested axes, or every column but the count."""
        known_names = set(self.names)
        if count == DEFAULT_COUNT and count not in known_names:
            several = len(self.columns_where(are_whole)) > 1
            raise DataError(
                f"The column of counts must be named: {self.column_choices()}. Pass count=COLUMN"
                f"{', or name the columns with wide= if several have counts' if several else ''}."
            )
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
            raise DataError(f"{what} must be {self.column_choices()}, got {shown_name(name)}.")
        if name == count:
            raise DataError(f"{what} must not be the count column {shown_name(name)}.")

    def melted(self, axis: str, columns: Sequence[str], count: str) -> Source:
        """A wide table as a long one: a row for each count, and an axis for the names of their columns."""
        width = len(columns)
        others = tuple(name for name in self.names if name not in columns)
        if count in others:
            raise DataError(
                f"The counts of a wide table must get a name that no column has, got {shown_name(count)}. Name them "
                f"with count=."
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
                raise DataError(f"A column of rows to drop must be {self.column_choices()}, got {shown_name(name)}.")
            column = self.labels(name)
            wanted = [labels] if isinstance(labels, (str, int)) else list(labels)
            missing = next((label for label in wanted if str(label) not in map(str, column.values)), None)
            if missing is not None:
                raise DataError(
                    f"Rows to drop must be in the data, but column {name!r} has no label {shown_name(missing)}. Check "
                    f"the spelling."
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
