"""What all releases of a dataset lose together at a change of one person, under the kept totals of all of them.

Losses per unit of distance add up, and count at the largest distance. Where noise has a focus, that is more than one
person loses: a change counts in cells and in the totals of each focus by what it does to these. The loss of Laplace
noise is then a norm, and that of all releases the norm with all weights added up; docs/accounting.md has the proofs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import TypeAlias

from keepsum.accounting.composition import root_of_squares
from keepsum.accounting.joint import JointDistances
from keepsum.accounting.total import Approximate, Total
from keepsum.errors import BudgetError, InputError, PlanError
from keepsum.ledger.budget import UNIT
from keepsum.ledger.entries import CostRecord, TableEntry, encoded
from keepsum.ledger.joint import Kept, count_apart, is_one_table, together
from keepsum.ledger.state import Dataset, Shared, cells_key
from keepsum.planning.attribute_distance import AttributeDistance
from keepsum.privacy.distance import Distance, Norm, farthest
from keepsum.privacy.focus import MOST_LEVELS, Level, Subsets
from keepsum.releasing.codec import domain_of
from keepsum.tables.domain import Domain
from keepsum.tables.records import subject_of

NO_DOMAIN = (
    "A budget per person must be for tables whose cells can be put together, and these have different cells. Declare "
    "the dataset's full cross-classification with domain=, or use a budget per unit of distance, with per_unit."
)
COUNTED_ALIKE = "with the same unit and bound, and by the first of the same columns in the same order"
PERSON_APART = (
    "A budget per person must be for tables that count the same records of a person, and those of this dataset count "
    f"different ones. Count every table {COUNTED_ALIKE}, keep no totals but grand totals, or use a budget per unit of "
    f"distance, with per_unit."
)
PERSON_NOT_KNOWN = (
    "A budget per person must be for totals under which one person's distance is known, and under the kept totals of "
    "all releases of this dataset together it is not. Keep fewer totals, or use a budget per unit of distance, with "
    "per_unit."
)
Key: TypeAlias = object  # which totals a share is of; CELLS for cells
CELLS: Key = None
Weights: TypeAlias = dict[Key, Fraction]


@dataclass(frozen=True)
class Counted:
    """All releases as they count in a budget.

    Attributes
    ----------
    total, at
        What they cost, and at which distance that counts; at distance 1 if it was worked out for one person's change.
    distance
        That of the change, or 1.
    coarse
        Why shares of a focus count at the largest distance all the same, as the end of a sentence, if they do.
    """

    total: Total | None
    at: Distance
    distance: Distance
    coarse: str | None = None


@dataclass(frozen=True)
class ByAttribute:
    """A change of one attribute, with the releases as they count at it."""

    attribute: AttributeDistance
    counted: Counted


class CoarseError(Exception):
    """Shares of a focus cannot be counted apart; says why, as the end of a sentence."""


def counted(dataset: Dataset) -> Counted:
    """All releases as they count in the budget: per unit of distance, or for one person.

    Totals that make the longest changes impossible must not give a budget back: the largest loss over all stages
    counts. It is between datasets; in a table with fewer cells it is no larger in l1, but it may be in l2.
    """
    total = dataset.total()
    if total is None or not dataset.budget.per_person:
        return Counted(total, UNIT, UNIT)
    return _for_one_person(dataset, total)


def each_for_one_person(dataset: Dataset) -> list[tuple[Total, Distance]]:
    """Each release by itself, at a change of one person under the kept totals of all of them, whatever the budget is.

    Raises
    ------
    BudgetError
        If no distance of one person is known for all of them.
    """
    each = []
    alone = [(cost, Counter[Shared](), n) for cost, n in (dataset.costs - _costs_of(dataset)).items()]
    alone += [(shared.cost, Counter([shared]), n) for shared, n in dataset.shared.items()]
    for cost, shared, n in alone:
        one = replace(dataset, costs=Counter([cost]), shared=shared)
        total = one.total()
        if total is None:
            raise AssertionError("there is a release")
        found = _for_one_person(one, total)
        each += [(found.total or total, found.at)] * n
    return each


def _for_one_person(dataset: Dataset, total: Total) -> Counted:
    """All releases at a change of one person.

    Raises
    ------
    BudgetError
        If no distance of one person is known for all of them.
    """
    tables = list(dataset.tables.values())
    norm: Norm = total.norm if _whole(dataset, tables) else "l1"
    stages = [tables[: k + 1] for k in range(len(tables))]
    distance = farthest([_person(dataset, norm, stage) for stage in stages])
    plain = Counted(total, distance, distance)
    if not dataset.shared:
        return plain
    try:
        shares = Shares.of(dataset, tables)
        return shares.counted(plain, lambda weights: max(_focused(dataset, shares, weights, stage) for stage in stages))
    except CoarseError as error:
        return replace(plain, coarse=str(error))


def by_attribute(dataset: Dataset, total: Total) -> list[ByAttribute]:
    """The changes of each attribute under all kept totals, with the releases as they count there.

    Raises
    ------
    BudgetError
        If no distance of one person is known for all of them.
    """
    tables = list(dataset.tables.values())
    norm: Norm = "l1" if dataset.domain is not None else total.norm
    plain = joint(dataset, norm, tables).by_attribute
    shares: Shares | None = None
    if dataset.shared:
        with suppress(CoarseError):
            shares = Shares.of(dataset, tables)

    @cache
    def known(levels: tuple[Level, ...], scaled: tuple[Fraction, ...]) -> JointDistances:
        return joint(dataset, "l1" if shares is None else shares.norm, tables, levels, scaled)

    return [_at_attribute(total, attribute, shares, known) for attribute in plain]


def joint(
    dataset: Dataset,
    norm: Norm,
    tables: Sequence[TableEntry],
    levels: Sequence[Level] = (),
    weights: Sequence[Fraction] = (),
) -> JointDistances:
    """The kept totals of these tables together, and one person's distances under them, in totals of a focus too.

    Raises
    ------
    BudgetError
        If they cannot be put together, are of different units, or count different records of a person.
    """
    if dataset.domain is None and len({cells_key(table.domain) for table in tables}) > 1:
        raise BudgetError(NO_DOMAIN)
    units = {table.records.unit for table in tables if table.records is not None and table.records.unit is not None}
    if len(units) > 1:
        raise BudgetError(
            "A budget per person must be for records of the same unit, and records of this dataset were bounded by "
            "different columns. Use the same column, or a budget per unit of distance, with per_unit."
        )
    base = _base(dataset, tables)
    kept = [Kept.of(table, None, base) for table in tables]
    if any(subject_of(one.records) == "record" for one in kept):
        raise BudgetError(
            "A budget per person must be for records that are bounded per person, and a person may have any number of "
            "the records of this dataset. Count with unit= and max_rows_per_unit=, with max_rows_per_unit=1 alone if "
            "every record is of another person, or use a budget per unit of distance, with per_unit."
        )
    if apart(dataset, tables):
        raise BudgetError(PERSON_APART)
    return together(kept, norm, levels, weights)


def apart(dataset: Dataset, tables: Sequence[TableEntry]) -> bool:
    """Whether tables count different records, so that no distance of one person is known for all of them."""
    return len(tables) > 1 and count_apart(tables, dataset.domain)


def _base(dataset: Dataset, tables: Sequence[TableEntry]) -> Domain:
    return dataset.domain or domain_of(tables[0].domain)


def _whole(dataset: Dataset, tables: Sequence[TableEntry]) -> bool:
    """Whether all tables have the cells of the dataset, as far as these are declared."""
    key = None if dataset.domain_record is None else cells_key(dataset.domain_record)
    return key is None or all(cells_key(table.domain) == key for table in tables)


def _person(dataset: Dataset, norm: Norm, tables: Sequence[TableEntry]) -> Distance:
    """The distance of one person under the kept totals of these tables; what was found is remembered."""
    key = (norm, *map(encoded, tables))
    if key not in dataset.distances:
        distance = joint(dataset, norm, tables).person()
        if distance is None:
            raise BudgetError(PERSON_NOT_KNOWN)
        dataset.distances[key] = distance
    return dataset.distances[key]


# -- shares of a focus ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """The largest weighed length of one person's change, and that change; the larger one compares as larger."""

    loss: Fraction
    distance: Distance

    def __lt__(self, other: Found) -> bool:
        return self.loss < other.loss

    def __gt__(self, other: Found) -> bool:
        return self.loss > other.loss


