"""The facts of a report, from a release and its plan: numbers and short texts for its page and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from keepsum._arguments import check_number
from keepsum._arrays import Floats, IntArray
from keepsum.accuracy.disclosure import Bounds, bounded_cells, listed
from keepsum.accuracy.levels import accuracy_by_level
from keepsum.accuracy.margins import Accuracy
from keepsum.accuracy.margins import accuracy as accuracy_of
from keepsum.accuracy.noise import Noise
from keepsum.accuracy.query_laws import EstimatedLaw, ExactLaw
from keepsum.accuracy.simulation import Basis
from keepsum.convergence.bounds import tv_upper_bound
from keepsum.convergence.times import MeetingTimes
from keepsum.planning.describe import describe_form
from keepsum.planning.plan import CompiledPlan
from keepsum.privacy.numbers import shown, three_digits_up
from keepsum.releasing.codec import LEVEL, form_of, records_of
from keepsum.releasing.facts import (
    AttributeRecord,
    BlockRecord,
    ConvergenceRecord,
    DistanceRecord,
    MarginRecord,
    PartRecord,
    ReleaseFacts,
)
from keepsum.releasing.release import Drawn
from keepsum.releasing.wording import (
    RANDOMNESS,
    PersonStatements,
    block_lines,
    guarantee_lines,
    guarantee_of,
    ledger_words,
    margin_lines,
    noise,
    nonnegative,
    part_words,
    plain_words,
    warnings_of,
)
from keepsum.report.cells import CrossTabulation, ReportCells, Uncertainty, cross_table, uncertainty_of

# What a release keeps exactly, for its report: the totals, the cells that follow from them, what they disclose.

LISTED = 12  # totals of a part, or pinned or bounded cells, that are listed


@dataclass(frozen=True)
class KeptPart:
    """Totals that are kept together, in words; with their labels and values where they are few."""

    words: str
    totals: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class KeptFacts:
    """What is exact: totals, and the cells that follow from them; and what they disclose."""

    parts: tuple[KeptPart, ...]
    totals: int
    independent: int
    pinned: int
    pinned_cells: tuple[str, ...]
    bounded: int
    bounded_cells: tuple[tuple[str, int, int], ...]
    not_checked: int


def kept_of(facts: ReleaseFacts, plan: CompiledPlan, bounds: Bounds) -> KeptFacts:
    """What a release keeps; the values of totals are those of its certificate, which its table has too."""
    name = plan.invariants.cell_name
    words = part_words(facts.kept, facts.domain)
    return KeptFacts(
        parts=tuple(KeptPart(text, _totals(part)) for text, part in zip(words, facts.kept.parts, strict=True)),
        totals=sum(len(part.totals) for part in facts.kept.parts),
        independent=plan.structure.rank,
        pinned=len(facts.exposure.pinned),
        pinned_cells=tuple(name(int(cell)) for cell in plan.pinned[:LISTED]),
        bounded=facts.exposure.bounded,
        bounded_cells=tuple((name(cell), low, high) for cell, low, high in listed(bounds, LISTED)),
        not_checked=facts.exposure.not_checked,
    )


def _totals(part: PartRecord) -> tuple[tuple[str, int], ...]:
    """The totals of a part by name; none if they are many, which only their number decides."""
    if len(part.totals) > LISTED:
        return ()
    if isinstance(part, MarginRecord):
        return tuple((", ".join(map(str, total.labels)), int(total.value)) for total in part.totals)
    return tuple((total.name, int(total.value)) for total in part.totals)


# The margins of error of the totals of each focus, and of cells beside them.


@dataclass(frozen=True)
class LevelFact:
    """A level: what it is, how many totals or cells it has, its epsilon, and their margins of error."""

    name: str
    number: int
    epsilon: str
    typical: int
    smallest: int
    largest: int
    source: str  # how the margins are known, in words; empty if they were computed


def level_facts(plan: CompiledPlan, level: float) -> tuple[LevelFact, ...]:
    """A row for each focus, and one for cells; none without a focus."""
    focus = plan.mechanism.focus
    if not focus:
        return ()
    found = accuracy_by_level(plan.blocks, level)
    levels = [_fact(own.totals, own.weight, row.accuracy) for own, row in zip(focus, found.levels, strict=True)]
    return (*levels, _fact("cells", 1 / plan.mechanism.scale, found))


def _fact(name: str, epsilon: Fraction, accuracy: Accuracy) -> LevelFact:
    margins = accuracy.margins
    return LevelFact(
        name, len(margins), shown(epsilon), accuracy.typical, int(margins.min()), int(margins.max()), accuracy.source
    )


# The law of the noise of a few cells, as numbers to be drawn: nothing here depends on a count.

DRAWN = 2.5  # margins of error to each side that a curve shows
MOST_POINTS, MOST_BINS = 200, 60  # to each side: of a computed law, and of a simulated one


@dataclass(frozen=True, eq=False)
class NoiseCurve:
    """The law of one cell's noise."""

    which: str  # which cells have this margin, in a word or two
    cell: int  # the number of one of them
    margin: int  # their margin of error
    # Values of the noise, and how probable each is; of a wide law not every value is there.
    values: IntArray
    probabilities: Floats
    within: float  # the probability that the noise stays within the margin
    draws: int  # from how many simulated draws the probabilities come; 0 if they were computed


