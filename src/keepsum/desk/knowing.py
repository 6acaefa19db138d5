"""What a curator must say to know before a release is made: that it protects little, or that it has a large delta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepsum.specs.spec import Spec

if TYPE_CHECKING:
    from keepsum.planning.plan import CompiledPlan

LOSS, DELTA = "loss", "delta"


@dataclass(frozen=True)
class ToKnow:
    """A sentence about a release, and the words beside the tick that says that one knows it."""

    key: str
    sentence: str
    words: str


def to_know(plan: CompiledPlan, spec: Spec) -> list[ToKnow]:
    """What must be ticked before a release by this plan."""
    from keepsum.releasing.statements import loss_concern

    found = [
        ToKnow(LOSS, sentence, "I know that this gives little protection.")
        for sentence in loss_concern(plan.guarantee, plan.records)
    ]
    if spec.output.accept_delta is not None:
        sentence = f"What sampling adds to delta was accepted: up to {spec.output.accept_delta} for one person."
        found.append(ToKnow(DELTA, sentence, "I know that the limit may not hold, with this probability."))
    return found
