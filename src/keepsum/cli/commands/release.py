"""``keepsum release``: from a confidential table to a published one and its certificate."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import keepsum as ks
from keepsum._signals import let_through
from keepsum.cli.declaration import FILES, PUBLISHED, Declaration, declares
from keepsum.cli.screen import (
    Done,
    FailedError,
    abandon_streams,
    note,
    pairs_shown,
    progress,
    show,
    show_json,
    shown,
    warning,
)
from keepsum.cli.standard_output import check_free, check_reader, deliver_release, destination, record_release
from keepsum.cli.terms import sections_in_shell_terms
from keepsum.errors import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from keepsum.privacy.distance import Norm
    from keepsum.releasing.destination import Destination
    from keepsum.releasing.release import Drawn, Prepared

OUTPUT = "The release"
PUBLISHED_NEAREST = (
    "the nearest table in {} without negative counts that keeps every total, with the unbiased one beside it; "
    "counts at or near 0 are then biased upwards, the others downwards"
)
SHOWN_BOUNDED, SHOWN_BOUNDED_JSON = 8, 1000
HELP = """Release a table with noise in every cell and the kept totals exact, and a certificate beside it.

Examples:

    keepsum release counts.csv --count n --keep county --keep education --epsilon 0.25 --output released.csv

    keepsum release counties.csv --count pop --within county:state --keep state --epsilon 1 --per-person --output out/

    keepsum release cells.parquet --count n --keep county,sex --keep-total --epsilon 0.5 --output released.parquet --yes

    keepsum release counts.csv --count n --keep county --epsilon 0.5 -o - --certificate r.certificate.json --yes > r.csv

    keepsum release people.parquet --by county,age,sex --domain categories.toml --bins age=0,18,65, --unit person
    --max-rows-per-unit 3 --keep county --epsilon 1 --per-person --output out/

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
        Path | None,
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
        Path | None,
        typer.Option(
            "--totals",
            help="Check kept totals against these published figures first.",
            metavar="FILE",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option("--sign", help="Sign the certificate with this key.", metavar="KEY", rich_help_panel=OUTPUT),
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option("--seed", help="Reproducible noise, not for publication.", metavar="SEED", rich_help_panel=OUTPUT),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.", rich_help_panel=OUTPUT)
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output.", rich_help_panel=OUTPUT)] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Release a table."""
    from keepsum.planning.plan import compile_plan
    from keepsum.releasing.destination import put
    from keepsum.releasing.postprocess import check_nonnegative
    from keepsum.releasing.release import prepare
    from keepsum.releasing.verify import compare
    from keepsum.sources.declarations import read_totals
    from keepsum.sources.writing import own_kind

    mechanism = declared.noise()
    nearest_in = norm_of(nonnegative, nonnegative_norm)
    key = _check_call(declared, output, certificate, sign, force, json)
    for known in (ks.CategoriesFromDataWarning, ks.LargeLossWarning):  # shown below, and in the certificate
        warnings.simplefilter("ignore", known)
    with progress() as step:
        step("reading the table")
        table = declared.read()
        place = destination(str(output), certificate, own_kind(table))
        kept = declared.kept(table)
        _check_terminal(declared, yes)
        step("compiling the plan")
        plan = compile_plan(kept, mechanism, records=table.records)
        if nearest_in is not None:
            check_nonnegative(plan.structure, nearest_in)
        step("working out margins of error and bounds")
        ready = prepare(plan, table, accept_pinned or (), seed is not None, pairs_shown(step), accept_delta)
        figures = None if totals is None else read_totals(totals, plan.invariants, table.count)
    if figures is not None:
        agree, differences = compare(figures, dict(enumerate(ready.totals)), plan.invariants)
        if not agree:
            raise FailedError(f"Kept totals differ from the published figures, so nothing is released: {differences}.")
    if not json:
        show(sections_in_shell_terms(_sections(ready, nearest_in)))
        sys.stdout.flush()  # if it cannot be shown, nothing is released
    if not yes and not typer.confirm("Release this table?", err=True):
        raise FailedError("Nothing was released.")
    check_reader()
    with place.claimed(force) as orphan:  # of two processes that would write there, only one draws
        with let_through(), progress() as step:
            step("drawing the noise")
            released = ready.draw(None if seed is None else ks.rng(seed=seed), threads=_threads())
            released, problem = _published(released, ready, nearest_in, step)
        file = put(released, place, key, force, orphan)
        record_release(place)
    deliver_release(place, file)
    if orphan:
        warning(f"A certificate without a table, left by an interrupted release, was replaced: {place.certificate}.")
    if json:
        show_json(_as_json(ready, place, released))
    else:
        report(place, released)
    if problem is not None:
        raise FailedError(f"The release is written as it was drawn, with negative counts: {problem}")


def _check_terminal(declared: Declaration, yes: bool) -> None:
    if not yes and (declared.table == "-" or sys.stdin is None or not sys.stdin.isatty()):
        raise InputError("No terminal to confirm on; pass --yes to release.")


def _published(
    drawn: Drawn, ready: Prepared, norm: Norm | None, step: Callable[[str], None]
) -> tuple[Drawn, str | None]:
    """What is to be published, and why it is what was drawn although no negative counts are wanted, if so.

    What was drawn is published in any case: to draw again until a solver succeeds would change the law of the noise.
    """
    from keepsum.releasing.postprocess import without_negative

    if norm is None:
        return drawn, None
    step("looking for the nearest table without negative counts")
    try:
        return without_negative(drawn, ready.plan.structure, ready.plan.invariants, norm), None
    except ks.PlanError as error:
        return drawn, str(error)


def norm_of(nonnegative: bool, norm: str | None) -> Norm | None:
    """The norm in which the nearest table is wanted, if one is."""
    from keepsum.releasing.postprocess import checked_norm

    if norm is not None and not nonnegative:
        raise InputError("Option --nonnegative-norm must be given with --nonnegative.")
    return checked_norm(norm or "l1") if nonnegative else None


def report(place: Destination, released: Drawn) -> None:
    """Where the release is; if standard output was closed, standard error shows it instead."""
    try:
        typer.echo(f"Released     {'to standard output' if place.is_stream else shown(place.table)}")
        if released.unbiased is not None:
            typer.echo(f"Unbiased     {shown(place.unbiased)}")
        typer.echo(f"Certificate  {shown(place.certificate)}")
        if released.invariants is not None:
            typer.echo(f"Invariants   {shown(place.invariants)}")
    except BrokenPipeError:
        note(str(Done.words))
        abandon_streams()


def _check_call(
    declared: Declaration, output: str | None, certificate: Path | None, sign: Path | None, force: bool, json: bool
) -> Ed25519PrivateKey | None:
    """Refuse what can be refused before the table is read; returns the key to sign with."""
    from keepsum.releasing.signing import read_private_key

    if declared.table is None:
        raise InputError("A table must be given: keepsum release counts.csv --count n ...")
    if output is None:
        raise InputError("Option --output must be given, such as --output released.csv or --output out/.")
    place = destination(output, certificate)
    source = [Path(declared.table)] if _is_file(declared.table) else []
    if place.is_stream:
        check_free(json, [*source, *place.files])
    if place.put_back():
        warning(f"A process was killed while it replaced a release; the old one was restored: {shown(place.files[0])}.")
    written = {file.resolve() for file in place.files}
    if any(file.resolve() in written for file in source):
        raise InputError("Output must not be the confidential table itself. Choose another name.")
    place.check(force)
    return None if sign is None else read_private_key(sign)


def _is_file(source: str) -> bool:
    return source != "-" and "://" not in source


def _sections(ready: Prepared, nearest_in: Norm | None) -> list[tuple[str, list[str]]]:
    """What the curator must know before any budget is spent."""
    from keepsum.releasing.explain import topics

    return [
        *topics(ready.plan),
        ("Accuracy", [str(ready.accuracy)]),
        ("Bounded cells", _bounded(ready)),
        *([("Published", [PUBLISHED_NEAREST.format(nearest_in)])] if nearest_in is not None else []),
        *(("Warning", [sentence]) for sentence in ready.warnings),
    ]


def _bounded(ready: Prepared) -> list[str]:
    from keepsum.accuracy.disclosure import listed

    bounds, name = ready.bounds, ready.plan.invariants.cell_name
    unchecked = (
        [f"not checked: {bounds.not_checked:,} cells in blocks that are too large"] if bounds.not_checked else []
    )
    if not len(bounds.cells):
        return unchecked or ["none"]
    count = len(bounds.cells)
    more = [f"and {count - SHOWN_BOUNDED:,} more"] if count > SHOWN_BOUNDED else []
    return [
        f"{count:,} cell{'s' * (count != 1)} bounded by kept totals more tightly than the margin of error:",
        *(f"{name(cell)}: from {low:,} to {high:,}" for cell, low, high in listed(bounds, SHOWN_BOUNDED)),
        *more,
        *unchecked,
    ]


def _as_json(ready: Prepared, place: Destination, released: Drawn) -> dict[str, object]:
    from keepsum.accuracy.disclosure import listed
    from keepsum.releasing.statements import PersonStatements, kept_totals

    certificate = released.certificate
    name = ready.plan.invariants.cell_name
    return {
        "table": shown(place.table),
        "certificate": shown(place.certificate),
        "invariants": None if released.invariants is None else shown(place.invariants),
        "unbiased": None if released.unbiased is None else shown(place.unbiased),
        "postprocessing": certificate.postprocessing,
        "sha256": certificate.table.sha256,
        "guarantee": {
            "words": ready.plan.guarantee.words,
            "person": PersonStatements.of(certificate).headline(),
            "facts": certificate.guarantee,
        },
        "kept": kept_totals(certificate.kept, certificate.domain),
        "margin_of_error": certificate.accuracy,
        "pinned": [name(cell) for cell in ready.plan.pinned.tolist()],
        "bounded": {
            "count": len(ready.bounds.cells),
            "not_checked": ready.bounds.not_checked,
            "cells": [
                {"cell": name(cell), "low": low, "high": high}
                for cell, low, high in listed(ready.bounds, SHOWN_BOUNDED_JSON)
            ],
        },
        "warnings": certificate.warnings,
    }


def _threads() -> int:
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
