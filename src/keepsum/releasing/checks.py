"""Whether the facts of a certificate follow from its declarations, or are plausible where they are simulated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import version
from typing import TypeAlias

import msgspec

from keepsum.accuracy.cell_noise import cell_law
from keepsum.accuracy.disclosure import blocks_by_programs, bounded_cells
from keepsum.accuracy.levels import accuracy_by_level
from keepsum.accuracy.margins import accuracy, follows_draws
from keepsum.accuracy.other_draws import (
    MarginRange,
    is_quickly_chosen,
    is_quickly_simulated,
    possible_range,
    simulated_range,
)
from keepsum.accuracy.simulation import FEWEST_WIDE_DRAWS, MOST_DRAWS, STANDARD_ERRORS, needed_draws
from keepsum.planning.distances import AttributeDistance, Distances
from keepsum.planning.groups import BlockForm, BlockGroup
from keepsum.planning.lattice_distances import LatticeDistances
from keepsum.planning.plan import CompiledPlan
from keepsum.privacy.distance import STRONG, Distance, Norm, farthest
from keepsum.privacy.gaussian import GaussianMechanism
from keepsum.privacy.mechanism import Mechanism
from keepsum.privacy.numbers import three_digits_up
from keepsum.privacy.profile import holds
from keepsum.releasing.codec import (
    LEVEL,
    accuracy_record,
    distance_record,
    exposure_record,
    form_of,
    mechanism_record,
    order_is_as_recorded,
    pairs_are_plausible,
    planned_again,
    sampling_record,
    stated_mechanism,
)
from keepsum.releasing.facts import (
    AccuracyRecord,
    AttributeRecord,
    BlockRecord,
    ConvergenceRecord,
    DistanceRecord,
    Exactness,
    FormRecord,
    PersonRecord,
    ReleaseFacts,
    SamplerRecord,
    SamplingRecord,
)
from keepsum.tables.invariants import Invariants
from keepsum.tables.released import ReleasedTable

# Whether margins of error and exposed cells in a certificate follow from its declarations, or are plausible.

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
    if plan.mechanism.kind == "own":  # of draws of a sampler that is not here
        drawn = follows_draws(stated.level, stated.simulated_draws, stated.simulated_error)
        return drawn and stated.level == LEVEL and not stated.conservative
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
        # Whether records are equal but for the last digit of the standard error, which machines may round differently
        computed = accuracy_record(accuracy_by_level(plan.blocks, stated.level))
        if abs(stated.simulated_error - computed.simulated_error) > ERROR_TOLERANCE * computed.simulated_error:
            return False
        return msgspec.structs.replace(stated, simulated_error=computed.simulated_error) == computed
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


def exposure_follows(facts: ReleaseFacts, plan: CompiledPlan, released: ReleasedTable | None) -> bool:
    """Whether pinned cells follow, and bounded ones from the margins of error, or from those that can have been."""
    stated = facts.exposure
    pinned = len(plan.pinned)
    if min(stated.bounded, stated.not_checked) < 0 or pinned + stated.bounded + stated.not_checked > plan.size:
        return False
    if stated != exposure_record(plan, stated.bounded, stated.not_checked):
        return False
    if released is None or plan.mechanism.kind == "own":
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


# What follows from the domain, the kept totals and the mechanism is recomputed and must agree. What came from a
# pilot, from coupled chains or from a simulation must be within limits that can be computed: another version or
# another machine may measure it differently. Margins of error are simulated again where that takes little time. What
# nothing limits is listed, with the reasons, in ``tests/releasing/test_forged_leaves.py``.

FLOAT_TOLERANCE = 1e-9  # relative: another machine may round sums and logarithms differently
LOSS_TOLERANCE = Fraction(1, 10**11)  # relative, for losses, which are computed to twelve digits
ROUNDED_UP = 1 + Fraction(1, 10**9)  # by which a loss may be rounded up
LOOKED_FOR = Fraction(1, 10**4)  # relative, for an epsilon that is looked for at a delta
FLOATS_ERR = 2.0**-53  # at least, in total variation
MOST_PROPOSALS = 10**11  # of a step of a chain: more would take longer than any draw that is offered


MEASURED = ("acceptance", "steps", "proposals_per_step", "moves")
REJECTION, PROPOSALS, SWEEPS = MEASURED[:1], MEASURED[1:3], ("steps", "moves")


OVERLAPPING = ("table", "regions", "crossed", "focused")  # forms of blocks whose l1 noise is not always exact


@dataclass(frozen=True)
class KnownMethod:
    """How exact a method is, for which norms and forms of blocks, what is measured of it, and for which tables."""

    exactness: Exactness
    norms: tuple[str, ...]
    forms: tuple[str, ...] = ("table", "regions")
    measured: tuple[str, ...] = ()
    long_axes: tuple[int, int] | None = None  # fewest and most; axes of two categories only change signs of the noise
    zeros: bool = True  # whether tables may have structural zeros
    single: bool = False  # whether entries of tables must be single cells


# The methods of this version and of earlier ones.
KNOWN_METHODS = {
    "independent_cells": KnownMethod("exact", ("l1", "l2"), ("free",)),
    "part_by_part": KnownMethod("exact", ("l1",), ("sums", "table"), (), (0, 1), zeros=False),
    "nested_totals": KnownMethod("exact", ("l1",), ("nested",)),
    "column_splitting": KnownMethod("exact", ("l1",), ("table", "crossed"), REJECTION, (0, 2)),
    "axis_elimination": KnownMethod("exact", ("l1",), ("regions", "focused"), REJECTION),
    "layer_splitting": KnownMethod("exact", ("l1",), ("table",), REJECTION, (3, 3), zeros=False, single=True),
    "solved_regions": KnownMethod("exact", ("l1",), measured=REJECTION),
    "conditional_cells": KnownMethod("exact", ("l2",), ("free", "sums", "focused", "table", "regions"), REJECTION),
    "mixture_rejection": KnownMethod("rounded", ("l1",), ("table", "regions", "focused", "crossed"), REJECTION),
    "mixture_chain": KnownMethod("estimated", ("l1",), ("table", "regions", "focused", "crossed"), PROPOSALS),
    "heat_bath_chain": KnownMethod("estimated", ("l1", "l2"), ("table", "regions", "focused", "crossed"), SWEEPS),
    "gaussian_chain": KnownMethod("estimated", ("l2",), measured=PROPOSALS),
    "own_sampler": KnownMethod("claimed", ("l1", "l2"), ("free", "sums", "table", "regions")),
    # Of earlier versions:
    "uniform_compositions": KnownMethod("exact", ("l1",), ("sums", "table"), (), (0, 1), zeros=False),
    "two_rows": KnownMethod("exact", ("l1",), ("table",), REJECTION, (0, 2), zeros=False),
}


def contradictions(facts: ReleaseFacts, kept: Invariants, released: ReleasedTable | None) -> list[str]:
    """Which facts do not follow from the declarations, or are not plausible.

    Parameters
    ----------
    facts, kept
        The facts, and the kept totals that they declare.
    released
        The released table, if it has the kept totals: margins of error and bounds are checked with it.
    """
    plan = planned_again(facts, kept)
    drawn, record = stated_mechanism(facts.mechanism), facts.guarantee
    agrees = {
        "the mechanism": plan.mechanism.agrees(drawn) and facts.mechanism == mechanism_record(drawn),
        "the claim": _claim_follows(facts, drawn),
        "what the noise was calibrated to": _calibration_follows(drawn, plan),
        "the number of cells": facts.table.cells == kept.size,
        "the order of categories": kept.domain is not None and order_is_as_recorded(facts.domain, kept.domain),
        "the records": _records_are_plausible(facts),
        "the software": bool(facts.software.get("keepsum")),
        "the distances": _distances_agree(record.person, plan),
        "the per-person loss": _loss_follows(record.person, drawn),
        "the blocks": _forms_follow(record.blocks, plan.groups)
        and all(_block_is_plausible(block, drawn.norm) for block in record.blocks)
        and _methods_are_chosen(facts, plan)
        and _families_are_summed_out(record.blocks, plan),
        "the sampling": _sampling_follows(record.sampling, record.blocks, drawn),
        "the accuracy": accuracy_follows(facts, plan, released),
        "the exposed cells": exposure_follows(facts, plan, released),
        "postprocessing": len(facts.postprocessing) <= 1,
    }
    return [what for what, right in agrees.items() if not right]


def unknown_methods(facts: ReleaseFacts) -> list[str]:
    """The methods that this version does not know: how exact they are cannot be checked."""
    return sorted({block.sampler.method for block in facts.guarantee.blocks} - KNOWN_METHODS.keys())


def _records_are_plausible(facts: ReleaseFacts) -> bool:
    """Whether a bound has a unit (or is 1, as declared) and a unit a bound, and the unit is no axis."""
    record = facts.records
    if record is None or (record.unit is None and record.max_rows_per_unit in (None, 1)):
        return True
    axes = [axis.name for axis in facts.domain.axes]
    return bool(record.unit) and record.max_rows_per_unit is not None and record.unit not in axes


# -- the mechanism and one person -------------------------------------------------------------------


def _distances_agree(person: PersonRecord, plan: CompiledPlan) -> bool:
    """Whether distances are the computed ones, or bounds consistent with them, and the person's is the largest."""
    if [stated.axis for stated in person.attributes] != [attribute.axis for attribute in plan.attributes]:
        return False
    by_lattice = isinstance(plan.distances, LatticeDistances)
    pairs = zip(person.attributes, plan.attributes, strict=True)
    if not all(_attribute_agrees(stated, attribute, plan.distances) for stated, attribute in pairs):
        return False
    _ = plan.asked_distance  # refuses what cannot be requested
    if person.asked is not None and not _may_be_asked(plan):
        return False
    if not _within_agree(person, plan):
        return False
    known = [stated.any_value for stated in person.attributes if stated.any_value is not None]
    if not known or (not by_lattice and any(stated.unknown_cells for stated in person.attributes)):
        if not by_lattice or person.distance is None:
            return person.distance is None and not by_lattice
        return _distance_agrees(person.distance, plan.smallest_change, plan.distances)
    norm = plan.mechanism.norm
    distances = [Distance(norm, d.length, d.exact, tuple(d.focused), d.rule) for d in known]
    if plan.distances.alone is not None:
        distances.append(plan.distances.alone)
    return person.distance == distance_record(farthest(distances, plan.blocks.weights))


