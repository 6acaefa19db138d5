"""How short a lattice vector through a given column can be, exactly and in integers.

A vector of l1 length t splits into two halves of lengths ceil(t/2) and floor(t/2) with equal images under the
matrix. All short halves are listed by image; two halves that meet make a lattice vector.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from scipy import sparse

from keepsum.lattice.matrix import Row

# Halves listed at most: about a second and 300 MB.
HALVES_LIMIT = 200_000
# Columns whose pairs are looked at: two million pairs, half a second.
PAIRS_LIMIT = 2_000

Half = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Reach:
    """For one norm: the largest, over columns, of the shortest length through the column.

    ``length`` is the l1 length, or the squared l2 length. If not ``exact`` it is an upper bound.
    """

    length: int
    exact: bool


def reach(
    matrix: sparse.csr_array,
    basis: list[Row],
    columns: Iterable[int],
    norm: str,
    sizes: Sequence[int] | None = None,
    limit: int = HALVES_LIMIT,
) -> Reach:
    """The shortest lattice vector through each of some columns, and the largest of these lengths.

    Parameters
    ----------
    matrix, basis
        The totals of a connected block without two equal columns, and a basis of its lattice: its vectors
        give the first upper bounds.
    columns
        The columns that matter.
    norm
        ``"l1"``, or ``"l2"`` for squared lengths.
    sizes
        How many cells each column stands for; an entry is spread over them as evenly as it goes. By default 1.
    limit
        How many half vectors may be listed before the search settles for an upper bound.

    Notes
    -----
    For integers |z|_2^2 >= |z|_1, so when every vector of l1 length up to t is known, an unknown one has both
    lengths at least t + 1. A lattice whose basis vectors all have even sums has only even l1 lengths.

    Examples
    --------
    >>> reach(sparse.csr_array([[2, 3, 5]]), [{0: 1, 1: 1, 2: -1}, {0: -2, 1: 3, 2: -1}], range(3), "l1")
    Reach(length=3, exact=True)
    """
    best: dict[int, int] = {}
    width = sizes or [1] * matrix.shape[1]
    wanted = list(columns)
    for vector in [*basis, *four_cycles(matrix, wanted)]:
        _improve(best, vector, norm, width)
    even = all(sum(vector.values()) % 2 == 0 for vector in basis)
    known = 1  # every vector of l1 length up to this has been seen: two equal columns are ruled out
    for found, covered in _search(matrix, limit):
        for vector in found:
            _improve(best, vector, norm, width)
        known = covered
        if _settled(best, wanted, known, even):
            break
    return Reach(max(best[j] for j in wanted), _settled(best, wanted, known, even))


def _settled(best: dict[int, int], wanted: list[int], known: int, even: bool) -> bool:
    unseen = known + 1 + (known + 1) % 2 * even
    return max(best[j] for j in wanted) <= unseen


def _improve(best: dict[int, int], vector: Row, norm: str, sizes: Sequence[int]) -> None:
    length = sum(abs(e) if norm == "l1" else _spread(abs(e), sizes[j]) for j, e in vector.items())
    for j in vector:
        best[j] = min(length, best.get(j, length))


def _spread(total: int, cells: int) -> int:
    """The smallest sum of squares of that many whole numbers with that sum."""
    each, more = divmod(total, cells)
    return (cells - more) * each**2 + more * (each + 1) ** 2


def four_cycles(matrix: sparse.csr_array, wanted: list[int]) -> list[Row]:
    """For each wanted column a vector ``e_i + e_j - e_k - e_l`` of the lattice, where there is one.

    Columns get random weights, so that equal sums of two columns have equal weights; what looks equal is then
    checked in integers. Seeing none proves nothing.
    """
    width = matrix.shape[1]
    if width > PAIRS_LIMIT:
        return []
    weights = np.random.default_rng(0).integers(-(2**62), 2**62, size=matrix.shape[0])
    with np.errstate(over="ignore"):
        column_weight = np.asarray(matrix.T @ weights)  # modulo 2^64, as good a weight as any
        i, j = np.triu_indices(width, 1)
        pair_weight = column_weight[i] + column_weight[j]
    order = np.argsort(pair_weight, kind="stable")
    alike = np.flatnonzero(np.diff(pair_weight[order]) == 0)
    missing = set(wanted)
    columns = matrix.tocsc()
    found: list[Row] = []
    for one, two in zip(order[alike].tolist(), order[alike + 1].tolist(), strict=True):
        places = {int(i[one]), int(j[one]), int(i[two]), int(j[two])}
        if len(places) == 4 and places & missing:
            vector = {int(i[one]): 1, int(j[one]): 1, int(i[two]): -1, int(j[two]): -1}
            if _in_kernel(columns, vector):
                found.append(vector)
                missing -= places
        if not missing:
            break
    return found


def _in_kernel(columns: sparse.csc_array, vector: Row) -> bool:
    image: Row = {}
    for j, entry in vector.items():
        part = slice(columns.indptr[j], columns.indptr[j + 1])
        for row, value in zip(columns.indices[part].tolist(), columns.data[part].tolist(), strict=True):
            image[row] = image.get(row, 0) + entry * value
    return not any(image.values())


def _search(matrix: sparse.csr_array, limit: int) -> Iterator[tuple[list[Row], int]]:
    """For t = 1, 2, 3, ...: all lattice vectors of l1 length t up to sign, until the lists grow too long."""
    columns = matrix.tocsc()
    width = matrix.shape[1]
    entries = [
        tuple(zip(columns.indices[a:b].tolist(), columns.data[a:b].tolist(), strict=True))
        for a, b in zip(columns.indptr[:-1], columns.indptr[1:], strict=True)
    ]
    shorter: dict[Half, list[Half]] = {(): [()]}
    shells: list[dict[Half, list[Half]]] = [shorter]
    for t in range(1, 64):
        size = (t + 1) // 2
        if len(shells) <= size:
            if _shell_size(width, size) > limit:
                return
            shells.append(_shell(entries, size))
        yield list(_meet(shells[size], shells[t // 2], t)), t


def _shell_size(width: int, length: int) -> int:
    """How many integer vectors have that l1 length."""
    return sum(comb(width, k) * comb(length - 1, k - 1) * 2**k for k in range(1, length + 1))


def _shell(entries: list[tuple[tuple[int, int], ...]], length: int) -> dict[Half, list[Half]]:
    """All integer vectors of that l1 length, by image."""
    shell: dict[Half, list[Half]] = {}

    def extend(start: int, left: int, vector: Half, image: Row) -> None:
        if left == 0:
            key = tuple(sorted((i, e) for i, e in image.items() if e))
            shell.setdefault(key, []).append(vector)
            return
        for j in range(start, len(entries)):
            for value in (*range(1, left + 1), *range(-1, -left - 1, -1)):
                moved = dict(image)
                for i, e in entries[j]:
                    moved[i] = moved.get(i, 0) + value * e
                extend(j + 1, left - abs(value), (*vector, (j, value)), moved)

    extend(0, length, (), {})
    return shell


def _meet(long: dict[Half, list[Half]], short: dict[Half, list[Half]], length: int) -> Iterator[Row]:
    """The differences of two halves with one image that have the full length: none of it cancelled."""
    for image, halves in long.items():
        for a in halves:
            for b in short.get(image, ()):
                vector = dict(a)
                for j, value in b:
                    vector[j] = vector.get(j, 0) - value
                if sum(abs(value) for value in vector.values()) == length:
                    yield {j: value for j, value in vector.items() if value}
