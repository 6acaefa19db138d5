"""Graver bases of small lattices by project-and-lift, and the longest change that real tables need, found from them.

Entries are taken up one after another (Hemmecke 2002; Hemmecke, Malkin 2009). Let G be the minimal vectors of the
lattice as far as the entries taken up so far tell, and let q be the next entry. Order vectors by the l1 norm t of the
entries before q. Then every minimal vector with q that is not in G is the sum of two of smaller t, which agree in sign
before q and differ in sign at q. *Proof.* Before q it is a conformal sum of smaller ones, so it is a sum of minimal
vectors with q of smaller t that agree in sign before q. Take the sum with the smallest absolute values at q. Two of its
terms differ in sign there; unless these two are all, their own sum has a smaller t and could be replaced by the minimal
vectors of which it is a conformal sum, with smaller values at q. So for t in order: list these sums, and keep those to
which no known vector is conformal.

Where q is the first entry of a basis vector b, with value m > 0, an entry at q is known modulo m only: each vector has
two lifts, the smallest entry that is not negative and the one below 0, and b is a minimal vector, too, of norm 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from keepsum._arrays import BoolArray, IntArray
from keepsum._work import spend
from keepsum.lattice.elimination import eliminate
from keepsum.lattice.matrix import Row, dense, from_flint, to_flint

WIDTH = 128  # columns of a lattice whose Graver basis is tried
OPERATIONS = 25 * 10**7  # on words, about a second
CALL, COPIED, SORTED = 2 * 10**4, 5, 25  # operations that stand for a call, an entry that is copied or sorted
PER_STEP = 250  # operations for a step of work that is limited
CHUNK = 10**5  # pairs that are compared at once
AT_ONCE = 100  # elements whose need is found at once
LARGEST = 2**24  # entries that are stored: squares add up without overflow

Words = npt.NDArray[np.uint64]


class TooLongError(Exception):
    """The work exceeds its limit, or an entry what is stored."""


class Work:
    """Operations that may still be done; counted, never timed, so that they suffice on every machine or on none."""

    def __init__(self, operations: int = OPERATIONS) -> None:
        self.left = operations

    def count(self, operations: int) -> None:
        """Count operations that are about to be done."""
        self.left -= operations + CALL
        if self.left < 0:
            raise TooLongError
        spend((operations + CALL) // PER_STEP)


def graver_basis(vectors: list[Row], width: int, work: Work) -> IntArray:
    """The Graver basis of the lattice of these vectors, one row each, with both signs.

    Raises
    ------
    TooLongError
        If that takes too many operations.

    Examples
    --------
    >>> basis = graver_basis([{0: 1, 1: -2, 2: 1}, {1: 1, 2: -2, 3: 1}], 4, Work())
    >>> sorted(g for g in basis.tolist() if g > [0, 0, 0, 0])
    [[0, 1, -2, 1], [1, -2, 1, 0], [1, -1, -1, 1], [1, 0, -3, 2], [2, -3, 0, 1]]
    """
    steps, rest = _echelon(vectors, width)
    known = np.zeros((0, width), dtype=np.int64)
    done: list[int] = []
    for q, b in steps:
        known = _lifted(known, done, q, b, work)
        done.append(q)
    while rest:
        signs = np.sign(known[:, rest])
        q = rest[int(np.argmin((signs > 0).sum(axis=0)))]  # few pairs that differ in sign
        known = _lifted(known, done, q, None, work)
        done.append(q)
        rest.remove(q)
    return known


def _echelon(vectors: list[Row], width: int) -> tuple[list[tuple[int, IntArray]], list[int]]:
    """Basis vectors, each with an entry in which the later ones are 0, and the other entries that are no multiples."""
    units = list(eliminate(vectors, width, units_only=True).pivots.values())
    order = units + [j for j in range(width) if j not in set(units)]
    place = {j: n for n, j in enumerate(order)}
    rows = from_flint(to_flint([{place[j]: entry for j, entry in v.items()} for v in vectors], width).hnf())
    basis = dense([{order[n]: entry for n, entry in row.items()} for row in rows if row], width)
    if basis.dtype == object or np.abs(basis).max() > LARGEST:
        raise TooLongError
    pivots = [order[min(row)] for row in rows if row]
    column = basis // np.maximum(np.gcd.reduce(basis, axis=0), 1)
    seen = {_up_to_sign(column[:, q]) for q in pivots}
    rest = []
    for q in range(width):
        if column[:, q].any() and _up_to_sign(column[:, q]) not in seen:
            seen.add(_up_to_sign(column[:, q]))
            rest.append(q)
    return list(zip(pivots, basis, strict=True)), rest


def _up_to_sign(entries: IntArray) -> tuple[int, ...]:
    listed = entries.tolist()
    return max(tuple(listed), tuple(-entry for entry in listed))


def _lifted(known: IntArray, done: list[int], q: int, b: IntArray | None, work: Work) -> IntArray:
    """The minimal vectors as far as the entries ``done`` and q tell, from those as far as ``done`` tells."""
    known = _lifts(known, q, b)
    levels: dict[int, list[IntArray]] = defaultdict(list)
    norms = np.abs(known[:, done]).sum(axis=1)
    for t in np.unique(norms).tolist():
        levels[t].append(known[norms == t])
    sides: dict[int, tuple[IntArray, IntArray]] = {t: _sides(parts[0], q) for t, parts in levels.items()}
    t = 0
    while True:
        up = [a for a, (more, _) in sides.items() if len(more)]
        work.count(len(up) ** 2)
        t = min((a + c for a in up for c in up if a + c > t), default=0)
        if not t:
            break
        sums = [_sums(sides[a][0], sides[t - a][1], done, work) for a in sorted(up) if t - a in up]
        new = _once(_lifts(np.vstack(sums), q, b), [*done, q])
        new = _minimal(new, [part for a in levels if a < t for part in levels[a]], [*done, q], work)
        if len(new):
            if np.abs(new).max() > LARGEST:
                raise TooLongError
            levels[t] += [new, -new]
            sides[t] = _sides(np.vstack(levels[t]), q)
    vectors = [part for parts in levels.values() for part in parts]
    if b is not None:
        vectors.append(np.array([b, -b]))
    return np.vstack(vectors)


def _lifts(vectors: IntArray, q: int, b: IntArray | None) -> IntArray:
    """The vectors; where b may be added, with the smallest entries at q of either sign."""
    if b is None:
        return vectors
    up = vectors - (vectors[:, q] // b[q])[:, None] * b
    lifts = np.vstack([up, up[up[:, q] > 0] - b])
    if np.abs(lifts).max(initial=0) > LARGEST:
        raise TooLongError
    return lifts


def _sides(vectors: IntArray, q: int) -> tuple[IntArray, IntArray]:
    return vectors[vectors[:, q] > 0], vectors[vectors[:, q] < 0]


def _once(vectors: IntArray, entries: list[int]) -> IntArray:
    """Vectors that differ in these entries, of each pair up to sign the one whose first entry is positive."""
    shown = vectors[:, entries]
    first = np.take_along_axis(shown, (shown != 0).argmax(axis=1)[:, None], axis=1)[:, 0]
    vectors, shown = vectors[first > 0], shown[first > 0]
    return vectors[np.unique(shown, axis=0, return_index=True)[1]]


def _sums(more: IntArray, less: IntArray, done: list[int], work: Work) -> IntArray:
    """The sums of a vector of each kind that agree in sign in the entries ``done``."""
    first, second = more[:, done], less[:, done]
    one, other = _words(np.hstack([first > 0, first < 0])), _words(np.hstack([second < 0, second > 0]))
    pairs = list(_disjoint(one, other, work))
    work.count(SORTED * sum(len(i) for i, _ in pairs) * more.shape[1])
    return np.vstack([more[:0], *(more[i] + less[k] for i, k in pairs)])


def _minimal(vectors: IntArray, known: list[IntArray], entries: list[int], work: Work) -> IntArray:
    """Those of the vectors to which no known one is conformal, in these entries."""
    for smaller in known:
        parts = [np.hstack([np.maximum(v, 0), np.maximum(-v, 0)]) for v in (smaller[:, entries], vectors[:, entries])]
        below = np.zeros(len(vectors), dtype=bool)
        for _, k in _below(parts[0], parts[1], work):
            below[k] = True
        vectors = vectors[~below]
    return vectors


def _below(smaller: IntArray, larger: IntArray, work: Work) -> Iterator[tuple[IntArray, IntArray]]:
    """The pairs of a vector and another that is at least as large everywhere; no entry is negative."""
    for i, k in _disjoint(_words(smaller > 0), _words(larger == 0), work):
        work.count(COPIED * len(i) * smaller.shape[1])
        is_below = (smaller[i] <= larger[k]).all(axis=1)
        yield i[is_below], k[is_below]


def _disjoint(one: Words, other: Words, work: Work) -> Iterator[tuple[IntArray, IntArray]]:
    """The pairs of a column of one and a column of the other that have no bit in common."""
    height = max(1, CHUNK // max(1, other.shape[1]))
    for start in range(0, one.shape[1], height):
        chunk = one[:, start : start + height]
        work.count(chunk.size * other.shape[1])
        common = np.zeros((chunk.shape[1], other.shape[1]), dtype=np.uint64)
        for word, other_word in zip(chunk, other, strict=True):
            common |= word[:, None] & other_word
        i, k = np.nonzero(common == 0)
        yield start + i, k


def _words(flags: BoolArray) -> Words:
    """Flags as bits: an array of shape (words, rows of flags)."""
    packed = np.packbits(flags, axis=1)
    padded = np.zeros((len(flags), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64).T


def needed(elements: IntArray, lengths: IntArray, work: Work) -> int:
    """The largest distance of real tables from the nearest with 1 where they have 0, given a Graver basis.

    That is max(min(|g| : g_j > 0, g- <= h-) : h, j with h_j > 0), see ``graver``; ``lengths`` are those of the
    elements in any norm. The longest elements h come first, as no h needs more than itself.
    """
    increase, decrease = elements > 0, np.maximum(-elements, 0)
    order = np.argsort(-lengths, kind="stable")
    most = 0
    for start in range(0, len(order), AT_ONCE):
        h = order[start : start + AT_ONCE]
        if lengths[h[0]] <= most:
            break
        least = np.full((len(h), elements.shape[1]), lengths.max())
        for i, k in _below(decrease, decrease[h], work):
            work.count(COPIED * len(i) * elements.shape[1])
            np.minimum.at(least, k, np.where(increase[i], lengths[i][:, None], lengths.max()))
        most = max(most, int(least[increase[h]].max()))
    return most
