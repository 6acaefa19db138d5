"""Whether the facts of a certificate follow from its declarations, or make sense where they were measured.

What follows from the domain, the kept totals and the mechanism is worked out again and must agree. What came from a
pilot, from coupled chains or from a simulation is only checked for sense: another version, or another machine, may
measure it differently. Nothing is drawn for these checks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from keepsum.accuracy.disclosure import bounded_cells
from keepsum.accuracy.law import cell_law
from keepsum.accuracy.margins import accuracy
from keepsum.planning.distances import AttributeDistance
from keepsum.planning.groups import BlockGroup
from keepsum.planning.plan import CompiledPlan
from keepsum.privacy.distance import Distance
from keepsum.privacy.mechanism import Mechanism
from keepsum.releasing.codec import mechanism_record, order_is_as_recorded, planned_again, stated_mechanism
from keepsum.releasing.facts import (
    AttributeRecord,
    BlockRecord,
    ConvergenceRecord,
    DistanceRecord,
    Exactness,
    PersonRecord,
    ReleaseFacts,
    SamplerRecord,
    SamplingRecord,
)
from keepsum.releasing.records import accuracy_record, exposure_record, pairs_have_sense, sampling_record
from keepsum.tables.invariants import Invariants
from keepsum.tables.released import ReleasedTable

FLOATS = 1e-9  # relative room for sums and logarithms that other machines may round differently
DIGITS = Fraction(1, 10**11)  # the same for losses, which are worked out to twelve digits
ROUNDED_UP, DELTA_ROUNDED_UP = Fraction("1.001"), Decimal("1.01")  # how far a loss, and sampling's delta, may be
# How exact the methods are that this version knows; others are as they are stated.
EXACTNESS: dict[str, Exactness] = {
    "independent_cells": "exact",
    "uniform_compositions": "exact",
    "two_rows": "exact",
    "solved_regions": "exact",
    "conditional_cells": "exact",
    "mixture_rejection": "rounded",
    "mixture_chain": "estimated",
    "heat_bath_chain": "estimated",
    "gaussian_chain": "estimated",
}


def contradictions(facts: ReleaseFacts, kept: Invariants, released: ReleasedTable | None) -> list[str]:
    """What in the facts does not follow from the declarations, or makes no sense.

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
        "the number of cells": facts.table.cells == kept.size,
        "the order of categories": kept.domain is not None and order_is_as_recorded(facts.domain, kept.domain),
        "the distances": _distances_agree(record.person, plan),
        "the loss of one person": _loss_follows(record.person, drawn),
        "the blocks": _cells_follow(record.blocks, plan.groups) and all(map(_block_has_sense, record.blocks)),
        "the sampling": _sampling_follows(record.sampling, record.blocks, drawn),
        "the accuracy": _accuracy_follows(facts, plan, released),
        "the exposed cells": _exposure_follows(facts, plan, released),
        "postprocessing and ledger": not facts.postprocessing and facts.ledger is None,
    }
    return [what for what, right in agrees.items() if not right]


# -- the mechanism and one person -------------------------------------------------------------------


def _distances_agree(person: PersonRecord, plan: CompiledPlan) -> bool:
    """Whether distances are ours, or bounds that do not contradict ours, and the person's is the largest of them."""
    if [stated.axis for stated in person.attributes] != [attribute.axis for attribute in plan.attributes]:
        return False
    pairs = zip(person.attributes, plan.attributes, strict=True)
    if not all(_attribute_agrees(stated, attribute) for stated, attribute in pairs):
        return False
    _ = plan.asked_distance  # refuses what could not be asked for
    known = [stated.any_value for stated in person.attributes if stated.any_value is not None]
    if not known:
        return _distance_agrees(person.distance, plan.cheapest)
    longest = max(distance.length for distance in known)
    exact = all(distance.exact for distance in known if distance.length == longest)
    return person.distance == DistanceRecord(length=longest, exact=exact)


