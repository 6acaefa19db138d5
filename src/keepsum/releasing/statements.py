"""Every sentence about a release, made from its facts, in one place.

``explain`` uses the same sentences for a plan. ``Guarantee`` states the loss at a distance, and
``planning/describe.py`` describes blocks and their samplers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from keepsum.accuracy.words import Basis, words_of_basis
from keepsum.errors import InputError
from keepsum.planning.describe import METHODS, describe_alternatives, describe_form, describe_sampler
from keepsum.privacy.distance import Distance
from keepsum.privacy.guarantee import Guarantee, SamplingError
from keepsum.privacy.loss import LARGE_DELTA, LARGE_EPSILON
from keepsum.privacy.mechanism import Mechanism
from keepsum.privacy.neighbours import Neighbours
from keepsum.privacy.numbers import shown
from keepsum.releasing.codec import records_of, stated_mechanism
from keepsum.releasing.counted import is_bounded, records_concern
from keepsum.releasing.facts import (
    AccuracyRecord,
    CarriedRecord,
    DomainRecord,
    ExposureRecord,
    KeptRecord,
    LedgerRecord,
    MarginRecord,
    NonNegativeRecord,
    ReleaseFacts,
    SubsetsRecord,
)
from keepsum.releasing.guarantee_facts import (
    AttributeRecord,
    BlockRecord,
    DistanceRecord,
    GuaranteeRecord,
    MechanismRecord,
    PersonRecord,
)
from keepsum.releasing.records import form_of
from keepsum.tables.axes import quoted
from keepsum.tables.invariants import describe_margin, describe_rows
from keepsum.tables.records import Records, Subject, changes_of, subject_of

SHOWN_FORMS = 8
NOT_PROTECTED = [  # several totals, or one
    "published exactly; whatever follows from them is not protected",
    "published exactly; whatever follows from it is not protected",
]
LIMITS = {
    "epsilon": f"{LARGE_EPSILON}",
    "delta": f"delta {shown(LARGE_DELTA)}",
    "rho": f"epsilon {LARGE_EPSILON} at delta 1e-6",
}
NEIGHBOURS = "between any two tables with the same kept totals"
RANDOMNESS = {"system": "from the operating system", "seed": "from a seed: not for publication"}


# -- what is kept, and the noise --------------------------------------------------------------------


def kept_totals(kept: KeptRecord, domain: DomainRecord) -> str:
    """What is kept: '4 totals of county, 4 totals of education'."""
    return ", ".join(part_words(kept, domain)) or "nothing"


def part_words(kept: KeptRecord, domain: DomainRecord) -> list[str]:
    """Each part of what is kept: '4 totals of county'."""
    parents = {axis.name: axis.parent for axis in domain.axes}
    parts = []
    for part in kept.parts:
        if isinstance(part, MarginRecord):
            parts.append(describe_margin(len(part.totals), part.axes, [parents.get(axis) for axis in part.axes]))
        else:
            names = [total.name for total in part.totals]
            parts.append(describe_rows(names, "subsets" if isinstance(part, SubsetsRecord) else "weighted"))
    return parts


def noise(mechanism: Mechanism) -> str:
    """The target of the noise."""
    return f"integers z with probability proportional to {mechanism.law()}, over all z that keep every total unchanged"


# -- the guarantee ----------------------------------------------------------------------------------


def guarantee_of(mechanism: MechanismRecord, record: GuaranteeRecord) -> Guarantee:
    """The guarantee from its record."""
    sampling = record.sampling
    error = None
    if sampling.exactness != "exact":
        pairs = [block.convergence.pairs for block in record.blocks if block.convergence is not None]
        error = SamplingError(
            sampling.total_variation, sampling.extrapolated, sampling.confidence, min(pairs, default=None)
        )
    drawn = stated_mechanism(mechanism)
    return Guarantee(drawn, _distance(drawn, record.person.distance), sampling.exactness, error)


def guarantee_lines(guarantee: Guarantee) -> list[str]:
    """The guarantee per unit of distance, and the exactness of sampling."""
    return [f"{guarantee.words}, {NEIGHBOURS}", guarantee.sampling_words]


def _distance(mechanism: Mechanism, record: DistanceRecord) -> Distance:
    if record.focused and len(record.focused) != len(mechanism.focus):
        raise InputError("Distances of the certificate must say what they change in the totals of each focus.")
    return Distance(mechanism.norm, record.length, record.exact, tuple(record.focused))


def per_unit(records: Records | None) -> str:
    """Whom a loss concerns: 'per-person', or 'per-record' where a person may have any number of records."""
    return f"per-{subject_of(records)}"


@dataclass(frozen=True)
class PersonStatements:
    """What the guarantee means for one person.

    Attributes
    ----------
    person, guarantee
        The facts, and the guarantee at any distance.
    margins
        Whether only margins are kept: people can then only change cells, and a distance counts them.
    named
        Whether cells have names.
    records
        The records behind the table; None if it was given as counts.
    """

    person: PersonRecord
    guarantee: Guarantee
    margins: bool
    named: bool = True
    records: Records | None = None

    @classmethod
    def of(cls, facts: ReleaseFacts) -> PersonStatements:
        """The statements of a release."""
        margins = bool(facts.kept.parts) and all(isinstance(part, MarginRecord) for part in facts.kept.parts)
        guarantee = guarantee_of(facts.mechanism, facts.guarantee)
        return cls(facts.guarantee.person, guarantee, margins, records=records_of(facts.records))

    @property
    def title(self) -> str:
        """What the statements are about."""
        return f"One {self.subject}"

    @property
    def subject(self) -> Subject:
        """Whom they concern: a person, or a record."""
        return subject_of(self.records)

    @property
    def bounded(self) -> bool:
        """Whether only so many records of each person were counted, so that some may have been left out."""
        return is_bounded(self.records)

    @property
    def several_change(self) -> bool:
        """Whether a change of one person's value takes more than that person, to keep the totals."""
        return self._length(_distance(self.guarantee.mechanism, self.person.distance)) > 2

    def partly_protected(self) -> list[str]:
        """The attributes for which some change of a value has no guarantee."""
        return [attribute.axis for attribute in self.person.attributes if not _whole(attribute)]

    def headline(self) -> str:
        """The per-person loss, in one sentence."""
        attributes = self.person.attributes
        smallest = f"{self._loss(self.person.distance, people=False)}, for the smallest change through a cell"
        if not self.named:
            return f"{smallest}; cells have no names, so this is not a {per_unit(self.records)} loss"
        if not attributes:
            return f"{smallest}; no attribute has several categories, so this is not a {per_unit(self.records)} loss"
        if all(attribute.any_value is None for attribute in attributes):
            return f"{smallest}; no change of one {self.subject}'s value is known to keep the totals"
        loss = f"{per_unit(self.records)} {self._loss(self.person.distance)}"
        if self.records is not None and self.records.max_rows is not None and self.bounded:
            loss += f", per person of at most {_count(self.records.max_rows, 'record')}"
        if self._length(_distance(self.guarantee.mechanism, self.person.distance)) == 1:
            return f"{loss}, which is more than for a change of any one attribute{self._except(attributes)}"
        return f"{loss}, for a change of any one attribute to any value{self._except(attributes)}"

    def attribute(self, attribute: AttributeRecord) -> str:
        """The loss for a change of one attribute."""
        clauses: list[str] = []
        if attribute.any_value is not None and attribute.other_value is not None:
            clauses.append(f"to any value {self._loss(attribute.any_value)}")
            if self._cost(attribute.other_value) < self._cost(attribute.any_value):
                clauses.append(f"to the nearest other value {self._loss(attribute.other_value)}")
        elif not attribute.unknown_cells:
            return f"{attribute.axis}: not protected; no change of it keeps the totals"
        if attribute.fixed_values:
            clauses.append(f"not protected for {_count(attribute.fixed_values, 'value')} with all cells pinned")
        if attribute.unprotected_cells:
            stuck = f", {attribute.stuck_cells:,} of them to none" if attribute.stuck_cells else ""
            cells = _count(attribute.unprotected_cells, "cell")
            clauses.append(f"not protected in {cells} that cannot change to every value{stuck}")
        if attribute.unknown_cells:
            clauses.append(f"not known to be protected in {_count(attribute.unknown_cells, 'cell')}, for some values")
        return f"{attribute.axis}: {'; '.join(clauses)}"

    def asked(self) -> str:
        """The loss for the changes that the request covers."""
        asked, attributes = self.person.asked, self.person.attributes
        neighbours = Neighbours() if asked is None else Neighbours.of(asked.attributes, asked.to)
        concerned = [a for a in attributes if neighbours.attributes is None or a.axis in neighbours.attributes]
        covered = [a.any_value if neighbours.to == "any value" else a.other_value for a in concerned]
        distances = [distance for distance in covered if distance is not None]
        farthest = max(distances, key=lambda distance: (self._cost(distance), not distance.exact), default=None)
        loss = self._loss(farthest or self.person.distance)
        return f"For the requested neighbours, a change of {neighbours}: {loss}{self._except(concerned)}"

    def changes(self) -> list[str]:
        """The loss for a change of each attribute, and for changes within one total of a focus."""
        return [*(self.attribute(attribute) for attribute in self.person.attributes), *self.levels()]

    def levels(self) -> list[str]:
        """The loss for a change within one of the totals of each focus, which is smaller than elsewhere."""
        focus = self.guarantee.mechanism.focus
        return [
            f"within {'' if level.each == level.totals else 'one '}{level.each}: {self._loss(record)}"
            for level, record in zip(focus, self.person.within, strict=False)
            if record is not None and (level.axes or level.subsets)
        ]

    def _cost(self, record: DistanceRecord) -> Fraction | int:
        """What orders distances: the length, or under a focus the loss."""
        mechanism = self.guarantee.mechanism
        if not mechanism.focus:
            return record.length
        loss = mechanism.loss(_distance(mechanism, record))
        return loss.epsilon or loss.rho or 0

    def all_exact(self) -> bool:
        """Whether every distance is exact."""
        distances = [d for a in self.person.attributes for d in (a.any_value, a.other_value)]
        return all(distance is None or distance.exact for distance in (self.person.distance, *distances))

    def _loss(self, record: DistanceRecord, people: bool = True) -> str:
        """'epsilon 1 (l1 distance 4: two people swap cells)', and what sampling adds to it."""
        distance = _distance(self.guarantee.mechanism, record)
        change = f": {self._change(distance)}" if people else ""
        totals = self._in_totals(distance)
        loss = f"{self.guarantee.mechanism.loss(distance)} ({distance.norm} distance {distance}{totals}{change})"
        return loss + self.guarantee.sampling_addition(distance)

    def _in_totals(self, distance: Distance) -> str:
        """What a change does to focused totals: ', 2 in totals of state'."""
        pairs = zip(self.guarantee.mechanism.focus, distance.focused, strict=False)
        lengths = ((level.totals, Distance(distance.norm, changed)) for level, changed in pairs if changed)
        return "".join(f", {length} in {totals}" for totals, length in lengths)

    def _change(self, distance: Distance) -> str:
        """Who moves in a change of one attribute, which takes from one cell and gives to another.

        Under margins the number of people is fixed, so half of an l1 distance leave their cells. Of a person with
        several records, each moves so.
        """
        changes, length = changes_of(self.records), self._length(distance)
        each = "" if changes == 1 else f"for each of {changes:,} records, "
        one, many = ("person", "people") if self.records is None else ("record", "records")
        if length == 1:
            return f"{each}one {one} more or fewer"
        if length == 2:
            return f"{each}one {one} changes cells"
        if not self.margins:
            return f"{each}several counts change together"
        if length == 4:
            return f"{each}two {many} swap cells"
        number = f"{length // 2:,}" if distance.norm == "l1" else "several"
        return f"{each}{number} {many} change cells together"

    def _length(self, distance: Distance) -> int:
        """The length, or squared length, of the change of one record."""
        changes = changes_of(self.records)
        return distance.length // (changes if distance.norm == "l1" else changes**2)

    def _except(self, attributes: Sequence[AttributeRecord]) -> str:
        partly = [attribute.axis for attribute in attributes if not _whole(attribute)]
        return f", except where {' or '.join(partly)} is not protected" if partly else ""


