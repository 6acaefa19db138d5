"""The releases that options or a spec declare: all are prepared and shown, then confirmed once, then drawn in order."""

from __future__ import annotations

import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import keepsum as ks
from keepsum._signals import held_back, let_through
from keepsum.cli.reporting import as_json, report, sections_of
from keepsum.cli.reports import REPORT_FAILED, check_report, write
from keepsum.cli.screen import (
    Done,
    FailedError,
    done,
    note,
    pairs_shown,
    progress,
    show,
    show_json,
    shown,
    warning,
    wrapped,
)
from keepsum.cli.standard_output import (
    STANDARD_OUTPUT,
    check_free,
    check_reader,
    deliver_release,
    destination,
    record_release,
)
from keepsum.cli.terms import sections_in_shell_terms
from keepsum.cli.together import together
from keepsum.errors import InputError, KeepsumError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from keepsum.ledger.assessment import Assessment
    from keepsum.ledger.ledger import Ledger, Receipt
    from keepsum.planning.plan import CompiledPlan
    from keepsum.privacy.distance import Norm
    from keepsum.releasing.destination import Destination
    from keepsum.releasing.release import Drawn, Prepared
    from keepsum.specs.job import Job
    from keepsum.specs.spec import Marginal

STAYS_CHARGED = "The release failed after it was charged, and stays charged: entry {:,} of dataset {!r}."
OTHERS_FAILED = "{done} What was still to be written failed: {reason}."
SUMS_FAILED = "{done} The sums failed: {reason}. keepsum marginal makes them from the release, at no further loss."


@dataclass(frozen=True)
class Call:
    """How the command was called: what does not belong in a spec."""

    yes: bool = False
    force: bool = False
    json: bool = False
    seed: str | None = None
    report: bool = False


@dataclass(frozen=True)
class Ready:
    """A release that can be drawn."""

    job: Job
    place: Destination
    key: Ed25519PrivateKey | None
    prepared: Prepared
    nearest_in: Norm | None
    ledger: Ledger | None = None
    assessment: Assessment | None = None


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
    keys = [_check_call(job, jobs, call) for job in jobs]
    _check_places(jobs, marginals, call)
    for known in (ks.CategoriesFromDataWarning, ks.LargeLossWarning):  # shown below, and in the certificate
        warnings.simplefilter("ignore", known)
    with progress() as step:
        ready = [_prepared(job, key, call, step) for job, key in zip(jobs, keys, strict=True)]
        for k, marginal in enumerate(marginals):
            with jobs[0].located_at(("marginal", k, "axes")):
                _check_axes(marginal, ready)
        if any(ledger is not None for ledger in ledgers):
            step("comparing with the releases of the ledger")
            ready = _assessed(ready, ledgers)
    if not call.json:
        show(sections_in_shell_terms(_sections(ready)))
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
        released, problem = _released(one, call, after)
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


def _check_call(job: Job, jobs: Sequence[Job], call: Call) -> Ed25519PrivateKey | None:
    """Refuse what can be refused before the table is read; returns the key to sign with."""
    from keepsum.releasing.signing import read_private_key

    spec = job.spec
    norm_of(bool(spec.postprocess.nonnegative), spec.postprocess.norm)
    if spec.source.data is None:
        with job.located("source"):
            raise InputError("A table must be given: keepsum release counts.csv --count n ...")
    with job.located("output"):
        if spec.output.path is None:
            raise InputError("Option --output must be given, such as --output released.csv or --output out/.")
        place = _place(job)
        if place.is_stream:
            check_free(call.json, [*job.inputs(), *place.files])
        if place.put_back():
            restored = shown(place.files[0])
            warning(f"A process was killed while it replaced a release; the old one was restored: {restored}.")
        check_not_source(_written(place), jobs)
        place.check(call.force)
        return None if spec.output.sign is None else read_private_key(spec.output.sign)


def check_not_source(files: Iterable[Path], jobs: Sequence[Job]) -> None:
    """No output may be, or be in the folder of, what a release is made from: not even with --force."""
    inputs = {path.resolve() for job in jobs for path in job.inputs()}
    for file in (file.resolve() for file in files):
        if file in inputs or any(parent in inputs for parent in file.parents):
            raise InputError(
                "Output must not be the confidential table itself, another input, or in a folder of records. Choose "
                "another name."
            )


