"""``keepsum plan``: what a release would keep, promise and cost in accuracy, before any count is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from keepsum.cli.declaration import Declaration, declares
from keepsum.cli.help_text import SEE
from keepsum.cli.screen import show, show_json
from keepsum.specs.faces import SHELL, sections_in

if TYPE_CHECKING:
    from keepsum.planning.plan import CompiledPlan

HELP = (
    """Show what a release would keep and guarantee, and its margins of error. Spends no budget.

Examples:

    keepsum plan counts.csv --count n --keep county --keep sex --epsilon 0.25

    keepsum plan counties.csv --count n --within county:state --keep state --epsilon 1 --details

    keepsum plan --domain categories.toml --keep county --keep-total --epsilon 0.25

The last example needs no data: a plan depends only on the cells and the totals.
"""
    + SEE
)


@declares("ledger", helps={"ledger.path": "Show what it would cost in this ledger."})
def plan(
    declared: Declaration,
    details: Annotated[
        bool,
        typer.Option("--details", help="Also show blocks, formulas, the loss per unit of distance, and other noise."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Show a plan."""
    from keepsum.cli.reporting import charged_for, made_plan, plan_as_json, plan_sections, together

    jobs, _ = declared.jobs()
    for job in jobs:
        job.noise()
        job.ledger()
    results: list[dict[str, object]] = []
    plans: list[CompiledPlan] = []
    for job in jobs:
        made, accuracy = made_plan(job)
        plans.append(made)
        charged = charged_for(jobs, plans)
        if json:
            name = {} if job.name is None else {"name": job.name}
            results.append(name | plan_as_json(made, accuracy) | {"ledger": charged})
        else:
            title = [] if job.name is None else [("Release", [job.name])]
            cost = [("Ledger", charged)] if charged is not None else []
            show(sections_in(SHELL, [*title, *plan_sections(made, accuracy, details), *cost]))
    if len(jobs) > 1 and not json:
        show(together(list(zip(jobs, plans, strict=True)), details))
    if json:
        show_json(results[0] if len(jobs) == 1 else results)
