"""What confidential and released tables have in common: a count for every cell, and the form in which they came."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from keepsum._arguments import check_text
from keepsum._arrays import IntArray
from keepsum._text import type_of
from keepsum.errors import DataError, InputError
from keepsum.tables.carried import Carried
from keepsum.tables.domain import Domain
from keepsum.tables.origins import Origin


class CountedTable(Protocol):
    """A count for every cell of a domain."""

    @property
    def domain(self) -> Domain:
        """The cells."""

    @property
    def counts(self) -> IntArray:
        """One count per cell."""

    @property
    def count(self) -> str:
        """The name of the column of counts."""

    @property
    def origin(self) -> Origin | None:
        """What it came as."""

    @property
    def rows(self) -> IntArray | None:
        """The cell of each row, if their order is public; else cells in order."""

    @property
    def carried(self) -> tuple[Carried, ...]:
        """Columns that follow from an axis."""


def check_counted(table: CountedTable) -> None:
    """The parts of a table must fit each other."""
    if not isinstance(table.domain, Domain):
        raise DataError(f"A table must have a Domain, got {type_of(table.domain)}. Use from_array.")
    is_int64 = isinstance(table.counts, np.ndarray) and table.counts.dtype == np.int64
    if not is_int64 or table.counts.shape != (table.domain.size,):
        raise DataError(f"Counts must be a flat array of {table.domain.size:,} 64-bit integers. Use from_array.")
    if check_text(table.count, "The name of the count column") in table.domain.axes:
        raise DataError(f"The count column must not have the name of an axis, got {table.count!r}.")
    _check_wide(table)


def _check_wide(table: CountedTable) -> None:
    """The categories of one plain axis can be columns, if each has a name of its own and every cell exists."""
    axis = table.origin.wide if table.origin is not None else None
    if axis is None:
        return
    domain = table.domain
    if axis in domain.within or axis in domain.within.values():
        raise InputError(f"The axis of a wide table must not be nested, got {axis!r}. Make the table long first.")
    if domain.structural_zeros:
        raise InputError("A wide table must not have structural zeros. Make the table long first.")
    others = {*domain.axes, *(column.name for column in table.carried)}
    if others & set(map(str, domain.axis(axis).labels)):
        raise InputError("Columns of a wide table must have names that no axis has, got one. Rename a column.")
