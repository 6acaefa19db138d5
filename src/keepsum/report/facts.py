"""The facts of a report, from a release and its plan: numbers and short texts, which the page only arranges.

They come from the certificate, the released table and the law of the noise; nothing confidential is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from keepsum._arguments import check_number
from keepsum.accuracy.disclosure import bounded_cells
from keepsum.accuracy.margins import Accuracy
from keepsum.accuracy.margins import accuracy as accuracy_of
from keepsum.accuracy.words import Basis
from keepsum.planning.plan import CompiledPlan
from keepsum.releasing.codec import records_of
from keepsum.releasing.counted import margin_lines
from keepsum.releasing.facts import ReleaseFacts
from keepsum.releasing.guarantee_facts import AttributeRecord, DistanceRecord
from keepsum.releasing.person_statements import PersonStatements
from keepsum.releasing.plain_words import plain_words
from keepsum.releasing.records import LEVEL
from keepsum.releasing.release import Drawn
from keepsum.releasing.statements import (
    RANDOMNESS,
    block_lines,
    guarantee_lines,
    guarantee_of,
    ledger_words,
    noise,
    nonnegative,
    warnings_of,
)
from keepsum.report.cells import Cells
from keepsum.report.chains import ChainCurve, chain_curves
from keepsum.report.crossed import CrossTable, cross_table
from keepsum.report.kept import Kept, kept_of
from keepsum.report.laws import NoiseCurve, noise_curves
from keepsum.report.levels import LevelFact, level_facts
from keepsum.report.uncertainty import Uncertainty, uncertainty_of


@dataclass(frozen=True)
class AxisFact:
    """An axis, the number of its categories, and the axis that it is nested in."""

    name: str
    categories: int
    parent: str | None


@dataclass(frozen=True)
class Published:
    """What was published."""

    count: str
    cells: int
    axes: tuple[AxisFact, ...]
    structural_zeros: int
    released: str
    sha256: str
    signed_by: str | None
    attributes: dict[str, str]


@dataclass(frozen=True)
class AttributeFact:
    """The loss for a change of one attribute to any value, as a distance and in a sentence."""

    axis: str
    distance: DistanceRecord | None
    words: str


@dataclass(frozen=True)
class Privacy:
    """The guarantee, in plain words and in symbols."""

    plain: tuple[str, ...]
    mechanism: str
    law: str
    target: str
    guarantee: tuple[str, ...]
    subject: str
    person: str
    attributes: tuple[AttributeFact, ...]
    within: tuple[tuple[str, str], ...]  # under a focus: within what a change is, and its loss
    randomness: str


@dataclass(frozen=True)
class Margins:
    """The margins of error of all cells, and where they come from."""

    level: float
    typical: int
    smallest: int
    largest: int
    basis: Basis
    draws: int
    error: float
    simulated_cells: int
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ReportFacts:
    """Everything that a report says."""

    published: Published
    kept: Kept
    privacy: Privacy
    warnings: tuple[str, ...]
    margins: Margins
    levels: tuple[LevelFact, ...]
    cells: Cells
    cross: CrossTable | None
    curves: tuple[NoiseCurve, ...]
    uncertainty: Uncertainty
    chains: tuple[ChainCurve, ...]
    postprocessing: tuple[str, ...]
    ledger: str
    blocks: tuple[str, ...]
    exactness: str
    is_seeded: bool
    software: dict[str, str]


def facts_of(release: Drawn, plan: CompiledPlan, level: float = LEVEL, known: Accuracy | None = None) -> ReportFacts:
    """The facts of a release; ``known`` are its margins of error, if they have been worked out at this level."""
    level = check_number(level, "Level", 0, 1)
    certificate = release.certificate
    accuracy = known if known is not None and known.level == level else accuracy_of(plan.blocks, level)
    unbiased = release.table if release.unbiased is None else release.unbiased
    own_level = (
        accuracy if level == certificate.accuracy.level else accuracy_of(plan.blocks, certificate.accuracy.level)
    )
    bounds = bounded_cells(plan.structure, unbiased.counts, own_level.margins)
    cells = Cells.of(release.table, release.unbiased, accuracy.margins, plan.pinned, level)
    return ReportFacts(
        published=_published(certificate),
        kept=kept_of(certificate, plan, bounds),
        privacy=_privacy(certificate),
        warnings=tuple(warnings_of(certificate)),
        margins=_margins(certificate, plan, accuracy),
        levels=level_facts(plan, level),
        cells=cells,
        cross=cross_table(release.table, certificate.kept),
        curves=tuple(noise_curves(plan, accuracy)),
        uncertainty=uncertainty_of(cells),
        chains=tuple(chain_curves(certificate.guarantee.blocks)),
        postprocessing=tuple(nonnegative(record, certificate.table.cells) for record in certificate.postprocessing),
        ledger=ledger_words(certificate.ledger),
        blocks=tuple(block_lines(certificate.guarantee.blocks)),
        exactness=guarantee_of(certificate.mechanism, certificate.guarantee).sampling_words,
        is_seeded=certificate.randomness == "seed",
        software=dict(certificate.software),
    )


def _published(facts: ReleaseFacts) -> Published:
    return Published(
        count=facts.table.count,
        cells=facts.table.cells,
        axes=tuple(AxisFact(axis.name, len(axis.labels), axis.parent) for axis in facts.domain.axes),
        structural_zeros=len(facts.domain.structural_zeros),
        released=facts.released,
        sha256=facts.postprocessing[-1].sha256 if facts.postprocessing else facts.table.sha256,
        signed_by=None if facts.signature is None else facts.signature.public_key,
        attributes=dict(facts.table.attributes),
    )


def _privacy(facts: ReleaseFacts) -> Privacy:
    statements = PersonStatements.of(facts)
    mechanism = statements.guarantee.mechanism
    totals = sum(len(part.totals) for part in facts.kept.parts)
    seeded = facts.randomness == "seed"
    return Privacy(
        plain=tuple(plain_words(statements, totals, len(facts.exposure.pinned), seeded)),
        mechanism=repr(mechanism),
        law=mechanism.law(),
        target=noise(mechanism),
        guarantee=tuple(guarantee_lines(statements.guarantee)),
        subject=statements.subject,
        person=statements.headline(),
        attributes=tuple(_attribute(statements, record) for record in statements.person.attributes),
        within=tuple((what, words) for what, _, words in (line.partition(": ") for line in statements.levels())),
        randomness=RANDOMNESS[facts.randomness],
    )


def _attribute(statements: PersonStatements, record: AttributeRecord) -> AttributeFact:
    words = statements.attribute(record).removeprefix(f"{record.axis}: ")
    return AttributeFact(record.axis, record.any_value, words)


def _margins(facts: ReleaseFacts, plan: CompiledPlan, accuracy: Accuracy) -> Margins:
    overlapping = sum(group.cells for group in plan.groups if group.members or group.tables)
    everywhere = plan.mechanism.kind not in ("laplace-l1", "gaussian")  # l2 Laplace noise: all cells share one scale
    return Margins(
        level=accuracy.level,
        typical=accuracy.typical,
        smallest=int(accuracy.margins.min()),
        largest=int(accuracy.margins.max()),
        basis=accuracy.basis,
        draws=accuracy.draws,
        error=accuracy.error,
        simulated_cells=0 if accuracy.basis == "exact" else plan.size - len(plan.pinned) if everywhere else overlapping,
        notes=tuple(margin_lines(records_of(facts.records))),
    )
