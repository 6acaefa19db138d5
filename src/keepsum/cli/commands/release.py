"""``keepsum release``: from a confidential table to a published one and its certificate."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated, Any

import typer

from keepsum.cli.declaration import Declaration, declares
from keepsum.cli.epilogs import FILES, PUBLISHED
from keepsum.cli.preparing import Call
from keepsum.cli.releases import release_all
from keepsum.cli.standard_output import STANDARD_OUTPUT, reserved
from keepsum.cli.threads import Threads

OUTPUT = "The release"
HELP = """Release a table with noise in every cell and the kept totals exact, and a certificate beside it.

Examples:

    keepsum release counts.csv --count n --keep county --keep sex --epsilon 0.25 --output released.csv

    keepsum release counties.csv --count n --within county:state --keep state --epsilon 1 --output out/

    keepsum release counties.csv --count n --within county:state --keep state --epsilon 1 \
--focus county=1 -o focused/

    keepsum release cells.parquet --count n --keep county,sex --keep-total --epsilon 0.5 --output by_age.parquet --yes

    keepsum release counts.csv --count n --keep county --epsilon 0.5 -o - --certificate r.certificate.json --yes > r.csv

    keepsum release visits.csv --by clinic,month --domain visits.toml --unit person_id --max-rows-per-unit 3 \
--keep-total --epsilon 1 -o visits/

    keepsum release

The last one runs the spec keepsum.toml of this folder (see keepsum init), and --spec FILE another; options override it.

Before it spends any budget it shows what is kept (and so not protected), the guarantee, the margins of error and the
cells that the totals disclose, and asks for confirmation.

With --output - the table is written to standard output as CSV, last of all, and everything else to standard error. The
exit status is 3 if the table may be incomplete (a full disk, a reader that left): the noise is drawn by then, and the
certificate stays.

"""


def add(app: typer.Typer) -> None:
    """Add the command."""
    app.command("release", help=HELP + FILES + PUBLISHED)(release)


@declares
def release(
    declared: Declaration,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="released.csv, out/ for a folder, or - for standard output.",
            metavar="OUTPUT",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    certificate: Annotated[
        str | None,
        typer.Option(
            "--certificate",
            help="With --output -, the file of the certificate (.json).",
            metavar="FILE",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    accept_pinned: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-pinned",
            help="Publish this pinned cell without noise; 'all' for all.",
            metavar="CELL",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    accept_delta: Annotated[
        str | None,
        typer.Option(
            "--accept-delta",
            help="The largest delta that estimated sampling may add for one person.",
            metavar="D",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    nonnegative: Annotated[
        bool,
        typer.Option(
            "--nonnegative",
            help="Publish the nearest table without negative counts, with the unbiased one beside it.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    nonnegative_norm: Annotated[
        str | None,
        typer.Option(
            "--nonnegative-norm",
            help="In which it is nearest: l1 (default) or l2.",
            metavar="NORM",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    totals: Annotated[
        str | None,
        typer.Option(
            "--totals",
            help="Check kept totals against these published figures first.",
            metavar="FILE",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    sign: Annotated[
        str | None,
        typer.Option("--sign", help="Sign the certificate with this key.", metavar="KEY", rich_help_panel=OUTPUT),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger",
            help="Charge the release to this ledger (keepsum ledger init), before its noise is drawn.",
            metavar="FILE",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", help="The dataset of the ledger.", metavar="NAME", rich_help_panel=OUTPUT),
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option("--seed", help="Reproducible noise, not for publication.", metavar="SEED", rich_help_panel=OUTPUT),
    ] = None,
    threads: Threads = None,
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Also write a report for readers (keepsum report), once the release exists.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.", rich_help_panel=OUTPUT)
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output.", rich_help_panel=OUTPUT)] = False,
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Also show blocks, formulas, the loss per unit of distance, and other noise.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Release a table."""
    from keepsum.specs.spec import Charged, Output, Postprocess

    norm: Any = nonnegative_norm
    jobs, marginals = declared.jobs(
        data_needed=True,
        postprocess=Postprocess(nonnegative=nonnegative or None, norm=norm),
        output=Output(
            path=output,
            certificate=certificate,
            sign=sign,
            totals=totals,
            accept_pinned=accept_pinned or None,
            accept_delta=accept_delta,
        ),
        ledger=Charged(path=ledger, dataset=dataset),
    )
    to_stream = any(job.spec.output.path == STANDARD_OUTPUT for job in jobs)
    with reserved() if to_stream else nullcontext():
        release_all(jobs, marginals, Call(yes, force, json, seed, report, details, threads))