@dataclass(frozen=True)
class Shares:
    """What the releases of a dataset lose by cells and by the totals of each focus.

    Attributes
    ----------
    norm
        l1 if all noise is Laplace, l2 if all is Gaussian.
    levels
        The totals by their keys, over the cells of the dataset.
    weights
        For each kind of release, what each unit loses, and how many such releases there are.
    """

    norm: Norm
    levels: dict[Key, Level]
    weights: tuple[tuple[Weights, int], ...]

    @classmethod
    def of(cls, dataset: Dataset, tables: Sequence[TableEntry]) -> Shares:
        """Those of a dataset.

        Raises
        ------
        CoarseError
            If they cannot be counted apart.
        """
        gaussian = [cost.rho is not None for cost in dataset.costs]
        if any(gaussian) and not all(gaussian):
            raise CoarseError("the releases have Laplace and Gaussian noise, which measure changes in different norms")
        norm: Norm = "l2" if any(gaussian) else "l1"
        if norm == "l2" and not (dataset.is_one_table() and _whole(dataset, tables)):
            raise CoarseError("Gaussian releases of different tables measure changes in different cells")
        if norm == "l2" and any(cost.norm == "l1" and not cost.levels for cost in dataset.costs):
            raise CoarseError("an earlier entry of the ledger does not say how much of its rho is for which totals")
        ordered = sorted(tables, key=lambda table: len(table.domain.axes))
        if not all(is_one_table(few, many) for few, many in pairwise(ordered)):
            raise CoarseError("the tables count different records of a person")
        base, by_text = _base(dataset, tables), {encoded(table): table for table in tables}
        levels: dict[Key, Level] = {}
        weights: list[tuple[Weights, int]] = []
        for shared, times in dataset.shared.items():
            weights.append((_weights_of(shared, by_text[shared.table], base, levels), times))
        rest = dataset.costs - _costs_of(dataset)
        weights += [({CELLS: cost.cost().loss}, times) for cost, times in rest.items()]
        if len(levels) > MOST_LEVELS:
            raise CoarseError(f"all releases together have shares for more than {MOST_LEVELS} kinds of totals")
        return cls(norm, levels, tuple(weights))

    @property
    def added(self) -> Weights:
        """All weights added up."""
        return {key: sum((w.get(key, Fraction(0)) * n for w, n in self.weights), Fraction(0)) for key in self._keys}

    @property
    def squared(self) -> tuple[Weights, Fraction]:
        """Weights, and a factor, such that the sum of squares of all norms is at most the factor times that square."""
        first, _ = self.weights[0]
        factors = [weights[CELLS] / first[CELLS] for weights, _ in self.weights]
        if all(
            weights == {key: weight * factor for key, weight in first.items()}
            for (weights, _), factor in zip(self.weights, factors, strict=True)
        ):
            times = [n for _, n in self.weights]
            return first, sum((f**2 * n for f, n in zip(factors, times, strict=True)), Fraction(0))
        several = {key: [w.get(key, Fraction(0)) for w, n in self.weights for _ in range(n)] for key in self._keys}
        return {key: root_of_squares(numbers) for key, numbers in several.items()}, Fraction(1)

    @property
    def _keys(self) -> list[Key]:
        return [CELLS, *self.levels]

    def counted(self, plain: Counted, at: Callable[[Weights], Found]) -> Counted:
        """The releases at the dearest change for these weights; no more than all of it at the largest distance."""
        total = plain.total
        if total is None:
            raise AssertionError("there are releases")
        total = replace(total, norm="l1")
        length = plain.at.length
        found = at(self.added)
        loss = found.loss
        if self.norm == "l2":
            if loss >= total.zcdp * (length if plain.at.norm == "l2" else length**2):
                return plain
            return Counted(replace(total, rho=loss, zcdp=loss, approximate=Approximate(rho=loss)), UNIT, found.distance)
        weights, factor = self.squared
        squares = factor * at(weights).loss ** 2 / 2
        epsilon, zcdp = min(loss, total.epsilon * length), min(squares, total.zcdp * length**2)
        here = replace(total, epsilon=epsilon, zcdp=zcdp, approximate=Approximate(epsilon))
        return Counted(here, UNIT, found.distance)


