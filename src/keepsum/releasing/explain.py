"""The plan in sentences, for a terminal and a notebook, beside the other kinds of noise at the same loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from keepsum._saying import Text, the
from keepsum._text import how_many
from keepsum.accuracy.sizes import Deviation, cell_deviation
from keepsum.errors import InputError, PlanError
from keepsum.lattice.structure import FREE
from keepsum.planning.describe import describe_choice, describe_form, describe_obstacle
from keepsum.planning.groups import BlockGroup
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.planning.selection.choice import describe_duration, seconds_per_draw
from keepsum.privacy import Gaussian, Laplace
from keepsum.privacy.distance import Distance, Neighbours
from keepsum.privacy.mechanism import Kind, Request
from keepsum.privacy.numbers import shown
from keepsum.privacy.profile import crossing, largest_rho, rho_of_epsilon, smallest_epsilon
from keepsum.releasing.codec import person_record
from keepsum.releasing.wording import (
    NOT_PROTECTED,
    TITLE,
    PersonStatements,
    as_html,
    as_text,
    guarantee_lines,
    noise,
    per_unit,
    plain_words,
    totals_of,
    unit_topic,
)
from keepsum.tables.invariants import Margin
from keepsum.tables.origins import changes_of

# A plan's mechanism compared with the others, at the same per-person loss.

DELTA = Fraction(1, 10**6)  # for Gaussian noise compared with a plan that has no delta
FEW_STEPS = 2.0  # a narrower noise of integers is not about 1/epsilon wide
SMALLEST, LARGEST = 0.001, 10.0  # epsilons among which Gaussian noise is compared with Laplace noise
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
    if plan.mechanism.kind == "own":
        return ["not compared, as the loss is a claim"]
    listed = alternatives(plan)
    if not listed:
        return ["not known"]
    epsilon, delta = _person_loss(plan)
    figures = ", ".join(f"{_name(plan, o)} {o.deviation}{_with_delta(o, delta)}" for o in listed)
    least = _name(plan, min(listed, key=lambda other: other.deviation.value))
    lines = [
        f"standard deviation per cell at {per_unit(plan.records)} epsilon {float(epsilon):.4g}: {figures}; "
        f"smallest with {least}",
        *_crossing(plan, listed),
    ]
    if plan.mechanism.focus:
        lines.append("A focus adds noise to cells, and takes it from the totals that it is on.")
    return lines + exact_instead(plan, listed)


def _crossing(plan: CompiledPlan, listed: Sequence[Alternative]) -> list[str]:
    """Where Gaussian noise is smaller than Laplace noise: below which epsilon, and from how many tables on.

    The standard deviation of wide Laplace noise is a constant over epsilon, that of Gaussian noise a constant times
    sigma. Both constants are taken from the noise that is compared, without focus; if that is narrow, from noise of a
    smaller epsilon. Of k tables that share a loss each has epsilon/k, or rho/k: widths grow by k, and by its root.
    """
    epsilon, delta = _person_loss(plan)
    plain = [other for other in listed if not other.plan.mechanism.focus]
    laplace = min((o for o in plain if o.kind != "gaussian"), key=lambda o: o.deviation.value, default=None)
    gaussian = next((o for o in plain if o.kind == "gaussian"), None)
    if laplace is None or gaussian is None or not epsilon:
        return []
    reference = epsilon
    if (width := laplace.deviation.value) < FEW_STEPS:
        reference *= Fraction(max(width, FEW_STEPS / 10) / FEW_STEPS) / 2
        others = [other.plan for other in listed]
        wider = [_alternative(plan, other.kind, reference, delta, others) for other in (laplace, gaussian)]
        if None in wider:
            return []
        laplace, gaussian = (other for other in wider if other is not None)
    distance = gaussian.plan.asked_distance
    if distance is None or not gaussian.deviation.shown:
        return []
    steps = float(gaussian.plan.mechanism.scale) / math.sqrt(distance.length)
    scale = float(reference) * laplace.deviation.shown / gaussian.deviation.shown * steps
    below = crossing(scale, delta, SMALLEST, LARGEST)
    rhos = largest_rho(_short(epsilon), _short(delta)), rho_of_epsilon(_short(epsilon), _short(delta))
    together, in_ledger = (math.floor(float(epsilon) ** 2 / (2 * float(rho) * scale**2)) + 1 for rho in rhos)
    begin = f"Gaussian noise (delta {_short_text(delta)}) is smaller than {NAMES[laplace.kind]} noise"
    person = per_unit(plan.records)
    one = f" below a {person} epsilon of about {below:.1g}" if SMALLEST < below < LARGEST else ""
    if together <= 1:
        return [f"{begin}{one or f' up to a {person} epsilon of {LARGEST:g} at least'}."]
    more = f" ({in_ledger:,} in a ledger)" if in_ledger > together else ""
    return [f"{begin}{f'{one}, or' if one else ''} if {together:,} tables or more like this share that epsilon{more}."]


def _name(plan: CompiledPlan, other: Alternative) -> str:
    """What a mechanism is called beside the plan's own, which may be the same noise with a focus."""
    without = plan.mechanism.focus and other.kind == plan.mechanism.kind and not other.plan.mechanism.focus
    return f"{other.name} without focus" if without else other.name


