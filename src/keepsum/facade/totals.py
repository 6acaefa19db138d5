"""Which cells a plan is for, and what it keeps, in every form that users have: declared totals, lattices, matrices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from keepsum._arguments import check_whole
from keepsum._text import shown_name, type_of
from keepsum.errors import InputError
from keepsum.lattice import Lattice
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants
from keepsum.tables.records import LARGEST_BOUND, Records, changes_of
from keepsum.tables.released import ReleasedTable
from keepsum.tables.table import Table

Matrix: TypeAlias = Lattice | npt.ArrayLike | sparse.sparray | sparse.spmatrix
Keep: TypeAlias = Invariants | Iterable[str | Iterable[str]] | Matrix
MARGINS = "Totals to keep must be Invariants or a list of margins"
EXPECTED = "Totals to keep must be Invariants, a Lattice or a matrix of whole numbers"


def kept_totals(table: Any, keep: Any) -> Invariants:
    """The totals to keep in a table or its domain; without either, those of cells that only the totals know.

    >>> kept_totals(Domain({"county": ["Alpha", "Beta"], "sex": ["f", "m"]}), ["county", []])
    Invariants(2 totals of county, the grand total; 4 cells)
    >>> kept_totals(None, [[1, 1, 0], [0, 1, 1]])
    Invariants(2 weighted totals; 3 cells)
    """
    if table is None:
        return _alone(keep)
    if not isinstance(table, (Table, Domain)):
        raise InputError(f"The table must be a keepsum Table or its Domain, got {_instead_of_table(table)}")
    domain = table.domain if isinstance(table, Table) else table
    if isinstance(keep, Invariants):
        return keep.over(domain)
    if isinstance(keep, (Lattice, np.ndarray)) or sparse.issparse(keep):
        return _alone(keep).over(domain)
    if not isinstance(keep, Iterable) or isinstance(keep, (bytes, Mapping)):
        raise InputError(f"{MARGINS}, got {type_of(keep)}.")
    return Invariants.margins(domain, [[axes] if isinstance(axes, str) else axes for axes in _listed(keep)])


def records_of(table: Any, max_rows_per_unit: Any) -> Records | None:
    """The records behind a table; for other cells, as many of one person as are given."""
    if max_rows_per_unit is None:
        return table.records if isinstance(table, Table) else None
    most = check_whole(max_rows_per_unit, "The number of records per unit", 1, LARGEST_BOUND)
    if not isinstance(table, Table):
        return None if most == 1 else Records(None, most)
    if table.records is None and most != 1:
        raise InputError(
            "max_rows_per_unit= must be left out for a table of counts, in which one person is one count. Count "
            "records with ks.tabulate(..., unit=, max_rows_per_unit=), or plan for the table's domain."
        )
    if changes_of(table.records) != most:
        raise InputError(
            "max_rows_per_unit= must be that of the table, which was counted with another bound. Leave it out."
        )
    return table.records


def _alone(keep: Any) -> Invariants:
    """Totals that have their cells: as declared, of a lattice, or the rows of a matrix, whose cells have no names."""
    if isinstance(keep, Invariants):
        return keep
    if isinstance(keep, Lattice):
        return Invariants.matrix(keep.matrix)
    if isinstance(keep, np.ndarray) or sparse.issparse(keep) or _is_nested(keep):
        return Invariants.matrix(keep)
    raise InputError(f"{EXPECTED}, got {_instead_of_totals(keep)}")


def _listed(keep: Any) -> list[Any]:
    return [keep] if isinstance(keep, str) else list(keep)


def _is_nested(totals: Any) -> bool:
    """Whether it is a list of lists, and none of them has text, which would be names of axes."""
    if not isinstance(totals, (list, tuple)) or not totals:
        return False
    rows = [row for row in totals if isinstance(row, (list, tuple, np.ndarray))]
    texts = any(isinstance(entry, str) for row in rows if not isinstance(row, np.ndarray) for entry in row)
    return len(rows) == len(totals) and any(map(len, rows)) and not texts


def _instead_of_table(table: Any) -> str:
    """What was given for a table instead, and the call that was probably meant."""
    if isinstance(table, ReleasedTable):
        return "a released table, which is not confidential any more. Plan with the original table."
    if isinstance(table, (Invariants, Lattice, np.ndarray)) or sparse.issparse(table) or _is_nested(table):
        return f"{type_of(table)}. Totals that have their cells are given alone: keep=..., mechanism=..."
    if isinstance(table, (str, PathLike)):
        return f"{shown_name(str(table))}. Read the table first: ks.read_table."
    if hasattr(type(table), "columns"):  # of the type, because a lazy frame would have to find out
        return "a data frame. Use ks.Table.from_frame(frame, ...)."
    return f"{type_of(table)}."


def _instead_of_totals(totals: Any) -> str:
    """What was given for totals instead, and the call that was probably meant."""
    if isinstance(totals, Table):
        axis = shown_name(totals.domain.axes[0])
        margins = f"[{axis}]" if axis.startswith(chr(39)) else "[...]"
        return f"a Table. Say which totals of it: ks.plan(table, keep={margins}, mechanism=...)."
    if isinstance(totals, ReleasedTable):
        return "a released table, which is not confidential any more. Plan with the original table."
    if isinstance(totals, Domain):
        return "a Domain. Say which margins of it: ks.plan(domain, keep=[...], mechanism=...)."
    if isinstance(totals, (str, PathLike)) or (isinstance(totals, (list, tuple, set)) and _names_axes(totals)):
        return "names of axes. Axes belong to a table: ks.plan(table, keep=[...], mechanism=...)."
    if hasattr(type(totals), "columns"):  # of the type, because a lazy frame would have to find out
        return "a data frame. Use table = ks.Table.from_frame(frame, ...), then ks.plan(table, keep=[...], ...)."
    return f"{type_of(totals)}. For a table, ks.plan(table, keep=[...], mechanism=...)."


def _names_axes(totals: Iterable[Any]) -> bool:
    return any(
        isinstance(entry, str) or (isinstance(entry, (list, tuple)) and any(isinstance(name, str) for name in entry))
        for entry in totals
    )
