"""The privacy loss of a plan as the page states it: plainly, in numbers, and with the margins of each focus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keepsum.desk.deriving import Look
from keepsum.specs.spec import Spec

if TYPE_CHECKING:
    from keepsum.planning.plan import CompiledPlan

NAMES = {"laplace-l1": "Laplace noise", "laplace-l2": "l2 Laplace noise", "gaussian": "Gaussian noise"}


def loss_of(plan: CompiledPlan) -> str:
    """The loss of one person, or of one record."""
    return str(plan.guarantee.mechanism.loss(plan.guarantee.person))


def limit_of(plan: CompiledPlan) -> str:
    """How much one conclusion can depend on one person, in a plain sentence."""
    from keepsum.releasing.explain import person_statements
    from keepsum.releasing.plain_words import plain_words

    sentences = plain_words(person_statements(plan), plan.invariants.height, len(plan.pinned))
    return sentences[min(1, len(sentences) - 1)]


def loss_lines(plan: CompiledPlan, spec: Spec) -> list[str]:
    """The loss in numbers, the noise, and the focus."""
    from keepsum.releasing.explain import person_statements

    noise = NAMES[plan.mechanism.kind]
    lines = [person_statements(plan).headline(), f"{noise}, {plan.guarantee.words}"]
    focus = spec.mechanism.focus or {}
    if focus:
        weights = [f"totals of {key or 'the whole table'} {weight}" for key, weight in focus.items()]
        is_shared = bool(spec.mechanism.per_person) or plan.mechanism.kind == "gaussian"
        cells = [f"cells {spec.mechanism.cell_share or 1}"] if is_shared else []
        lines.append(f"Focus, in {'shares of the loss' if is_shared else 'epsilon'}: {', '.join([*weights, *cells])}")
    return [as_sentence(line) for line in lines]


def as_sentence(text: str) -> str:
    """A phrase with a capital and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def level_margins(look: Look) -> list[dict[str, Any]]:
    """The typical margin of error of the totals of each focus."""
    if look.measured is None:
        return []
    return [
        {"title": " × ".join(level.axes) or "the whole table", "typical": level.accuracy.typical}
        for level in look.measured.accuracy.levels
    ]
