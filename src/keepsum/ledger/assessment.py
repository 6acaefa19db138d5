"""Whether a release fits into what is left of a budget, and what it does together with the releases before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from keepsum._saying import Reference, Text, arg, marked
from keepsum._text import how_many
from keepsum.accounting.total import Cost
from keepsum.errors import BudgetError, InputError, PlanError
from keepsum.ledger.entries import UNIT, Budget, CostRecord, TableEntry
from keepsum.ledger.person import COUNTED_ALIKE, KeptTable, apart, check_joint, counted, table_entry
from keepsum.ledger.state import Dataset, cells_key
from keepsum.planning.plan import CompiledPlan
from keepsum.privacy.distance import Distance
from keepsum.privacy.numbers import Loss, shown_at_most, shown_briefly
from keepsum.releasing.codec import domain_of, mechanism_record
from keepsum.releasing.facts import MechanismRecord

UNCHECKED = (
    "The releases of this dataset are of tables whose cells cannot be put together, so that what their kept totals fix "
    "together is not checked. Declare the dataset's full cross-classification to have it checked."
)
APART = (
    "Tables of this dataset count different records of a person, so that losses are per unit of the largest distance "
    f"in any of them, and none is known per person. To have one, count every table {COUNTED_ALIKE}."
)


@dataclass(frozen=True)
class Charge:
    """A release that is to be charged: its table and kept totals, its mechanism, and its cost.

    ``person`` is how much one person changes, and ``asked`` what that loses, as epsilon or rho, if the loss was
    requested per person.
    """

    table: TableEntry
    mechanism: MechanismRecord
    cost: CostRecord
    seeded: bool = False
    person: Distance | None = None
    asked: Fraction | None = None
    stated: Loss | None = None  # what its certificate states for any change of one person


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
        Whether what their kept totals fix together is not checked, as their cells cannot be put together.
    apart
        Whether their tables count different records of a person, so that they are not sums of one table.
    """

    dataset: str
    budget: Budget
    spent: Loss | None
    distance: Distance
    releases: int = 0
    unchecked: bool = False
    apart: bool = False
    problem: str | None = None  # why what was spent cannot be stated
    coarse: str | None = None  # why shares of a focus count at the largest distance, as the end of a sentence

    @property
    def warnings(self) -> list[str]:
        """What cannot be said of all releases together, in sentences."""
        return [*([UNCHECKED] if self.unchecked else []), *([APART] if self.apart else [])]

    @property
    def notes(self) -> list[str]:
        """Where noise with a focus is charged more than its certificates state, and why, in sentences."""
        if self.coarse is None:
            return []
        return [
            Text(
                "Of noise with a focus all of epsilon or rho counts at the largest distance here, as "
                f"{marked(self.coarse)}."
            )
        ]

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
            return Text(f"{unknown} {marked(self.problem)}")
        symbol = "rho" if self.budget.rho is not None else "epsilon"
        spent = shown_briefly(self.budget.amount(self.spent), 8)
        excess = self.budget.amount(self.spent) - self.budget.limit()
        left = f"{shown_at_most(self.left)} left" if excess <= 0 else f"{shown_briefly(excess, 8)} too much, 0 left"
        return (
            f"{symbol} {spent} of {shown_briefly(self.budget.limit(), 8)} {self.budget.unit} spent by "
            f"{how_many(self.releases, 'release')}, {left}{self.distance.not_against}."
        )


@dataclass(frozen=True)
class Assessment:
    """A release that fits: how its dataset stands before it and after it."""

    before: Standing
    after: Standing
    stated: Fraction | None = None  # what the release's certificate states for one person, in this budget's currency

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
            f"leaves {shown_at_most(self.after.left)} of {shown_briefly(budget.limit(), 8)}"
            f"{self.after.distance.not_against}."
        ]
        if budget.per_person and self.before.releases:
            lines.append(
                f"One person's change has {self.after.distance.norm} distance {self.after.distance} under the kept "
                f"totals of all {self.after.releases:,} releases together, and what all of them lose counts at it."
            )
        return [*lines, *self.difference, *self.after.warnings]

    @property
    def difference(self) -> list[str]:
        """Where it is charged another loss than its certificate states for one person: both, and why."""
        return _difference(self.before, self.after, self.stated)


def standing(dataset: Dataset) -> Standing:
    """How a dataset stands."""
    spent, distance, problem, coarse = None, UNIT, None, None
    try:
        found = counted(dataset)
        distance, coarse = found.distance, found.coarse
        spent = dataset.budget.spent(found.total, found.at, dataset.gaussian)
    except (PlanError, InputError) as error:
        problem = str(error)
    unchecked, different = not _comparable(dataset), apart(dataset, list(dataset.tables.values()))
    releases = dataset.costs.total()
    return Standing(dataset.name, dataset.budget, spent, distance, releases, unchecked, different, problem, coarse)


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
    imagined = _with(dataset, charge)
    found = counted(imagined)
    unchecked, different = not _comparable(imagined), apart(imagined, list(imagined.tables.values()))
    spent = dataset.budget.spent(found.total, found.at, imagined.gaussian)
    after = Standing(
        dataset.name,
        dataset.budget,
        spent,
        found.distance,
        before.releases + 1,
        unchecked,
        different,
        coarse=found.coarse,
    )
    if not dataset.budget.allows(spent):
        raise BudgetError(_refusal(dataset, charge, before, after))
    return Assessment(before, after, _stated(imagined, charge))


