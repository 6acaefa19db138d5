"""``keepsum convergence``: how close chains come to their target, as a curve and in figures."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import keepsum as ks
from keepsum._saying import arg
from keepsum._signals import held_back
from keepsum._text import percent
from keepsum.cli.declaration import AsJson, Declaration, Force, Threads, declares
from keepsum.cli.help_text import SEE
from keepsum.cli.screen import done, pairs_shown, progress, show, show_json, shown
from keepsum.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keepsum.convergence.observe import BlockConvergence, Convergence
    from keepsum.planning.plan import CompiledPlan

PAPER_CELLS = 1000  # its basis needs a Smith form, and larger chains would not converge
PICTURE_KINDS = (".png", ".svg", ".pdf")
HELP = (
    """Show how close the chains of a plan come to their target. Needs no counts, spends no budget.

Examples:

    keepsum convergence counts.csv --count n --keep county --keep sex --epsilon 0.25

    keepsum convergence --domain flows.toml --keep age,work --keep work,place --keep place,home --keep age,home \
--epsilon 1 --per-unit --pairs 1000 --output curve.png

    keepsum convergence counts.csv --count n --keep county --keep sex --epsilon 0.25 --paper 0.37 --output paper.svg

Pairs of coupled chains, one a lag ahead of the other, run until they meet; their meeting times bound the total
variation from the target. Where no block is drawn by a chain, as in the first example, there is nothing to show. With
--paper A it shows the paper's Algorithm 1 instead, with pre-jumps of parameter A, whatever the plan uses.
"""
    + SEE
)


@declares()
def convergence(
    declared: Declaration,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Plot the curve to this file: .png, .svg or .pdf.", metavar="FILE"),
    ] = None,
    pairs: Annotated[
        int | None, typer.Option("--pairs", help="The number of pairs of chains.", min=20, metavar="N")
    ] = None,
    paper: Annotated[
        float | None, typer.Option("--paper", help="Show the paper's chain with this parameter instead.", metavar="A")
    ] = None,
    lag: Annotated[
        int | None, typer.Option("--lag", help="For --paper: the lag between the chains (10,000).", min=1, metavar="N")
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            "--max-steps", help="For --paper: the step at which a pair is given up (1,000,000).", min=2, metavar="N"
        ),
    ] = None,
    threads: Threads = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Show how chains converge."""
    from keepsum.planning.plan import compile_plan
    from keepsum.sources.atomic import check_new

    job = declared.job()
    job.noise()  # what can be refused before a table is read comes first
    if output is not None:
        if output.suffix.lower() not in PICTURE_KINDS:
            raise InputError(
                f"Output must end in {', '.join(PICTURE_KINDS[:-1])} or {PICTURE_KINDS[-1]}, got {str(output)!r}."
            )
        check_new(output, force)
    if paper is None and (lag is not None or most is not None):
        raise InputError(f"{arg.lag} and {arg.max_steps} need {arg.paper}. Omit them.")
    with progress() as step:
        step("reading the categories")
        table = job.cells()
        step("compiling the plan")
        plan = compile_plan(job.kept(table), job.noise(table), records=table.records)
        if paper is not None:
            step("running the paper's chains")
            times = _paper(plan, paper, lag or 10_000, most or 1_000_000, pairs or 200, threads)
        else:
            plan.check_samplers()
            plan = plan.certify(pairs, threads=threads, progress=pairs_shown(step))
    if paper is not None:
        if output is not None:
            _write(output, force, ks.mcmc.plot_bound(times))
        _report_paper(times, paper, output, json)
        return
    convergence = plan.convergence
    if convergence is None:
        raise AssertionError("the plan was just measured")
    if output is not None:
        if not convergence.chains:
            raise InputError(
                f"A curve needs a block that is drawn by a chain, and this plan has none. Omit {arg.output}."
            )
        _write(output, force, convergence.plot(_forms(plan)))
    _report(plan, convergence, output, json)