def _written(place: Destination) -> Sequence[Path]:
    """The files that a release may be written to; in a folder, its format is known only once the table is read."""
    from keepsum.sources.writing import KINDS

    if place.folder is None:
        return place.files
    tables = [place.folder / f"{name}{ending}" for name in ("table", "table.unbiased") for ending in KINDS]
    return [*tables, place.certificate, place.invariants, *place.about]


def _place(job: Job, kind: str = "csv") -> Destination:
    output = job.spec.output
    return destination(str(output.path), None if output.certificate is None else Path(output.certificate), kind)


def _check_places(jobs: Sequence[Job], marginals: Sequence[Marginal], call: Call) -> None:
    """Refuse outputs that would overwrite one another, and sums with no place or over what a release is made from."""
    from keepsum.releasing.destination import check_sums

    places = [_place(job) for job in jobs]
    outputs = [list(place.files) if place.folder is None else [place.folder] for place in places]
    for k, file in enumerate(Path(marginal.output) for marginal in marginals):
        with jobs[0].located_at(("marginal", k, "output")):
            check_sums(file, call.force)
            check_not_source([file], jobs)
        outputs.append([file])
    for k, files in enumerate(outputs):
        earlier = [file.resolve() for others in outputs[:k] for file in others]
        for file in (file.resolve() for file in files):
            if any(file == other or other in file.parents or file in other.parents for other in earlier):
                raise InputError(
                    f"Outputs must be different places, none within another, got {shown(files[0])!r} after another. "
                    f"Choose another name."
                )


def _prepared(job: Job, key: Ed25519PrivateKey | None, call: Call, step: Callable[[str], None]) -> Ready:
    """Everything that a curator must know; refuses what must not be published."""
    from keepsum.planning.plan import compile_plan
    from keepsum.releasing.postprocess import check_nonnegative
    from keepsum.releasing.release import prepare
    from keepsum.sources.writing import own_kind

    output, name = job.spec.output, "" if job.name is None else f" {job.name!r}"
    nearest_in = norm_of(bool(job.spec.postprocess.nonnegative), job.spec.postprocess.norm)
    step(f"reading the table{name}")
    table = job.read()
    place = _place(job, own_kind(table))
    kept = job.kept(table)
    _check_terminal(job, call.yes)
    step(f"compiling the plan{name}")
    with job.located("mechanism", "keep", "output"):
        plan = compile_plan(kept, job.noise(table), records=table.records)
        if nearest_in is not None:
            check_nonnegative(plan.structure, nearest_in)
        step(f"working out margins of error and bounds{name}")
        shows = pairs_shown(step)
        ready = prepare(plan, table, output.accept_pinned or (), call.seed is not None, shows, output.accept_delta)
    with job.located("output"):
        _check_totals(output.totals, ready)
    return Ready(job, place, key, ready, nearest_in)


def _check_terminal(job: Job, yes: bool) -> None:
    if not yes and (job.spec.source.data == "-" or sys.stdin is None or not sys.stdin.isatty()):
        raise InputError("No terminal to confirm on; pass --yes to release.")


def _check_totals(path: str | None, ready: Prepared) -> None:
    """Kept totals must be those that are published already."""
    from keepsum.releasing.verify import compare
    from keepsum.sources.declarations import read_totals

    if path is None:
        return
    figures = read_totals(path, ready.plan.invariants, ready.table.count)
    agree, differences = compare(figures, dict(enumerate(ready.totals)), ready.plan.invariants)
    if not agree:
        raise FailedError(f"Kept totals differ from the published figures, so nothing is released: {differences}.")


def _check_axes(marginal: Marginal, ready: Sequence[Ready]) -> None:
    """Sums must be over axes that there are."""
    one = next(one for one in ready if one.job.name == marginal.of)
    one.prepared.table.domain.closure(marginal.axes)


def _sections(ready: Sequence[Ready]) -> list[tuple[str, list[str]]]:
    spec = ready[0].job.lines
    sections: list[tuple[str, list[str]]] = [] if spec is None else [("Spec", [shown(spec.name)])]
    for one in ready:
        sections += [] if one.job.name is None else [("Release", [one.job.name])]
        sections += sections_of(one.prepared, one.nearest_in, one.assessment)
    return sections + together([(one.job, one.prepared.plan) for one in ready])


