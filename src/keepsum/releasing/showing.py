"""A certificate in plain words, in sections: what `keepsum show` prints, and a notebook shows."""

from __future__ import annotations

from keepsum._text import percent
from keepsum.privacy.guarantee import Guarantee
from keepsum.releasing.codec import records_of, stated_mechanism
from keepsum.releasing.counted import margin_lines, totals_of, unit_topic
from keepsum.releasing.facts import AxisRecord, DomainRecord, ReleaseFacts
from keepsum.releasing.person_statements import PersonStatements
from keepsum.releasing.plain_words import TITLE, plain_words
from keepsum.releasing.statements import (
    NOT_PROTECTED,
    RANDOMNESS,
    accuracy_source,
    block_lines,
    guarantee_lines,
    guarantee_of,
    kept_totals,
    ledger_words,
    noise,
    nonnegative,
    warnings_of,
)

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
        ("Table", [f"{_axes(facts.domain)}: {_count(facts.table.cells, 'cell')}, counts in {facts.table.count!r}"]),
        ("Kept exactly", _kept(facts)),
        (person.title, _person(person, guarantee)),
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


def _person(person: PersonStatements, guarantee: Guarantee) -> list[str]:
    lines = [person.headline(), *(f"  {line}" for line in person.changes())]
    if person.asked_of_some:
        lines.append(person.asked())
    if guarantee.person is None:
        lines.append(guarantee.words)
    return lines if guarantee.sampling == "exact" else [*lines, guarantee.sampling_words]


def _details(facts: ReleaseFacts, guarantee: Guarantee) -> list[tuple[str, list[str]]]:
    return [
        ("Noise", [repr(guarantee.mechanism), noise(guarantee.mechanism)]),
        ("Blocks", block_lines(facts.guarantee.blocks)),
        ("Guarantee", guarantee_lines(guarantee)),
        ("Software", [", ".join(f"{name} {version}" for name, version in facts.software.items())]),
        ("SHA-256", [facts.table.sha256]),
    ]


def _axes(domain: DomainRecord) -> str:
    """The axes with the numbers of their categories, nested ones after their parents."""
    text = ""
    for axis in domain.axes:
        text += (" > " if axis.parent is not None else ", " if text else "") + _axis(axis)
    zeros = len(domain.structural_zeros)
    return text + (f", less {_count(zeros, 'structural zero')}" if zeros else "")


def _axis(axis: AxisRecord) -> str:
    return f"{axis.name} {len(axis.labels):,}"


def _kept(facts: ReleaseFacts) -> list[str]:
    height = _height(facts)
    if not height:
        return ["nothing" if facts.mechanism.focus else "nothing: every cell has independent noise"]
    count = _count(height, "total") + totals_of(records_of(facts.records))
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
    return [f"{_count(len(pinned), 'cell')} published without noise, as accepted:", *cells, *more]


def _bounded(facts: ReleaseFacts) -> str:
    exposure = facts.exposure
    checked = f"; {_count(exposure.not_checked, 'cell')} not checked" if exposure.not_checked else ""
    if not exposure.bounded:
        return f"none{checked}"
    return f"{_count(exposure.bounded, 'cell')} bounded by kept totals more tightly than the margin of error{checked}"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' * (number != 1)}"
