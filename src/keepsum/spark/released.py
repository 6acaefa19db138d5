"""A release in Spark, as users hold it, and the staging folder that it comes from."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import warnings
import weakref
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from keepsum._arrays import IntArray
from keepsum._saying import the
from keepsum.errors import InputError, KeepsumError, KeepsumWarning, OutputExistsError, UnreachableError
from keepsum.facade.objects import Certificate
from keepsum.planning.plan import CompiledPlan
from keepsum.releasing.destination import certificates_around
from keepsum.releasing.wording import guarantee_of
from keepsum.spark.layout import Layout
from keepsum.spark.places import Place, outside_errors, reason
from keepsum.spark.session import check_running, columns, numbered, shared
from keepsum.spark.workers import LOCATED, PIECES, check_pieces, chunks_of, locate
from keepsum.tables.domain import Domain

# The staging folder: what is in it is checked before it is certified, and what dead drivers left there is named.

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


CERTIFICATE = "certificate.json"
NOT_SAVED = " What was not saved before is lost, and what was charged stays charged: save before you stop the session."


class SparkRelease:
    """A released table and its certificate.

    Attributes
    ----------
    certificate
        What is public about the release.
    domain
        The cells.
    """

    def __init__(self, place: Place, certificate: Certificate, domain: Domain) -> None:
        self.certificate, self.domain = certificate, domain
        self._place = place
        self._saving = threading.Lock()
        self._unsaved: weakref.finalize[Any, Any] | None = weakref.finalize(self, _remove, place)

    @property
    def table(self) -> Any:
        """The published table, as a Spark DataFrame that reads what was written once.

        It reads the folder where the release is now: ask for it again after :meth:`save`.
        """
        check_running(self._place.spark, NOT_SAVED if self._unsaved is not None else "")
        place = self._place / TABLE
        schema = columns(self.domain, self.certificate.table.count)
        return place.spark.read.schema(schema).parquet(place.path)

    def save(self, path: str | PathLike[str], *, sign_with: str | PathLike[str] | None = None) -> str:
        """Put the table and its certificate into a folder of this name, which must not exist: by one rename.

        Parameters
        ----------
        path
            The folder, on the local file system or any other that Hadoop knows. It will have ``table.parquet``, itself
            a folder, and ``certificate.json``.
        sign_with
            The file of an Ed25519 private key, on the driver.

        Returns
        -------
        str
            The folder.

        Raises
        ------
        InputError
            If there is something already, or it cannot be written there. The release stays as it was and can be saved
            elsewhere.
        """
        from keepsum.releasing.canonical import read_private_key

        check_running(self._place.spark, NOT_SAVED)
        to = Place.of(self._place.spark, path, "Output")
        key = None if sign_with is None else read_private_key(sign_with)
        problem = ""
        with self._saving:
            try:
                return self._save(to, key)
            except outside_errors() as error:  # a disk that is full, a host that does not answer
                problem = reason(error)
        raise UnreachableError(
            f"Output {the.file(to.path)} must be writable, but: {problem}. The release can be saved elsewhere."
        )

    def _save(self, to: Place, key: Any) -> str:
        from keepsum.releasing.canonical import sign

        if self._unsaved is None:
            raise InputError(
                f"A release must be saved once, and this one is in {self._place.path!r}. Copy that folder."
            )
        if not (self._place / TABLE).exists():
            raise InputError(
                f"The staged table in {self._place.path!r} must be there to be saved, and is not: it was deleted, or "
                f"saved by a call that was interrupted. What was charged stays charged."
            )
        _check_free(to)
        if not to.parent.exists():
            raise UnreachableError(
                f"Output {the.file(to.path)} must be in a folder that exists. Create {to.parent.path!r} first."
            )
        certificate = self.certificate._record if key is None else sign(self.certificate._record, key)
        document = self._place / CERTIFICATE
        if document.exists():
            document.delete()
        document.write(certificate.to_json())
        if not self._place.move(to):
            _check_free(to)
            raise UnreachableError(f"Output {the.file(to.path)} must be writable, but it is not. Choose another name.")
        staged, self._place = self._place, to  # first of all: whatever happens now, it is saved
        self._unsaved.detach()
        self._unsaved = None
        _remove(staged)  # if it was copied
        return to.path

    def __repr__(self) -> str:
        guarantee = guarantee_of(self.certificate.mechanism, self.certificate.guarantee, self.certificate.records)
        return f"SparkRelease({repr(self.domain)[7:-1]}; {guarantee.person_words})"


def _check_free(to: Place) -> None:
    if any((to.parent / certificate.name).exists() for certificate in certificates_around(Path(to.name))):
        raise InputError(
            f"Output {the.file(to.path)} must not be among the files of another release. Choose another name."
        )
    if to.exists():
        raise OutputExistsError(f"Output {the.file(to.path)} must not exist yet, but it does. Choose another name.")


def _remove(place: Place) -> None:
    """Remove a release that was not saved, if Spark still runs."""
    with contextlib.suppress(Exception):  # Spark may be stopping
        place.delete()
