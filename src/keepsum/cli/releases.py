"""The releases that options or a spec declare: all are prepared, confirmed once, then drawn in order."""

from __future__ import annotations

import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import keepsum as ks
from keepsum._extras import check_installed
from keepsum._saying import arg, marked
from keepsum._signals import held_back, let_through
from keepsum._threads import threads_of
from keepsum.cli.reporting import as_json, report, sections_of, together
from keepsum.cli.screen import (
    STANDARD_OUTPUT,
    Done,
    check_free,
    check_reader,
    deliver_release,
    destination,
    done,
    note,
    pairs_shown,
    progress,
    record_release,
    show,
    show_json,
    shown,
    warning,
    wrapped,
)
from keepsum.errors import DeclinedError, FailedCheckError, InputError, KeepsumError
from keepsum.ledger.assessment import Assessment
from keepsum.ledger.ledger import Ledger, Receipt
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.privacy.distance import Norm
from keepsum.releasing.canonical import read_private_key, sign
from keepsum.releasing.destination import Destination, check_sums, put, write_sums
from keepsum.releasing.postprocess import check_nonnegative, checked_norm, without_negative
from keepsum.releasing.release import Drawn, Prepared, prepare
from keepsum.releasing.verify import compare
from keepsum.releasing.wording import unit_topic
from keepsum.report.writing import ReportFiles, write_report
from keepsum.sources.atomic import check_new
from keepsum.sources.declarations import read_totals
from keepsum.sources.writing import KINDS, kind_of, own_kind, table_bytes
from keepsum.specs.faces import SHELL, sections_in
from keepsum.specs.job import Job
from keepsum.specs.spec import MarginalSpec

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# Where the releases of a call are written, and what they must not overwrite: one another, or what they come from.


def place_of(job: Job, kind: str = "csv") -> Destination:
    """Where a release is written, with a table of this kind if it is a folder."""
    output = job.spec.output
    return destination(str(output.path), None if output.certificate is None else Path(output.certificate), kind)


def check_places(jobs: Sequence[Job], marginals: Sequence[MarginalSpec], force: bool) -> None:
    """Refuse outputs that would overwrite one another, and sums with no place or over what a release is made from."""
    places = [place_of(job) for job in jobs]
    outputs = [list(place.files) if place.folder is None else [place.folder] for place in places]
    for k, file in enumerate(Path(marginal.output) for marginal in marginals):
        with jobs[0].located_at(("marginal", k, "output")):
            check_sums(file, force)
            check_not_source([file], jobs)
        outputs.append([file])
    for k, files in enumerate(outputs):
        earlier = [file.resolve() for others in outputs[:k] for file in others]
        for file in (file.resolve() for file in files):
            if any(file == other or other in file.parents or file in other.parents for other in earlier):
                raise InputError(
                    f"{arg.output.called('Outputs')} must be different places, none within another, got "
                    f"{shown(files[0])!r} after another. Choose another name."
                )


def check_not_source(files: Iterable[Path], jobs: Sequence[Job]) -> None:
    """No output may be, or be in the folder of, what a release is made from: not even with --force."""
    inputs = {path.resolve() for job in jobs for path in job.inputs()}
    for file in (file.resolve() for file in files):
        if file in inputs or any(parent in inputs for parent in file.parents):
            raise InputError(
                f"{arg.output.called('Output')} must not be the confidential table itself, another input, or in a "
                "folder of records. Choose another name."
            )


def files_of(place: Destination) -> Sequence[Path]:
    """The files that a release may be written to; in a folder, its format is known only once the table is read."""
    if place.folder is None:
        return place.files
    tables = [place.folder / f"{name}{ending}" for name in ("table", "table.unbiased") for ending in KINDS]
    return [*tables, place.certificate, place.invariants, *place.about]


# One release of a call until it can be drawn: everything is checked that a curator would want to know before.


@dataclass(frozen=True)
class Call:
    """How the command was called: what does not belong in a spec."""

    yes: bool = False
    force: bool = False
    json: bool = False
    seed: str | None = None
    report: bool = False
    details: bool = False
    threads: int | None = None


@dataclass(frozen=True)
class ReadyRelease:
    """A release that can be drawn."""

    job: Job
    place: Destination
    key: Ed25519PrivateKey | None
    prepared: Prepared
    nearest_in: Norm | None
    ledger: Ledger | None = None
    assessment: Assessment | None = None


