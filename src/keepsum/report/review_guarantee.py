"""What reviewers ask of the guarantee: privacy parameters, unit of privacy, other releases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from keepsum.privacy.numbers import decimal_text, shown, shown_briefly
from keepsum.releasing.certificate import CertificateRecord
from keepsum.releasing.codec import records_of
from keepsum.releasing.counted import records_concern
from keepsum.releasing.person_statements import PersonStatements
from keepsum.releasing.statements import guarantee_lines, kept_totals, ledger_words, loss_concern
from keepsum.report.answers import Answer, Status
from keepsum.report.claims import Claim, claim_of
from keepsum.report.shared_words import unprotected, weak_reading

PARAMETERS, UNIT, RELEASES = "Privacy parameters", "Unit of privacy", "Other releases and the budget"
SMALL_EPSILON, SMALL_DELTA = 1, Fraction(1, 10**5)


def guarantee_answers(certificate: CertificateRecord) -> Iterator[Answer]:
    """What the guarantee is, for whom, and what lies outside it."""
    claim, person = claim_of(certificate), PersonStatements.of(certificate)
    answers = [
        _parameters(claim, person),
        _epsilon(certificate, claim, person),
        _delta(claim),
        _unit(certificate, claim, person),
        _neighbours(certificate, person),
        _attributes(person),
        _unprotected(certificate),
    ]
    yield from answers if claim.guaranteed else (_void(answer, claim) for answer in answers)
    yield _budget(certificate)


def _void(answer: Answer, claim: Claim) -> Answer:
    """The answer where nothing is guaranteed: no number that would suggest otherwise."""
    reasons = " ".join([*claim.reasons, "So nothing is guaranteed, and no parameters are stated."])
    return replace(
        answer, answer=f"{reasons} {answer.answer}" if answer.topic == RELEASES else reasons, status="not met"
    )


def _parameters(claim: Claim, person: PersonStatements) -> Answer:
    losses = [f"Variant: {claim.variant}.", f"{person.headline()}.", f"{guarantee_lines(person.guarantee)[0]}."]
    return Answer(
        PARAMETERS,
        "Are all privacy parameters stated, in a variant that is proved to apply?",
        " ".join([*claim.reasons, *losses]),
        "not met" if claim.variant == "Custom" else "met",
        ("guarantee.person", "guarantee.sampling", "mechanism"),
    )


def _epsilon(certificate: CertificateRecord, claim: Claim, person: PersonStatements) -> Answer:
    """No threshold is agreed on; up to 1 is usually taken for small if it holds against any reader.

    What is warned of is not met.
    """
    status: Status = "not answered"
    loss, rho = person.guarantee.usual_loss, claim.rho
    concern = loss_concern(person.guarantee, records_of(certificate.records))
    source = "" if rho is None else f", from rho {shown_briefly(rho)} (zCDP)"
    text = [f"For {claim.subject}: {loss}{source}.", *weak_reading(person), *concern]
    of_a_person = claim.unit not in ("record", "change") and claim.variant != "Custom" and not person.is_qualified
    if concern:
        status = "not met"
    elif loss.epsilon is not None and loss.epsilon <= SMALL_EPSILON and of_a_person:
        text.append(f"Up to {SMALL_EPSILON}, epsilon is usually taken to be small.")
        status = "met"
    else:
        text.append("The publisher must say why that is small enough.")
    question = "Is epsilon small enough to mean something?"
    return Answer(PARAMETERS, question, " ".join(text), status, ("guarantee.person", "guarantee.sampling"))


def _delta(claim: Claim) -> Answer:
    status: Status = "not answered"
    if not claim.delta:
        text = "Delta is 0." if claim.rho is None else "The loss is stated as rho, which allows no such failure."
        status = "met"
    elif claim.delta > SMALL_DELTA:
        text = f"Delta is {decimal_text(claim.delta)}; above {shown(SMALL_DELTA)} it is usually taken to be too large."
        status = "not met"
    else:
        text = (
            f"Delta is {decimal_text(claim.delta)}. It should be at most 1 divided by the square of the number of "
            f"people, which is not stated."
        )
    question = "Is delta so small that a failure of the guarantee can be ruled out?"
    return Answer(PARAMETERS, question, text, status, ("guarantee.person.delta", "guarantee.sampling.delta"))


def _unit(certificate: CertificateRecord, claim: Claim, person: PersonStatements) -> Answer:
    text = [f"The loss is for {claim.subject}.", *weak_reading(person), *records_concern(person.records)]
    status: Status = "not answered"
    if claim.unit in ("record", "change") or not claim.whole or person.is_qualified:
        status = "not met"
    elif claim.unit == "person":
        status = "met"
    if not claim.whole and claim.unit != "change":
        text.append("The loss for a change of several attributes at once may be larger.")
    facts = ("guarantee.person", *(() if certificate.records is None else ("records",)))
    return Answer(
        UNIT, "Is the unit of privacy a person, with all that they contribute?", " ".join(text), status, facts
    )


def _neighbours(certificate: CertificateRecord, person: PersonStatements) -> Answer:
    question = "Is the size of the data protected too (unbounded rather than bounded neighbours)?"
    facts = ("kept", "guarantee.person.distance")
    bound = (
        "" if person.all_exact() else " Some distances are upper bounds: the true loss is the stated one or smaller."
    )
    if not certificate.kept.parts:
        text = f"No total is kept: any two tables are compared, whatever their sizes.{bound}"
        return Answer(UNIT, question, text, "met", facts)
    text = f"Neighbours have the same kept totals ({kept_totals(certificate.kept, certificate.domain)}).{bound}"
    return Answer(UNIT, question, text, "not met", facts)


def _attributes(person: PersonStatements) -> Answer:
    question = "Is every value of every attribute protected?"
    partly, facts = person.partly_protected(), ("guarantee.person.attributes",)
    if not person.person.attributes:
        return Answer(UNIT, question, f"{person.headline()}.", "not met", facts)
    lines = [*(f"{person.attribute(attribute)}." for attribute in person.person.attributes), *weak_reading(person)]
    status: Status = "not met" if partly or person.is_qualified else "met"
    return Answer(UNIT, question, " ".join(lines), status, facts)


def _unprotected(certificate: CertificateRecord) -> Answer:
    """What is published without noise in this very release; other releases are up to the publisher."""
    found = list(unprotected(certificate))
    question = "Is everything that is released about the data under the guarantee?"
    text = " ".join(line for _, line in found) or "Nothing in this release is published without noise."
    facts = tuple(dict.fromkeys(fact for fact, _ in found)) or ("kept", "exposure")
    rest = "Other releases of the same data are up to the publisher."
    return Answer(RELEASES, question, f"{text} {rest}", "not met" if found else "met", facts)


def _budget(certificate: CertificateRecord) -> Answer:
    question = "Is the loss of all releases of the same data added up?"
    text = ledger_words(certificate.ledger)
    if certificate.ledger is not None:
        text += " The sum, and the limit that the publisher set, are in the ledger, not in this certificate."
    return Answer(RELEASES, question, text, "not met" if certificate.ledger is None else "met", ("ledger",))
