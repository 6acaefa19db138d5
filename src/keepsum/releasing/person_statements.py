"""What a guarantee means for one person, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from keepsum.privacy.distance import Distance
from keepsum.privacy.guarantee import Guarantee
from keepsum.privacy.neighbours import Neighbours
from keepsum.releasing.codec import records_of
from keepsum.releasing.counted import is_bounded
from keepsum.releasing.facts import MarginRecord, ReleaseFacts
from keepsum.releasing.guarantee_facts import AttributeRecord, DistanceRecord, PersonRecord
from keepsum.releasing.statements import counted, distance_of, guarantee_of, per_unit
from keepsum.tables.records import Records, Subject, changes_of, subject_of


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
        return self._length(distance_of(self.guarantee.mechanism, self.person.distance)) > 2

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
            loss += f", per person of at most {counted(self.records.max_rows, 'record')}"
        if self._length(distance_of(self.guarantee.mechanism, self.person.distance)) == 1:
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
            clauses.append(f"not protected for {counted(attribute.fixed_values, 'value')} with all cells pinned")
        if attribute.unprotected_cells:
            stuck = f", {attribute.stuck_cells:,} of them to none" if attribute.stuck_cells else ""
            cells = counted(attribute.unprotected_cells, "cell")
            clauses.append(f"not protected in {cells} that cannot change to every value{stuck}")
        if attribute.unknown_cells:
            clauses.append(f"not known to be protected in {counted(attribute.unknown_cells, 'cell')}, for some values")
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
        loss = mechanism.loss(distance_of(mechanism, record))
        return loss.epsilon or loss.rho or 0

    def all_exact(self) -> bool:
        """Whether every distance is exact."""
        distances = [d for a in self.person.attributes for d in (a.any_value, a.other_value)]
        return all(distance is None or distance.exact for distance in (self.person.distance, *distances))

    def _loss(self, record: DistanceRecord, people: bool = True) -> str:
        """'epsilon 1 (l1 distance 4: two people swap cells)', and what sampling adds to it."""
        distance = distance_of(self.guarantee.mechanism, record)
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
