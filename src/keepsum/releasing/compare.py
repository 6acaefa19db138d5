"""A plan's mechanism compared with the others, at the same per-person loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from keepsum.accuracy.deviation import Deviation, cell_deviation
from keepsum.errors import InputError, PlanError
from keepsum.planning.describe import describe_obstacle
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.privacy import Gaussian, Laplace
from keepsum.privacy.mechanism import Kind, Request
from keepsum.privacy.neighbours import Neighbours
from keepsum.privacy.numbers import shown
from keepsum.privacy.profile import smallest_epsilon
from keepsum.releasing.statements import per_unit
from keepsum.tables.invariants import Margin

DELTA = Fraction(1, 10**6)  # for Gaussian noise compared with a plan that has no delta
NAMES: dict[Kind, str] = {"laplace-l1": "l1 Laplace", "laplace-l2": "l2 Laplace", "gaussian": "Gaussian"}


@dataclass(frozen=True)
class Alternative:
    """A mechanism at the same per-person loss, and the standard deviation of a typical cell under it."""

    kind: Kind
    plan: CompiledPlan
    deviation: Deviation

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{NAMES[self.kind]} with this focus" if self.plan.mechanism.focus else NAMES[self.kind]

    @property
    def exact(self) -> bool:
        """Whether its noise is drawn exactly."""
        return self.plan.guarantee.sampling == "exact"


def compare(plan: CompiledPlan) -> list[str]:
    """The standard deviation of a typical cell under every mechanism, the smallest, and the exact alternatives."""
    if plan.asked_distance is None:
        return [f"not compared, as no {per_unit(plan.records)} loss is stated"]
    listed = alternatives(plan)
    if not listed:
        return ["not known"]
    epsilon, delta = _person(plan)
    figures = ", ".join(f"{_name(plan, o)} {o.deviation}{_with_delta(o, delta)}" for o in listed)
    least = _name(plan, min(listed, key=lambda other: other.deviation.value))
    lines = [
        f"standard deviation per cell at {per_unit(plan.records)} epsilon {float(epsilon):.4g}: {figures}; "
        f"smallest with {least}"
    ]
    if plan.mechanism.focus:
        lines.append("A focus adds noise to cells, and takes it from the totals that it is on.")
    return lines + exact_instead(plan, listed)


def _name(plan: CompiledPlan, other: Alternative) -> str:
    """What a mechanism is called beside the plan's own, which may be the same noise with a focus."""
    without = plan.mechanism.focus and other.kind == plan.mechanism.kind and not other.plan.mechanism.focus
    return f"{other.name} without focus" if without else other.name


def _with_delta(other: Alternative, delta: Fraction) -> str:
    return f" (delta {_short_text(delta)})" if other.kind == "gaussian" else ""


def exact_instead(plan: CompiledPlan, alternatives_known: Sequence[Alternative] | None = None) -> list[str]:
    """For a plan whose sampling is rounded or estimated: which noise is exact at the same per-person loss."""
    if plan.guarantee.sampling == "exact" or plan.asked_distance is None:
        return []
    if plan.mechanism.loss(plan.asked_distance).excess is not None:
        return []  # nothing is recommended at a loss that protects little
    listed = alternatives(plan) if alternatives_known is None else alternatives_known
    exact = [f"{_call(plan, o)} (standard deviation {o.deviation})" for o in listed if o.exact]
    current = next((f"; the current one is {o.deviation}" for o in listed if o.plan is plan), "")
    if not exact:
        return [f"No other noise is exact under these totals.{_two_margins(plan)}"]
    return [f"Exact at the same {per_unit(plan.records)} epsilon: {', or '.join(exact)}{current}."]


def _two_margins(plan: CompiledPlan) -> str:
    """What is exact instead of three margins or more: l1 Laplace noise under two, however many cells there are."""
    parts = plan.invariants.parts
    several = sum(isinstance(part, Margin) and bool(part.axes) for part in parts) > 2
    if not several or plan.obstacle is not None:  # which says what to keep
        return ""
    return " Two margins usually are: keep two of these, or join some of them."


def in_the_way(plan: CompiledPlan) -> list[str]:
    """For a plan of l1 Laplace noise that is not exact: the margins that stand in the way, and what to keep instead."""
    return [] if plan.obstacle is None else [describe_obstacle(plan.obstacle)]


def _call(plan: CompiledPlan, other: Alternative) -> str:
    """A mechanism and the call that requests it."""
    epsilon, delta = _person(plan)
    neighbours = plan.neighbours or Neighbours()
    arguments = [f"{float(epsilon):.4g}"]
    if other.kind == "gaussian":
        request, arguments = "Gaussian", [*arguments, f"delta={_short_text(delta)}"]
    else:
        request, arguments = "Laplace", [*arguments, f"norm={other.plan.mechanism.norm!r}"]
    if neighbours.attributes is not None:
        arguments.append(f"attributes={list(neighbours.attributes)!r}")
    if neighbours.to != "any value":
        arguments.append(f"to={neighbours.to!r}")
    return f"{other.name} with ks.{request}({', '.join(arguments)})"


def alternatives(plan: CompiledPlan) -> list[Alternative]:
    """Every mechanism at this plan's per-person loss, where it can be computed; none if no such loss is stated."""
    if plan.asked_distance is None:
        return []
    epsilon, delta = _person(plan)
    cell = _typical_cell(plan)
    listed: list[Alternative] = []
    requests = _requests(plan.neighbours or Neighbours(), epsilon, delta)
    compared: list[tuple[Kind, bool]] = [(kind, kind == plan.mechanism.kind) for kind in requests]
    if plan.mechanism.focus:
        compared.append((plan.mechanism.kind, False))  # the same noise without a focus
    for kind, is_own in compared:
        try:
            other = plan
            if not is_own:
                known = [plan, *(alternative.plan for alternative in listed)]
                other = compile_plan(plan.invariants, requests[kind](), plan.records, known)
            deviation = cell_deviation(other.blocks, cell)
        except (InputError, PlanError):  # a loss outside the range of the mechanism
            continue
        if deviation is not None:
            listed.append(Alternative(kind, other, deviation))
    return listed


def _person(plan: CompiledPlan) -> tuple[Fraction, Fraction]:
    """The per-person epsilon and delta of this plan, to compare at."""
    if plan.asked_distance is None:
        raise AssertionError("a loss is stated for one person")
    loss = plan.mechanism.loss(plan.asked_distance)
    if loss.rho is not None:
        return smallest_epsilon(loss.rho, DELTA), DELTA
    return loss.epsilon or Fraction(0), DELTA if loss.delta is None else min(Fraction(1, 2), loss.delta)


def _requests(neighbours: Neighbours, epsilon: Fraction, delta: Fraction) -> dict[Kind, Callable[[], Request]]:
    """Every mechanism at that per-person loss."""
    attributes, to, loss = neighbours.attributes, neighbours.to, _short(epsilon)
    return {
        "laplace-l1": lambda: Laplace(loss, "l1", attributes=attributes, to=to),
        "laplace-l2": lambda: Laplace(loss, "l2", attributes=attributes, to=to),
        "gaussian": lambda: Gaussian(loss, _short(delta), attributes=attributes, to=to),
    }


def _short(number: Fraction) -> Fraction:
    return Fraction(f"{float(number):.9g}")


def _short_text(number: Fraction) -> str:
    return shown(Fraction(f"{float(number):.2g}"))


def _typical_cell(plan: CompiledPlan) -> int:
    """A cell of the largest group."""
    largest = max(range(len(plan.groups)), key=lambda k: plan.groups[k].cells)
    return int(plan.samplers[largest].cells[0])
