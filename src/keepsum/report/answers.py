"""An answer to a question about a release, and the facts that it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Status: TypeAlias = Literal["met", "not met", "not answered"]


@dataclass(frozen=True)
class Answer:
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