def _costs_of(dataset: Dataset) -> Counter[CostRecord]:
    """How often each cost is that of a release with shares."""
    costs: Counter[CostRecord] = Counter()
    for shared, times in dataset.shared.items():
        costs[shared.cost] += times
    return costs


def _weights_of(shared: Shared, table: TableEntry, base: Domain, levels: dict[Key, Level]) -> Weights:
    """What a release loses by cells and by the totals of each focus, which are entered among the levels.

    Where its table leaves out cells of the dataset, all of it counts by cells: totals change no more than these.
    """
    cost = shared.cost.cost()
    kept = Kept.of(table, None, base)
    if (kept.place < 0).any():
        return {CELLS: cost.loss}
    weights: Weights = {CELLS: cost.loss - sum(cost.levels)}
    for level, weight in zip(shared.levels, cost.levels, strict=True):
        lifted, key = _lifted(level, kept, base)
        levels.setdefault(key, lifted)
        weights[key] = weights.get(key, Fraction(0)) + weight
    return weights


def _lifted(level: Level, kept: Kept, base: Domain) -> tuple[Level, Key]:
    """The totals over the cells of the dataset, and what tells them from others."""
    if level.subsets is None:
        whole = replace(level, axes=tuple(kept.cells.closure(level.axes)))
        return whole, frozenset(base.closure(whole.axes))
    places = kept.place.tolist()
    of_place = {place: number for number, row in enumerate(level.subsets.cells) for place in row}
    rows: list[list[int]] = [[] for _ in level.subsets.cells]
    for cell, place in enumerate(places):
        if place in of_place:
            rows[of_place[place]].append(cell)
    cells = tuple(map(tuple, rows))
    return replace(level, subsets=Subsets(base.size, level.subsets.names, cells)), frozenset(cells)


