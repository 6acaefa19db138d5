"""The nearest table without negative counts that keeps every total, part by part.

The tables with the same totals are the released one plus the lattice, which is the direct sum of its parts
(``lattice/structure.py``), so each part is projected by itself. Free cells are raised to 0. Cells with a forced sum
have a closed form (``sums.py``), and every hierarchy consists of such parts. Two-way tables are flows (``tables.py``),
and other overlapping totals go to a solver (``programs.py``). Cells of one region are always the nearest ones with its
sum.

*Which* table, if several are nearest: in l1, the one among them that is nearest in l2; of several still, the one whose
first region has the largest sum, then the second, and so on, regions in the order of their first cells; and in each
region a unit that could go to several cells goes to the first of them. Where a solver is needed it is any of the
nearest: its distance is determined, the table is not.
"""

from __future__ import annotations

import numpy as np

from keepsum._arrays import IntArray
from keepsum.errors import PlanError
from keepsum.lattice.structure import FREE, Block, Structure
from keepsum.lattice.two_way import TwoWay
from keepsum.privacy.distance import Norm
from keepsum.projection.programs import check_size, distance, nearest_sums
from keepsum.projection.sums import fill
from keepsum.projection.tables import nearest_entries

LARGEST = 2**62


def check_possible(structure: Structure, norm: Norm) -> None:
    """Refuse what cannot be projected, before any noise is drawn.

    Raises
    ------
    PlanError
        If a block is too large for a solver, or the norm is l2 and a block is not a two-way table.
    """
    for block in structure.blocks:
        if _needs_solver(block):
            _check_norm(norm)
            check_size(block.system)


def is_unique(structure: Structure) -> bool:
    """Whether the nearest table is determined; otherwise only its distance is."""
    return not any(map(_needs_solver, structure.blocks))


def nearest(structure: Structure, counts: IntArray, norm: Norm = "l1") -> IntArray:
    """The nearest table of integers that are not negative, with every kept total unchanged.

    Parameters
    ----------
    structure
        The kept totals, decomposed.
    counts
        The released counts.
    norm
        ``"l1"``, or ``"l2"`` for sums, hierarchies and two-way tables.

    Raises
    ------
    PlanError
        If there is no such table (not so for a release: the confidential table is one), if the norm is l2 and a block
        is not a two-way table, or if a solver does not find it.

    Examples
    --------
    >>> import numpy as np, keepsum as ks
    >>> keep = ks.Invariants.subsets(6, [[0, 1, 2], [3, 4]])
    >>> from keepsum.lattice.structure import decompose
    >>> nearest(decompose(keep.coefficients), np.array([-2, 9, 5, 7, -1, -3])).tolist()
    [0, 8, 4, 6, 0, 0]
    """
    if int(counts.min(initial=0)) >= 0:
        return counts.copy()
    _check_counts(counts)
    sums = _region_sums(structure, counts)
    positive = _region_sums(structure, np.maximum(counts, 0))
    wanted = sums.copy()
    wanted[structure.part == FREE] = positive[structure.part == FREE]
    for block in structure.blocks:
        wanted[block.regions] = _block_sums(structure, block, counts, sums, positive, norm)
    return _filled(structure, counts, wanted)


def is_nearest(structure: Structure, counts: IntArray, projected: IntArray, norm: Norm) -> bool:
    """Whether a table is what ``nearest`` makes of these counts; where a solver is needed, whether it is as near.

    It must keep every total.
    """
    if int(counts.min(initial=0)) >= 0 or int(projected.min(initial=0)) < 0:
        return np.array_equal(counts, projected) and int(projected.min(initial=0)) >= 0
    _check_counts(counts)
    sums = _region_sums(structure, counts)
    positive = _region_sums(structure, np.maximum(counts, 0))
    stated = _region_sums(structure, projected)
    if not np.array_equal(stated[structure.part == FREE], positive[structure.part == FREE]):
        return False
    for block in structure.blocks:
        regions = block.regions
        wanted = _block_sums(structure, block, counts, sums, positive, norm)
        if not _needs_solver(block):
            if not np.array_equal(wanted, stated[regions]):
                return False
        elif distance(stated[regions], positive[regions]) != distance(wanted, positive[regions]):
            return False
    return np.array_equal(_filled(structure, counts, stated), projected)


def _needs_solver(block: Block) -> bool:
    return block.system.two_way is None


def _check_norm(norm: Norm) -> None:
    if norm == "l2":
        raise PlanError(
            "The l2 norm must be used with sums, hierarchies or two-way tables, but these totals overlap in another "
            "way. Use l1."
        )


def _check_counts(counts: IntArray) -> None:
    """Sums of any of these must fit in 64 bits."""
    if max(int(counts.max()), -int(counts.min())) * counts.size >= LARGEST:
        raise PlanError("Counts must be smaller to find the nearest ones that are not negative.")


def _region_sums(structure: Structure, counts: IntArray) -> IntArray:
    sums = np.zeros(len(structure.sizes), dtype=np.int64)
    np.add.at(sums, structure.region, counts)
    return sums


def _block_sums(
    structure: Structure, block: Block, counts: IntArray, sums: IntArray, positive: IntArray, norm: Norm
) -> IntArray:
    """The sums of a block's regions in the nearest table."""
    table, regions = block.system.two_way, block.regions
    if np.array_equal(sums[regions], positive[regions]):  # no count is negative
        return sums[regions]
    if table is None:
        _check_norm(norm)
        return nearest_sums(block.system, sums[regions], positive[regions])
    order = np.argsort(regions)  # the order of their first cells
    cells = [counts[structure.cells(int(region))] for region in regions[order]]
    wanted = np.empty(len(regions), dtype=np.int64)
    wanted[order] = nearest_entries(TwoWay(table.row[order], table.column[order]), cells, norm)
    return wanted


def _filled(structure: Structure, counts: IntArray, wanted: IntArray) -> IntArray:
    """The nearest cells with these sums of regions; only regions that change are worked out."""
    if (wanted < 0).any():
        raise PlanError("No table without negative counts has the kept totals, so there is no nearest one.")
    changes = np.zeros(len(wanted), dtype=bool)
    changes[structure.region[counts < 0]] = True
    changes |= wanted != _region_sums(structure, counts)
    cells = np.flatnonzero(changes[structure.region])
    number = np.cumsum(changes) - 1
    result = counts.copy()
    result[cells] = fill(number[structure.region[cells]], counts[cells], wanted[changes])
    return result
