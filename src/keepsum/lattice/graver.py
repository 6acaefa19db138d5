"""How far apart real tables with the same totals must be: the longest change that a count of 1 may need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from keepsum._arrays import BoolArray, IntArray
from keepsum._work import spend
from keepsum.lattice.elimination import eliminate, first_positive
from keepsum.lattice.graphs import connected_components, spanning_forest
from keepsum.lattice.matrix import INT64_MAX, Row, dense, from_flint, magnitude, matrix_rows, rows_matrix, to_flint
from keepsum.lattice.structure import System, identical_columns
from keepsum.lattice.two_way import TwoWay

# Graver bases of small lattices by project-and-lift, and the longest change that real tables need, found from them.
#
# Entries are taken up one after another (Hemmecke 2002; Hemmecke, Malkin 2009). Let G be the minimal vectors of the
# lattice as far as the entries taken up so far tell, and let q be the next entry. Order vectors by the l1 norm t of
# the entries before q. Then every minimal vector with q that is not in G is the sum of two of smaller t, which agree
# in sign before q and differ in sign at q. *Proof.* Before q it is a conformal sum of smaller ones, so it is a sum of
# minimal vectors with q of smaller t that agree in sign before q. Take the sum with the smallest absolute values at
# q. Two of its terms differ in sign there; unless these two are all, their own sum has a smaller t and could be
# replaced by the minimal vectors of which it is a conformal sum, with smaller values at q. So for t in order: list
# these sums, and keep those to which no known vector is conformal.
#
# Where q is the first entry of a basis vector b, with value m > 0, an entry at q is known modulo m only: each vector
# has two lifts, the smallest entry that is not negative and the one below 0, and b is a minimal vector, too, of norm
# 0.


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


# Two-way tables with structural zeros: the longest cycle that a real table may need to fill an empty entry.
#
# Graver elements are the cycles of the bipartite graph of rows and columns, with entries +1 and -1 in turn
# (``cycles``). Let x have people in the entries of the cycle that decrease, one each, and in no others. The cycle is
#
#     r0 +c0 -r1 +c1 -r2 ... +c(k-1) -r0,    + an entry that increases, - one that decreases,
#
# through the entry j of row r0 and column c0. Another cycle through j that decreases entries of x only follows the
# same rows and columns, but for jumps forward: an entry of row ra and column cb, 1 <= a < b. So a cycle of length 2k
# is needed if and only if none of these entries exists: in the order of the cycle, zeros form a triangle. The rows
# r1, r2, ... then have at least k - 2, k - 3, ... structural zeros, and so have the columns c(k-1), c(k-2), ...


# Steps of the search, two to a microsecond, and entries of a table that is searched.
SEARCHED, ENTRIES = 1_000_000, 4_000


def longest_needed(table: TwoWay) -> tuple[int, bool]:
    """The longest cycle that a real table may need, and whether that is exact or an upper bound.

    >>> longest_needed(TwoWay(np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 1, 2, 2, 0])))
    (6, True)
    """
    bound = _bound(table)
    longest = _searched(table, bound) if len(table.row) <= ENTRIES else None
    return (2 * bound, False) if longest is None else (2 * longest, True)


def _bound(table: TwoWay) -> int:
    """Half the length of any needed cycle at most, from the numbers of structural zeros."""
    rows, columns = table.shape
    sides = (columns - np.bincount(table.row), rows - np.bincount(table.column))
    return min(rows, columns, *(2 + _staircase(zeros) for zeros in sides))


def _staircase(zeros: IntArray) -> int:
    """The largest m for which m of these numbers are at least m, m - 1, ..., 1.

    >>> _staircase(np.array([1, 1, 1])), _staircase(np.array([1, 5, 2])), _staircase(np.array([0, 0]))
    (1, 3, 0)
    """
    sums = np.minimum.accumulate(np.sort(zeros)[::-1] + np.arange(len(zeros)))
    return int((sums >= np.arange(1, len(zeros) + 1)).sum())


def _searched(table: TwoWay, bound: int) -> int | None:
    """Half the length of the longest needed cycle, by depth-first search; None if that takes too many steps."""
    rows, columns = table.shape
    of_row, of_column = [0] * rows, [0] * columns  # the columns of each row and the rows of each column, a bit each
    for r, c in zip(table.row.tolist(), table.column.tolist(), strict=True):
        of_row[r] |= 1 << c
        of_column[c] |= 1 << r
    longest = steps = 0
    for first, c0 in zip(table.row.tolist(), table.column.tolist(), strict=True):
        # The last column of a path, its rows, the columns of those but the first and the number of columns.
        stack = [(c0, 1 << first, 1 << c0, 1)]
        while stack and longest < bound:
            last, used, reached, count = stack.pop()
            for r in _bits(of_column[last] & ~used):
                forward = of_row[r] & ~reached
                reach = reached | of_row[r]
                further = count + 1 + columns - reach.bit_count()  # at most as many columns on any path from here
                steps += 1 + forward.bit_count()
                if steps > SEARCHED:
                    spend(SEARCHED // 2)
                    return None
                for c in _bits(forward):
                    if of_column[c] >> first & 1:
                        longest = max(longest, count + 1)
                    if further > longest:
                        stack.append((c, used | 1 << r, reach, count + 1))
    spend(steps // 2)
    return longest


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


# Totally unimodular totals, where simple sufficient conditions show it: every minor is 0, 1 or -1.
#
# Then the Graver basis consists of the circuits, whose entries are 0, 1 and -1 (Sturmfels 1996, proposition 8.11):
# they have at most one entry more than the rank. Sufficient is each of these, for the matrix or its transpose:
#
# - columns of at most two entries, and the rows can be coloured so that two entries of a column have different
#   colours where they agree in sign, and the same one otherwise (Heller, Tompkins 1956);
# - consecutive ones in each row, as in totals of overlapping age ranges (Schrijver 1986, chapter 19).
#
# The lattice depends on the row space only. So rows may be divided by a factor, or the matrix brought to the form (I,
# B) by elimination: it is totally unimodular if and only if B is.


ELIMINATED = 10**7  # rows times rows times columns that are eliminated: a second at most


def is_unimodular(matrix: sparse.csr_array) -> bool:
    """Whether a lattice is certain to be that of a totally unimodular matrix; False if it is not known.

    >>> is_unimodular(sparse.csr_array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 3, 3, 3]]))
    True
    >>> is_unimodular(sparse.csr_array([[1, 1, 1], [1, 2, 3]]))
    False
    """
    lengths = np.diff(matrix.indptr)
    matrix = matrix[np.flatnonzero(lengths)]
    first = np.repeat(matrix.data[matrix.indptr[:-1]], lengths[lengths > 0])
    # Compared without abs, which wraps at -2^63.
    if ((matrix.data == first) | (matrix.data == -first)).all():
        signs = np.where(matrix.data == first, 1, -1)
        if _is_certain(sparse.csr_array((signs, matrix.indices, matrix.indptr), shape=matrix.shape)):
            return True
    height, width = matrix.shape
    if height * height * width > ELIMINATED:
        return False
    reduced = eliminate(matrix_rows(matrix), width, units_only=True)
    if reduced.leftover:
        return False
    rest = [{j: entry for j, entry in reduced.rows[i].items() if j != pivot} for i, pivot in reduced.pivots.items()]
    if any(abs(entry) != 1 for row in rest for entry in row.values()):
        return False
    free = sorted(set(range(width)) - set(reduced.pivots.values()))
    return _is_certain(rows_matrix([row for row in rest if row], width).tocsc()[:, free].tocsr())


def _is_certain(signs: sparse.csr_array) -> bool:
    """Whether one of the conditions holds for a matrix of 0, 1 and -1 or its transpose."""
    return any(has(m) for m in (signs, sparse.csr_array(signs.T)) for has in (_is_coloured, _has_intervals))


def _is_coloured(signs: sparse.csr_array) -> bool:
    """Whether the columns can be coloured as the rows of Heller and Tompkins, with rows of at most two entries.

    Each column has a vertex for either colour; a column whose vertices are connected would have both.
    """
    lengths = np.diff(signs.indptr)
    if (lengths > 2).any():
        return False
    start = signs.indptr[:-1][lengths == 2]
    one, other = signs.indices[start].astype(np.int64), signs.indices[start + 1].astype(np.int64)
    width = signs.shape[1]
    agree = (signs.data[start] == signs.data[start + 1]) * width
    tail, head = np.concatenate([one, one + width]), np.concatenate([other + agree, other + width - agree])
    component = connected_components(tail, head, 2 * width)[1]
    return bool((component[:width] != component[width:]).all())


def _has_intervals(signs: sparse.csr_array) -> bool:
    """Whether each row has one sign, in consecutive columns."""
    row = np.repeat(np.arange(signs.shape[0]), np.diff(signs.indptr))
    inside = np.diff(row) == 0
    steps = np.diff(signs.indices) == 1
    return bool((steps & (np.diff(signs.data) == 0))[inside].all())


# How far apart real tables with the same totals must be: the longest change that a count of 0 may need to become 1.
#
# A *real* table has counts that are not negative. Let x and y be real, with the same totals A x = A y, x_j = 0 and
# y_j >= 1. How far is the nearest such y from x, in the worst case over j and x?
#
# The *conformal* order: u is below v if in each entry u has the sign of v, or is 0, and is no larger in absolute
# value. The minimal nonzero vectors of the lattice A z = 0 in this order are its *Graver basis*; every vector of the
# lattice is a conformal sum of them (Graver 1975; De Loera, Hemmecke, Köppe 2013, chapter 3).
#
# **Lemma 1.** The nearest y is x + g for a Graver element g with g_j > 0. *Proof.* Of the elements whose conformal
# sum is y - x, one has g_j > 0. The entries of x + g lie between those of x and y, so it is real, and as g is below y
# - x it is no longer, in l1 and in l2. So with g- the negative part of g,
#
#     distance(x, j) = min { |g| : g_j > 0, g- <= x },
#
# which decreases in x: the largest one is at some x = h-, h a Graver element with h_j > 0, and is
#
#     max { min { |g| : g_j > 0, g- <= h- } : h, j with h_j > 0 },
#
# at most the longest Graver element; the same in l2.
#
# **Lemma 2.** Several cells with the same column, a region, need no more than one cell with the region's sum.
# *Proof.* If the region of cell j has somebody, they move to j: 2, the least that any change of a lattice without
# unit vectors takes. Otherwise take the change of the sums: let it decrease cells that have people, increase j and
# any other cells. Its l1 length is that of the sums, its l2 length at most that. Conversely a change of the cells is
# a change of the sums that is no longer in l1.
#
# **Lemma 3.** (Lawrence lifting.) If the columns are pairs whose sums are kept, the vectors are (v, -v), and the
# largest distance is twice the longest Graver element g of the vectors v, always attained: x = (g-, g+) and y = (g+,
# g-) are the only real tables with their totals, since x + (v, -v) is real if and only if v is 0 or below g.


Rule: TypeAlias = Literal["table", "cycles", "unimodular", "graver"]


@dataclass(frozen=True)
class Longest:
    """An upper bound on what a change of real tables needs in a block.

    Attributes
    ----------
    length
        The l1 length.
    squared
        The square of the l2 length: also the largest, not that of a longest change in l1.
    exact
        Some real table needs as much, in either length; else it is an upper bound.
    rule
        How it is known: the closed form of a full *table*, the *cycles* of a two-way table with structural zeros,
        *unimodular* totals, or enumeration of the *graver* basis.
    """

    length: int
    squared: int
    exact: bool
    rule: Rule


def longest_change(system: System) -> Longest | None:
    """The largest distance from a real table to the nearest one with a count of 1 where it has 0, if it is known.

    Large systems are looked at in closed form only. All work is counted, and the same on every machine.

    Examples
    --------
    All two-way margins of a table of 3 x 3 x 3:

    >>> from keepsum.lattice.grids import table_matrix
    >>> longest_change(System.recognised(table_matrix((3, 3, 3)), 19))
    Longest(length=18, squared=20, exact=True, rule='table')
    """
    if system.grid is not None:
        return _in_table(system.grid.shape)
    if system.two_way is not None:
        length, exact = longest_needed(system.two_way)
        return Longest(length, length, exact, "cycles")
    enumerated = _enumerated(system)
    return _longest_element(system) if enumerated is None else enumerated


# The longest Graver element of an a x b x c table under its two-way margins and the largest square of an l2 length, and
# the same for distances of real tables (lemma 1): from the Graver bases of 795 and 19,722 elements that 4ti2 finds.
CUBES = {(3, 3, 3): ((24, 32), (18, 20)), (3, 3, 4): ((36, 60), (20, 22))}
# And of 3 x 3 x n for any n: the layers of a Graver element are conformal sums of the 15 elements of a 3 x 3 table. All
# of these together are one of the 953 minimal ways in which the 15 add up to 0 (Santos, Sturmfels 2003: at most 9 of
# them), of length 48 at most; where several are in one layer, the squares add up to 96 at most.
LAYERS = 48, 96


def _in_table(shape: tuple[int, ...], elements: bool = False) -> Longest | None:
    """A full table under all margins of one way less: what real tables need, or its longest Graver element.

    Two ways: two people of the row and the column of a cell exchange their columns, and one of them is in the cell; the
    Graver elements are the cycles. An axis of length 2 is a Lawrence lifting.
    """
    rest, lifted = sorted(shape), 1
    while rest[0] == 2 and len(rest) > 2:
        rest, lifted, elements = rest[1:], 2 * lifted, True
    exact = True
    if len(rest) == 2:
        length = squared = 2 * rest[0] if elements else 4
    elif tuple(rest) in CUBES:
        element, change = CUBES[rest[0], rest[1], rest[2]]
        length, squared = element if elements else change
    elif len(rest) == 3 and rest[:2] == [3, 3]:
        (length, squared), exact = LAYERS, False
    else:
        return None
    return Longest(length * lifted, squared * lifted, exact, "table")


def _enumerated(system: System) -> Longest | None:
    """What real tables need, by enumeration of the Graver basis; None if that takes too much work."""
    if system.width > WIDTH:
        return None
    work = Work()
    try:
        elements = graver_basis(system.basis, system.width, work)
        length = needed(elements, np.abs(elements).sum(axis=1), work)
        squared = needed(elements, (elements * elements).sum(axis=1), work)
    except TooLongError:
        return None
    return Longest(length, squared, True, "graver")


def _longest_element(system: System) -> Longest | None:
    """An upper bound on the longest Graver element, in closed form; exact if it is attained."""
    if system.grid is not None:
        return _in_table(system.grid.shape, elements=True)
    if system.two_way is not None:
        length = 2 * min(system.two_way.shape)
        return Longest(length, length, False, "cycles")
    lifting = _lifting(system)
    if lifting is not None:
        base, times = lifting
        element = _longest_element(base)
        return element and Longest(times * element.length, times * element.squared, element.exact, element.rule)
    if is_unimodular(system.matrix):
        return Longest(system.rank + 1, system.rank + 1, False, "unimodular")
    return None


def _lifting(system: System) -> tuple[System, int] | None:
    """The totals of which a system is a Lawrence lifting, once or more often, and how many columns stand for one.

    Totals of two columns join them to classes: a vector has the same entry in all columns of one, up to sign. If these
    are equally large, put the columns of each together, with their signs.
    """
    matrix, width = system.matrix, system.width
    start = matrix.indptr[:-1][np.diff(matrix.indptr) == 2]
    start = start[matrix.data[start] == matrix.data[start + 1]]
    tail, head = matrix.indices[start].astype(np.int64), matrix.indices[start + 1].astype(np.int64)
    count, label = connected_components(tail, head, width)
    times = width // count
    if times == 1 or (np.bincount(label) != times).any() or magnitude(matrix.data) > INT64_MAX // times:
        return None
    forest = spanning_forest(tail, head, width)
    signs = np.ones(width, dtype=np.int64)
    for j in forest.order:
        if forest.parent[j] >= 0:
            signs[j] = -signs[forest.parent[j]]
    totals = sparse.csr_array(matrix @ sparse.csr_array((signs, (np.arange(width), label)), shape=(width, count)))
    totals.eliminate_zeros()
    totals.sort_indices()
    distinct = {tuple(row.items()): row for row in map(first_positive, matrix_rows(totals)) if row}
    base, rank = rows_matrix(list(distinct.values()), count), system.rank - (width - count)
    if len(identical_columns(base.tocsc())[1]) < count:
        return System(base, rank, None), times  # recognition is for columns that differ
    return System.recognised(base, rank), times