def charge_of(plan: CompiledPlan, dataset: str) -> Charge:
    """What a release by this plan is charged as."""
    cost = CostRecord.of(Cost.of(plan.guarantee))
    table, mechanism = table_entry(dataset, plan.invariants, plan.records), mechanism_record(plan.mechanism)
    asked = None if plan.neighbours is None else plan.asked_distance
    loss = None if asked is None else plan.mechanism.loss(asked)
    number = None if loss is None else loss.epsilon if loss.rho is None else loss.rho
    return Charge(table, mechanism, cost, person=asked, asked=number, stated=plan.guarantee.person_loss)


def assessed(dataset: Dataset, plans: Sequence[CompiledPlan]) -> list[Assessment]:
    """The assessments of releases by these plans, each with those before it."""
    results = []
    imagined = dataset
    for plan in plans:
        charge = charge_of(plan, dataset.name)
        results.append(assess(imagined, charge))
        if len(plans) > 1:
            imagined = _with(imagined, charge)
    return results


def check_totals(dataset: Dataset, table: TableEntry) -> None:
    """Refuse totals that do not go with those of earlier releases; what was found is remembered."""
    if (len(dataset.tables), table) in dataset.checked:
        return
    together = dataset.with_table(table).cells.domain
    key, base = cells_key(table.domain), together or domain_of(table.domain)
    earlier = [
        KeptTable.of(known, number, base)
        for number, known in dataset.tables.items()
        if known != table and (together is not None or cells_key(known.domain) == key)
    ]
    check_joint(earlier, KeptTable.of(table, None, base))
    dataset.checked.append((len(dataset.tables), table))


def _with(dataset: Dataset, charge: Charge, factor: Fraction = Fraction(1)) -> Dataset:
    cost = charge.cost if factor == 1 else CostRecord.of(charge.cost.cost().scaled(factor))
    return dataset.with_charge(charge.table, cost, charge.mechanism)


def _comparable(dataset: Dataset) -> bool:
    return not dataset.tables or dataset.cells.domain is not None


def _stated(dataset: Dataset, charge: Charge) -> Fraction | None:
    """What a release states for one person, as its budget counts it; None if that is not said, or not by adding up."""
    budget, loss = dataset.budget, charge.stated
    if loss is None or not budget.per_person or (budget.delta is not None and budget.rho is None and dataset.gaussian):
        return None
    if budget.rho is None:
        return loss.epsilon if loss.rho is None else None
    if charge.cost.rho is None and loss.epsilon is not None:
        return loss.epsilon**2 / 2
    return loss.rho


def _difference(before: Standing, after: Standing, stated: Fraction | None) -> list[str]:
    if stated is None or (after.coarse is None and not before.releases):
        return []
    needs = _needs(before, after)
    if abs(needs - stated) <= stated / 10**9:
        return []
    if after.coarse is not None:
        why = f"of noise with a focus all of it counts at the largest distance, since {marked(after.coarse)}"
    elif needs > stated:
        why = "under the kept totals of all releases together one person's change does more than under its own"
    else:
        why = "no one change of a person costs the most in every release, or it counted as longer before"
    symbol = "rho" if after.budget.rho is not None else "epsilon"
    return [
        f"For one person its certificate states {symbol} {shown_briefly(stated, 8)}, and the ledger charges "
        f"{shown_briefly(needs, 8)}, because {why}."
    ]


def _needs(before: Standing, after: Standing) -> Fraction:
    if after.spent is None:
        raise AssertionError("what a release costs is known once it is assessed")
    spent = Fraction(0) if before.spent is None else before.budget.amount(before.spent)
    return after.budget.amount(after.spent) - spent


def _refusal(dataset: Dataset, charge: Charge, before: Standing, after: Standing) -> str:
    budget = dataset.budget
    left, limit = shown_at_most(before.left), shown_briefly(budget.limit(), 8)
    needs = shown_briefly(_needs(before, after), 8)
    fitting = _fitting(dataset, charge)
    why = _difference(before, after, _stated(_with(dataset, charge), charge))
    would = "Nothing would fit." if fitting is None else f"{fitting} would fit."
    return (
        f"{arg.dataset.called(f'The budget of {dataset.name!r}')} must allow for the release: {left} of {limit} left; "
        "this release needs "
        f"{' '.join([f'{needs} {budget.unit}.', *why, would])}"
    )


def _fitting(dataset: Dataset, charge: Charge) -> Reference | None:
    """The largest parameter of three digits with which the release would fit, per person if it was requested so."""
    cost = charge.cost.cost()
    gaussian = cost.epsilon is None
    length, unit = Fraction(1), "per unit of distance"
    asked = charge.asked if charge.mechanism.focus else None
    person = None if charge.mechanism.focus else charge.person
    wanted = cost.loss if asked is None else asked

    def fits(steps: int) -> bool:
        parameter = _three_digits(steps)
        if parameter >= wanted:
            return False
        after = _with(dataset, charge, parameter / wanted)
        found = counted(after)
        return dataset.budget.allows(dataset.budget.spent(found.total, found.at, after.gaussian))

    low, high = 0, 24 * 900  # from 1e-12 to 1e12
    if not fits(low):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    if asked is not None:
        unit = "per person"
    elif person is not None and (person.norm == "l1") == (not gaussian):
        length, unit = Fraction(person.length), "per person"  # in l2 a square, as rho grows with it
    name, value = "rho" if gaussian else "epsilon", shown_at_most(_three_digits(low) * length)
    return arg[name](value).called(f"{name.capitalize()} {value} {unit}")


def _three_digits(steps: int) -> Fraction:
    """The numbers of three digits in order: 1.00e-12, 1.01e-12, ..., 9.99e-12, 1.00e-11, ..."""
    return Fraction(100 + steps % 900) * Fraction(10) ** (steps // 900 - 14)