def _claim_follows(facts: ReleaseFacts, drawn: Mechanism) -> bool:
    """Whether noise of the publisher's own, and no other, is by their sampler in every block, and in no ledger."""
    claimed = drawn.kind == "own"
    own = [block.sampler.method == "own_sampler" for block in facts.guarantee.blocks]
    return all(each == claimed for each in own) and not (claimed and facts.ledger is not None)


def _calibration_follows(drawn: Mechanism, plan: CompiledPlan) -> bool:
    """Whether noise was calibrated to the farthest change that the request covers, or to a bound on it.

    Noise of another plan, which was used again, was calibrated to a change of that plan; what one person loses here
    is computed from it.
    """
    goal, distance = drawn.calibrated, plan.asked_distance
    if goal is None or plan.neighbours is None or distance is None or not isinstance(drawn, GaussianMechanism):
        return True
    length: Fraction | int = distance.length
    stated: Fraction | int | None = goal.length
    if stated is None:
        length, stated = drawn.rho_at(distance), goal.rho
    if stated is None:
        return False
    return stated == length if goal.exact == distance.exact else distance.exact and stated > length


def _may_be_asked(plan: CompiledPlan) -> bool:
    """Whether a loss per person, or per record, can have been requested: not for a given sigma."""
    return plan.mechanism.calibrated is not None or plan.mechanism.facts().parameters.keys() != {"sigma"}


