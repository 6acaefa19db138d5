"""The releases that options or a spec declare: all are prepared and shown, then confirmed once, then drawn in order."""

from __future__ import annotations

import sys
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import keepsum as ks
from keepsum._signals import held_back
from keepsum.cli.drawing import draw_and_write
from keepsum.cli.places import check_places
from keepsum.cli.preparing import Call, Ready, check_call, prepared
from keepsum.cli.reporting import as_json, report, sections_of
from keepsum.cli.reports import REPORT_FAILED, check_report, write
from keepsum.cli.screen import Done, FailedError, done, progress, show, show_json, shown, wrapped
from keepsum.cli.standard_output import STANDARD_OUTPUT
from keepsum.cli.terms import sections_in_shell_terms
from keepsum.cli.together import together
from keepsum.errors import InputError, KeepsumError

if TYPE_CHECKING:
    from keepsum.ledger.ledger import Ledger
    from keepsum.planning.plan import CompiledPlan
    from keepsum.releasing.release import Drawn
    from keepsum.specs.job import Job
    from keepsum.specs.spec import Marginal

OTHERS_FAILED = "{done} What was still to be written failed: {reason}."
SUMS_FAILED = "{done} The sums failed: {reason}. keepsum marginal makes them from the release, at no further loss."


def release_all(jobs: Sequence[Job], marginals: Sequence[Marginal], call: Call) -> None:
    """Prepare every release, show what they mean, ask, and write them."""
    for job in jobs:
        job.noise()  # what can be refused before a table is read comes first
    if len(jobs) + len(marginals) > 1 and any(job.spec.output.path == STANDARD_OUTPUT for job in jobs):
        why = "there are several tables" if len(jobs) > 1 else "the spec has sums over it ([[marginal]])"
        raise InputError(f"Output must be a file or a folder if {why}, got standard output.")
    if call.report:
        check_report(job.spec.output.path for job in jobs)
    ledgers = _ledgers(jobs)
    keys = [check_call(job, jobs, call) for job in jobs]
    check_places(jobs, marginals, call.force)
    for known in (ks.CategoriesFromDataWarning, ks.LargeLossWarning):  # shown below, and in the certificate
        warnings.simplefilter("ignore", known)
    with progress() as step:
        ready = [prepared(job, key, call, step) for job, key in zip(jobs, keys, strict=True)]
        for k, marginal in enumerate(marginals):
            with jobs[0].located_at(("marginal", k, "axes")):
                _check_axes(marginal, ready)
        if any(ledger is not None for ledger in ledgers):
            step("comparing with the releases of the ledger")
            ready = _assessed(ready, ledgers)
    if not call.json:
        show(sections_in_shell_terms(_sections(ready, call.details)))
        sys.stdout.flush()  # if it cannot be shown, nothing is released
    question = "Release this table?" if len(ready) == 1 else f"Release these {len(ready)} tables?"
    if not call.yes and not typer.confirm(question, err=True):
        raise FailedError("Nothing was released.")
    _write(ready, marginals, call)


def _ledgers(jobs: Sequence[Job]) -> list[Ledger | None]:
    """The ledger of each release, each file opened once."""
    opened: dict[Path, Ledger] = {}
    ledgers: list[Ledger | None] = []
    for job in jobs:
        ledger = job.ledger()
        ledgers.append(None if ledger is None else opened.setdefault(ledger.path.resolve(), ledger))
    return ledgers


def _assessed(ready: Sequence[Ready], ledgers: Sequence[Ledger | None]) -> list[Ready]:
    """The releases with what each costs in its ledger; refuses what does not fit, all of them together."""
    assessed = []
    earlier: dict[tuple[Path, str], list[CompiledPlan]] = {}
    for one, ledger in zip(ready, ledgers, strict=True):
        if ledger is None:
            assessed.append(one)
            continue
        with one.job.located("ledger"), _named(one.job, len(ready)):
            dataset = one.job.spec.ledger.dataset
            plans = earlier.setdefault((ledger.path.resolve(), ledger.dataset(dataset).name), [])
            plans.append(one.prepared.plan)
            assessed.append(replace(one, ledger=ledger, assessment=ledger.assess(plans, dataset)[-1]))
    return assessed


