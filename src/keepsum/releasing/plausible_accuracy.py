"""Whether margins of error and exposed cells in a certificate follow from its declarations, or are plausible."""

from __future__ import annotations

import math
from importlib.metadata import version

import msgspec

from keepsum.accuracy.disclosure import bounded_cells
from keepsum.accuracy.law import cell_law
from keepsum.accuracy.levels import accuracy_by_level
from keepsum.accuracy.margins import accuracy
from keepsum.accuracy.other_draws import is_quickly_simulated, typical_range
from keepsum.accuracy.simulation import FEWEST_WIDE_DRAWS, MOST_DRAWS
from keepsum.planning.plan import CompiledPlan
from keepsum.releasing.facts import AccuracyRecord, ReleaseFacts
from keepsum.releasing.records import accuracy_record, exposure_record
from keepsum.tables.released import ReleasedTable

TOLERANCE = 2  # by which the share of cells beyond a simulated margin may be off
ERROR_TOLERANCE = 0.011  # relative, of a standard error of three digits


def least_margin(plan: CompiledPlan, level: float) -> int:
    """A margin of error that no cell with noise can be below, at that level.

    Let v be the smallest change through a cell, and r the weight of v over that of no noise. For Laplace noise the
    weight of z + v is at least r times that of z (triangle inequality), so the noise x of the cell has at least the
    tails of a geometric law: P(|x| > m) >= 2 r^(m+1) / (1 + r). For Gaussian noise the weights of z + v and z - v
    together are at least 2 r times that of z, so that P(x = 0) <= 1 / (1 + 2 r).
    """
    change, scale = plan.blocks.smallest_change, float(plan.mechanism.scale)
    if plan.mechanism.kind == "gaussian":
        rho = plan.mechanism.loss(change).rho if plan.mechanism.focus else None
        r = math.exp(-change.length / (2 * scale**2) if rho is None else -float(rho))
        return int(1 / (1 + 2 * r) < level)
    exponent = float(plan.mechanism.loss(change).epsilon or 0) if plan.mechanism.focus else float(change.value) / scale
    r = math.exp(-exponent)
    tail = (1 - level) * (1 + r) / 2
    return 0 if not 0 < tail < 1 or not exponent else max(0, math.ceil(-math.log(tail) / exponent * (1 - 1e-9)) - 1)


def _is_computed(plan: CompiledPlan) -> bool:
    """Whether every margin of error is computed, not simulated."""
    return cell_law(plan.mechanism) is not None and not any(g.members or g.tables for g in plan.groups)


def _is_quick(facts: ReleaseFacts, plan: CompiledPlan) -> bool:
    """Whether margins can be simulated again in a few seconds; choosing a chain alone takes longer."""
    return facts.guarantee.sampling.exactness == "exact" and is_quickly_simulated(plan.blocks, facts.accuracy.level)


def _is_repeatable(facts: ReleaseFacts, plan: CompiledPlan) -> bool:
    """Whether the same draws can be simulated again: by the same released version, in integers, and quickly."""
    ours = version("keepsum")
    same = "dev" not in ours and facts.software.get("keepsum") == ours
    return same and _is_quick(facts, plan) and plan.blocks.exactness == "exact"


def accuracy_follows(facts: ReleaseFacts, plan: CompiledPlan, released: ReleasedTable | None) -> bool:
    """Whether the typical margin of error is the computed one, or can have been simulated."""
    stated = facts.accuracy
    if len(stated.focused_margins) != len(facts.mechanism.focus) or min(stated.focused_margins, default=0) < 0:
        return False
    if not 0.5 <= stated.level < 1 or min(stated.typical_margin, stated.simulated_draws, stated.simulated_error) < 0:
        return False
    if stated.simulated_draws or stated.conservative:
        least = 0 if 2 * len(plan.pinned) >= plan.size else least_margin(plan, 1 - TOLERANCE * (1 - stated.level))
        if 0 < stated.simulated_draws < FEWEST_WIDE_DRAWS or stated.typical_margin < least:
            return False
        if stated.simulated_error and not (stated.simulated_draws and stated.simulated_error < 1 - stated.level):
            return False
    if released is None:
        return True
    if not _is_computed(plan):
        return (stated.simulated_draws > 0 or stated.conservative) and _agrees_with_draws(facts, plan)
    computed = accuracy_record(accuracy_by_level(plan.blocks, stated.level))
    if stated.simulated_draws:  # by a version that could not compute it
        return abs(stated.typical_margin - computed.typical_margin) <= max(2, computed.typical_margin // 4)
    return stated == computed


def _agrees_with_draws(facts: ReleaseFacts, plan: CompiledPlan) -> bool:
    """Whether a margin is that of our draws, or one that other draws can have given; unknown if these take long."""
    stated = facts.accuracy
    if _is_repeatable(facts, plan):
        return _nearly_equal(stated, accuracy_record(accuracy_by_level(plan.blocks, stated.level)))
    if not _is_quick(facts, plan):
        return True
    ours = accuracy_record(accuracy_by_level(plan.blocks, stated.level)).focused_margins
    if any(margin < own // 2 - 1 for margin, own in zip(stated.focused_margins, ours, strict=True)):
        return False  # no simulation is that far off
    smallest, largest = typical_range(plan.blocks, stated.level, stated.simulated_draws or MOST_DRAWS)
    return smallest <= stated.typical_margin and (stated.conservative or stated.typical_margin <= largest)


def _nearly_equal(stated: AccuracyRecord, computed: AccuracyRecord) -> bool:
    """Whether records are equal but for the last digit of the standard error, which machines may round differently."""
    if abs(stated.simulated_error - computed.simulated_error) > ERROR_TOLERANCE * computed.simulated_error:
        return False
    return msgspec.structs.replace(stated, simulated_error=computed.simulated_error) == computed


def exposure_follows(facts: ReleaseFacts, plan: CompiledPlan, released: ReleasedTable | None) -> bool:
    """Whether pinned cells follow, and bounded ones where margins of error are computed or the same draws made."""
    stated = facts.exposure
    pinned = len(plan.pinned)
    if min(stated.bounded, stated.not_checked) < 0 or pinned + stated.bounded + stated.not_checked > plan.size:
        return False
    if released is None or not (_is_computed(plan) or _is_repeatable(facts, plan)):
        expected = exposure_record(plan, stated.bounded, stated.not_checked)
    else:
        margins = accuracy(plan.blocks, facts.accuracy.level).margins
        bounds = bounded_cells(plan.structure, released.counts, margins)
        expected = exposure_record(plan, len(bounds.cells), bounds.not_checked)
    return stated == expected
