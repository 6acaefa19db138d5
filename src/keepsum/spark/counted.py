"""The counts of a DataFrame at their positions, on workers; and the job that writes the released table."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from keepsum._arrays import IntArray
from keepsum.spark.encoding import COUNTED, POSITION, SCHEMA, SUMMARY, TASK, encode, summarise
from keepsum.spark.filling import Noise, fill
from keepsum.spark.layout import Layout
from keepsum.spark.places import Place
from keepsum.spark.preparing import Declared, group_sums
from keepsum.spark.session import columns, shared

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

    def write(self, place: Place, noise: Noise) -> None:
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
