"""The fields of an entry of the registry that a certificate answers, in words.

Each function takes the certificate with its names marked for Markdown (``markdown.marked``), and says no more than the
certificate does.
"""

from __future__ import annotations

from collections.abc import Iterable

from keepsum.releasing.certificate import CertificateRecord
from keepsum.releasing.codec import records_of
from keepsum.releasing.counted import records_concern
from keepsum.releasing.person_statements import PersonStatements
from keepsum.releasing.statements import (
    RANDOMNESS,
    block_lines,
    guarantee_lines,
    kept_totals,
    ledger_words,
    loss_concern,
    noise,
    nonnegative,
    warnings_of,
)
from keepsum.report.claims import Claim
from keepsum.report.registry_schema import SOURCE
from keepsum.report.shared_words import FLOATING_POINT, margin, unprotected, weak_reading


def description(facts: CertificateRecord) -> str:
    """What was published."""
    return (
        f"A table of counts by {_axes(facts)}: {facts.table.cells:,} cells with random noise. "
        f"Kept exactly: {kept_totals(facts.kept, facts.domain)}."
    )


def data_domain(facts: CertificateRecord) -> str:
    """The tables among which the guarantee holds."""
    zeros = len(facts.domain.structural_zeros)
    less = f", less {zeros:,} that are declared impossible" if zeros else ""
    totals = " with the same kept totals" if facts.kept.parts else ""
    return f"All tables of whole counts over the {facts.table.cells:,} combinations of {_axes(facts)}{less}{totals}."


def unprotected_quantities(facts: CertificateRecord) -> str:
    """Whatever is published without noise, or follows from what is."""
    return _bullets(sentence for _, sentence in unprotected(facts)) or "None."


def privacy_unit_details(facts: CertificateRecord, claim: Claim) -> str:
    """Which tables are adjacent, and what the loss is for each attribute."""
    person = PersonStatements.of(facts)
    same = " and have the same kept totals" if facts.kept.parts else ""
    lines = [
        f"Adjacent tables differ by a change of one {person.subject}'s value of one attribute{same}"
        f"{_others(person, facts)}."
        if claim.unit != "change"
        else f"Adjacent tables are at distance 1{same}.",
        *(_losses(person) if claim.guaranteed else ["Nothing is guaranteed for such a change."]),
        *records_concern(person.records),
    ]
    if not claim.whole and claim.unit != "change":
        lines.append(f"The loss for a change of several attributes of one {person.subject} at once may be larger.")
    if not person.all_exact():
        lines.append("A distance given as 'at most' is an upper bound: the true loss is this or smaller.")
    if claim.unit == "counted person":
        lines.append("The table was given as counts: whether every person is counted once is not known.")
    return _bullets(lines)


def _losses(person: PersonStatements) -> list[str]:
    attributes = [person.attribute(attribute) for attribute in person.person.attributes]
    return [f"{loss}." for loss in (person.headline(), *attributes)]


def _others(person: PersonStatements, facts: CertificateRecord) -> str:
    several = facts.kept.parts and person.several_change
    return ", for which other counts may have to change too" if several else ""


def privacy_parameters_details(facts: CertificateRecord, claim: Claim) -> str:
    """What the numbers are, and where they come from."""
    person, records = PersonStatements.of(facts), records_of(facts.records)
    guarantee = person.guarantee
    per_distance, sampling = guarantee_lines(guarantee)
    if not claim.guaranteed:
        return _bullets([*claim.reasons, "So nothing is guaranteed, and no parameters are stated."])
    against = [f"The loss is for {claim.subject}. {sentence}" for sentence in weak_reading(person)]
    loss = [f"{per_distance}.", sampling, *loss_concern(guarantee, records)]
    return _bullets([*claim.reasons, *against, *loss])


def mechanisms(facts: CertificateRecord) -> str:
    """The noise, how it was drawn and by what."""
    mechanism = PersonStatements.of(facts).guarantee.mechanism
    return _bullets(
        [
            f"{mechanism!r}: {noise(mechanism)}.",
            *(f"Drawn as {line}." for line in block_lines(facts.guarantee.blocks)),
            f"Randomness: {RANDOMNESS[facts.randomness]}.",
            f"Floating point: {FLOATING_POINT[facts.guarantee.sampling.exactness]}",
            f"Software: {', '.join(f'{name} {version}' for name, version in facts.software.items())}.",
            "How the confidential data are secured is not known from the certificate.",
        ]
    )


def composition(facts: CertificateRecord) -> str:
    """Whether the loss is added to those of other releases."""
    return f"The whole table is one release of one mechanism. {ledger_words(facts.ledger)}"


def post_processing(facts: CertificateRecord) -> str:
    """What was made of the released counts."""
    return " ".join(nonnegative(record, facts.table.cells) for record in facts.postprocessing) or "None."


def utility(facts: CertificateRecord) -> str:
    """The margin of error."""
    return " ".join(margin(facts))


def additional_information(facts: CertificateRecord) -> str:
    """Where it comes from, how to check it, and what every reader must know."""
    published = [f"SHA-256 of the published table: {record.sha256}." for record in facts.postprocessing]
    return _bullets(
        [
            f"Made from the certificate of the release ({facts.schema}, {facts.released}); `keepsum verify` checks the "
            f"table and the certificate against each other.",
            f"SHA-256 of the released table as plain CSV: {facts.table.sha256}.",
            *published,
            "The certificate is not signed." if facts.signature is None else f"Signed by {facts.signature.public_key}.",
            *warnings_of(facts),
            f"This entry follows {SOURCE['schema']} of the registry's data at commit {SOURCE['commit']}.",
        ]
    )


def _axes(facts: CertificateRecord) -> str:
    return ", ".join(axis.name for axis in facts.domain.axes)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
