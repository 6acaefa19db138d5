"""The shortest lattice vectors through a column, or from one column to another, in the norm of a mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, product
from math import comb, gcd
from typing import Literal

import numpy as np
from scipy import sparse

from keepsum._arrays import BoolArray, IntArray
from keepsum._work import spend
from keepsum.lattice.matrix import Row

# The length of a lattice vector in the norm of a mechanism, as one integer that can be compared and added.


UNKNOWN = 2**58  # the key of a vector that may exist but was not found
NONE = 2**60  # the key of a vector that does not exist
SHIFT = 31  # a packed key is the l1 length shifted left by this many bits, minus the squared l2 length


@dataclass(frozen=True)
class Measure:
    """The length of a vector as one integer, its *key*, which is additive over vectors on disjoint columns.

    Under totals with weights 0 and 1 (``fewest_first``) the vectors that change the fewest counts come first, and among
    them the longest in the l2 norm. Otherwise vectors are compared by length.

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
        """Whether a key holds both lengths."""
        return self.norm == "l2" and self.fewest_first

    def key(self, l1: int, squared_l2: int) -> int:
        """The key of a vector with these lengths; the vector with the smallest key is the one that matters."""
        larger = l1 if self.norm == "l1" else max(l1, squared_l2)
        if larger >= 2**26:  # so that the sum of two keys stays below UNKNOWN
            return UNKNOWN
        if self.packed:
            return (l1 << SHIFT) - squared_l2
        return l1 if self.norm == "l1" else squared_l2

    def lengths(self, keys: IntArray) -> IntArray:
        """The l1 lengths or the squared l2 lengths; sums with ``UNKNOWN`` or ``NONE`` become these again."""
        lengths = -keys % (1 << SHIFT) if self.packed else keys
        return np.where(keys >= NONE, NONE, np.where(keys >= UNKNOWN, UNKNOWN, lengths))

    def entries(self, keys: IntArray) -> IntArray:
        """The smallest l1 length that vectors with these keys can have."""
        fewest = -(-keys >> SHIFT) if self.packed else keys
        return np.where(keys >= NONE, NONE, np.where(keys >= UNKNOWN, UNKNOWN, fewest))

    def of(self, entries: Iterable[int], sizes: Iterable[int]) -> int:
        """The key of a vector of region sums, where each region has the given number of cells.

        Where the shortest l2 vector counts, each sum is spread evenly over the cells of its region; where the longest
        counts, it goes to one cell.
        """
        sums = [abs(entry) for entry in entries]
        squares = [n * n if self.fewest_first else _spread(n, size) for n, size in zip(sums, sizes, strict=True)]
        return self.key(sum(sums), sum(squares))


def _spread(total: int, cells: int) -> int:
    """The smallest sum of squares of this many integers with this sum."""
    each, remainder = divmod(total, cells)
    return (cells - remainder) * each**2 + remainder * (each + 1) ** 2


# All lattice vectors of l1 length 1, 2, 3, ..., exactly and in integers, for as long as that takes about a second.
#
# Meet in the middle: a vector of l1 length t is the difference of two halves of lengths ceil(t/2) and floor(t/2) with
# equal images under the matrix. All short halves are listed by image; two halves with one image make a lattice
# vector.


# At most this many halves are listed, and this many pairs of halves with one image compared: a second each.
HALVES_LIMIT, MATCHES_LIMIT = 200_000, 200_000
STEPS_PER_HALF = 5
TYPICAL_TOTALS = 4  # totals that contain a column, in a typical table

Half = tuple[tuple[int, int], ...]


