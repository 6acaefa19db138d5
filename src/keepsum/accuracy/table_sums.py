"""The variance of sums of cells of a full table with all its margins kept, from two numbers.

The noise has the same law after any permutation of the rows, of the columns, and of the cells of one region. Let y be
the sums over regions and e what each cell differs from its share of y. The covariance of y commutes with these
permutations and vanishes on the margins, so it is v times the tensor product of the projections P_n = I - J/n along the
axes. Cells of a region sum up to y, and are exchangeable: e is uncorrelated with y and between regions, and has
covariance w P_s in a region of s cells. Noise in two blocks is uncorrelated, because its law stays the same if one
changes its sign.

So every simulated cell counts for v and w, and a few draws of a large table are enough for all its sums.
"""

from __future__ import annotations

import math
from itertools import chain, combinations

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.lattice.structure import Structure
from keepsum.planning.groups import BlockGroup


def is_table(structure: Structure, group: BlockGroup) -> bool:
    """Whether the blocks are full tables with all their margins kept, and regions of one size."""
    if not group.members or group.members[0].system.grid is None:
        return False
    sizes = structure.sizes[group.members[0].regions]
    return bool((sizes == sizes[0]).all())


def table_variances(
    structure: Structure, group: BlockGroup, cells: IntArray, noise: IntArray, sums: IntArray, count: int
) -> Floats:
    """The variance that the cells of these tables add to each sum.

    Parameters
    ----------
    structure, group
        The blocks, for which :func:`is_table` holds.
    cells, noise
        Their cells, and simulated noise, one row per draw.
    sums, count
        In which of how many sums each cell of the whole table is.
    """
    grid = group.members[0].system.grid
    if grid is None:
        raise AssertionError("checked by the caller")
    shape = grid.shape
    entries = math.prod(shape)
    place = np.full(len(structure.sizes), -1, dtype=np.int64)  # the entry of each region, blocks one after the other
    for number, block in enumerate(group.members):
        place[block.regions[grid.column.ravel()]] = number * entries + np.arange(entries)
    entry = place[structure.region[cells]]
    size = int(structure.sizes[group.members[0].regions[0]])
    of_regions, within = _scales(noise, entry, entries * len(group.members), size, shape)
    keys, k = np.unique(sums[cells] * (entries * len(group.members)) + entry, return_counts=True)
    total, entry = np.divmod(keys, entries * len(group.members))
    squares = _projected(total, entry // entries, entry % entries, k, shape, count)
    inside = np.bincount(total, weights=k * (1 - k / size), minlength=count)
    return np.asarray(of_regions / size**2 * np.maximum(squares, 0) + within * inside)


def _scales(noise: IntArray, entry: IntArray, entries: int, size: int, shape: tuple[int, ...]) -> tuple[float, float]:
    """The numbers v and w, from the mean squares of y and e."""
    y_squares = e_squares = 0.0
    for row in noise:
        y = np.bincount(entry, weights=row, minlength=entries)
        y_squares += float(y @ y)
        e = row - y[entry] / size
        e_squares += float(e @ e)
    draws = len(noise)
    v = y_squares / (draws * entries * math.prod(1 - 1 / n for n in shape))
    return v, e_squares / (draws * len(entry) * (1 - 1 / size)) if size > 1 else 0.0


def _projected(
    total: IntArray, block: IntArray, entry: IntArray, k: IntArray, shape: tuple[int, ...], count: int
) -> Floats:
    """|P K|^2 for each sum, where K has its number of cells in each entry: by inclusion and exclusion over the axes."""
    places = np.unravel_index(entry, shape)
    axes = range(len(shape))
    squares = np.zeros(count)
    for summed in chain.from_iterable(combinations(axes, number) for number in range(len(shape) + 1)):
        key = total * (int(block.max(initial=0)) + 1) + block
        for axis in axes:
            if axis not in summed:
                key = key * shape[axis] + places[axis]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        added = np.bincount(inverse, weights=k)
        sign = (-1) ** len(summed) / math.prod(shape[axis] for axis in summed)
        squares += sign * np.bincount(total[first], weights=added**2, minlength=count)
    return squares
