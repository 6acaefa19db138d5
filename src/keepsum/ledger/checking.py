"""A ledger against certificates that name its entries: they show whether its end was cut off or replaced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from keepsum._text import type_of
from keepsum.errors import InputError, LedgerError
from keepsum.ledger.chain import Link
from keepsum.ledger.importing import digest_of
from keepsum.ledger.state import State
from keepsum.ledger.store import Store
from keepsum.releasing.certificate import CertificateRecord


@dataclass(frozen=True)
class Check:
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
) -> Check:
    """Check every entry of a file, and that it has the entries that these certificates name, and that were seen."""
    state = State()
    try:
        links = store.read()
        state.add(links)
    except LedgerError as error:
        return Check(0, None, (str(error),))
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
    return Check(len(links), last, tuple(problems), len(several))


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
