"""What stands in the way of a release, each with ways out of it as buttons."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from keepsum.desk.deriving import PLAN, READY, Look
from keepsum.specs.proposals import Proposal, accepted, proposals_for
from keepsum.specs.spec import Spec
from keepsum.tables.records import subject_of

replace = msgspec.structs.replace
_DELTA = re.compile(r"(?:accept_delta=|will not be below )([0-9.]+(?:e-?[0-9]+)?)")


@dataclass(frozen=True)
class Fix:
    """A button, and what it changes."""

    label: str
    change: Callable[[Spec], Spec]


def fixes_for(look: Look, spec: Spec) -> list[Fix]:
    """The ways out of what stops the draft, or of what is unwise about it."""
    problem = look.problem
    if problem is not None and problem.finding is not None:
        rows = {axis: _list(labels) for axis, labels in (spec.source.drop_rows or {}).items()}
        return [_of(proposal) for proposal in proposals_for(problem.finding, rows)]
    if problem is not None and problem.stage == PLAN and "with per_unit" in problem.message:
        unit = replace(spec.mechanism, per_unit=True, focus=None, cell_share=None)
        return [Fix("Make epsilon the loss per unit of distance", lambda spec: replace(spec, mechanism=unit))]
    if problem is not None and problem.stage == READY:
        return [*_about_pinned(look, spec), *_about_delta(problem.message, spec)]
    return _about_loss(look, spec)


def _list(labels: object) -> list[str | int]:
    return labels if isinstance(labels, list) else [labels]  # type: ignore[list-item]


def _of(proposal: Proposal) -> Fix:
    return Fix(proposal.action, lambda spec: accepted(spec, proposal))


def _about_pinned(look: Look, spec: Spec) -> list[Fix]:
    """Pinned cells: accept them, or keep fewer totals, of which the last margin is the first to go."""
    if look.plan is None or not len(look.plan.pinned) or spec.output.accept_pinned:
        return []
    count = len(look.plan.pinned)
    fixes = [
        Fix(
            f"Publish {'this cell' if count == 1 else f'these {count:,} cells'} without noise",
            lambda spec: replace(spec, output=replace(spec.output, accept_pinned=["all"])),
        )
    ]
    for margin in spec.keep.margins or []:
        axes = margin if isinstance(margin, str) else " × ".join(margin)
        fixes.append(Fix(f"Do not keep {axes}", lambda spec, margin=margin: _without(spec, margin)))  # type: ignore[misc]
    return fixes if len(fixes) > 2 or spec.keep.total or spec.keep.subset else fixes[:1]


def _without(spec: Spec, margin: str | list[str]) -> Spec:
    left = [one for one in spec.keep.margins or [] if one != margin]
    return replace(spec, keep=replace(spec.keep, margins=left or None))


def _about_delta(message: str, spec: Spec) -> list[Fix]:
    """A delta from sampling: accept it, or choose noise that is exact under nearly all totals."""
    amount = _DELTA.search(message)
    if amount is None:
        return []
    accept = Fix(
        f"Accept delta {amount[1]}", lambda spec: replace(spec, output=replace(spec.output, accept_delta=amount[1]))
    )
    gaussian = replace(spec.mechanism, kind="gaussian", delta="1e-6", norm=None, focus=None, cell_share=None)
    exact = Fix("Use Gaussian noise, exact under nearly all totals", lambda spec: replace(spec, mechanism=gaussian))
    return [exact, accept] if spec.mechanism.kind != "gaussian" else [accept]


def _about_loss(look: Look, spec: Spec) -> list[Fix]:
    """A loss so large that it protects little: make epsilon 1 the loss of one person, or record, if that is stated."""
    from keepsum.releasing.statements import loss_concern

    if look.plan is None or not loss_concern(look.plan.guarantee, look.plan.records):
        return []

    is_stated = look.plan.person is not None
    epsilon = "1" if is_stated else "0.1"

    def smaller(spec: Spec) -> Spec:
        return replace(spec, mechanism=replace(spec.mechanism, epsilon=epsilon, per_unit=not is_stated or None))

    whose = f"of one {subject_of(look.plan.records)}" if is_stated else "per unit of distance"
    return [Fix(f"Make epsilon {epsilon} the loss {whose}", smaller)]
