"""``keepsum.spark.verify``: the table of a saved release against its certificate, in Spark."""

from __future__ import annotations

from os import PathLike
from typing import Any

from keepsum._arguments import check_flag
from keepsum._saying import arg, the
from keepsum.errors import InputError, KeepsumError
from keepsum.planning.quotient import Quotient
from keepsum.releasing.canonical import read_public_key
from keepsum.releasing.certificate import CertificateRecord, document_of
from keepsum.releasing.codec import domain_of, kept_record, kept_values
from keepsum.releasing.facts import MarginRecord
from keepsum.releasing.verify import Check, Verification, randomness_check, signature_check
from keepsum.spark.layout import Layout
from keepsum.spark.places import Place, outside_errors, reason
from keepsum.spark.preparing import MOST_CELLS
from keepsum.spark.released import CERTIFICATE, TABLE, read_back
from keepsum.spark.session import check_installed, check_running, columns, use_this_python
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants


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
    check_flag(allow_seeded, f"{arg.allow_seeded}")
    trusted = None if key is None else read_public_key(key)
    check_running(spark)
    use_this_python(spark)
    place = Place.of(spark, path, "The release")
    for name in (CERTIFICATE, TABLE):
        if not (place / name).exists():
            raise InputError(f"The release {place.path!r} must be a folder with {name!r}, and that is not there.")
    try:
        document = document_of((place / CERTIFICATE).read())
        record = CertificateRecord.from_document(document)
        said = Check("certificate", True, f"follows {record.schema}, released {record.released}")
        signature = Check("signature", *signature_check(record, document, trusted))
        if not signature.passed:  # nothing is computed from a certificate that may be somebody else's
            return Verification((said, signature))
        kept = _kept(record)
    except KeepsumError as error:
        return Verification((Check("certificate", False, str(error)),))
    except outside_errors() as error:
        return Verification((Check("certificate", False, f"cannot be read: {reason(error)}"),))
    randomness = Check("randomness", *randomness_check(record, allow_seeded))
    return Verification((said, signature, randomness, *_checks(place / TABLE, record, kept)))


def _kept(record: CertificateRecord) -> Invariants:
    if not all(isinstance(part, MarginRecord) for part in record.kept.parts):
        raise InputError(
            f"Kept totals must be margins to be verified in Spark. Use {the.call('ks.verify')} on one machine."
        )
    if record.postprocessing:
        raise InputError(
            f"The table must be as it was drawn to be verified in Spark. Use {the.call('ks.verify')} on one machine."
        )
    axes = [part.axes for part in record.kept.parts if isinstance(part, MarginRecord)]
    kept, values = Invariants.margins(domain_of(record.domain, MOST_CELLS), axes), list(kept_values(record.kept))
    if len(values) != kept.height or kept_record(kept, None, values) != record.kept:
        raise InputError("Kept totals of the certificate must be those of its margins, in their order.")
    return kept


def _checks(table: Place, record: CertificateRecord, kept: Invariants) -> tuple[Check, ...]:
    quotient = Quotient.of(kept)
    read, problem = None, ""
    try:
        problem = _form(table, quotient.domain, record.table.count)
        if not problem:
            rows = table.spark.read.schema(columns(quotient.domain, record.table.count)).parquet(table.path)
            read = read_back(rows, Layout.of(quotient), record.table.count)
            problem = "some cells are missing, or there are several of them"
    except outside_errors() as error:
        problem = f"Spark cannot read it: {reason(error)}"
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


def _form(table: Place, domain: Domain, count: str) -> str:
    """What is wrong with the files of a table; empty if nothing is.

    Spark goes by what a file says of itself: it would not see columns that were added, nor that others are not stored
    as integers and text, and passes over folders.
    """
    if table.folders():
        return "it has folders inside, which are of no release"
    expected = [
        (name, "INT64" if isinstance(domain.axis(name).labels[0], int) else "BINARY (STRING)") for name in domain.axes
    ]
    files = table.files()
    for file in files:
        try:
            found = file.parquet_columns()
        except outside_errors() as error:
            return f"its file {file.name!r} cannot be read: {reason(error)}"
        if sorted(found) != sorted([*expected, (count, "INT64")]):
            return f"the columns of its file {file.name!r}, or their types, are others than the certificate says"
    return "" if files else "it has no files"
