"""Columns that follow from an axis, such as the code of a county, and are published with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from keepsum.errors import DataError
from keepsum.tables.axes import Label
from keepsum.tables.cells import category_codes
from keepsum.tables.coded import Coded
from keepsum.tables.domain import Domain
from keepsum.tables.traps import follows


@dataclass(frozen=True)
class Carried:
    """A column whose value follows from the category on an axis.

    Attributes
    ----------
    name, axis
        The column, and the axis that it follows from.
    values
        Its value for each category of the axis.
    """

    name: str
    axis: str
    values: tuple[Label, ...]


def carry(
    carried: Mapping[str, Coded], columns: Mapping[str, Coded], domain: Domain, where: Callable[[int], str]
) -> tuple[Carried, ...]:
    """The carried columns, each with the smallest axis that it follows from."""
    if not carried:
        return ()
    codes = category_codes(columns, domain, where)
    axes = sorted(domain.axes, key=lambda name: len(domain.axis(name)))
    return tuple(_carry(name, column, codes, axes, domain) for name, column in carried.items())


def _carry(name: str, column: Coded, codes: Mapping[str, np.ndarray], axes: Sequence[str], domain: Domain) -> Carried:
    axis = next((axis for axis in axes if follows(codes[axis], column.codes)), None)
    if axis is None:
        raise DataError(
            f"A column to carry must follow from an axis: each category has one value. Column {name!r} follows from "
            f"none. Leave it out with drop=."
        )
    first_rows = np.full(len(domain.axis(axis)), -1)
    first_rows[codes[axis][::-1]] = np.arange(len(column))[::-1]
    if first_rows.min() < 0:
        raise DataError(
            f"A column to carry must have a value for each category of its axis, but some categories of {axis!r} have "
            f"no row, and leaving {name!r} empty there would show it. Add rows with a count of 0, or leave it out with "
            f"drop=."
        )
    return Carried(name, axis, tuple(column.values[code] for code in column.codes[first_rows].tolist()))
