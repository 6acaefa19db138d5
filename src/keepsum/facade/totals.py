"""What a plan keeps, in every form that users have it: declared totals, a lattice, or a matrix."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from keepsum._text import shown_name, type_of
from keepsum.errors import InputError
from keepsum.lattice import Lattice
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants
from keepsum.tables.released import ReleasedTable
from keepsum.tables.table import Table

EXPECTED = "Totals to keep must be Invariants, a Lattice or a matrix of whole numbers"


def as_invariants(totals: Any) -> Invariants:
    """The totals to keep: as declared, those of a lattice, or the rows of a matrix, whose cells have no names.

    >>> as_invariants([[1, 1, 0], [0, 1, 1]])
    Invariants(2 weighted totals; 3 cells)
    """
    if isinstance(totals, Invariants):
        return totals
    if isinstance(totals, Lattice):
        return Invariants.matrix(totals.matrix)
    if isinstance(totals, np.ndarray) or sparse.issparse(totals) or _is_nested(totals):
        return Invariants.matrix(totals)
    raise InputError(f"{EXPECTED}, got {_instead(totals)}")


def _is_nested(totals: Any) -> bool:
    """Whether it is a list of lists, and none of them has text, which would be names of axes."""
    if not isinstance(totals, (list, tuple)) or not totals:
        return False
    rows = [row for row in totals if isinstance(row, (list, tuple, np.ndarray))]
    texts = any(isinstance(entry, str) for row in rows if not isinstance(row, np.ndarray) for entry in row)
    return len(rows) == len(totals) and any(map(len, rows)) and not texts


def _instead(totals: Any) -> str:
    """What was given instead, and the call that was probably meant."""
    if isinstance(totals, Table):
        axis = shown_name(totals.domain.axes[0])
        call = f"table.keep({axis if axis.startswith(chr(39)) else '...'})"
        return f"a Table. Say which totals of it: ks.plan({call}, ...), or ks.release(table, keep=[...], ...)."
    if isinstance(totals, ReleasedTable):
        return "a released table, which is not confidential any more. Plan with the totals of the original table."
    if isinstance(totals, Domain):
        return "a Domain. Say which margins: ks.plan(ks.Invariants.margins(domain, [...]), ...)."
    if isinstance(totals, (str, PathLike)):
        return f"{shown_name(str(totals))}. Read the table first, then ks.plan(table.keep(...), ...)."
    if hasattr(type(totals), "columns"):  # of the type, because a lazy frame would have to find out
        return "a data frame. Use table = ks.Table.from_frame(frame, ...), then ks.plan(table.keep(...), ...)."
    if isinstance(totals, (list, tuple, set)) and _names_axes(totals):
        return "names of axes. Axes belong to a table: ks.plan(table.keep(...), ...)."
    return f"{type_of(totals)}. For a table, ks.plan(table.keep(...), ...)."


def _names_axes(totals: Iterable[Any]) -> bool:
    return any(
        isinstance(entry, str) or (isinstance(entry, (list, tuple)) and any(isinstance(name, str) for name in entry))
        for entry in totals
    )
