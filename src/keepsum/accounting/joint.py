"""One person against the kept totals of several releases of one table.

Per-person losses are not summed: a change of one person that keeps the totals of one release may break those of
another. What counts is the distance on the lattice of all kept totals together, times the total loss per unit of
distance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add

from keepsum._arguments import check_choice
from keepsum._arrays import IntArray
from keepsum._text import type_of
from keepsum.errors import InputError, PlanError
from keepsum.lattice.structure import Structure, decompose
from keepsum.planning.distances import AttributeDistance, Distances, one_person
from keepsum.planning.groups import groups_of
from keepsum.planning.samplers import smallest_change
from keepsum.privacy.distance import Distance, Norm
from keepsum.privacy.neighbours import Neighbours
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants
from keepsum.tables.records import Records, changes_of


@dataclass(frozen=True, eq=False)
class JointDistances:
    """The distances of one person under the kept totals of all releases.

    Attributes
    ----------
    invariants
        The kept totals of all releases together.
    structure
        Their regions and blocks.
    norm
        How distance is measured: that of the total loss.
    records
        How many records one person has at most; None for a table of counts.
    """

    invariants: Invariants
    structure: Structure
    norm: Norm
    records: Records | None = None

    @property
    def pinned(self) -> IntArray:
        """The cells that all kept totals together determine, though none of the releases may do so alone."""
        return self.structure.pinned

    @cached_property
    def by_attribute(self) -> tuple[AttributeDistance, ...]:
        """The distances of each attribute."""
        return Distances(self.invariants, self.structure, self.norm, changes_of(self.records)).by_attribute

    @cached_property
    def smallest_change(self) -> Distance:
        """The smallest change through a cell that keeps every total, for the unpinned cell where it is largest."""
        return smallest_change(tuple(groups_of(self.structure, self.norm))).times(changes_of(self.records))

    def person(self, neighbours: Neighbours | None = None) -> Distance:
        """The distance of one person, by default of any change of one attribute; see ``planning.distances``."""
        return one_person(self.by_attribute, self.smallest_change, neighbours)


def joint_distances(
    invariants: Iterable[Invariants], domain: Domain, norm: Norm, records: Records | None = None
) -> JointDistances:
    """The distances under the kept totals of several releases of one table.

    Parameters
    ----------
    invariants
        The kept totals of each release, over the cells of the domain.
    domain
        The table's cells.
    norm
        How distance is measured, ``"l1"`` or ``"l2"``: the norm of the total.
    records
        The records behind the table, if it was counted from them.

    Raises
    ------
    PlanError
        If the totals of the releases together determine every cell.

    Examples
    --------
    Rows are kept, then columns. A change of sex within a county keeps the first, and none of one person keeps both:

    >>> import keepsum as ks
    >>> domain = ks.Domain({"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
    >>> rows, columns = (ks.Invariants.margins(domain, [[axis]]) for axis in ("county", "sex"))
    >>> [(a.axis, str(a.any_value)) for a in joint_distances([rows], domain, "l1").by_attribute]
    [('county', '4'), ('sex', '2')]
    >>> [(a.axis, str(a.any_value)) for a in joint_distances([rows, columns], domain, "l1").by_attribute]
    [('county', '4'), ('sex', '4')]
    """
    check_choice(norm, "Norm", ("l1", "l2"))
    if not isinstance(domain, Domain):
        raise InputError(f"Cells must be named by a Domain, got {type_of(domain)}.")
    if not isinstance(invariants, Iterable):
        raise InputError(f"Kept totals must be a list of Invariants, got {type_of(invariants)}.")
    kept = list(invariants)
    for each in kept:
        if not isinstance(each, Invariants):
            raise InputError(f"Kept totals must be Invariants, got {type_of(each)}.")
    together = reduce(add, (each.over(domain) for each in kept), Invariants(domain.size, (), domain))
    structure = decompose(together.coefficients)
    if len(structure.pinned) == together.size:
        raise PlanError(
            "The kept totals of these releases together determine every cell, so that no loss can be stated. "
            "Keep fewer totals."
        )
    return JointDistances(together, structure, norm, records)
