"""What reviewers ask of the deployment: query model, trust, side channels, security, collection."""

from __future__ import annotations

from collections.abc import Iterator

from keepsum.releasing.certificate import CertificateRecord
from keepsum.releasing.statements import RANDOMNESS
from keepsum.report.answers import Answer, Status
from keepsum.report.shared_words import FLOATING_POINT

QUERIES, TRUST, SIDE = "Query model", "Trust model", "Side channels"
ACCESS, COLLECTION = "Security and access control", "Data collection exposure"


def deployment_answers(certificate: CertificateRecord) -> Iterator[Answer]:
    """What surrounds the guarantee; most of it is up to the publisher."""
    yield Answer(
        QUERIES,
        "Were all queries fixed in advance, so that the data need not stay available?",
        f"One table of {certificate.table.cells:,} counts was released; nobody can query the data through it.",
        "met",
        ("table", "domain"),
    )
    yield Answer(
        TRUST,
        "Is whoever holds the confidential data trusted by the people in it?",
        "The noise is added centrally: the publisher sees all confidential counts and is trusted with them.",
        "not answered",
    )
    yield from _side_channels(certificate)
    for topic, question, answer in UNANSWERED:
        yield Answer(topic, question, answer, "not answered")


def _side_channels(certificate: CertificateRecord) -> Iterator[Answer]:
    exactness = certificate.guarantee.sampling.exactness
    rounding: Status = "not met" if exactness == "estimated" else "met"
    facts = ("guarantee.sampling.exactness", "guarantee.sampling.total_variation")
    question = "Is the guarantee safe from floating-point arithmetic?"
    yield Answer(SIDE, question, FLOATING_POINT[exactness], rounding, facts)
    seeded = certificate.randomness == "seed"
    text = f"Noise comes {RANDOMNESS[certificate.randomness]}."
    if seeded:
        text += " Whoever knows the seed can remove it."
    question = "Is the randomness unpredictable?"
    yield Answer(SIDE, question, text, "not met" if seeded else "met", ("randomness",))


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