def _within_agree(person: PersonRecord, plan: CompiledPlan) -> bool:
    """Whether changes within focused totals are the computed ones, or not stated where they are not known exactly."""
    computed = plan.distances.within_levels
    return len(person.within) == len(computed) and all(
        (found is None or not found.exact)
        if stated is None
        else found is not None and _distance_agrees(stated, found, plan.distances)
        for stated, found in zip(person.within, computed, strict=True)
    )


def _attribute_agrees(stated: AttributeRecord, attribute: AttributeDistance, distances: Distances) -> bool:
    """Whether what is stated of an attribute is what is computed.

    By the lattice's vectors, as in ``keepsum.certificate/2``, other distances may be known on another machine. In real
    tables work is counted in steps, so that this version knows as much on every machine, and what it does not know no
    certificate may state.
    """
    by_lattice = isinstance(distances, LatticeDistances)
    if stated.unknown_cells != attribute.unknown and not (by_lattice and attribute.unknown):
        return False
    unknown = by_lattice and stated.unknown_cells > 0, by_lattice and attribute.unknown > 0
    counts = (stated.unprotected_cells, attribute.unprotected), (stated.stuck_cells, attribute.stuck)
    # Where less is known, more cells may turn out not to be protected.
    room = (attribute.unknown, stated.unknown_cells) if by_lattice else (0, 0)
    return (
        stated.fixed_values == attribute.fixed_values
        and min(stated.unknown_cells, stated.stuck_cells) >= 0
        and all(0 <= given <= computed + room[0] and computed <= given + room[1] for given, computed in counts)
        and _optional_agrees(stated.any_value, attribute.any_value, unknown, distances)
        and _optional_agrees(stated.other_value, attribute.other_value, unknown, distances)
        and _nearest_is_nearer(stated)
    )


