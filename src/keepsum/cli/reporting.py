"""What a curator sees of a release, and of several together: before any budget is spent, and when they are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import typer

import keepsum as ks
from keepsum._saying import Text
from keepsum._text import how_many
from keepsum.accounting.composition import compose
from keepsum.accounting.joint import joint_distances
from keepsum.accounting.total import Cost
from keepsum.accuracy.disclosure import listed
from keepsum.cli.screen import Done, abandon_streams, note, progress, shown
from keepsum.facade.estimates import plan_accuracy
from keepsum.ledger.assessment import Assessment
from keepsum.ledger.ledger import Ledger
from keepsum.planning.describe import describe_choice, describe_form
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.planning.selection.choice import seconds_per_draw
from keepsum.privacy.distance import Distance, Norm
from keepsum.privacy.guarantee import USUAL_DELTA
from keepsum.privacy.numbers import Loss
from keepsum.privacy.profile import smallest_epsilon
from keepsum.releasing.codec import LEVEL
from keepsum.releasing.destination import Destination
from keepsum.releasing.explain import person_statements, topics
from keepsum.releasing.release import Drawn, Prepared
from keepsum.releasing.wording import (
    PersonStatements,
    kept_totals,
    ledger_words,
    loss_concern,
    margin_lines,
    records_concern,
)
from keepsum.specs.job import Job
from keepsum.tables.origins import subject_of

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


def worries(plan: CompiledPlan) -> list[str]:
    """What is worrying about the loss, or about the records."""
    return [*loss_concern(plan.guarantee, plan.records), *records_concern(plan.records)]


def _bounded(ready: Prepared) -> list[str]:
    bounds, name = ready.bounds, ready.plan.invariants.cell_name
    unchecked = (
        [f"not checked: {bounds.not_checked:,} cells in blocks that are too large"] if bounds.not_checked else []
    )
    if not len(bounds.cells):
        return unchecked or ["none"]
    count = len(bounds.cells)
    more = [f"and {count - SHOWN_BOUNDED:,} more"] if count > SHOWN_BOUNDED else []
    return [
        f"{how_many(count, 'cell')} bounded by kept totals more tightly than the margin of error:",
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


# What several releases of one spec cost together, if they are about the same people.

SAME_PEOPLE = "Where the {} tables are about the same people, their losses add up."
NOT_KNOWN = "The sum is not known before the chains that draw some of the noise are measured."
TOGETHER = "{} releases together: at most {} for one {}, with the kept totals of all of them the same."
EACH = "For one {} they are {}, and together may be more than the sum, where kept totals or tables differ."
SUMS = "A table that is a sum over another one costs nothing as a [[marginal]] of it, with larger noise."


def together(releases: Sequence[tuple[Job, CompiledPlan]], details: bool) -> list[tuple[str, list[str]]]:
    """The section on several releases; none for one release."""
    if len(releases) == 1:
        return []
    return [("Together", [SAME_PEOPLE.format(len(releases)), _total(releases, details), SUMS])]


def _total(releases: Sequence[tuple[Job, CompiledPlan]], details: bool) -> str:
    """The loss of one person in all releases, if it is known; else in each, and with details per unit of distance.

    The sum per unit is smaller than one person's loss in a single release may be, so it never stands for that alone.
    """
    guarantees = [plan.guarantee for _, plan in releases]
    if any(guarantee.error is None and guarantee.sampling not in ("exact", "rounded") for guarantee in guarantees):
        return NOT_KNOWN
    one_table = _is_one_table(releases)
    total = compose(map(Cost.of, guarantees), same_table=one_table)
    subject = subject_of(releases[0][1].records)
    person = _person(releases, total.norm) if one_table else None
    if person is not None:
        loss = total.at(person)
        at_delta = ""
        if loss.rho is not None and not total.epsilon and not total.error:  # one lattice, fixed before any output
            at_delta = f", so {Loss(smallest_epsilon(loss.rho, USUAL_DELTA), USUAL_DELTA)}"
        return TOGETHER.format(len(releases), f"{loss}{at_delta}", subject)
    if any(guarantee.person is None for guarantee in guarantees):
        return total.words
    each = ", ".join(str(plan.stated_loss) for _, plan in releases)
    return EACH.format(subject, each) + (f" {total.words}" if details else "")


def _person(releases: Sequence[tuple[Job, CompiledPlan]], norm: Norm) -> Distance | None:
    """The distance of one person under the kept totals of all releases of one table; None where it is not known."""
    plan = releases[0][1]
    if plan.invariants.domain is None:
        return None
    kept = [other.invariants for _, other in releases]
    return joint_distances(kept, plan.invariants.domain, norm, plan.records).person()


def _is_one_table(releases: Sequence[tuple[Job, CompiledPlan]]) -> bool:
    (job, plan), *others = releases
    return plan.invariants.domain is not None and all(
        other.spec.source == job.spec.source
        and other.spec.records == job.spec.records
        and another.invariants.domain == plan.invariants.domain
        for other, another in others
    )


# A plan before any count is looked at: what it keeps and promises, and what it would cost.


def charged_for(jobs: Sequence[Job], plans: Sequence[CompiledPlan]) -> list[str] | None:
    """What the last of these releases would cost in its ledger, after those before it; None if it has none."""
    job = jobs[len(plans) - 1]
    ledger = job.ledger()
    if ledger is None:
        return None
    same = [
        plan
        for other, plan in zip(jobs, plans, strict=False)
        if (other.spec.ledger.path, other.spec.ledger.dataset) == (job.spec.ledger.path, job.spec.ledger.dataset)
    ]
    try:
        return ledger.assess(same, job.spec.ledger.dataset)[-1].lines
    except ks.PlanError as error:
        return [Text(f"It would be refused: {error:marked}")]


def made_plan(job: Job) -> tuple[CompiledPlan, ks.Accuracy | None]:
    """A plan, and its margins of error if it can be drawn."""
    with progress() as step:
        step("reading the categories")
        table = job.cells()
        step("compiling the plan")
        kept = job.kept(table)
        with job.located("mechanism", "keep"):
            made = compile_plan(kept, job.noise(table), records=table.records)
        step("working out margins of error")
        drawable = all(choice.sampler is not None for choice in made.samplers)
        return made, plan_accuracy(made, LEVEL) if drawable else None


def plan_sections(made: CompiledPlan, accuracy: ks.Accuracy | None, details: bool) -> Topics:
    """A plan in sections."""
    margin = ["not known: a block has no sampler"]
    if accuracy is not None:
        margin = [str(accuracy), *margin_lines(made.records)]
    warnings = [("Warning", [sentence]) for sentence in worries(made)]
    return [*with_margin(topics(made, details=details), ("Accuracy", margin)), *warnings]


def plan_as_json(made: CompiledPlan, accuracy: ks.Accuracy | None) -> dict[str, object]:
    """A plan as JSON."""
    statements = person_statements(made)
    return {
        "cells": made.size,
        "unit": statements.subject,
        "kept": {"words": made.invariants.describe(), "totals": list(made.invariants.names)},
        "mechanism": repr(made.mechanism),
        "law": made.mechanism.law(),
        "per_unit": made.guarantee.words,
        "person": {
            "distance": made.person_distance,
            "reading": statements.headline(),
            "attributes": {record.axis: statements.attribute(record) for record in statements.person.attributes},
            "within": statements.levels(),
        },
        "sampling": made.guarantee.sampling,
        "blocks": [
            {
                "form": describe_form(group.form),
                "blocks": group.blocks,
                "cells": group.cells,
                "sampler": describe_choice(choice),
            }
            for group, choice in zip(made.groups, made.samplers, strict=True)
        ],
        "estimated_seconds_per_draw": seconds_per_draw(made.samplers),
        "pinned": [made.invariants.cell_name(cell) for cell in made.pinned.tolist()],
        "warnings": worries(made),
        "margin_of_error": None
        if accuracy is None
        else {"level": accuracy.level, "typical": accuracy.typical, "simulated_draws": accuracy.draws},
    }
