"""How short a lattice vector can be that passes through a column, or falls at one column and rises at another.

Short vectors are listed by length (``halves.py``) until they decide, or until that would take too long: then a length
is an upper bound, of vectors put together from others, and is called one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, product
from math import gcd

import numpy as np
from scipy import sparse

from keepsum.lattice.halves import HALVES_LIMIT, Half, vectors_by_length
from keepsum.lattice.matrix import BoolArray, IntArray, Row
from keepsum.lattice.measure import NONE, SHIFT, UNKNOWN, Measure

# Columns whose pairs are looked at: two million pairs, half a second.
PAIRS_LIMIT = 2_000
# Pairs of a column and a class for which a vector is put together of two others one by one, and how many are tried.
MENDED_LIMIT, TRIED = 300, 12
NEAR = 30  # vectors of the basis that are put together for one pair
SUMMED = 4  # columns of a class whose vectors are added to those of all others
CYCLES = 20_000  # four-cycles that are looked at for it
# Under totals of 0 and 1 without equal columns, vectors up to this l1 length have no entry of 2: 2a = b + c means
# a = b = c, and 2a + b = c, 2a = b mean that a is 0.
ALL_ONES = 4


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
        self._search = vectors_by_length(self.matrix, self.limit)
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
        upper = np.full(self.width, UNKNOWN)
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
        upper = np.where(self._by_cycles(classes), measure.key(4, 4), UNKNOWN)
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
        self._add_two(upper, measure, classes)
        doubtful = wanted & self._open(np.minimum(upper, ceiling), measure)
        if doubtful.sum() <= MENDED_LIMIT:
            self._add_cycles(upper, measure, classes, doubtful)
        impossible = self._impossible(classes)
        missing = wanted & ~impossible & (np.minimum(upper, ceiling) >= UNKNOWN)
        if missing.sum() <= MENDED_LIMIT:
            self._mend(upper, measure, classes, missing)
        high, low = self._bounds(upper, measure)
        return np.where(impossible, NONE, high), np.where(impossible, NONE, low)

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
        if (classes.sum(axis=1) == 1).all():  # one class each
            reached = np.zeros(classes.shape, dtype=bool)
            reached[fall, classes.argmax(axis=1)[rise]] = True
            return reached
        joined = sparse.csr_array((np.ones(len(fall), dtype=np.int32), (fall, rise)), shape=(self.width,) * 2)
        return np.asarray((joined @ sparse.csr_array(classes.astype(np.int32))).toarray() > 0)

    def _impossible(self, classes: BoolArray) -> BoolArray:
        """Pairs with no vector at all: where the entries of the class are positive multiples of that of the column."""
        rows: list[list[int]] = [[] for _ in range(self.width)]
        for k, vector in enumerate(self.basis):
            for j, entry in vector.items():
                rows[j] += k, entry
        known: dict[tuple[int, ...], int] = {}
        direction = np.empty(self.width, dtype=np.int64)
        for j, row in enumerate(rows):
            divisor = gcd(*row[1::2])
            row[1::2] = [entry // divisor for entry in row[1::2]]
            direction[j] = known.setdefault(tuple(row), len(known))
        first = np.where(classes, direction[:, None], self.width).min(axis=0)
        last = np.where(classes, direction[:, None], -1).max(axis=0)
        return np.asarray((first == last)[None, :] & (direction[:, None] == first[None, :]))

    def _add_two(self, upper: IntArray, measure: Measure, classes: BoolArray) -> None:
        """Sums of the shortest vector known through a column and one through a column of the class, where they fit."""
        passing = self._passing()
        own = passing.diagonal()
        l1 = np.asarray(abs(passing).sum(axis=1)).ravel()
        squares = np.asarray(passing.power(2).sum(axis=1)).ravel()
        by_column = passing.tocsc()
        length = squares if measure.norm == "l2" and not measure.fewest_first else l1
        for label in range(classes.shape[1]):
            inside = np.flatnonzero(classes[:, label] & (own != 0))
            for other in inside[np.argsort(l1[inside], kind="stable")[:SUMMED]].tolist():
                if (upper[:, label] < UNKNOWN).all():
                    break
                rising = -passing[[other]].toarray()[0]
                at_other = by_column[:, [other]].toarray()[:, 0]
                fits = (own < 0) & (own + rising < 0) & (at_other + rising[other] > 0)
                upper[:, label] = np.minimum(upper[:, label], np.where(fits, _sums(measure, length, other), UNKNOWN))

    def _passing(self) -> sparse.csr_array:
        """For each column the shortest vector known through it, falling there: as rows of a matrix."""
        best: dict[int, Row] = {}
        for cycle in self.cycles[np.unique(self.cycles.ravel(), return_index=True)[1] // 4].tolist():
            vector = dict(zip(cycle, (1, 1, -1, -1), strict=True))
            for j in cycle:
                best.setdefault(j, vector)
        for vector in self.vectors:
            length = _l1(vector)
            for j in vector:
                if j not in best or length < _l1(best[j]):
                    best[j] = vector
        rows: list[int] = []
        columns: list[int] = []
        data: list[int] = []
        for j, vector in best.items():
            if max(map(abs, vector.values())) < 2**24:
                sign = -1 if vector[j] > 0 else 1
                rows += [j] * len(vector)
                columns += vector
                data += [sign * entry for entry in vector.values()]
        entries = (np.array(data, dtype=np.int64), (np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64)))
        return sparse.csr_array(entries, shape=(self.width,) * 2)

    def _add_cycles(self, upper: IntArray, measure: Measure, classes: BoolArray, wanted: BoolArray) -> None:
        """Try sums of two four-cycles for pairs that may have something shorter: where they share a column, six."""
        falling: dict[int, list[Row]] = {}
        for cycle in np.random.default_rng(0).permutation(self.cycles)[:CYCLES].tolist():
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

    def _mend(self, upper: IntArray, measure: Measure, classes: BoolArray, missing: BoolArray) -> None:
        """Put vectors of the basis together for pairs that none is known of yet."""
        for column, label in zip(*map(np.ndarray.tolist, np.nonzero(missing)), strict=True):
            found = (self._put_together(column, other) for other in np.flatnonzero(classes[:, label])[:TRIED].tolist())
            vector = next((vector for vector in found if vector is not None), None)
            if vector is not None:
                upper[column, label] = measure.of(vector.values(), self.sizes[list(vector)].tolist())

    def _put_together(self, fall: int, rise: int) -> Row | None:
        """A vector that falls at one column and rises at another, of two of the basis whose determinant is not 0."""
        near = sorted((v for v in self.basis if fall in v or rise in v), key=_l1)[:NEAR]
        entries = [(v.get(fall, 0), v.get(rise, 0)) for v in near]
        pairs = zip(near, entries, strict=True)
        found = [vector if a < 0 else _scaled(vector, -1) for vector, (a, b) in pairs if a * b < 0]
        for (p, (a, b)), (q, (c, d)) in combinations(enumerate(entries), 2):
            determinant = c * b - d * a
            if len(found) >= TRIED:
                break
            if determinant:
                sign = 1 if determinant > 0 else -1
                found.append(_sum(_scaled(near[q], -sign * (b + a)), _scaled(near[p], sign * (c + d))))
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
        doubtful = (fewest >= self.unseen) & (fewest > ALL_ONES) & (fewest < UNKNOWN)
        sure = np.where(doubtful, fewest, 0)
        longest = (sure << SHIFT) - (sure - 1) // 2 * sure
        low = (least << SHIFT) - least
        return np.where(doubtful, longest, upper), np.where(doubtful | (fewest > self.unseen), low, upper)


def _sums(measure: Measure, length: IntArray, other: int) -> IntArray:
    """The numbers of the sums of vectors of these lengths with one of them, at most."""
    both = length + length[other]
    both = np.where(both < 2**26, both, UNKNOWN >> SHIFT)
    if measure.packed:
        return (both << SHIFT) - both  # in the l2 norm more, as of anything that is not known to be the shortest
    return np.where(both >= 2**26, UNKNOWN, both if measure.norm == "l1" else 2 * both)


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
