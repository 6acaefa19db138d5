"""The distance of one person in real tables under any kept totals: an upper bound, block by block.

Somebody leaves a cell i for the cell j that differs from i in the changed attribute alone. If some real table with the
same kept totals has somebody in j, the nearest is no farther than the longest element of the Graver basis with a
positive entry in j: the difference of two tables is a sum of such elements that have no opposite signs, and any one of
them alone leads to a real table. Elements are within one block, and cells in the same totals count as one. So what a
change costs at most is

- 2 where no kept total tells i and j apart: this person moves;
- the bound of the block if both are in one (``lattice/graver.py``); and
- what each of two parts needs, together, if they are not: 2 for a region with a kept sum.

The number of people stays the same. Where only margins are kept the figure is at least 2(k + 1), as without structural
zeros: that others may take this person's place does not protect somebody whose other attributes are known. What is
computed here is in the weak reading: everybody else may differ in any way. See docs/one-person.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from keepsum._arrays import BoolArray, IntArray
from keepsum.lattice.determined import determined
from keepsum.lattice.graver import longest_change
from keepsum.lattice.structure import FORCED, Structure, decompose
from keepsum.planning.attribute_distance import AttributeDistance
from keepsum.planning.kept_margins import Change
from keepsum.planning.quotient import Quotient
from keepsum.privacy.distance import Distance, Norm, Rule
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants

PINNED = -1


class Bound(NamedTuple):
    """The most that a change needs: an l1 length and the square of an l2 length, whether it is attained, and why."""

    length: int
    squared: int
    exact: bool
    rule: Rule

    def at_least(self, change: Change | None) -> Bound:
        """Or the figure without structural zeros if that is larger; somebody who only moves needs no more."""
        if change is None or self.rule == "move":
            return self
        length, squared = max(self.length, change.length("l1")), max(self.squared, change.length("l2"))
        return self._replace(length=length, squared=squared, exact=self.exact and length == self.length)

    def distance(self, norm: Norm, single: Sequence[bool] = ()) -> Distance:
        """As a distance. As many people leave as come: that bounds what changes in focused totals.

        One that is the *single* one of its focus changes by no more than leave or come. In l2 the nearest table may be
        another one than in l1, but no more people leave than half the square of its distance.
        """
        people = (self.length if norm == "l1" else self.squared) // 2
        most = (people, 2 * people) if norm == "l1" else (people**2, 2 * people**2)
        focused = tuple(most[not alone] for alone in single)
        exact = self.exact and not focused
        return Distance(norm, self.length if norm == "l1" else self.squared, exact, focused, self.rule)


MOVE = Bound(2, 2, True, "move")
SUM = Bound(2, 2, False, "sums")
UNKNOWN = Bound(0, 0, False, "graver")


class Lines(NamedTuple):
    """Cells along lines: those of a line differ in the attributes that change alone.

    Each has a line and a value of the attribute, the *region* of cells in the same totals, and the *part*: the sum or
    block that this is in. It stands for ``weight`` cells.
    """

    line: IntArray
    value: IntArray
    region: IntArray
    part: IntArray
    weight: IntArray

    def those(self, chosen: BoolArray) -> Lines:
        """Some of the cells."""
        return Lines(*(column[chosen] for column in self))


class RealTables:
    """Distances in real tables under any kept totals.

    Parameters
    ----------
    invariants, structure
        The kept totals over all cells, and their regions and blocks, of groups where cells are taken together.
    quotient
        The groups, if they are.
    symmetric
        Whether only margins are kept and there are no structural zeros: what some cell of a block needs, those of
        every line do.
    """

    def __init__(
        self, invariants: Invariants, structure: Structure, quotient: Quotient | None, symmetric: bool
    ) -> None:
        if invariants.domain is None:
            raise AssertionError("cells have names")
        self._domain, self._quotient, self._symmetric = invariants.domain, quotient, symmetric
        self._structure = structure if quotient is not None else with_people(invariants, structure)
        self._number = _numbers(self._structure)

    def attribute(
        self,
        axis: str,
        norm: Norm,
        single: Sequence[bool] = (),
        nearest: Change | None = None,
        farthest: Change | None = None,
    ) -> AttributeDistance:
        """The distances of an axis; ``nearest`` and ``farthest`` are its changes as if there were no zeros.

        ``single`` says of each focus whether it is on one total.
        """
        gaps, moving = self._gaps(axis)
        if not len(moving.line):
            return gaps
        several = _different(moving.line, moving.region) > 1
        lost = several & _any(moving.line, self._lengths[moving.part] == UNKNOWN.length)
        if lost.any():
            return replace(gaps, unknown=int(moving.weight[lost].sum()))
        to_any = self._to_any(moving.those(several)).at_least(farthest)
        if _branches(self._view(axis), axis):
            # Cells of a line may differ in more than such a change: which value is the nearest is not looked for.
            to_other = to_any._replace(exact=to_any.exact and to_any.rule == "move")
        else:
            to_other = self._to_other(moving).at_least(nearest)
        return replace(gaps, any_value=to_any.distance(norm, single), other_value=to_other.distance(norm, single))

    def gaps(self, axis: str) -> tuple[AttributeDistance, IntArray]:
        """What is not protected of an axis, without distances, and the values of cells that can change."""
        gaps, moving = self._gaps(axis)
        return gaps, np.unique(moving.value)

    def _gaps(self, axis: str) -> tuple[AttributeDistance, Lines]:
        """What is not protected of an axis, and the cells that can change to another value."""
        lines, view = self._lines(axis), self._view(axis)
        can_change = lines.part != PINNED
        there = lines.those(can_change)
        reached = len(np.unique(there.value))
        branches = _branches(view, axis)
        values = _values(view, axis, can_change) if branches else _different(there.line, there.value)
        gaps = AttributeDistance(
            axis,
            None,
            None,
            fixed_values=len(self._domain.axis(axis)) - reached,
            unprotected=int(there.weight[values < reached].sum()),
            stuck=int(there.weight[values == 1].sum()),
        )
        return gaps, there.those(values > 1)

    def _lines(self, axis: str) -> Lines:
        """The cells of the table, or its groups divided by an axis, along the family of that axis."""
        structure, quotient = self._structure, self._quotient
        view = self._view(axis)
        if quotient is None:
            region = structure.region
            weight = np.ones(len(region), dtype=np.int64)
        else:
            group, weight, _ = quotient.refined(axis)
            region = structure.region[group]
        others = [name for family in view.families if axis not in family.codes for name in family.codes]
        line = view.marginal_index(others) if others else np.zeros(len(region), dtype=np.int64)
        return Lines(line, view.codes(axis), region, self._number[region], weight)

    def _view(self, axis: str) -> Domain:
        """The cells, or the groups divided by an axis."""
        return self._domain if self._quotient is None else self._domain.project([*self._quotient.axes, axis])

    @property
    def rules(self) -> frozenset[Rule]:
        """The rules by which the bounds of parts are known."""
        return frozenset(bound.rule for bound in self._bounds if bound.length != UNKNOWN.length)

    # -- the most over all cells and values -----------------------------------------------------------

    @cached_property
    def _bounds(self) -> list[Bound]:
        """The bound of each part."""
        known: dict[int, Bound] = {}
        for block in self._structure.blocks:
            if id(block.system) not in known:
                found = longest_change(block.system)
                known[id(block.system)] = (
                    UNKNOWN if found is None else Bound(found.length, found.squared, found.exact, found.rule)
                )
        sums = int(self._number.max(initial=-1)) + 1 - len(self._structure.blocks)
        return [SUM] * sums + [known[id(block.system)] for block in self._structure.blocks]

    @cached_property
    def _lengths(self) -> IntArray:
        return np.array([bound.length for bound in self._bounds], dtype=np.int64)

    @cached_property
    def _squares(self) -> IntArray:
        return np.array([bound.squared for bound in self._bounds], dtype=np.int64)

    def _to_any(self, lines: Lines) -> Bound:
        """The most over cells in lines of several regions: a block's own bound, or those of two parts together."""
        if not len(lines.line):
            return MOVE
        inside = _different(lines.line, lines.part) == 1
        blocks = [self._bounds[part] for part in np.unique(lines.part[inside]).tolist()]
        most = _most(blocks) if blocks else MOVE
        if inside.all():
            return self._labelled(most)
        across = lines.those(~inside)
        length, squared = (_two_largest(across, of_part[across.part]) for of_part in (self._lengths, self._squares))
        dearest = self._bounds[int(across.part[self._lengths[across.part].argmax()])]
        return Bound(max(length, most.length), max(squared, most.squared), False, dearest.rule)

    def _to_other(self, lines: Lines) -> Bound:
        """The most over cells, of what the nearest other value needs at most."""
        regions = len(self._structure.sizes)
        moves = _different(lines.line * regions + lines.region, lines.value) > 1
        if moves.all():
            return MOVE
        alone = ~moves & (_different(lines.line * len(self._bounds) + lines.part, lines.value) == 1)
        if alone.any():
            return self._to_any(lines.those(_any(lines.line, ~moves)))
        most = _most([self._bounds[part] for part in np.unique(lines.part[~moves]).tolist()])
        return self._labelled(most)

    def _labelled(self, bound: Bound) -> Bound:
        """A bound of one block; that every attribute attains it is known of full tables alone."""
        return bound._replace(exact=bound.exact and self._symmetric and bound.rule == "table")