def _with_delta(other: Alternative, delta: Fraction) -> str:
    return f" (delta {_short_text(delta)})" if other.kind == "gaussian" else ""


def exact_instead(plan: CompiledPlan, alternatives_known: Sequence[Alternative] | None = None) -> list[str]:
    """For a plan whose sampling is rounded or estimated: which noise is exact at the same per-person loss."""
    if plan.mechanism.kind == "own" or plan.guarantee.sampling == "exact" or plan.asked_distance is None:
        return []
    if plan.mechanism.loss(plan.asked_distance).excess is not None:
        return []  # nothing is recommended at a loss that protects little
    listed = alternatives(plan) if alternatives_known is None else alternatives_known
    exact = [f"{_call(plan, o)} (standard deviation {o.deviation})" for o in listed if o.exact]
    current = next((f"; the current one is {o.deviation}" for o in listed if o.plan is plan), "")
    if not exact:
        return [f"No other noise is exact under these totals.{_two_margins(plan)}"]
    return [Text(f"Exact at the same {per_unit(plan.records)} epsilon: {', or '.join(exact)}{current}.")]


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
    epsilon, delta = _person_loss(plan)
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
    call = f"ks.{request}({', '.join(arguments)})"
    return f"{other.name} with {the.noise(call)}"


def alternatives(plan: CompiledPlan) -> list[Alternative]:
    """Every mechanism at this plan's per-person loss, where it can be computed; none if no such loss is stated."""
    if plan.asked_distance is None:
        return []
    epsilon, delta = _person_loss(plan)
    compared: list[tuple[Kind, bool]] = [(kind, kind == plan.mechanism.kind) for kind in NAMES]
    if plan.mechanism.focus:
        compared.append((plan.mechanism.kind, False))  # the same noise without a focus
    listed: list[Alternative] = []
    for kind, is_own in compared:
        if is_own:
            deviation = cell_deviation(plan.blocks, _typical_cell(plan))
            other = None if deviation is None else Alternative(kind, plan, deviation)
        else:
            other = _alternative(plan, kind, epsilon, delta, [plan, *(each.plan for each in listed)])
        if other is not None:
            listed.append(other)
    return listed


def _alternative(
    plan: CompiledPlan, kind: Kind, epsilon: Fraction, delta: Fraction, known: Sequence[CompiledPlan]
) -> Alternative | None:
    """A mechanism at this per-person loss; None where the loss is out of its range, or its width not known."""
    request = _requests(plan.neighbours or Neighbours(), epsilon, delta)[kind]
    try:
        other = compile_plan(plan.invariants, request(), plan.records, known)
        deviation = cell_deviation(other.blocks, _typical_cell(plan))
    except (InputError, PlanError):
        return None
    return None if deviation is None else Alternative(kind, other, deviation)


def _person_loss(plan: CompiledPlan) -> tuple[Fraction, Fraction]:
    if plan.asked_distance is None:
        raise AssertionError("a loss is stated for one person")
    loss = plan.mechanism.loss(plan.asked_distance)
    if loss.rho is not None:
        return smallest_epsilon(loss.rho, DELTA), DELTA
    return loss.epsilon or Fraction(0), DELTA if loss.delta is None else min(Fraction(1, 2), loss.delta)


def _requests(neighbours: Neighbours, epsilon: Fraction, delta: Fraction) -> dict[Kind, Callable[[], Request]]:
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
    largest = max(range(len(plan.groups)), key=lambda k: plan.groups[k].cells)
    return int(plan.samplers[largest].cells[0])


# The plan in sentences: plain text for a terminal, HTML for a notebook.

SHOWN_CELLS = 8
SHOWN_BLOCKS = 10


def explain(plan: CompiledPlan, details: bool = False) -> str:
    """The plan as text, one heading per topic."""
    return as_text(topics(plan, details))


def explain_html(plan: CompiledPlan) -> str:
    """The plan as a table, one row per topic."""
    return as_html(topics(plan))


def topics(plan: CompiledPlan, details: bool = False) -> list[tuple[str, list[str]]]:
    """A plan in sections: titles, and the lines below each; what is per unit of distance, and formulas, as details."""
    statements = person_statements(plan)
    return [
        *unit_topic(plan.records),
        ("Table", [_table(plan)]),
        ("Kept exactly", _kept(plan)),
        (statements.title, _person(plan)),
        (TITLE, plain_words(statements, plan.invariants.height, len(plan.pinned))),
        ("Pinned cells", _pinned(plan)),
        *(_details(plan) if details else []),
    ]


