"""The totals of one level of a focus: those of a margin, or of subsets of cells; no two have a cell in common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from keepsum._arrays import IntArray
from keepsum.errors import PlanError
from keepsum.privacy.focus import Level
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Margin, Rows

OUTSIDE = -1  # of a cell that is in no total


@dataclass(frozen=True)
class FocusTotals:
    """The totals of one level.

    Attributes
    ----------
    part
        The totals as those that are kept.
    size
        The number of cells of the table.
    """

    part: Margin | Rows
    size: int

    @classmethod
    def of(cls, level: Level, domain: Domain) -> FocusTotals:
        """The totals of a level over a domain."""
        if level.subsets is None:
            return cls(Margin(domain, domain.closure(level.axes)), domain.size)
        if level.subsets.size != domain.size:
            raise PlanError(
                f"Subsets of a focus must be of the {domain.size:,} cells of the table, got {level.subsets.size:,}."
            )
        (rows,) = level.subsets.key.parts
        if not isinstance(rows, Rows):
            raise AssertionError("subsets are rows")
        return cls(rows, domain.size)

    @property
    def axes(self) -> tuple[str, ...] | None:
        """The axes of a margin, with the parents of nested ones; None for subsets."""
        return self.part.axes if isinstance(self.part, Margin) else None

    @property
    def height(self) -> int:
        """The number of totals."""
        return self.part.height

    @property
    def covers(self) -> bool:
        """Whether every cell is in a total."""
        return isinstance(self.part, Margin)

    @cached_property
    def labels(self) -> IntArray:
        """The total of each cell, or ``OUTSIDE``."""
        if isinstance(self.part, Margin):
            return np.asarray(self.part.domain.marginal_index(self.part.axes))
        labels = np.full(self.size, OUTSIDE, dtype=np.int64)
        rows = self.part.rows
        labels[rows.indices] = np.repeat(np.arange(self.height), np.diff(rows.indptr))
        return labels

    def coefficients(self) -> sparse.csr_array:
        """The totals as rows over the cells."""
        return self.part.coefficients()
