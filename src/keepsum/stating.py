"""What a release states of itself beyond its parameters: all of it follows from the plan and the published totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keepsum.accuracy import Accuracy
from keepsum.axes import quoted
from keepsum.bounds import Bounds
from keepsum.certificate import (
    AccuracyRecord,
    BlockRecord,
    DeltaRecord,
    ExposureRecord,
    GuaranteeRecord,
    PersonRecord,
)
from keepsum.explaining import change_in_words
from keepsum.mechanisms import Mechanism, loss_above
from keepsum.planning import Plan

LEVEL = 0.95
LARGE_LOSS = 10


def concerns(plan: Plan, undeclared: Sequence[str], bounds: Bounds, seeded: bool) -> Iterator[str]:
    """What the curator must be told, and the certificate records."""
    yield from loss_concern(plan)
    if seeded:
        yield "The noise comes from a seed: whoever knows it can take it off again. Not for publication."
    yield "No ledger: this release is not counted against a budget, and releases of the same data add up."
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
    """What is promised, and how each block is drawn."""
    person = plan.person
    return GuaranteeRecord(
        words=plan.mechanism.promise(),
        between="any two tables with the same kept totals",
        person=PersonRecord(
            distance=person.length,
            distance_is="exact" if person.exact else "an upper bound",
            reading=f"distance {person}, so {plan.mechanism.promise_at(person)}: {change_in_words(plan)}",
        ),
        delta=[
            DeltaRecord(source="the mechanism", value=_delta(plan.mechanism)),
            DeltaRecord(source="sampling", value="0"),
        ],
        sampling="exact",
        blocks=[
            BlockRecord(
                form=group.structure, blocks=group.blocks, cells=group.cells, sampler=choice.words, guarantee="exact"
            )
            for group, choice in zip(plan.groups, plan.samplers, strict=True)
        ],
    )


def _delta(mechanism: Mechanism) -> str:
    delta = getattr(mechanism, "delta", None)
    return "0" if delta is None else str(delta)
