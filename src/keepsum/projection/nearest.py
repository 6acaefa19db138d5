"""The nearest table without negative counts that keeps every total, part by part."""

from __future__ import annotations

import numpy as np

from keepsum._arrays import BoolArray, IntArray
from keepsum.errors import PlanError
from keepsum.lattice.structure import FREE, Block, Structure
from keepsum.lattice.two_way import TwoWay
from keepsum.privacy.distance import Norm
from keepsum.projection.programs import check_size, distance, nearest_sums
from keepsum.projection.tables import nearest_entries

# Cells with a given sum, nearest to their counts and not negative: a closed form.
#
# Cells x with counts y and sum s are nearest where each is max(y - level, 0) for one level, as in the projection on a
# simplex. In integers: the smallest level at which these add up to at most s, and one more for the first cells that
# are not below it, until the sum is s.
#
# It is the nearest table in l2: a unit costs the change of (x - y)^2, the first at least as much as the last one, and
# the units that are cheapest are those of the largest y - x, so giving them out one by one (a greedy algorithm on a
# separable convex function) ends here; the units that cost the same at the end go to the first cells. It is nearest
# in l1 too: if s is below the sum of max(y, 0) the level is positive, so no cell is above its max(y, 0); otherwise
# none is below it. Either way the l1 distance is the sum of max(-y, 0) plus |s - sum of max(y, 0)|, and no table has
# less, because each cell is at least max(-y, 0) away plus |x - max(y, 0)|.


def fill(region: IntArray, counts: IntArray, sums: IntArray) -> IntArray:
    """The nearest cells that are not negative, in l1 and in l2, with the given sum in each region.

    Parameters
    ----------
    region
        The region of each cell.
    counts
        The count of each cell.
    sums
        The sum of each region, not negative.

    Examples
    --------
    >>> fill(np.zeros(5, dtype=np.int64), np.array([5, -2, 1, 4, 4]), np.array([12])).tolist()
    [5, 0, 1, 3, 3]
    """
    cells, rank, starts, sizes = _largest_first(region, counts, len(sums))
    ordered = counts[cells]
    below = np.concatenate([[0], np.cumsum(ordered)])
    upto = below[1:] - np.repeat(below[starts], sizes)  # the sum of this cell and of the larger ones
    # At the level of a cell, the larger ones add up to this; it grows from cell to cell.
    enough = upto - rank * ordered <= np.repeat(sums, sizes)
    above = np.bincount(region[cells], weights=enough, minlength=len(sums)).astype(np.int64)
    filled = np.flatnonzero(sizes)
    last = starts[filled] + above[filled] - 1
    level = np.zeros(len(sums), dtype=np.int64)
    level[filled] = -((sums[filled] - upto[last]) // above[filled])
    result: IntArray = np.maximum(counts - level[region], 0)
    rest = sums.copy()
    np.subtract.at(rest, region, result)
    result += _first(region, counts >= level[region], rest)
    return result


def _largest_first(region: IntArray, counts: IntArray, number: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Cells by region, the largest count first; their rank from 1; where regions start, and their sizes."""
    order = np.lexsort((-counts, region))
    sizes = np.bincount(region, minlength=number)
    starts = np.cumsum(sizes) - sizes
    return order, np.arange(len(order)) - np.repeat(starts, sizes) + 1, starts, sizes


def _first(region: IntArray, chosen: BoolArray, numbers: IntArray) -> IntArray:
    """1 for the first cells of each region among those chosen, as many as its number; 0 for the others."""
    order = np.argsort(region, kind="stable")
    flags = chosen[order]
    seen = np.cumsum(flags)
    sizes = np.bincount(region, minlength=len(numbers))
    starts = np.cumsum(sizes) - sizes
    before = np.concatenate([[0], seen])[starts]
    one = np.empty(len(region), dtype=np.int64)
    one[order] = flags & (seen - np.repeat(before, sizes) <= np.repeat(numbers, sizes))
    return one


# The nearest table without negative counts that keeps every total, part by part.
#
# The tables with the same totals are the released one plus the lattice, which is the direct sum of its parts
# (``lattice/structure.py``), so each part is projected by itself. Free cells are raised to 0. Cells with a forced sum
# have a closed form (``sums.py``), and every hierarchy consists of such parts. Two-way tables are flows
# (``tables.py``), and other overlapping totals go to a solver (``programs.py``). Cells of one region are always the
# nearest ones with its sum.
#
# *Which* table, if several are nearest: in l1, the one among them that is nearest in l2; of several still, the one
# whose first region has the largest sum, then the second, and so on, regions in the order of their first cells; and
# in each region a unit that could go to several cells goes to the first of them. Where a solver is needed it is any
# of the nearest: its distance is determined, the table is not.


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
