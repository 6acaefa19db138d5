"""Sentences about a release that both the registry and the guidelines ask for, made from its facts."""

from __future__ import annotations

from collections.abc import Iterator

from keepsum._text import percent
from keepsum.releasing.certificate import CertificateRecord
from keepsum.releasing.codec import records_of
from keepsum.releasing.counted import margin_lines, totals_of
from keepsum.releasing.person_statements import PersonStatements
from keepsum.releasing.statements import NOT_PROTECTED, accuracy_source, kept_totals

FLOATING_POINT = {
    "exact": "Noise is drawn exactly, as whole numbers, without rounding.",
    "rounded": "Some noise is drawn in floating point; the proved bound of its error is in delta.",
    "estimated": "Some noise is drawn in floating point; its error is in the bound, which is estimated as a whole.",
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
