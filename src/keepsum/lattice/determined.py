"""Which sums of cells a matrix of totals determines, and which values it lets change, by exact arithmetic.

A sum is determined if it is the same for all vectors with the same totals: if every vector of the lattice has sum 0.
The lattice is the direct sum of its parts (``structure.py``): the sum must have one weight in each region, none in
regions that no total contains, and be orthogonal to a basis of every block; forced regions are determined anyway.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from keepsum.lattice.matrix import Row, matrix_rows
from keepsum.lattice.structure import FORCED, FREE, Structure


def determined(structure: Structure, sums: sparse.csr_array) -> npt.NDArray[np.bool_]:
    """For each row, whether the totals determine the sum of cells with these weights.

    Examples
    --------
    Of a table of 2 x 2 with both margins, no cell is determined, but the sum of a row is, and that of all cells:

    >>> from keepsum.lattice.structure import decompose
    >>> table = decompose(sparse.csr_array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]))
    >>> determined(table, sparse.csr_array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]])).tolist()
    [False, True, True]
    """
    of_cell = sums.tocsr()
    result = np.ones(of_cell.shape[0], dtype=bool)
    rows = np.repeat(np.arange(of_cell.shape[0]), np.diff(of_cell.indptr))
    regions = structure.region[of_cell.indices]
    result[rows[structure.part[regions] == FREE]] = False
    # One weight in each region: as many entries as the region has cells, and all alike.
    keys = rows * len(structure.sizes) + regions
    pairs, first, place, entries = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    result[(pairs // len(structure.sizes))[entries != structure.sizes[pairs % len(structure.sizes)]]] = False
    result[rows[of_cell.data != of_cell.data[first][place]]] = False
    weights = sparse.csr_array(
        (of_cell.data[first], (pairs // len(structure.sizes), pairs % len(structure.sizes))),
        shape=(of_cell.shape[0], len(structure.sizes)),
    )
    _check_blocks(structure, weights, result)
    return result


def can_change(structure: Structure, values: npt.NDArray[np.int64]) -> bool:
    """Whether a vector of the lattice takes from a cell of one value and gives to a cell of another.

    Two cells that are not pinned allow it unless their entries have the same positive ratio in every vector: then they
    are single regions of one block, whose entries in a basis are proportional.

    Examples
    --------
    >>> from keepsum.lattice.structure import decompose
    >>> rows = decompose(sparse.csr_array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]))
    >>> can_change(rows, np.array([0, 0, 1, 1])), can_change(rows, np.array([0, 1, 0, 1]))
    (False, True)
    """
    cells = np.setdiff1d(np.arange(len(structure.region)), structure.pinned)
    if not len(cells) or values[cells].min() == values[cells].max():
        return False
    regions = structure.region[cells]
    parts = np.unique(structure.part[regions])
    if (structure.sizes[regions] > 1).any() or len(parts) > 1 or parts[0] < 0:
        return True
    system = structure.blocks[int(parts[0])].system
    through = _through(system.basis, system.width)
    first, *others = [{id(vector): vector[place] for vector in vectors} for place, vectors in enumerate(through)]
    # If two cells have other ratios, so have two of different values: else all cells of all ratios had one value.
    return not all(_same_ratio(entries, first) for entries in others)


def _same_ratio(entries: dict[int, int], others: dict[int, int]) -> bool:
    """Whether one is a positive multiple of the other."""
    if entries.keys() != others.keys():
        return False
    (a, b), *_ = [(entries[key], others[key]) for key in entries]
    return a * b > 0 and all(entries[key] * b == others[key] * a for key in entries)


def _check_blocks(structure: Structure, weights: sparse.csr_array, result: npt.NDArray[np.bool_]) -> None:
    """Sums that are left must be orthogonal to the basis of every block that they touch."""
    candidates = np.flatnonzero(result)
    if not len(candidates) or not structure.blocks:
        return
    place = np.full(len(structure.sizes), -1, dtype=np.int64)  # of a region within its block
    for block in structure.blocks:
        place[block.regions] = np.arange(len(block.regions))
    through: dict[int, list[list[Row]]] = {}  # for each system, the basis vectors through each of its regions
    for candidate, row in zip(candidates.tolist(), matrix_rows(weights[candidates]), strict=True):
        parts: dict[int, Row] = {}
        for region, weight in row.items():
            part = int(structure.part[region])
            if part != FORCED:
                parts.setdefault(part, {})[int(place[region])] = weight
        for part, entries in parts.items():
            system = structure.blocks[part].system
            if id(system) not in through:
                through[id(system)] = _through(system.basis, system.width)
            if not _orthogonal(entries, through[id(system)]):
                result[candidate] = False
                break


def _through(basis: list[Row], width: int) -> list[list[Row]]:
    vectors: list[list[Row]] = [[] for _ in range(width)]
    for vector in basis:
        for region in vector:
            vectors[region].append(vector)
    return vectors


def _orthogonal(entries: Row, through: list[list[Row]]) -> bool:
    """Whether a row is orthogonal to every basis vector that it meets."""
    return all(
        sum(weight * entries.get(region, 0) for region, weight in vector.items()) == 0
        for start in entries
        for vector in through[start]
    )