def check_call(job: Job, jobs: Sequence[Job], call: Call) -> Ed25519PrivateKey | None:
    """Refuse what can be refused before the table is read; returns the key to sign with."""
    spec = job.spec
    norm_of(bool(spec.postprocess.nonnegative), spec.postprocess.norm)
    if spec.source.data is None:
        with job.located("source"):
            raise InputError(f"A table must be given: keepsum release counts.csv {arg.count} n ...")
    with job.located("output"):
        if spec.output.path is None:
            raise InputError(
                f"{arg.output} must be given, such as {arg.output('released.csv')} or {arg.output('out/')}."
            )
        place = place_of(job)
        if place.is_stream:
            check_free(call.json, [*job.inputs(), *place.files])
        if place.put_back():
            restored = shown(place.files[0])
            warning(f"A process was killed while it replaced a release; the old one was restored: {restored}.")
        check_not_source(files_of(place), jobs)
        place.check(call.force)
        return None if spec.output.sign is None else read_private_key(spec.output.sign)


def norm_of(nonnegative: bool, norm: str | None) -> Norm | None:
    """The norm in which the nearest table is wanted, if one is."""
    if norm is not None and not nonnegative:
        raise InputError(f"{arg.nonnegative_norm} must be given {arg.nonnegative:with}.")
    return checked_norm(norm or "l1") if nonnegative else None


def prepared(job: Job, key: Ed25519PrivateKey | None, call: Call, step: Callable[[str], None]) -> ReadyRelease:
    """Everything that a curator must know; refuses what must not be published."""
    output, name = job.spec.output, "" if job.name is None else f" {job.name!r}"
    nearest_in = norm_of(bool(job.spec.postprocess.nonnegative), job.spec.postprocess.norm)
    step(f"reading the table{name}")
    table = job.read()
    place = place_of(job, own_kind(table))
    kept = job.kept(table)
    if not call.yes and (job.spec.source.data == "-" or sys.stdin is None or not sys.stdin.isatty()):
        raise InputError(f"No terminal to confirm on; {arg.yes:pass} to release.")
    step(f"compiling the plan{name}")
    with job.located("mechanism", "keep", "output"):
        plan = compile_plan(kept, job.noise(table), records=table.records)
        if nearest_in is not None:
            check_nonnegative(plan.structure, nearest_in)
        step(f"working out margins of error and bounds{name}")
        shows = pairs_shown(step)
        ready = prepare(
            plan, table, output.accept_pinned or (), call.seed is not None, shows, output.accept_delta, call.threads
        )
    with job.located("output"):
        _check_totals(output.totals, ready)
    return ReadyRelease(job, place, key, ready, nearest_in)


def _check_totals(path: str | None, ready: Prepared) -> None:
    """Kept totals must be those that are published already."""
    if path is None:
        return
    figures = read_totals(path, ready.plan.invariants, ready.table.count)
    agree, differences = compare(figures, dict(enumerate(ready.totals)), ready.plan.invariants)
    if not agree:
        raise FailedCheckError(f"Kept totals differ from the published figures, so nothing is released: {differences}.")


# ``keepsum release --report``: the page of a release that has just been written.

REPORT_FAILED = "{done} The report failed: {reason}. keepsum report makes it from the release, at no further loss."


def check_report(outputs: Iterable[str | None]) -> None:
    """Refuse a report that could not be made, before anything is spent."""
    check_installed("A report", "report")
    if STANDARD_OUTPUT in outputs:
        raise InputError(
            f"{arg.report} must not be given {arg.output:with} -. Run keepsum report once the table is a file."
        )


def write(ready: ReadyRelease, released: Drawn, call: Call) -> list[str]:
    """Write the report of a release that is written: if that fails, the release stands, and that is said."""
    place, known = ready.place, ready.prepared.accuracy

    done(Done.words, cut_off=REPORT_FAILED)
    files = ReportFiles.of(place.table if place.folder is None else place.folder, certificate=place.certificate)
    output = ready.job.spec.output
    files = replace(files, names=replace(files.names, title=output.title, publisher=output.publisher))
    with progress() as step:
        step("making the report")
        with held_back():
            paths = write_report(released, ready.prepared.plan, files, known.level, call.force, known)
            done(f"{Done.words} The report is written: {shown(paths[0])!r}.")
    if not call.json:
        named = {files.report: "Report", files.registry: "Registry", files.review: "Review"}
        for path in paths:
            typer.echo(f"{named.get(path, 'Margins'):<13}{shown(path)}")
    return [shown(path) for path in paths]


# One release of a call is charged, drawn and written, and what is said if a step of that fails.

STAYS_CHARGED = "The release failed after it was charged, and stays charged: entry {:,} of dataset {!r}."


def draw_and_write(one: ReadyRelease, call: Call, after: str | None) -> tuple[Drawn, str | None]:
    """Draw a release and write it; ``after`` is what is said if something fails after that, unless it is the last."""
    before = Done.words
    place = one.place
    check_reader()
    with place.claimed(call.force) as orphan:  # of two processes that would write there, only one draws
        with _charged(one, call.seed is not None) as receipt:
            with let_through(), progress() as step:
                rng = None if call.seed is None else ks.rng(seed=call.seed)
                drawn = one.prepared.draw(rng, threads_of(call.threads), None if receipt is None else receipt.record)
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
def _charged(one: ReadyRelease, seeded: bool) -> Iterator[Receipt | None]:
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


