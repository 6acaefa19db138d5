"""Margins of error of the totals of each axis: exact where the kept totals determine them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from keepsum.accuracy.noise import Noise
from keepsum.accuracy.queries import Weights
from keepsum.accuracy.query_laws import EstimatedLaw
from keepsum.errors import InputError
from keepsum.lattice.determined import determined
from keepsum.planning.plan import CompiledPlan
from keepsum.privacy.numbers import shown
from keepsum.tables.invariants import Margin


@dataclass(frozen=True)
class AxisTotals:
    """The totals of one axis, with those of its parents, or the grand total.

    Attributes
    ----------
    axes
        The axes; none for the grand total.
    totals, exact
        How many totals there are, and how many of them the kept totals determine.
    counts
        How many counts a typical one of the others is the sum of.
    margin
        The margin of error of that one; None if it is not known, because simulating it would take too long.
    basis, draws
        How the margin is known: exact, conservative or estimated, from so many simulated draws.
    epsilon
        The epsilon of their own that they have under a focus, if they do.
    """

    axes: tuple[str, ...]
    totals: int
    exact: int
    counts: int = 0
    margin: int | None = 0
    basis: str = "exact"
    draws: int = 0
    epsilon: Fraction | None = None

    def __str__(self) -> str:
        name = "grand total" if not self.axes else f"by {' and '.join(self.axes)}"
        if self.exact == self.totals:
            return f"{name}: exact"
        some = f"; {self.exact:,} of {self.totals:,} are exact" if self.exact else ""
        what = f"{name}: {'' if not self.axes else 'typical '}"
        if self.margin is None:
            return f"{what}margin not known: it would take too long to simulate{some}"
        source = f", from {self.draws:,} simulated draws" if self.draws else ""
        at_most = "at most " if self.basis == "conservative" else ""
        own = "" if self.epsilon is None else f", with epsilon {shown(self.epsilon)} of its own"
        return f"{what}{at_most}±{self.margin:,}, the sum of {self.counts:,} counts{own}{source}{some}"


def axis_totals(plan: CompiledPlan, level: float) -> list[AxisTotals]:
    """The totals of every axis and focus that are sums of several counts, and the grand total; none without names."""
    domain = plan.invariants.domain
    if domain is None:
        return []
    noise = Noise(plan.blocks, plan.invariants)
    focused = {}
    if plan.blocks.nested is not None:
        levels = zip(plan.blocks.nested.margins, plan.mechanism.focus, strict=True)
        focused = {margin.axes: level.weight for margin, level in levels}
    margins = dict.fromkeys([*(domain.closure([axis]) for axis in domain.axes), *focused, ()])
    found = (_totals(Margin(domain, axes), plan, noise, level) for axes in margins)
    return [replace(totals, epsilon=focused.get(totals.axes)) for totals in found if totals is not None]


def _totals(margin: Margin, plan: CompiledPlan, noise: Noise, level: float) -> AxisTotals | None:
    """The totals of a margin, by its typical one; None if each is a single count."""
    of_cell = margin.domain.marginal_index(margin.axes)
    counts = np.bincount(of_cell, minlength=margin.height)
    if counts.max(initial=0) <= 1:
        return None
    known = determined(plan.structure, margin.coefficients())
    exact = int(known.sum())
    if exact == margin.height:
        return AxisTotals(margin.axes, margin.height, exact)
    noisy = np.flatnonzero(~known)
    typical = noisy[np.argsort(counts[noisy], kind="stable")[len(noisy) // 2]]
    cells = np.flatnonzero(of_cell == typical)
    query = Weights(plan.size, cells, np.ones(len(cells), dtype=np.int64))
    try:
        law = noise.law(query)
        reach = law.reach(level)
    except InputError:  # too slow to simulate, or a level that so few draws cannot show
        return AxisTotals(margin.axes, margin.height, exact, len(cells), None)
    draws = law.draws if isinstance(law, EstimatedLaw) else 0
    return AxisTotals(margin.axes, margin.height, exact, len(cells), reach, law.basis, draws)
