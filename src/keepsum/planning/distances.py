"""The distance of one person, by attribute: how far apart real tables are that differ in one person's value.

For an axis t, a cell i and a value v other than that of i, j is the cell that differs from i in t alone (what is nested
in t follows, and so does what t is nested in). The distance is that of the nearest *real* table, without negative
counts, with the same kept totals and the same number of people, in which somebody is in j. *Any value* is the largest
over tables, i and v; *some other value* is the largest, over i, of the smallest over v. Where the totals rule a change
out nothing is claimed. Docs/one-person.md has the definition, in two readings, and the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from keepsum.errors import InputError, PlanError
from keepsum.lattice.structure import Structure
from keepsum.planning.attribute_distance import AttributeDistance
from keepsum.planning.crossing_changes import CrossingChanges
from keepsum.planning.focused_changes import FocusedChanges
from keepsum.planning.kept_margins import Focused, KeptMargins
from keepsum.planning.quotient import Quotient
from keepsum.planning.real_tables import RealTables
from keepsum.privacy.distance import Distance, Norm, Rule, farthest
from keepsum.privacy.focus import Level
from keepsum.privacy.neighbours import Neighbours
from keepsum.tables.invariants import Invariants

AnyChanges: TypeAlias = FocusedChanges | CrossingChanges


@dataclass(frozen=True, eq=False)
class Distances:
    """The distances between real tables that differ by a change of one person, computed at first use.

    A person of several records changes by ``changes`` records at most. When one has changed, it is set aside, and
    another changes in the rest: their distances together are enough.

    Attributes
    ----------
    invariants, structure
        The kept totals, and their regions and blocks.
    norm
        How distance is measured.
    changes
        How many records of one person change at most.
    levels, weights
        The totals of a focus, and what cells and those of each level weigh.
    focused
        What changes do to focused totals, by vectors of the lattice.
    quotient
        The groups that cells are taken together in, if they are.
    """

    invariants: Invariants
    structure: Structure
    norm: Norm
    changes: int = 1
    focused: AnyChanges | None = None
    quotient: Quotient | None = None
    levels: tuple[Level, ...] = ()
    weights: tuple[Fraction, ...] = ()

    @cached_property
    def by_attribute(self) -> tuple[AttributeDistance, ...]:
        """The distances of each attribute with several categories; none for cells without names."""
        domain = self.invariants.domain
        if domain is None:
            return ()
        axes = [name for name in domain.axes if len(domain.axis(name)) > 1]
        return tuple(self._attribute(name).times(self.changes) for name in axes)

    @cached_property
    def alone(self) -> Distance | None:
        """Under a focus, the dearest change of a single count under no total, which may cost more than a move."""
        found = None if self.focused is None else self.focused.alone
        return None if found is None else found.times(self.changes)

    @cached_property
    def within_levels(self) -> tuple[Distance | None, ...]:
        """For each focus, the dearest change between two cells of one of its totals; None where that is not known."""
        focus, margins = self._focus, self._margins
        if focus is None or margins is None or self._has_zeros:
            return tuple(None for _ in self.levels)
        found = (margins.within(axes, self.norm, focus) for axes in focus.axes)
        return tuple(None if distance is None else distance.times(self.changes) for distance in found)

    @cached_property
    def person(self) -> Distance | None:
        """The distance of one person: the largest over all attributes; under a focus, that of the largest loss.

        None where none can be stated: cells have no names, no attribute can change, or some distance is not known.
        """
        if any(attribute.unknown for attribute in self.by_attribute):
            return None
        found = covered(self.by_attribute, Neighbours(), self.alone)
        return farthest(found, self.weights) if found else None

    def of_neighbours(self, neighbours: Neighbours) -> Distance:
        """The distance of the changes that a requested loss covers.

        Raises
        ------
        InputError
            If they name an attribute that the table does not have.
        PlanError
            If no loss can be stated for them.
        """
        found = covered(protected(self.by_attribute, neighbours), neighbours, self.alone)
        if not found:
            raise PlanError(
                "A loss for one person needs named attributes with several categories that can change, and this table "
                "has none. Ask for a loss per unit of distance, with per_unit."
            )
        return farthest(found, self.weights)

    @property
    def rules(self) -> frozenset[Rule]:
        """The rules by which something is known of a part of the totals."""
        return self._real.rules

    # -- the rules ------------------------------------------------------------------------------------

    def _attribute(self, axis: str) -> AttributeDistance:
        margins, focus = self._margins, self._focus
        if margins is not None and focus is not None and not self._has_zeros:
            if not len(self.structure.pinned):
                found = margins.attribute(axis, self.norm, focus)
            else:
                gaps, changing = self._real.gaps(axis)
                if not len(changing):
                    return gaps
                found = margins.attribute(axis, self.norm, focus, changing)
                if found is not None:
                    found = replace(gaps, any_value=found.any_value, other_value=found.other_value)
            if found is not None:
                return found
        changes = [change for change, _ in margins.tops(axis)] if margins is not None else []
        nearest, dearest = (changes[0], changes[-1]) if changes else (None, None)
        single = [level.subsets is not None and len(level.subsets.names) == 1 for level in self.levels]
        return self._real.attribute(axis, self.norm, single, nearest, dearest)

    @cached_property
    def _margins(self) -> KeptMargins | None:
        return KeptMargins.of(self.invariants)

    @cached_property
    def _focus(self) -> Focused | None:
        domain = self.invariants.domain
        return None if domain is None else Focused.of(self.levels, self.weights, domain)

    @cached_property
    def _real(self) -> RealTables:
        symmetric = self._margins is not None and not self._has_zeros
        return RealTables(self.invariants, self.structure, self.quotient, symmetric)

    @property
    def _has_zeros(self) -> bool:
        return self.invariants.domain is not None and bool(self.invariants.domain.structural_zeros)


def covered(attributes: Sequence[AttributeDistance], neighbours: Neighbours, alone: Distance | None) -> list[Distance]:
    """The distances of changes that a loss covers; with one person more or fewer if it covers every change."""
    to_any = neighbours.to == "any value"
    found = [attribute.any_value if to_any else attribute.other_value for attribute in attributes]
    distances = [distance for distance in found if distance is not None]
    if distances and alone is not None and neighbours == Neighbours():
        distances.append(alone)
    return distances


def protected(attributes: Sequence[AttributeDistance], neighbours: Neighbours) -> Sequence[AttributeDistance]:
    """The attributes of these neighbours, each with distances that are known."""
    if neighbours.attributes is not None:
        named = {attribute.axis: attribute for attribute in attributes}
        for name in neighbours.attributes:
            if name not in named:
                raise InputError(
                    f"Attributes must be axes with more than one category, got {name!r}. Check the spelling."
                )
        attributes = [named[name] for name in neighbours.attributes]
        for attribute in attributes:
            if attribute.any_value is None and not attribute.unknown:
                raise PlanError(
                    f"No change of {attribute.axis} keeps every total, so it cannot be protected. Keep fewer totals."
                )
    for attribute in attributes:
        if attribute.unknown:
            raise PlanError(
                f"The loss for a change of {attribute.axis} is not known for these totals. Ask for a loss per unit of "
                f"distance, with per_unit, or keep fewer totals, such as one margin less."
            )
    return attributes
