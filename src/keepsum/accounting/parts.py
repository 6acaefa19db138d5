"""Whether kept totals lie inside disjoint parts of a domain, as parallel composition requires."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.lattice.matrix import as_integers
from keepsum.tables.invariants import Invariants

_OUTSIDE = -1


def check_parts(parts: Sequence[Iterable[int]], invariants: Invariants) -> None:
    """Check that parts have no cell in common, and that every kept total lies inside one of them.

    A total that reaches beyond its part tells about other parts, so that the losses must be added up instead.

    Parameters
    ----------
    parts
        The cells of each part, numbered as those of the invariants.
    invariants
        The kept totals of all releases.

    Raises
    ------
    InputError
        If a cell is in two parts, or a total is in no single one.

    Examples
    --------
    >>> import keepsum as ks
    >>> check_parts([[0, 1], [2, 3]], ks.Invariants.subsets(4, [[0, 1], [2, 3]]))
    >>> check_parts([[0, 1], [2, 3]], ks.Invariants.subsets(4, [[0, 1, 2, 3]], names=["everybody"]))
    Traceback (most recent call last):
    ...
    keepsum.errors.InputError: Every kept total must lie inside one part, and everybody does not. Use compose instead.
    """
    if not isinstance(invariants, Invariants):
        raise InputError(f"Kept totals must be Invariants, got {type_of(invariants)}.")
    if not isinstance(parts, Iterable) or not all(isinstance(part, Iterable) for part in parts):
        raise InputError("Parts must be a list of lists of cells.")
    part_of = np.full(invariants.size, _OUTSIDE, dtype=np.int64)
    for k, part in enumerate(parts):
        cells = as_integers(list(part), f"Part {k}").reshape(-1)
        if cells.size and (cells.min() < 0 or cells.max() >= invariants.size):
            raise InputError(f"Cells of part {k} must be whole numbers from 0 to {invariants.size - 1}.")
        if len(np.unique(cells)) < len(cells) or (part_of[cells] != _OUTSIDE).any():
            raise InputError(f"Parts must have no cell in common, and a cell of part {k} comes twice.")
        part_of[cells] = k
    rows = invariants.coefficients
    filled = np.flatnonzero(np.diff(rows.indptr))
    if not len(filled):
        return
    touched, starts = part_of[rows.indices], rows.indptr[filled]
    first, last = np.minimum.reduceat(touched, starts), np.maximum.reduceat(touched, starts)
    wrong = filled[(first == _OUTSIDE) | (first != last)]
    if len(wrong):
        name = invariants.name(int(wrong[0]))
        raise InputError(f"Every kept total must lie inside one part, and {name} does not. Use compose instead.")
