"""Releases made without this ledger, taken in from what they published, and a ledger checked against certificates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike

import msgspec

from keepsum._text import type_of
from keepsum.accounting.total import Cost
from keepsum.errors import FailedCheckError, InputError, LedgerError, PlanError
from keepsum.ledger.assessment import Charge, check_totals
from keepsum.ledger.entries import CostRecord, ImportedRecord
from keepsum.ledger.person import KeptTable, table_entry
from keepsum.ledger.state import Dataset, Spend, State
from keepsum.ledger.store import Link, Store
from keepsum.releasing.canonical import canonical
from keepsum.releasing.certificate import CertificateRecord
from keepsum.releasing.codec import kept_invariants, records_of
from keepsum.releasing.verify import read_verified
from keepsum.releasing.wording import guarantee_of


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
        raise FailedCheckError(
            f"A release must verify to be imported, and {str(release)!r} does not: {failed}. keepsum verify says why."
        )
    return drawn.certificate, drawn.invariants, True


def charge_for(certificate: CertificateRecord, invariants: bytes | None, dataset: Dataset) -> Charge:
    """What a release is charged as; refuses a table that is not one of the dataset."""
    kept = kept_invariants(certificate, invariants)
    cost = CostRecord.of(Cost.of(guarantee_of(certificate.mechanism, certificate.guarantee)))
    table = table_entry(dataset.name, kept, records_of(certificate.records))
    KeptTable.of(table, None, dataset.domain)
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


def charged_as(certificate: CertificateRecord, state: State) -> Spend:
    """The entry that a release was charged as, or was imported as.

    Raises
    ------
    InputError
        If there is none in this ledger.
    """
    digest, charged = digest_of(certificate), certificate.ledger
    for spend in state.spends.values():
        imported = spend.entry.imported
        if (charged is not None and spend.hash == charged.head) or (imported and imported.certificate == digest):
            return spend
    raise InputError(f"The release of {certificate.released} must be one of this ledger, and no entry is about it.")


def told_of(certificate: CertificateRecord, store: Store) -> tuple[bool, str]:
    """Whether a ledger has a release that is not withdrawn, and what it says of it in words."""
    links = store.read()
    state = State()
    state.add(links)
    problem = _problem(certificate, links, state)
    if problem is not None:
        return False, problem
    spend = charged_as(certificate, state)
    if spend.withdrawn is not None:
        why = "" if spend.withdrawn.note is None else f" ({spend.withdrawn.note})"
        return False, f"withdrawn on {spend.withdrawn.time}{why}: it is not to be used"
    if spend.outcome == "failed":
        return False, f"entry {spend.number:,} is of a release that failed, so that there is none"
    unsure = "; it was not told which table that is" if spend.sha256 is None else ""
    return True, f"entry {spend.number:,} of dataset {spend.entry.dataset!r}, not withdrawn{unsure}"


def disclosed(dataset: Dataset, charge: Charge) -> str | None:
    """Why the release would have been refused for its kept totals, if so; it has happened all the same."""
    try:
        check_totals(dataset, charge.table)
    except PlanError as error:
        return error.problem
    return None


# A ledger against certificates that name its entries: they show whether its end was cut off or replaced.


@dataclass(frozen=True)
class LedgerCheck:
    """What a check of a ledger found.

    Attributes
    ----------
    entries
        How many entries there are; 0 if they cannot be read.
    head
        The hash of the last one: who keeps it can tell later whether any entry is missing.
    problems
        What is wrong, in sentences.
    compared
        How many certificates it was compared with.
    """

    entries: int
    head: str | None
    problems: tuple[str, ...] = ()
    compared: int = 0

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.passed


def checked(
    store: Store, certificates: Iterable[CertificateRecord], known: Link | None = None, head: str | None = None
) -> LedgerCheck:
    """Check every entry of a file, and that it has the entries that these certificates name, and that were seen."""
    state = State()
    try:
        links = store.read()
        state.add(links)
    except LedgerError as error:
        return LedgerCheck(0, None, (str(error),))
    problems: list[str] = []
    if known is not None and known not in links[known.number - 1 : known.number]:
        problems.append(f"Entry {known.number:,} is no longer what it was when the ledger was opened: it was replaced.")
    if head is not None and not any(link.hash == head for link in links):
        problems.append("No entry has the hash that was noted down: the end of the ledger was cut off or replaced.")
    tables: dict[int, str] = {}
    several = list(certificates)
    for certificate in several:
        if not isinstance(certificate, CertificateRecord):
            raise InputError(f"A ledger must be checked against certificates, got {type_of(certificate)}.")
        problem = _problem(certificate, links, state)
        if problem is None and certificate.ledger is not None:
            entry, table = certificate.ledger.entry, certificate.table.sha256
            if tables.setdefault(entry, table) != table:
                problem = f"Two different releases name entry {entry:,}: one of them was charged to a copy."
        problems += [] if problem is None else [problem]
    last = links[-1].hash if links else None
    return LedgerCheck(len(links), last, tuple(problems), len(several))


def _problem(certificate: CertificateRecord, links: Sequence[Link], state: State) -> str | None:
    charged = certificate.ledger
    if _is_imported(certificate, state):
        return None
    if charged is None:
        return f"The release of {certificate.released} was not charged to a ledger; it can be imported."
    which = f"the release of {certificate.released}, entry {charged.entry:,} of dataset {charged.dataset!r}"
    if charged.entry > len(links):
        return f"No entry for {which}: the end of the ledger was cut off, or an older copy was restored."
    if links[charged.entry - 1].hash != charged.head:
        return f"Another entry for {which}: the ledger was rewritten, or it is another ledger."
    spend = state.spends.get(charged.entry)
    if spend is None or spend.entry.dataset != charged.dataset:
        return f"No charge in {which}."
    if spend.sha256 is not None and spend.sha256 != certificate.table.sha256:
        return f"Another table in {which}: the charge was for a release of another table."
    return None


def _is_imported(certificate: CertificateRecord, state: State) -> bool:
    digest = digest_of(certificate)
    return any(
        spend.entry.imported is not None and spend.entry.imported.certificate == digest
        for spend in state.spends.values()
    )
