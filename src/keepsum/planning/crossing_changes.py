"""What a change of one person does to focused totals that cross others: upper bounds.

In l1 Laplace noise, a change of l1 length n does at most n to the totals of a level together, which have no cell in
common. In Gaussian noise, a change D takes p counts and gives q, p + q at most the square n of its l2 length, as
entries are whole numbers. Over the totals g of a level the sum of D(g)^2 is at most p^2 + q^2: what is given and what
is taken have different signs. Where the kept totals determine the grand total p = q, so that this is at most n^2 / 2;
elsewhere p and q are at least 1, so that it is at most (n - 1)^2 + 1, or 1 for a single count. A level of one total
changes by the larger of p and q alone. Under totals with negative weights the smallest change through a cell may only
give, or only take: that is at most n^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.structure import FORCED, FREE, Structure
from keepsum.planning.focus_totals import FocusTotals
from keepsum.planning.focused_changes import moves_change_all
from keepsum.privacy.distance import Distance, Norm

NOWHERE = -1


class CrossingChanges:
    """Bounds on what changes do to focused totals.

    Parameters
    ----------
    margins
        The totals of each level.
    structure
        The regions and blocks of the kept totals.
    balanced
        Whether all changes that keep the totals take as much as they give.
    one_sided
        Whether some change of several cells may only give, or only take.
    weights
        What cells and the totals of each level weigh.
    norm
        How distance is measured.
    """

    possible = False  # exact costs are not computed
    changes_all_twice = False

    def __init__(
        self,
        margins: Sequence[FocusTotals],
        structure: Structure,
        balanced: bool,
        one_sided: bool,
        weights: Sequence[Fraction],
        norm: Norm,
    ) -> None:
        self._margins, self._structure, self._given = margins, structure, tuple(weights)
        self._balanced, self._one_sided = balanced, one_sided
        self.norm = norm

    @property
    def levels(self) -> int:
        """How many levels there are."""
        return len(self._margins)

    def proportional_to(self, weights: Sequence[Fraction]) -> bool:
        """Bounds are the same for all weights."""
        return len(weights) == len(self._given)

    def most(self, length: int) -> tuple[int, ...]:
        """The most that a change of this length, or squared l2 length, does to the totals of each level.

        In Gaussian noise, one that takes and gives.
        """
        if length == 1 or self.norm == "l1":
            return (length,) * self.levels
        larger, smaller = (length // 2, length // 2) if self._balanced else (length - 1, 1)
        return tuple(larger**2 + smaller**2 * (margin.height > 1) for margin in self._margins)

    def most_through(self, length: int) -> tuple[int, ...]:
        """The most that the smallest change through a cell, of this squared length, does to them."""
        return (length**2,) * self.levels if self._one_sided and self.norm == "l2" else self.most(length)

    @cached_property
    def alone(self) -> Distance | None:
        """The change of a single count, where cells are under no total; None where none are."""
        if not (self._structure.part == FREE).any():
            return None
        return Distance(self.norm, 1, exact=all(margin.covers for margin in self._margins), focused=(1,) * self.levels)

    def of_attribute(self, codes: IntArray, group: IntArray | None = None) -> None:
        """Only bounds are known."""

    def within(self, level: int) -> None:
        """Only bounds are known."""

    def moves_change_all(self, codes: IntArray, group: IntArray | None = None) -> tuple[bool, bool]:
        """As that of ``FocusedChanges``; cells are never taken together here."""
        structure = self._structure
        number = np.full(len(structure.sizes), NOWHERE, dtype=np.int64)
        number[structure.part == FREE] = 0
        sums = np.flatnonzero((structure.part == FORCED) & (structure.sizes > 1))
        number[sums] = 1 + np.arange(len(sums))
        part = number[structure.region]
        cells = np.flatnonzero(part != NOWHERE)
        labels = np.stack([margin.labels[cells] for margin in self._margins])
        return moves_change_all(labels, codes[cells], part[cells])
