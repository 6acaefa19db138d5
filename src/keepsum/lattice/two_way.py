"""Two-way tables under both margins, recognised from their totals: structural zeros, redundant totals, blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import sparse

from keepsum._arrays import BoolArray, IntArray
from keepsum.lattice.graphs import alternating_cycles, biconnected_components, shortest_cycles, spanning_forest
from keepsum.lattice.grids import Grid
from keepsum.lattice.matrix import INT64_MAX, Row, indicators, magnitude

# Two-way tables under both margins, with structural zeros: the bipartite graph of their rows, columns and entries.


DENSE = 10**7  # entries of a table, zeros included, that are stored


@dataclass(frozen=True, eq=False)
class TwoWay:
    """A two-way table with structural zeros whose kept totals are both its margins.

    Attributes
    ----------
    row, column
        For each region the row and the column of its entry; no two regions share an entry.
    """

    row: IntArray
    column: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return int(self.row.max()) + 1, int(self.column.max()) + 1

    @property
    def zeros(self) -> int:
        """The number of structural zeros."""
        return int(np.prod(self.shape)) - len(self.row)

    @property
    def grid(self) -> Grid | None:
        """The same table as a grid, if it is full."""
        if self.zeros or min(self.shape) < 2:
            return None
        column = np.empty(self.shape, dtype=np.int64)
        column[self.row, self.column] = np.arange(len(self.row))
        return Grid(column)

    @property
    def graph(self) -> tuple[IntArray, IntArray, int]:
        """The ends of each edge, columns after rows, and the number of vertices."""
        rows, columns = self.shape
        return self.row, self.column + rows, rows + columns

    @cached_property
    def present(self) -> BoolArray:
        """Which entries are not structural zeros, of shape (rows, columns)."""
        present = np.zeros(self.shape, dtype=bool)
        present[self.row, self.column] = True
        return present

    @cached_property
    def cycles(self) -> IntArray:
        """For each region the length of the shortest cycle through its edge, 0 for a bridge.

        Most entries of a table are on a cycle of four edges, and these are counted: of the walks with three steps from
        a row to a column, those that go back and forth are known.
        """
        lengths = np.zeros(len(self.row), dtype=np.int64)
        if math.prod(self.shape) <= DENSE:
            table = self.present.astype(np.float64)
            walks = table @ (table.T @ table) if len(table.T) < len(table) else (table @ table.T) @ table
            straight = walks[self.row, self.column] - table.sum(axis=1)[self.row] - table.sum(axis=0)[self.column] + 1
            lengths[straight > 0] = 4
        longer = np.flatnonzero(lengths == 0)
        if len(longer):
            lengths[longer] = shortest_cycles(*self.graph, longer)
        return lengths

    def blocks(self) -> list[IntArray]:
        """The regions of each block: the biconnected components of the graph, without its bridges.

        A cycle with entries +1 and -1 in turn is a circuit of the matroid of the totals, and there are no others. So
        the components of the matroid are those of the graph, and the sum of a bridge, on no circuit, is determined.
        """
        return [regions for regions in biconnected_components(*self.graph) if len(regions) > 1]

    def basis(self) -> list[Row]:
        """A basis of the region sums that keep the totals: the fundamental cycles of a spanning forest."""
        return alternating_cycles(*self.graph)

    def margins(self, regions: IntArray) -> sparse.csr_array:
        """The totals of rows and columns over some of the regions, in an order that depends on the regions alone."""
        rows, width = self.shape[0], len(regions)
        vertex = np.concatenate([self.row[regions], self.column[regions] + rows])
        place = np.tile(np.arange(width), 2)
        order = np.lexsort((place, vertex))
        supports = np.split(place[order], np.flatnonzero(np.diff(vertex[order])) + 1)
        return indicators(sorted(supports, key=lambda support: support.tolist()), width)


def two_way_of(grid: Grid) -> TwoWay:
    """A grid of two ways as a two-way table."""
    row, column = np.empty(grid.column.size, dtype=np.int64), np.empty(grid.column.size, dtype=np.int64)
    row[grid.column], column[grid.column] = np.indices(grid.shape)
    return TwoWay(row, column)


# Two-way tables recognised from their totals: with structural zeros, redundant totals, or one margin incomplete.
#
# Regions are the edges of a graph whose vertices are the rows and the columns of a table, and the total of a row or a
# column is the sum over the edges at its vertex. So the question is whether there is a bipartite graph without
# parallel edges whose vertices span the same row space as the given totals. A graph is guessed from the totals, then
# it is checked exactly: each vertex must follow from the totals, and each total from the vertices. A guess may fail
# where there is a table, but no table is returned unless the check succeeds.


ATTEMPTS = 3  # orders in which totals are tried
FURTHER = 5 * 10**4  # totals that are tried in another order: about a second
OVERLAPS = 5 * 10**7  # pairs of totals of a region, added up over regions, that are compared: about a second
CHECKED, CHUNK = 2 * 10**8, 4 * 10**6  # weights of redundant totals that are checked: about two seconds; at once


def recognise_two_way(matrix: sparse.csr_array) -> TwoWay | None:
    """The two-way table whose margins span the same row space as these totals, if one is found.

    Columns must differ, as regions do. Totals may be in any order, multiplied by any number, or redundant, and one
    margin may be incomplete: regions that are in a single total are then the entries of one more row or column, whose
    total is implied. The shorter side is called rows; of two sides of equal length, that of the first total is columns.

    Totals are tried from the smallest to the largest, and taken as vertices while they meet each vertex at most once
    and the graph stays bipartite. A redundant total that was taken by mistake blocks others that do not follow from
    the vertices: these come first in another attempt. Further attempts subtract from each total others that it
    contains, which leaves nothing of sums of other totals, and a vertex of what is given as a running total. (A vertex
    of two regions or more never contains another one, as two regions do not share an entry.)

    Examples
    --------
    A table of 2 x 3 entries without the first one, the totals of its rows and two of its columns:

    >>> totals = sparse.csr_array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [0, 0, 2, 0, 0], [1, 0, 0, 1, 0]])
    >>> table = recognise_two_way(totals)
    >>> table.shape, table.row.tolist(), table.column.tolist()
    ((2, 3), [0, 0, 1, 1, 1], [0, 1, 2, 0, 1])
    """
    totals = _Totals.of(matrix)
    if not totals.flat or not np.bincount(np.concatenate(totals.flat), minlength=matrix.shape[1]).all():
        return None  # a region without a vertex
    table = _attempts(totals.flat, totals.weighted)
    if table is None:
        smaller = _without_contained(totals.flat, matrix.shape[1])
        table = None if smaller is None else _attempts(smaller, totals.weighted)
    return table


@dataclass(frozen=True, eq=False)
class _Totals:
    """Totals sorted by what they can be.

    Attributes
    ----------
    flat
        The regions of each total that gives all its regions the same weight, without repetition, smallest first.
    weighted
        The other totals, which are vertices in no case.
    """

    flat: list[IntArray]
    weighted: sparse.csr_array

    @classmethod
    def of(cls, matrix: sparse.csr_array) -> _Totals:
        matrix = sparse.csr_array(matrix[np.flatnonzero(np.diff(matrix.indptr))])
        matrix.sort_indices()
        lengths = np.diff(matrix.indptr)
        differs = matrix.data != np.repeat(matrix.data[matrix.indptr[:-1]], lengths)
        number = np.repeat(np.arange(len(lengths)), lengths)
        weighted = np.bincount(number[differs], minlength=len(lengths)) > 0
        supports = [matrix.indices[a:b] for a, b in pairwise(matrix.indptr)]
        flat = [supports[i] for i in np.flatnonzero(~weighted).tolist()]
        return cls(_distinct(flat), sparse.csr_array(matrix[np.flatnonzero(weighted)]))


def _distinct(supports: Sequence[IntArray]) -> list[IntArray]:
    """Each set of regions once, smallest first."""
    distinct = {support.tobytes(): support.astype(np.int64) for support in supports if len(support)}
    return sorted(distinct.values(), key=len)


def _attempts(candidates: list[IntArray], weighted: sparse.csr_array) -> TwoWay | None:
    """The first table that passes the check, over several orders of the candidates.

    Parameters
    ----------
    candidates
        Totals that may be vertices, and from which every total of one weight follows.
    weighted
        The totals that must follow too.
    """
    width = weighted.shape[1]
    for _ in range(min(ATTEMPTS, 1 + FURTHER // len(candidates))):
        guess = _guess(candidates, width)
        table = guess.table()
        blocked = guess.refused
        if table is not None:
            refused = indicators([candidates[i] for i in guess.refused], width)
            blocked = [guess.refused[k] for k in _unexplained(table, refused)]
            if not blocked:
                return None if _unexplained(table, weighted) else table
        if not blocked:
            return None
        others = sorted(set(range(len(candidates))) - set(blocked))
        candidates = [candidates[i] for i in (*blocked, *others)]
    return None


# -- the guess ----------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Guess:
    """A graph in the making; its vertices are numbered as the candidates are.

    Attributes
    ----------
    first, second
        The vertices at the ends of each edge, or -1 where none is known.
    parent, opposite
        For each candidate another vertex of the same component, or itself, and whether it is on the other side.
    open_ends
        How many ends of edges are not known: a vertex cannot have more edges.
    taken, refused
        The candidates that are vertices, and those that are not.
    """

    first: IntArray
    second: IntArray
    parent: list[int]
    opposite: list[bool]
    open_ends: int
    taken: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)

    def root(self, vertex: int) -> tuple[int, bool]:
        """The root of the component of a vertex, and whether it is on the other side."""
        path = []
        while self.parent[vertex] != vertex:
            path.append(vertex)
            vertex = self.parent[vertex]
        flipped = False
        for passed in reversed(path):
            flipped ^= self.opposite[passed]
            self.parent[passed], self.opposite[passed] = vertex, flipped
        return vertex, flipped

    def take(self, i: int, support: IntArray) -> bool:
        """Make a candidate a vertex if the graph stays bipartite, without parallel edges and edges of three ends."""
        if len(support) > self.open_ends or (self.second[support] >= 0).any():
            return False
        met = self.first[support]
        new = met < 0
        others = met[~new].tolist()
        if len(set(others)) < len(others):
            return False
        sides: dict[int, bool] = {}
        for other in others:
            root, flipped = self.root(other)
            if sides.setdefault(root, flipped) != flipped:
                return False
        for root, flipped in sides.items():
            self.parent[root], self.opposite[root] = i, not flipped
        self.first[support[new]] = i
        self.second[support[~new]] = i
        self.open_ends -= len(support)
        return True

    def table(self) -> TwoWay | None:
        """The table, if every region has a row and a column; ends that are not known are one vertex per component."""
        if (self.first < 0).any():
            return None
        count = len(self.parent)
        roots = [self.root(i) for i in range(count)]
        component = np.array([root for root, _ in roots] + list(range(count)))  # vertex count + k is implied in k
        side = np.array([flipped for _, flipped in roots] + [False] * count)
        open_ends = np.flatnonzero(self.second < 0)
        known = self.first[open_ends]
        implied = component[known] + count
        side[implied] = ~side[known]
        if (side[implied] == side[known]).any():
            return None  # on both sides
        second = self.second.copy()
        second[open_ends] = implied
        if len(np.unique(self.first * 2 * count + second)) < len(second):
            return None  # two regions in one entry
        return self._oriented(second, component, side)

    def _oriented(self, second: IntArray, component: IntArray, side: BoolArray) -> TwoWay:
        """Rows on the shorter side of each component; of two equal sides, that of the first vertex has the columns."""
        used = np.unique(np.concatenate([self.first, second]))
        excess = np.bincount(component[used], np.where(side[used], 1, -1), minlength=len(self.parent))
        first_taken = np.array(self.taken[::-1])
        first_side = np.zeros(len(self.parent), dtype=bool)
        first_side[component[first_taken]] = side[first_taken]  # the last one that is written is the first
        columns_on = np.where(excess == 0, first_side, excess > 0)
        is_column = side == columns_on[component]
        row = np.where(is_column[self.first], second, self.first)
        column = np.where(is_column[self.first], self.first, second)
        return TwoWay(_numbered(row), _numbered(column))


def _numbered(labels: IntArray) -> IntArray:
    """Labels replaced by 0, 1, 2, ... in the order in which they first occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _guess(candidates: list[IntArray], width: int) -> _Guess:
    count = len(candidates)
    guess = _Guess(np.full(width, -1), np.full(width, -1), list(range(count)), [False] * count, 2 * width)
    for i, support in enumerate(candidates):
        (guess.taken if guess.take(i, support) else guess.refused).append(i)
    return guess


