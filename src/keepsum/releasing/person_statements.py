"""What a guarantee means for one person, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from keepsum.privacy.distance import Distance
from keepsum.privacy.guarantee import Guarantee
from keepsum.privacy.neighbours import Neighbours, To
from keepsum.releasing.codec import records_of
from keepsum.releasing.counted import is_bounded
from keepsum.releasing.facts import MarginRecord, ReleaseFacts
from keepsum.releasing.guarantee_facts import AttributeRecord, DistanceRecord, PersonRecord
from keepsum.releasing.statements import counted, distance_of, guarantee_of, per_unit
from keepsum.tables.records import Records, Subject, changes_of, subject_of

# How keepsum.certificate/2 defines the distance of one person, and what that leaves open.
SHORTEST_CHANGE = (
    "the shortest change that keeps the totals, though it may lead to negative counts, so that tables without them can "
    "be farther apart"
)


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
            loss += f", per person of at most {counted(self.records.max_rows, 'record')}"
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
            clauses.append(f"not protected for {counted(attribute.fixed_values, 'value')} with all cells pinned")
        if attribute.unprotected_cells:
            stuck = f", {attribute.stuck_cells:,} of them to none" if attribute.stuck_cells else ""
            cells = counted(attribute.unprotected_cells, "cell")
            clauses.append(f"not protected in {cells} that cannot change to every value{stuck}")
        if attribute.unknown_cells and attribute.any_value is not None:
            clauses.append(f"not known to be protected in {counted(attribute.unknown_cells, 'cell')}, for some values")
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