def _published(drawn: Drawn, one: ReadyRelease, step: Callable[[str], None]) -> tuple[Drawn, str | None]:
    """What is to be published, and why it is what was drawn although no negative counts are wanted, if so.

    What was drawn is published in any case: to draw again until a solver succeeds would change the law of the noise.
    """
    if one.nearest_in is None:
        return drawn, None
    step("looking for the nearest table without negative counts")
    plan = one.prepared.plan
    try:
        return without_negative(drawn, plan.structure, plan.invariants, one.nearest_in), None
    except ks.PlanError as error:
        return drawn, str(error)


OTHERS_FAILED = "{done} What was still to be written failed: {reason}."
SUMS_FAILED = "{done} The sums failed: {reason}. keepsum marginal makes them from the release, at no further loss."


def release_all(jobs: Sequence[Job], marginals: Sequence[MarginalSpec], call: Call) -> None:
    """Prepare every release, show what they mean, ask, and write them; those of several tables into one folder."""
    output = jobs[0].options.output.path
    with made_folder(Path(output)) if output is not None and len(jobs) > 1 else nullcontext():
        _release_all(jobs, marginals, call)


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """A folder that is made if there is none, and removed if nothing was put into it."""
    is_new = not folder.exists()
    if is_new:
        check_new(folder)
        folder.mkdir(exist_ok=True)  # another process may have made it by now
    try:
        yield
    finally:
        if is_new:
            with suppress(OSError):  # where something was written
                folder.rmdir()


def _release_all(jobs: Sequence[Job], marginals: Sequence[MarginalSpec], call: Call) -> None:
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
                one = next(one for one in ready if one.job.name == marginal.of)
                one.prepared.table.domain.closure(marginal.axes)  # which refuses axes that there are not
        if any(ledger is not None for ledger in ledgers):
            step("comparing with the releases of the ledger")
            ready = _assessed(ready, ledgers)
    if not call.json:
        show(sections_in(SHELL, _sections(ready, call.details)))
        sys.stdout.flush()  # if it cannot be shown, nothing is released
    question = "Release this table?" if len(ready) == 1 else f"Release these {len(ready)} tables?"
    if not call.yes and not typer.confirm(question, err=True):
        raise DeclinedError("Nothing was released.")
    _write(ready, marginals, call)


def _ledgers(jobs: Sequence[Job]) -> list[Ledger | None]:
    """The ledger of each release, each file opened once."""
    opened: dict[Path, Ledger] = {}
    ledgers: list[Ledger | None] = []
    for job in jobs:
        ledger = job.ledger()
        ledgers.append(None if ledger is None else opened.setdefault(ledger.path.resolve(), ledger))
    return ledgers


def _assessed(ready: Sequence[ReadyRelease], ledgers: Sequence[Ledger | None]) -> list[ReadyRelease]:
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
        problem = error.in_words(f"Table {job.name!r}, after the tables before it: {error:marked}")
    if problem is not None:
        raise problem


def _write(ready: Sequence[ReadyRelease], marginals: Sequence[MarginalSpec], call: Call) -> None:
    written: dict[str | None, tuple[ReadyRelease, Drawn]] = {}
    results: list[dict[str, Any]] = []
    problems: list[str] = []
    at_last = SUMS_FAILED if marginals else REPORT_FAILED if call.report else None
    for one in ready:
        after = at_last if one is ready[-1] else OTHERS_FAILED
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
        pages = [write(one, drawn, call) for one, drawn in written.values()]
    if call.json:
        tables = results[0] if len(results) == 1 else {"tables": results}
        show_json({**tables, **({"marginals": sums} if sums else {}), **({"reports": pages} if pages else {})})
    if problems:
        raise FailedCheckError(f"The release is written as it was drawn, with negative counts: {marked(problems[0])}")


def _sections(ready: Sequence[ReadyRelease], details: bool) -> list[tuple[str, list[str]]]:
    spec = ready[0].job.lines
    sections: list[tuple[str, list[str]]] = [] if spec is None else [("Spec", [shown(spec.name)])]
    for one in ready:
        sections += [] if one.job.name is None else [("Release", [one.job.name])]
        sections += sections_of(one.prepared, one.nearest_in, one.assessment, details)
    unit = unit_topic(ready[0].prepared.table.records) if len(ready) == 1 else []
    sections = [*unit, *(section for section in sections if section not in unit)]  # whose loss it is comes first
    return sections + together([(one.job, one.prepared.plan) for one in ready], details)


def _summed(marginal: MarginalSpec, one: ReadyRelease, released: Drawn, call: Call) -> dict[str, Any]:
    from keepsum.facade.estimates import marginal_of

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