def _scaled(shares: Shares, weights: Weights) -> tuple[list[Level], list[Fraction]]:
    """The totals that have a weight, and the weights of cells and of them, up to a factor: that of cells is 1."""
    keys = [key for key in shares.levels if weights.get(key)]
    return [shares.levels[key] for key in keys], [weights[key] / weights[CELLS] for key in [CELLS, *keys]]


def _focused(dataset: Dataset, shares: Shares, weights: Weights, tables: Sequence[TableEntry]) -> Found:
    """The largest weighed length of one person's change under these kept totals; what was found is remembered."""
    levels, scaled = _scaled(shares, weights)
    key = (shares.norm, tuple(levels), tuple(scaled), *map(encoded, tables))
    if key not in dataset.focused:
        try:
            distances = joint(dataset, shares.norm, tables, levels, scaled)
            distance = distances.person()
        except (PlanError, InputError):
            distance = None
        if distance is None:
            raise CoarseError("what one person's change does to these totals is not known for all releases together")
        dataset.focused[key] = distance.weighed(distances.weights or scaled[:1]), distance
    loss, distance = dataset.focused[key]
    return Found(loss * weights[CELLS], distance)


def _at_attribute(
    total: Total,
    attribute: AttributeDistance,
    shares: Shares | None,
    known: Callable[[tuple[Level, ...], tuple[Fraction, ...]], JointDistances],
) -> ByAttribute:
    """The releases as they count at a change of one attribute."""
    if attribute.any_value is None:
        return ByAttribute(attribute, Counted(total, UNIT, UNIT))
    plain = Counted(total, attribute.any_value, attribute.any_value)
    if shares is None:
        return ByAttribute(attribute, plain)

    def at(weights: Weights) -> Found:
        levels, scaled = _scaled(shares, weights)
        try:
            distances = known(tuple(levels), tuple(scaled))
            found = next((a.any_value for a in distances.by_attribute if a.axis == attribute.axis), None)
        except (PlanError, InputError):
            found = None
        if found is None:
            raise CoarseError("it is not known")
        return Found(found.weighed(distances.weights or scaled[:1]) * weights[CELLS], found)

    try:
        return ByAttribute(attribute, shares.counted(plain, at))
    except CoarseError:
        return ByAttribute(attribute, plain)
