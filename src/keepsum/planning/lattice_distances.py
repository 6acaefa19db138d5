"""The distances of one person as ``keepsum.certificate/2`` defines them: by vectors of the lattice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, combinations, pairwise

import numpy as np

from keepsum._arrays import BoolArray, IntArray, ranked, tallied
from keepsum.lattice.opposite import Opposite, opposite
from keepsum.lattice.shortest import NONE, UNKNOWN, Measure, ShortVectors
from keepsum.lattice.structure import FORCED, Structure, System
from keepsum.planning.distances import AnyChanges, AttributeDistance, Distances, covered
from keepsum.planning.focus_changes import MOST_WORK
from keepsum.planning.quotient import Quotient
from keepsum.privacy.distance import Distance, Neighbours, Norm, farthest
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants, Margin

# Changes of one attribute, part by part: the largest, over cells and values, of the smallest change.
#
# Noise in different parts of a table (cells under no total, sums, blocks) is independent, so a change within one part
# concerns that part alone, and a change from one part to another is a vector in each: l1 lengths add up, and so do
# squared l2 lengths. All of it is computed for classes of equivalent cells, in time linear in the cells where no
# totals overlap.


@dataclass(frozen=True)
class LatticeParts:
    """The parts of a table whose noise is independent: the cells under no total, each sum, and each block."""

    structure: Structure
    measure: Measure
    cells: IntArray  # those that are not pinned
    weight: IntArray | None  # how many cells each stands for, if not one
    part: IntArray  # the part of each
    first_block: int  # parts from here on are blocks
    count: int
    short: dict[tuple[int, bytes], ShortVectors]

    @classmethod
    def of(cls, structure: Structure, norm: Norm, zero_one: bool) -> LatticeParts:
        """The parts of a structure; ``zero_one`` (all weights are 0 or 1) decides how lengths count."""
        part = structure.numbered_parts(with_blocks=True)[structure.region]
        first = 1 + int(((structure.part == FORCED) & (structure.sizes > 1)).sum())
        cells = np.flatnonzero(part >= 0)
        weight = None if structure.weight is None else structure.weight[cells]
        count = first + len(structure.blocks)
        return cls(structure, Measure(norm, zero_one), cells, weight, part[cells], first, count, {})

    def worst(self, codes: IntArray) -> tuple[Worst, Worst]:
        """The largest costs of a change of an attribute with these codes, from upper and from lower bounds."""
        values, codes = ranked(codes)
        cell_codes = codes[self.cells]
        upper, lower = self._costs(cell_codes)
        high = _Change(self, cell_codes, values, upper).worst()
        return high, high if upper is lower else _Change(self, cell_codes, values, lower).worst()

    def _costs(self, codes: IntArray) -> tuple[_Costs, _Costs]:
        """What changes within each part cost, at most and at least; the same object twice where both are exact."""
        key = self.measure.key
        through, towards = np.full((2, self.count), key(2, 2))
        through[0] = key(1, 1)
        upper = _Costs(through, towards, [])
        lower = _Costs(through.copy(), towards.copy(), [])
        exact = True
        known: dict[tuple[int, bytes, bytes], tuple[Opposite, Opposite]] = {}
        for number, (cells, region) in enumerate(self.in_blocks):
            system, sizes = self._block(number)
            weight = None if self.weight is None else self.weight[cells]
            labels = _Labels.of(self.first_block + number, region, codes[cells], weight)
            held = np.unique(region * labels.groups + labels.group_of[labels.label])
            form = (id(system), sizes.tobytes(), held.tobytes())
            if form not in known:
                short = partial(self._short, number)
                known[form] = opposite(system, sizes, held, labels.groups, self.measure, short)
            for costs, opposites in zip((upper, lower), known[form], strict=True):
                costs.add(labels, opposites, key(2, 2))
            exact &= known[form][0] is known[form][1]
        return upper, upper if exact else lower

    @cached_property
    def in_blocks(self) -> list[tuple[IntArray, IntArray]]:
        """For each block its cells, as positions among those not pinned, and the position of the region of each."""
        order = np.argsort(self.part, kind="stable")
        cuts = np.searchsorted(self.part[order], np.arange(self.first_block, self.count + 1))
        column = np.zeros(len(self.structure.sizes), dtype=np.int64)
        for block in self.structure.blocks:
            column[block.regions] = np.arange(len(block.regions))
        by_block = []
        for start, end in pairwise(cuts.tolist()):
            cells = order[start:end]
            by_block.append((cells, column[self.structure.region[self.cells[cells]]]))
        return by_block

    def _block(self, number: int) -> tuple[System, IntArray]:
        block = self.structure.blocks[number]
        return block.system, self.structure.sizes[block.regions]

    def _short(self, number: int) -> ShortVectors:
        system, sizes = self._block(number)
        key = (id(system), sizes.tobytes())
        if key not in self.short:
            self.short[key] = ShortVectors(system.matrix, system.basis, sizes)
        return self.short[key]


@dataclass(frozen=True)
class _Labels:
    """The values of the cells of a block. Values that occur in the same regions form a *group*."""

    part: int
    region: IntArray  # of each cell
    label: IntArray  # of each cell, an index into ``values``
    values: IntArray
    group_of: IntArray  # of each label
    groups: int
    weight: IntArray | None  # how many cells each stands for, if not one

    @classmethod
    def of(cls, part: int, region: IntArray, codes: IntArray, weight: IntArray | None) -> _Labels:
        values, label = np.unique(codes, return_inverse=True)
        width = int(region.max()) + 1
        held = np.unique(label * width + region)
        cuts = np.searchsorted(held, np.arange(1, len(values)) * width)
        number: dict[bytes, int] = {}
        group_of = [number.setdefault((regions % width).tobytes(), len(number)) for regions in np.split(held, cuts)]
        return cls(part, region, label, values, np.array(group_of), len(number), weight)


@dataclass
class _Costs:
    """What changes within the parts cost: one number per part where its cells are equivalent, else block by block."""

    through: IntArray
    towards: IntArray
    uneven: list[tuple[_Labels, Opposite]]

    def add(self, labels: _Labels, opposites: Opposite, move: int) -> None:
        """Add a block."""
        alone = labels.groups == len(labels.values)
        alike = labels.groups == 1 or (alone and (opposites.towards == opposites.towards[0, 0]).all())
        if alike and (opposites.through == opposites.through[0]).all():
            self.through[labels.part] = opposites.through[0]
            self.towards[labels.part] = opposites.towards[0, 0] if alone else move
        else:
            self.uneven.append((labels, opposites))


@dataclass
class Worst:
    """The largest distances over all cells so far, and how many cells have none.

    ``unprotected`` cells cannot change to some value, ``stuck`` ones to no value at all; for ``unknown`` ones the
    distance to some value is not known.
    """

    any_value: int | None = None
    other_value: int | None = None
    unprotected: int = 0
    stuck: int = 0
    unknown: int = 0
    fixed_values: int = 0

    def take(self, lengths: IntArray, other: BoolArray, cells: IntArray) -> None:
        """Take in classes of cells, one per row: the distance of each value, and whether it differs from their own."""
        known = other & (lengths < UNKNOWN)
        self.any_value = _larger(self.any_value, int(lengths[known].max(initial=-1)))
        nearest = np.where(known, lengths, UNKNOWN).min(axis=1, initial=UNKNOWN)
        self.other_value = _larger(self.other_value, int(nearest[nearest < UNKNOWN].max(initial=-1)))
        doubtful = (other & (lengths == UNKNOWN)).any(axis=1)
        self.unprotected += int(cells[(other & (lengths >= NONE)).any(axis=1)].sum())
        self.stuck += int(cells[(nearest >= UNKNOWN) & ~doubtful].sum())
        self.unknown += int(cells[doubtful].sum())


def _larger(known: int | None, length: int) -> int | None:
    return known if length < 0 else max(length, known or 0)


class _Change:
    """All changes of one attribute, from every class of cells to every other value."""

    def __init__(self, parts: LatticeParts, codes: IntArray, values: int, costs: _Costs) -> None:
        self.parts, self.costs, self.values = parts, costs, values
        uneven = np.zeros(parts.count, dtype=bool)
        uneven[[labels.part for labels, _ in costs.uneven]] = True
        pairs, self.cells = tallied(parts.part * values + codes, parts.weight)
        self.part, self.value = pairs // values, pairs % values
        self.even = ~uneven[self.part]
        self.cheapest = self._cheapest(pairs)
        self._by_value()

    def _cheapest(self, pairs: IntArray) -> IntArray:
        """For each part and value in it the shortest vector that gives to such a cell."""
        cheapest = self.costs.through[self.part].copy()
        for labels, opposites in self.costs.uneven:
            of_value = np.full(len(labels.values), NONE)
            np.minimum.at(of_value, labels.label, opposites.through[labels.region])
            cheapest[np.searchsorted(pairs, labels.part * self.values + labels.values)] = of_value
        return np.asarray(cheapest)

    def _by_value(self) -> None:
        """For each value the cheapest part to give to, and the cheapest of the other parts."""
        order = np.lexsort((self.cheapest, self.value))
        first = np.flatnonzero(np.diff(self.value[order], prepend=-1))
        self.best = np.full(self.values, NONE)
        self.best[self.value[order[first]]] = self.cheapest[order[first]]
        part_of_best = np.full(self.values, -1)
        part_of_best[self.value[order[first]]] = self.part[order[first]]
        second = np.full(self.values, NONE)
        more = first + 1
        more = more[more < len(order)]
        more = more[self.value[order[more]] == self.value[order[more - 1]]]
        second[self.value[order[more]]] = self.cheapest[order[more]]
        self.elsewhere = np.where(part_of_best[self.value] == self.part, second[self.value], self.best[self.value])

    def worst(self) -> Worst:
        """The distances of the axis."""
        reachable = np.zeros(self.values, dtype=bool)
        reachable[self.value] = True
        worst = Worst(fixed_values=int((~reachable).sum()))
        self._outside(reachable)
        if self.even.any():
            self._take_even(worst)
        for labels, opposites in self.costs.uneven:
            self._take_uneven(worst, labels, opposites)
        return worst

    def _outside(self, reachable: IntArray) -> None:
        """Which costs of reaching a value there are outside each part."""
        self.prices, price = np.unique(self.best[reachable], return_inverse=True)
        of_value = np.zeros(self.values, dtype=np.int64)
        of_value[reachable] = price
        inside = np.zeros((self.parts.count, len(self.prices)), dtype=np.int64)
        np.add.at(inside, (self.part, of_value[self.value]), 1)
        self.offered = np.bincount(price, minlength=len(self.prices))[None, :] > inside

    def _outside_lengths(self, part: IntArray, through: IntArray) -> tuple[IntArray, BoolArray]:
        """The distances to values outside the part of each class, by their cost, and whether there are any."""
        return self.parts.measure.lengths(through[:, None] + self.prices[None, :]), self.offered[part]

    def _take_even(self, worst: Worst) -> None:
        """Parts whose cells are equivalent, all at once: of the values inside, each class leaves out its own."""
        part, cells = self.part[self.even], self.cells[self.even]
        through = self.costs.through[part]
        keys = np.minimum(self.costs.towards[part], through + self.elsewhere[self.even])
        inside = self.parts.measure.lengths(keys)
        # The nearest of the others, the farthest that is known, and whether one is not known or cannot be reached.
        nearest = -_largest_of_others(part, -inside, nothing=-NONE)
        farthest = _largest_of_others(part, np.where(inside < UNKNOWN, inside, -1))
        lost = _largest_of_others(part, np.where(inside >= UNKNOWN, inside, -1))
        doubtful = _largest_of_others(part, np.where(inside == UNKNOWN, inside, -1))
        others = np.stack([nearest, farthest, lost, doubtful], axis=1)
        there = np.stack([nearest < NONE, farthest >= 0, lost >= 0, doubtful >= 0], axis=1)
        outside, offered = self._outside_lengths(part, through)
        worst.take(np.hstack([others, outside]), np.hstack([there, offered]), cells)

    def _take_uneven(self, worst: Worst, labels: _Labels, opposites: Opposite) -> None:
        """A block, region by region; values of one group that cost the same elsewhere are taken together."""
        start = np.searchsorted(self.part, labels.part)
        elsewhere = self.elsewhere[start : start + len(labels.values)]
        alike, kind = np.unique(np.stack([labels.group_of, elsewhere]), axis=1, return_inverse=True)
        kind, count = kind.ravel(), alike.shape[1]
        classes, cells = tallied(labels.region * count + kind[labels.label], labels.weight)
        region, own_kind = classes // count, classes % count
        through = opposites.through[region]
        towards = opposites.towards[region]
        if towards.shape[1] > 1:
            towards = towards[:, alike[0]]
        same_group = alike[0][own_kind][:, None] == alike[0][None, :]
        keys = np.where(same_group, self.parts.measure.key(2, 2), towards)
        inside = self.parts.measure.lengths(np.minimum(keys, through[:, None] + alike[1][None, :]))
        other = (own_kind[:, None] != np.arange(count)[None, :]) | (np.bincount(kind) > 1)[None, :]
        outside, offered = self._outside_lengths(np.full(len(through), labels.part), through)
        worst.take(np.hstack([inside, outside]), np.hstack([other, offered]), cells)


def _largest_of_others(group: IntArray, numbers: IntArray, nothing: int = -1) -> IntArray:
    """For each entry the largest of the numbers of the other entries of its group; groups are contiguous.

    >>> _largest_of_others(np.array([0, 0, 0, 1]), np.array([5, 3, 4, 9])).tolist()
    [4, 5, 5, -1]
    """
    order = np.lexsort((-numbers, group))
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    size = np.diff(np.append(first, len(group)))
    largest = np.repeat(numbers[order[first]], size)
    second = np.full(len(first), nothing)
    several = size > 1
    second[several] = numbers[order[first[several] + 1]]
    others = largest.copy()
    others[first] = second
    others[np.repeat(size == 1, size)] = nothing
    result = np.empty_like(numbers)
    result[order] = others
    return result


# The distances of one person as ``keepsum.certificate/2`` defines them: by vectors of the lattice.
#
# For an axis t, a cell i that is not pinned and a value v other than that of i, n(i, v) is the smallest l1 length of
# a lattice vector that takes from i and gives to a cell with the value v, whether or not the counts that it leads to
# are non-negative. *Any value* is the largest n over i and v; *some other value* is the largest, over i, of the
# smallest over v. In the l2 norm the longest of these vectors counts. Real tables may be farther apart: later
# certificates follow ``distances.py`` and docs/one-person.md, and this is here to check the earlier ones.


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
    parts = LatticeParts.of(structure, norm, zero_one=bool((invariants.coefficients.data == 1).all()))
    codes = {name: domain.codes(name) for name in axes}
    return tuple(_distance(parts, name, code) for name, code in codes.items() if code.min() < code.max())


def _in_groups(structure: Structure, norm: Norm, quotient: Quotient, axis: str) -> AttributeDistance:
    """The distances of an axis of a table in groups, which are divided by that axis."""
    if quotient.is_apart(axis):  # somebody in any cell can have any category instead, in the same group
        return AttributeDistance(axis, Distance(norm, 2), Distance(norm, 2))
    group, sizes, codes = quotient.refined(axis)
    finer = replace(structure, region=structure.region[group], weight=sizes)
    return _distance(LatticeParts.of(finer, norm, zero_one=True), axis, codes)


def _distance(parts: LatticeParts, axis: str, codes: IntArray) -> AttributeDistance:
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
    families = [list(family.codes) for family in domain.families]  # each from its root down
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


def _sets_with(member: int, others: list[int]) -> Iterator[frozenset[int]]:
    """All sets with that member, smallest first."""
    rest = [other for other in others if other != member]
    sets = chain.from_iterable(combinations(rest, size) for size in range(len(rest) + 1))
    return (frozenset((member, *others)) for others in sets)
