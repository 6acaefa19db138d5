"""``keepsum accuracy``: margins of error before any budget is spent, and the epsilon that a margin takes."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsum._saying import arg
from keepsum._signals import held_back
from keepsum._text import given
from keepsum.cli.declaration import AsJson, Declaration, declares, parse_level
from keepsum.cli.help_text import SEE
from keepsum.cli.screen import done, progress, show, show_json, shown
from keepsum.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from keepsum.cli.accuracies import MarginTarget, Result
    from keepsum.specs.job import Job

LOSSES = ("epsilon", "rho", "sigma")
TARGETS, PICTURE_KINDS = ("typical", "largest"), (".png", ".svg", ".pdf")
# The loss at which the search begins if none is declared; the paper's calibration takes no epsilon from 1/e on.
START, PAPERS_START = "1", "0.25"
HELP = (
    """Show margins of error, or the epsilon for a margin that you can live with. Spends no budget.

Examples:

    keepsum accuracy counts.csv --count n --keep county --epsilon 0.25

    keepsum accuracy counts.csv --count n --keep county --target-moe 10

    keepsum accuracy counts.csv --count n --keep county --target-moe 10 --target largest --plot curve.svg

    keepsum accuracy counts.csv --count n --keep-total --epsilon 1 --focus county=4 --share-budget

    keepsum accuracy --domain categories.toml --keep county --mechanism gaussian --delta 1e-6 --target-moe 10