def _nearest_is_nearer(stated: AttributeRecord) -> bool:
    """Whether some other value is no farther than any value; under a focus, lengths alone do not tell."""
    nearest, farthest_value = stated.other_value, stated.any_value
    if nearest is None or farthest_value is None or nearest.focused:
        return True
    return nearest.length <= farthest_value.length


def _optional_agrees(
    stated: DistanceRecord | None, computed: Distance | None, unknown: tuple[bool, bool], distances: Distances
) -> bool:
    if stated is None or computed is None:
        return (stated is None or unknown[1]) and (computed is None or unknown[0])
    return _distance_agrees(stated, computed, distances)


def _distance_agrees(stated: DistanceRecord, computed: Distance, distances: Distances) -> bool:
    """Exact distances are equal; an upper bound may be larger than ours, which may be closer, but not smaller.

    If it is larger it may be known by another rule that some part of the totals has, but not in a stronger reading.
    """
    if len(stated.focused) != len(computed.focused) or (stated.rule is None) != (computed.rule is None):
        return False
    stated_lengths, lengths = (stated.length, *stated.focused), (computed.length, *computed.focused)
    if stated.rule != computed.rule and (
        stated.exact or stated.rule in STRONG or stated_lengths == lengths or stated.rule not in distances.rules
    ):
        return False
    if stated.exact:
        return computed.exact and stated_lengths == lengths
    return all(bound >= length for bound, length in zip(stated_lengths, lengths, strict=True))


def _loss_follows(person: PersonRecord, drawn: Mechanism) -> bool:
    """Whether the per-person loss is that of the mechanism at the stated distance, rounded up."""
    stated_distance = person.distance
    if stated_distance is None:
        return person.epsilon is None and person.delta is None and person.rho is None
    if len(stated_distance.focused) != len(drawn.focus):
        return False
    distance = Distance(
        drawn.norm, max(1, stated_distance.length), stated_distance.exact, tuple(stated_distance.focused)
    )
    if isinstance(drawn, GaussianMechanism) and drawn.calibrated is not None:
        # Whether an epsilon that was looked for at a delta is enough, and hardly more than is found here
        loss = drawn.loss(distance)
        if person.epsilon is None or loss.epsilon is None or loss.delta is None or person.rho is not None:
            return False
        epsilon, goal = Fraction(person.epsilon), drawn.calibrated
        if goal is not None and loss.epsilon == goal.epsilon:  # nothing was looked for
            return _rounded_up(person.epsilon, loss.epsilon) and _rounded_up(person.delta, loss.delta)
        if epsilon > loss.epsilon * (1 + LOOKED_FOR) or not _rounded_up(person.delta, loss.delta):
            return False
        return epsilon >= loss.epsilon or holds(epsilon, loss.delta, drawn.rho_at(distance))
    loss = drawn.loss(distance)
    stated = (person.epsilon, loss.epsilon), (person.delta, loss.delta), (person.rho, loss.rho)
    return all(_rounded_up(text, number) for text, number in stated)


def _rounded_up(stated: str | None, loss: Fraction | None) -> bool:
    """Whether a decimal is that loss, rounded up slightly at most."""
    if stated is None or loss is None:
        return stated is None and loss is None
    return loss * (1 - LOSS_TOLERANCE) <= Fraction(stated) <= loss * ROUNDED_UP


# -- blocks and sampling ----------------------------------------------------------------------------


