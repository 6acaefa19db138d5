"""``keepsum plan``: what a release would keep, promise and cost in accuracy, before any count is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

import keepsum as ks
from keepsum.cli.declaration import Declaration, declares
from keepsum.cli.epilogs import FILES
from keepsum.cli.reporting import with_margin
from keepsum.cli.screen import progress, show, show_json
from keepsum.cli.terms import sections_in_shell_terms
from keepsum.cli.together import together

if TYPE_CHECKING:
    from keepsum.planning.plan import CompiledPlan
    from keepsum.specs.job import Job

HELP = """Show what a release would keep and guarantee, and its margins of error. Spends no budget.

Examples:

    keepsum plan counts.csv --count n --keep county --keep sex --epsilon 0.25

    keepsum plan counties.csv --count n --within county:state --keep state --epsilon 1 --details

    keepsum plan --domain categories.toml --keep county --keep-total --epsilon 0.25

The last example needs no data: a plan depends only on the cells and the totals.

"""


def add(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan", help=HELP + FILES)(plan)


@declares
def plan(
    declared: Declaration,
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", help="Show what it would cost in this ledger.", metavar="FILE", show_default=False),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", help="The dataset of the ledger.", metavar="NAME", show_default=False),
    ] = None,
    details: Annotated[
        bool,
        typer.Option("--details", help="Also show blocks, formulas, the loss per unit of distance, and other noise."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Show a plan."""
    from keepsum.specs.spec import Charged

    jobs, _ = declared.jobs(ledger=Charged(path=ledger, dataset=dataset))
    for job in jobs:
        job.noise()
        job.ledger()
    results: list[dict[str, object]] = []
    plans: list[CompiledPlan] = []
    for job in jobs:
        made, accuracy = _made(job)
        plans.append(made)
        charged = _charged(jobs, plans)
        if json:
            name = {} if job.name is None else {"name": job.name}
            results.append(name | _as_json(made, accuracy) | {"ledger": charged})
        else:
            title = [] if job.name is None else [("Release", [job.name])]
            cost = [("Ledger", charged)] if charged is not None else []
            show(sections_in_shell_terms([*title, *_sections(made, accuracy, details), *cost]))
    if len(jobs) > 1 and not json:
        show(together(list(zip(jobs, plans, strict=True)), details))
    if json:
        show_json(results[0] if len(jobs) == 1 else results)


def _charged(jobs: Sequence[Job], plans: Sequence[CompiledPlan]) -> list[str] | None:
    """What the last of these releases would cost in its ledger, after those before it; None if it has none."""
    job = jobs[len(plans) - 1]
    ledger = job.ledger()
    if ledger is None:
        return None
    same = [
        plan
        for other, plan in zip(jobs, plans, strict=False)
        if (other.spec.ledger.path, other.spec.ledger.dataset) == (job.spec.ledger.path, job.spec.ledger.dataset)
    ]
    try:
        return ledger.assess(same, job.spec.ledger.dataset)[-1].lines
    except ks.PlanError as error:
        return [f"It would be refused: {error}"]


def _made(job: Job) -> tuple[CompiledPlan, ks.Accuracy | None]:
    """A plan, and its margins of error if it can be drawn."""
    from keepsum.facade.estimates import plan_accuracy
    from keepsum.planning.plan import compile_plan
    from keepsum.releasing.records import LEVEL

    with progress() as step:
        step("reading the categories")
        table = job.cells()
        step("compiling the plan")
        kept = job.kept(table)
        with job.located("mechanism", "keep"):
            made = compile_plan(kept, job.noise(table), records=table.records)
        step("working out margins of error")
        drawable = all(choice.sampler is not None for choice in made.samplers)
        return made, plan_accuracy(made, LEVEL) if drawable else None


def _sections(made: CompiledPlan, accuracy: ks.Accuracy | None, details: bool) -> list[tuple[str, list[str]]]:
    from keepsum.releasing.counted import margin_lines
    from keepsum.releasing.explain import topics

    margin = ["not known: a block has no sampler"]
    if accuracy is not None:
        margin = [str(accuracy), *margin_lines(made.records)]
    warnings = [("Warning", [sentence]) for sentence in _warnings(made)]
    return [*with_margin(topics(made, details=details), ("Accuracy", margin)), *warnings]


def _warnings(made: CompiledPlan) -> list[str]:
    from keepsum.releasing.counted import records_concern
    from keepsum.releasing.statements import loss_concern

    return [*loss_concern(made.guarantee, made.records), *records_concern(made.records)]


def _as_json(made: CompiledPlan, accuracy: ks.Accuracy | None) -> dict[str, object]:
    from keepsum.planning.describe import describe_choice, describe_form
    from keepsum.planning.durations import seconds_per_draw
    from keepsum.releasing.explain import person_statements

    statements = person_statements(made)
    return {
        "cells": made.size,
        "unit": statements.subject,
        "kept": {"words": made.invariants.describe(), "totals": list(made.invariants.names)},
        "mechanism": repr(made.mechanism),
        "law": made.mechanism.law(),
        "per_unit": made.guarantee.words,
        "person": {
            "distance": made.person_distance,
            "reading": statements.headline(),
            "attributes": {record.axis: statements.attribute(record) for record in statements.person.attributes},
            "within": statements.levels(),
        },
        "sampling": made.guarantee.sampling,
        "blocks": [
            {
                "form": describe_form(group.form),
                "blocks": group.blocks,
                "cells": group.cells,
                "sampler": describe_choice(choice),
            }
            for group, choice in zip(made.groups, made.samplers, strict=True)
        ],
        "estimated_seconds_per_draw": seconds_per_draw(made.samplers),
        "pinned": [made.invariants.cell_name(cell) for cell in made.pinned.tolist()],
        "warnings": _warnings(made),
        "margin_of_error": None
        if accuracy is None
        else {"level": accuracy.level, "typical": accuracy.typical, "simulated_draws": accuracy.draws},
    }
