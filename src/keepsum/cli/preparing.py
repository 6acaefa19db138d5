"""One release of a call until it can be drawn: everything is checked that a curator would want to know before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepsum.cli.places import check_not_source, files_of, place_of
from keepsum.cli.screen import FailedError, pairs_shown, shown, warning
from keepsum.cli.standard_output import check_free
from keepsum.errors import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from keepsum.ledger.assessment import Assessment
    from keepsum.ledger.ledger import Ledger
    from keepsum.privacy.distance import Norm
    from keepsum.releasing.destination import Destination
    from keepsum.releasing.release import Prepared
    from keepsum.specs.job import Job


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
class Ready:
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
    from keepsum.releasing.signing import read_private_key

    spec = job.spec
    norm_of(bool(spec.postprocess.nonnegative), spec.postprocess.norm)
    if spec.source.data is None:
        with job.located("source"):
            raise InputError("A table must be given: keepsum release counts.csv --count n ...")
    with job.located("output"):
        if spec.output.path is None:
            raise InputError("Option --output must be given, such as --output released.csv or --output out/.")
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
    from keepsum.releasing.postprocess import checked_norm

    if norm is not None and not nonnegative:
        raise InputError("Option --nonnegative-norm must be given with --nonnegative.")
    return checked_norm(norm or "l1") if nonnegative else None


def prepared(job: Job, key: Ed25519PrivateKey | None, call: Call, step: Callable[[str], None]) -> Ready:
    """Everything that a curator must know; refuses what must not be published."""
    from keepsum.planning.plan import compile_plan
    from keepsum.releasing.postprocess import check_nonnegative
    from keepsum.releasing.release import prepare
    from keepsum.sources.writing import own_kind

    output, name = job.spec.output, "" if job.name is None else f" {job.name!r}"
    nearest_in = norm_of(bool(job.spec.postprocess.nonnegative), job.spec.postprocess.norm)
    step(f"reading the table{name}")
    table = job.read()
    place = place_of(job, own_kind(table))
    kept = job.kept(table)
    _check_terminal(job, call.yes)
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
