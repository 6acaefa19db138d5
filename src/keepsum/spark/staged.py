"""The staging folder: what is in it is checked before it is certified, and what dead drivers left there is named."""

from __future__ import annotations

import hashlib
import warnings
from typing import Any

import numpy as np

from keepsum._arrays import IntArray
from keepsum.errors import KeepsumError, KeepsumWarning
from keepsum.planning.plan import CompiledPlan
from keepsum.spark.checking import LOCATED, PIECES, check_pieces, chunks_of, locate
from keepsum.spark.layout import Layout
from keepsum.spark.places import Place
from keepsum.spark.session import columns, numbered, shared

TABLE = "table.parquet"
PIECES_AT_A_TIME = 4  # on the driver, of some 20 MB each
NOT_AS_DRAWN = (
    "What Spark wrote is not the table that was to be released, so nothing is released: {what}. If the input is not "
    "the same each time it is computed, write it to a table first and release that. What was charged stays charged."
)


def read_back(table: Any, layout: Layout, count: str) -> tuple[str, IntArray] | None:
    """The hash of a released table, and the sum of each group; None if it does not have every cell once."""
    from pyspark import StorageLevel

    spark, chunks = table.sparkSession, chunks_of(layout.size)
    where = spark.sparkContext.broadcast(layout)
    located = numbered(table, [*layout.domain.axes, count]).mapInArrow(locate(shared(where)), LOCATED)
    pieces = located.repartitionById(chunks, "chunk").mapInArrow(check_pieces(shared(where), count), PIECES)
    pieces = pieces.persist(StorageLevel.DISK_ONLY)
    try:
        checked = pieces.select("chunk", "problem", "groups", "totals").toArrow()
        found = sorted(checked.column("chunk").to_pylist())
        if found != list(range(chunks)) or any(checked.column("problem").to_pylist()):
            return None
        sums = _sums(checked, len(layout.ends))
        return _hash(pieces.select("chunk", "file").rdd, chunks), sums
    finally:
        pieces.unpersist()
        where.destroy()


def _hash(pieces: Any, chunks: int) -> str:
    """The hash of a file whose pieces are in as many partitions, a few of them on the driver at a time.

    With ``toLocalIterator`` a driver with 1 GB for Java ran out of memory at 190 pieces.
    """
    digest = hashlib.sha256()
    for first in range(0, chunks, PIECES_AT_A_TIME):
        wanted = range(first, min(first + PIECES_AT_A_TIME, chunks))
        found = pieces.context.runJob(pieces, list, list(wanted))
        if [chunk for chunk, _ in found] != list(wanted):
            raise AssertionError("pieces are in order")
        for _, file in found:
            digest.update(file)
    return digest.hexdigest()


def _sums(checked: Any, groups: int) -> IntArray:
    sums = np.zeros(groups, dtype=np.int64)
    for name in ("groups", "totals"):
        checked = checked.set_column(checked.column_names.index(name), name, checked.column(name).combine_chunks())
    place = checked.column("groups").combine_chunks().flatten().to_numpy()
    np.add.at(sums, place, checked.column("totals").combine_chunks().flatten().to_numpy())
    return sums


def check_staged(place: Place, layout: Layout, count: str, plan: CompiledPlan, totals: list[int]) -> str:
    """The hash of the staged table, whose cells and kept totals must be those that were counted."""
    table = place.spark.read.schema(columns(layout.domain, count)).parquet(place.path)
    read = read_back(table, layout, count)
    if read is None:
        raise KeepsumError(NOT_AS_DRAWN.format(what="some cells are missing, or there are several of them"))
    sha256, sums = read
    if plan.quotient is None or [int(total) for total in plan.quotient.totals.totals(sums)] != totals:
        raise KeepsumError(NOT_AS_DRAWN.format(what="a kept total was not kept"))
    return sha256


def left_behind(folder: Place) -> None:
    """Say what other applications have left in a staging folder, and how to go on."""
    own = folder.spark.sparkContext.applicationId
    others = sorted(place.name for place in folder.folders() if not place.name.startswith(f"{own}-"))
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        warnings.warn(
            f"The staging folder {folder.path!r} has tables of other applications, which were not saved: "
            f"{', '.join(others[:3])}{more}. If such an application is no longer running, its release was not "
            f"published and never will be, and its entry in a ledger stays charged: delete the folder, and release "
            f"again, which is charged again.",
            KeepsumWarning,
            stacklevel=3,
        )