def with_people(invariants: Invariants, structure: Structure) -> Structure:
    """The structure of the kept totals with the number of people, which they need not determine."""
    everybody = sparse.csr_array(np.ones((1, invariants.size), dtype=np.int64))
    if determined(structure, everybody).all():
        return structure
    return decompose(sparse.csr_array(sparse.vstack([invariants.coefficients, everybody])))


def _numbers(structure: Structure) -> IntArray:
    """For each region the number of its part: sums first, then blocks."""
    sums = np.flatnonzero((structure.part == FORCED) & (structure.sizes > 1))
    number = np.full(len(structure.sizes), PINNED, dtype=np.int64)
    number[sums] = np.arange(len(sums))
    blocks = structure.part >= 0
    number[blocks] = len(sums) + structure.part[blocks]
    return number


def _branches(view: Domain, axis: str) -> bool:
    """Whether an axis shares what it is nested in with another: cells of its line may differ in that one as well."""
    family = next(family for family in view.families if axis in family.codes)
    above = view.closure([axis])
    return any(
        name not in above and axis not in view.closure([name]) for name in family.codes if len(view.axis(name)) > 1
    )


def _values(view: Domain, axis: str, chosen: BoolArray) -> IntArray:
    """How many values of an axis each chosen cell has or can change to, among the chosen cells.

    A change has a topmost axis: cells that agree in all but it and what is nested in it, and differ in it.
    """
    value = view.codes(axis)[chosen]
    values = np.ones(len(value), dtype=np.int64)
    top: str | None = axis
    while top is not None:
        others = [name for name in view.axes if top not in view.closure([name])]
        line = view.marginal_index(others)[chosen] if others else np.zeros(len(value), dtype=np.int64)
        alike = line * len(view.axis(top)) + view.codes(top)[chosen]
        values += _different(line, value) - _different(alike, value)
        top = view.within.get(top)
    return values


