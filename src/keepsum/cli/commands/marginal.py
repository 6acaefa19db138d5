"""``keepsum marginal``: a table of totals from a saved release, at no further privacy loss."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import keepsum as ks
from keepsum._saying import arg
from keepsum._signals import held_back
from keepsum.cli.declaration import AllowSeeded, AsJson, CertificatePath, Force, Patient, ReleasePath, parse_level
from keepsum.cli.screen import (
    FREE,
    INCOMPLETE,
    STANDARD_OUTPUT,
    check_free,
    deliver,
    done,
    progress,
    show_json,
    shown,
    wrapped,
)
from keepsum.errors import InputError
from keepsum.specs.option import parse_margin

HELP = """Sum a saved release over some of its axes. Spends no budget: it reads only what is published.

Examples:

    keepsum marginal out/ --axes state --output states.csv

    keepsum marginal released.csv --axes county,sex --output county_sex.csv

    keepsum marginal released.csv --output grand_total.csv

    keepsum marginal released.csv --axes county --output - | sort

    keepsum marginal out/ --axes county --intervals --level 0.9 --output counties_90.csv

The release is verified first. Each total is a sum of released counts, so its noise is
usually larger than that of a count, unless the release keeps it exactly; the command says which, and how large.
With --intervals the file has two columns more, such as n_low and n_high: between them lies the confidential total,
with the probability of --level.
"""


def marginal(
    release: ReleasePath,
    certificate: CertificatePath = None,
    axes: Annotated[
        list[str] | None, typer.Option("--axes", help="Axes to keep; without any, the grand total.", metavar="A,B")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The file to write: .csv, .parquet or .arrow; - for standard output.", metavar="FILE"
        ),
    ] = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Add the interval of each total as two columns.")
    ] = False,
    level: Annotated[
        str, typer.Option("--level", help="The level of the intervals and of the margin that is shown.", metavar="P")
    ] = "0.95",
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Margins that hold for all totals at once, not for each.")
    ] = False,
    allow_seeded: AllowSeeded = False,
    patient: Patient = False,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write a margin of a release."""
    from keepsum.facade.estimates import file_of
    from keepsum.releasing.destination import check_sums, write_sums
    from keepsum.sources.writing import kind_of
    from keepsum.specs.building import margin_of

    if output is None:
        raise InputError(f"{arg.output} must be given, such as {arg.output} states.csv.")
    at_level = parse_level(level)
    is_stream = str(output) == STANDARD_OUTPUT
    inputs = [path for path in (release, certificate) if path is not None]
    if is_stream:
        check_free(json)
    else:
        check_sums(output, force, inputs)
    with progress() as step:
        step("reading the release")
        published = ks.read_release(release, certificate, allow_seeded=allow_seeded, patient=patient)
        step("working out the noise of the totals")
        known = published.table.domain.axes
        margin = published.marginal([name for text in axes or [] for name in margin_of(parse_margin(text), known)])
        found = margin.accuracy(at_level, simultaneous=simultaneous)
        note = margin.note_at(at_level, simultaneous=simultaneous)
        kind = "csv" if is_stream else kind_of(output)
        table = file_of(margin, kind, at_level if intervals else None, simultaneous)
    if is_stream:
        done(FREE, cut_off=INCOMPLETE)
        deliver(table)
        done("The margin is written to standard output.")
    else:
        with held_back():
            write_sums(output, table, force, inputs)
            done(f"The margin is written: {shown(output)!r}.")
    if json:
        deviations = margin.deviations
        show_json(
            {
                "table": shown(output),
                "axes": list(margin.axes),
                "kept": margin.kept,
                "cells": margin.cells.tolist(),
                "standard_deviations": None if deviations is None else deviations.tolist(),
                "level": found.level,
                "simultaneous": found.simultaneous,
                "margins": found.margins.tolist(),
                "basis": found.basis,
                "draws": found.draws,
                "standard_error": found.error,
                "note": note,
            }
        )
        return
    typer.echo(f"Marginal  {'to standard output' if is_stream else shown(output)}")
    typer.echo(wrapped(note))
