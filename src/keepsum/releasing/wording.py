"""Every sentence about a release, made from its facts, in one place."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction

from keepsum._text import how_many, printable
from keepsum.accuracy.simulation import Basis, words_of_basis
from keepsum.errors import InputError
from keepsum.planning.describe import METHODS, describe_alternatives, describe_form, describe_sampler
from keepsum.privacy.distance import Distance, Neighbours, To
from keepsum.privacy.guarantee import Guarantee, SamplingError
from keepsum.privacy.mechanism import Mechanism
from keepsum.privacy.numbers import (
    LARGE_DELTA,
    LARGE_EPSILON,
    as_decimal,
    rounded_up,
    shown,
    shown_briefly,
    three_digits_up,
)
from keepsum.releasing.codec import form_of, records_of, stated_mechanism
from keepsum.releasing.facts import (
    AccuracyRecord,
    AttributeRecord,
    BlockRecord,
    CarriedRecord,
    DistanceRecord,
    DomainRecord,
    ExposureRecord,
    GuaranteeRecord,
    KeptRecord,
    LedgerRecord,
    MarginRecord,
    MechanismRecord,
    NonNegativeRecord,
    PersonRecord,
    RecordsRecord,
    ReleaseFacts,
    SubsetsRecord,
)
from keepsum.tables.axes import quoted
from keepsum.tables.invariants import describe_margin, describe_rows
from keepsum.tables.origins import Records, Subject, changes_of, subject_of

# Titles and the lines below each: as text for a terminal, as HTML for a notebook.

WIDTH = 96


def as_text(sections: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Titles and lines in two columns."""
    return "\n".join(_section(printable(title), [printable(line) for line in lines]) for title, lines in sections)


