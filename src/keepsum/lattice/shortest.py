"""How short a lattice vector can be that passes through a column, or falls at one column and rises at another.

A vector of l1 length t splits into two halves of lengths ceil(t/2) and floor(t/2) with equal images under the
matrix. All short halves are listed by image; two halves that meet make a lattice vector. The lists, and the number of
meetings looked at, are bounded: past the bound a length is an upper bound, and is called one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, product
from math import comb
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from keepsum.lattice.matrix import IntArray, Row

# Halves listed at most, and pairs of halves with one image that are looked at: a second each.
HALVES_LIMIT, MEETINGS_LIMIT = 200_000, 200_000
ORDINARY = 4  # totals that a column stands in
# Columns whose pairs are looked at: two million pairs, half a second.
PAIRS_LIMIT = 2_000
# Pairs of a column and a class for which a vector is put together from two of the basis, and how many are tried.
MENDED_LIMIT, TRIED = 3_000, 12
NONE = 2**60  # the length of what does not exist, or is not known to
# Under totals of 0 and 1 without equal columns, vectors up to this l1 length have no entry of 2: 2a = b + c means
# a = b = c, and 2a + b = c, 2a = b mean that a is 0.
ALL_ONES = 4
_SHIFT = 31

Half = tuple[tuple[int, int], ...]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Measure:
    """How long a vector is, as one whole number that adds up over vectors on different columns.

    Under totals of weights 0 and 1 (``fewest_first``) the vectors that change the fewest counts are compared, and of
    these the longest in the l2 norm stands for all; else vectors are compared by their own length.

    Examples
    --------
    >>> measure = Measure("l2", fewest_first=True)
    >>> short, long = measure.key(4, 4), measure.key(4, 6)
    >>> min(short, long) == long, measure.lengths(np.array([long + measure.key(2, 2)])).tolist()
    (True, [8])
    """

    norm: Literal["l1", "l2"]
    fewest_first: bool

    @property
    def packed(self) -> bool:
        """Whether a number holds both lengths."""
        return self.norm == "l2" and self.fewest_first

    def key(self, l1: int, squared_l2: int) -> int:
        """The number of a vector of these lengths; the smaller number is the vector that counts."""
        longest = l1 if self.norm == "l1" else max(l1, squared_l2)
        if longest >= 2**28:
            return NONE
        if self.packed:
            return (l1 << _SHIFT) - squared_l2
        return l1 if self.norm == "l1" else squared_l2

    def lengths(self, keys: IntArray) -> IntArray:
        """The l1 lengths, or the squared l2 lengths; ``NONE`` stays."""
        if not self.packed:
            return np.minimum(keys, NONE)
        return np.where(keys >= NONE, NONE, -keys % (1 << _SHIFT))

    def entries(self, keys: IntArray) -> IntArray:
        """The least l1 length that vectors of these numbers can have."""
        return np.where(keys >= NONE, NONE, -(-keys >> _SHIFT)) if self.packed else np.minimum(keys, NONE)

    def of(self, entries: Iterable[int], sizes: Iterable[int]) -> int:
        """The number of a vector of sums, each over so many cells.

        Vectors that are compared by their l2 length spread a sum evenly over its cells; the longest does not.
        """
        counted = [abs(entry) for entry in entries]
        squares = [n * n if self.fewest_first else _spread(n, size) for n, size in zip(counted, sizes, strict=True)]
        return self.key(sum(counted), sum(squares))


def _spread(total: int, cells: int) -> int:
    """The smallest sum of squares of that many whole numbers with that sum."""
    each, more = divmod(total, cells)
    return (cells - more) * each**2 + more * (each + 1) ** 2


@dataclass(eq=False)
class ShortVectors:
    """The short vectors of the lattice of a connected block without two equal columns, found as they are needed.

    Attributes
    ----------
    matrix, basis
        The totals, and a basis of their lattice: its vectors give the first upper bounds.
    sizes
        How many cells each column stands for.
    vectors
        What is known, up to sign.
    unseen
        The least l1 length of a vector that may not be known.
    """

    matrix: sparse.csr_array
    basis: list[Row]
    sizes: IntArray
    limit: int = HALVES_LIMIT
    vectors: list[Row] = field(init=False)
    unseen: int = field(init=False)

    def __post_init__(self) -> None:
        self._even = all(sum(vector.values()) % 2 == 0 for vector in self.basis)
        self._search = _search(self.matrix, self.limit)
        self._seen: set[Half] = set()
        self.vectors = []
        self._learn(self.basis)
        self.cycles = four_cycles(self.matrix)
        self._advance(1)  # two equal columns are ruled out

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.matrix.shape[1])

    def extend(self) -> bool:
        """List the vectors of the next length; False if that would take too long."""
        found = next(self._search, None)
        if found is None:
            return False
        self._learn(found[0])
        self._advance(found[1])
        return True

    def _advance(self, known: int) -> None:
        """An l1 length is odd only if the sum of the entries is."""
        self.unseen = known + 1 + (known + 1) % 2 * self._even

    def _learn(self, vectors: Iterable[Row]) -> None:
        for vector in vectors:
            half = tuple(sorted(vector.items()))
            name = half if half[0][1] > 0 else tuple((j, -entry) for j, entry in half)
            if name not in self._seen:
                self._seen.add(name)
                self.vectors.append(vector)

    def through(self, measure: Measure, columns: list[int]) -> tuple[IntArray, IntArray]:
        """For each column the length of the shortest vector through it: an upper and a lower bound.

        Only that of the columns named is looked for any further than the basis goes.
        """
        upper = np.full(self.width, NONE)
        upper[np.unique(self.cycles)] = measure.key(4, 4)
        done = 0
        while True:
            for key, vector in self._weighed(measure, done):
                places = list(vector)
                upper[places] = np.minimum(upper[places], key)
            done = len(self.vectors)
            if not self._open(upper[columns], measure).any() or not self.extend():
                return self._bounds(upper, measure)

    def opposite(
        self, measure: Measure, classes: BoolArray, wanted: BoolArray, ceiling: IntArray
    ) -> tuple[IntArray, IntArray]:
        """The shortest vector that falls at a column and rises at one of a class: an upper and a lower bound.

        Parameters
        ----------
        classes
            Which columns belong to which class: (columns, classes).
        wanted
            The pairs of a column and a class that matter.
        ceiling
            For each pair a length beyond which it does not matter.
        """
        upper = np.where(self._by_cycles(classes), measure.key(4, 4), NONE)
        done = 0
        while True:
            for key, vector in self._weighed(measure, done):
                down = [j for j, entry in vector.items() if entry < 0]
                up = [j for j, entry in vector.items() if entry > 0]
                for fall, rise in ((down, up), (up, down)):
                    if fall and rise:
                        place = np.ix_(np.array(fall), np.flatnonzero(classes[rise].any(axis=0)))
                        upper[place] = np.minimum(upper[place], key)
            done = len(self.vectors)
            if not (wanted & self._open(np.minimum(upper, ceiling), measure)).any() or not self.extend():
                break
        self._add_cycles(upper, measure, classes, wanted & self._open(np.minimum(upper, ceiling), measure))
        impossible = self._mend(upper, measure, classes, wanted & (np.minimum(upper, ceiling) >= NONE))
        high, low = self._bounds(upper, measure)
        return high, np.where(impossible, NONE, low)

    def _open(self, keys: IntArray, measure: Measure) -> BoolArray:
        """Whether a vector not seen yet could count instead."""
        fewest = measure.entries(keys)
        longer = measure.packed & (fewest == self.unseen) & (fewest > ALL_ONES)
        return np.asarray((fewest > self.unseen) | longer)

    def _weighed(self, measure: Measure, start: int) -> Iterator[tuple[int, Row]]:
        sizes = self.sizes.tolist()
        for vector in self.vectors[start:]:
            yield measure.of(vector.values(), (sizes[j] for j in vector)), vector

    def _by_cycles(self, classes: BoolArray) -> BoolArray:
        """The pairs of a column and a class that one of the four-cycles joins."""
        if not len(self.cycles):
            return np.zeros(classes.shape, dtype=bool)
        first, second = self.cycles[:, :2], self.cycles[:, 2:]
        fall = np.concatenate([np.repeat(first, 2, axis=1), np.repeat(second, 2, axis=1)]).ravel()
        rise = np.concatenate([np.tile(second, 2), np.tile(first, 2)]).ravel()
        joined = sparse.csr_array((np.ones(len(fall), dtype=np.int32), (fall, rise)), shape=(self.width,) * 2)
        return np.asarray((joined @ classes.astype(np.int32)) > 0)

    def _add_cycles(self, upper: IntArray, measure: Measure, classes: BoolArray, wanted: BoolArray) -> None:
        """Try sums of two four-cycles for pairs that may have something shorter: where they share a column, six."""
        if not len(self.cycles) or wanted.sum() > MENDED_LIMIT:
            return
        falling: dict[int, list[Row]] = {}
        for cycle in np.random.default_rng(0).permutation(self.cycles).tolist():
            for place, column in enumerate(cycle):
                near = falling.setdefault(column, [])
                if len(near) < 2 * TRIED:
                    sign = -1 if place < 2 else 1
                    near.append(dict(zip(cycle, (sign, sign, -sign, -sign), strict=True)))
        for column, label in zip(*map(np.ndarray.tolist, np.nonzero(wanted)), strict=True):
            for other in np.flatnonzero(classes[:, label])[:TRIED].tolist():
                pairs = product(falling.get(column, ()), falling.get(other, ()))
                sums = (_sum(first, _scaled(second, -1)) for first, second in pairs)
                both = next((z for z in sums if z.get(column, 0) < 0 < z.get(other, 0) and _l1(z) <= 6), None)
                if both is not None:
                    key = measure.of(both.values(), self.sizes[list(both)].tolist())
                    upper[column, label] = min(int(upper[column, label]), key)
                    break

    def _mend(self, upper: IntArray, measure: Measure, classes: BoolArray, missing: BoolArray) -> BoolArray:
        """Put vectors together for pairs that none is known of yet; which pairs can have none at all."""
        impossible = np.zeros(classes.shape, dtype=bool)
        weight = 1 + sum(map(len, self.basis)) // (2 * ORDINARY * len(self.basis))  # long vectors cost more
        pairs = zip(*map(np.ndarray.tolist, np.nonzero(missing)), strict=True)
        for column, label in islice(pairs, MENDED_LIMIT // weight):
            others = np.flatnonzero(classes[:, label]).tolist()
            found = (self._put_together(column, other) for other in others[:TRIED])
            vector = next((vector for vector in found if vector is not None), None)
            if vector is not None:
                upper[column, label] = measure.of(vector.values(), self.sizes[list(vector)].tolist())
            impossible[column, label] = vector is None and len(others) <= TRIED
        return impossible

    def _put_together(self, fall: int, rise: int) -> Row | None:
        """A vector that falls at one column and rises at another, of two of the basis; None if there is none.

        Where the two entries are proportional over the whole basis with a positive factor there is none; else
        two vectors of the basis with a determinant other than 0 give one.
        """
        near = sorted((v for v in self.basis if fall in v or rise in v), key=_l1)
        entries = [(v.get(fall, 0), v.get(rise, 0)) for v in near]
        pairs = zip(near, entries, strict=True)
        found = [vector if a < 0 else _scaled(vector, -1) for vector, (a, b) in pairs if a * b < 0]
        for p, (a, b) in enumerate(entries):
            for q in range(p):
                c, d = entries[q]
                determinant = a * d - b * c
                if determinant:
                    sign = 1 if determinant > 0 else -1
                    found.append(_sum(_scaled(near[p], -sign * (d + c)), _scaled(near[q], sign * (a + b))))
                if len(found) >= TRIED:
                    break
        return min(found, key=_l1, default=None)

    def _bounds(self, upper: IntArray, measure: Measure) -> tuple[IntArray, IntArray]:
        """What was found, and how short what was not seen could be."""
        fewest = measure.entries(upper)
        least = np.minimum(fewest, self.unseen)
        if not measure.packed:
            return upper, np.where(fewest > self.unseen, least, upper)
        # Of the vectors of this l1 length another may be longer in the l2 norm. No entry m is as large as half of n: in
        # each of its totals as much is given as taken, so m at least on the other side, and if that were all, then
        # m times one column would be a sum of m columns: all of them equal. So its square is at most m n.
        doubtful = (fewest >= self.unseen) & (fewest > ALL_ONES) & (fewest < NONE)
        longest = (fewest << _SHIFT) - (fewest - 1) // 2 * fewest
        low = (least << _SHIFT) - least
        return np.where(doubtful, longest, upper), np.where(doubtful | (fewest > self.unseen), low, upper)


def _l1(vector: Row) -> int:
    return sum(map(abs, vector.values()))


def _scaled(vector: Row, factor: int) -> Row:
    return {j: factor * entry for j, entry in vector.items()}


def _sum(a: Row, b: Row) -> Row:
    total = dict(a)
    for j, entry in b.items():
        total[j] = total.get(j, 0) + entry
    return {j: entry for j, entry in total.items() if entry}


def four_cycles(matrix: sparse.csr_array) -> IntArray:
    """Vectors ``e_i + e_j - e_k - e_l`` of the lattice, as rows (i, j, k, l), so that each pair of columns is in one.

    Columns get random weights, so that equal sums of two columns have equal weights; what looks equal is then
    checked in integers. Seeing none proves nothing.
    """
    width = matrix.shape[1]
    nothing = np.empty((0, 4), dtype=np.int64)
    if width > PAIRS_LIMIT or np.abs(matrix.data).max(initial=0) > 2**40:
        return nothing
    weights = np.random.default_rng(0).integers(-(2**62), 2**62, size=matrix.shape[0])
    with np.errstate(over="ignore"):
        column_weight = np.asarray(matrix.T @ weights)  # modulo 2^64, as good a weight as any
        i, j = np.triu_indices(width, 1)
        pair_weight = column_weight[i] + column_weight[j]
    order = np.argsort(pair_weight, kind="stable")
    alike = np.flatnonzero(np.diff(pair_weight[order]) == 0)
    one, two = order[alike], order[alike + 1]
    cycles = np.stack([i[one], j[one], i[two], j[two]], axis=1)
    cycles = cycles[(np.diff(np.sort(cycles, axis=1), axis=1) > 0).all(axis=1)]
    if not len(cycles):
        return nothing
    signs = np.tile(np.array([1, 1, -1, -1], dtype=np.int64), len(cycles))
    rows = sparse.csr_array((signs, cycles.ravel(), np.arange(0, 4 * len(cycles) + 1, 4)), shape=(len(cycles), width))
    image = (rows @ matrix.T).tocsr()
    image.eliminate_zeros()
    return np.asarray(cycles[np.diff(image.indptr) == 0])


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
    listed = meetings = 0
    weight = 1 + columns.nnz // (ORDINARY * width)  # columns in many totals cost more
    for t in range(1, 64):
        size = (t + 1) // 2
        if len(shells) <= size:
            listed += weight * _shell_size(width, size)
            if listed > limit:
                return
            shells.append(_shell(entries, size))
        long, short = shells[size], shells[t // 2]
        meetings += sum(len(halves) * len(short.get(image, ())) for image, halves in long.items())
        if meetings > MEETINGS_LIMIT:
            return
        yield list(_meet(long, short, t)), t


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
