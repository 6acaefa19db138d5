"""A release in Spark, as users hold it."""

from __future__ import annotations

import contextlib
import threading
import weakref
from os import PathLike
from pathlib import Path
from typing import Any

from keepsum.errors import InputError
from keepsum.facade.objects import Certificate
from keepsum.releasing.destination import certificates_around
from keepsum.releasing.statements import guarantee_of
from keepsum.spark.places import Place, outside_errors, reason
from keepsum.spark.session import check_running, columns
from keepsum.spark.staged import TABLE
from keepsum.tables.domain import Domain

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
        from keepsum.releasing.signing import read_private_key

        check_running(self._place.spark, NOT_SAVED)
        to = Place.of(self._place.spark, path, "Output")
        key = None if sign_with is None else read_private_key(sign_with)
        problem = ""
        with self._saving:
            try:
                return self._save(to, key)
            except outside_errors() as error:  # a disk that is full, a host that does not answer
                problem = reason(error)
        raise InputError(f"Output {to.path!r} must be writable, but: {problem}. The release can be saved elsewhere.")

    def _save(self, to: Place, key: Any) -> str:
        from keepsum.releasing.signing import sign

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
            raise InputError(f"Output {to.path!r} must be in a folder that exists. Create {to.parent.path!r} first.")
        certificate = self.certificate._record if key is None else sign(self.certificate._record, key)
        document = self._place / CERTIFICATE
        if document.exists():
            document.delete()
        document.write(certificate.to_json())
        if not self._place.move(to):
            _check_free(to)
            raise InputError(f"Output {to.path!r} must be writable, but it is not. Choose another name.")
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
        raise InputError(f"Output {to.path!r} must not be among the files of another release. Choose another name.")
    if to.exists():
        raise InputError(f"Output {to.path!r} must not exist yet, but it does. Choose another name.")


def _remove(place: Place) -> None:
    """Remove a release that was not saved, if Spark still runs."""
    with contextlib.suppress(Exception):  # Spark may be stopping
        place.delete()