def _attribute_agrees(stated: AttributeRecord, attribute: AttributeDistance) -> bool:
    unknown = stated.unknown_cells > 0, attribute.unknown > 0
    counts = (stated.unprotected_cells, attribute.unprotected), (stated.stuck_cells, attribute.stuck)
    room = attribute.unknown, stated.unknown_cells  # where less is known, more may turn out not to be protected
    return (
        stated.fixed_values == attribute.fixed_values
        and min(stated.unknown_cells, stated.stuck_cells) >= 0
        and all(0 <= given <= own + room[0] and own <= given + room[1] for given, own in counts)
        and _optional_agrees(stated.any_value, attribute.any_value, unknown)
        and _optional_agrees(stated.other_value, attribute.other_value, unknown)
    )


def _optional_agrees(stated: DistanceRecord | None, own: Distance | None, unknown: tuple[bool, bool]) -> bool:
    if stated is None or own is None:
        return (stated is None or unknown[1]) and (own is None or unknown[0])
    return _distance_agrees(stated, own)


def _distance_agrees(stated: DistanceRecord, own: Distance) -> bool:
    """Exact distances are equal; an upper bound is not below an exact distance."""
    if stated.length < 1:
        return False
    if stated.exact and own.exact:
        return stated.length == own.length
    if own.exact:
        return stated.length >= own.length
    return not stated.exact or stated.length <= own.length


def _loss_follows(person: PersonRecord, drawn: Mechanism) -> bool:
    """Whether the loss of one person is that of the mechanism at the stated distance, rounded up."""
    distance = Distance(drawn.norm, max(1, person.distance.length), person.distance.exact)
    loss = drawn.loss(distance)
    stated = (person.epsilon, loss.epsilon), (person.delta, loss.delta), (person.rho, loss.rho)
    return all(_rounded_up(text, number) for text, number in stated)


def _rounded_up(stated: str | None, loss: Fraction | None) -> bool:
    """Whether a decimal is that loss, rounded up by a little at most."""
    if stated is None or loss is None:
        return stated is None and loss is None
    return loss * (1 - DIGITS) <= Fraction(stated) <= loss * ROUNDED_UP


# -- blocks and sampling ----------------------------------------------------------------------------


def _cells_follow(blocks: Sequence[BlockRecord], groups: Sequence[BlockGroup]) -> bool:
    """Whether there are as many blocks and cells under no total, under one, and under several as the totals make."""
    stated: Counter[tuple[str, str]] = Counter()
    for block in blocks:
        stated += Counter({(_overlap(block.form.kind), "blocks"): block.blocks})
        stated += Counter({(_overlap(block.form.kind), "cells"): block.cells})
    expected: Counter[tuple[str, str]] = Counter()
    for group in groups:
        expected += Counter({(_overlap(group.form.kind), "blocks"): group.blocks})
        expected += Counter({(_overlap(group.form.kind), "cells"): group.cells})
    return stated == expected


def _overlap(kind: str) -> str:
    """Which blocks are tables is a matter of recognising them."""
    return "overlap" if kind in ("table", "regions") else kind


def _block_has_sense(block: BlockRecord) -> bool:
    return (
        _form_has_sense(block)
        and _sampler_has_sense(block.sampler)
        and block.exactness == EXACTNESS.get(block.sampler.method, block.exactness)
        and _exactness_has_sense(block)
    )


def _form_has_sense(block: BlockRecord) -> bool:
    form = block.form
    if min(block.blocks, form.regions, form.smallest) < 1 or form.totals < 0 or form.largest < form.smallest:
        return False
    regions = block.blocks * form.regions
    if not regions * form.smallest <= block.cells <= regions * form.largest:
        return False
    if form.kind == "table":
        return len(form.shape) > 1 and min(form.shape) > 1 and math.prod(form.shape) == form.regions
    if form.kind == "regions":
        return not form.shape and form.totals > 0
    return not form.shape and form.regions == 1 and (form.kind == "sums" or form.largest == 1)


def _sampler_has_sense(sampler: SamplerRecord) -> bool:
    return (
        (sampler.acceptance is None or 0 < sampler.acceptance <= 1)
        and (sampler.steps is None or sampler.steps >= 1)
        and (sampler.proposals_per_step is None or sampler.proposals_per_step > 0)
        and (sampler.moves is None or sampler.moves >= 1)
    )


