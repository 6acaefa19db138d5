"""Focused totals, as further entries of a table whose totals are all kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, pairwise, permutations

import numpy as np

from keepsum._arrays import BoolArray, IntArray
from keepsum.lattice.families import Collapse, coarsened, summed_out
from keepsum.sampling.l1.splitting.bundles import NOTHING as ZERO_SUM
from keepsum.sampling.l1.splitting.bundles import Bundles, SplitTable, bundled

# Margins with weights of their own, as one more row and column of a table with kept margins.
#
# Let a table have row sums R_i, column sums C_j and the sum G, and noise with probability proportional to exp(-eps
# |z|_1 - sum of a_i |R_i| - sum of b_j |C_j| - g |G|), over the tables where those that are kept are 0. Add a column
# with the entries -R_i, a row with the entries -C_j, and G where they meet: all row and column sums are 0. So it is a
# table with kept margins whose added entries have the weights exp(-a_i |R_i|), exp(-b_j |C_j|) and exp(-g |G|). Where
# a sum is kept, the entry is a structural zero.
#
# If G is neither kept nor focused, its entry has weight 1 whatever it is: no law by itself. But the other entries of
# its row have one: with the added column taken off first, -G is drawn as the sum of the other entries of the added
# row, by the law of that sum, and nothing else is asked of G. (If all row sums are 0 there is no added column, and G
# is 0.)


KEPT = None  # in place of the weight of a total
NOTHING = Fraction(0)  # the weight of a grand total that is neither kept nor focused


@dataclass(frozen=True)
class MarginWeights:
    """The weights of the totals of a table; ``KEPT`` for one that is 0.

    Attributes
    ----------
    rows, columns
        Those of the rows and the columns.
    whole
        That of the grand total, which matters if rows and columns are focused; ``NOTHING`` if it is free.
    """

    rows: tuple[Fraction | None, ...]
    columns: tuple[Fraction | None, ...]
    whole: Fraction | None = NOTHING

    @property
    def transposed(self) -> MarginWeights:
        """The same with the roles of rows and columns exchanged."""
        return MarginWeights(self.columns, self.rows, self.whole)

    @property
    def shape(self) -> tuple[int, int]:
        """The lengths of the sides with what is added."""
        return len(self.rows) + _focused(self.columns), len(self.columns) + _focused(self.rows)


def _focused(weights: Sequence[Fraction | None]) -> bool:
    return any(weight is not KEPT for weight in weights)


def two_way(sizes: IntArray, margins: MarginWeights | None = None) -> SplitTable:
    """A table under both margins, with what focused ones add: entries row by row, those without a cell left out.

    Its columns are summed out.

    >>> table = two_way(np.array([[1, 2], [3, 4]]), MarginWeights((Fraction(1), None), (Fraction(2), Fraction(2))))
    >>> [str(weight) for weight in table.further]
    ['1', '2', '0']
    >>> table.loads.T.tolist()
    [[1, 2, 0, 3, 4, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0, 0, 1]]
    """
    rows, columns = sizes.shape
    shape = sizes.shape if margins is None else margins.shape
    present = {} if margins is None else _margin_weights(sizes, margins)
    further = tuple(sorted(set(present.values()), key=lambda weight: (weight == NOTHING, weight)))
    loads = np.zeros((*shape, 1 + len(further)), dtype=np.int64)
    loads[:rows, :columns, 0] = sizes
    for place, weight in present.items():
        loads[(*place, 1 + further.index(weight))] = 1
    row, column = np.nonzero(loads.any(axis=2))
    collapse = Collapse(row, column, np.zeros(shape[0], dtype=np.int64))
    return SplitTable(loads[row, column], (collapse,), further)


def _margin_weights(sizes: IntArray, margins: MarginWeights) -> dict[tuple[int, int], Fraction]:
    """Where entries are added, and the weights that they have."""
    (rows, columns), shape = sizes.shape, margins.shape
    weights: dict[tuple[int, int], Fraction | None] = {}
    if shape[1] > columns:
        weights |= {(i, columns): weight for i, weight in enumerate(margins.rows)}
    if shape[0] > rows:
        weights |= {(rows, j): weight for j, weight in enumerate(margins.columns)}
    if shape == (rows + 1, columns + 1):
        weights[rows, columns] = margins.whole
    return {place: weight for place, weight in weights.items() if weight is not KEPT}


# Focused totals of several axes, as further entries of a table whose totals are all kept.
#
# Noise has probability proportional to exp(-eps |z|_1 - sum of w_g |z(g)|). Take the focused families in some order
# P_1, ..., P_m, each of which covers all entries, and let S_k be the finest family that both P_k and P_{k+1} refine:
# of the categories of one axis and those of another, the grand total. Add *slices*, an entry a_g = -z(g) for each
# class g of each P_k, and *corners*, an entry c_s = z(s) for each class s of each S_k. They are determined by
#
#     z(g) + a_g = 0                                       for each focused total,
#     the sum of a_g over the g of P_k inside s, + c_s = 0     for each class s of S_k,
#     the sum of a_g over the g of P_{k+1} inside s, + c_s = 0 for each class s of S_k, which follows,
#
# and the weights exp(-w_g |a_g|) of slices make the law of z what it is to be. Corners have weight 1, or that of
# totals that are focused themselves. Each of these totals belongs to a family that covers all entries, old and new:
#
# - that of P_1 goes on with the corners and slices of the last line,
# - that of P_m with those of the line before,
# - in that of another P_k all other slices and corners are one class: all of the last line add up to 0, so that with
#   the slices of P_1, and without those of P_k, it is minus and plus the grand total,
# - in a kept family the slices of P_k are in the classes of the finest family that both refine, and so are corners:
#   the total over such a class is kept. Or all slices and corners are one class: they add up to minus the grand
#   total.
#
# So it is a table under kept totals, and is drawn if they can be summed out. With two axes this is the further row
# and column of ``added``. A corner of weight 1 has no law by itself. It needs none where the sum of its row is 0:
# then it is drawn as minus the sum of the others. Tables where that is not so are refused.


LOOKED_AT, ORDERS = 5040, 24  # of focused families: orders that are compared, and that are tried
ALL_AS_ONE = 100  # entries of a table in which all slices and corners may be one class of a kept family


@dataclass(frozen=True, eq=False)
class FocusedFamily:
    """A focused family.

    Attributes
    ----------
    classes
        The class of each entry, numbered 0, 1, 2, ...
    weights
        The weight of each class; ``KEPT`` where the total is 0.
    """

    classes: IntArray
    weights: tuple[Fraction | None, ...]

    @property
    def spread(self) -> float:
        """About the variance that slices of these weights give to their sum."""
        return sum(1 / float(weight) ** 2 for weight in self.weights if weight is not KEPT)


def with_slices(sizes: IntArray, kept: Sequence[IntArray], focused: Sequence[FocusedFamily]) -> SplitTable | None:
    """A table with what its focused families add, behind its entries; None if that cannot be summed out.

    Parameters
    ----------
    sizes
        The number of cells of each entry.
    kept
        The families whose totals are 0, each with the class of every entry.
    focused
        At least one family; no two have the same classes.

    Examples
    --------
    Three axes with a focus on the total of each category: 8 cells, 6 slices and 2 corners.

    >>> families = [FocusedFamily(axis, (Fraction(1),) * 2) for axis in np.indices((2, 2, 2)).reshape(3, 8)]
    >>> table = with_slices(np.ones(8, dtype=np.int64), [], families)
    >>> table.loads.sum(axis=0).tolist(), [str(weight) for weight in table.further]
    ([8, 6, 2], ['1', '0'])
    """
    attempts = [(order, True) for order in _orders(focused)]
    if kept and len(sizes) <= ALL_AS_ONE:
        attempts += [(order, False) for order, _ in attempts]
    for order, in_parts in attempts:
        added = _weights(order, [family for family in focused if family not in order])
        if added is None:
            continue
        present: BoolArray = np.array([True] * len(sizes) + [weight is not KEPT for weight in added])
        all_families = _families(len(sizes), kept, [family.classes for family in order], in_parts)
        families = [family[present] for family in all_families]
        collapses = summed_out(families, int(present.sum()))
        if collapses is None:
            continue
        weights = [weight for weight in added if weight is not KEPT]
        further = tuple(sorted(set(weights), key=lambda weight: (weight == NOTHING, weight)))
        loads = np.zeros((int(present.sum()), 1 + len(further)), dtype=np.int64)
        loads[: len(sizes), 0] = sizes
        for place, weight in enumerate(weights, len(sizes)):
            loads[place, 1 + further.index(weight)] = 1
        table = SplitTable(loads, collapses, further)
        if _corners_have_laws(bundled(table)):
            return table
    return None


def _orders(focused: Sequence[FocusedFamily]) -> Iterator[tuple[FocusedFamily, ...]]:
    """Orders of the families, but for those whose totals are corners of two others.

    Those with the most corners come first: margins such as AB, BC and CD can be summed out where neighbours share an
    axis. Of these, at first the widest is last, and the next one first: when the sum over all is drawn, all is known of
    it but what the slices of one end weigh, which matters least if they are wide.
    """
    own = [family for family in focused if not _is_between_others(family, focused)]
    *narrower, widest = sorted(own, key=lambda family: family.spread)
    first = (*narrower[-1:], *narrower[:-1], widest)
    corners = [[int(coarsened(one.classes, two.classes).max()) for one in first] for two in first]
    orders = islice(permutations(range(len(first))), LOOKED_AT)
    for order in sorted(orders, key=lambda order: -sum(corners[one][two] for one, two in pairwise(order)))[:ORDERS]:
        yield tuple(first[k] for k in order)


def _is_between_others(family: FocusedFamily, focused: Sequence[FocusedFamily]) -> bool:
    others = [other for other in focused if other is not family]
    return any(
        _same(family.classes, coarsened(one.classes, two.classes)) for k, one in enumerate(others) for two in others[:k]
    )


def _same(one: IntArray, two: IntArray) -> bool:
    """Whether two families have the same classes."""
    return int(one.max()) == int(two.max()) == int(coarsened(one, two).max())


def _between(order: Sequence[IntArray]) -> list[IntArray]:
    """The families of the corners."""
    return [coarsened(one, two) for one, two in pairwise(order)]


def _weights(order: Sequence[FocusedFamily], others: Sequence[FocusedFamily]) -> list[Fraction | None] | None:
    """The weights of all slices and corners; None if other families are not those of corners."""
    slices = [weight for family in order for weight in family.weights]
    corners: list[list[Fraction | None]] = []
    for classes in _between([family.classes for family in order]):
        own: list[Fraction | None] = [NOTHING] * (int(classes.max()) + 1)
        for other in [other for other in others if _same(other.classes, classes)]:
            for here, there in set(zip(classes.tolist(), other.classes.tolist(), strict=True)):
                own[here] = other.weights[there]
            others = [each for each in others if each is not other]
        corners.append(own)
    return None if others else slices + [weight for own in corners for weight in own]


def _families(entries: int, kept: Sequence[IntArray], order: Sequence[IntArray], in_parts: bool) -> list[IntArray]:
    """For each family of kept totals the class of each entry, old and new.

    In a kept family the new ones are divided into the classes that they must be in, or one class.
    """
    between = _between(order)
    counts = [int(classes.max()) + 1 for classes in (*order, *between)]
    firsts = (entries + np.cumsum([0, *counts])).tolist()
    slices, corners = firsts[: len(order)], firsts[len(order) : -1]

    def extended(classes: IntArray) -> IntArray:
        family = np.full(firsts[-1], -1, dtype=np.int64)
        family[:entries] = classes
        return family

    def join(family: IntArray, first: int, classes: IntArray, sums: IntArray, start: int) -> None:
        """Put new entries, one for each class, where the sums that they are in say."""
        family[first + classes] = start + sums

    families = [extended(classes) for classes in order]
    for family, first, classes in zip(families, slices, order, strict=True):
        join(family, first, classes, classes, 0)
    for k, corner in enumerate(between):
        for family, slice_of in ((families[-1], k), (families[0], k + 1)):
            start = int(family.max()) + 1
            join(family, slices[slice_of], order[slice_of], corner, start)
            join(family, corners[k], corner, corner, start)
    for family in families[1:-1]:
        family[family < 0] = int(family.max()) + 1
    for classes in kept:
        families.append(extended(classes))
        if not in_parts:
            families[-1][entries:] = int(classes.max()) + 1
            continue
        for first, others in zip(firsts, (*order, *between), strict=False):
            join(families[-1], first, others, coarsened(classes, others), int(families[-1].max()) + 1)
    return families


def _corners_have_laws(bundles: Bundles) -> bool:
    """Whether each sum with a corner of weight 1 below it is 0, unless it is the corner, and has only one below it."""
    loads = [*bundles.entry_laws, *(load for form in bundles.forms for load in form.loads)]
    flat = np.array([any(n and not rate for n, rate in zip(load[1:], bundles.further, strict=True)) for load in loads])
    empty = np.array([not any(load) for load in loads])
    is_zero = np.zeros(bundles.places, dtype=bool)
    is_zero[ZERO_SUM] = True
    for number in range(bundles.count):
        form = bundles.forms[bundles.form[number]]
        here = slice(bundles.start[number], bundles.start[number + 1])
        law = bundles.law[here]
        left, right = np.array(form.parts)[law].T
        at_zero = is_zero[bundles.at[here]]
        if (flat[left] & flat[right]).any() or (flat[form.first + law] & ~at_zero).any():
            return False
        is_zero[bundles.left[here][at_zero & empty[right]]] = True
        is_zero[bundles.right[here][at_zero & empty[left]]] = True
    return True
