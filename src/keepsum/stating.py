"""What a release states of itself beyond its parameters: all of it follows from the plan and the published totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keepsum.accuracy import Accuracy
from keepsum.axes import quoted
from keepsum.bounds import Bounds
from keepsum.certificate import (
    AccuracyRecord,
    BlockRecord,
    ConvergenceRecord,
    DeltaRecord,
    ExposureRecord,
    GuaranteeRecord,
    PersonRecord,
)
from keepsum.certifying import Certification, Convergence
from keepsum.choosing import Choice
from keepsum.errors import InputError
from keepsum.explaining import change_in_words
from keepsum.mechanisms import Mechanism, loss_above
from keepsum.planning import BlockGroup, Plan

LEVEL = 0.95
LARGE_LOSS = 10


def concerns(plan: Plan, undeclared: Sequence[str], bounds: Bounds, seeded: bool) -> Iterator[str]:
    """What the curator must be told, and the certificate records."""
    yield from loss_concern(plan)
    if seeded:
        yield "The noise comes from a seed: whoever knows it can take it off again. Not for publication."
    yield "No ledger: this release is not counted against a budget, and releases of the same data add up."
    if plan.guarantee.sampling == "estimated":
        yield from chain_concerns(plan)
    if undeclared:
        yield f"The categories of {quoted(undeclared)} were taken from the data, so the list is itself published."
    if len(plan.pinned):
        yield f"{len(plan.pinned):,} pinned cells are published without noise, as accepted."
    if bounds.not_checked:
        yield f"Whether the kept totals bound cells closely was not checked for {bounds.not_checked:,} cells."


def loss_concern(plan: Plan) -> list[str]:
    """A sentence, if the loss of one person is so large that it protects little."""
    if not loss_above(plan.mechanism, plan.person, LARGE_LOSS):
        return []
    loss = plan.mechanism.promise_at(plan.person)
    return [f"The privacy loss of one person is {loss}, above {LARGE_LOSS}: that protects little."]


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
    guarantee, person = plan.guarantee, plan.person
    if guarantee.sampling == "no sampler" or (guarantee.sampling == "estimated" and guarantee.error is None):
        raise AssertionError("a release has samplers, and its chains are certified")
    shown = plan.certification.groups if plan.certification is not None else (None,) * len(plan.groups)
    return GuaranteeRecord(
        words=guarantee.words,
        between="any two tables with the same kept totals",
        person=PersonRecord(
            distance=person.length,
            distance_is="exact" if person.exact else "an upper bound",
            reading=f"distance {person}, so {guarantee.person_words}: {change_in_words(plan)}",
        ),
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


def _block_record(group: BlockGroup, choice: Choice, shown: Convergence | None) -> BlockRecord:
    return BlockRecord(
        form=group.structure,
        blocks=group.blocks,
        cells=group.cells,
        sampler=choice.words if shown is None else shown.sampler,
        guarantee=choice.guarantee,
        total_variation=choice.rounding if shown is None else min(1.0, shown.blocks * shown.upper),
        convergence=None if shown is None else convergence_record(shown),
    )


def convergence_record(shown: Convergence) -> ConvergenceRecord:
    """What pairs of chains showed, in machine form."""
    return ConvergenceRecord(
        steps=shown.steps,
        lag=shown.lag,
        most=shown.most,
        pairs=shown.pairs,
        unmet=shown.unmet,
        meetings=list(shown.meetings),
        confidence=shown.confidence,
        upper=shown.upper,
        extrapolated=shown.extrapolated,
    )


def certification_of(record: GuaranteeRecord) -> Certification | None:
    """What a certificate says that pairs of chains showed; its limits are worked out again from the meetings."""
    groups = tuple(_convergence_of(block) for block in record.blocks)
    chains = [group for group in groups if group is not None]
    if not chains:
        return None
    own = {group.confidence for group in chains}
    if len(own) != 1:
        raise InputError("The limits of a certificate must have one confidence, these have several.")
    rounding = sum(block.total_variation for block in record.blocks if block.guarantee == "rounded")
    return Certification(groups, rounding, round(1 - len(chains) * (1 - own.pop()), 12))


def _convergence_of(block: BlockRecord) -> Convergence | None:
    said = block.convergence
    if said is None:
        return None
    if min(said.steps, said.lag, said.most - said.lag, len(said.meetings) + said.unmet) < 1 or said.unmet < 0:
        raise InputError("Meetings of chains in a certificate must have steps, a lag and pairs.")
    if not 0 < said.confidence < 1 or any(steps < 1 or count < 1 for steps, count in said.meetings):
        raise InputError("Meetings of chains in a certificate must be steps and numbers of pairs from 1.")
    return Convergence(
        form=block.form,
        sampler=block.sampler,
        blocks=block.blocks,
        steps=said.steps,
        lag=said.lag,
        most=said.most,
        meetings=tuple(said.meetings),
        unmet=said.unmet,
        confidence=said.confidence,
    )


def _delta(mechanism: Mechanism) -> str:
    delta = getattr(mechanism, "delta", None)
    return "0" if delta is None else str(delta)