def _paper(plan: CompiledPlan, a: float, lag: int, most: int, pairs: int, threads: int | None) -> ks.mcmc.MeetingTimes:
    if plan.size > PAPER_CELLS:
        raise InputError(f"The table must have at most {PAPER_CELLS:,} cells for the paper's chain, got {plan.size:,}.")
    lattice = ks.Lattice(plan.invariants.coefficients.toarray())
    return ks.mcmc.meeting_times(lattice, plan.mechanism, a, lag=lag, pairs=pairs, max_steps=most, threads=threads)


def _write(output: Path, force: bool, figure: Figure) -> None:
    """Write the curve, completely or not at all."""
    from keepsum.sources.atomic import write_file

    picture = io.BytesIO()
    figure.savefig(picture, format=output.suffix[1:].lower(), dpi=160)
    with held_back():
        write_file(output, picture.getvalue(), force)
        done(f"The curve is written: {shown(output)!r}.")


def _report(plan: CompiledPlan, measured: Convergence, output: Path | None, json: bool) -> None:
    from keepsum.releasing.codec import convergence_record
    from keepsum.releasing.explain import person_statements

    if json:
        show_json(
            {
                "curve": None if output is None else shown(output),
                "person": person_statements(plan).headline(),
                "per_unit": plan.guarantee.words,
                "sampling": plan.guarantee.sampling,
                "blocks": [
                    {"form": form, "sampler": sampler, "convergence": convergence_record(group)}
                    for form, sampler, group in zip(_forms(plan), _samplers(plan), measured.chains, strict=True)
                ],
            }
        )
        return
    statements = person_statements(plan)
    lines = [
        (statements.title, [statements.headline()]),
        ("Guarantee", [plan.guarantee.words, plan.guarantee.sampling_words]),
    ]
    if not measured.chains:
        lines.append(("Chains", ["none: no block is drawn by a chain"]))
    for place, (form, sampler, group) in enumerate(zip(_forms(plan), _samplers(plan), measured.chains, strict=True)):
        heading = "Chains" if len(measured.chains) == 1 else f"Chains {place + 1}"
        lines.append((heading, [f"{form}: {sampler}", *_figures(group)]))
    if output is not None:
        lines.append(("Curve", [shown(output)]))
    show(lines)


def _forms(plan: CompiledPlan) -> list[str]:
    from keepsum.planning.describe import describe_form

    groups = zip(plan.groups, plan.samplers, strict=True)
    return [describe_form(group.form) for group, choice in groups if choice.chain is not None]


def _samplers(plan: CompiledPlan) -> list[str]:
    from keepsum.planning.describe import describe_choice

    return [describe_choice(choice) for choice in plan.samplers if choice.chain is not None]


def _figures(group: BlockConvergence) -> list[str]:
    from keepsum.privacy.numbers import three_digits_up

    bound = group.bound
    last = group.meetings[-1][0] if group.meetings else 0
    unmet = f"{group.unmet:,} had NOT MET after {group.give_up:,} steps"
    met = unmet if group.unmet else f"all met, the last {last:,} steps after the lag"
    return [
        f"{group.pairs:,} pairs with lag {group.lag:,}: {met}",
        f"TV bound after {group.steps:,} steps: estimate {bound.estimate:.3g}, {percent(group.confidence)} limit "
        f"{three_digits_up(group.upper)}, extrapolation {three_digits_up(group.extrapolated)}",
    ]


def _report_paper(times: ks.mcmc.MeetingTimes, a: float, output: Path | None, json: bool) -> None:
    from keepsum.convergence.bounds import first_step_below

    step = first_step_below(times, 0.1)
    unmet = int(times.censored.sum())
    if json:
        curve = None if output is None else shown(output)
        show_json({"curve": curve, "pairs": len(times), "lag": times.lag, "unmet": unmet, "steps_to_0.1": step})
        return
    reached = "not known: pairs were given up" if step is None else f"about {step:,} steps"
    met = f"{unmet:,} were given up before they met" if unmet else "all met"
    lines = [
        f"the paper's chain with pre-jumps of parameter {a:g}",
        f"{len(times):,} pairs with lag {times.lag:,}: {met}",
        f"TV bound below 0.1 after: {reached}",
    ]
    show([("Algorithm 1", lines), *([] if output is None else [("Curve", [shown(output)])])])
