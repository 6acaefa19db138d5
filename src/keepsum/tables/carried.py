"""Columns that follow from an axis, such as the code of a county, and are published with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from keepsum._arrays import IntArray
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
            f"A column to carry must have one value for each category of its axis, but {name!r} has several for one of "
            f"{axis!r}. Name another axis, or leave the column out with drop=."
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


def _innermost(name: str, domain: Domain) -> str:
    """The axis that no other is nested in, if there is one such axis only."""
    leaves = [axis for axis in domain.axes if axis not in domain.within.values()]
    if len(leaves) > 1:
        example = {name: leaves[0]}
        raise DataError(
            f"A column to carry must come with the axis that it follows from if there are several, such as "
            f"carry={example!r}, got {name!r} alone."
        )
    return leaves[0]
