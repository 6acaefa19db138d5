"""What a release states of itself beyond its parameters: all of it follows from the plan and the published totals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from keepsum.accuracy.disclosure import Bounds
from keepsum.accuracy.margins import Accuracy
from keepsum.convergence.observe import BlockConvergence
from keepsum.errors import InputError
from keepsum.planning.describe import describe_choice, describe_form
from keepsum.planning.distances import AttributeDistance
from keepsum.planning.groups import BlockGroup
from keepsum.planning.plan import Plan
from keepsum.planning.selection.choice import Choice
from keepsum.privacy.mechanisms import Mechanism, large_loss
from keepsum.releasing.certificate import (
    AccuracyRecord,
    AttributeRecord,
    BlockRecord,
    DeltaRecord,
    DomainRecord,
    ExposureRecord,
    GuaranteeRecord,
    PersonRecord,
    PromiseRecord,
)
from keepsum.releasing.codec import convergence_record
from keepsum.releasing.explain import attribute_reading, person_reading, promise_reading
from keepsum.tables.axes import quoted

LEVEL = 0.95


def concerns(plan: Plan, domain: DomainRecord, bounds: Bounds, seeded: bool) -> Iterator[str]:
    """What the curator must be told, and the certificate records."""
    yield from loss_concern(plan)
    if seeded:
        yield "The noise comes from a seed: whoever knows it can take it off again. Not for publication."
    yield "No ledger: this release is not counted against a budget, and releases of the same data add up."
    if plan.guarantee.sampling == "estimated":
        yield from chain_concerns(plan)
    if domain.taken_from_data:
        axes = quoted(domain.taken_from_data)
        yield f"The categories of {axes} were taken from the data, so the list is itself published."
    if domain.keeps_file_order:
        yield "Rows come in the order of the file, which is declared public; whatever follows from it is not protected."
    if len(plan.pinned):
        count = len(plan.pinned)
        yield f"{count:,} pinned cell{' is' if count == 1 else 's are'} published without noise, as accepted."
    if bounds.not_checked:
        yield f"Whether the kept totals bound cells closely was not checked for {bounds.not_checked:,} cells."


def loss_concern(plan: Plan) -> list[str]:
    """A sentence, if the loss of one person is so large that it protects little."""
    too_much = large_loss(plan.mechanism, plan.person)
    return [] if too_much is None else [f"The privacy loss of one person is {too_much}: that protects little."]


def chain_concerns(plan: Plan) -> Iterator[str]:
    """What must be known of noise that is drawn by chains."""
    yield f"Some noise is drawn by chains, so the guarantee is an estimate. {plan.guarantee.sampling_words}"
    unmet = sum(group.unmet for group in plan.certification.chains) if plan.certification is not None else 0
    if unmet:
        yield f"{unmet:,} pairs of chains had not met when they were given up, so nothing is shown of their blocks."


def exposure_record(plan: Plan, bounds: Bounds) -> ExposureRecord:
    """What the kept totals give away."""
    return ExposureRecord(
        pinned=[plan.invariants.cell_name(cell) for cell in plan.pinned.tolist()],
        bounded=len(bounds.cells),
        not_checked=bounds.not_checked,
    )


def accuracy_record(accuracy: Accuracy) -> AccuracyRecord:
    """The margin of error."""
    return AccuracyRecord(level=accuracy.level, typical_margin=accuracy.typical, simulated_draws=accuracy.draws)


def guarantee_record(plan: Plan) -> GuaranteeRecord:
    """What is promised, and how each block is drawn; chains must have been certified."""
    guarantee = plan.guarantee
    if guarantee.sampling == "no sampler" or (guarantee.sampling == "estimated" and guarantee.error is None):
        raise InputError("Blocks that are drawn by chains must say what pairs of chains showed, these do not.")
    shown = plan.certification.groups if plan.certification is not None else (None,) * len(plan.groups)
    return GuaranteeRecord(
        words=guarantee.words,
        between="any two tables with the same kept totals",
        person=_person_record(plan),
        delta=[
            DeltaRecord(source="the mechanism", value=_delta(plan.mechanism)),
            DeltaRecord(source="sampling", value=str(guarantee.delta)),
        ],
        sampling=guarantee.sampling,
        blocks=[
            _block_record(group, choice, own)
            for group, choice, own in zip(plan.groups, plan.samplers, shown, strict=True)
        ],
    )


def _person_record(plan: Plan) -> PersonRecord:
    promise = plan.promise
    return PersonRecord(
        distance=plan.person.length,
        distance_is="exact" if plan.person.exact else "an upper bound",
        reading=person_reading(plan),
        attributes=[_attribute_record(plan, attribute) for attribute in plan.attributes],
        promise=None
        if promise is None
        else PromiseRecord(
            attributes=None if promise.attributes is None else list(promise.attributes),
            to=promise.to,
            reading=promise_reading(plan),
        ),
    )


def _attribute_record(plan: Plan, attribute: AttributeDistance) -> AttributeRecord:
    distances = [distance for distance in (attribute.any_value, attribute.other_value) if distance is not None]
    return AttributeRecord(
        axis=attribute.axis,
        any_value=None if attribute.any_value is None else attribute.any_value.length,
        other_value=None if attribute.other_value is None else attribute.other_value.length,
        distances_are="exact" if all(distance.exact for distance in distances) else "upper bounds",
        fixed_values=attribute.fixed_values,
        unprotected_cells=attribute.unprotected,
        stuck_cells=attribute.stuck,
        unknown_cells=attribute.unknown,
        reading=attribute_reading(plan, attribute),
    )


def _block_record(group: BlockGroup, choice: Choice, shown: BlockConvergence | None) -> BlockRecord:
    return BlockRecord(
        form=describe_form(group.form),
        blocks=group.blocks,
        cells=group.cells,
        sampler=describe_choice(choice),
        guarantee=choice.exactness,
        total_variation=choice.rounding if shown is None else min(1.0, shown.blocks * shown.upper),
        convergence=None if shown is None else convergence_record(_rounded_as_said(choice, shown)),
    )


def _rounded_as_said(choice: Choice, shown: BlockConvergence) -> BlockConvergence:
    """With the rounding that a certificate says if it is about ours: a pilot may have found other steps elsewhere."""
    own = choice.chain.rounding if choice.chain is not None else 0.0
    return shown if own / 2 <= shown.rounding <= 2 * own else replace(shown, rounding=own)


def _delta(mechanism: Mechanism) -> str:
    delta = getattr(mechanism, "delta", None)
    return "0" if delta is None else str(delta)
