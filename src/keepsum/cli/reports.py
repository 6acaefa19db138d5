"""``keepsum release --report``: the page of a release that has just been written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from keepsum._signals import held_back
from keepsum.cli.screen import Done, done, progress, shown
from keepsum.cli.standard_output import STANDARD_OUTPUT
from keepsum.errors import InputError

if TYPE_CHECKING:
    from keepsum.releasing.destination import Destination
    from keepsum.releasing.release import Drawn, Prepared

REPORT_FAILED = "{done} The report failed: {reason}. keepsum report makes it from the release, at no further loss."


def check_report(outputs: Iterable[str | None]) -> None:
    """Refuse a report that could not be made, before anything is spent."""
    from keepsum._extras import check_installed

    check_installed("A report", "report")
    if STANDARD_OUTPUT in outputs:
        raise InputError(
            "Option --report must not be given with --output -. Run keepsum report once the table is a file."
        )


def write(place: Destination, released: Drawn, prepared: Prepared, force: bool, json: bool) -> list[str]:
    """Write the report of a release that is written: if that fails, the release stands, and that is said."""
    from keepsum.report.writing import ReportFiles, write_report

    done(Done.words, cut_off=REPORT_FAILED)
    files = ReportFiles.of(place.table if place.folder is None else place.folder, certificate=place.certificate)
    with progress() as step:
        step("making the report")
        known = prepared.accuracy
        with held_back():
            paths = write_report(released, prepared.plan, files, known.level, force, known)
            done(f"{Done.words} The report is written: {shown(paths[0])!r}.")
    if not json:
        named = {files.report: "Report", files.registry: "Registry", files.review: "Review"}
        for path in paths:
            typer.echo(f"{named.get(path, 'Margins'):<13}{shown(path)}")
    return [shown(path) for path in paths]