def noise_curves(plan: CompiledPlan, accuracy: Accuracy) -> list[NoiseCurve]:
    """The laws of a typical cell and, where margins differ, of cells with the smallest and the largest one.

    Cells without noise are left out, and cells of which only a bound is known.
    """
    margins = accuracy.margins
    noisy = np.ones(len(margins), dtype=bool)
    noisy[plan.pinned] = False
    cells = np.flatnonzero(noisy)
    ordered = cells[np.argsort(margins[cells], kind="stable")]
    typical = int(ordered[len(ordered) // 2])
    low, high = int(ordered[0]), int(ordered[-1])
    middle = int(margins[typical])
    chosen = [("typical cells" if margins[low] < margins[high] else "every cell with noise", typical)]
    if margins[low] < middle:
        chosen.insert(0, ("cells with the smallest margin", low))
    if margins[high] > middle:
        chosen.append(("cells with the largest margin", high))
    noise = Noise(plan.blocks, plan.invariants)
    curves = [_noise_curve(noise, which, cell, int(margins[cell])) for which, cell in chosen]
    return [curve for curve in curves if curve is not None]


def _noise_curve(noise: Noise, which: str, cell: int, margin: int) -> NoiseCurve | None:
    """The law of a cell; None if only a bound on it is known."""
    reach = max(3, round(DRAWN * margin))
    law = noise.law(cell)
    if isinstance(law, ExactLaw):
        step = -(-reach // MOST_POINTS)
        values = np.arange(-(reach // step), reach // step + 1) * step
        within = law.cdf(margin) - law.cdf(-margin - 1)
        return NoiseCurve(which, cell, margin, values, np.array([law.pmf(int(v)) for v in values]), within, 0)
    if not isinstance(law, EstimatedLaw):
        return None
    width = 2 * (reach // MOST_BINS) + 1  # odd, so that a bin has a middle
    bins = reach // width
    place = ((np.abs(law.drawn) + width // 2) // width * np.sign(law.drawn) + bins).ravel()
    counted = np.bincount(place[(place >= 0) & (place <= 2 * bins)], minlength=2 * bins + 1)
    within = float((np.abs(law.drawn) <= margin).mean())
    values = np.arange(-bins, bins + 1) * width
    return NoiseCurve(which, cell, margin, values, counted / (width * law.drawn.size), within, law.draws)


# What coupled chains showed, as curves to be drawn, from the meeting times in a certificate.

POINTS = 400


@dataclass(frozen=True, eq=False)
class ChainCurve:
    """How near a chain comes to its target, by the number of its steps."""

    name: str  # the form of the blocks that it draws
    blocks: int  # how many of them there are
    steps: int  # how many steps a draw takes
    # How many pairs of coupled chains were run, and how many had not met.
    pairs: int
    unmet: int
    confidence: float  # that of the limit
    upper: str  # the limit on the total variation of one block after these steps, as the certificate states it
    # Numbers of steps, the bound estimated from the pairs after each, and its limit.
    at: IntArray
    bound: Floats
    limit: Floats


def chain_curves(blocks: Sequence[BlockRecord]) -> list[ChainCurve]:
    """The curves of all forms of blocks that were drawn by chains."""
    return [_curve(block, block.convergence) for block in blocks if block.convergence is not None]


def _curve(block: BlockRecord, stated: ConvergenceRecord) -> ChainCurve:
    times = _times(stated)
    at = np.unique(np.linspace(0, max(2.0, 1.25 * stated.steps), POINTS).astype(np.int64))
    bound = tv_upper_bound(times, t=at, confidence=stated.confidence)
    limit = np.minimum(1.0, np.asarray(bound.upper) + stated.rounding)
    return ChainCurve(
        describe_form(form_of(block.form)),
        block.blocks,
        stated.steps,
        stated.pairs,
        stated.unmet,
        stated.confidence,
        three_digits_up(stated.upper),
        at,
        np.minimum(1.0, np.asarray(bound.estimate)),
        limit,
    )


def _times(stated: ConvergenceRecord) -> MeetingTimes:
    met = [steps + stated.lag for steps, pairs in stated.meetings for _ in range(pairs)]
    times = np.array([*met, *[stated.give_up] * stated.unmet], dtype=np.int64)
    return MeetingTimes(times, stated.lag, np.arange(len(times)) >= len(met), stated.give_up)


# They come from the certificate, the released table and the law of the noise; nothing confidential is read.


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
class MarginFacts:
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
    kept: KeptFacts
    privacy: Privacy
    warnings: tuple[str, ...]
    margins: MarginFacts
    levels: tuple[LevelFact, ...]
    cells: ReportCells
    cross: CrossTabulation | None
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
    cells = ReportCells.of(release.table, release.unbiased, accuracy.margins, plan.pinned, level)
    return ReportFacts(
        published=_published(certificate),
        kept=kept_of(certificate, plan, bounds),
        privacy=_privacy(certificate),
        warnings=tuple(warnings_of(certificate)),
        margins=_margins(certificate, plan, accuracy),
        levels=level_facts(plan, level),
        cells=cells,
        cross=cross_table(release.table, certificate.kept),
        curves=() if plan.mechanism.kind == "own" else tuple(noise_curves(plan, accuracy)),
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


def _margins(facts: ReleaseFacts, plan: CompiledPlan, accuracy: Accuracy) -> MarginFacts:
    overlapping = sum(group.cells for group in plan.groups if group.members or group.tables)
    everywhere = plan.mechanism.kind not in ("laplace-l1", "gaussian")  # l2 Laplace noise: all cells share one scale
    return MarginFacts(
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
