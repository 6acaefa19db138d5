"""Changes of one attribute, part by part: the largest, over cells and values, of the smallest change.

Noise in different parts of a table (cells under no total, sums, blocks) is independent, so a change within one part
concerns that part alone, and a change from one part to another is a vector in each: l1 lengths add up, and so do
squared l2 lengths. All of it is computed for classes of equivalent cells, in time linear in the cells where no totals
overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from keepsum._arrays import BoolArray, IntArray, ranked, tallied
from keepsum.lattice.measure import NONE, UNKNOWN, Measure
from keepsum.lattice.opposite import Opposite, opposite
from keepsum.lattice.shortest import ShortVectors
from keepsum.lattice.structure import FORCED, FREE, Structure, System
from keepsum.privacy.distance import Norm


@dataclass(frozen=True)
class Parts:
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
    def of(cls, structure: Structure, norm: Norm, zero_one: bool) -> Parts:
        """The parts of a structure; ``zero_one`` (all weights are 0 or 1) decides how lengths count."""
        sums = np.flatnonzero((structure.part == FORCED) & (structure.sizes > 1))
        number = np.full(len(structure.sizes), -1, dtype=np.int64)
        number[structure.part == FREE] = 0
        number[sums] = 1 + np.arange(len(sums))
        first = 1 + len(sums)
        in_block = structure.part >= 0
        number[in_block] = first + structure.part[in_block]
        part = number[structure.region]
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

    def __init__(self, parts: Parts, codes: IntArray, values: int, costs: _Costs) -> None:
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
