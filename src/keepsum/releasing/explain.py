"""The plan in sentences: plain text for a terminal, HTML for a notebook."""

from __future__ import annotations

from keepsum.lattice.structure import FREE
from keepsum.planning.describe import describe_choice, describe_form
from keepsum.planning.durations import describe_duration, seconds_per_draw
from keepsum.planning.groups import BlockGroup
from keepsum.planning.plan import CompiledPlan
from keepsum.privacy.distance import Distance
from keepsum.releasing.compare import compare, in_the_way
from keepsum.releasing.counted import totals_of, unit_topic
from keepsum.releasing.person_statements import PersonStatements
from keepsum.releasing.plain_words import TITLE, plain_words
from keepsum.releasing.records import person_record
from keepsum.releasing.sections import as_html, as_text
from keepsum.releasing.statements import NOT_PROTECTED, guarantee_lines, noise
from keepsum.tables.invariants import Margin
from keepsum.tables.records import changes_of

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
        ("Guarantee", _guarantee(plan)),
        *([("More or fewer", alone)] if alone else []),
        ("Other noise", compare(plan)),
    ]


def _table(plan: CompiledPlan) -> str:
    domain = plan.invariants.domain
    return f"{plan.size:,} cell{'s' * (plan.size != 1)}" if domain is None else repr(domain)[len("Domain(") : -1]


def _kept(plan: CompiledPlan) -> list[str]:
    height, rank = plan.invariants.height, plan.structure.rank
    if not height:
        return ["nothing" if plan.mechanism.focus else "nothing: every cell has independent noise"]
    count = f"{height:,} total{'s' * (height != 1)}{totals_of(plan.records)}"
    independent = "" if rank == height else f", {rank:,} of them independent"
    return [plan.invariants.describe(), f"{count}{independent}, {NOT_PROTECTED[height == 1]}"]


def _noise(plan: CompiledPlan) -> list[str]:
    dimension = plan.size - plan.structure.rank
    mechanism = repr(plan.mechanism)
    with_sigma = plan.mechanism.kind == "gaussian" and "sigma=" not in mechanism
    return [
        f"{mechanism}, sigma {float(plan.mechanism.scale):.6g}" if with_sigma else mechanism,
        f"{noise(plan.mechanism)} ({dimension:,} dimension{'s' * (dimension != 1)})",
    ]


def _blocks(plan: CompiledPlan) -> list[str]:
    """The forms of blocks, those with most cells first."""
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
        f"{group.cells:,} cell{'s' * (group.cells != 1)}",
        f"dimension {group.dimension:,}, codimension {group.codimension:,}",
        f"smallest change through a cell {group.distance}",
    ]
    return [
        f"{group.blocks:,} blocks, each: {form}" if many else form,
        f"  {'together ' if many else ''}{', '.join(numbers)}",
        f"  {sampling}",
    ]


def _guarantee(plan: CompiledPlan) -> list[str]:
    return guarantee_lines(plan.guarantee)


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
    lines = [statements.headline(), *(f"  {line}" for line in statements.changes())]
    if statements.asked_of_some:
        lines.append(statements.asked())
    if plan.guarantee.person is None:
        lines.append(plan.guarantee.words)
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
