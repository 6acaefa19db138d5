"""One person against the kept totals of several releases of one table.

Per-person losses are not summed: a change of one person that keeps the totals of one release may break those of
another. What counts is the distance of real tables with all kept totals the same, times the total loss per unit of
distance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from operator import add

from keepsum._arguments import check_choice
from keepsum._arrays import IntArray
from keepsum._text import type_of
from keepsum.errors import InputError, PlanError
from keepsum.lattice.determined import determined
from keepsum.lattice.structure import Structure, decompose
from keepsum.planning.distances import AttributeDistance, Distances
from keepsum.planning.focus import FocusTotals
from keepsum.planning.plan import focused_distances
from keepsum.privacy.distance import Distance, Neighbours, Norm
from keepsum.privacy.focus import Level
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants
from keepsum.tables.origins import Records, changes_of


@dataclass(frozen=True, eq=False)
class JointDistances:
    """The distances of one person under the kept totals of all releases."""

    invariants: Invariants  # the kept totals of all releases together
    structure: Structure  # their regions and blocks
    norm: Norm  # how distance is measured: that of the total loss
    records: Records | None = None  # how many records one person has at most; None for a table of counts
    # Under a focus, its totals, and what cells and those of each level weigh; nothing without one.
    levels: tuple[Level, ...] = ()
    weights: tuple[Fraction, ...] = ()

    @property
    def pinned(self) -> IntArray:
        """The cells that all kept totals together determine, though none of the releases may do so alone."""
        return self.structure.pinned

    @cached_property
    def by_attribute(self) -> tuple[AttributeDistance, ...]:
        """The distances of each attribute."""
        return self._distances.by_attribute

    def person(self, neighbours: Neighbours | None = None) -> Distance | None:
        """The distance of one person, for any change of one attribute; None where it is not known.

        With neighbours, of the changes that they are about.

        Raises
        ------
        PlanError
            If none can be stated for these neighbours.
        """
        return self._distances.person if neighbours is None else self._distances.of_neighbours(neighbours)

    @cached_property
    def _distances(self) -> Distances:
        changes = changes_of(self.records)
        if not self.levels:
            return Distances(self.invariants, self.structure, self.norm, changes)
        return focused_distances(self.invariants, self.structure, self.norm, changes, self.levels, self.weights)


def joint_distances(
    invariants: Iterable[Invariants],
    domain: Domain,
    norm: Norm,
    records: Records | None = None,
    levels: Sequence[Level] = (),
    weights: Sequence[Fraction] = (),
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
    levels, weights
        Under a focus, its totals, and what cells and those of each level weigh: the distance of one person is then that
        of the dearest change. Totals that all kept ones together determine never change, and are left out.

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
    if not levels:
        return JointDistances(together, structure, norm, records)
    cells, *others = weights
    open_ones = [
        (level, weight)
        for level, weight in zip(levels, others, strict=True)
        if not determined(structure, FocusTotals.of(level, domain).coefficients()).all()
    ]
    left, their = tuple(level for level, _ in open_ones), tuple(weight for _, weight in open_ones)
    return JointDistances(together, structure, norm, records, left, (cells, *their) if left else ())