def _whole(attribute: AttributeRecord) -> bool:
    """Whether every cell can change to every value, at a distance that is known."""
    gaps = attribute.fixed_values or attribute.unprotected_cells or attribute.unknown_cells
    return attribute.any_value is not None and not gaps


# -- blocks -----------------------------------------------------------------------------------------


def block_lines(blocks: Sequence[BlockRecord]) -> list[str]:
    """The forms of blocks and how they were drawn, those with most cells first."""
    ordered = sorted(blocks, key=lambda block: -block.cells)
    lines = [f"{_blocks(block)}: {_sampler(block)}" for block in ordered[:SHOWN_FORMS]]
    return lines + ([f"and {len(blocks) - SHOWN_FORMS:,} more forms of blocks"] if len(blocks) > SHOWN_FORMS else [])


def _blocks(block: BlockRecord) -> str:
    form = describe_form(form_of(block.form))
    return form if block.blocks == 1 or block.form.kind == "free" else f"{block.blocks:,} blocks, each {form}"


def _sampler(block: BlockRecord) -> str:
    sampler = block.sampler
    for method in METHODS:
        if method == sampler.method:
            return describe_sampler(
                method,
                acceptance=sampler.acceptance,
                steps=sampler.steps,
                proposals_per_step=sampler.proposals_per_step,
                moves=sampler.moves,
            )
    return f"{block.exactness}, by {sampler.method.replace('_', ' ')}"  # a method of a later version