def vectors_by_length(matrix: sparse.csr_array, limit: int) -> Iterator[tuple[list[Row], int]]:
    """For t = 1, 2, 3, ...: all lattice vectors of l1 length t up to sign, until the lists get too long."""
    columns = matrix.tocsc()
    width = matrix.shape[1]
    entries = [
        tuple(zip(columns.indices[a:b].tolist(), columns.data[a:b].tolist(), strict=True))
        for a, b in zip(columns.indptr[:-1], columns.indptr[1:], strict=True)
    ]
    shells: list[dict[Half, list[Half]]] = [{(): [()]}]
    listed = matches = 0
    weight = 1 + columns.nnz // (TYPICAL_TOTALS * width)  # columns in many totals cost more
    for t in range(1, 64):
        size = (t + 1) // 2
        if len(shells) <= size:
            listed += weight * _shell_size(width, size)
            if listed > limit:
                return
            spend(STEPS_PER_HALF * weight * _shell_size(width, size))
            shells.append(_shell(entries, size))
        long, short = shells[size], shells[t // 2]
        matches += sum(len(halves) * len(short.get(image, ())) for image, halves in long.items())
        if matches > MATCHES_LIMIT:
            return
        spend(STEPS_PER_HALF * matches)
        yield list(_match(long, short, t)), t


def _shell_size(width: int, length: int) -> int:
    """The number of integer vectors of this l1 length."""
    return sum(comb(width, k) * comb(length - 1, k - 1) * 2**k for k in range(1, length + 1))


def _shell(entries: list[tuple[tuple[int, int], ...]], length: int) -> dict[Half, list[Half]]:
    """All integer vectors of this l1 length, by image."""
    shell: dict[Half, list[Half]] = {}

    def extend(start: int, remaining: int, vector: Half, image: Row) -> None:
        if remaining == 0:
            key = tuple(sorted((i, e) for i, e in image.items() if e))
            shell.setdefault(key, []).append(vector)
            return
        for j in range(start, len(entries)):
            for value in (*range(1, remaining + 1), *range(-1, -remaining - 1, -1)):
                moved = dict(image)
                for i, e in entries[j]:
                    moved[i] = moved.get(i, 0) + value * e
                extend(j + 1, remaining - abs(value), (*vector, (j, value)), moved)

    extend(0, length, (), {})
    return shell


def _match(long: dict[Half, list[Half]], short: dict[Half, list[Half]], length: int) -> Iterator[Row]:
    """The differences of two halves with one image that have the full length, so that nothing cancels."""
    for image, halves in long.items():
        for a in halves:
            for b in short.get(image, ()):
                vector = dict(a)
                for j, value in b:
                    vector[j] = vector.get(j, 0) - value
                if sum(abs(value) for value in vector.values()) == length:
                    yield {j: value for j, value in vector.items() if value}


# The shortest lattice vectors that are nonzero at a column, or negative at one column and positive at another.
#
# Short vectors are listed by length (``shortest.py``) until they settle the question or the search takes too long. In
# that case the length of a combination of known vectors is an upper bound, and is reported as one.


# Four-cycles are searched for among at most this many columns: two million pairs, half a second.
PAIRS_LIMIT = 2_000
# At most this many pairs of a column and a class are treated one by one, with this many columns of the class each.
MENDED_LIMIT, COLUMNS_TRIED = 300, 12
BASIS_TRIED = 30  # vectors of the basis that are combined for one pair
COLUMNS_SUMMED = 4  # columns of a class whose vectors are added to the vectors of all other columns
CYCLES_TRIED = 20_000  # four-cycles that are combined
# Under totals of 0 and 1 without equal columns, vectors up to this l1 length have no entry of 2: 2a = b + c implies
# a = b = c, and 2a + b = c or 2a = b imply a = 0.
ALL_ONES = 4


@dataclass(eq=False)
class ShortVectors:
    """The short vectors of the lattice of a connected block without equal columns, found as they are needed.

    Attributes
    ----------
    matrix, basis
        The totals, and a basis of their lattice, whose vectors give the first upper bounds.
    sizes
        The number of cells that each column stands for.
    vectors
        The vectors known so far, up to sign.
    unseen
        All vectors of a smaller l1 length than this are known.
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
        self._advance(1)  # without zero columns no vector has length 1

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.matrix.shape[1])

    def extend(self) -> bool:
        """List the vectors of the next length; False if that would take too long."""
        listing = next(self._search, None)
        if listing is None:
            return False
        vectors, length = listing
        self._learn(vectors)
        self._advance(length)
        return True

    def _advance(self, known: int) -> None:
        """Record that all vectors up to an l1 length are known; it is odd only if the sum of the entries is."""
        self.unseen = known + 1 + (known + 1) % 2 * self._even

    def _learn(self, vectors: Iterable[Row]) -> None:
        for vector in vectors:
            entries = tuple(sorted(vector.items()))
            up_to_sign = entries if entries[0][1] > 0 else tuple((j, -entry) for j, entry in entries)
            if up_to_sign not in self._seen:
                self._seen.add(up_to_sign)
                self.vectors.append(vector)

    def through(self, measure: Measure, columns: list[int]) -> tuple[IntArray, IntArray]:
        """Upper and lower bounds on the shortest vector that is nonzero at each column.

        Beyond the basis, the search goes on only for the given columns.
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
        """Upper and lower bounds on the shortest vector that is negative at a column and positive in a class.

        Parameters
        ----------
        classes
            Which columns belong to which class, of shape (columns, classes).
        wanted
            The pairs of a column and a class that matter.
        ceiling
            For each pair the length beyond which it does not matter.
        """
        upper = np.where(self._by_cycles(classes), measure.key(4, 4), UNKNOWN)
        done = 0
        while True:
            for key, vector in self._weighed(measure, done):
                negative = [j for j, entry in vector.items() if entry < 0]
                positive = [j for j, entry in vector.items() if entry > 0]
                for taken, given in ((negative, positive), (positive, negative)):
                    if taken and given:
                        place = np.ix_(np.array(taken), np.flatnonzero(classes[given].any(axis=0)))
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
        """Whether a vector not yet known could be shorter (or as short, and longer in the l2 norm)."""
        fewest = measure.entries(keys)
        longer = measure.packed & (fewest == self.unseen) & (fewest > ALL_ONES)
        return np.asarray((fewest > self.unseen) | longer)

    def _weighed(self, measure: Measure, start: int) -> Iterator[tuple[int, Row]]:
        sizes = self.sizes.tolist()
        for vector in self.vectors[start:]:
            yield measure.of(vector.values(), (sizes[j] for j in vector)), vector

    def _by_cycles(self, classes: BoolArray) -> BoolArray:
        """The pairs of a column and a class that a four-cycle connects."""
        if not len(self.cycles):
            return np.zeros(classes.shape, dtype=bool)
        first, second = self.cycles[:, :2], self.cycles[:, 2:]
        taken = np.concatenate([np.repeat(first, 2, axis=1), np.repeat(second, 2, axis=1)]).ravel()
        given = np.concatenate([np.tile(second, 2), np.tile(first, 2)]).ravel()
        if (classes.sum(axis=1) == 1).all():  # one class each
            reached = np.zeros(classes.shape, dtype=bool)
            reached[taken, classes.argmax(axis=1)[given]] = True
            return reached
        joined = sparse.csr_array((np.ones(len(taken), dtype=np.int32), (taken, given)), shape=(self.width,) * 2)
        return np.asarray((joined @ sparse.csr_array(classes.astype(np.int32))).toarray() > 0)

    def _impossible(self, classes: BoolArray) -> BoolArray:
        """Pairs without any vector: in every vector, entries of the class are positive multiples of the column's."""
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
        """Try sums of the shortest known vectors at a column and at a column of the class, where the signs fit."""
        shortest = self._shortest()
        at_own = shortest.diagonal()
        l1 = np.asarray(abs(shortest).sum(axis=1)).ravel()
        squares = np.asarray(shortest.power(2).sum(axis=1)).ravel()
        by_column = shortest.tocsc()
        length = squares if measure.norm == "l2" and not measure.fewest_first else l1
        for label in range(classes.shape[1]):
            inside = np.flatnonzero(classes[:, label] & (at_own != 0))
            for other in inside[np.argsort(l1[inside], kind="stable")[:COLUMNS_SUMMED]].tolist():
                if (upper[:, label] < UNKNOWN).all():
                    break
                positive = -shortest[[other]].toarray()[0]
                at_other = by_column[:, [other]].toarray()[:, 0]
                fits = (at_own < 0) & (at_own + positive < 0) & (at_other + positive[other] > 0)
                upper[:, label] = np.minimum(upper[:, label], np.where(fits, _sums(measure, length, other), UNKNOWN))

    def _shortest(self) -> sparse.csr_array:
        """The shortest known vector at each column, negative there, as the rows of a matrix."""
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
        """Try sums of two four-cycles where a shorter vector may exist: if they share a column, length 6."""
        negative_at: dict[int, list[Row]] = {}
        for cycle in np.random.default_rng(0).permutation(self.cycles)[:CYCLES_TRIED].tolist():
            for place, column in enumerate(cycle):
                through_column = negative_at.setdefault(column, [])
                if len(through_column) < 2 * COLUMNS_TRIED:
                    sign = -1 if place < 2 else 1
                    through_column.append(dict(zip(cycle, (sign, sign, -sign, -sign), strict=True)))
        for column, label in zip(*map(np.ndarray.tolist, np.nonzero(wanted)), strict=True):
            for other in np.flatnonzero(classes[:, label])[:COLUMNS_TRIED].tolist():
                pairs = product(negative_at.get(column, ()), negative_at.get(other, ()))
                sums = (_sum(first, _scaled(second, -1)) for first, second in pairs)
                vector = next((z for z in sums if z.get(column, 0) < 0 < z.get(other, 0) and _l1(z) <= 6), None)
                if vector is not None:
                    key = measure.of(vector.values(), self.sizes[list(vector)].tolist())
                    upper[column, label] = min(int(upper[column, label]), key)
                    break

    def _mend(self, upper: IntArray, measure: Measure, classes: BoolArray, missing: BoolArray) -> None:
        """Combine vectors of the basis for pairs without a known vector."""
        for column, label in zip(*map(np.ndarray.tolist, np.nonzero(missing)), strict=True):
            others = np.flatnonzero(classes[:, label])[:COLUMNS_TRIED].tolist()
            candidates = (self._combination(column, other) for other in others)
            vector = next((vector for vector in candidates if vector is not None), None)
            if vector is not None:
                upper[column, label] = measure.of(vector.values(), self.sizes[list(vector)].tolist())

    def _combination(self, taken: int, given: int) -> Row | None:
        """A vector negative at one column and positive at another, from two of the basis with nonzero determinant."""
        nonzero = sorted((v for v in self.basis if taken in v or given in v), key=_l1)[:BASIS_TRIED]
        entries = [(v.get(taken, 0), v.get(given, 0)) for v in nonzero]
        pairs = zip(nonzero, entries, strict=True)
        candidates = [vector if a < 0 else _scaled(vector, -1) for vector, (a, b) in pairs if a * b < 0]
        for (p, (a, b)), (q, (c, d)) in combinations(enumerate(entries), 2):
            determinant = c * b - d * a
            if len(candidates) >= COLUMNS_TRIED:
                break
            if determinant:
                sign = 1 if determinant > 0 else -1
                candidates.append(_sum(_scaled(nonzero[q], -sign * (b + a)), _scaled(nonzero[p], sign * (c + d))))
        return min(candidates, key=_l1, default=None)

    def _bounds(self, upper: IntArray, measure: Measure) -> tuple[IntArray, IntArray]:
        """The lengths found, and lower bounds given that a shorter vector may not be known."""
        fewest = measure.entries(upper)
        least = np.minimum(fewest, self.unseen)
        if not measure.packed:
            return upper, np.where(fewest > self.unseen, least, upper)
        # Another vector of this l1 length n may be longer in the l2 norm. No entry m is as large as n / 2: in each of
        # its totals as much is added as removed, so the other side has at least m, and if it had no more, then m times
        # one column would be a sum of m columns, all of them equal. So the squared l2 length is at most m n.
        doubtful = (fewest >= self.unseen) & (fewest > ALL_ONES) & (fewest < UNKNOWN)
        sure = np.where(doubtful, fewest, 0)
        longest = (sure << SHIFT) - (sure - 1) // 2 * sure
        low = (least << SHIFT) - least
        return np.where(doubtful, longest, upper), np.where(doubtful | (fewest > self.unseen), low, upper)


def _sums(measure: Measure, length: IntArray, other: int) -> IntArray:
    """Upper bounds on the keys of the sums of vectors of these lengths with one of them."""
    total = length + length[other]
    total = np.where(total < 2**26, total, UNKNOWN >> SHIFT)
    if measure.packed:
        return (total << SHIFT) - total  # longer in the l2 norm: _bounds corrects it, as the vector may not be shortest
    return np.where(total >= 2**26, UNKNOWN, total if measure.norm == "l1" else 2 * total)


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
    """Vectors ``e_i + e_j - e_k - e_l`` of the lattice as rows (i, j, k, l), one for each pair of columns that has one.

    Each column gets a random weight, so that equal sums of two columns have equal weights; candidates are then checked
    in integers. Finding none proves nothing.
    """
    width = matrix.shape[1]
    no_cycles = np.empty((0, 4), dtype=np.int64)
    if width > PAIRS_LIMIT or np.abs(matrix.data).max(initial=0) > 2**40:
        return no_cycles
    weights = np.random.default_rng(0).integers(-(2**62), 2**62, size=matrix.shape[0])
    with np.errstate(over="ignore"):
        column_weight = np.asarray(matrix.T @ weights)  # modulo 2^64, which serves as well
        i, j = np.triu_indices(width, 1)
        pair_weight = column_weight[i] + column_weight[j]
    order = np.argsort(pair_weight, kind="stable")
    equal = np.flatnonzero(np.diff(pair_weight[order]) == 0)
    one, two = order[equal], order[equal + 1]
    cycles = np.stack([i[one], j[one], i[two], j[two]], axis=1)
    cycles = cycles[(np.diff(np.sort(cycles, axis=1), axis=1) > 0).all(axis=1)]
    if not len(cycles):
        return no_cycles
    signs = np.tile(np.array([1, 1, -1, -1], dtype=np.int64), len(cycles))
    rows = sparse.csr_array((signs, cycles.ravel(), np.arange(0, 4 * len(cycles) + 1, 4)), shape=(len(cycles), width))
    image = (rows @ matrix.T).tocsr()
    image.eliminate_zeros()
    return np.asarray(cycles[np.diff(image.indptr) == 0])