@contextmanager
def _named(job: Job, releases: int) -> Iterator[None]:
    """Of several releases, say which one does not fit, after those before it."""
    problem: KeepsumError | None = None
    try:
        yield
    except KeepsumError as error:
        if job.name is None or releases == 1:
            raise
        problem = type(error)(f"Table {job.name!r}, after the tables before it: {error}")
    if problem is not None:
        raise problem


def _write(ready: Sequence[Ready], marginals: Sequence[Marginal], call: Call) -> None:
    """Draw and write the releases, then the sums over them, and report each."""
    written: dict[str | None, tuple[Ready, Drawn]] = {}
    results: list[dict[str, Any]] = []
    problems: list[str] = []
    for one in ready:
        is_last = len(written) == len(ready) - 1
        after = OTHERS_FAILED if not is_last else _what_follows(marginals, call)
        released, problem = draw_and_write(one, call, after)
        written[one.job.name] = one, released
        problems += [] if problem is None else [problem]
        if call.json:
            name = {} if one.job.name is None else {"name": one.job.name}
            results.append({**name, **as_json(one.prepared, one.place, released, one.ledger, one.assessment)})
        else:
            report(one.place, released, one.ledger)
    sums = [_summed(marginal, *written[marginal.of], call) for marginal in marginals]
    pages = []
    if call.report:
        pages = [write(one.place, drawn, one.prepared, call.force, call.json) for one, drawn in written.values()]
    if call.json:
        tables = results[0] if len(results) == 1 else {"tables": results}
        show_json({**tables, **({"marginals": sums} if sums else {}), **({"reports": pages} if pages else {})})
    if problems:
        raise FailedError(f"The release is written as it was drawn, with negative counts: {problems[0]}")


def _what_follows(marginals: Sequence[Marginal], call: Call) -> str | None:
    """What is said if something fails after the last release."""
    return SUMS_FAILED if marginals else REPORT_FAILED if call.report else None


def _check_axes(marginal: Marginal, ready: Sequence[Ready]) -> None:
    """Sums must be over axes that there are."""
    one = next(one for one in ready if one.job.name == marginal.of)
    one.prepared.table.domain.closure(marginal.axes)


def _sections(ready: Sequence[Ready], details: bool) -> list[tuple[str, list[str]]]:
    from keepsum.releasing.counted import unit_topic

    spec = ready[0].job.lines
    sections: list[tuple[str, list[str]]] = [] if spec is None else [("Spec", [shown(spec.name)])]
    for one in ready:
        sections += [] if one.job.name is None else [("Release", [one.job.name])]
        sections += sections_of(one.prepared, one.nearest_in, one.assessment, details)
    unit = unit_topic(ready[0].prepared.table.records) if len(ready) == 1 else []
    sections = [*unit, *(section for section in sections if section not in unit)]  # whose loss it is comes first
    return sections + together([(one.job, one.prepared.plan) for one in ready], details)


def _summed(marginal: Marginal, one: Ready, released: Drawn, call: Call) -> dict[str, Any]:
    """Write the sums over a release."""
    from keepsum.facade.marginal import marginal_of
    from keepsum.releasing.destination import write_sums
    from keepsum.sources.writing import kind_of, table_bytes

    file = Path(marginal.output)
    projected = released.unbiased is not None
    sums = marginal_of(released.unbiased or released.table, one.prepared.plan, marginal.axes, projected)
    words = sums.note
    with held_back():
        write_sums(file, table_bytes(sums.table, kind_of(file)), call.force)
        done(f"{Done.words} The sums are written: {shown(file)!r}.", cut_off=SUMS_FAILED)
    if not call.json:
        typer.echo(f"Marginal     {shown(file)}")
        typer.echo(textwrap.indent(wrapped(words, 13), " " * 13))
    return {"table": shown(file), "axes": list(sums.axes), "kept": sums.kept, "note": words}
