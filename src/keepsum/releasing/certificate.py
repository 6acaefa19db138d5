"""The certificate: the public document of a release, which anyone can check, and which is shown in plain words."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any, Self, TypeAlias

import msgspec

from keepsum._holding import Holding
from keepsum._text import how_many, percent, type_of
from keepsum.errors import InputError
from keepsum.privacy.guarantee import Guarantee
from keepsum.releasing.canonical import parse
from keepsum.releasing.codec import json_file, records_of, stated_mechanism
from keepsum.releasing.facts import EARLIER, SCHEMA, DomainRecord, ReleaseFacts
from keepsum.releasing.wording import (
    NOT_PROTECTED,
    RANDOMNESS,
    TITLE,
    PersonStatements,
    accuracy_source,
    as_html,
    block_lines,
    guarantee_lines,
    guarantee_of,
    kept_totals,
    ledger_words,
    margin_lines,
    noise,
    nonnegative,
    plain_words,
    totals_of,
    unit_topic,
    warnings_of,
)

# What is wrong with a certificate, in words: which field, and what it must be.

# What the patterns of ``facts.py`` allow, by the field that has them.
EXPECTED = {
    "sha256": "64 hexadecimal digits in small letters",
    "public_key": "64 hexadecimal digits in small letters",
    "value": "128 hexadecimal digits in small letters, or a whole number of a kept total as text",
    "released": "a time such as 2026-01-31T12:00:00Z",
    "epsilon": "a decimal number as text",
    "delta": "a decimal number as text",
    "rho": "a decimal number as text",
    "parameters": "quotients such as 1/4, or a name in small letters",
    "name": "a name in small letters",
    "method": "a name in small letters, digits and underscores",
}
_PATTERN = re.compile(r"Expected `\w+` matching regex .* - at `\$\.?(?P<place>.*)`$", re.DOTALL)


def in_words(problem: str) -> str:
    """A problem that the schema has with a document; patterns are replaced by what they allow.

    >>> in_words(r"Expected `str` matching regex '^[0-9a-f]{64}$' - at `$.table.sha256`")
    "field 'table.sha256' must be 64 hexadecimal digits in small letters"
    >>> in_words("Expected `int`, got `str` - at `$.table.cells`")
    'Expected `int`, got `str` - at `$.table.cells`'
    """
    match = _PATTERN.search(problem)
    if match is None:
        return "field 'released' must be a time that exists" if "time data" in problem else problem
    place = match["place"]
    fields = re.findall(r"[a-z_0-9]+", place)
    known = next((EXPECTED[field] for field in reversed(fields) if field in EXPECTED), "text of another form")
    return f"field {place!r} must be {known}"


# A certificate in plain words, in sections: what `keepsum show` prints, and a notebook shows.

SHOWN_PINNED = 8


def certificate_topics(
    facts: ReleaseFacts, *notes: tuple[str, list[str]], details: bool = False
) -> list[tuple[str, list[str]]]:
    """A certificate in sections, with a reader's notes and then warnings last: titles, and the lines below each.

    What is per unit of distance, formulas, software and hashes are ``details``.
    """
    guarantee = guarantee_of(facts.mechanism, facts.guarantee, facts.records)
    person = PersonStatements.of(facts)
    return [
        *unit_topic(person.records),
        ("Released", [facts.released]),
        ("Table", [f"{_axes(facts.domain)}: {how_many(facts.table.cells, 'cell')}, counts in {facts.table.count!r}"]),
        ("Kept exactly", _kept(facts)),
        (person.title, (person.lines() + ([] if guarantee.sampling == "exact" else [guarantee.sampling_words]))),
        ("Accuracy", [_accuracy(facts), *margin_lines(person.records)]),
        (TITLE, plain_words(person, _height(facts), len(facts.exposure.pinned), facts.randomness == "seed")),
        ("Pinned cells", _pinned(facts)),
        ("Bounded cells", [_bounded(facts)]),
        ("Randomness", [RANDOMNESS[facts.randomness]]),
        ("Ledger", [ledger_words(facts.ledger)]),
        ("Signed", ["no" if facts.signature is None else f"by {facts.signature.public_key}"]),
        *(("Published", [nonnegative(r, facts.table.cells)]) for r in facts.postprocessing if not r.cells_changed),
        *(_details(facts, guarantee) if details else []),
        *notes,
        *(("Warning", [sentence]) for sentence in warnings_of(facts)),
    ]


def _details(facts: ReleaseFacts, guarantee: Guarantee) -> list[tuple[str, list[str]]]:
    return [
        ("Noise", [repr(guarantee.mechanism), noise(guarantee.mechanism)]),
        ("Blocks", block_lines(facts.guarantee.blocks)),
        ("Guarantee", guarantee_lines(guarantee)),
        ("Software", [", ".join(f"{name} {version}" for name, version in facts.software.items())]),
        ("SHA-256", [facts.table.sha256]),
    ]


def _axes(domain: DomainRecord) -> str:
    text = ""
    for axis in domain.axes:
        text += (" > " if axis.parent is not None else ", " if text else "") + f"{axis.name} {len(axis.labels):,}"
    zeros = len(domain.structural_zeros)
    return text + (f", less {how_many(zeros, 'structural zero')}" if zeros else "")


def _kept(facts: ReleaseFacts) -> list[str]:
    height = _height(facts)
    if not height:
        return ["nothing" if facts.mechanism.focus else "nothing: every cell has independent noise"]
    count = how_many(height, "total") + totals_of(records_of(facts.records))
    return [kept_totals(facts.kept, facts.domain), f"{count}, {NOT_PROTECTED[height == 1]}"]


def _height(facts: ReleaseFacts) -> int:
    return sum(len(part.totals) for part in facts.kept.parts)


def _accuracy(facts: ReleaseFacts) -> str:
    stated = facts.accuracy
    words = accuracy_source(stated)
    typical = f"typical {percent(stated.level)} margin of error ±{stated.typical_margin:,} per cell"
    totals = "".join(
        f"; ±{margin:,} {'per' if level.axes or level.subsets else 'of the'} {level.each}"
        for level, margin in zip(stated_mechanism(facts.mechanism).focus, stated.focused_margins, strict=False)
    )
    return f"{typical}, {words}{totals}" if words else f"{typical}{totals}"


def _pinned(facts: ReleaseFacts) -> list[str]:
    pinned = facts.exposure.pinned
    if not pinned:
        return ["none"]
    names = [axis.name for axis in facts.domain.axes]
    cells = [", ".join(f"{n}={v}" for n, v in zip(names, labels, strict=False)) for labels in pinned[:SHOWN_PINNED]]
    more = [f"and {len(pinned) - SHOWN_PINNED:,} more"] if len(pinned) > SHOWN_PINNED else []
    return [f"{how_many(len(pinned), 'cell')} published without noise, as accepted:", *cells, *more]


def _bounded(facts: ReleaseFacts) -> str:
    exposure = facts.exposure
    checked = f"; {how_many(exposure.not_checked, 'cell')} not checked" if exposure.not_checked else ""
    if not exposure.bounded:
        return f"none{checked}"
    return f"{how_many(exposure.bounded, 'cell')} bounded by kept totals more tightly than the margin of error{checked}"


FAMILY = "keepsum.certificate/"
UNPUBLISHED = "keepsum.certificate/1"


class CertificateRecord(ReleaseFacts, frozen=True):
    """What is public about a release.

    It holds facts only; sentences are made from them when it is shown.
    """

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """Read a certificate strictly: no unknown field, no missing field, no duplicate key."""
        if not isinstance(data, (bytes, str)):
            raise InputError(f"A certificate must be read from bytes or text, got {type_of(data)}.")
        return cls.from_document(document_of(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data))

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The certificate in a parsed JSON document, which is what a signature covers."""
        _check_schema(document)
        certificate, problem = None, ""
        try:
            certificate = msgspec.convert(document, cls)
            datetime.strptime(certificate.released, "%Y-%m-%dT%H:%M:%SZ")
        except (ValueError, msgspec.MsgspecError, RecursionError) as error:
            problem = in_words(str(error))
        if "unknown field" in problem:
            raise InputError(
                f"The certificate must follow the schema {SCHEMA} as this version knows it, but: {problem}. If a later "
                f"version of Keepsum wrote it, update Keepsum."
            )
        if certificate is None or problem:
            raise InputError(f"The certificate must follow the schema {SCHEMA}, but: {problem}.")
        return certificate

    def to_json(self) -> bytes:
        """The certificate as a file for people and machines."""
        return json_file(self)

    @property
    def warnings(self) -> list[str]:
        """What every reader must know."""
        return warnings_of(self)

    def _repr_html_(self) -> str:
        return as_html(certificate_topics(self))


AnyCertificate: TypeAlias = CertificateRecord | Holding[CertificateRecord]  # as the layers hold it, or as users do


def document_of(data: bytes) -> Any:
    """The JSON document in a file, which must be unambiguous."""
    document, problem = None, ""
    try:
        document = parse(data)
    except (ValueError, RecursionError) as error:
        problem = "it is not JSON" if isinstance(error, json.JSONDecodeError) else str(error)
    if problem:
        raise InputError(f"The certificate must follow the schema {SCHEMA}, but {problem}.")
    return document


def _check_schema(document: Any) -> None:
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == UNPUBLISHED:
        raise InputError(
            f"The certificate must follow the schema {SCHEMA}, got {UNPUBLISHED}, which was never published. "
            f"Release the table again."
        )
    if isinstance(schema, str) and schema.startswith(FAMILY) and schema not in (EARLIER, SCHEMA):
        raise InputError(
            f"The certificate must follow the schema {SCHEMA}, got another. If a later version of Keepsum wrote it, "
            f"update Keepsum."
        )


def json_schema() -> bytes:
    """The JSON Schema of certificates, as kept beside this module."""
    return json_file(msgspec.json.schema(CertificateRecord))