def _details(plan: CompiledPlan) -> list[tuple[str, list[str]]]:
    """The noise, how it is drawn, the loss per unit of distance, and what else there would be."""
    alone = _alone(plan)
    return [
        ("Noise", _noise(plan)),
        ("Blocks", _blocks(plan)),
        ("Guarantee", guarantee_lines(plan.guarantee)),
        *([("More or fewer", alone)] if alone else []),
        ("Other noise", compare(plan)),
    ]


def _table(plan: CompiledPlan) -> str:
    domain = plan.invariants.domain
    return how_many(plan.size, "cell") if domain is None else repr(domain)[len("Domain(") : -1]


def _kept(plan: CompiledPlan) -> list[str]:
    height, rank = plan.invariants.height, plan.structure.rank
    if not height:
        return ["nothing" if plan.mechanism.focus else "nothing: every cell has independent noise"]
    count = f"{how_many(height, 'total')}{totals_of(plan.records)}"
    independent = "" if rank == height else f", {rank:,} of them independent"
    return [plan.invariants.describe(), f"{count}{independent}, {NOT_PROTECTED[height == 1]}"]


def _noise(plan: CompiledPlan) -> list[str]:
    dimension = plan.size - plan.structure.rank
    mechanism = repr(plan.mechanism)
    with_sigma = plan.mechanism.kind == "gaussian" and "sigma=" not in mechanism
    return [
        f"{mechanism}, sigma {float(plan.mechanism.scale):.6g}" if with_sigma else mechanism,
        f"{noise(plan.mechanism)} ({how_many(dimension, 'dimension')})",
    ]


def _blocks(plan: CompiledPlan) -> list[str]:
    groups = sorted(zip(plan.groups, plan.samplers, strict=True), key=lambda pair: -pair[0].cells)
    lines = [line for group, choice in groups[:SHOWN_BLOCKS] for line in _block(group, describe_choice(choice))]
    rest = groups[SHOWN_BLOCKS:]
    if rest:
        cells = sum(group.cells for group, _ in rest)
        lines.append(f"and {len(rest):,} more forms of blocks, {cells:,} cells in all")
    seconds = seconds_per_draw(plan.samplers)
    return lines if seconds is None else [*lines, f"one draw takes {describe_duration(seconds)} (estimate, one core)"]


def _block(group: BlockGroup, sampling: str) -> list[str]:
    many = group.blocks > 1 and group.codimension > 0
    form = describe_form(group.form)
    numbers = [
        how_many(group.cells, "cell"),
        f"dimension {group.dimension:,}, codimension {group.codimension:,}",
        f"smallest change through a cell {group.distance}",
    ]
    return [
        f"{group.blocks:,} blocks, each: {form}" if many else form,
        f"  {'together ' if many else ''}{', '.join(numbers)}",
        f"  {sampling}",
    ]


def person_statements(plan: CompiledPlan) -> PersonStatements:
    """What the plan guarantees to one person."""
    parts = plan.invariants.parts
    return PersonStatements(
        person_record(plan),
        plan.guarantee,
        margins=bool(parts) and all(isinstance(part, Margin) for part in parts),
        named=plan.invariants.domain is not None,
        records=plan.records,
    )


def _person(plan: CompiledPlan) -> list[str]:
    statements = person_statements(plan)
    lines = statements.lines()
    if not statements.all_exact():
        lines.append("A distance given as 'at most' is an upper bound: the true loss is this or smaller.")
    if plan.guarantee.sampling == "exact":
        return lines
    return [*lines, plan.guarantee.sampling_words, *in_the_way(plan)]


def _alone(plan: CompiledPlan) -> list[str]:
    """The loss of a person who is added or left out, where no total shows that."""
    if not (plan.structure.part == FREE).any():
        return []
    distance = Distance(plan.mechanism.norm, 1).times(changes_of(plan.records))
    loss = f"{plan.guarantee.at(distance)} ({plan.mechanism.norm} distance {distance})"
    return [f"{person_statements(plan).title} more or fewer in a cell under no total: {loss}"]


def _pinned(plan: CompiledPlan) -> list[str]:
    pinned = plan.pinned.tolist()
    if not pinned:
        return ["none"]
    named = [plan.invariants.cell_name(cell) for cell in pinned[:SHOWN_CELLS]]
    more = [f"and {len(pinned) - SHOWN_CELLS:,} more"] if len(pinned) > SHOWN_CELLS else []
    cells = "cell is" if len(pinned) == 1 else "cells are"
    return [
        f"{len(pinned):,} {cells} determined by the kept totals and would be published without noise:",
        *named,
        *more,
    ]
