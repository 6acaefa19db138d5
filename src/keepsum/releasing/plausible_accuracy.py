"""Whether margins of error and exposed cells in a certificate follow from its declarations, or are plausible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.metadata import version

import msgspec

from keepsum.accuracy.disclosure import blocks_by_programs, bounded_cells
from keepsum.accuracy.law import cell_law
from keepsum.accuracy.levels import accuracy_by_level
from keepsum.accuracy.margins import accuracy
from keepsum.accuracy.other_draws import MarginRange, is_quickly_simulated, possible_range, simulated_range
from keepsum.accuracy.simulation import FEWEST_WIDE_DRAWS, MOST_DRAWS, needed_draws
from keepsum.accuracy.words import STANDARD_ERRORS
from keepsum.planning.plan import CompiledPlan
from keepsum.releasing.facts import AccuracyRecord, ReleaseFacts
from keepsum.releasing.records import LEVEL, accuracy_record, exposure_record
from keepsum.tables.released import ReleasedTable

TOLERANCE = 2  # by which the share of cells beyond a simulated margin may be off
ROUNDING = 0.006  # relative, of a standard error, which is stated in three digits
MOST_SUMS = 10**9  # bits that are shifted to find out which numbers are sums
MOST_PROGRAMS = 300  # regions whose range is checked by linear programs, which take some seconds
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
    if released is None:
        return True
    if _is_computed(plan):
        return stated == accuracy_record(accuracy_by_level(plan.blocks, stated.level))
    return _draws_are_plausible(stated, plan) and _agrees_with_draws(facts, plan)


def _draws_are_plausible(stated: AccuracyRecord, plan: CompiledPlan) -> bool:
    """Whether so many draws can have been made, with such a standard error, or else a bound is stated.

    A margin allows for its standard errors, which are those of independent cells at least.
    """
    if stated.level != LEVEL or (stated.simulated_draws > 0) == stated.conservative:
        return False
    least = 0 if 2 * len(plan.pinned) >= plan.size else least_margin(plan, 1 - TOLERANCE * (1 - stated.level))
    if stated.typical_margin < least:
        return False
    if stated.conservative:
        return not stated.simulated_error
    fewest = max(FEWEST_WIDE_DRAWS, needed_draws(stated.level, plan.size))
    most = max(MOST_DRAWS, needed_draws(stated.level))
    least_error = math.sqrt((1 - stated.level) * stated.level / (stated.simulated_draws * plan.size))
    largest_error = (1 - stated.level) / STANDARD_ERRORS
    return fewest <= stated.simulated_draws <= most and (
        not stated.simulated_error  # of a version that did not state it
        or least_error * (1 - ROUNDING) <= stated.simulated_error <= largest_error * (1 + ROUNDING)
    )


def _agrees_with_draws(facts: ReleaseFacts, plan: CompiledPlan) -> bool:
    """Whether margins are those of our draws, or ones that other draws can have given."""
    stated = facts.accuracy
    if _is_repeatable(facts, plan):
        return _nearly_equal(stated, accuracy_record(accuracy_by_level(plan.blocks, stated.level)))
    possible = _possible_margins(facts, plan)
    margins = (stated.typical_margin, *stated.focused_margins)
    ranges = (possible.typical, *possible.focused)
    return all(low <= margin <= high for margin, (low, high) in zip(margins, ranges, strict=True))


def _possible_margins(facts: ReleaseFacts, plan: CompiledPlan) -> MarginRange:
    """The margins that other draws can have given; where these take long, or bounds are stated, within wider limits."""
    stated = facts.accuracy
    limits = possible_range(plan.blocks, stated.level, stated.simulated_draws)
    if not _is_quick(facts, plan):
        return limits
    drawn = simulated_range(plan.blocks, stated.level, stated.simulated_draws or MOST_DRAWS)
    if stated.simulated_draws:
        return drawn
    focused = zip(drawn.focused, limits.focused, strict=True)
    return MarginRange(drawn.smallest, limits.largest, tuple((low, high) for (low, _), (_, high) in focused))


def _nearly_equal(stated: AccuracyRecord, computed: AccuracyRecord) -> bool:
    """Whether records are equal but for the last digit of the standard error, which machines may round differently."""
    if abs(stated.simulated_error - computed.simulated_error) > ERROR_TOLERANCE * computed.simulated_error:
        return False
    return msgspec.structs.replace(stated, simulated_error=computed.simulated_error) == computed


def exposure_follows(facts: ReleaseFacts, plan: CompiledPlan, released: ReleasedTable | None) -> bool:
    """Whether pinned cells follow, and bounded ones from the margins of error, or from those that can have been."""
    stated = facts.exposure
    pinned = len(plan.pinned)
    if min(stated.bounded, stated.not_checked) < 0 or pinned + stated.bounded + stated.not_checked > plan.size:
        return False
    if stated != exposure_record(plan, stated.bounded, stated.not_checked):
        return False
    if released is None:
        return True
    if not (_is_computed(plan) or _draws_are_plausible(facts.accuracy, plan)):
        return True  # nothing follows from margins that nobody can have found
    if _is_computed(plan) or _is_repeatable(facts, plan):
        bounds = bounded_cells(plan.structure, released.counts, accuracy(plan.blocks, facts.accuracy.level).margins)
        return (stated.bounded, stated.not_checked) == (len(bounds.cells), bounds.not_checked)
    return _bounded_is_plausible(facts, plan, released)


def _bounded_is_plausible(facts: ReleaseFacts, plan: CompiledPlan, released: ReleasedTable) -> bool:
    """Whether so many cells are bounded more tightly than margins that can have been simulated.

    A solver may have given up on blocks that need one; then their cells were not checked.
    """
    stated, structure = facts.exposure, plan.structure
    too_large, by_programs = blocks_by_programs(structure)
    if not _is_sum(stated.not_checked - too_large, [cells for _, cells in by_programs]):
        return False
    limit = 0 if sum(regions for regions, _ in by_programs) > MOST_PROGRAMS else MOST_PROGRAMS
    possible = _possible_margins(facts, plan)
    fewest = bounded_cells(structure, released.counts, possible.smallest.margins, limit)
    given_up = sum(cells for _, cells in by_programs) if stated.not_checked > too_large else 0
    if stated.bounded <= len(fewest.cells):
        return len(fewest.cells) - given_up <= stated.bounded
    most = bounded_cells(structure, released.counts, possible.largest.margins, limit)
    return stated.bounded <= len(most.cells) + most.not_checked - too_large


def _is_sum(number: int, sizes: Sequence[int]) -> bool:
    """Whether a number is the sum of some of these sizes, none included; of very many, whether it is not too large.

    >>> _is_sum(7, [4, 3, 3]), _is_sum(5, [4, 3, 3]), _is_sum(0, [])
    (True, False, True)
    """
    if not 0 <= number <= sum(sizes):
        return False
    if len(sizes) * number > MOST_SUMS:
        return True
    sums = 1  # a bit for each sum
    for size in sizes:
        sums |= sums << size
    return bool(sums >> number & 1)
