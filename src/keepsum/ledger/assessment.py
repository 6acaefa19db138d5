"""Whether a release fits into what is left of a budget, and what it does together with the releases before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from keepsum.accounting.cost import Cost
from keepsum.accounting.joint import JointDistances
from keepsum.accounting.total import Total
from keepsum.errors import BudgetError, InputError, PlanError
from keepsum.ledger.budget import UNIT, Budget
from keepsum.ledger.entries import CostRecord, TableEntry, encoded
from keepsum.ledger.joint import Kept, check_joint, table_entry, together
from keepsum.ledger.state import Dataset, cells_key
from keepsum.planning.plan import CompiledPlan
from keepsum.privacy.distance import Distance, Norm, farthest
from keepsum.privacy.loss import Loss
from keepsum.privacy.neighbours import Neighbours
from keepsum.privacy.numbers import shown_at_most, shown_briefly
from keepsum.releasing.codec import domain_of, mechanism_record
from keepsum.releasing.guarantee_facts import MechanismRecord
from keepsum.tables.records import subject_of

UNCHECKED = (
    "The releases of this dataset are of tables with different cells, so that what their kept totals fix together is "
    "not checked. Declare the dataset's full cross-classification to have it checked."
)
NO_DOMAIN = (
    "A budget per person must be for tables whose cells can be put together, and these have different cells. Declare "
    "the dataset's full cross-classification with domain=, or use a budget per unit of distance."
)


@dataclass(frozen=True)
class Charge:
    """A release that is to be charged: its table and kept totals, its mechanism, and its cost.

    ``person`` is how much one person changes, if the loss was requested per person.
    """

    table: TableEntry
    mechanism: MechanismRecord
    cost: CostRecord
    seeded: bool = False
    person: Distance | None = None


@dataclass(frozen=True)
class Standing:
    """How a dataset stands.

    Attributes
    ----------
    dataset, budget
        The dataset and its budget.
    spent
        What its releases have cost together, in the currency of the budget; None if it cannot be stated in that.
    distance
        At which that holds: l1 distance 1, or one person under the kept totals of all releases.
    releases
        How many they are.
    unchecked
        Whether what their kept totals fix together is not checked, because their tables have different cells.
    """

    dataset: str
    budget: Budget
    spent: Loss | None
    distance: Distance
    releases: int = 0
    unchecked: bool = False
    problem: str | None = None  # why what was spent cannot be stated

    @property
    def left(self) -> Fraction:
        """The epsilon or rho that is left; 0 if nothing is, or if what was spent cannot be stated."""
        if self.spent is None:
            return Fraction(0)
        return max(Fraction(0), self.budget.limit() - self.budget.amount(self.spent))

    def __str__(self) -> str:
        """What is spent and left, in a sentence."""
        if self.spent is None:
            unknown = f"The budget is {self.budget}; what was spent cannot be stated in it, so nothing is left."
            return f"{unknown} {self.problem}"
        symbol = "rho" if self.budget.rho is not None else "epsilon"
        spent = shown_briefly(self.budget.amount(self.spent), 8)
        excess = self.budget.amount(self.spent) - self.budget.limit()
        left = f"{shown_at_most(self.left)} left" if excess <= 0 else f"{shown_briefly(excess, 8)} too much, 0 left"
        return (
            f"{symbol} {spent} of {shown_briefly(self.budget.limit(), 8)} {self.budget.unit} spent by "
            f"{self.releases:,} release{'s' * (self.releases != 1)}, {left}."
        )


@dataclass(frozen=True)
class Assessment:
    """A release that fits: how its dataset stands before it and after it."""

    before: Standing
    after: Standing

    @property
    def needs(self) -> Fraction:
        """What it adds to what is spent."""
        return _needs(self.before, self.after)

    @property
    def lines(self) -> list[str]:
        """What a curator must know before the release, in sentences."""
        budget = self.after.budget
        symbol = "rho" if budget.rho is not None else "epsilon"
        lines = [
            f"{self.after.dataset}: this release costs {symbol} {shown_briefly(self.needs, 8)} {budget.unit}, and "
            f"leaves {shown_at_most(self.after.left)} of {shown_briefly(budget.limit(), 8)}."
        ]
        if budget.per_person and self.before.releases:
            lines.append(
                f"One person's change has {self.after.distance.norm} distance {self.after.distance} under the kept "
                f"totals of all {self.after.releases:,} releases together, and what all of them lose counts at it."
            )
        return lines + ([UNCHECKED] if self.after.unchecked else [])


def standing(dataset: Dataset) -> Standing:
    """How a dataset stands."""
    spent, distance, problem = None, UNIT, None
    try:
        total = dataset.total(same_table=dataset.is_one_table())
        distance = _distance(dataset, total)
        spent = dataset.budget.spent(total, distance, dataset.gaussian)
    except (PlanError, InputError) as error:
        problem = str(error)
    unchecked = not _comparable(dataset)
    return Standing(dataset.name, dataset.budget, spent, distance, dataset.costs.total(), unchecked, problem)


def assess(dataset: Dataset, charge: Charge) -> Assessment:
    """Whether a release may be made, and how its dataset stands then.

    Raises
    ------
    BudgetError
        If it costs more than is left, with what is left, what it needs and what would fit.
    PlanError
        If its kept totals, with those of earlier releases, determine cells or leave nothing protected.
    InputError
        If its table does not fit the declared cross-classification.
    """
    more = [] if dataset.number_of(charge.table) is not None else [charge.table]
    if more or dataset.has_imports:  # a table that was charged has been checked; an imported one may have changed that
        check_totals(dataset, charge.table)
    before = standing(dataset)
    total = dataset.total(charge.cost, same_table=dataset.is_one_table(*more))
    distance = _distance(dataset, total, more)
    unchecked = not _comparable(dataset, more)
    spent = dataset.budget.spent(total, distance, dataset.with_charge(charge.table, charge.cost).gaussian)
    after = Standing(dataset.name, dataset.budget, spent, distance, before.releases + 1, unchecked)
    if not dataset.budget.allows(spent):
        raise BudgetError(_refusal(dataset, charge, before, after))
    return Assessment(before, after)


def charge_of(plan: CompiledPlan, dataset: str) -> Charge:
    """What a release by this plan is charged as."""
    cost = CostRecord.of(Cost.of(plan.guarantee))
    table, mechanism = table_entry(dataset, plan.invariants, plan.records), mechanism_record(plan.mechanism)
    return Charge(table, mechanism, cost, person=None if plan.neighbours is None else plan.asked_distance)


def assessed(dataset: Dataset, plans: Sequence[CompiledPlan]) -> list[Assessment]:
    """The assessments of releases by these plans, each with those before it."""
    results = []
    imagined = dataset
    for plan in plans:
        charge = charge_of(plan, dataset.name)
        results.append(assess(imagined, charge))
        if len(plans) > 1:
            imagined = imagined.with_charge(charge.table, charge.cost)
    return results


def check_totals(dataset: Dataset, table: TableEntry) -> None:
    """Refuse totals that do not go with those of earlier releases; what was found is remembered."""
    if (len(dataset.tables), table) in dataset.checked:
        return
    key, base = cells_key(table.domain), dataset.domain or domain_of(table.domain)
    earlier = [
        Kept.of(known, number, base)
        for number, known in dataset.tables.items()
        if known != table and (dataset.domain is not None or cells_key(known.domain) == key)
    ]
    check_joint(earlier, Kept.of(table, None, base))
    dataset.checked.append((len(dataset.tables), table))


def _distance(dataset: Dataset, total: Total | None, more: Sequence[TableEntry] = ()) -> Distance:
    """At which distance a total counts: 1, or the largest of one person under the kept totals of the releases so far.

    Totals that make the longest changes impossible must not give a budget back: the largest over all stages counts. It
    is a distance between datasets; in a table with fewer cells it is no larger in l1, but it may be in l2.
    """
    if total is None or not dataset.budget.per_person:
        return UNIT
    tables = [*dataset.tables.values(), *more]
    key = None if dataset.domain_record is None else cells_key(dataset.domain_record)
    whole = key is None or all(cells_key(table.domain) == key for table in tables)
    norm: Norm = total.norm if whole else "l1"
    return farthest([_person(dataset, norm, tables[: k + 1]) for k in range(len(tables))])


def _person(dataset: Dataset, norm: Norm, tables: Sequence[TableEntry]) -> Distance:
    """The distance of one person under the kept totals of these tables; what was found is remembered."""
    key = (norm, *map(encoded, tables))
    if key not in dataset.distances:
        dataset.distances[key] = joint(dataset, norm, tables).person(Neighbours.of(None, "any value"))
    return dataset.distances[key]


def joint(dataset: Dataset, norm: Norm, tables: Sequence[TableEntry]) -> JointDistances:
    """The kept totals of these tables together, and one person's distances under them.

    Raises
    ------
    BudgetError
        If they cannot be put together, or are of different units.
    """
    if dataset.domain is None and len({cells_key(table.domain) for table in tables}) > 1:
        raise BudgetError(NO_DOMAIN)
    units = {table.records.unit for table in tables if table.records is not None and table.records.unit is not None}
    if len(units) > 1:
        raise BudgetError(
            "A budget per person must be for records of the same unit, and records of this dataset were bounded by "
            "different columns. Use the same column, or a budget per unit of distance."
        )
    base = dataset.domain or domain_of(tables[0].domain)
    kept = [Kept.of(table, None, base) for table in tables]
    if any(subject_of(one.records) == "record" for one in kept):
        raise BudgetError(
            "A budget per person must be for records that are bounded per person, and a person may have any number of "
            "the records of this dataset. Count with unit= and max_rows_per_unit=, with max_rows_per_unit=1 alone if "
            "every record is of another person, or use a budget per unit of distance."
        )
    return together(kept, norm)


def _comparable(dataset: Dataset, more: Sequence[TableEntry] = ()) -> bool:
    """Whether the kept totals of all tables can be put together."""
    return dataset.domain is not None or dataset.is_one_table(*more)


def _needs(before: Standing, after: Standing) -> Fraction:
    if after.spent is None:
        raise AssertionError("what a release costs is known once it is assessed")
    spent = Fraction(0) if before.spent is None else before.budget.amount(before.spent)
    return after.budget.amount(after.spent) - spent


def _refusal(dataset: Dataset, charge: Charge, before: Standing, after: Standing) -> str:
    budget = dataset.budget
    left, limit = shown_at_most(before.left), shown_briefly(budget.limit(), 8)
    needs = shown_briefly(_needs(before, after), 8)
    fitting = _fitting(dataset, charge, after.distance)
    would = "Nothing would fit." if fitting is None else f"{fitting} would fit."
    return (
        f"The budget of {dataset.name!r} must allow for the release: {left} of {limit} left; this release needs "
        f"{needs} {budget.unit}. {would}"
    )


def _fitting(dataset: Dataset, charge: Charge, distance: Distance) -> str | None:
    """The largest parameter of three digits with which the release would fit, per person if it was requested so."""
    cost = charge.cost.cost()
    one_table = dataset.is_one_table(charge.table)
    gaussian = dataset.with_charge(charge.table, charge.cost).gaussian
    wanted = cost.epsilon if cost.epsilon is not None else cost.rho
    if wanted is None:
        raise AssertionError("a cost has an epsilon or a rho")

    def fits(steps: int) -> bool:
        parameter = _three_digits(steps)
        if parameter >= wanted:
            return False
        total = dataset.total(CostRecord.of(_with(cost, parameter)), same_table=one_table)
        return dataset.budget.allows(dataset.budget.spent(total, distance, gaussian))

    low, high = 0, 24 * 900  # from 1e-12 to 1e12
    if not fits(low):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    parameter, unit = _three_digits(low), "per unit of distance"
    person = None if charge.mechanism.focus else charge.person
    if person is not None and (person.norm == "l1") == (cost.epsilon is not None):
        parameter, unit = parameter * person.length, "per person"  # a length in l2 is a square, as rho grows with it
    return f"{'Rho' if cost.epsilon is None else 'Epsilon'} {shown_at_most(parameter)} {unit}"


def _three_digits(steps: int) -> Fraction:
    """The numbers of three digits in order: 1.00e-12, 1.01e-12, ..., 9.99e-12, 1.00e-11, ..."""
    return Fraction(100 + steps % 900) * Fraction(10) ** (steps // 900 - 14)


def _with(cost: Cost, parameter: Fraction) -> Cost:
    """The same noise with another parameter; Gaussian noise then states its rho alone."""
    if cost.epsilon is not None:
        return replace(cost, epsilon=parameter)
    return replace(cost, rho=parameter, stated=None)
