"""``keepsum.spark.verify``: the table of a saved release against its certificate, in Spark."""

from __future__ import annotations

from os import PathLike
from typing import Any

from keepsum._arguments import check_flag
from keepsum._arrays import IntArray
from keepsum.errors import InputError, KeepsumError
from keepsum.planning.quotient import Quotient
from keepsum.releasing.certificate import Certificate, document_of
from keepsum.releasing.codec import domain_of, kept_values
from keepsum.releasing.facts import MarginRecord
from keepsum.releasing.signing import read_public_key
from keepsum.releasing.verify import Check, Verification, randomness_check, signature_check
from keepsum.spark.layout import Layout
from keepsum.spark.places import Place, reason
from keepsum.spark.preparing import MOST_CELLS
from keepsum.spark.released import CERTIFICATE
from keepsum.spark.session import check_installed
from keepsum.spark.staged import TABLE, read_back
from keepsum.tables.invariants import Invariants

WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")


def verify(
    path: str | PathLike[str], spark: Any, *, key: str | PathLike[str] | None = None, allow_seeded: bool = False
) -> Verification:
    """Verify the table of a saved release in Spark: signature, every cell once, its hash, and every kept total.

    Whether the guarantee follows from what the certificate declares is not checked here; :func:`keepsum.verify` does
    that, and everything else, where the table fits one machine.

    Parameters
    ----------
    path
        The folder of the release.
    spark
        The session.
    key, allow_seeded
        See :func:`keepsum.verify`.

    Returns
    -------
    Verification
        What was checked; it is true if everything passed.
    """
    check_installed()
    check_flag(allow_seeded, "allow_seeded=")
    trusted = None if key is None else read_public_key(key)
    place = Place.of(spark, path, "The release")
    for name in (CERTIFICATE, TABLE):
        if not (place / name).exists():
            raise InputError(f"The release {place.path!r} must be a folder with {name!r}, and that is not there.")
    try:
        document = document_of((place / CERTIFICATE).read())
        record = Certificate.from_document(document)
        kept = _kept(record)
        signature = Check("signature", *signature_check(record, document, trusted))
    except KeepsumError as error:
        return Verification((Check("certificate", False, str(error)),))
    said = Check("certificate", True, f"follows {record.schema}, released {record.released}")
    if not signature.passed:  # nothing is computed from a certificate that may be somebody else's
        return Verification((said, signature))
    randomness = Check("randomness", *randomness_check(record, allow_seeded))
    return Verification((said, signature, randomness, *_checks(place / TABLE, record, kept)))


def _kept(record: Certificate) -> Invariants:
    if not all(isinstance(part, MarginRecord) for part in record.kept.parts):
        raise InputError("Kept totals must be margins to be verified in Spark. Use ks.verify on one machine.")
    if record.postprocessing:
        raise InputError("The table must be as it was drawn to be verified in Spark. Use ks.verify on one machine.")
    axes = [part.axes for part in record.kept.parts if isinstance(part, MarginRecord)]
    return Invariants.margins(domain_of(record.domain, MOST_CELLS), axes)


def _checks(table: Place, record: Certificate, kept: Invariants) -> tuple[Check, ...]:
    quotient, columns = Quotient.of(kept), _columns(table)
    if columns is None:
        return (Check("table", False, "it has no file that can be read"),)
    expected = sorted([*quotient.domain.axes, record.table.count])
    if any(sorted(names) != expected for names in columns):
        return (Check("table", False, "its columns are others than the certificate says"),)
    read, problem = _read(table, Layout.of(quotient), record.table.count)
    if read is None:
        return (Check("table", False, problem),)
    sha256, sums = read
    same = sha256 == record.table.sha256
    totals = [int(total) for total in quotient.totals.totals(sums)]
    differing = sum(a != b for a, b in zip(totals, kept_values(record.kept), strict=True))
    return (
        Check("table", True, f"{quotient.domain.size:,} cells, each once, all integers"),
        Check("hash", same, "as in the certificate" if same else "is another than in the certificate"),
        Check(
            "kept totals",
            not differing,
            f"all {len(totals):,} as in the certificate" if not differing else f"{differing:,} differ",
        ),
    )


def _read(table: Place, layout: Layout, count: str) -> tuple[tuple[str, IntArray] | None, str]:
    """What a table is found to be, or else what is wrong with it."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        rows = table.spark.read.parquet(table.path)
        if dict(rows.dtypes)[count] not in WHOLE_NUMBERS:
            return None, "its counts must be integers, and are not"
        return read_back(rows, layout, count), "some cells are missing, or there are several of them"
    except (Py4JJavaError, PySparkException) as error:  # of workers too: files of other types, or that are cut off
        return None, f"Spark cannot read it: {reason(error)}"


def _columns(table: Place) -> list[list[str]] | None:
    """The columns of each file of a table, as it has them; None if some cannot be read, or there is none.

    Spark goes by what a file says of itself, and would not see columns that were added to it.
    """
    from py4j.protocol import Py4JJavaError

    try:
        return [file.parquet_columns() for file in table.files()] or None
    except Py4JJavaError:
        return None