def _forms_follow(blocks: Sequence[BlockRecord], groups: Sequence[BlockGroup]) -> bool:
    """Whether blocks are those of the totals; a table may not have been recognised as one."""
    expected = Counter(_form_key(group.form, group.blocks, group.cells) for group in groups)
    for block in blocks:
        key = _form_key(form_of(block.form), block.blocks, block.cells)
        known = [key] if block.form.kind != "regions" else [k for k in expected if _unrecognised(k) == key]
        match = next((k for k in known if expected[k]), None)
        if match is None:
            return False
        expected[match] -= 1
    return not expected.total()


FormKey: TypeAlias = tuple[BlockForm, int, int]


def _form_key(form: BlockForm, blocks: int, cells: int) -> FormKey:
    """What a block must agree with; the order of the axes of a table says nothing about it."""
    return replace(form, shape=tuple(sorted(form.shape))), blocks, cells


def _unrecognised(key: FormKey) -> FormKey:
    """An earlier version may not have recognised a table, and drawn it by its sampler for any totals."""
    form, blocks, cells = key
    return replace(form, kind="regions", shape=()) if form.kind == "table" else form, blocks, cells


def _methods_are_chosen(facts: ReleaseFacts, plan: CompiledPlan) -> bool:
    """Whether exact l1 Laplace noise is drawn exactly by this version, too, and layers split only where it does that.

    Layers have never been split where solving for regions takes few cells per draw. Whether it does is measured by a
    pilot that accepts at least QUICK_PILOT / QUICK draws, so it may be off by a factor of 2: six standard errors.
    """
    blocks = [block for block in facts.guarantee.blocks if block.form.kind in OVERLAPPING]
    if plan.mechanism.kind != "laplace-l1" or facts.guarantee.sampling.exactness != "exact" or not blocks:
        return True
    if unknown_methods(facts) or not is_quickly_chosen(plan.blocks):
        return True
    if plan.blocks.exactness != "exact":
        return False
    from keepsum.planning.selection.l1 import QUICK  # not loaded where nothing is chosen

    solved = {
        _form_key(group.form, group.blocks, group.cells)
        for group, choice in zip(plan.groups, plan.samplers, strict=True)
        if choice.method == "solved_regions" and 2 * choice.cost <= QUICK * group.blocks
    }
    split = [block for block in blocks if block.sampler.method == "layer_splitting"]
    return not any(_form_key(form_of(block.form), block.blocks, block.cells) in solved for block in split)


def _families_are_summed_out(blocks: Sequence[BlockRecord], plan: CompiledPlan) -> bool:
    """Whether axes are eliminated only where all families of totals can be summed out."""
    eliminated = {
        _form_key(form_of(block.form), block.blocks, block.cells)
        for block in blocks
        if block.sampler.method == "axis_elimination"
    }
    return eliminated <= {
        _unrecognised(key)
        for group in plan.groups
        if (key := _form_key(group.form, group.blocks, group.cells)) in eliminated or _unrecognised(key) in eliminated
        if _can_be_summed_out(group, plan)
    }


def _can_be_summed_out(group: BlockGroup, plan: CompiledPlan) -> bool:
    focused = plan.blocks.focused
    if group.form.kind == "focused" and focused is not None and plan.mechanism.norm == "l1":
        from keepsum.planning.selection.l1_focus import epsilons_of, table_of  # brings the general samplers

        return table_of(focused, group.members[0], epsilons_of(plan.mechanism)) is not None
    return bool(group.members) and group.members[0].system.collapses is not None


def _block_is_plausible(block: BlockRecord, norm: Norm) -> bool:
    return (
        _form_is_plausible(block)
        and _method_fits(block, norm)
        and _sampler_is_plausible(block.sampler)
        and _exactness_is_plausible(block)
    )


def _form_is_plausible(block: BlockRecord) -> bool:
    form = block.form
    if min(block.blocks, form.regions, form.smallest) < 1 or form.totals < 0 or form.largest < form.smallest:
        return False
    regions = block.blocks * form.regions
    if not regions * form.smallest <= block.cells <= regions * form.largest:
        return False
    if form.kind == "table":
        return len(form.shape) > 1 and min(form.shape) > 1 and _entries_are_plausible(form)
    if form.kind == "crossed":
        entries = math.prod(form.shape)
        return len(form.shape) == 2 and max(form.shape) <= form.regions <= entries and form.totals >= sum(form.shape)
    if form.kind in ("regions", "nested", "focused"):
        return not form.shape and form.totals > 0
    return not form.shape and form.regions == 1 and (form.kind == "sums" or form.largest == 1)


