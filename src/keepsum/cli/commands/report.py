"""``keepsum report``: a saved release as a page for its readers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import keepsum as ks
from keepsum._signals import held_back
from keepsum.cli.declaration import AllowSeeded, AsJson, CertificatePath, Force, Patient, ReleasePath, option_of
from keepsum.cli.screen import done, progress, show_json, shown

HELP = """Make a page of a saved release for its readers: one HTML file, which loads nothing from anywhere.

Examples:

    keepsum report out/

    keepsum report released.csv --output report.html

    keepsum report released.csv --margins margins.csv

    keepsum report released.csv --title "People by county" --publisher "Statistics Office" --force

It says what was published and what is exact, states privacy in plain words and in symbols, and shows the table with
margins of error, the law of the noise, and how to verify it all. It spends no budget: the release is verified first,
and nothing else is read. Needs the extra report.

By default it is report.html in the folder of a release, and released.report.html beside released.csv. Beside it go an
entry for the public registry of deployments of differential privacy, to be completed by the publisher (registry.json),
and answers to questions that reviewers ask (reviewer-questions.md), both from the certificate.
"""


def report(
    release: ReleasePath,
    certificate: CertificatePath = None,
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
    title: str | None = option_of("output.title"),
    publisher: str | None = option_of("output.publisher"),
    allow_seeded: AllowSeeded = False,
    patient: Patient = False,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write the report of a release."""
    from keepsum._arguments import check_number
    from keepsum._extras import check_installed
    from keepsum.releasing.destination import Paths, release_of
    from keepsum.report.writing import ReportFiles, write_report

    check_installed("A report", "report")
    check_number(level, "Level", 0, 1)
    released = Paths.of(release, certificate)
    named = release if certificate is not None else release_of(release)
    files = ReportFiles.of(named, output, margins, released.certificate)
    files = replace(files, names=replace(files.names, title=title, publisher=publisher))
    files.check(released, force)
    with progress() as step:
        step("verifying the release")
        published = ks.read_release(release, certificate, allow_seeded=allow_seeded, patient=patient)
        files.check(released, force, published.plan.size)
        step("making the report")
        with held_back():
            write_report(published._record, published.plan._record, files, level, force)
            done(f"The report is written: {shown(files.report)!r}.")
    margins = files.margins_of(published.plan.size)
    paths = {"report": files.report, "margins": margins, "registry": files.registry, "review": files.review}
    if json:
        show_json({name: None if path is None else shown(path) for name, path in paths.items()})
        return
    for name, path in paths.items():
        if path is not None:
            typer.echo(f"{name.capitalize():<9}{shown(path)}")