The last example needs no data: margins of error depend only on the cells, the totals and the noise. With --target-moe
it finds the smallest epsilon of three digits whose typical (median) margin is at most that many counts; with
--mechanism gaussian and no --delta, the smallest rho. With --share-budget the values of --focus, and --cell-share, say
how much squared errors of these totals, and of cells, count, and the shares with the least error are found.
"""
    + SEE
)


@declares()
def accuracy(
    declared: Declaration,
    target_moe: Annotated[
        str | None,
        typer.Option("--target-moe", help="Find the smallest epsilon with this margin per cell.", metavar="COUNTS"),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", help="Which margin that is: typical (default) or largest.", metavar="WHICH"),
    ] = None,
    share_budget: Annotated[
        bool,
        typer.Option("--share-budget", help="Find the shares of --focus with the least error; its values are weights."),
    ] = False,
    level: Annotated[str, typer.Option("--level", help="The level of the margins.", metavar="P")] = "0.95",
    margins: Annotated[
        Path | None,
        typer.Option("--margins", help="Write the margin of every cell: .csv, .parquet or .arrow.", metavar="FILE"),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            help="Plot the margin against epsilon, with --share-budget the error against shares: .png, .svg or .pdf.",
            metavar="FILE",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    json: AsJson = False,
) -> None:
    """Show margins of error."""
    from keepsum.cli.accuracies import as_json, check_shared, result_of, sections_of

    wanted, at_level = _target(declared, target_moe, target), parse_level(level)
    jobs = [_with_loss(job, wanted) for job in declared.jobs(loss_needed=wanted is None)[0]]
    _check_outputs(jobs, margins, plot, force)
    for job in jobs:
        if share_budget:
            check_shared(job, wanted)
        job.noise()
    results: list[Result] = []
    figure: Figure | None = None
    with progress() as step:
        for job in jobs:
            step("reading the categories")
            table = job.cells()
            step("compiling the plan")
            kept = job.kept(table)
            with job.located("mechanism", "keep"):
                results.append(result_of(job, kept, table, at_level, wanted, share_budget))
        if plot is not None:
            step("plotting")
            figure = (results[0].shares or results[0].curve).plot()
    _write(results[0], margins, plot, figure, force)
    if json:
        answers = [as_json(result, margins, plot) for result in results]
        show_json(answers[0] if len(answers) == 1 else answers)
        return
    for result in results:
        show(sections_of(result))
    files = [("Margins", margins), ("Plot", plot)]
    written = [(title, [shown(file)]) for title, file in files if file is not None]
    if written:
        show(written)


def _target(declared: Declaration, text: str | None, which: str | None) -> MarginTarget | None:
    """The margin to reach, if one is given; what it is solved for must not be given too."""
    from keepsum.accuracy.choose import LARGEST_TARGET
    from keepsum.cli.accuracies import MarginTarget

    if text is None:
        if which is not None:
            raise InputError(f"{arg.target} requires {arg.target_moe}, such as {arg.target_moe(10)}. Leave it out.")
        return None
    margin = int(text) if re.fullmatch("[0-9]{1,12}", text) else 0
    if not 1 <= margin <= LARGEST_TARGET:
        raise InputError(f"{arg.target_moe} must be a whole number from 1 to {LARGEST_TARGET:,}, got {given(text)}.")
    if which not in (None, *TARGETS):
        raise InputError(f"{arg.target} must be typical or largest, got {which!r}.")
    for name in LOSSES:
        if f"mechanism.{name}" in declared.typed:
            raise InputError(
                f"{arg.target_moe} must not be combined with {arg[name]}, which it finds. {arg[name]:Leave out}."
            )
    return MarginTarget(margin, which or "typical")


def _with_loss(job: Job, wanted: MarginTarget | None) -> Job:
    """The job with a loss to begin with, where it is to be found and the spec has none."""
    import msgspec

    noise = job.spec.mechanism
    if any(getattr(noise, name) is not None for name in LOSSES):
        return job
    if wanted is None:
        raise InputError(f"{arg.epsilon} must be given, or {arg.target_moe(10)} to find it for that margin of error.")
    if noise.focus and noise.per_unit:
        raise InputError(
            f"{arg.per_unit} must not be combined {arg.target_moe:with} where there is a {arg.focus}, whose values "
            f"must be shares of the epsilon that is found. {arg.per_unit:Leave out}."
        )
    name = "rho" if noise.kind == "gaussian" and noise.delta is None else "epsilon"
    start = PAPERS_START if noise.calibration == "paper" else START
    filled = msgspec.structs.replace(noise, **{name: start})
    return replace(job, spec=msgspec.structs.replace(job.spec, mechanism=filled))


def _check_outputs(jobs: Sequence[Job], margins: Path | None, plot: Path | None, force: bool) -> None:
    """Refuse files that cannot be written before anything is computed."""
    from keepsum.cli.releases import check_not_source
    from keepsum.releasing.destination import check_sums
    from keepsum.sources.atomic import check_new

    files = [file for file in (margins, plot) if file is not None]
    if files and len(jobs) > 1:
        names = ", ".join(str(job.name) for job in jobs)
        raise InputError(
            f"{arg.margins} and {arg.plot} must be used {arg.only.of('NAME'):with}, one of the tables ({names})."
        )
    if margins is not None:
        check_sums(margins, force)
    if plot is not None and plot.suffix.lower() not in PICTURE_KINDS:
        raise InputError(f"{arg.plot} must end in .png, .svg or .pdf, got {str(plot)!r}.")
    check_not_source(files, jobs)
    for file in files:
        check_new(file, force)


def _write(result: Result, margins: Path | None, plot: Path | None, figure: Figure | None, force: bool) -> None:
    from keepsum.releasing.destination import write_sums
    from keepsum.sources.atomic import write_file
    from keepsum.sources.writing import kind_of, table_bytes

    files: list[tuple[Path, Any]] = []
    if margins is not None:
        files.append((margins, table_bytes(result.margins_table(), kind_of(margins))))
    if plot is not None and figure is not None:
        picture = io.BytesIO()
        figure.savefig(picture, format=plot.suffix[1:].lower(), dpi=160)
        files.append((plot, picture.getvalue()))
    with held_back():
        for file, data in files:
            (write_sums if file == margins else write_file)(file, data, force)
        if files:
            done(f"Written: {', '.join(repr(shown(file)) for file, _ in files)}.")
