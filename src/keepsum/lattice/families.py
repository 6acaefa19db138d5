"""Totals that can be summed out family by family, such as a total for each county, each age and each sex.

A *family* is a partition of the entries of a table whose classes have totals that are kept. To sum out a family P,
add up all entries that agree in every other family: these sums are the entries x of a smaller table. Draw an edge from
x to p for each entry of the larger table, where p is its class in P. In a connected component of this graph the entries
are a two-way table with structural zeros, with rows x and columns p. Given the smaller table, its row sums are known
and its column sums are kept, so what is left of each component is a two-way table under both margins.

What is kept of the smaller table are its other families and S, the sum over each component: the rows and the columns
of a component have the same sum. Conversely every smaller table with these sums 0 is one of row sums: a connected
bipartite graph has a flow for any row sums that add up to 0. So the dimension of the lattice is that of the smaller one
and, for each component, the number of entries less rows less columns plus 1.

The order is that of Graham's reduction. Crossed margins can be summed out to the end if and only if they are
decomposable: {A, B, C} and {AB, BC, CD} can, {AB, BC, CA} cannot. Nested axes need no further rule: summing out
county x sex leaves state x sex.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from scipy import sparse

from keepsum._arrays import BoolArray, IntArray, ranked
from keepsum.lattice.graphs import connected_components
from keepsum.lattice.matrix import indicators
from keepsum.lattice.two_way import TwoWay

FAMILIES = 24  # more are not tried: their number squared is compared, and nobody keeps so many margins
COMPARED = 10**8  # labels of pairs of families that are compared at first: about a second
SHUFFLED, ATTEMPTS, FURTHER = 4000, 6, 2000  # totals in no order that are sorted at all, how often, and repeatedly
PAIRS = 2 * 10**7  # pairs of entries of a row that are looked at for cycles of four: about two seconds


@dataclass(frozen=True, eq=False)
class Collapse:
    """One family of totals, summed out.

    Entries of the table before that all kept totals force to be 0 are structural zeros: they are in no row and in no
    column.

    Attributes
    ----------
    row
        For each entry of the table before the entry of the table after that it is added to; -1 for a structural zero.
    column
        For each entry before its class in the family, numbered 0, 1, 2, ...; -1 for a structural zero.
    component
        For each entry of the table after the component of the graph of rows and columns that it is a row of.
    """

    row: IntArray
    column: IntArray
    component: IntArray

    @property
    def live(self) -> IntArray:
        """The entries of the table before that are no structural zeros."""
        return np.flatnonzero(self.row >= 0)

    @property
    def sizes(self) -> tuple[IntArray, IntArray, IntArray]:
        """How many entries, rows and columns each component has."""
        live = self.live
        part = self.component[self.row[live]]
        of_column = np.zeros(int(self.column.max(initial=-1)) + 1, dtype=np.int64)
        of_column[self.column[live]] = part
        parts = int(self.component.max(initial=-1)) + 1
        return (
            np.bincount(part, minlength=parts),
            np.bincount(self.component, minlength=parts),
            np.bincount(of_column, minlength=parts),
        )

    @property
    def full(self) -> bool:
        """Whether each row of a component has an entry in each of its columns."""
        entries, rows, columns = self.sizes
        return bool((entries == rows * columns).all())

    @property
    def dimension(self) -> int:
        """The dimension of all tables with these row sums, over all components."""
        entries, rows, columns = self.sizes
        return int((entries - rows - columns + 1).sum())


def collapses_of(matrix: sparse.csr_array) -> tuple[Collapse, ...] | None:
    """The families of these totals, the first one summed out first; None if they cannot all be, or are not found.

    Columns must differ, as regions do. After the last collapse all entries are structural zeros. Totals may be
    redundant or multiplied by any number; a family may miss classes whose totals are implied.

    Examples
    --------
    A table of 2 x 2 x 3 with a total for each category; the first two axes are summed out, the third stays:

    >>> i, j, k = np.indices((2, 2, 3)).reshape(3, 12)
    >>> totals = np.array([*(i == n for n in range(2)), *(j == n for n in range(2)), *(k == n for n in range(3))])
    >>> [(len(c.row), len(c.component)) for c in collapses_of(sparse.csr_array(totals.astype(np.int64)))]
    [(12, 6), (6, 3)]
    """
    for families in families_of(matrix):
        found = summed_out(families, matrix.shape[1])
        if found is not None:
            return found
    return None


def families_of(matrix: sparse.csr_array) -> Iterator[list[IntArray]]:
    """Families that together are all of these totals, for each way in which they may be sorted into families."""
    supports = _supports(matrix)
    if supports is not None:
        yield from _guesses(supports, matrix.shape[1])


def coarsened(one: IntArray, two: IntArray) -> IntArray:
    """The finest family that two families refine: its classes are those of either, joined where they meet.

    >>> coarsened(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 2, 3, 3])).tolist()
    [0, 0, 1, 1, 1]
    """
    ones, one = ranked(one)
    twos, two = ranked(two)
    return ranked(connected_components(one, two + ones, ones + twos)[1][one])[1]


def collapse_of(table: TwoWay) -> Collapse:
    """A connected two-way table, with its shorter side summed out."""
    return Collapse(table.column, table.row, np.zeros(table.shape[1], dtype=np.int64))


def dimension_of(collapses: Sequence[Collapse]) -> int:
    """The dimension of the lattice of the first table."""
    return sum(collapse.dimension for collapse in collapses)


def on_squares(matrix: sparse.csr_array) -> BoolArray:
    """Regions through which a vector e_i - e_j - e_k + e_l of the lattice goes; others may be on one that is not found.

    The entries are those of a cycle of four in the graph of one family and all others, as a collapse has it.
    """
    width = matrix.shape[1]
    found = np.zeros(width, dtype=bool)
    supports = _supports(matrix)
    families = [] if supports is None else next(_guesses(supports, width), [])
    sizes = [int(family.max()) for family in families]
    for k in sorted(range(len(families)), key=sizes.__getitem__):
        row, rows = _crossed(families[:k] + families[k + 1 :] or [np.zeros(width, dtype=np.int64)])
        columns, column = ranked(families[k])
        part = _components(row, rows, column, columns)[0]
        label = _on_cycles_of_four(row, column, part[row])
        if label is not None:
            found |= (np.bincount(label) > 1)[label]
        if found.all():
            break
    return found


# -- families of totals -------------------------------------------------------------------------------


def _supports(matrix: sparse.csr_array) -> list[IntArray] | None:
    """The regions of each total, none twice, in order; None if a total gives its regions different weights."""
    matrix = sparse.csr_array(matrix[np.flatnonzero(np.diff(matrix.indptr))])
    matrix.sort_indices()
    if (matrix.data != np.repeat(matrix.data[matrix.indptr[:-1]], np.diff(matrix.indptr))).any():
        return None
    supports = [matrix.indices[a:b].astype(np.int64) for a, b in pairwise(matrix.indptr.tolist())]
    return list({support.tobytes(): support for support in supports}.values()) or None


def _guesses(supports: list[IntArray], width: int) -> Iterator[list[IntArray]]:
    """Families that together are all of the totals: margins one after the other, or in any order.

    Whatever is returned spans the same row space as the totals. Only which totals make a family is a guess.
    """
    for families in _sorted(supports, width):
        complete = _completed(families) if families is not None else None
        if complete is not None and len(complete) ** 2 * width <= COMPARED:
            yield complete


def _sorted(supports: list[IntArray], width: int) -> Iterator[list[IntArray] | None]:
    yield _in_turn(supports, width)
    count = len(supports)
    if count > SHUFFLED:
        return
    table = indicators(supports, width)
    meet = (table @ table.T).toarray() > 0
    attempts = min(ATTEMPTS, 1 + FURTHER // count)
    for k in range(attempts):
        yield _where_they_fit(supports, meet, k * count // attempts, width)


def _in_turn(supports: list[IntArray], width: int) -> list[IntArray] | None:
    """A total that meets one of the family before it starts a new family."""
    families: list[IntArray] = []
    classes = 0
    for support in supports:
        if not families or (families[-1][support] >= 0).any():
            if len(families) == FAMILIES:
                return None
            families.append(np.full(width, -1, dtype=np.int64))
            classes = 0
        families[-1][support] = classes
        classes += 1
    return families


def _where_they_fit(supports: list[IntArray], meet: BoolArray, first: int, width: int) -> list[IntArray] | None:
    """Each total in the first family of which it meets no total; next is the one that most families are closed to.

    Of several, the largest is next. This is Brélaz's order (1979) for colouring the graph of totals that meet; another
    first total may succeed where one does not.
    """
    families: list[IntArray] = []
    closed = np.zeros((len(supports), FAMILIES), dtype=bool)
    sizes = np.array([len(support) for support in supports])
    urgency = sizes.copy()
    urgency[first] += FAMILIES * (width + 1)
    for number in range(len(supports)):
        i = int(urgency.argmax())
        if closed[i].all():
            return None
        k = int(closed[i].argmin())
        if k == len(families):
            families.append(np.full(width, -1, dtype=np.int64))
        families[k][supports[i]] = number
        urgency[meet[i] & ~closed[:, k]] += width + 1
        closed[meet[i], k] = True
        urgency[i] = -FAMILIES * (width + 1)
    return families


def _completed(families: list[IntArray]) -> list[IntArray] | None:
    """Families that cover all regions: what one misses is made of classes whose totals are implied.

    Join the classes of a family that covers everything where they meet the same class of the incomplete one. What the
    joined classes have outside of the incomplete family follows from the two.
    """
    covering = [ranked(labels)[1] for labels in families if (labels >= 0).all()]
    if not covering:
        return None
    return [ranked(labels)[1] if (labels >= 0).all() else _with_rest(labels, covering) for labels in families]


def _with_rest(labels: IntArray, covering: list[IntArray]) -> IntArray:
    """The family with the finest classes that are implied for the rest."""
    inside, outside = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
    classes, known = ranked(labels[inside])
    finest, most = np.zeros(len(outside), dtype=np.int64), 0
    for other in covering:
        count = int(other.max()) + 1
        joined = connected_components(other[inside], known + count, count + classes)[1]
        pieces, piece = ranked(joined[other[outside]])
        if pieces > most:
            finest, most = piece, pieces
    result = np.empty(len(labels), dtype=np.int64)
    result[inside], result[outside] = known, classes + finest
    return result


def _crossed(families: Sequence[IntArray]) -> tuple[IntArray, int]:
    """The common refinement: the classes of all families at once."""
    count, labels = ranked(families[0])
    for family in families[1:]:
        size, other = ranked(family)
        count, labels = ranked(labels * size + other)
    return labels, count


def _merged(families: list[IntArray]) -> list[IntArray]:
    """Families of which no two can be one: two are where the totals of their common classes are implied.

    These are the edges of a graph whose vertices are the classes of both families, and the totals at the vertices are
    known; they determine all edges if and only if the graph is a forest. It is where one family refines the other.
    """
    merged = list(families)
    fresh = True
    while fresh:
        fresh = False
        for a, b in combinations(range(len(merged)), 2):
            joint = _implied(merged[a], merged[b])
            if joint is not None:
                merged[a] = joint
                del merged[b]
                fresh = True
                break
    return merged


def _implied(one: IntArray, two: IntArray) -> IntArray | None:
    ones, one = ranked(one)
    twos, two = ranked(two)
    pairs, joint = ranked(one * twos + two)
    if pairs >= ones + twos:
        return None
    if pairs > max(ones, twos):  # else each class of one family has a single class of the other
        first = _firsts(joint, pairs)
        if pairs + connected_components(one[first], two[first] + ones, ones + twos)[0] != ones + twos:
            return None
    return joint


def _firsts(labels: IntArray, count: int) -> IntArray:
    """Some member of each class."""
    member = np.empty(count, dtype=np.int64)
    member[labels] = np.arange(len(labels))
    return member


# -- summing out --------------------------------------------------------------------------------------


def summed_out(families: Sequence[IntArray], width: int) -> tuple[Collapse, ...] | None:
    """One family after the other, that with the fewest columns per component first, so that long axes stay.

    A family has the class of each of ``width`` entries; all totals of all classes are kept. None if some cannot be
    summed out.
    """
    families = list(families)
    steps: list[Collapse] = []
    while True:
        live = _not_forced(families, width)
        if not len(live):
            return tuple(steps)
        families = _merged([labels[live] for labels in families])
        step = _next_step(families)
        if step is None:
            return None
        chosen, x, column, component = step
        row_of, column_of = np.full((2, width), -1, dtype=np.int64)
        row_of[live], column_of[live] = x, column
        steps.append(Collapse(row_of, column_of, component))
        width = len(component)
        member = _firsts(x, width)
        families = [labels[member] for k, labels in enumerate(families) if k != chosen] + [component]


def _not_forced(families: list[IntArray], width: int) -> IntArray:
    """The entries that remain when those that are alone in a class are removed, repeatedly."""
    live = np.arange(width)
    while True:
        alone = np.zeros(len(live), dtype=bool)
        for family in families:
            labels = family[live]
            alone |= (np.bincount(labels, minlength=1) == 1)[labels]
        if not alone.any():
            return live
        live = live[~alone]


def _next_step(families: list[IntArray]) -> tuple[int, IntArray, IntArray, IntArray] | None:
    """The family to be summed out, the row and the column of each entry, and the component of each row."""
    best: tuple[int, IntArray, IntArray, IntArray] | None = None
    least = 0
    for k, family in enumerate(families):
        others = families[:k] + families[k + 1 :]
        if not others:
            break
        x, rows = _crossed(others)
        columns, column = ranked(family)
        component, count = _components(x, rows, column, columns)
        if count < columns and (best is None or columns - count < least):
            best, least = (k, x, column, component), columns - count
    return best


def _components(row: IntArray, rows: int, column: IntArray, columns: int) -> tuple[IntArray, int]:
    """The component of each row in the graph of rows and columns, and how many components there are."""
    if len(row) == rows * columns:  # no two entries share a row and a column
        return np.zeros(rows, dtype=np.int64), 1
    count, label = connected_components(row, column + rows, rows + columns)
    return label[:rows], count


# -- components of the matroid ------------------------------------------------------------------------


def matroid_components(collapses: Sequence[Collapse]) -> IntArray | None:
    """For each entry of the first table its component in the matroid of the totals; -1 where every vector is 0.

    None if it is not settled without algebra, which takes unusual structural zeros.

    Notes
    -----
    Entries are in one component if no splitting of the lattice into a direct sum, by sets of entries, separates them.

    *Together.* In the graph of a collapse, a cycle of four entries is a circuit: a vector on part of it would be +-1
    at two entries of one column, and their rows differ in another family. So its entries are in one component. If all
    entries of each row are together in this way (or there is only one), a splitting of the larger table splits the
    rows, hence the smaller table: rows in one component of the smaller table are together, too.

    *Apart.* Take the classes of entries that this puts together. The rows of a class are a union of components of the
    smaller table (and of rows that are always 0), so that the smaller table, split by these classes, has each part in
    its lattice, and in each component s of the graph the sum over a class is 0. Draw an edge between the classes and
    the columns of s that meet. If this graph is a tree, the sum over the entries of a class in a column is 0, leaf
    after leaf; so each class of a vector of the lattice is in the lattice itself, and classes are components.

    A full crossing of three axes or more with a total for each category passes at once, as one component: each graph
    is complete, with two rows and two columns or more.
    """
    label = np.full(len(collapses[-1].component), -1, dtype=np.int64) if collapses else np.empty(0, dtype=np.int64)
    for collapse in reversed(collapses):
        found = _entries_together(collapse, label)
        if found is None:
            return None
        label = found
    return label


def _entries_together(collapse: Collapse, after: IntArray) -> IntArray | None:
    """The components of the table before a collapse, from those of the table after it."""
    live = np.flatnonzero(collapse.row >= 0)
    row, column = collapse.row[live], collapse.column[live]
    part = collapse.component[row]
    together = _on_cycles_of_four(row, column, part)
    if together is None or _pairs(row, together) > len(after):
        return None  # not settled, or a row whose entries may be apart
    classes = int(together.max()) + 1
    inner = np.flatnonzero(after[row] >= 0)
    joined = connected_components(together[inner], after[row[inner]] + classes, classes + int(after.max()) + 1)[1]
    count, label = ranked(joined[together])
    if _pairs(label, column) != _pairs(label, part) + int(column.max()) - int(part.max()):
        return None
    several = np.bincount(label, minlength=count) > 1
    result = np.full(len(collapse.row), -1, dtype=np.int64)
    result[live] = np.where(several[label], (np.cumsum(several) - 1)[label], -1)
    return result


def _pairs(one: IntArray, two: IntArray) -> int:
    """How many pairs of labels there are."""
    return _crossed([one, two])[1]


def _on_cycles_of_four(row: IntArray, column: IntArray, part: IntArray) -> IntArray | None:
    """Entries with the same label are linked by cycles of four; None if there are too many pairs to look at."""
    parts, part = ranked(part)
    rows, columns = (_lines(line, part, parts) for line in (row, column))
    entries = np.bincount(part, minlength=parts)
    full = (entries == rows * columns) & (rows > 1) & (columns > 1)
    label = np.where(full[part], part, parts + np.arange(len(part)))
    rest = np.flatnonzero(~full[part] & (columns > 1)[part])
    if not len(rest):
        return ranked(label)[1]
    pairs = _pairs_of_a_row(row[rest])
    if pairs is None:
        return None
    one, two = rest[pairs[0]], rest[pairs[1]]
    low, high = np.minimum(column[one], column[two]), np.maximum(column[one], column[two])
    count, key = ranked(low * (int(column.max()) + 1) + high)
    often = (np.bincount(key, minlength=count) > 1)[key]
    ends = np.concatenate([one[often], two[often]]), np.tile(key[often], 2) + len(row)
    linked = connected_components(*ends, len(row) + count)[1][: len(row)]
    return ranked(np.where(full[part], part, parts + linked))[1]


def _lines(line: IntArray, part: IntArray, parts: int) -> IntArray:
    """How many rows, or columns, there are in each component."""
    count, labels = ranked(line)
    first = _firsts(labels, count)
    return np.bincount(part[first], minlength=parts)


def _pairs_of_a_row(row: IntArray) -> tuple[IntArray, IntArray] | None:
    """All pairs of places in the same row."""
    order = np.argsort(row, kind="stable")
    sizes = np.unique(row, return_counts=True)[1]
    if int((sizes**2).sum()) > 2 * PAIRS:
        return None
    place = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    one = np.repeat(np.arange(len(row)), place)  # each entry with those of its row before it
    two = one - 1 - (np.arange(len(one)) - np.repeat(np.cumsum(place) - place, place))
    return order[one], order[two]
