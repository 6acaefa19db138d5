"""``keepsum report``: a saved release as a page for its readers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import keepsum as ks
from keepsum._signals import held_back
from keepsum.cli.screen import done, progress, show_json, shown

HELP = """Make a page of a saved release for its readers: one HTML file, which loads nothing from anywhere.

Examples:

    keepsum report out/

    keepsum report released.csv --output report.html

    keepsum report released.csv --margins margins.csv

It says what was published and what is exact, states privacy in plain words and in symbols, and shows the table with
margins of error, the law of the noise, and how to verify it all. It spends no budget: the release is verified first,
and nothing else is read. Needs the extra report.

By default it is report.html in the folder of a release, and released.report.html beside released.csv. Beside it go an
entry for the public registry of deployments of differential privacy, to be completed by the publisher (registry.json),
and answers to questions that reviewers ask (reviewer-questions.md), both from the certificate.
"""


def add(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", help=HELP)(report)


def report(
    release: Annotated[Path, typer.Argument(help="The released table, or the folder of a release.", metavar="RELEASE")],
    certificate: Annotated[
        Path | None,
        typer.Argument(help="Its certificate; by default the one beside it.", metavar="CERTIFICATE"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page to write, such as report.html.", metavar="FILE")
    ] = None,
    margins: Annotated[
        Path | None,
        typer.Option("--margins", help="Also write the table with its margins of error to this .csv.", metavar="FILE"),
    ] = None,
    level: Annotated[
        float, typer.Option("--level", help="The level of the margins of error.", metavar="P", show_default=True)
    ] = 0.95,
    allow_seeded: Annotated[bool, typer.Option("--allow-seeded", help="Accept seeded noise, for tests.")] = False,
    patient: Annotated[
        bool, typer.Option("--patient", help="Work everything out again, however long that takes.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write the report of a release."""
    from keepsum._arguments import check_number
    from keepsum._extras import check_installed
    from keepsum.releasing.destination import release_of
    from keepsum.releasing.files import Paths
    from keepsum.report.writing import ReportFiles, write_report

    check_installed("A report", "report")
    check_number(level, "Level", 0, 1)
    released = Paths.of(release, certificate)
    named = release if certificate is not None else release_of(release)
    files = ReportFiles.of(named, output, margins, released.certificate)
    files.check(released, force)
    with progress() as step:
        step("verifying the release")
        published = ks.read_release(release, certificate, allow_seeded=allow_seeded, patient=patient)
        files.check(released, force, published.plan.size)
        step("making the report")
        with held_back():
            write_report(published._record, published.plan._record, files, level, force)
            done(f"The report is written: {shown(files.report)!r}.")
    table = files.margins_of(published.plan.size)
    paths = {"Report": files.report, "Margins": table, "Registry": files.registry, "Review": files.review}
    if json:
        paths = {"report": files.report, "margins": table, "registry": files.registry, "review": files.review}
        show_json({name: None if path is None else shown(path) for name, path in paths.items()})
        return
    for name, path in (
        ("Report", files.report),
        ("Margins", table),
        ("Registry", files.registry),
        ("Review", files.review),
    ):
        if path is not None:
            typer.echo(f"{name:<9}{shown(path)}")
