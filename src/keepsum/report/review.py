"""Answers to questions that reviewers ask, each from a fact of the certificate or left to the publisher.

The questions are ours: what a reviewer needs to know of the guarantee and its unit, of the algorithms, their accuracy
and bias, and of the deployment. By convention, not by rule, epsilon up to 1 is small and delta above 1e-5 is large.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from itertools import groupby

import msgspec

from keepsum._holding import record_in
from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.releasing.certificate import AnyCertificate, CertificateRecord
from keepsum.report.answers import Answer, Status
from keepsum.report.markdown import escaped
from keepsum.report.review_algorithms import algorithm_answers
from keepsum.report.review_deployment import deployment_answers
from keepsum.report.review_guarantee import guarantee_answers

STATUS: dict[Status, str] = {
    "met": "met",
    "not met": "not met",
    "not answered": "not answered by this certificate (up to the publisher)",
}


def review_answers(certificate: AnyCertificate) -> list[Answer]:
    """The answers that a certificate gives, in the order in which they are asked.

    Raises
    ------
    InputError
        If it is not a certificate.
    """
    certificate = record_in(certificate, CertificateRecord)
    if not isinstance(certificate, CertificateRecord):
        raise InputError(f"Answers must be made from a certificate, got {type_of(certificate)}.")
    return [
        *guarantee_answers(certificate),
        *algorithm_answers(certificate),
        *deployment_answers(certificate),
    ]


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
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
