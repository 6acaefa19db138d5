"""Answers to questions that reviewers ask, each from a fact of the certificate or left to the curator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import Literal, TypeAlias

from keepsum._holding import record_in
from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.privacy.numbers import decimal_text, shown, shown_briefly
from keepsum.releasing.certificate import AnyCertificate, CertificateRecord
from keepsum.releasing.codec import json_file, records_of
from keepsum.releasing.wording import (
    RANDOMNESS,
    PersonStatements,
    block_lines,
    guarantee_lines,
    is_bounded,
    kept_totals,
    ledger_words,
    loss_concern,
    noise,
    nonnegative,
    records_concern,
)
from keepsum.report.claims import FLOATING_POINT, ReleaseClaim, claim_of, escaped, margin, unprotected, weak_reading
from keepsum.tables.axes import quoted

# An answer to a question about a release, and the facts that it rests on.

Status: TypeAlias = Literal["met", "not met", "not answered"]


@dataclass(frozen=True)
class ReviewAnswer:
    """An answer to a question about a release.

    Attributes
    ----------
    topic
        What the question is about.
    question
        What is asked, so that yes is good.
    answer
        What the certificate says, as plain text.
    status
        ``"met"`` if the certificate shows that the hazard is avoided, ``"not met"`` if it shows that it is not, and
        ``"not answered"`` if it does not tell: that is up to the publisher.
    facts
        The fields of the certificate that the answer rests on; empty if it has none.
    """

    topic: str
    question: str
    answer: str
    status: Status
    facts: tuple[str, ...] = ()


# What reviewers ask of the algorithms: correctness, categories, utility, bias.

CORRECTNESS, UTILITY, BIAS = "Algorithms and correctness", "Utility", "Bias"


def algorithm_answers(certificate: CertificateRecord) -> Iterator[ReviewAnswer]:
    """How the noise was drawn, how large it is, and what it does to the counts."""
    yield _mechanism(certificate)
    yield _proof(certificate)
    yield _library(certificate)
    yield _categories(certificate)
    yield _accuracy(certificate)
    yield _statistical_bias(certificate)
    yield from _other_bias(certificate)


def _mechanism(certificate: CertificateRecord) -> ReviewAnswer:
    mechanism = PersonStatements.of(certificate).guarantee.mechanism
    text = f"{mechanism!r}: {noise(mechanism)}. {'; '.join(block_lines(certificate.guarantee.blocks))}."
    facts = ("mechanism", "guarantee.blocks")
    return ReviewAnswer(CORRECTNESS, "Are the mechanism and its parameters stated?", text, "met", facts)


def _proof(certificate: CertificateRecord) -> ReviewAnswer:
    sampling = certificate.guarantee.sampling
    status: Status = "not met" if sampling.exactness in ("estimated", "claimed") else "met"
    text = PersonStatements.of(certificate).guarantee.sampling_words
    unmet = sum(b.convergence.unmet for b in certificate.guarantee.blocks if b.convergence is not None)
    if unmet:
        text += f" {unmet:,} pairs of chains were given up before they met: their blocks have no guarantee."
    question = "Does the guarantee rest on a proof, rather than on measurements?"
    return ReviewAnswer(CORRECTNESS, question, text, status, ("guarantee.sampling", "guarantee.blocks"))


def _library(certificate: CertificateRecord) -> ReviewAnswer:
    software = ", ".join(f"{name} {version}" for name, version in certificate.software.items())
    text = f"Made by {software}. Whether others reviewed this version is not in a certificate."
    question = "Was a tested library used, reviewed by others?"
    return ReviewAnswer(CORRECTNESS, question, text, "not answered", ("software",))


def _categories(certificate: CertificateRecord) -> ReviewAnswer:
    taken = certificate.domain.taken_from_data
    text = "All categories were declared."
    if taken:
        text = (
            f"The categories of {quoted(taken)} were taken from the data: the list itself is published, and if the "
            f"data has no rows for counts of 0, it shows which counts are not 0."
        )
    question = "Were the categories that are counted fixed without looking at the data?"
    return ReviewAnswer(CORRECTNESS, question, text, "not met" if taken else "met", ("domain.taken_from_data",))


def _accuracy(certificate: CertificateRecord) -> ReviewAnswer:
    text = " ".join([*margin(certificate), "Whether that is accurate enough depends on the use."])
    return ReviewAnswer(UTILITY, "Is the accuracy stated?", text, "met", ("accuracy",))


def _statistical_bias(certificate: CertificateRecord) -> ReviewAnswer:
    question = "Is the expected value of each published count the true one?"
    facts, text = ["postprocessing"], [nonnegative(r, certificate.table.cells) for r in certificate.postprocessing]
    if is_bounded(records_of(certificate.records)):
        facts.append("records")
        text.append("Records above the bound per person are left out of the counts, and their number is confidential.")
    if text:
        return ReviewAnswer(BIAS, question, " ".join(text), "not met", tuple(facts))
    estimated = certificate.guarantee.sampling.exactness == "estimated"
    answer = "The target of the noise is symmetric about 0, and nothing was done to the counts afterwards."
    if certificate.mechanism.claim is not None:
        answer = "The noise is the publisher's own: whether it is symmetric about 0 is not known."
        return ReviewAnswer(BIAS, question, answer, "not answered", ("mechanism", "guarantee.sampling", *facts))
    if estimated:
        answer += " How near the noise comes to its target is estimated."
    status: Status = "not answered" if estimated else "met"
    return ReviewAnswer(BIAS, question, answer, status, ("mechanism", "guarantee.sampling", *facts))


def _other_bias(certificate: CertificateRecord) -> Iterator[ReviewAnswer]:
    typical = certificate.accuracy.typical_margin
    yield ReviewAnswer(
        BIAS,
        "Are small groups served as well as large ones?",
        f"The noise does not depend on the counts, so its relative error is largest for small counts: a margin of "
        f"±{typical:,} matters more to a small group. Whether that does harm depends on the use.",
        "not answered",
        ("accuracy",),
    )
    removed = bool(certificate.postprocessing)
    yield ReviewAnswer(
        BIAS,
        "Will readers take the counts as they are meant?",
        "Counts are whole numbers, "
        + ("without negative ones." if removed else "and may be negative; the publisher must tell readers why."),
        "met" if removed else "not answered",
        ("postprocessing",),
    )


# What reviewers ask of the deployment: query model, trust, side channels, security, collection.

QUERIES, TRUST, SIDE = "Query model", "Trust model", "Side channels"
ACCESS, COLLECTION = "Security and access control", "Data collection exposure"


def deployment_answers(certificate: CertificateRecord) -> Iterator[ReviewAnswer]:
    """What surrounds the guarantee; most of it is up to the publisher."""
    yield ReviewAnswer(
        QUERIES,
        "Were all queries fixed in advance, so that the data need not stay available?",
        f"One table of {certificate.table.cells:,} counts was released; nobody can query the data through it.",
        "met",
        ("table", "domain"),
    )
    yield ReviewAnswer(
        TRUST,
        "Is whoever holds the confidential data trusted by the people in it?",
        "The noise is added centrally: the publisher sees all confidential counts and is trusted with them.",
        "not answered",
    )
    yield from _side_channels(certificate)
    for topic, question, answer in UNANSWERED:
        yield ReviewAnswer(topic, question, answer, "not answered")


def _side_channels(certificate: CertificateRecord) -> Iterator[ReviewAnswer]:
    exactness = certificate.guarantee.sampling.exactness
    rounding: Status = "not met" if exactness in ("estimated", "claimed") else "met"
    facts = ("guarantee.sampling.exactness", "guarantee.sampling.total_variation")
    question = "Is the guarantee safe from floating-point arithmetic?"
    yield ReviewAnswer(SIDE, question, FLOATING_POINT[exactness], rounding, facts)
    seeded = certificate.randomness == "seed"
    text = f"Noise comes {RANDOMNESS[certificate.randomness]}."
    if seeded:
        text += " Whoever knows the seed can remove it."
    question = "Is the randomness unpredictable?"
    yield ReviewAnswer(SIDE, question, text, "not met" if seeded else "met", ("randomness",))


UNANSWERED = (
    (
        SIDE,
        "Can nobody learn anything from how long the release took, or from its errors?",
        "A certificate records neither. Only the publisher ran the release, and only they saw its messages.",
    ),
    (
        SIDE,
        "Were epsilon, categories and totals chosen without looking at the confidential data?",
        "A certificate records what was chosen, not how.",
    ),
    (
        ACCESS,
        "Are the confidential data, the seed if any, and the signing key kept safe, before and after the release?",
        "A certificate does not tell. A breach of the confidential data makes any guarantee void.",
    ),
    (
        COLLECTION,
        "Was no more collected than is needed?",
        "A certificate does not tell. Differential privacy limits what is published, not what is collected.",
    ),
)


# What reviewers ask of the guarantee: privacy parameters, unit of privacy, other releases.

PARAMETERS, UNIT, RELEASES = "Privacy parameters", "Unit of privacy", "Other releases and the budget"
SMALL_EPSILON, SMALL_DELTA = 1, Fraction(1, 10**5)


def guarantee_answers(certificate: CertificateRecord) -> Iterator[ReviewAnswer]:
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


def _void(answer: ReviewAnswer, claim: ReleaseClaim) -> ReviewAnswer:
    """The answer where nothing is guaranteed: no number that would suggest otherwise."""
    reasons = " ".join([*claim.reasons, "So nothing is guaranteed, and no parameters are stated."])
    return replace(
        answer, answer=f"{reasons} {answer.answer}" if answer.topic == RELEASES else reasons, status="not met"
    )


def _parameters(claim: ReleaseClaim, person: PersonStatements) -> ReviewAnswer:
    losses = [f"Variant: {claim.variant}.", f"{person.headline()}.", f"{guarantee_lines(person.guarantee)[0]}."]
    return ReviewAnswer(
        PARAMETERS,
        "Are all privacy parameters stated, in a variant that is proved to apply?",
        " ".join([*claim.reasons, *losses]),
        "not met" if claim.variant == "Custom" else "met",
        ("guarantee.person", "guarantee.sampling", "mechanism"),
    )


def _epsilon(certificate: CertificateRecord, claim: ReleaseClaim, person: PersonStatements) -> ReviewAnswer:
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
    return ReviewAnswer(PARAMETERS, question, " ".join(text), status, ("guarantee.person", "guarantee.sampling"))


def _delta(claim: ReleaseClaim) -> ReviewAnswer:
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
    return ReviewAnswer(PARAMETERS, question, text, status, ("guarantee.person.delta", "guarantee.sampling.delta"))


def _unit(certificate: CertificateRecord, claim: ReleaseClaim, person: PersonStatements) -> ReviewAnswer:
    text = [f"The loss is for {claim.subject}.", *weak_reading(person), *records_concern(person.records)]
    status: Status = "not answered"
    if claim.unit in ("record", "change") or not claim.whole or person.is_qualified:
        status = "not met"
    elif claim.unit == "person":
        status = "met"
    if not claim.whole and claim.unit != "change":
        text.append("The loss for a change of several attributes at once may be larger.")
    facts = ("guarantee.person", *(() if certificate.records is None else ("records",)))
    return ReviewAnswer(
        UNIT, "Is the unit of privacy a person, with all that they contribute?", " ".join(text), status, facts
    )


def _neighbours(certificate: CertificateRecord, person: PersonStatements) -> ReviewAnswer:
    question = "Is the size of the data protected too (unbounded rather than bounded neighbours)?"
    facts = ("kept", "guarantee.person.distance")
    bound = (
        "" if person.all_exact() else " Some distances are upper bounds: the true loss is the stated one or smaller."
    )
    if not certificate.kept.parts:
        text = f"No total is kept: any two tables are compared, whatever their sizes.{bound}"
        return ReviewAnswer(UNIT, question, text, "met", facts)
    text = f"Neighbours have the same kept totals ({kept_totals(certificate.kept, certificate.domain)}).{bound}"
    return ReviewAnswer(UNIT, question, text, "not met", facts)


def _attributes(person: PersonStatements) -> ReviewAnswer:
    question = "Is every value of every attribute protected?"
    partly, facts = person.partly_protected(), ("guarantee.person.attributes",)
    if not person.person.attributes:
        return ReviewAnswer(UNIT, question, f"{person.headline()}.", "not met", facts)
    lines = [*(f"{person.attribute(attribute)}." for attribute in person.person.attributes), *weak_reading(person)]
    status: Status = "not met" if partly or person.is_qualified else "met"
    return ReviewAnswer(UNIT, question, " ".join(lines), status, facts)


def _unprotected(certificate: CertificateRecord) -> ReviewAnswer:
    """What is published without noise in this very release; other releases are up to the publisher."""
    found = list(unprotected(certificate))
    question = "Is everything that is released about the data under the guarantee?"
    text = " ".join(line for _, line in found) or "Nothing in this release is published without noise."
    facts = tuple(dict.fromkeys(fact for fact, _ in found)) or ("kept", "exposure")
    rest = "Other releases of the same data are up to the publisher."
    return ReviewAnswer(RELEASES, question, f"{text} {rest}", "not met" if found else "met", facts)


def _budget(certificate: CertificateRecord) -> ReviewAnswer:
    question = "Is the loss of all releases of the same data added up?"
    text = ledger_words(certificate.ledger)
    if certificate.ledger is not None:
        text += " The sum, and the limit that the publisher set, are in the ledger, not in this certificate."
    return ReviewAnswer(RELEASES, question, text, "not met" if certificate.ledger is None else "met", ("ledger",))


# The questions are ours: what a reviewer needs to know of the guarantee and its unit, of the algorithms, their
# accuracy and bias, and of the deployment. By convention, not by rule, epsilon up to 1 is small and delta above 1e-5
# is large.

STATUS: dict[Status, str] = {
    "met": "met",
    "not met": "not met",
    "not answered": "not answered by this certificate (up to the publisher)",
}


def review_answers(certificate: AnyCertificate) -> list[ReviewAnswer]:
    """The answers that a certificate gives, in the order in which they are asked.

    Raises
    ------
    InputError
        If it is not a certificate.
    """
    certificate = record_in(certificate, CertificateRecord)
    if not isinstance(certificate, CertificateRecord):
        raise InputError(f"Answers must be made from a certificate, got {type_of(certificate)}.")
    return [*guarantee_answers(certificate), *algorithm_answers(certificate), *deployment_answers(certificate)]


def as_markdown(certificate: AnyCertificate) -> str:
    """The answers as a page of Markdown, in which names and labels of the certificate do nothing."""
    record: CertificateRecord = record_in(certificate, CertificateRecord)
    answers = review_answers(record)
    count = Counter(answer.status for answer in answers)
    lines = [
        "# Questions that reviewers ask",
        "",
        f"From the certificate of the release of {record.released}, table {record.table.sha256} (SHA-256).",
        "",
        f"Of {len(answers)} questions: {', '.join(f'{count[status]} {words}' for status, words in STATUS.items())}.",
    ]
    for topic, group in groupby(answers, key=lambda answer: answer.topic):
        lines += ["", f"## {topic}"]
        for answer in group:
            facts = ", ".join(f"`{fact}`" for fact in answer.facts)
            lines += [
                "",
                f"**{answer.question}** *{STATUS[answer.status]}*",
                "",
                f"Answer: {escaped(answer.answer)}",
                *(["", f"Facts: {facts}"] if facts else []),
            ]
    return "\n".join(lines) + "\n"


def as_json(certificate: AnyCertificate) -> bytes:
    """The answers as a file for machines."""
    record: CertificateRecord = record_in(certificate, CertificateRecord)
    answers = review_answers(record)
    document = {
        "released": record.released,
        "sha256": record.table.sha256,
        "answers": [asdict(answer) for answer in answers],
    }
    return json_file(document)
