"""Releases that were made before, or without this ledger, taken in from what they published."""

from __future__ import annotations

from hashlib import sha256
from os import PathLike

import msgspec

from keepsum._text import type_of
from keepsum.accounting.cost import Cost
from keepsum.errors import InputError, PlanError
from keepsum.ledger.assessment import Charge, check_totals
from keepsum.ledger.entries import CostRecord, ImportedRecord
from keepsum.ledger.joint import Kept, table_entry
from keepsum.ledger.state import Dataset, State
from keepsum.releasing.canonical import canonical
from keepsum.releasing.certificate import CertificateRecord
from keepsum.releasing.codec import kept_invariants, records_of
from keepsum.releasing.statements import guarantee_of
from keepsum.releasing.verify import read_verified


def published(
    release: str | PathLike[str] | CertificateRecord, invariants: bytes | None
) -> tuple[CertificateRecord, bytes | None, bool]:
    """A release by its certificate, its file of invariants, and whether it was verified.

    Raises
    ------
    InputError
        If it does not verify, or is neither a path nor a certificate.
    """
    if isinstance(release, CertificateRecord):
        return release, invariants, False
    if not isinstance(release, (str, PathLike)):
        raise InputError(f"A release must be given by its path or its Certificate, got {type_of(release)}.")
    found, drawn = read_verified(release, allow_seeded=True)
    if drawn is None:
        failed = ", ".join(check.name for check in found.checks if not check.passed)
        raise InputError(
            f"A release must verify to be imported, and {str(release)!r} does not: {failed}. keepsum verify says why."
        )
    return drawn.certificate, drawn.invariants, True


def charge_for(certificate: CertificateRecord, invariants: bytes | None, dataset: Dataset) -> Charge:
    """What a release is charged as; refuses a table that is not one of the dataset."""
    kept = kept_invariants(certificate, invariants)
    cost = CostRecord.of(Cost.of(guarantee_of(certificate.mechanism, certificate.guarantee)))
    table = table_entry(dataset.name, kept, records_of(certificate.records))
    Kept.of(table, None, dataset.domain)
    return Charge(table, certificate.mechanism, cost, certificate.randomness == "seed")


def past_of(certificate: CertificateRecord, verified: bool) -> ImportedRecord:
    """The release as the ledger remembers it."""
    return ImportedRecord(
        released=certificate.released,
        sha256=certificate.table.sha256,
        certificate=digest_of(certificate),
        verified=verified,
    )


def digest_of(certificate: CertificateRecord) -> str:
    """What tells one release from another, even if both tables are the same by chance; signed later, it is the same."""
    facts = msgspec.to_builtins(msgspec.structs.replace(certificate, signature=None, postprocessing=[]))
    return sha256(canonical(facts)).hexdigest()


def check_new(certificate: CertificateRecord, state: State) -> None:
    """Refuse a certificate that is in the ledger already."""
    head, digest = None if certificate.ledger is None else certificate.ledger.head, digest_of(certificate)
    for spend in state.spends.values():
        imported = spend.entry.imported
        if spend.hash == head or (imported is not None and imported.certificate == digest):
            raise InputError(f"The release is in the ledger already, as entry {spend.number:,}.")


def disclosed(dataset: Dataset, charge: Charge) -> str | None:
    """Why the release would have been refused for its kept totals, if so; it has happened all the same."""
    try:
        check_totals(dataset, charge.table)
    except PlanError as error:
        return str(error).replace(" Keep fewer totals.", "")
    return None
