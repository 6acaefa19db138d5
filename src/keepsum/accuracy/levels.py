"""Margins of error of the totals of each axis, of kept margins, and of each level of a focus."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from keepsum.accuracy.margins import WEAKEST, Accuracy, LevelMargins, accuracy
from keepsum.accuracy.noise import Noise
from keepsum.accuracy.queries import QueryWeights
from keepsum.accuracy.query_laws import EstimatedLaw
from keepsum.accuracy.sums import Estimate, sum_accuracy
from keepsum.errors import InputError, PlanError
from keepsum.lattice.determined import determined
from keepsum.planning.focus import OUTSIDE, FocusTotals
from keepsum.planning.plan import CompiledPlan
from keepsum.planning.samplers import BlockSamplers
from keepsum.privacy.numbers import shown
from keepsum.tables.invariants import Invariants, Margin, describe_rows

# Margins of error of the totals of each axis and of kept margins: exact where the kept totals determine them.


@dataclass(frozen=True)
class AxisTotals:
    """The totals of one axis, with those of its parents, of several axes, the grand total, or subsets of a focus.

    Attributes
    ----------
    axes
        The axes; none for the grand total, or for subsets.
    totals, exact
        How many totals there are, and how many of them the kept totals determine.
    counts
        How many counts a typical one of the others is the sum of.
    margin
        The margin of error of that one; None if it is not known, because simulating it would take too long.
    basis, draws
        How the margin is known: exact, conservative or estimated, from so many simulated draws.
    subsets
        The names of subsets.
    own
        The epsilon or rho of their own that they have under a focus, by its name.
    """

    axes: tuple[str, ...]
    totals: int
    exact: int
    counts: int = 0
    margin: int | None = 0
    basis: str = "exact"
    draws: int = 0
    subsets: tuple[str, ...] = ()
    own: tuple[str, Fraction] | None = None

    def __str__(self) -> str:
        name = "grand total" if not self.axes else f"by {' and '.join(self.axes)}"
        if self.subsets:
            name = describe_rows(self.subsets, "subsets")
        if self.exact == self.totals:
            return f"{name}: exact"
        some = f"; {self.exact:,} of {self.totals:,} are exact" if self.exact else ""
        what = f"{name}: {'' if self.totals == 1 else 'typical '}"
        if self.margin is None:
            return f"{what}margin not known: it would take too long to simulate{some}"
        source = f", from {self.draws:,} simulated draws" if self.draws else ""
        at_most = "at most " if self.basis == "conservative" else ""
        own = "" if self.own is None else f", with {self.own[0]} {shown(self.own[1])} of its own"
        return f"{what}{at_most}±{self.margin:,}, the sum of {self.counts:,} counts{own}{source}{some}"


def axis_totals(plan: CompiledPlan, level: float) -> list[AxisTotals]:
    """The totals of every axis, kept margin and focus that are sums of several counts, and the grand total; or none.

    There are none where cells have no names.
    """
    domain = plan.invariants.domain
    if domain is None:
        return []
    noise = Noise(plan.blocks, plan.invariants)
    loss = "epsilon" if plan.mechanism.norm == "l1" else "rho"
    own = {
        totals.part: (loss, focus.weight)
        for totals, focus in zip(plan.blocks.margins, plan.mechanism.focus, strict=True)
    }
    focused = [totals.axes for totals in plan.blocks.margins if totals.axes is not None]
    kept = [part.axes for part in plan.invariants.parts if isinstance(part, Margin)]
    margins = dict.fromkeys(
        axes for axes in [*map(domain.closure, ([a] for a in domain.axes)), *kept, *focused] if axes
    )
    several = [FocusTotals(Margin(domain, axes), domain.size) for axes in [*margins, ()]]
    several += [totals for totals in plan.blocks.margins if totals.axes is None]
    found = [(totals, _totals(totals, plan, noise, level)) for totals in several]
    return [replace(row, own=own.get(totals.part)) for totals, row in found if row is not None]


def _totals(margin: FocusTotals, plan: CompiledPlan, noise: Noise, level: float) -> AxisTotals | None:
    """The totals of a margin, by its typical one; None if each is a single count."""
    of_cell = margin.labels
    counts = np.bincount(of_cell[of_cell != OUTSIDE], minlength=margin.height)
    if counts.max(initial=0) <= 1:
        return None
    known = determined(plan.structure, margin.coefficients())
    exact = int(known.sum())
    names = () if margin.axes is not None else tuple(margin.part.all_names())
    declared = AxisTotals(margin.axes or (), margin.height, exact, subsets=names)
    if exact == margin.height:
        return declared
    noisy = np.flatnonzero(~known)
    typical = noisy[np.argsort(counts[noisy], kind="stable")[len(noisy) // 2]]
    cells = np.flatnonzero(of_cell == typical)
    query = QueryWeights(plan.size, cells, np.ones(len(cells), dtype=np.int64))
    try:
        law = noise.law(query)
        reach = law.reach(level)
    except (InputError, PlanError):  # too slow to simulate, or a level that so few draws cannot show
        return replace(declared, counts=len(cells), margin=None)
    draws = law.draws if isinstance(law, EstimatedLaw) else 0
    return replace(declared, counts=len(cells), margin=reach, basis=law.basis, draws=draws)


# Margins of error of cells and of the totals of each focus.


def accuracy_by_level(
    blocks: BlockSamplers, level: float = 0.95, simultaneous: bool = False, patient: bool = False
) -> Accuracy:
    """The margin of error of every cell, as in ``accuracy``, and those of the totals of each focus, if there is one."""
    found = accuracy(blocks, level, simultaneous, patient)
    return replace(found, levels=level_margins(blocks, found.level, simultaneous))


def level_margins(
    blocks: BlockSamplers, level: float, simultaneous: bool = False, estimate: Estimate = EstimatedLaw.estimated
) -> tuple[LevelMargins, ...]:
    """The margins of error of the totals of each focus; ``estimate`` finds one from simulated draws."""
    levels = []
    for focus, totals in zip(blocks.mechanism.focus, blocks.margins, strict=True):
        if totals.covers:
            margins = sum_accuracy(blocks, totals.labels, totals.height, level, simultaneous, estimate)
        else:
            margins = _of_subsets(blocks, totals, level, simultaneous, estimate)
        levels.append(LevelMargins(focus.axes, margins, focus.each))
    return tuple(levels)


def _of_subsets(
    blocks: BlockSamplers, totals: FocusTotals, level: float, simultaneous: bool, estimate: Estimate
) -> Accuracy:
    """The margins of a few totals, each by its own law; what may go wrong is divided among them if simultaneous."""
    each = 1 - (1 - level) / totals.height if simultaneous else level
    noise = Noise(blocks, Invariants(blocks.size, ()))
    laws = [noise.law((totals.labels == number).astype(np.int64)) for number in range(totals.height)]
    reached = [estimate(law, each) if isinstance(law, EstimatedLaw) else (law.reach(each), 0.0) for law in laws]
    margins = np.array([margin for margin, _ in reached], dtype=np.int64)
    margins.setflags(write=False)
    return Accuracy(
        level,
        margins,
        max((law.basis for law in laws), key=WEAKEST.index),
        min((law.draws for law in laws if isinstance(law, EstimatedLaw)), default=0),
        max((error for _, error in reached), default=0.0),
        simultaneous,
        what="total",
    )
