"""Within one block: the shortest vectors that take from a cell and give to a cell of some class."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from keepsum._arrays import BoolArray, IntArray, grouped
from keepsum.lattice.grids import Grid
from keepsum.lattice.shortest import NONE, UNKNOWN, Measure, ShortVectors
from keepsum.lattice.structure import System
from keepsum.lattice.two_way import DENSE, TwoWay

# Two-way tables: the shortest changes that take from one entry and give to another, from distances in the graph.
#
# Regions are the edges of a bipartite graph (``two_way.py``). Walk along an edge from its row to its column to add 1
# to it, from its column to its row to subtract 1: a closed walk keeps every total, and a cycle is a vector with
# entries +1 and -1 in turn. Conversely a vector that keeps every total is a sum of cycles none of which has an entry
# of the other sign: follow edges in the direction of their signs until a vertex recurs, subtract that cycle, and
# repeat. So lengths add up, and the shortest vector that changes an edge is the shortest cycle through it
# (``TwoWay.cycles``), in the l1 norm and, as its entries are 1, in the l2 norm.
#
# **Theorem.** Let i join row r and column c, let j join row s and column d, and let D be the distances in the graph
# without i and j. The shortest vector z with ``z_i < 0 < z_j`` has l1 length
#
#     n = 2 + min(D(r, s) + D(d, c), D(r, c) + D(d, s)),
#
# and there is none if n is infinite. *Proof.* Of the cycles that z is a sum of, one contains i, and one contains j.
# If one contains both, it goes from c to r, to s, to d and back to c: the first pair of paths. Otherwise there are
# two, i and the path from r to c, j and the path from d to s, neither of which contains i and j. Conversely i, j and
# either pair of paths make a closed walk, or two, which change i by -1 and j by +1.
#
# If the vector is shortest, no step is taken back. It has an entry of 2 only where two paths have an edge in common,
# in the same direction. As these can exchange their ends there, both sums are then equal, and n, the length of two
# cycles, is at least 8. If the cycles share k edges, what remains of them contains another cycle, so 2k is at most n
# - 4.


LONGEST_SIDE = 5_000  # rows and columns whose common neighbours are counted: 200 MB
COMPARED = 5 * 10**7  # pairs of entries that are compared: a few seconds
SEARCHES = 10**4  # of the graph, breadth first: a second or two
FAR = 2**40  # a distance that is infinite


def opposite_in_table(
    table: TwoWay, measure: Measure, classes: BoolArray, wanted: BoolArray, ceiling: IntArray
) -> tuple[IntArray, IntArray]:
    """Upper and lower bounds on the shortest vector that is negative at a region and positive in a class.

    The arguments are those of ``ShortVectors.opposite``. Bounds agree wherever the search is finished, but for entries
    of 2 where the shortest l2 vector counts; elsewhere the upper one is ``UNKNOWN``.
    """
    bounds = _Bounds(measure, np.full(classes.shape, UNKNOWN), np.full(classes.shape, measure.key(4, 4)))
    open_pairs = wanted & (measure.entries(ceiling) > 4)
    if math.prod(table.shape) > DENSE or max(table.shape) > LONGEST_SIDE:
        return bounds.upper, bounds.lower
    four = _by_four(table, classes)
    bounds.settle(four, 4)
    bounds.lower[~four] = measure.key(6, 6)
    open_pairs &= ~four & (measure.entries(ceiling) >= 6 + (measure.norm == "l1"))
    six = _by_six(table, classes, open_pairs)
    bounds.settle(six, 6)
    _Search(table, classes, bounds).run(open_pairs & ~six)
    return bounds.upper, bounds.lower


@dataclass(eq=False)
class _Bounds:
    """Keys of vectors for pairs of a region and a class: at most, at least."""

    measure: Measure
    upper: IntArray
    lower: IntArray

    def settle(self, pairs: BoolArray, length: int) -> None:
        """The length of the shortest vectors of these pairs, whose entries are 1."""
        self.upper[pairs] = self.lower[pairs] = self.measure.key(length, length)


def _by_four(table: TwoWay, classes: BoolArray) -> BoolArray:
    """The pairs with a cycle of four edges: the two entries share a line, and two lines across have both."""
    present = table.present.astype(np.float32)
    reached = np.zeros(classes.shape, dtype=bool)
    for line, across, other in (
        (table.row, table.column, present.T @ present),
        (table.column, table.row, present @ present.T),
    ):
        for regions in grouped(line):
            joined = other[np.ix_(across[regions], across[regions])] > 1
            np.fill_diagonal(joined, False)
            inside = classes[regions]
            labels = np.flatnonzero(inside.any(axis=0))
            hits = joined.astype(np.float32) @ inside[:, labels].astype(np.float32) > 0
            reached[np.ix_(regions, labels)] |= hits
    return reached


def _by_six(table: TwoWay, classes: BoolArray, wanted: BoolArray) -> BoolArray:
    """Pairs with a cycle of six edges that has the two entries opposite each other, while there is time to look.

    Their rows then have a column in common, and their columns a row, other than those of the two entries.
    """
    present = table.present.astype(np.int32)
    columns_shared, rows_shared = present @ present.T, present.T @ present
    by_label = np.argwhere(classes.T)
    first = np.searchsorted(by_label[:, 0], np.arange(classes.shape[1] + 1))
    members, size = by_label[:, 1], np.diff(first)
    reached = np.zeros(classes.shape, dtype=bool)
    taken, label = np.nonzero(wanted & (size > 0))
    compared = turn = 0
    while len(taken) and compared + len(taken) <= COMPARED:
        given = members[first[label] + turn]
        r, c, s, d = table.row[taken], table.column[taken], table.row[given], table.column[given]
        own_lines = present[s, c] + present[r, d]
        six = (columns_shared[r, s] > own_lines) & (rows_shared[c, d] > own_lines) & (r != s) & (c != d)
        reached[taken[six], label[six]] = True
        compared, turn = compared + len(taken), turn + 1
        more = ~six & (size[label] > turn)
        taken, label = taken[more], label[more]
    return reached


@dataclass(eq=False)
class _Search:
    """Breadth-first searches from the ends of single entries, until there were too many."""

    table: TwoWay
    classes: BoolArray
    bounds: _Bounds
    searches: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._links = self.table.present.copy()
        self._labels, self._members = np.nonzero(self.classes.T)

    def run(self, open_pairs: BoolArray) -> None:
        """Settle open pairs, region by region."""
        for region in np.flatnonzero(open_pairs.any(axis=1))[:SEARCHES].tolist():
            self._settle(_Around.of(self, region), region, open_pairs[region])

    def _settle(self, around: _Around, region: int, labels: BoolArray) -> None:
        """The shortest vectors from a region to classes."""
        measure, bounds = self.bounds.measure, self.bounds
        joint, apart, sure = (of_all[self._members] for of_all in (around.joint, around.apart, around.sure))
        least, perhaps_shared = np.minimum(joint, apart), (joint == apart) | ~sure
        if measure.norm == "l2" and not measure.packed:
            sure &= joint != apart  # an entry of 2 makes a vector longer
        lengths = np.full(len(labels), FAR)
        np.minimum.at(lengths, self._labels[sure], least[sure])
        for length in np.unique(lengths[labels]).tolist():
            key = measure.key(length, length) if length < FAR else NONE
            bounds.upper[region, labels & (lengths == length)] = key
            bounds.lower[region, labels & (lengths == length)] = key
        length = lengths[self._labels]
        doubtful = ~sure & (least < length)
        if measure.packed:
            doubtful |= perhaps_shared & (joint <= length)
        places = np.flatnonzero(doubtful & labels[self._labels])
        for group in np.split(places, np.flatnonzero(np.diff(self._labels[places])) + 1):
            if len(group):
                pairs = zip(self._members[group].tolist(), least[group].tolist(), strict=True)
                self._measure(region, int(self._labels[group[0]]), int(length[group[0]]), dict(pairs))

    def _measure(self, region: int, label: int, length: int, others: dict[int, int]) -> None:
        """Measure the vectors from a region to others of a class, given lower bounds, while one may be shorter."""
        measure = self.bounds.measure
        key = low = int(self.bounds.upper[region, label])
        for other, bound in sorted(others.items(), key=lambda pair: pair[1]):
            if bound > length or (bound == length and key == _longest(measure, length)):
                break
            if self.searches > SEARCHES:
                key = min(key, _longest(measure, length)) if length < FAR else UNKNOWN
                low = measure.key(bound, bound)
                break
            other_length, repeated = self._length(region, other)
            if other_length < FAR:
                length = min(length, other_length)
                key = min(key, measure.key(other_length, other_length + 2 * repeated))
                low = key if measure.packed else measure.key(length, length)
        self.bounds.upper[region, label], self.bounds.lower[region, label] = key, low

    def distances(self, start: int, *without: int) -> IntArray:
        """The distances of all vertices from one, in the graph without some edges."""
        self.searches += 1
        table, rows = self.table, self.table.shape[0]
        self._links[table.row[list(without)], table.column[list(without)]] = False
        distance = np.full(sum(table.shape), FAR)
        distance[start] = steps = 0
        of_rows, of_columns = distance[:rows], distance[rows:]
        sides = [(of_rows, of_columns, self._links), (of_columns, of_rows, self._links.T)]
        here, there, links = sides[start >= rows]
        reached = np.flatnonzero(here == 0)
        while len(reached):
            steps += 1
            reached = np.flatnonzero(links[reached].any(axis=0) & (there == FAR))
            there[reached] = steps
            here, there, links = there, here, links.T
        self._links[table.row[list(without)], table.column[list(without)]] = True
        return distance

    def _length(self, taken: int, given: int) -> tuple[int, int]:
        """The l1 length of the shortest vector between two regions, and the most entries of 2 that one can have."""
        tail, head, _ = self.table.graph
        r, c, s, d = int(tail[taken]), int(head[taken]), int(tail[given]), int(head[given])
        from_r, from_d = self.distances(r, taken, given), self.distances(d, taken, given)
        joint, apart = int(from_r[s] + from_d[c]), int(from_r[c] + from_d[s])
        if joint != apart or joint >= FAR or self.bounds.measure.norm == "l1":
            return 2 + min(joint, apart), 0
        to_c, to_s = self.distances(c, taken, given), self.distances(s, taken, given)
        on_both = (from_r + to_c == from_r[c]) & (from_d + to_s == from_d[s])
        return 2 + joint, self._most_shared(from_r, from_d, on_both)

    def _most_shared(self, one: IntArray, two: IntArray, on_both: BoolArray) -> int:
        """How many edges two shortest paths can share, given distances from their starts and vertices on both."""
        tail, head, vertices = self.table.graph
        ends = np.concatenate([tail, head]), np.concatenate([head, tail])
        step = on_both[ends[0]] & on_both[ends[1]] & (np.diff(one[np.stack(ends)], axis=0)[0] == 1)
        step &= np.diff(two[np.stack(ends)], axis=0)[0] == 1
        start, end = ends[0][step], ends[1][step]
        shared = np.zeros(vertices, dtype=np.int64)  # the longest path of such steps that ends at each vertex
        for k in np.argsort(one[start], kind="stable").tolist():
            shared[end[k]] = max(shared[end[k]], shared[start[k]] + 1)
        return int(shared.max())


def _longest(measure: Measure, length: int) -> int:
    """A bound on the keys of shortest vectors of an l1 length: with as many entries of 2 as there can be."""
    return measure.key(length, 2 * length - 4 if length >= 8 else length)


@dataclass(frozen=True, eq=False)
class _Around:
    """What the searches from both ends of one edge tell of all other edges.

    Attributes
    ----------
    joint, apart
        The length of the shortest cycle through both edges, and of two shortest cycles, or a lower bound.
    sure
        Where the smaller one of them is not a mere bound.
    """

    joint: IntArray
    apart: IntArray
    sure: BoolArray

    @classmethod
    def of(cls, search: _Search, region: int) -> _Around:
        """The searches from both ends of the edge of a region."""
        tail, head, _ = search.table.graph
        cycles = search.table.cycles
        from_row, from_column = (search.distances(int(end[region]), region) for end in (tail, head))
        joint = 2 + _without_last(from_row, head, tail, region) + _without_last(from_column, tail, head, region)
        apart = cycles[region] + cycles
        # The cycles avoid each other's edge where every cycle through both edges is longer.
        through_both = 2 + np.minimum(from_row[tail] + from_column[head], from_row[head] + from_column[tail])
        sure = (joint <= apart) | (through_both > np.maximum(cycles, cycles[region]))
        return cls(joint, apart, sure)


def _without_last(distance: IntArray, near: IntArray, end: IntArray, removed: int) -> IntArray:
    """For each edge the distance of its end in the graph without that edge (and without another one).

    It is larger only if the edge is the last one of every shortest path to its end. Then the shortest other path comes
    into the subtree of that end, in a tree of shortest paths, by an edge from x to y: it has the length of the path in
    the tree to x, one more, and of that from y up to the end.
    """
    others = np.arange(len(near)) != removed
    forward, backward = (others & (distance[a] + 1 == distance[b]) for a, b in ((near, end), (end, near)))
    needed = forward & (np.bincount(end[forward], minlength=len(distance))[end] == 1)
    result = distance[end]
    if not needed.any():
        return result
    parent = np.full(len(distance), -1)
    parent[end[forward]], parent[near[backward]] = near[forward], end[backward]
    tops = end[needed]
    below = np.zeros((len(tops), len(distance)), dtype=bool)  # which vertices are in the subtree of which end
    below[np.arange(len(tops)), tops] = True
    for vertex in np.argsort(distance, kind="stable").tolist():
        if parent[vertex] >= 0:
            below[:, vertex] |= below[:, parent[vertex]]
    enters = (below[:, near] != below[:, end]) & others & (parent[end] != near) & (parent[near] != end)
    over = np.where(enters, distance[near] + distance[end] + 1, FAR).min(axis=1)
    result[needed] = np.minimum(over, FAR) - np.where(over < FAR, distance[tops], 0)
    return result


# Within one block: the shortest vectors that take from a cell and give to a cell of some class.
#
# Cells of one region are in the same totals, so a vector can take from one and give to another at no further cost. To
# change a region of one cell, a vector must change other regions too, and how many depends on the totals.


MAX_PAIRS = 5 * 10**7  # pairs of a region and a class that are computed one by one


@dataclass(frozen=True)
class Opposite:
    """Shortest lengths between regions of a block and classes of their cells, as keys of a ``Measure``.

    Attributes
    ----------
    through
        For each region the shortest vector that changes one of its cells.
    towards
        (regions, classes): the shortest vector that takes from a cell of the region and gives to a cell of the class,
        where the first cell is not of the class; a single column if it is the same for all classes.
    """

    through: IntArray
    towards: IntArray


def opposite(
    system: System, sizes: IntArray, held: IntArray, count: int, measure: Measure, short: Callable[[], ShortVectors]
) -> tuple[Opposite, Opposite]:
    """Upper and lower bounds for a block; one object twice where they agree.

    Parameters
    ----------
    system, sizes
        The block, and the number of cells of each region.
    held
        The labels that the cells of each region have: ``region * count + label``, in order.
    count
        The number of labels.
    measure
        How lengths are measured.
    short
        The short vectors of the block, created only if they are needed.
    """
    move = measure.key(2, 2)
    large = sizes > 1
    if large.all() and count == 1:
        both = Opposite(np.full(system.width, move), np.full((system.width, 1), move))
        return both, both
    if system.grid is not None and (large.all() or not large.any()):
        box = _box(system.grid, measure)
        if len(held) == system.width and _along_one_way(system, held % count):
            through = np.full(system.width, move if large.all() else box)
            both = Opposite(through, np.full((system.width, 1), min(box, 2 * move) if large.all() else box))
            return both, both
    if system.width * count > MAX_PAIRS:
        unknown = Opposite(np.where(large, move, UNKNOWN), np.full((system.width, 1), UNKNOWN))
        return unknown, Opposite(np.where(large, move, measure.key(1, 1)), np.full((system.width, 1), move))
    classes = np.zeros((system.width, count), dtype=bool)
    classes[held // count, held % count] = True
    return _general(system, large, classes, measure, short)


def _along_one_way(system: System, labels: IntArray) -> bool:
    """Whether the label of a cell of the table depends on one of its coordinates only."""
    if system.grid is None:
        return False
    on_grid = labels[system.grid.column]
    for way in range(on_grid.ndim):
        line = on_grid[tuple(slice(None) if a == way else slice(0, 1) for a in range(on_grid.ndim))]
        if (on_grid == line).all():
            return True
    return False


def _general(
    system: System, large: BoolArray, classes: BoolArray, measure: Measure, short: Callable[[], ShortVectors]
) -> tuple[Opposite, Opposite]:
    move = measure.key(2, 2)
    through, low_through = _through(system, np.flatnonzero(~large).tolist(), measure, short)
    moves, low_moves = (np.where(large, move, keys) for keys in (through, low_through))
    two, low_two = _by_two_vectors(system, classes, large, (through, low_through), measure, short)
    upper, lower = _by_one_vector(system, classes, np.where(classes, move, two), measure, short)
    high = Opposite(moves, np.where(classes, move, np.minimum(upper, two)))
    low_costs = Opposite(low_moves, np.where(classes, move, np.minimum(lower, low_two)))
    same = (high.through == low_costs.through).all() and (high.towards == low_costs.towards).all()
    return high, high if same else low_costs


def _through(
    system: System, single: list[int], measure: Measure, short: Callable[[], ShortVectors]
) -> tuple[IntArray, IntArray]:
    """Upper and lower bounds on the shortest vector that changes each region of a single cell."""
    if system.two_way is not None:
        keys = np.array([measure.key(length, length) for length in system.two_way.cycles.tolist()])
    elif system.grid is not None:
        keys = np.full(system.width, _box(system.grid, measure))
    elif single:
        return short().through(measure, single)
    else:
        keys = np.full(system.width, NONE)
    return keys, keys


def _by_one_vector(
    system: System, classes: BoolArray, ceiling: IntArray, measure: Measure, short: Callable[[], ShortVectors]
) -> tuple[IntArray, IntArray]:
    """Upper and lower bounds on the shortest vector that changes the sum of a region and one in the class."""
    wanted = ~classes
    if system.two_way is not None:
        upper, lower = opposite_in_table(system.two_way, measure, classes, wanted, ceiling)
        missing = wanted & (upper == UNKNOWN) & (measure.entries(ceiling) > measure.entries(lower))
    elif system.grid is not None:
        reached, box = _on_a_line(system, classes), _box(system.grid, measure)
        upper, lower = np.where(reached, box, NONE), np.full(classes.shape, box)
        missing = wanted & ~reached & (ceiling > box)
    else:
        return short().opposite(measure, classes, wanted, ceiling)
    if missing.any():
        at_most, at_least = short().opposite(measure, classes, missing, ceiling)
        upper = np.where(missing, at_most, upper)
        lower = np.where(missing, np.maximum(at_least, lower), lower)
    return upper, lower


def _box(grid: Grid, measure: Measure) -> int:
    """The shortest vectors of a full table have 2^p entries, through any cell and along any line."""
    return measure.key(2 ** len(grid.shape), 2 ** len(grid.shape))


def _on_a_line(system: System, classes: BoolArray) -> BoolArray:
    """The classes on the lines through each cell of the table: a box of 2^p cells connects the cell with them."""
    column = system.grid.column if system.grid is not None else np.empty(0, dtype=np.int64)
    on_grid = classes[column]
    on_lines = np.zeros_like(on_grid)
    for way in range(column.ndim):
        on_lines |= on_grid.any(axis=way, keepdims=True)
    reached = np.empty_like(classes)
    reached[column.ravel()] = on_lines.reshape(-1, classes.shape[1])
    return reached


def _by_two_vectors(
    system: System,
    classes: BoolArray,
    large: BoolArray,
    through: tuple[IntArray, IntArray],
    measure: Measure,
    short: Callable[[], ShortVectors],
) -> tuple[IntArray, IntArray]:
    """Upper and lower bounds by a move within one region of several cells plus a vector that changes the other region.

    The two interact where the vector has an entry m in the region of the move. In the l2 norm that entry may become
    m + 1, or, if it was spread over several cells, may all go to one cell; the upper bound allows for both.
    """
    move = measure.key(2, 2)
    within = np.asarray((classes & large[:, None]).any(axis=0))
    bounds = []
    for changing, at_most in zip(through, (True, False), strict=True):
        with_move = changing + move
        if measure.norm == "l2" and (~large).any() and large.any():
            at_least = with_move if measure.fewest_first else changing
            with_move = _with_move(system, changing, measure, short) if at_most else at_least
        to_single = np.where(classes & ~large[:, None], with_move[:, None], NONE).min(axis=0)
        from_large = np.where(within, 2 * move, to_single)
        from_single = np.where(within[None, :], with_move[:, None], NONE)
        bounds.append(np.minimum(np.where(large[:, None], from_large[None, :], from_single), NONE))
    return bounds[0], bounds[1]


def _with_move(system: System, through: IntArray, measure: Measure, short: Callable[[], ShortVectors]) -> IntArray:
    """An upper bound on vectors that change each column, with a move added to one of their entries."""
    if system.two_way is not None:  # the entries of a cycle are 1
        return np.where(through >= UNKNOWN, UNKNOWN, through + measure.key(2, 2) + measure.key(0, 2))
    most = measure.entries(through)  # a bound on every entry
    if measure.fewest_first:
        most = most // 2  # as much is given as taken
        return np.where(through >= UNKNOWN, UNKNOWN, through + measure.key(2, 2) - 2 * most)
    worst = np.full(len(through), UNKNOWN)
    for vector in short().vectors:
        largest = max(map(abs, vector.values()))
        squares = sum(entry * entry for entry in vector.values()) + 2 * largest + 2
        places = list(vector)
        worst[places] = np.minimum(worst[places], measure.key(1, squares))
    return worst