# -- warnings ---------------------------------------------------------------------------------------


def warnings_of(facts: ReleaseFacts) -> list[str]:
    """What every reader of a release must know."""
    guarantee = guarantee_of(facts.mechanism, facts.guarantee)
    seeded, records = facts.randomness == "seed", records_of(facts.records)
    return [
        *(nonnegative(record, facts.table.cells) for record in facts.postprocessing if record.cells_changed),
        *concerns(guarantee, facts.guarantee, facts.domain, facts.exposure, seeded, records, facts.carried),
    ]


def nonnegative(record: NonNegativeRecord, cells: int) -> str:
    """What was done about negative counts, and what that does to the others."""
    what = f"the nearest table in {record.norm} without negative counts that keeps every total"
    if not record.unique:
        what = f"one of the nearest tables in {record.norm} without negative counts that keep every total"
    if not record.cells_changed:
        return f"The published table is {what}: no count was negative, so it is the unbiased table itself."
    changed = f"{record.cells_changed:,} of {_count(cells, 'cell')} changed, by at most {int(record.largest_change):,}"
    return (
        f"The published table is {what}: {changed}. Counts at or near 0 are now biased upwards and the others "
        f"downwards; the noise, margins of error and intervals are those of the unbiased table beside it."
    )


def concerns(
    guarantee: Guarantee,
    record: GuaranteeRecord,
    domain: DomainRecord,
    exposure: ExposureRecord,
    seeded: bool,
    records: Records | None = None,
    carried: Sequence[CarriedRecord] = (),
) -> Iterator[str]:
    """What the curator must know before anything is drawn, and every reader afterwards."""
    yield from loss_concern(guarantee, records)
    yield from records_concern(records)
    if seeded:
        yield "The noise comes from a seed: whoever knows the seed can remove it. Not for publication."
    if guarantee.sampling == "estimated":
        loss = guarantee.person_words
        instead = describe_alternatives(guarantee.mechanism.kind)
        yield (
            f"Some noise is drawn by chains, so the guarantee is estimated, not proved: {per_unit(records)} {loss}. "
            f"{instead}"
        ).strip()
    unmet = sum(block.convergence.unmet for block in record.blocks if block.convergence is not None)
    if unmet:
        yield f"{unmet:,} pairs of chains were given up before they met: no guarantee for their blocks."
    if domain.taken_from_data:
        axes = quoted(domain.taken_from_data)
        yield (
            f"The categories of {axes} were taken from the data: the list itself is published, and if the data has no "
            f"rows for counts of 0, it shows which counts are not 0."
        )
    for column in carried:
        yield f"Column {column.name!r} follows from {column.axis!r} and is published as it is, without noise."
    if domain.keeps_file_order:
        yield "Rows are in the order of the file, declared public; whatever follows from that order is not protected."
    if exposure.pinned:
        count = len(exposure.pinned)
        yield f"{count:,} pinned cell{' is' if count == 1 else 's are'} published without noise, as accepted."
    if exposure.not_checked:
        cells = _count(exposure.not_checked, "cell")
        yield f"Not checked for {cells}: whether kept totals bound them more tightly than the margin of error."


def accuracy_source(stated: AccuracyRecord) -> str:
    """How margins of error are known, in words; empty if they were computed."""
    basis: Basis = "estimated" if stated.simulated_draws else "conservative" if stated.conservative else "exact"
    return words_of_basis(basis, stated.simulated_draws, stated.simulated_error)


def ledger_words(ledger: LedgerRecord | None) -> str:
    """Whether the loss of a release is added to those of others."""
    if ledger is None:
        return "The loss is not tracked in a ledger. Losses of releases of the same data add up."
    return (
        f"Charged to dataset {ledger.dataset!r}, entry {ledger.entry:,} of its ledger, before the noise was drawn; the "
        f"hash of that entry begins {ledger.head[:12]}."
    )


def loss_concern(guarantee: Guarantee, records: Records | None = None) -> list[str]:
    """A sentence, if the per-person loss is so large that it protects little."""
    loss = guarantee.mechanism.loss(guarantee.person)
    if loss.excess is None:
        return []
    return [f"The {per_unit(records)} loss is {loss}, above {LIMITS[loss.excess]}: this gives little protection."]


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' * (number != 1)}"
