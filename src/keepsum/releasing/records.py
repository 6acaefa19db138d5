"""The guarantee, the exposed cells and the accuracy of a plan, as records of a certificate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from keepsum.accuracy.margins import Accuracy
from keepsum.convergence.observe import CONFIDENCES, FEWEST_PAIRS, MOST_PAIRS, BlockConvergence, Convergence
from keepsum.errors import InputError
from keepsum.planning.attribute_distance import AttributeDistance
from keepsum.planning.groups import BlockGroup, Form
from keepsum.planning.plan import CompiledPlan
from keepsum.planning.selection.choice import Choice
from keepsum.privacy.distance import Distance
from keepsum.privacy.guarantee import added_delta
from keepsum.privacy.loss import Loss
from keepsum.privacy.mechanism import Mechanism
from keepsum.privacy.numbers import decimal_text, three_digits_up
from keepsum.releasing.facts import AccuracyRecord, ExposureRecord
from keepsum.releasing.guarantee_facts import (
    AskedRecord,
    AttributeRecord,
    BlockRecord,
    ConvergenceRecord,
    DistanceRecord,
    FormRecord,
    GuaranteeRecord,
    PersonRecord,
    SamplerRecord,
    SamplingRecord,
)
from keepsum.releasing.record_types import Exactness

LEVEL = 0.95
LONGEST_COUPLING = 2**40  # the most steps after which a pair of chains is given up
WEAKEST: tuple[Exactness, ...] = ("exact", "rounded", "estimated")


# -- one person -------------------------------------------------------------------------------------


def person_record(plan: CompiledPlan) -> PersonRecord:
    """What the guarantee means for one person."""
    loss = plan.guarantee.person_loss or Loss()
    asked = plan.neighbours
    return PersonRecord(
        distance=None if plan.person is None else distance_record(plan.person),
        epsilon=None if loss.epsilon is None else decimal_text(loss.epsilon),
        delta=None if loss.delta is None else decimal_text(loss.delta),
        rho=None if loss.rho is None else decimal_text(loss.rho),
        attributes=[_attribute_record(attribute) for attribute in plan.attributes],
        asked=None
        if asked is None
        else AskedRecord(attributes=None if asked.attributes is None else list(asked.attributes), to=asked.to),
        within=[None if found is None else distance_record(found) for found in plan.distances.within_levels],
    )


def distance_record(distance: Distance) -> DistanceRecord:
    """A distance; its norm is that of the mechanism."""
    return DistanceRecord(
        length=distance.length, exact=distance.exact, focused=list(distance.focused), rule=distance.rule
    )


def _attribute_record(attribute: AttributeDistance) -> AttributeRecord:
    return AttributeRecord(
        axis=attribute.axis,
        any_value=None if attribute.any_value is None else distance_record(attribute.any_value),
        other_value=None if attribute.other_value is None else distance_record(attribute.other_value),
        fixed_values=attribute.fixed_values,
        unprotected_cells=attribute.unprotected,
        stuck_cells=attribute.stuck,
        unknown_cells=attribute.unknown,
    )


# -- sampling ---------------------------------------------------------------------------------------


def guarantee_record(plan: CompiledPlan) -> GuaranteeRecord:
    """The guarantee, and how each block is drawn; convergence must have been measured."""
    observed = plan.convergence.groups if plan.convergence is not None else (None,) * len(plan.groups)
    groups = zip(plan.groups, plan.samplers, observed, strict=True)
    blocks = [_block_record(group, choice, convergence) for group, choice, convergence in groups]
    return GuaranteeRecord(
        person=person_record(plan),
        sampling=sampling_record(blocks, plan.mechanism),
        blocks=blocks,
    )


def sampling_record(blocks: Sequence[BlockRecord], mechanism: Mechanism) -> SamplingRecord:
    """All blocks together: as exact as the least exact one, with the sum of their total variations."""
    chains = [block.convergence for block in blocks if block.convergence is not None]
    distance = min(1.0, math.fsum(block.total_variation for block in blocks))
    extrapolated = math.fsum(
        block.total_variation if block.convergence is None else block.blocks * block.convergence.extrapolated
        for block in blocks
    )
    return SamplingRecord(
        exactness=max((block.exactness for block in blocks), key=WEAKEST.index, default="exact"),
        total_variation=distance,
        extrapolated=min(1.0, extrapolated) if chains else None,
        confidence=round(1 - math.fsum(1 - chain.confidence for chain in chains), 12) if chains else None,
        delta=three_digits_up(float(added_delta(distance, mechanism.unit_loss))),
    )


def form_of(record: FormRecord) -> Form:
    """The form of a block from its record."""
    return Form(record.kind, record.regions, record.totals, record.smallest, record.largest, tuple(record.shape))


def _form_record(form: Form) -> FormRecord:
    return FormRecord(
        kind=form.kind,
        regions=form.regions,
        totals=form.totals,
        smallest=form.smallest,
        largest=form.largest,
        shape=list(form.shape),
    )


def _block_record(group: BlockGroup, choice: Choice, observed: BlockConvergence | None) -> BlockRecord:
    if choice.method is None or (choice.exactness == "estimated" and observed is None):
        raise InputError("The convergence of blocks drawn by chains must be measured first. Use plan.certify().")
    return BlockRecord(
        form=_form_record(group.form),
        blocks=group.blocks,
        cells=group.cells,
        sampler=SamplerRecord(
            method=choice.method,
            acceptance=choice.acceptance,
            steps=choice.steps,
            proposals_per_step=choice.proposals_per_step,
            moves=choice.moves,
        ),
        exactness=choice.exactness,
        total_variation=choice.rounding if observed is None else min(1.0, observed.blocks * observed.upper),
        convergence=None if observed is None else convergence_record(observed),
    )


def convergence_record(observed: BlockConvergence) -> ConvergenceRecord:
    """What coupled chains showed."""
    return ConvergenceRecord(
        steps=observed.steps,
        lag=observed.lag,
        give_up=observed.give_up,
        pairs=observed.pairs,
        unmet=observed.unmet,
        meetings=list(observed.meetings),
        confidence=observed.confidence,
        predicted=observed.predicted,
        rounding=observed.rounding,
        upper=observed.upper,
        extrapolated=observed.extrapolated,
    )


def convergence_of(record: GuaranteeRecord) -> Convergence | None:
    """What coupled chains showed, from its record; limits are recomputed from the meetings."""
    groups = tuple(_block_convergence(block) for block in record.blocks)
    if not any(groups):
        return None
    rounding = math.fsum(block.total_variation for block in record.blocks if block.exactness == "rounded")
    return Convergence(groups, rounding, record.sampling.confidence or 0.0)


def _block_convergence(block: BlockRecord) -> BlockConvergence | None:
    stated = block.convergence
    if stated is None:
        return None
    if not pairs_are_plausible(stated):
        raise InputError("Meeting times in a certificate must be possible for its steps, lag and pairs.")
    return BlockConvergence(
        blocks=block.blocks,
        steps=stated.steps,
        lag=stated.lag,
        give_up=stated.give_up,
        meetings=tuple(stated.meetings),
        unmet=stated.unmet,
        confidence=stated.confidence,
        predicted=stated.predicted,
        rounding=stated.rounding,
    )


def pairs_are_plausible(stated: ConvergenceRecord) -> bool:
    """Whether pairs of chains can have met as stated."""
    return (
        min(stated.steps, stated.lag, stated.give_up - stated.lag) >= 1
        and stated.pairs >= FEWEST_PAIRS
        and all(before < after for (before, _), (after, _) in pairwise(stated.meetings))
        and stated.unmet >= 0
        and stated.give_up <= LONGEST_COUPLING
        and all(0 <= steps <= stated.give_up - stated.lag and count >= 1 for steps, count in stated.meetings)
        and sum(count for _, count in stated.meetings) + stated.unmet == stated.pairs <= MOST_PAIRS
        and CONFIDENCES[0] <= stated.confidence < 1
        and 0 <= stated.predicted <= 1
        and 0 <= stated.rounding <= 1
    )


# -- exposure and accuracy --------------------------------------------------------------------------


def exposure_record(plan: CompiledPlan, bounded: int, not_checked: int) -> ExposureRecord:
    """The cells that the kept totals disclose: pinned, bounded, or not checked."""
    domain = plan.invariants.domain
    if domain is None:
        raise AssertionError("the cells of a release have names")
    cells = map(domain.cell, plan.pinned.tolist())
    return ExposureRecord(
        pinned=[[labels[axis] for axis in domain.axes] for labels in cells],
        bounded=bounded,
        not_checked=not_checked,
    )


def accuracy_record(accuracy: Accuracy) -> AccuracyRecord:
    """The margin of error."""
    return AccuracyRecord(
        level=accuracy.level,
        typical_margin=accuracy.typical,
        simulated_draws=accuracy.draws,
        simulated_error=float(f"{accuracy.error:.3g}"),
        conservative=accuracy.basis == "conservative",
        focused_margins=[totals.accuracy.typical for totals in accuracy.levels],
    )
