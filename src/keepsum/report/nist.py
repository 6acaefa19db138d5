"""Answers to the questions of NIST SP 800-226, each from a fact of the certificate or left to the publisher.

NIST SP 800-226, *Guidelines for Evaluating Differential Privacy Guarantees* (final, March 2025,
https://doi.org/10.6028/NIST.SP.800-226), asks to examine every part of a "differential privacy pyramid": privacy
parameters and unit of privacy (section 2; 2.4 for the unit), algorithms and correctness, utility and bias (section 3),
trust model, side channels, security and access control, and data collection exposure (section 4). The parts and these
section numbers are from public summaries of the final document and NIST's own announcement of it; the document itself
was not at hand. So the questions are in our words, and its own list of privacy hazards is not reproduced.

The thresholds are conventions that the summaries report, not rules: epsilon up to 1, delta up to 1e-5.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from itertools import groupby

import msgspec

from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.releasing.certificate import Certificate
from keepsum.report.answers import Answer, Status
from keepsum.report.markdown import escaped
from keepsum.report.nist_algorithms import algorithm_answers
from keepsum.report.nist_deployment import deployment_answers
from keepsum.report.nist_guarantee import guarantee_answers

SOURCE = "NIST SP 800-226 (March 2025), https://doi.org/10.6028/NIST.SP.800-226"
STATUS: dict[Status, str] = {
    "met": "met",
    "not met": "not met",
    "not answered": "not answered by this certificate (up to the publisher)",
}


def nist_answers(certificate: Certificate) -> list[Answer]:
    """The answers that a certificate gives, in the order of the guidelines.

    Raises
    ------
    InputError
        If it is not a certificate.
    """
    if not isinstance(certificate, Certificate):
        raise InputError(f"Answers must be made from a certificate, got {type_of(certificate)}.")
    return [
        *guarantee_answers(certificate),
        *algorithm_answers(certificate),
        *deployment_answers(certificate),
    ]


def as_markdown(certificate: Certificate) -> str:
    """The answers as a page of Markdown, in which names and labels of the certificate do nothing."""
    answers = nist_answers(certificate)
    count = Counter(answer.status for answer in answers)
    lines = [
        "# Answers to NIST SP 800-226",
        "",
        f"From the certificate of the release of {certificate.released}, table {certificate.table.sha256} (SHA-256). "
        f"The questions follow {SOURCE}, in our words.",
        "",
        f"Of {len(answers)} questions: {', '.join(f'{count[status]} {words}' for status, words in STATUS.items())}.",
    ]
    for (topic, section), group in groupby(answers, key=lambda answer: (answer.topic, answer.section)):
        lines += ["", f"## {topic} (section {section})"]
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


def as_json(certificate: Certificate) -> bytes:
    """The answers as a file for machines."""
    answers = nist_answers(certificate)
    document = {
        "source": SOURCE,
        "released": certificate.released,
        "sha256": certificate.table.sha256,
        "answers": [asdict(answer) for answer in answers],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
