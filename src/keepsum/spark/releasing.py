"""``keepsum.spark.release``: prepared, charged, drawn once, verified, and only then certified."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any

from keepsum._arrays import IntArray
from keepsum.facade.objects import Certificate, ledger_of
from keepsum.planning.plan import CompiledPlan
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.privacy.numbers import Number
from keepsum.releasing.codec import cells_record, kept_record
from keepsum.releasing.facts import LedgerRecord, TableRecord
from keepsum.releasing.release import PlannedFacts
from keepsum.sampling.core.rng import Rng, checked_rng
from keepsum.spark.layout import Layout
from keepsum.spark.places import Place
from keepsum.spark.preparing import (
    Declared,
    check_distributable,
    draw_sums,
    facts_of,
    group_sums,
    is_free,
    ready_plan,
    totals_of,
)
from keepsum.spark.released import TABLE, SparkRelease, check_staged, left_behind
from keepsum.spark.session import check_frame, check_installed, columns, shared, use_this_python
from keepsum.spark.workers import COUNTED, POSITION, SCHEMA, SUMMARY, TASK, TaskNoise, encode, fill, summarise
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants

if TYPE_CHECKING:
    from keepsum.ledger.ledger import Ledger


# The counts of a DataFrame at their positions, on workers; and the job that writes the released table.

TASKS_PER_PARTITION = 4  # at most, where there are many: what is lost with a worker is done again
WAVES = 4  # partitions per core, at least, where there are so many tasks: they take different times


class CountedCells:
    """The counts of all cells that have a row, by task, held on workers until the release is made.

    Attributes
    ----------
    sums
        The sum of each group.
    """

    def __init__(self, cells: Any, layout: Any, declared: Declared, sums: IntArray) -> None:
        self._cells, self._layout, self._declared, self.sums = cells, layout, declared, sums

    @classmethod
    def of(cls, frame: Any, layout: Layout, declared: Declared) -> CountedCells:
        """Encode a DataFrame, and refuse it if it is not as declared."""
        from pyspark.sql import functions as f

        spark, of_records = frame.sparkSession, declared.count is None
        where = spark.sparkContext.broadcast(layout)
        cells = frame.mapInArrow(encode(shared(where), of_records), SCHEMA)
        # Every task has a row, so that cells without counts are filled as well.
        every = spark.range(layout.tasks).select(
            f.col("id").cast("int").alias(TASK),
            f.lit(-1).cast("long").alias(POSITION),
            f.lit(0).cast("long").alias(COUNTED),
        )
        partitions = _partitions(layout.tasks, spark.sparkContext.defaultParallelism)
        # Tasks go to partitions by their number: a hash of it would give some partitions several, and others none.
        place = f.greatest(f.col(TASK), f.lit(0)) % partitions
        cells = (
            cells.unionByName(every).repartitionById(partitions, place.cast("int")).sortWithinPartitions(TASK).persist()
        )
        try:
            summary = cells.mapInArrow(summarise(shared(where), of_records), SUMMARY).toArrow()
            return cls(cells, where, declared, group_sums(summary, layout, declared))
        except BaseException:
            cells.unpersist()
            where.destroy()
            raise

    def write(self, place: Place, noise: TaskNoise) -> None:
        """Fill the cells of all tasks, and write the released rows once.

        The secret is handed to workers in a broadcast variable, which is destroyed afterwards.
        """
        spark = self._cells.sparkSession
        how = spark.sparkContext.broadcast(noise)
        try:
            rows = self._cells.mapInArrow(
                fill(shared(self._layout), shared(how), self._declared.released),
                columns(self._declared.domain, self._declared.released),
            )
            rows.write.mode("errorifexists").parquet(place.path)
        finally:
            how.destroy(blocking=True)

    def __enter__(self) -> CountedCells:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cells.unpersist()
        self._layout.destroy()


def _partitions(tasks: int, cores: int) -> int:
    return max(1, min(tasks, max(WAVES * cores, -(-tasks // TASKS_PER_PARTITION))))


# Counts are encoded as positions of declared cells, and stay on workers; the driver sees the sums of groups. Workers
# draw the noise of their tasks and write the released rows once, to a staging folder. What is staged is read back and
# checked before there is a certificate; saving it is a rename.

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
            noise = TaskNoise(
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