def as_html(sections: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Titles and lines as a table, one row per title."""
    rows = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{html.escape(title)}</th>'
        f'<td style="text-align:left">{"<br>".join(html.escape(line) for line in lines)}</td></tr>'
        for title, lines in sections
    )
    return f"<table>{rows}</table>"


def _section(title: str, lines: Sequence[str]) -> str:
    wrapped = [
        part
        for line in lines
        for part in textwrap.wrap(
            line, WIDTH - 16, subsequent_indent=" " * _indent(line), break_long_words=False, break_on_hyphens=False
        )
    ]
    first, *rest = wrapped
    return "\n".join([f"{title:<14}  {first}", *(f"{'':<16}{line}" for line in rest)])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


# What statements about a table of counted records must add: whom they are about, and what the counts leave out.

UNIT = "Unit"


def is_bounded(records: Records | None) -> bool:
    """Whether only so many records of each person were counted, so that some may have been left out."""
    return records is not None and records.max_rows is not None and not records.one_each


def unit_topic(records: Records | None) -> list[tuple[str, list[str]]]:
    """A section that comes first where whatever is stated is about one record and not about one person."""
    if subject_of(records) != "record":
        return []
    sentence = "one record, not one person: epsilon is the loss of one record, and losses of a person's records add up"
    return [(UNIT, [sentence])]


def totals_of(records: Records | None) -> str:
    """What kept totals are totals of, as a phrase to follow their number; empty if that is plain."""
    return " of the counted records" if is_bounded(records) else ""


def margin_lines(records: Records | None) -> list[str]:
    """What a margin of error does not include: how many records were left out is confidential."""
    if not is_bounded(records):
        return []
    return [
        "This is the margin of the noise alone: records left out by the bound per person are not in it, and their "
        "number is confidential."
    ]


def records_concern(records: Records | None) -> list[str]:
    """A sentence on whom the guarantee protects, if the table was counted from records."""
    if records is None:
        return []
    if records.max_rows is None:
        return [
            "The guarantee is per record: one person may own several records, and is then protected less. Losses of a "
            "person's records add up."
        ]
    if records.one_each:
        return [
            "Every record was declared to be of another person, and nobody checked that: whoever has several is "
            "protected less, because the losses of a person's records add up."
        ]
    named = "" if records.unit is None else f" (column {records.unit!r})"
    return [
        f"At most {how_many(records.max_rows, 'record')} of each person{named} "
        f"{'was' if records.max_rows == 1 else 'were'} counted, the first in the order of their labels, so totals of "
        f"late labels lose most; kept totals are those of the counted records, not of all. The loss is for a change of "
        f"one attribute of each counted record; a change that lets other records be counted can change every "
        f"attribute, and kept totals too."
    ]


# ``explain`` uses the same sentences for a plan. ``wording.py`` has those about one person; ``Guarantee``
# states the loss at a distance, and ``planning/describe.py`` describes blocks and their samplers.

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
    """The target of the noise, or what its publisher says of noise of their own."""
    if mechanism.kind == "own":
        return f"integers z that keep every total unchanged; their distribution is claimed: {mechanism.law()}"
    return f"integers z with probability proportional to {mechanism.law()}, over all z that keep every total unchanged"


# -- the guarantee ----------------------------------------------------------------------------------


def guarantee_of(
    mechanism: MechanismRecord, record: GuaranteeRecord, records: RecordsRecord | None = None
) -> Guarantee:
    """The guarantee from its record, of a table counted from such records."""
    sampling = record.sampling
    error = None
    if sampling.exactness in ("rounded", "estimated"):
        pairs = [block.convergence.pairs for block in record.blocks if block.convergence is not None]
        error = SamplingError(
            sampling.total_variation, sampling.extrapolated, sampling.confidence, min(pairs, default=None)
        )
    drawn = stated_mechanism(mechanism)
    stated = record.person.stated
    person = None if stated is None else distance_of(drawn, stated)
    return Guarantee(drawn, person, sampling.exactness, error, subject_of(records_of(records)))


def guarantee_lines(guarantee: Guarantee) -> list[str]:
    """The guarantee per unit of distance, and the exactness of sampling."""
    return [f"{guarantee.words}, {NEIGHBOURS}", guarantee.sampling_words]


def distance_of(mechanism: Mechanism, record: DistanceRecord) -> Distance:
    """The distance that a record states, in the norm of the noise."""
    if record.focused and len(record.focused) != len(mechanism.focus):
        raise InputError("Distances of the certificate must say what they change in the totals of each focus.")
    return Distance(mechanism.norm, record.length, record.exact, tuple(record.focused), record.rule)


def per_unit(records: Records | None) -> str:
    """Whom a loss concerns: 'per-person', or 'per-record' where a person may have any number of records."""
    return f"per-{subject_of(records)}"


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
    guarantee = guarantee_of(facts.mechanism, facts.guarantee, facts.records)
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
    changed = (
        f"{record.cells_changed:,} of {how_many(cells, 'cell')} changed, by at most {int(record.largest_change):,}"
    )
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
    yield from claim_concern(guarantee.mechanism)
    if seeded:
        yield "The noise comes from a seed: whoever knows the seed can remove it. Not for publication."
    if guarantee.sampling == "estimated":
        loss = replace(guarantee, subject=subject_of(records)).person_words
        instead = describe_alternatives(guarantee.mechanism.kind)
        yield (f"Some noise is drawn by chains, so the guarantee is estimated, not proved: {loss}. {instead}").strip()
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
        cells = how_many(exposure.not_checked, "cell")
        yield f"Not checked for {cells}: whether kept totals bound them more tightly than the margin of error."


def claim_concern(mechanism: Mechanism) -> list[str]:
    """A sentence, if the noise is the publisher's own."""
    claim = mechanism.facts().claim
    if claim is None:
        return []
    return [
        f"The noise is the publisher's own, by the {claim.what} {claim.title!r}: its distribution and its loss are "
        "claims, which Keepsum neither proves nor checks, and neither does its verification. Margins of error are of "
        "draws of it."
    ]


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
    loss = guarantee.stated_loss
    if loss.excess is None:
        return []
    what = "loss per unit of distance" if guarantee.person is None else f"{per_unit(records)} loss"
    return [f"The {what} is {loss}, above {LIMITS[loss.excess]}: this gives little protection."]


# What a guarantee means for one person, in sentences.

# How keepsum.certificate/2 defines the distance of one person, and what that leaves open.
SHORTEST_CHANGE = (
    "the shortest change that keeps the totals, though it may lead to negative counts, so that tables without them can "
    "be farther apart"
)


@dataclass(frozen=True)
class PersonStatements:
    """What the guarantee means for one person."""

    # The facts, and the guarantee at any distance.
    person: PersonRecord
    guarantee: Guarantee
    margins: bool  # whether only margins are kept: people can then only change cells, and a distance counts them
    named: bool = True  # whether cells have names
    records: Records | None = None  # the records behind the table; None if it was given as counts

    @classmethod
    def of(cls, facts: ReleaseFacts) -> PersonStatements:
        """The statements of a release."""
        margins = bool(facts.kept.parts) and all(isinstance(part, MarginRecord) for part in facts.kept.parts)
        guarantee = guarantee_of(facts.mechanism, facts.guarantee, facts.records)
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
        person = self.guarantee.person
        return person is not None and self._length(person) > 2

    def partly_protected(self) -> list[str]:
        """The attributes for which some change of a value has no guarantee."""
        return [attribute.axis for attribute in self.person.attributes if not _whole(attribute)]

    def headline(self) -> str:
        """The per-person loss, in one sentence."""
        attributes, distance = self.person.attributes, self.person.stated
        if distance is None:
            return f"no {per_unit(self.records)} loss is stated: {self._why_none()}"
        loss = f"{per_unit(self.records)} {self._loss(distance)}"
        if self.guarantee.person_rho is not None:
            loss += f", so {self.guarantee.usual_loss}"
        if self.records is not None and self.records.max_rows is not None and self.bounded:
            loss += f", per person of at most {how_many(self.records.max_rows, 'record')}"
        if self._length(distance_of(self.guarantee.mechanism, distance)) == 1:
            loss += f", which is more than for a change of any one attribute{self._except(attributes)}"
        else:
            loss += f", for a change of any one attribute to any value{self._allowed}{self._except(attributes)}"
        if self.is_of_earlier_definition:
            loss += f"; by an earlier definition: {SHORTEST_CHANGE} and lose more"
        return loss + self._not_against(attributes)

    @property
    def is_of_earlier_definition(self) -> bool:
        """Whether distances are those of ``keepsum.certificate/2``, which between real tables can be larger."""
        distances = [attribute.any_value for attribute in self.person.attributes if attribute.any_value is not None]
        return self.person.stated is not None and any(distance.rule is None for distance in distances)

    @property
    def is_qualified(self) -> bool:
        """Whether the loss is not known to hold, for real tables, against every reader."""
        return bool(self.weakly_covered()) or self.is_of_earlier_definition

    def _not_against(self, attributes: Sequence[AttributeRecord]) -> str:
        """Against whom a loss for a change of one of these attributes does not hold; empty if it holds against all."""
        weak = [attribute.axis for attribute in attributes if self._is_weak(attribute)]
        which = "" if len(weak) == len(attributes) else f"for {' or '.join(weak)} "
        return f"; {which}not against somebody who knows the attributes of others" if weak else ""

    def _why_none(self) -> str:
        """Why nothing is stated for one person."""
        attributes = self.person.attributes
        if not self.named:
            return "cells have no names"
        if not attributes:
            return "no attribute has several categories"
        unknown = [attribute.axis for attribute in attributes if attribute.unknown_cells]
        if unknown:
            return f"how far a change of {' or '.join(unknown)} reaches is not known for these totals"
        return f"no change of one {self.subject}'s value keeps the totals"

    @property
    def _allowed(self) -> str:
        """Which changes a figure is for, where others must change too."""
        return " that the kept totals allow" if self.several_change else ""

    def against(self) -> str:
        """Against whom the loss is stated, or for which tables, in a sentence; empty where nothing is stated."""
        distances = [attribute.any_value for attribute in self.person.attributes if attribute.any_value is not None]
        if self.person.stated is None:
            return ""
        if self.is_of_earlier_definition:
            return f"It is by an earlier definition of the distance of one person: {SHORTEST_CHANGE} and lose more."
        weak = self.weakly_covered()
        everybody = "everything about everybody but their values of the changed attribute"
        if all(distance.rule == "move" for distance in distances):
            return "That holds whatever else they know."
        if not weak:
            return f"It holds even against somebody who knows {everybody}."
        if len(weak) == len(distances):
            return "It holds if others may differ in any way: not against somebody who knows their attributes."
        return (
            f"It holds even against somebody who knows {everybody}; for a change of {' or '.join(weak)} only if others "
            f"may differ in any way, not against somebody who knows their attributes."
        )

    def weakly_covered(self) -> list[str]:
        """The attributes whose change is covered only if others may differ in any way."""
        return [attribute.axis for attribute in self.person.attributes if self._is_weak(attribute)]

    def _is_weak(self, attribute: AttributeRecord) -> bool:
        covered, mechanism = attribute.any_value, self.guarantee.mechanism
        return covered is not None and distance_of(mechanism, covered).reading == "weak"

    def attribute(self, attribute: AttributeRecord) -> str:
        """The loss for a change of one attribute."""
        clauses: list[str] = []
        if attribute.any_value is not None and attribute.other_value is not None:
            clauses.append(f"to any value {self._loss(attribute.any_value)}")
            if self._cost(attribute.other_value) < self._cost(attribute.any_value):
                allowed = self._where_allowed("some other value", attribute.other_value)
                clauses.append(f"to some other value{allowed and f'{allowed},'} {self._loss(attribute.other_value)}")
        elif not attribute.unknown_cells:
            return f"{attribute.axis}: not protected; no change of it keeps the totals"
        else:
            clauses.append("not known for these totals")
        if attribute.fixed_values:
            clauses.append(f"not protected for {how_many(attribute.fixed_values, 'value')} with all cells pinned")
        if attribute.unprotected_cells:
            stuck = f", {attribute.stuck_cells:,} of them to none" if attribute.stuck_cells else ""
            cells = how_many(attribute.unprotected_cells, "cell")
            clauses.append(f"not protected in {cells} that cannot change to every value{stuck}")
        if attribute.unknown_cells and attribute.any_value is not None:
            clauses.append(f"not known to be protected in {how_many(attribute.unknown_cells, 'cell')}, for some values")
        against = self._not_against([attribute]) if self.person.stated is None else ""  # else the headline says so
        return f"{attribute.axis}: {'; '.join(clauses)}{against}"

    @property
    def asked_of_some(self) -> bool:
        """Whether the requested loss is for some changes only, so that another number is stated for all of them."""
        asked = self.person.asked
        return asked is not None and (asked.attributes is not None or asked.to != "any value")

    def asked(self) -> str:
        """The loss for the changes that the request covers."""
        asked, attributes = self.person.asked, self.person.attributes
        neighbours = Neighbours() if asked is None else Neighbours.of(asked.attributes, asked.to)
        concerned = [a for a in attributes if neighbours.attributes is None or a.axis in neighbours.attributes]
        covered = [a.any_value if neighbours.to == "any value" else a.other_value for a in concerned]
        distances = [distance for distance in covered if distance is not None]
        farthest = max(distances, key=lambda distance: (self._cost(distance), not distance.exact), default=None)
        farthest = farthest or self.person.stated
        if farthest is None:
            return f"For the requested neighbours, a change of {neighbours}: not known for these totals"
        loss = f"{self._loss(farthest)}{self._except(concerned)}"
        against = self._not_against(concerned) if self.person.stated is None else ""  # else the headline says so
        allowed = self._where_allowed(neighbours.to, farthest)
        return f"For the requested neighbours, a change of {neighbours}{allowed}: {loss}{against}"

    def _where_allowed(self, to: To, record: DistanceRecord) -> str:
        """Of which values a figure is true, where others must change too.

        *Some other value* is one that the categories give, not the nearest of those that the totals allow.
        """
        if self._length(distance_of(self.guarantee.mechanism, record)) <= 2:
            return ""
        return " that the kept totals allow" if to == "any value" else ", where the kept totals allow that one"

    def changes(self) -> list[str]:
        """The loss for a change of each attribute, and for changes within one total of a focus."""
        return [*(self.attribute(attribute) for attribute in self.person.attributes), *self.levels()]

    def lines(self) -> list[str]:
        """The headline, the loss for each change, and what was asked for or holds per unit if that is another."""
        lines = [self.headline(), *(f"  {line}" for line in self.changes())]
        if self.asked_of_some:
            lines.append(self.asked())
        return lines if self.guarantee.person is not None else [*lines, self.guarantee.words]

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
        loss = mechanism.loss(distance_of(mechanism, record))
        return loss.epsilon or loss.rho or 0

    def all_exact(self) -> bool:
        """Whether every distance is exact."""
        distances = [d for a in self.person.attributes for d in (a.any_value, a.other_value)]
        return all(distance is None or distance.exact for distance in (self.person.stated, *distances))

    def _loss(self, record: DistanceRecord) -> str:
        """'epsilon 1 (l1 distance 4: two people exchange values)', and what sampling adds to it."""
        distance = distance_of(self.guarantee.mechanism, record)
        totals = self._in_totals(distance)
        change = f"{distance.norm} distance {distance}{totals}: {self._change(distance)}"
        loss = f"{self.guarantee.mechanism.loss(distance)} ({change})"
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
        if not self.margins and distance.reading is None:
            return f"{each}several counts change together"
        if length == 4:
            return f"{each}two {many} {'exchange values' if distance.rule == 'exchange' else 'swap cells'}"
        number = f"{length // 2:,}" if distance.norm == "l1" else "several"
        return f"{each}{number} {many} change cells together"

    def _length(self, distance: Distance) -> int:
        changes = changes_of(self.records)
        return distance.length // (changes if distance.norm == "l1" else changes**2)

    def _except(self, attributes: Sequence[AttributeRecord]) -> str:
        partly = [attribute.axis for attribute in attributes if not _whole(attribute)]
        return f", except where {' or '.join(partly)} is not protected" if partly else ""


def _whole(attribute: AttributeRecord) -> bool:
    """Whether every cell can change to every value, at a distance that is known."""
    gaps = attribute.fixed_values or attribute.unprotected_cells or attribute.unknown_cells
    return attribute.any_value is not None and not gaps


# A release in a few sentences for readers who know no differential privacy, such as a lawyer.
#
# Each says no more than the guarantee does: for two tables with the same kept totals, any set of outcomes is at most
# e^epsilon times as likely under one as under the other, plus delta.

TITLE = "In plain words"
NAMED_ATTRIBUTES = 5
_LARGEST_EXPONENT = 13  # e^13 is below half a million


def plain_words(statements: PersonStatements, totals: int, pinned: int, seeded: bool = False) -> list[str]:
    """What is exact, how much one conclusion can depend on one person, and what else that depends on.

    Parameters
    ----------
    statements
        What the guarantee means for one person, or one record.
    totals, pinned
        How many totals are kept, and how many cells they fix.
    seeded
        Whether the noise comes from a seed.
    """
    if statements.guarantee.sampling == "no sampler":
        return ["No release is possible: there is no sampler for this noise under these totals."]
    limit = _limit(statements, totals)
    return [
        _exact(statements, totals, pinned),
        limit or f"No limit is guaranteed to what the released counts say about one {statements.subject}.",
        *([" ".join(_conditions(statements, seeded))] if limit else []),
    ]


def _exact(statements: PersonStatements, totals: int, pinned: int) -> str:
    if not totals:
        return "No total is published exactly; every count has noise."
    bounded = " (of the counted records)" if statements.bounded else ""
    kept = f"The {totals:,} kept totals{bounded} are" if totals > 1 else f"The kept total{bounded} is"
    they, them = ("they are", "them") if totals > 1 else ("it is", "it")
    cells = f"; {how_many(pinned, 'count')} that follow{'s' * (pinned == 1)} from {them}"
    fixed = f"{cells} {'has' if pinned == 1 else 'have'} no noise" if pinned else ""
    return (
        f"{kept} published exactly{fixed}. So {they} not protected, nor is whatever anybody can work out from {them} "
        f"and from what they know already."
    )


def _limit(statements: PersonStatements, totals: int) -> str | None:
    """How much more likely one value of one person can make a conclusion; None if there is no limit for a person."""
    attributes = statements.person.attributes
    covered = [attribute.axis for attribute in attributes if attribute.any_value is not None]
    if not statements.named or not covered or statements.guarantee.person is None:
        return None
    loss = statements.guarantee.usual_loss
    if loss.epsilon is None or (loss.delta or 0) >= 1:
        return None
    plus = f", plus a probability of {three_digits_up(float(loss.delta))}," if loss.delta else ""
    claimed = statements.guarantee.mechanism.kind == "own"
    begin = "The publisher claims, and Keepsum neither proves nor checks, that whatever" if claimed else "Whatever"
    return (
        f"{begin} anybody concludes about one {statements.subject} from the released counts, they are at most "
        f"{_times(loss.epsilon)} as likely to conclude it{plus} as if that {statements.subject}'s "
        f"{_value(covered, partly=len(covered) < len(attributes))} were different"
        f"{_in_records(statements)}{_same_totals(statements, totals)}."
    )


def _times(epsilon: Fraction) -> str:
    """e^epsilon in three digits, rounded up: '2.72 times'."""
    if epsilon > _LARGEST_EXPONENT:
        return f"e^{shown_briefly(epsilon, 8)} times (over 400,000 times: hardly a limit)"
    with localcontext(prec=50):
        factor = as_decimal(epsilon).exp() * (1 + Decimal("1e-40"))  # past the rounding of both
    return f"{rounded_up(factor, 3):,f} times"


def _value(axes: list[str], partly: bool) -> str:
    if len(axes) > NAMED_ATTRIBUTES and not partly:
        return "value of any one attribute"
    *first, last = axes
    return f"value of {', '.join(first)} or {last}" if first else f"value of {last}"


def _in_records(statements: PersonStatements) -> str:
    if not statements.bounded:
        return ""
    number = changes_of(statements.records)
    counted = "the one record that was counted" if number == 1 else f"each of at most {number:,} counted records"
    return f" in {counted}, and no others were counted instead"


def _same_totals(statements: PersonStatements, totals: int) -> str:
    if not totals:
        return ""
    others = " (for which others may have to differ too)" if statements.several_change else ""
    return f", with every kept total the same{others}"


def _conditions(statements: PersonStatements, seeded: bool) -> list[str]:
    """What the limit does not depend on, and where it does not hold."""
    guarantee, unprotected = statements.guarantee, statements.partly_protected()
    sentences = [statements.against()] if statements.against() else []
    if unprotected:
        sentences.append(
            f"There is no such limit where {' or '.join(unprotected)} is not protected, as listed under "
            f"{statements.title!r}."
        )
    if statements.subject == "record":
        sentences.append("For a person with several records these limits multiply.")
    if guarantee.sampling == "estimated" and guarantee.error is None:
        sentences.append("Some noise is drawn by Markov chains, and what that adds is not yet measured.")
    elif guarantee.sampling == "estimated":
        sentences.append("It is estimated, not proved, because some noise is drawn by Markov chains.")
    if seeded:
        sentences.append("It does not hold against anybody who knows the seed of the noise.")
    return sentences
