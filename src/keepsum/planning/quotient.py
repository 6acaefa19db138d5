"""A table whose cells are taken together in groups: those that no kept or focused total tells apart.

The groups are the cells of the margin over the axes that totals are of. All that a plan states follows from the groups
and how many cells each has, so that a table of any size is planned from its groups alone, and its cells are never
listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from scipy import sparse

from keepsum._arrays import IntArray
from keepsum.errors import PlanError
from keepsum.privacy.focus import Level
from keepsum.tables.axes import NestedCells
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants, Margin, Rows

MOST_GROUPS = 2 * 10**7  # a plan takes some hundred bytes for each


@dataclass(frozen=True, eq=False)
class Quotient:
    """The groups of a table.

    Attributes
    ----------
    kept
        The kept totals over all cells, which are margins.
    axes
        The axes that totals are of, with the parents of nested ones.

    Examples
    --------
    >>> domain = Domain({"state": ["IL", "WI"], "county": {"IL": ["Cook", "Lake"], "WI": ["Lake"]}, "sex": ["f", "m"]},
    ...                 within={"county": "state"})
    >>> groups = Quotient.of(Invariants.margins(domain, [["state"]]))
    >>> groups.axes, groups.sizes.tolist(), groups.totals.coefficients.toarray().tolist()
    (('state',), [4, 2], [[1, 0], [0, 1]])
    """

    kept: Invariants
    axes: tuple[str, ...]

    @classmethod
    def of(cls, kept: Invariants, focus: Sequence[Level] = ()) -> Quotient:
        """The groups of a table under kept and focused totals.

        Raises
        ------
        PlanError
            If totals are not margins, or the table has structural zeros: both may tell any two cells apart.
        """
        domain = _domain(kept)
        if domain.structural_zeros:
            raise PlanError("A table in groups must not have structural zeros. Plan it cell by cell, on one machine.")
        if not all(isinstance(part, Margin) for part in kept.parts) or any(
            level.subsets is not None for level in focus
        ):
            raise PlanError("Totals of a table in groups must be margins. Plan it cell by cell, on one machine.")
        named = [part.axes for part in kept.parts if isinstance(part, Margin)] + [level.axes for level in focus]
        used = [axis for axes in named for axis in axes]
        if focus and not used:  # on the grand total: focused totals are of cells with names, whatever these are
            used = [min((axis for axis in domain.axes if axis not in domain.within), key=lambda a: len(domain.axis(a)))]
        found = cls(kept, domain.closure(used))
        groups = found.number
        if groups > MOST_GROUPS:
            raise PlanError(
                f"Kept and focused totals must divide a table into at most {MOST_GROUPS:,} groups, got {groups:,}. "
                f"Keep totals of fewer axes together."
            )
        return found

    @property
    def domain(self) -> Domain:
        """All cells."""
        return _domain(self.kept)

    @property
    def number(self) -> int:
        """How many groups there are."""
        return self.groups.size if self.groups is not None else 1

    @cached_property
    def groups(self) -> Domain | None:
        """The groups as cells of a margin; None if all cells are one group."""
        return self.domain.project(self.axes) if self.axes else None

    @cached_property
    def sizes(self) -> IntArray:
        """How many cells each group has."""
        return _product(np.bincount(place) for place in self.places(self.axes))

    @cached_property
    def totals(self) -> Invariants:
        """The kept totals over the groups."""
        if self.groups is not None:
            return Invariants.margins(self.groups, [part.axes for part in self.kept.parts if isinstance(part, Margin)])
        one = Rows(sparse.csr_array(np.ones((1, 1), dtype=np.int64)), ("grand total",), "subsets")
        return Invariants(1, (one,) if self.kept.parts else ())

    def places(self, axes: Iterable[str]) -> list[IntArray]:
        """For each family of axes, the place in the margin over these axes of each of its cells."""
        return [family.project(axes)[1] for family in self.families]

    @property
    def families(self) -> tuple[NestedCells, ...]:
        """The families of nested axes of the whole table."""
        return self.domain.families

    def refined(self, axis: str) -> tuple[IntArray, IntArray, IntArray]:
        """The groups divided by an axis as well: the group of each part, how many cells it has, and its category."""
        axes = self.domain.closure([*self.axes, axis])
        finer, coarser = self.places(axes), self.places(self.axes)
        parents = []
        for fine, coarse in zip(finer, coarser, strict=True):
            parent = np.zeros(int(fine.max()) + 1, dtype=np.int64)
            parent[fine] = coarse
            parents.append((parent, int(coarse.max()) + 1))
        group = np.zeros(1, dtype=np.int64)
        for parent, count in parents:
            group = (group[:, None] * count + parent[None, :]).ravel()
        return group, _product(np.bincount(place) for place in finer), self.domain.project(axes).codes(axis)

    def is_apart(self, axis: str) -> bool:
        """Whether an axis is in a family that no total is of, so that every group has all its categories."""
        return not any(axis in family.codes and set(family.codes) & set(self.axes) for family in self.families)

    def only_cell(self, group: int) -> int:
        """The cell of a group of one."""
        places = self.places(self.axes)
        rows = np.unravel_index(group, [int(place.max()) + 1 for place in places])
        found = [int(np.flatnonzero(place == row)[0]) for place, row in zip(places, rows, strict=True)]
        return int(np.ravel_multi_index(found, self.domain.shape))


def _domain(kept: Invariants) -> Domain:
    if kept.domain is None:
        raise PlanError("A table in groups must have names for its cells. Declare its domain.")
    return kept.domain


def _product(factors: Iterable[IntArray]) -> IntArray:
    """All products of one entry of each, in the order of the domain."""
    return reduce(lambda left, right: np.multiply.outer(left, right).ravel(), factors, np.ones(1, dtype=np.int64))
