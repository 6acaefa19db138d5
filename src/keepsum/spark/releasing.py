"""``keepsum.spark.release``: prepared, charged, drawn once, verified, and only then certified.

Counts are encoded as positions of declared cells, and stay on workers; the driver sees the sums of groups. Workers draw
the noise of their tasks and write the released rows once, to a staging folder. What is staged is read back and checked
before there is a certificate; saving it is a rename.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from keepsum.facade.charging import ledger_of
from keepsum.facade.objects import Certificate
from keepsum.planning.plan import CompiledPlan
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.privacy.numbers import Number
from keepsum.releasing.codec import cells_record, kept_record
from keepsum.releasing.facts import LedgerRecord, TableRecord
from keepsum.releasing.release import PlannedFacts
from keepsum.sampling.core.rng import Rng, checked_rng
from keepsum.spark.counted import CountedCells
from keepsum.spark.filling import Noise
from keepsum.spark.layout import Layout
from keepsum.spark.places import Place
from keepsum.spark.preparing import Declared, facts_of, ready_plan, totals_of
from keepsum.spark.released import SparkRelease
from keepsum.spark.session import check_frame, check_installed, use_this_python
from keepsum.spark.staged import TABLE, check_staged, left_behind
from keepsum.spark.sums import check_distributable, draw_sums, is_free
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants

if TYPE_CHECKING:
    from keepsum.ledger.ledger import Ledger

__all__ = ["SparkRelease", "release"]


def release(
    df: Any,
    *,
    axes: str | Sequence[str],
    count: str | None,
    keep: Invariants | Iterable[str | Iterable[str]],
    mechanism: Request | Mechanism,
    domain: Domain | Mapping[str, Any],
    within: Mapping[str, str] | None = None,
    max_rows_per_unit: int | None = None,
    accept_pinned: str | Iterable[Any] = (),
    accept_delta: Number | None = None,
    rng: Rng | None = None,
    ledger: Ledger | str | PathLike[str] | None = None,
    dataset: str | None = None,
    staging: str | PathLike[str] | None = None,
) -> SparkRelease:
    """Release a table of a Spark DataFrame, with some totals kept exactly.

    Parameters
    ----------
    df
        The confidential table: a row per cell with its count, cells without a row being 0; or a row per record.
    axes
        The columns of labels.
    count
        The column of counts; None for a row per record.
    keep, mechanism
        The totals to keep, which are margins, and the noise; see :func:`keepsum.release`.
    domain, within
        The categories of every axis, and the parent of each nested one; see :func:`keepsum.tabulate`.
    max_rows_per_unit
        1 declares that every record is of another person; without it a guarantee is per record.
    accept_pinned, accept_delta, rng, ledger, dataset
        See :func:`keepsum.release`.
    staging
        The folder where the released table is written until it is saved: one that the driver and all workers reach, of
        the file system that it will be saved to. By default ``.keepsum-staging`` in the user's home folder of Spark's
        default file system.

    Returns
    -------
    SparkRelease
        ``.table``, ``.certificate`` and ``.save(path)``.

    Raises
    ------
    PlanError
        If the noise cannot be drawn in parts, or must not be published.
    DataError
        If the table is not as declared.
    """
    check_installed()
    declared = Declared.of(axes, count, domain, within, max_rows_per_unit)
    frame = check_frame(df, declared.domain.axes, declared.count)
    source, charged_to = checked_rng(rng), ledger_of(ledger, dataset)
    plan = ready_plan(declared.plan(keep, mechanism), accept_pinned, accept_delta)
    spark = frame.sparkSession
    use_this_python(spark)
    folder = Place.staging(spark) if staging is None else Place.of(spark, staging, "The staging folder")
    left_behind(folder)
    if charged_to is not None:
        charged_to.assess(plan, dataset)  # a budget that is spent is told before anything is read
    layout = Layout.of(check_distributable(plan))
    with CountedCells.of(frame, layout, declared) as counted:
        totals = totals_of(plan, counted.sums)
        facts = facts_of(plan, counted.sums)
        run = folder / f"{spark.sparkContext.applicationId}-{uuid.uuid4().hex[:12]}"
        with _made(run), _charged(charged_to, plan, dataset, source.seeded) as receipt:
            noise = Noise(
                source.secret(),
                plan.mechanism.kind,
                plan.mechanism.scale,
                draw_sums(plan, layout, source),
                is_free(plan),
            )
            counted.write(run / TABLE, noise)
            sha256 = check_staged(run / TABLE, layout, declared.released, plan, totals)
            entry = None if receipt is None else receipt.record
            certificate = _certificate(facts, declared, totals, sha256, source.seeded, entry)
            if receipt is not None:
                receipt.released(sha256)
    return SparkRelease(run, certificate, declared.domain)


@contextlib.contextmanager
def _charged(ledger: Ledger | None, plan: CompiledPlan, dataset: str | None, seeded: bool) -> Iterator[Any]:
    """The receipt of a ledger that the release is charged to before anything is drawn; None without one."""
    if ledger is None:
        yield None
        return
    with ledger.charged(plan, dataset, seeded) as receipt:
        yield receipt


@contextlib.contextmanager
def _made(run: Place) -> Iterator[None]:
    """Make the folder to stage a release in, before it is charged; and remove it if the release fails."""
    done = False
    try:
        run.make()
        yield
        done = True
    finally:
        if not done:
            with contextlib.suppress(Exception):  # the error that is under way says more
                run.delete()


def _certificate(
    facts: PlannedFacts,
    declared: Declared,
    totals: Sequence[int],
    sha256: str,
    seeded: bool,
    ledger: LedgerRecord | None,
) -> Certificate:
    table = TableRecord(cells=declared.domain.size, count=declared.released, sha256=sha256, attributes={})
    kept = kept_record(facts.plan.invariants, None, totals)
    made = facts.certificate(table, cells_record(declared.domain), kept, seeded, ledger, ("pyspark",))
    return Certificate(made)