def _released(one: Ready, call: Call, after: str | None) -> tuple[Drawn, str | None]:
    """Draw a release and write it; ``after`` is what is said if something fails after that, unless it is the last."""
    from keepsum.releasing.destination import put
    from keepsum.releasing.signing import sign

    before = Done.words
    place = one.place
    check_reader()
    with place.claimed(call.force) as orphan:  # of two processes that would write there, only one draws
        with _charged(one, call.seed is not None) as receipt:
            with let_through(), progress() as step:
                step("drawing the noise")
                rng = None if call.seed is None else ks.rng(seed=call.seed)
                drawn = one.prepared.draw(rng, _threads(), None if receipt is None else receipt.record)
                released, problem = _published(drawn, one, step)
            if one.key is not None:  # before it is written, so that what is said of the release is true of its file
                released = replace(released, certificate=sign(released.certificate, one.key))
            file = put(released, place, None, call.force, orphan)
            record_release(place, released.certificate.ledger)
            if receipt is not None:
                receipt.released(released.certificate.table.sha256)
        if before is not None or after is not None:
            done(" ".join(filter(None, [before, Done.words])), cut_off=after or Done.cut_off)
    deliver_release(place, file, released.certificate.ledger)
    if orphan:
        warning(f"A certificate without a table, left by an interrupted release, was replaced: {place.certificate}.")
    return released, problem


@contextmanager
def _charged(one: Ready, seeded: bool) -> Iterator[Receipt | None]:
    """Charge a release to its ledger, if it has one; whatever fails then, it stays charged, and that is said."""
    if one.ledger is None:
        yield None
        return
    with ExitStack() as stack:
        with one.job.located("ledger"):
            dataset = one.job.spec.ledger.dataset
            receipt = stack.enter_context(one.ledger.charged(one.prepared.plan, dataset, seeded))
        try:
            yield receipt
        except BaseException:
            if receipt.sha256 is None:
                note(STAYS_CHARGED.format(receipt.record.entry, receipt.record.dataset))
            raise


def _published(drawn: Drawn, one: Ready, step: Callable[[str], None]) -> tuple[Drawn, str | None]:
    """What is to be published, and why it is what was drawn although no negative counts are wanted, if so.

    What was drawn is published in any case: to draw again until a solver succeeds would change the law of the noise.
    """
    from keepsum.releasing.postprocess import without_negative

    if one.nearest_in is None:
        return drawn, None
    step("looking for the nearest table without negative counts")
    plan = one.prepared.plan
    try:
        return without_negative(drawn, plan.structure, plan.invariants, one.nearest_in), None
    except ks.PlanError as error:
        return drawn, str(error)


def _summed(marginal: Marginal, one: Ready, released: Drawn, call: Call) -> dict[str, Any]:
    """Write the sums over a release."""
    from keepsum.facade.marginal import marginal_of
    from keepsum.sources.atomic import write_file
    from keepsum.sources.writing import kind_of, table_bytes

    file = Path(marginal.output)
    projected = released.unbiased is not None
    sums = marginal_of(released.unbiased or released.table, one.prepared.plan, marginal.axes, projected)
    words = sums.note
    with held_back():
        write_file(file, table_bytes(sums.table, kind_of(file)), call.force)
        done(f"{Done.words} The sums are written: {shown(file)!r}.", cut_off=SUMS_FAILED)
    if not call.json:
        typer.echo(f"Margin       {shown(file)}")
        typer.echo(textwrap.indent(wrapped(words, 13), " " * 13))
    return {"table": shown(file), "axes": list(sums.axes), "kept": sums.kept, "note": words}


def norm_of(nonnegative: bool, norm: str | None) -> Norm | None:
    """The norm in which the nearest table is wanted, if one is."""
    from keepsum.releasing.postprocess import checked_norm

    if norm is not None and not nonnegative:
        raise InputError("Option --nonnegative-norm must be given with --nonnegative.")
    return checked_norm(norm or "l1") if nonnegative else None


def _threads() -> int:
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