def _entries_are_plausible(form: FormRecord) -> bool:
    """Whether a table can have so many entries: those of two ways may have zeros, but none that alone is determined."""
    entries = math.prod(form.shape)
    return form.regions == entries or (len(form.shape) == 2 and 2 * max(form.shape) <= form.regions < entries)


def _method_fits(block: BlockRecord, norm: Norm) -> bool:
    """Whether a method that this version knows is that exact, and draws such noise on blocks of that form."""
    known, form, sampler = KNOWN_METHODS.get(block.sampler.method), block.form, block.sampler
    if known is None:
        return True  # nothing is known against it, or for it: see unknown_methods
    long_axes = sum(length > 2 for length in form.shape)
    fewest, most = known.long_axes or (0, len(form.shape))
    return (
        block.exactness == known.exactness
        and norm in known.norms
        and all((getattr(sampler, name) is not None) == (name in known.measured) for name in MEASURED)
        and (known.single is False or form.largest == 1)
        and form.kind in known.forms
        and fewest <= long_axes <= most
        and (known.zeros or form.kind != "table" or math.prod(form.shape) == form.regions)
    )


def _sampler_is_plausible(sampler: SamplerRecord) -> bool:
    return (
        (sampler.acceptance is None or 0 < sampler.acceptance <= 1)
        and (sampler.steps is None or sampler.steps >= 1)
        and (sampler.proposals_per_step is None or 1 <= sampler.proposals_per_step <= MOST_PROPOSALS)
        and (sampler.moves is None or sampler.moves >= 1)
    )


def _exactness_is_plausible(block: BlockRecord) -> bool:
    """Exact blocks have total variation 0; chains state what was observed."""
    if block.exactness != "estimated":
        at_target = block.total_variation == 0
        possible = at_target if block.exactness in ("exact", "claimed") else FLOATS_ERR <= block.total_variation <= 1
        return block.convergence is None and possible
    observed = block.convergence
    return (
        observed is not None
        and (block.sampler.steps == observed.steps or block.sampler.method not in KNOWN_METHODS)
        and _convergence_is_plausible(observed)
        and _close(block.total_variation, min(1.0, block.blocks * observed.upper))
    )


def _convergence_is_plausible(stated: ConvergenceRecord) -> bool:
    """Whether the limits are no smaller than this many pairs with these meeting times can show."""
    if not pairs_are_plausible(stated):
        return False
    # The mean of max(0, ceil((tau - lag - steps) / lag)) over pairs (Biswas, Jacob and Vanetti 2019)
    late = sum(count * max(0, -((stated.steps - steps) // stated.lag)) for steps, count in stated.meetings)
    estimate = late / stated.pairs
    # Zero observed is not zero: a smaller limit would fail too often, whatever the method.
    least = -math.expm1(math.log1p(-stated.confidence) / stated.pairs)
    upper = 1.0 if stated.unmet else min(1.0, max(estimate, stated.predicted, least) + stated.rounding)
    extrapolated = 1.0 if stated.unmet else min(1.0, max(estimate, stated.predicted) + stated.rounding)
    room = 1 - FLOAT_TOLERANCE
    return upper * room <= stated.upper <= 1 and extrapolated * room <= stated.extrapolated <= 1 and stated.upper > 0


def _sampling_follows(stated: SamplingRecord, blocks: Sequence[BlockRecord], drawn: Mechanism) -> bool:
    """Whether the figures for all blocks follow from those of each, and delta from the total variation."""
    expected = sampling_record(blocks, drawn)
    exponent = 0.0 if drawn.epsilon is None else float(drawn.epsilon)
    factor = 1.0 if drawn.epsilon is None else 1 + math.exp(min(exponent, 700.0))
    delta = min(1.0, stated.total_variation * factor)
    return (
        stated.exactness == expected.exactness
        and _close(stated.total_variation, expected.total_variation)
        and _close(stated.extrapolated, expected.extrapolated)
        and _close(stated.confidence, expected.confidence)
        and delta * (1 - FLOAT_TOLERANCE) <= float(stated.delta)
        and Decimal(stated.delta) <= Decimal(three_digits_up(delta * (1 + FLOAT_TOLERANCE)))
    )


def _close(stated: float | None, computed: float | None) -> bool:
    if stated is None or computed is None:
        return stated is None and computed is None
    return abs(stated - computed) <= FLOAT_TOLERANCE * abs(computed)