def _exactness_has_sense(block: BlockRecord) -> bool:
    """Nothing is off where it is exact; chains say what was observed of them."""
    if block.exactness != "estimated":
        at_target = block.total_variation == 0
        return block.convergence is None and at_target == (block.exactness == "exact") and block.total_variation <= 1
    observed = block.convergence
    return (
        observed is not None
        and block.sampler.steps in (None, observed.steps)
        and _convergence_has_sense(observed)
        and _near(block.total_variation, min(1.0, block.blocks * observed.upper))
    )


def _convergence_has_sense(stated: ConvergenceRecord) -> bool:
    """Whether limits are no smaller than so many pairs with these meeting times can show."""
    if not pairs_have_sense(stated):
        return False
    estimate = _estimate(stated)
    # Zero observed is not zero: a smaller limit would miss the truth too often, by whatever method it was found.
    least = -math.expm1(math.log1p(-stated.confidence) / stated.pairs)
    upper = 1.0 if stated.unmet else min(1.0, max(estimate, stated.predicted, least) + stated.rounding)
    extrapolated = 1.0 if stated.unmet else min(1.0, max(estimate, stated.predicted) + stated.rounding)
    room = 1 - FLOATS
    return upper * room <= stated.upper <= 1 and extrapolated * room <= stated.extrapolated <= 1 and stated.upper > 0


def _estimate(stated: ConvergenceRecord) -> float:
    """The mean of max(0, ceil((tau - lag - steps) / lag)) over pairs (Biswas, Jacob and Vanetti 2019)."""
    late = sum(count * max(0, -((stated.steps - steps) // stated.lag)) for steps, count in stated.meetings)
    return late / stated.pairs


def _sampling_follows(stated: SamplingRecord, blocks: Sequence[BlockRecord], drawn: Mechanism) -> bool:
    """Whether all blocks together are what each of them is, and delta follows from their total variation."""
    expected = sampling_record(blocks, drawn)
    exponent = 0.0 if drawn.epsilon is None else float(drawn.epsilon)
    factor = 1.0 if drawn.epsilon is None else 1 + math.exp(min(exponent, 700.0))
    delta = Decimal(min(1.0, stated.total_variation * factor))
    return (
        stated.exactness == expected.exactness
        and _near(stated.total_variation, expected.total_variation)
        and _near(stated.extrapolated, expected.extrapolated)
        and _near(stated.confidence, expected.confidence)
        and delta * (1 - Decimal(FLOATS)) <= Decimal(stated.delta) <= delta * DELTA_ROUNDED_UP
    )


def _near(stated: float | None, own: float | None) -> bool:
    if stated is None or own is None:
        return stated is None and own is None
    return abs(stated - own) <= FLOATS * abs(own)


# -- exposure and accuracy --------------------------------------------------------------------------


def _is_computed(plan: CompiledPlan) -> bool:
    """Whether every margin of error is computed, not simulated."""
    return cell_law(plan.mechanism) is not None and not any(group.members for group in plan.groups)


def _accuracy_follows(facts: ReleaseFacts, plan: CompiledPlan, released: ReleasedTable | None) -> bool:
    stated = facts.accuracy
    if not 0 < stated.level < 1 or min(stated.typical_margin, stated.simulated_draws) < 0:
        return False
    if stated.simulated_draws or released is None:
        return True
    return _is_computed(plan) and stated == accuracy_record(accuracy(plan.blocks, stated.level))


def _exposure_follows(facts: ReleaseFacts, plan: CompiledPlan, released: ReleasedTable | None) -> bool:
    """Pinned cells follow; how many are bounded depends on margins of error, and so only where these follow."""
    stated = facts.exposure
    pinned = len(plan.pinned)
    if min(stated.bounded, stated.not_checked) < 0 or pinned + stated.bounded + stated.not_checked > plan.size:
        return False
    if released is None or facts.accuracy.simulated_draws or not _is_computed(plan):
        expected = exposure_record(plan, stated.bounded, stated.not_checked)
    else:
        margins = accuracy(plan.blocks, facts.accuracy.level).margins
        bounds = bounded_cells(plan.structure, released.counts, margins)
        expected = exposure_record(plan, len(bounds.cells), bounds.not_checked)
    return stated == expected
