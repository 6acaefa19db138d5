"""Margins of error of the cells of a plan, before any budget is spent: of each cell, or of all of them at once."""

from __future__ import annotations

import html
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from keepsum._arrays import IntArray
from keepsum._text import percent
from keepsum.accuracy.block_laws import CellClass, class_law, classes_of
from keepsum.accuracy.law import CellLaw, cell_law, check_range, margin
from keepsum.accuracy.query_laws import EstimatedLaw, check_level
from keepsum.accuracy.simultaneous import simultaneous_margins
from keepsum.accuracy.words import Basis, words_of_basis
from keepsum.lattice.structure import FORCED, Structure
from keepsum.planning.samplers import BlockSamplers
from keepsum.tables.domain import Domain
from keepsum.tables.frames import frame_with
from keepsum.tables.origins import Origin

WEAKEST: tuple[Basis, ...] = ("exact", "conservative", "estimated")


@dataclass(frozen=True, eq=False, repr=False)
class Accuracy:
    """The margins of error of released counts, or of sums of them.

    Attributes
    ----------
    level
        The probability that the noise stays within the margin, at least: for each count, or for all at once if
        ``simultaneous``.
    margins
        The margin of error of each count; 0 for a pinned cell.
    basis
        How the margins are known: ``"exact"`` if all were computed; ``"conservative"`` if some are proved bounds, too
        long rather than too short; ``"estimated"`` if some come from simulated draws.
    draws
        The number of simulated draws behind the margins, the smallest for any count; 0 if none.
    error
        The standard error of the probability to be beyond a margin, where it was simulated, the largest for any count.
        Margins allow for three of them.
    simultaneous
        Whether all counts are within their margins at once, with this probability.
    levels
        Under a focus, the margins of error of the totals of each.

    Examples
    --------
    >>> import keepsum as ks
    >>> plan = ks.plan(keep=ks.Invariants.subsets(5, [[0, 1, 2]]), mechanism=ks.Laplace.per_unit(epsilon=0.25))
    >>> plan.accuracy()
    Accuracy(typical 95% margin of error ±8 per cell (±8 to ±12))
    >>> plan.accuracy(level=0.5).margins.tolist()
    [2, 2, 2, 3, 3]
    >>> plan.accuracy(simultaneous=True)
    Accuracy(95% margin of error ±15 for all 5 cells at once)
    """

    level: float
    margins: IntArray
    basis: Basis = "exact"
    draws: int = 0
    error: float = 0.0
    simultaneous: bool = False
    levels: tuple[LevelMargins, ...] = ()
    what: str = field(default="cell", repr=False)
    domain: Domain | None = field(default=None, repr=False)
    origin: Origin | None = field(default=None, repr=False)
    weight: IntArray | None = field(default=None, repr=False)  # how many cells each margin is of, if not one

    @property
    def typical(self) -> int:
        """The median margin."""
        if self.weight is None:
            return int(np.sort(self.margins)[len(self.margins) // 2])
        order = np.argsort(self.margins, kind="stable")
        before = np.cumsum(self.weight[order])
        return int(self.margins[order[np.searchsorted(before, before[-1] // 2, side="right")]])

    @property
    def source(self) -> str:
        """How the margins are known, in words; empty if they were computed."""
        return words_of_basis(self.basis, self.draws, self.error)

    def to_frame(self, backend: str | None = None) -> Any:
        """The margin of every count as a data frame: its labels, and ``margin``; without names, ``cell``.

        Parameters
        ----------
        backend
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``; needed if the table did not come from a frame.
        """
        domain = Domain({"cell": range(len(self.margins))}) if self.domain is None else self.domain
        return frame_with(domain, {"margin": self.margins}, self.origin, backend)

    def __str__(self) -> str:
        low, high = int(self.margins.min()), int(self.margins.max())
        source = f", {self.source}" if self.source else ""
        rows = "".join(f"; {row}" for row in self.levels)
        if self.simultaneous:
            count = f"all {len(self.margins):,} {self.what}s" if len(self.margins) > 1 else f"the {self.what}"
            return f"{percent(self.level)} margin of error ±{high:,} for {count} at once{source}{rows}"
        spread = "" if low == high else f" (±{low:,} to ±{high:,})"
        typical = f"typical {percent(self.level)} margin of error ±{self.typical:,}"
        return f"{typical} per {self.what}{spread}{source}{rows}"

    def __repr__(self) -> str:
        return f"Accuracy({self})"

    def _repr_html_(self) -> str:
        return f"<p><b>Accuracy</b> {html.escape(str(self))}</p>"


@dataclass(frozen=True, eq=False)
class LevelMargins:
    """The margins of error of the totals of one focus."""

    axes: tuple[str, ...]
    accuracy: Accuracy
    what: str  # one of the totals, in words

    def __str__(self) -> str:
        margins, source = self.accuracy.margins, self.accuracy.source
        low, high = int(margins.min()), int(margins.max())
        spread = "" if low == high else f" (±{low:,} to ±{high:,})"
        size = high if self.accuracy.simultaneous else self.accuracy.typical
        words = f", {source}" if source else ""
        return f"±{size:,} per {self.what}{'' if self.accuracy.simultaneous else spread}{words}"


_found: WeakKeyDictionary[BlockSamplers, dict[tuple[float, bool, bool], Accuracy]] = WeakKeyDictionary()


def accuracy(blocks: BlockSamplers, level: float = 0.95, simultaneous: bool = False, patient: bool = False) -> Accuracy:
    """The margin of error of every cell at a level, worked out once for a plan.

    Where totals overlap it is simulated if that takes little time, or if ``patient``; otherwise it is a proved bound.
    """
    level = check_level(level)
    check_range(blocks.mechanism)
    found = _found.setdefault(blocks, {})
    key = (level, simultaneous, patient)
    if key not in found:
        found[key] = _simultaneous(blocks, level, patient) if simultaneous else _each(blocks, level, patient)
    return found[key]


def _each(blocks: BlockSamplers, level: float, patient: bool) -> Accuracy:
    margins = np.zeros(blocks.size, dtype=np.int64)
    law = cell_law(blocks.mechanism)
    if law is not None:
        for group, choice in zip(blocks.groups, blocks.choices, strict=True):
            if group.in_closed_form:
                _compute(law, blocks.noise_structure, choice.cells, level, margins)
    result = Accuracy(level, margins, weight=blocks.noise_structure.weight)
    for cells in classes_of(blocks):
        result = _with_class(result, blocks, cells, patient)
    margins.setflags(write=False)
    return result


def _with_class(result: Accuracy, blocks: BlockSamplers, cells: CellClass, patient: bool) -> Accuracy:
    """The margins with those of a class of cells in blocks."""
    law = class_law(blocks, cells, result.level, patient)
    if not isinstance(law, EstimatedLaw):
        result.margins[cells.cells] = law.reach(result.level)
        return replace(result, basis=max(result.basis, law.basis, key=WEAKEST.index))
    result.margins[cells.cells], error = law.estimated(result.level)
    if not error:  # of the bound: these draws are too few
        return replace(result, basis=max(result.basis, "conservative", key=WEAKEST.index))
    return replace(
        result,
        basis="estimated",
        draws=min(result.draws or law.draws, law.draws),
        error=max(result.error, error),
    )


def _simultaneous(blocks: BlockSamplers, level: float, patient: bool) -> Accuracy:
    margins, basis, draws, error = simultaneous_margins(blocks, level, patient)
    margins.setflags(write=False)
    return Accuracy(level, margins, basis, draws, error, simultaneous=True)


def _compute(law: CellLaw, structure: Structure, cells: IntArray, level: float, margins: IntArray) -> None:
    """Cells under no total, or cells of regions with forced sums: the size of the region is all that matters."""
    region = structure.region[cells]
    size = np.where(structure.part[region] == FORCED, structure.sizes[region], 0)
    for value in np.unique(size).tolist():
        margins[cells[size == value]] = margin(law, value, level)