def _without_contained(supports: list[IntArray], width: int) -> list[IntArray] | None:
    """Each total less others that it contains, largest first; None if nothing is contained.

    By induction over their sizes, the totals follow from these differences, as these do from the totals.
    """
    matrix = indicators(supports, width)
    if int((np.bincount(matrix.indices, minlength=width).astype(np.int64) ** 2).sum()) > OVERLAPS:
        return None
    overlaps = (matrix @ matrix.T).tocoo()
    sizes = np.array([len(support) for support in supports])
    inside = (overlaps.data == sizes[overlaps.col]) & (sizes[overlaps.col] < sizes[overlaps.row])
    contained: dict[int, list[int]] = {}
    for outer, inner in zip(overlaps.row[inside].tolist(), overlaps.col[inside].tolist(), strict=True):
        contained.setdefault(outer, []).append(inner)
    if not contained:
        return None
    remaining = list(supports)
    present = np.zeros(width, dtype=bool)
    for outer, parts in contained.items():
        present[supports[outer]] = True
        for inner in sorted(parts, key=lambda part: (-sizes[part], part)):
            if present[supports[inner]].all():
                present[supports[inner]] = False
        remaining[outer] = np.flatnonzero(present)
        present[remaining[outer]] = False
    return _distinct(remaining)


