"""How far apart real tables with the same totals must be: the longest change that a count of 0 may need to become 1.

A *real* table has counts that are not negative. Let x and y be real, with the same totals A x = A y, x_j = 0 and
y_j >= 1. How far is the nearest such y from x, in the worst case over j and x?

The *conformal* order: u is below v if in each entry u has the sign of v, or is 0, and is no larger in absolute value.
The minimal nonzero vectors of the lattice A z = 0 in this order are its *Graver basis*; every vector of the lattice
is a conformal sum of them (Graver 1975; De Loera, Hemmecke, Köppe 2013, chapter 3).

**Lemma 1.** The nearest y is x + g for a Graver element g with g_j > 0. *Proof.* Of the elements whose conformal sum
is y - x, one has g_j > 0. The entries of x + g lie between those of x and y, so it is real, and as g is below y - x
it is no longer, in l1 and in l2. So with g- the negative part of g,

    distance(x, j) = min { |g| : g_j > 0, g- <= x },

which decreases in x: the largest one is at some x = h-, h a Graver element with h_j > 0, and is

    max { min { |g| : g_j > 0, g- <= h- } : h, j with h_j > 0 },

at most the longest Graver element; the same in l2.

**Lemma 2.** Several cells with the same column, a region, need no more than one cell with the region's sum. *Proof.* If
the region of cell j has somebody, they move to j: 2, the least that any change of a lattice without unit vectors takes.
Otherwise take the change of the sums: let it decrease cells that have people, increase j and any other cells. Its l1
length is that of the sums, its l2 length at most that. Conversely a change of the cells is a change of the sums that is
no longer in l1.

**Lemma 3.** (Lawrence lifting.) If the columns are pairs whose sums are kept, the vectors are (v, -v), and the largest
distance is twice the longest Graver element g of the vectors v, always attained: x = (g-, g+) and y = (g+, g-) are the
only real tables with their totals, since x + (v, -v) is real if and only if v is 0 or below g.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import sparse

from keepsum.lattice.graphs import connected_components, spanning_forest
from keepsum.lattice.graver_basis import WIDTH, TooLongError, Work, graver_basis, needed
from keepsum.lattice.long_cycles import longest_needed
from keepsum.lattice.matrix import INT64_MAX, Row, magnitude, matrix_rows, rows_matrix
from keepsum.lattice.regions import identical_columns
from keepsum.lattice.structure import System
from keepsum.lattice.unimodular import is_unimodular

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
    distinct = {tuple(row.items()): row for row in map(_first_positive, matrix_rows(totals)) if row}
    base, rank = rows_matrix(list(distinct.values()), count), system.rank - (width - count)
    if len(identical_columns(base.tocsc())[1]) < count:
        return System(base, rank, None), times  # recognition is for columns that differ
    return System.recognised(base, rank), times


def _first_positive(row: Row) -> Row:
    return row if not row or row[min(row)] > 0 else {j: -entry for j, entry in row.items()}
