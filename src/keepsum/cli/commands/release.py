"""``keepsum release``: from a confidential table to a published one and its certificate."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from keepsum.cli.declaration import Declaration, Threads, declares
from keepsum.cli.help_text import SEE
from keepsum.cli.screen import STANDARD_OUTPUT, reserved
from keepsum.specs.option import RELEASE

HELP = (
    """Release a table with noise in every cell and the kept totals exact, and a certificate beside it.

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
    + SEE
)


@declares("postprocess", "output", "ledger")
def release(
    declared: Declaration,
    seed: Annotated[
        str | None,
        typer.Option(
            "--seed", help="Reproducible noise, not for publication.", metavar="SEED", rich_help_panel=RELEASE
        ),
    ] = None,
    threads: Threads = None,
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Also write a report for readers (keepsum report), once the release exists.",
            rich_help_panel=RELEASE,
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.", rich_help_panel=RELEASE)
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing output.", rich_help_panel=RELEASE)
    ] = False,
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Also show blocks, formulas, the loss per unit of distance, and other noise.",
            rich_help_panel=RELEASE,
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=RELEASE)] = False,
) -> None:
    """Release a table."""
    from keepsum.cli.releases import Call, release_all

    jobs, marginals = declared.jobs(data_needed=True)
    to_stream = any(job.spec.output.path == STANDARD_OUTPUT for job in jobs)
    with reserved() if to_stream else nullcontext():
        release_all(jobs, marginals, Call(yes, force, json, seed, report, details, threads))
