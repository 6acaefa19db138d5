"""The distances of one person as ``keepsum.certificate/2`` defines them: by vectors of the lattice.

For an axis t, a cell i that is not pinned and a value v other than that of i, n(i, v) is the smallest l1 length of a
lattice vector that takes from i and gives to a cell with the value v, whether or not the counts that it leads to are
non-negative. *Any value* is the largest n over i and v; *some other value* is the largest, over i, of the smallest
over v. In the l2 norm the longest of these vectors counts. Real tables may be farther apart: later certificates follow
``distances.py`` and docs/one-person.md, and this is here to check the earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations, pairwise

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.structure import Structure
from keepsum.planning.attribute_distance import AttributeDistance
from keepsum.planning.distances import AnyChanges, Distances, covered
from keepsum.planning.focused_changes import MOST_WORK
from keepsum.planning.lattice_changes import Parts
from keepsum.planning.quotient import Quotient
from keepsum.privacy.distance import Distance, Norm, farthest
from keepsum.privacy.neighbours import Neighbours
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants, Margin

MOST_AXES = 12  # of a table whose distances follow from its kept margins


@dataclass(frozen=True, eq=False)
class LatticeDistances(Distances):
    """Those of ``keepsum.certificate/2``, by vectors of the lattice."""

    @cached_property
    def by_attribute(self) -> tuple[AttributeDistance, ...]:
        """The distances of each attribute; none for cells without names."""
        distances = lattice_distances(self.invariants, self.structure, self.norm, self.quotient)
        if self.focused is not None:
            distances = tuple(self._under_focus(attribute, self.focused) for attribute in distances)
        return tuple(attribute.times(self.changes) for attribute in distances)

    @cached_property
    def within_levels(self) -> tuple[Distance | None, ...]:
        """For each focus, the dearest change between two cells of one of its totals; None where that is not known."""
        if self.focused is None:
            return ()
        levels = range(self.focused.levels)
        if self.structure.blocks or not self.focused.possible:
            return tuple(None for _ in levels)
        found = (self.focused.within(level) for level in levels)
        return tuple(None if distance is None else distance.times(self.changes) for distance in found)

    def _under_focus(self, attribute: AttributeDistance, focused: AnyChanges) -> AttributeDistance:
        """The distances of an attribute with what changes do to focused totals: at most as much as to cells."""
        domain = self.invariants.domain
        if domain is None or attribute.any_value is None or attribute.other_value is None:
            return attribute
        codes, group, compared = self._values(attribute.axis, domain)
        if not self.structure.blocks and focused.possible and compared:
            found = focused.of_attribute(codes, group)
            if found is not None:
                return replace(attribute, any_value=found[0], other_value=found[1])
        attained = (False, False)
        if attribute.any_value == Distance(self.norm, 2):  # every change is a move
            attained = focused.moves_change_all(codes, group)
        elif not self.structure.blocks and attribute.any_value == Distance(self.norm, 4) and focused.changes_all_twice:
            attained = True, attribute.other_value == Distance(self.norm, 4)  # a move in each of two regions
        return replace(
            attribute,
            any_value=at_most(attribute.any_value, focused, attained[0]),
            other_value=at_most(attribute.other_value, focused, attained[1]),
        )

    def _values(self, axis: str, domain: Domain) -> tuple[IntArray, IntArray | None, bool]:
        """The categories of cells, or of groups divided by them and of which group each is; and whether to compare all.

        Where every group has all categories and there are too many pairs to compare, three categories say as much.
        """
        if self.quotient is None:
            return domain.codes(axis), None, True
        number, length = self.quotient.number, len(domain.axis(axis))
        if self.quotient.is_apart(axis) and number * length > MOST_WORK:
            few = min(3, length)
            return np.tile(np.arange(few), number), np.repeat(np.arange(number), few), False
        group, _, codes = self.quotient.refined(axis)
        return codes, group, True

    @cached_property
    def person(self) -> Distance | None:
        """As that of ``Distances``, also where some cells have values at a distance that is not known."""
        found = covered(self.by_attribute, Neighbours(), self.alone)
        return farthest(found, self.weights) if found else None


def at_most(distance: Distance, focused: AnyChanges, exact: bool) -> Distance:
    """The distance with the largest changes of focused totals that there can be; exact if some change has them."""
    return replace(distance, exact=exact, focused=focused.most(distance.length))


def lattice_distances(
    invariants: Invariants, structure: Structure, norm: Norm, quotient: Quotient | None = None
) -> tuple[AttributeDistance, ...]:
    """The distances of every axis with more than one category; none for cells without names.

    ``quotient`` are the groups that cells are taken together in, if they are.
    """
    domain = invariants.domain
    if domain is None:
        return ()
    axes = [name for name in domain.axes if len(domain.axis(name)) > 1]
    closed = _from_margins(invariants, domain)
    if closed is not None:
        distances = {name: Distance(norm, length) for name, length in closed.items()}
        return tuple(AttributeDistance(name, distances[name], distances[name]) for name in axes)
    if quotient is not None:
        return tuple(_in_groups(structure, norm, quotient, name) for name in axes)
    parts = Parts.of(structure, norm, zero_one=bool((invariants.coefficients.data == 1).all()))
    codes = {name: domain.codes(name) for name in axes}
    return tuple(_distance(parts, name, code) for name, code in codes.items() if code.min() < code.max())


def _in_groups(structure: Structure, norm: Norm, quotient: Quotient, axis: str) -> AttributeDistance:
    """The distances of an axis of a table in groups, which are divided by that axis."""
    if quotient.is_apart(axis):  # somebody in any cell can have any category instead, in the same group
        return AttributeDistance(axis, Distance(norm, 2), Distance(norm, 2))
    group, sizes, codes = quotient.refined(axis)
    finer = replace(structure, region=structure.region[group], weight=sizes)
    return _distance(Parts.of(finer, norm, zero_one=True), axis, codes)


def _distance(parts: Parts, axis: str, codes: IntArray) -> AttributeDistance:
    """The distances of an axis, exact where upper and lower bounds agree."""
    high, low = parts.worst(codes)

    def bound(upper: int | None, lower: int | None) -> Distance | None:
        return None if upper is None else Distance(parts.measure.norm, upper, upper == lower and not high.unknown)

    return AttributeDistance(
        axis,
        bound(high.any_value, low.any_value),
        bound(high.other_value, low.other_value),
        fixed_values=high.fixed_values,
        unprotected=high.unprotected,
        stuck=high.stuck,
        unknown=high.unknown,
    )


# -- distances in closed form, from the kept margins -----------------------------------------------------------------


def _from_margins(invariants: Invariants, domain: Domain) -> dict[str, int] | None:
    """The length for each axis, where the table is a full product and only margins of whole families are kept.

    A *box* over a set U of families takes two categories of each and gives the 2^|U| cells signs that alternate; it
    changes no kept margin if and only if none contains U. The smallest such U that contains a family t gives a vector
    that takes from any cell and gives to the cell with any other value of t. No shorter vector does: its two layers at
    those values keep the margins with t, less t, and by induction a vector that keeps margins is 0 or at least as long
    as the smallest box. All entries of the shortest vectors are 1, so the squared l2 length is the same.
    """
    families = _families(domain)
    if domain.structural_zeros or len(families) > MOST_AXES:
        return None
    if any(domain.within.get(below) != above for family in families for above, below in pairwise(family)):
        return None  # two axes nested in one
    leaves = [family[-1] for family in families]
    kept: list[frozenset[int]] = []
    for part in invariants.parts:
        if not isinstance(part, Margin):
            return None
        named = [f for f, family in enumerate(families) if set(family) & set(part.axes)]
        if any(leaves[f] not in part.axes for f in named):
            return None  # a margin of states, with counties inside: not a whole family
        kept.append(frozenset(f for f in named if len(domain.axis(leaves[f])) > 1))
    several = [f for f, leaf in enumerate(leaves) if len(domain.axis(leaf)) > 1]
    lengths: dict[str, int] = {}
    for f in several:
        size = next((len(box) for box in _sets_with(f, several) if not any(box <= margin for margin in kept)), None)
        if size is None:
            return None  # every cell is kept
        lengths |= dict.fromkeys(families[f], 2**size)
    return lengths


def _families(domain: Domain) -> list[list[str]]:
    """The families of nested axes, each from its root down."""
    families: dict[str, list[str]] = {}
    for name in domain.axes:
        root = name
        while root in domain.within:
            root = domain.within[root]
        families.setdefault(root, []).append(name)
    return list(families.values())


def _sets_with(member: int, others: list[int]) -> Iterator[frozenset[int]]:
    """All sets with that member, smallest first."""
    rest = [other for other in others if other != member]
    sets = chain.from_iterable(combinations(rest, size) for size in range(len(rest) + 1))
    return (frozenset((member, *others)) for others in sets)
