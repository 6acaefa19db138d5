"""What a curator sees of a release: before any budget is spent, and when it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import typer

from keepsum.cli.screen import Done, abandon_streams, note, shown

if TYPE_CHECKING:
    from keepsum.ledger.assessment import Assessment
    from keepsum.ledger.ledger import Ledger
    from keepsum.privacy.distance import Norm
    from keepsum.releasing.destination import Destination
    from keepsum.releasing.release import Drawn, Prepared

Topics: TypeAlias = list[tuple[str, list[str]]]
PERSON = ("One person", "One record")
SHOWN_BOUNDED, SHOWN_BOUNDED_JSON = 8, 1000
PUBLISHED_NEAREST = (
    "the nearest table in {} without negative counts that keeps every total, with the unbiased one beside it; "
    "counts at or near 0 are then biased upwards, the others downwards"
)


def sections_of(
    ready: Prepared, nearest_in: Norm | None, assessment: Assessment | None = None, details: bool = False
) -> list[tuple[str, list[str]]]:
    """What the curator must know before any budget is spent."""
    from keepsum.releasing.counted import margin_lines
    from keepsum.releasing.explain import topics
    from keepsum.releasing.statements import ledger_words

    margin = ("Accuracy", [str(ready.accuracy), *margin_lines(ready.plan.records)])
    return [
        *with_margin(topics(ready.plan, details=details), margin),
        ("Bounded cells", _bounded(ready)),
        *([("Published", [PUBLISHED_NEAREST.format(nearest_in)])] if nearest_in is not None else []),
        ("Ledger", [ledger_words(None)] if assessment is None else assessment.lines),
        *(("Warning", [sentence]) for sentence in ready.warnings),
    ]


def with_margin(topics: Topics, margin: tuple[str, list[str]]) -> Topics:
    """The sections of a plan with the margin of error behind what is guaranteed to one person."""
    place = next(k for k, (title, _) in enumerate(topics, 1) if title in PERSON)
    return [*topics[:place], margin, *topics[place:]]


def _bounded(ready: Prepared) -> list[str]:
    from keepsum.accuracy.disclosure import listed

    bounds, name = ready.bounds, ready.plan.invariants.cell_name
    unchecked = (
        [f"not checked: {bounds.not_checked:,} cells in blocks that are too large"] if bounds.not_checked else []
    )
    if not len(bounds.cells):
        return unchecked or ["none"]
    count = len(bounds.cells)
    more = [f"and {count - SHOWN_BOUNDED:,} more"] if count > SHOWN_BOUNDED else []
    return [
        f"{count:,} cell{'s' * (count != 1)} bounded by kept totals more tightly than the margin of error:",
        *(f"{name(cell)}: from {low:,} to {high:,}" for cell, low, high in listed(bounds, SHOWN_BOUNDED)),
        *more,
        *unchecked,
    ]


def report(place: Destination, released: Drawn, ledger: Ledger | None = None) -> None:
    """Where the release is; if standard output was closed, standard error shows it instead."""
    try:
        typer.echo(f"Released     {'to standard output' if place.is_stream else shown(place.table)}")
        if released.unbiased is not None:
            typer.echo(f"Unbiased     {shown(place.unbiased)}")
        typer.echo(f"Certificate  {shown(place.certificate)}")
        if released.invariants is not None:
            typer.echo(f"Invariants   {shown(place.invariants)}")
        charged = released.certificate.ledger
        if ledger is not None and charged is not None:
            typer.echo(f"Ledger       {shown(ledger.path)}, entry {charged.entry:,} of dataset {charged.dataset!r}")
    except BrokenPipeError:
        note(str(Done.words))
        abandon_streams()


def as_json(
    ready: Prepared,
    place: Destination,
    released: Drawn,
    ledger: Ledger | None = None,
    assessment: Assessment | None = None,
) -> dict[str, object]:
    """A release as JSON."""
    from keepsum.accuracy.disclosure import listed
    from keepsum.releasing.person_statements import PersonStatements
    from keepsum.releasing.statements import kept_totals

    certificate = released.certificate
    name = ready.plan.invariants.cell_name
    return {
        "table": shown(place.table),
        "certificate": shown(place.certificate),
        "invariants": None if released.invariants is None else shown(place.invariants),
        "unbiased": None if released.unbiased is None else shown(place.unbiased),
        "postprocessing": certificate.postprocessing,
        "sha256": certificate.table.sha256,
        "guarantee": {
            "person": PersonStatements.of(certificate).headline(),
            "per_unit": ready.plan.guarantee.words,
            "facts": certificate.guarantee,
        },
        "kept": kept_totals(certificate.kept, certificate.domain),
        "margin_of_error": certificate.accuracy,
        "pinned": [name(cell) for cell in ready.plan.pinned.tolist()],
        "bounded": {
            "count": len(ready.bounds.cells),
            "not_checked": ready.bounds.not_checked,
            "cells": [
                {"cell": name(cell), "low": low, "high": high}
                for cell, low, high in listed(ready.bounds, SHOWN_BOUNDED_JSON)
            ],
        },
        "ledger": None
        if ledger is None
        else {
            "file": shown(ledger.path),
            "charged": certificate.ledger,
            "words": None if assessment is None else assessment.lines,
        },
        "warnings": certificate.warnings,
    }
