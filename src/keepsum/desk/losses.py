"""The privacy loss of a plan as the page states it: plainly, in numbers, and with the margins of each focus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keepsum.desk.deriving import Look
from keepsum.specs.spec import Spec
from keepsum.tables.records import subject_of

if TYPE_CHECKING:
    from keepsum.planning.plan import CompiledPlan

NAMES = {"laplace-l1": "Laplace noise", "laplace-l2": "l2 Laplace noise", "gaussian": "Gaussian noise"}


def brief_loss(plan: CompiledPlan) -> str | None:
    """Whose loss it is, and how much; None where none is stated for one person."""
    return None if plan.person is None else f"for one {subject_of(plan.records)}: {plan.stated_loss}"


def limit_of(plan: CompiledPlan) -> str:
    """How much one conclusion can depend on one person, in a plain sentence."""
    from keepsum.releasing.explain import person_statements
    from keepsum.releasing.plain_words import plain_words

    sentences = plain_words(person_statements(plan), plan.invariants.height, len(plan.pinned))
    return sentences[min(1, len(sentences) - 1)]


def loss_in_full(plan: CompiledPlan) -> str:
    """The loss of one person and of which changes, as a sentence that follows the plain one."""
    from keepsum.releasing.explain import person_statements

    stated = person_statements(plan).headline()
    return as_sentence(stated) if plan.person is None else f"That is {stated}."


def loss_lines(plan: CompiledPlan, spec: Spec) -> list[str]:
    """The loss in numbers, the noise, and the focus."""
    from keepsum.releasing.explain import person_statements

    noise = NAMES[plan.mechanism.kind]
    stated = noise if plan.person is not None else f"{noise}, {plan.guarantee.words}"
    lines = [person_statements(plan).headline(), stated]
    focus = spec.mechanism.focus or {}
    if focus:
        weights = [f"totals of {key or 'the whole table'} {weight}" for key, weight in focus.items()]
        is_shared = not spec.mechanism.per_unit
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
