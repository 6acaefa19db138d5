"""What reviewers ask of the algorithms: correctness, categories, utility, bias."""

from __future__ import annotations

from collections.abc import Iterator

from keepsum.releasing.certificate import CertificateRecord
from keepsum.releasing.codec import records_of
from keepsum.releasing.counted import is_bounded
from keepsum.releasing.person_statements import PersonStatements
from keepsum.releasing.statements import block_lines, noise, nonnegative
from keepsum.report.answers import Answer, Status
from keepsum.report.shared_words import margin
from keepsum.tables.axes import quoted

CORRECTNESS, UTILITY, BIAS = "Algorithms and correctness", "Utility", "Bias"


def algorithm_answers(certificate: CertificateRecord) -> Iterator[Answer]:
    """How the noise was drawn, how large it is, and what it does to the counts."""
    yield _mechanism(certificate)
    yield _proof(certificate)
    yield _library(certificate)
    yield _categories(certificate)
    yield _accuracy(certificate)
    yield _statistical_bias(certificate)
    yield from _other_bias(certificate)


def _mechanism(certificate: CertificateRecord) -> Answer:
    mechanism = PersonStatements.of(certificate).guarantee.mechanism
    text = f"{mechanism!r}: {noise(mechanism)}. {'; '.join(block_lines(certificate.guarantee.blocks))}."
    facts = ("mechanism", "guarantee.blocks")
    return Answer(CORRECTNESS, "Are the mechanism and its parameters stated?", text, "met", facts)


def _proof(certificate: CertificateRecord) -> Answer:
    sampling = certificate.guarantee.sampling
    status: Status = "not met" if sampling.exactness == "estimated" else "met"
    text = PersonStatements.of(certificate).guarantee.sampling_words
    unmet = sum(b.convergence.unmet for b in certificate.guarantee.blocks if b.convergence is not None)
    if unmet:
        text += f" {unmet:,} pairs of chains were given up before they met: their blocks have no guarantee."
    question = "Does the guarantee rest on a proof, rather than on measurements?"
    return Answer(CORRECTNESS, question, text, status, ("guarantee.sampling", "guarantee.blocks"))


def _library(certificate: CertificateRecord) -> Answer:
    software = ", ".join(f"{name} {version}" for name, version in certificate.software.items())
    text = f"Made by {software}. Whether others reviewed this version is not in a certificate."
    question = "Was a tested library used, reviewed by others?"
    return Answer(CORRECTNESS, question, text, "not answered", ("software",))


def _categories(certificate: CertificateRecord) -> Answer:
    taken = certificate.domain.taken_from_data
    text = "All categories were declared."
    if taken:
        text = (
            f"The categories of {quoted(taken)} were taken from the data: the list itself is published, and if the "
            f"data has no rows for counts of 0, it shows which counts are not 0."
        )
    question = "Were the categories that are counted fixed without looking at the data?"
    return Answer(CORRECTNESS, question, text, "not met" if taken else "met", ("domain.taken_from_data",))


def _accuracy(certificate: CertificateRecord) -> Answer:
    text = " ".join([*margin(certificate), "Whether that is accurate enough depends on the use."])
    return Answer(UTILITY, "Is the accuracy stated?", text, "met", ("accuracy",))


def _statistical_bias(certificate: CertificateRecord) -> Answer:
    question = "Is the expected value of each published count the true one?"
    facts, text = ["postprocessing"], [nonnegative(r, certificate.table.cells) for r in certificate.postprocessing]
    if is_bounded(records_of(certificate.records)):
        facts.append("records")
        text.append("Records above the bound per person are left out of the counts, and their number is confidential.")
    if text:
        return Answer(BIAS, question, " ".join(text), "not met", tuple(facts))
    estimated = certificate.guarantee.sampling.exactness == "estimated"
    answer = "The target of the noise is symmetric about 0, and nothing was done to the counts afterwards."
    if estimated:
        answer += " How near the noise comes to its target is estimated."
    status: Status = "not answered" if estimated else "met"
    return Answer(BIAS, question, answer, status, ("mechanism", "guarantee.sampling", *facts))


def _other_bias(certificate: CertificateRecord) -> Iterator[Answer]:
    typical = certificate.accuracy.typical_margin
    yield Answer(
        BIAS,
        "Are small groups served as well as large ones?",
        f"The noise does not depend on the counts, so its relative error is largest for small counts: a margin of "
        f"±{typical:,} matters more to a small group. Whether that does harm depends on the use.",
        "not answered",
        ("accuracy",),
    )
    removed = bool(certificate.postprocessing)
    yield Answer(
        BIAS,
        "Will readers take the counts as they are meant?",
        "Counts are whole numbers, "
        + ("without negative ones." if removed else "and may be negative; the publisher must tell readers why."),
        "met" if removed else "not answered",
        ("postprocessing",),
    )
