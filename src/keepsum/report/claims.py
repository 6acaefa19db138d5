"""What a registry and reviewers are told alike: the strongest claim, sentences, and names inside Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import msgspec

from keepsum._text import percent, printable
from keepsum.releasing.certificate import CertificateRecord
from keepsum.releasing.codec import records_of
from keepsum.releasing.facts import MarginRecord, PartRecord
from keepsum.releasing.wording import (
    NOT_PROTECTED,
    PersonStatements,
    accuracy_source,
    is_bounded,
    kept_totals,
    margin_lines,
    totals_of,
)
from keepsum.tables.invariants import UNNAMED

# The strongest claim that a certificate supports: that of its weakest part.
#
# A name such as "pure DP" is only used where everything behind it is proved. Numbers are only stated where they bound
# something: not for noise from a seed, not where delta is 1, and not where chains were given up.

Variant: TypeAlias = Literal["Pure DP", "Approximate DP", "Zero-concentrated DP", "Custom"]
Unit: TypeAlias = Literal["person", "counted person", "declared person", "record", "change"]

CONDITIONS: dict[Unit, str] = {
    "person": ", in all records of that person that were counted",
    "counted person": ", if every person is counted once (the table was given as counts)",
    "declared person": ", if every record is of another person, as was declared and not checked",
    "record": "; a person with several records is protected less",
}


@dataclass(frozen=True)
class ReleaseClaim:
    """What may be claimed of a release."""

    variant: Variant  # the variant of differential privacy; ``"Custom"`` where no usual name is proved to apply
    unit: Unit  # what the loss is stated for
    # Whether it covers any change of the unit, because the table has one attribute; if not, of one attribute.
    whole: bool
    # The loss of one unit, with what sampling adds to delta; all None where nothing is guaranteed.
    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    reasons: tuple[str, ...]  # why the variant is custom, or nothing is guaranteed

    @property
    def guaranteed(self) -> bool:
        """Whether there is a loss to state."""
        return self.epsilon is not None or self.rho is not None

    @property
    def subject(self) -> str:
        """The unit in words, with the condition that it stands under."""
        if self.unit == "change":
            return "two tables with the same kept totals at distance 1, neither a person nor a record"
        subject = "one record" if self.unit == "record" else "one person"
        return f"{'' if self.whole else 'one attribute of '}{subject}{CONDITIONS[self.unit]}"


def claim_of(certificate: CertificateRecord) -> ReleaseClaim:
    """What may be claimed of a release."""
    statements = PersonStatements.of(certificate)
    guarantee, unit = statements.guarantee, _unit(certificate, statements)
    whole = len(certificate.guarantee.person.attributes) == 1
    # Why nothing is guaranteed, if so
    reasons = []
    if certificate.randomness == "seed":
        reasons.append("The noise comes from a seed: whoever knows the seed can remove it.")
    if any(block.convergence is not None and block.convergence.unmet for block in certificate.guarantee.blocks):
        reasons.append("Pairs of Markov chains were given up before they met: their blocks have no guarantee.")
    if certificate.mechanism.claim is not None:
        reasons.append("The noise is the publisher's own, and its loss a claim that nobody has proved or checked.")
    if guarantee.stated_delta >= 1:
        reasons.append("With what sampling adds, delta is 1: nothing is guaranteed.")
    void = tuple(reasons)
    if void:
        return ReleaseClaim("Custom", unit, whole, None, None, None, void)
    loss, added = guarantee.stated_loss, guarantee.sampling_delta(guarantee.person)
    delta = guarantee.stated_delta or None
    if guarantee.sampling == "estimated":
        reason = (
            "Some noise is drawn by Markov chains, and how near they come to their target is estimated, not proved."
        )
        return ReleaseClaim("Custom", unit, whole, loss.epsilon, delta, loss.rho, (reason,))
    if loss.rho is None:
        return ReleaseClaim("Approximate DP" if delta else "Pure DP", unit, whole, loss.epsilon, delta, None, ())
    if added:
        reason = "The zCDP loss is that of the target of the noise; delta is the total variation from it."
        return ReleaseClaim("Custom", unit, whole, None, delta, loss.rho, (reason,))
    return ReleaseClaim("Zero-concentrated DP", unit, whole, None, None, loss.rho, ())


def _unit(certificate: CertificateRecord, statements: PersonStatements) -> Unit:
    if certificate.guarantee.person.stated is None:
        return "change"
    if statements.subject == "record":
        return "record"
    if statements.records is None:
        return "counted person"
    return "person" if is_bounded(statements.records) else "declared person"


# Text of a certificate inside Markdown: names that somebody else chose must do nothing there.
#
# The registry renders its strings as Markdown with LaTeX, and LaTeX is looked for after Markdown has removed its
# escapes. So names stand in code spans there, which both leave alone; elsewhere it is enough to escape the text.

_ACTIVE = re.compile(r"([\\`*_{}\[\]<>#&~|$!@])")


def escaped(text: str) -> str:
    r"""Text on one line that Markdown shows as it is, unless it begins a line.

    >>> print(escaped("<b>a_b</b>\n# [x](https://x)"))
    \<b\>a\_b\</b\>\\n\# \[x\](https\://x)
    """
    text = _ACTIVE.sub(r"\\\1", printable(text))
    return re.sub(r"(?i)\b(www)\.", r"\1\\.", text.replace("://", r"\://"))


class CodeSpan(str):
    """A code span: what sentences put in quotes needs none there, because it stands out by itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def code(text: str) -> CodeSpan:
    """Text as a code span.

    >>> print(code("county"), code("a`b"))
    `county` `` a`b ``
    """
    text = printable(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if "`" in text or not text.strip() or text != text.strip() else ""
    return CodeSpan(f"{fence}{room}{text}{room}{fence}")


def marked(certificate: CertificateRecord) -> CertificateRecord:
    """The certificate with every name that the curator chose as a code span, for sentences that are made from it."""
    replace = msgspec.structs.replace
    domain, person = certificate.domain, certificate.guarantee.person
    records, ledger = certificate.records, certificate.ledger
    axes = [
        replace(axis, name=code(axis.name), parent=None if axis.parent is None else code(axis.parent))
        for axis in domain.axes
    ]
    attributes = [replace(attribute, axis=code(attribute.axis)) for attribute in person.attributes]
    return replace(
        certificate,
        table=replace(
            certificate.table,
            count=code(certificate.table.count),
            attributes={code(name): code(value) for name, value in certificate.table.attributes.items()},
        ),
        domain=replace(domain, axes=axes, taken_from_data=list(map(code, domain.taken_from_data))),
        carried=[replace(column, name=code(column.name), axis=code(column.axis)) for column in certificate.carried],
        kept=replace(certificate.kept, parts=list(map(_marked_part, certificate.kept.parts))),
        guarantee=replace(certificate.guarantee, person=replace(person, attributes=attributes)),
        records=records if records is None or records.unit is None else replace(records, unit=code(records.unit)),
        ledger=None if ledger is None else replace(ledger, dataset=code(ledger.dataset)),
        software={code(name): code(version) for name, version in certificate.software.items()},
    )


def _marked_part(part: PartRecord) -> PartRecord:
    if isinstance(part, MarginRecord):
        return msgspec.structs.replace(part, axes=list(map(code, part.axes)))
    totals = [
        total if UNNAMED.fullmatch(total.name) else msgspec.structs.replace(total, name=code(total.name))
        for total in part.totals
    ]
    return msgspec.structs.replace(part, totals=totals)


# Sentences about a release that both the registry and the guidelines ask for, made from its facts.

FLOATING_POINT = {
    "exact": "Noise is drawn exactly, as whole numbers, without rounding.",
    "rounded": "Some noise is drawn in floating point; the proved bound of its error is in delta.",
    "estimated": "Some noise is drawn in floating point; its error is in the bound, which is estimated as a whole.",
    "claimed": "Noise is drawn as whole numbers by a sampler of the publisher's own; how is not known.",
}


def unprotected(facts: CertificateRecord) -> Iterator[tuple[str, str]]:
    """Whatever is published without noise, or follows from what is: the fact, and a sentence."""
    height, exposure, domain = sum(len(part.totals) for part in facts.kept.parts), facts.exposure, facts.domain
    if height:
        kept = kept_totals(facts.kept, domain) + totals_of(records_of(facts.records))
        yield "kept", f"Kept totals: {kept}, {NOT_PROTECTED[height == 1]}."
    if exposure.pinned:
        yield "exposure.pinned", f"Counts that the kept totals determine, without noise: {len(exposure.pinned):,}."
    if exposure.bounded:
        text = f"Counts that the kept totals bound more tightly than the margin of error: {exposure.bounded:,}."
        yield "exposure.bounded", text
    if exposure.not_checked:
        yield "exposure.not_checked", f"Counts for which such bounds were not checked: {exposure.not_checked:,}."
    if partly := PersonStatements.of(facts).partly_protected():
        text = f"Changes of {' or '.join(partly)} that the kept totals rule out, or at distances that are not known."
        yield "guarantee.person.attributes", text
    if domain.taken_from_data:
        axes = ", ".join(domain.taken_from_data)
        text = f"The list of categories of {axes}, taken from the data; it may show which counts are not 0."
        yield "domain.taken_from_data", text
    if domain.keeps_file_order:
        yield "domain.keeps_file_order", "The order of the rows of the confidential file, declared public."
    for column in facts.carried:
        yield "carried", f"Column {column.name}, which follows from {column.axis}."
    for name in facts.table.attributes:
        yield "table.attributes", f"The attribute {name} of the file."


def weak_reading(person: PersonStatements) -> list[str]:
    """A sentence on readers against whom, or tables for which, a per-person loss does not hold, if there are such."""
    return [person.against()] if person.is_qualified and person.against() else []


def margin(facts: CertificateRecord) -> list[str]:
    """The margin of error, and what it leaves out."""
    stated = facts.accuracy
    source = accuracy_source(stated) or "computed"
    return [
        f"The median {percent(stated.level)} margin of error is ±{stated.typical_margin:,} per count ({source}).",
        *margin_lines(records_of(facts.records)),
        *(["It is that of the table before post-processing."] if facts.postprocessing else []),
    ]