# -- the check ----------------------------------------------------------------------------------------


def _unexplained(table: TwoWay, totals: sparse.csr_array) -> list[int]:
    """Totals that do not follow from the margins of the table, or are too many to be checked; not all of them.

    A total follows if and only if its weights are ``a[row] + b[column]`` for some numbers a and b. Up to a constant in
    each component these are given by the weights on a spanning forest; the weights of all regions must agree.
    """
    doubtful = np.flatnonzero(~(_are_sums_of(table.row, totals) | _are_sums_of(table.column, totals)))
    if not len(doubtful):
        return []
    tail, head, vertices = table.graph
    if len(doubtful) * len(tail) > CHECKED:
        return [int(i) for i in doubtful]
    forest = spanning_forest(tail, head, vertices)
    inner = [(v, forest.parent[v], forest.edge[v]) for v in forest.order if forest.parent[v] >= 0]
    fits = magnitude(totals.data) * 2 * (vertices + 1) <= INT64_MAX
    step = max(1, CHUNK // len(tail))
    for start in range(0, len(doubtful), step):
        checked = doubtful[start : start + step]
        weights = totals[checked].toarray().T
        weights = np.ascontiguousarray(weights if fits else weights.astype(object))
        numbers = np.zeros((vertices, len(checked)), dtype=weights.dtype)
        for vertex, parent, edge in inner:
            numbers[vertex] = weights[edge] - numbers[parent]
        wrong = (numbers[tail] + numbers[head] != weights).any(axis=0)
        if wrong.any():
            return [int(i) for i in checked[wrong]]
    return []


def _are_sums_of(line: IntArray, totals: sparse.csr_array) -> BoolArray:
    """Which totals are sums of some lines (rows, or columns): all regions of a line have weight 1, or none is there."""
    sizes = np.bincount(line)
    number = np.repeat(np.arange(totals.shape[0]), np.diff(totals.indptr))
    key, members = np.unique(number * len(sizes) + line[totals.indices], return_counts=True)
    whole = np.ones(totals.shape[0], dtype=bool)
    whole[number[totals.data != 1]] = False
    whole[key[members < sizes[key % len(sizes)]] // len(sizes)] = False
    return whole