def _most(bounds: list[Bound]) -> Bound:
    """The longest bound, with the largest square of any."""
    return max(bounds)._replace(squared=max(bound.squared for bound in bounds))


def _different(group: IntArray, key: IntArray) -> IntArray:
    """For each entry how many different keys its group has.

    >>> _different(np.array([0, 0, 0, 1]), np.array([5, 5, 7, 5])).tolist()
    [2, 2, 2, 1]
    """
    _, group = np.unique(group, return_inverse=True)
    width = int(key.max(initial=0)) + 1
    pairs = np.unique(group * width + key)
    return np.asarray(np.bincount(pairs // width)[group])


def _any(group: IntArray, true: BoolArray) -> BoolArray:
    """For each entry whether any of its group is true."""
    _, group = np.unique(group, return_inverse=True)
    return np.asarray(np.bincount(group, weights=true)[group] > 0)


def _two_largest(lines: Lines, lengths: IntArray) -> int:
    """The largest sum of the lengths of two different parts of one line."""
    _, first = np.unique(np.stack([lines.line, lines.part]), axis=1, return_index=True)
    order = first[np.lexsort((-lengths[first], lines.line[first]))]
    line, length = lines.line[order], lengths[order]
    start = np.flatnonzero(np.diff(line, prepend=-1))
    return int((length[start] + length[start + 1]).max())
