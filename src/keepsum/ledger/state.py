"""What the entries of a ledger amount to: datasets, their budgets, tables and releases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from hashlib import sha256
from typing import Any, Literal, TypeAlias

import msgspec

from keepsum._arguments import check_text
from keepsum._saying import arg
from keepsum.accounting.composition import compose
from keepsum.accounting.total import Total
from keepsum.errors import InputError, LedgerError
from keepsum.ledger.entries import (
    Budget,
    BudgetEntry,
    CostRecord,
    DatasetEntry,
    DomainEntry,
    LedgerEntry,
    OutcomeEntry,
    SpendEntry,
    TableEntry,
    WithdrawnEntry,
    decoded,
    encoded,
)
from keepsum.ledger.store import Link
from keepsum.privacy.distance import Distance
from keepsum.privacy.focus import Level
from keepsum.releasing.codec import cells_record, domain_of, stated_level
from keepsum.releasing.facts import DomainRecord, MechanismRecord
from keepsum.tables.axes import MAX_AXES
from keepsum.tables.domain import Domain

MOST_CELLS = 2**20  # of all tables together, if nobody declared them

Outcome: TypeAlias = Literal["released", "failed", "imported", "unknown"]


@dataclass(frozen=True)
class Withdrawn:
    """That a release is not to be used: in which entry, when, and why, if that was said."""

    number: int
    time: str
    note: str | None


@dataclass
class Spend:
    """A release that was charged, and what became of it; ``unknown`` if it was interrupted, or is under way.

    ``hash`` is that of the entry, which its certificate names.
    """

    number: int
    time: str
    hash: str
    entry: SpendEntry
    outcome: Outcome
    sha256: str | None = None
    withdrawn: Withdrawn | None = None

    def conclude(self, link: Link, entry: OutcomeEntry | WithdrawnEntry) -> None:
        """What became of it, or that it is not to be used; each is said once."""
        if isinstance(entry, WithdrawnEntry):
            if self.withdrawn is not None:
                raise ValueError
            self.withdrawn = Withdrawn(link.number, link.time, entry.note)
            return
        if self.outcome != "unknown":
            raise ValueError
        self.outcome, self.sha256 = entry.outcome, entry.sha256


@dataclass(frozen=True)
class Decided:
    """A budget that was decided on, in which entry, when, and by whom or why, if that was said."""

    number: int
    time: str
    budget: Budget
    note: str | None


@dataclass(frozen=True)
class Shared:
    """A release with shares of its loss for some totals: its cost, its table as text, and the totals of each share."""

    cost: CostRecord
    table: str
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, cost: CostRecord, table: TableEntry, mechanism: MechanismRecord) -> Shared:
        """The release with this cost.

        Raises
        ------
        ValueError
            If the mechanism has not as many focuses as the cost has shares.
        """
        levels = tuple(stated_level(level, mechanism.norm) for level in mechanism.focus)
        if len(levels) != len(cost.levels):
            raise ValueError
        return cls(cost, encoded(table), levels)


@dataclass(frozen=True)
class CellsTogether:
    """Cells of which those of several tables are sums: None if there are none, and why, as the end of a sentence.

    ``key`` tells them from others.
    """

    domain: Domain | None
    key: str = ""
    problem: str = ""


@dataclass
class Dataset:
    """A dataset: its budget, the tables that were released of it, and what that cost."""

    name: str
    domain_record: DomainRecord | None
    budgets: list[Decided] = field(default_factory=list)
    tables: dict[int, TableEntry] = field(default_factory=dict)
    spends: dict[int, Spend] = field(default_factory=dict)
    costs: Counter[CostRecord] = field(default_factory=Counter)
    first: CostRecord | None = None  # of the first release
    cells_note: str | None = None  # who declared the cells later, and why
    same_people: bool = False  # whether somebody said that every table counts the same people
    was_declared_later: bool = False  # the cells, so that totals of releases before may fix some of them together
    shared: Counter[Shared] = field(default_factory=Counter)  # those of the costs that have shares for totals
    distances: dict[tuple[object, ...], Distance] = field(default_factory=dict)  # of one person, once worked out
    focused: dict[tuple[object, ...], tuple[Fraction, Distance]] = field(default_factory=dict)  # under a focus
    checked: list[tuple[int, TableEntry]] = field(
        default_factory=list
    )  # totals found to go with those of so many tables

    @property
    def budget(self) -> Budget:
        """The budget that holds now."""
        return self.budgets[-1].budget

    @property
    def gaussian(self) -> bool:
        """Whether the first release had Gaussian noise, so that a budget with a delta counts all as zCDP."""
        return self.first is not None and self.first.rho is not None

    @property
    def has_imports(self) -> bool:
        """Whether a release was taken in that nobody could refuse."""
        return any(spend.outcome == "imported" for spend in self.spends.values())

    @cached_property
    def domain(self) -> Domain | None:
        """The full cross-classification, if it was declared."""
        return None if self.domain_record is None else domain_of(self.domain_record)

    @property
    def cells(self) -> CellsTogether:
        """The cells of which those of every table are sums: as declared, or those of all axes, or of the only table."""
        if self.domain_record is not None:
            return CellsTogether(self.domain, cells_key(self.domain_record))
        if self.tables and not self.same_people and not self.is_one_table():
            return CellsTogether(None, problem="nobody has said that they count the same people")
        return _cells_of(tuple(dict.fromkeys(msgspec.json.encode(table.domain) for table in self.tables.values())))

    def declare(self, entry: DomainEntry) -> None:
        """Take another full cross-classification; what was found under the one before does not hold any more."""
        if (entry.domain is None) != entry.same_people:
            raise ValueError
        self.domain_record, self.same_people, self.was_declared_later = entry.domain, entry.same_people, True
        self.cells_note = entry.note
        self.__dict__.pop("domain", None)
        for found in (self.distances, self.focused, self.checked):
            found.clear()

    def is_one_table(self, *more: TableEntry) -> bool:
        """Whether every release is of a table with the same cells, and these too."""
        return len({cells_key(table.domain) for table in (*self.tables.values(), *more)}) <= 1

    def number_of(self, table: TableEntry) -> int | None:
        """The entry that describes this very table and its kept totals, if there is one."""
        return next((number for number, known in self.tables.items() if known == table), None)

    def take(self, entry: SpendEntry) -> None:
        """Count the cost of an entry."""
        self.costs[entry.cost] += 1
        if entry.cost.levels:
            self.shared[Shared.of(entry.cost, self.tables[entry.table], entry.mechanism)] += 1
        self.first = self.first or entry.cost

    def with_table(self, table: TableEntry) -> Dataset:
        """The dataset with another table, unless it has that."""
        if self.number_of(table) is not None:
            return self
        return replace(self, tables={**self.tables, -len(self.tables) - 1: table}, checked=[])  # which no entry has

    def with_charge(self, table: TableEntry, cost: CostRecord, mechanism: MechanismRecord) -> Dataset:
        """The dataset as it would be after another release.

        Distances under the same totals are the same, and remembered for both; other findings for that one only.
        """
        costs = self.costs + Counter([cost])
        shared = self.shared + Counter([Shared.of(cost, table, mechanism)] if cost.levels else [])
        first = self.first or cost
        return replace(self.with_table(table), costs=costs, first=first, shared=shared, checked=[])

    def total(self) -> Total | None:
        """What all releases cost together; None if there are none."""
        if not self.costs:
            return None
        return compose([_total_of(cost).times(times) for cost, times in self.costs.items()], self.is_one_table())


@dataclass
class State:
    """All datasets of a ledger, from its entries."""

    last: Link | None = None
    datasets: dict[str, Dataset] = field(default_factory=dict)
    spends: dict[int, Spend] = field(default_factory=dict)

    def add(self, links: Iterable[Link]) -> None:
        """Take in further entries.

        Raises
        ------
        LedgerError
            If one makes no sense after those before it.
        """
        for link in links:
            try:
                self._add(link)
            except (KeyError, ValueError, ArithmeticError) as error:
                problem = error if isinstance(error, LedgerError) else None
            else:
                self.last = link
                continue
            raise problem or LedgerError(f"Entry {link.number:,} of the ledger does not follow from those before it.")

    def dataset(self, name: str | None) -> Dataset:
        """The dataset with this name, or the only one."""
        if name is None and len(self.datasets) == 1:
            (only,) = self.datasets.values()
            return only
        if name is None:
            raise InputError(f"Say which dataset of the ledger is meant, {arg.dataset:with}: {self._names()}.")
        check_text(name, "The name of a dataset")
        if name not in self.datasets:
            raise InputError(
                f"{arg.dataset.called('The dataset')} must be one of the ledger: {self._names()}. Check the spelling, "
                "or add it first."
            )
        return self.datasets[name]

    def _names(self) -> str:
        return ", ".join(map(repr, self.datasets)) or "it has none yet"

    def _add(self, link: Link) -> None:
        entry = decoded(link.number, link.content)
        if (link.number == 1) != isinstance(entry, LedgerEntry):
            raise ValueError
        match entry:
            case DatasetEntry():
                if entry.dataset in self.datasets:
                    raise ValueError
                budget = Decided(link.number, link.time, entry.budget.budget(), entry.note)
                self.datasets[entry.dataset] = Dataset(entry.dataset, entry.domain, [budget])
            case BudgetEntry():
                budget = Decided(link.number, link.time, entry.budget.budget(), entry.note)
                self.datasets[entry.dataset].budgets.append(budget)
            case DomainEntry():
                self.datasets[entry.dataset].declare(entry)
            case TableEntry():
                self.datasets[entry.dataset].tables[link.number] = entry
            case SpendEntry():
                self._take(link, entry)
            case OutcomeEntry() | WithdrawnEntry():
                self.spends[entry.spend].conclude(link, entry)

    def _take(self, link: Link, entry: SpendEntry) -> None:
        dataset = self.datasets[entry.dataset]
        if entry.table not in dataset.tables:
            raise ValueError
        _total_of(entry.cost)
        dataset.take(entry)
        imported = entry.imported
        outcome: Outcome = "unknown" if imported is None else "imported"
        spend = Spend(link.number, link.time, link.hash, entry, outcome)
        spend.sha256 = None if imported is None else imported.sha256
        self.spends[link.number] = dataset.spends[link.number] = spend


@cache
def _total_of(record: CostRecord) -> Total:
    """A cost, checked; the same few occur again and again."""
    return Total.of(record.cost())


@cache
def _key(encoded: bytes) -> str:
    """The cells, whatever the order of axes and categories: what two tables must share to have the same cells."""
    record = msgspec.json.decode(encoded, type=DomainRecord)
    axes = {axis.name: axis for axis in record.axes}
    paths: dict[str, list[tuple[object, ...]]] = {}
    for axis in record.axes:
        above = paths.get(axis.parent or "", [])
        parents = axis.parents or []
        paths[axis.name] = [
            (*(above[parents[k]] if axis.parent is not None else ()), label) for k, label in enumerate(axis.labels)
        ]
    zeros: list[str] = []
    if record.structural_zeros:
        domain = domain_of(record)
        whole = Domain.of(map(domain.axis, domain.axes))
        zeros = sorted(repr(sorted(whole.cell(k).items())) for k in record.structural_zeros)
    cells = [(name, axes[name].parent, sorted(map(repr, paths[name]))) for name in sorted(axes)]
    return sha256(repr((cells, zeros)).encode("utf-8", "surrogatepass")).hexdigest()


def cells_key(record: DomainRecord) -> str:
    """A text that tables share if they have the same cells, whatever the order of their axes and categories."""
    return _key(msgspec.json.encode(record))


@cache
def _cells_of(tables: tuple[bytes, ...]) -> CellsTogether:
    """The cells of tables that count the same people: all combinations of all axes.

    Every person has one category of each axis, so that a table is a margin of these cells. That holds only if an axis
    has the same categories, nested alike, in every table that has it: of an axis with others nobody knows whether a
    person is counted in one of them or in both.
    """
    records = [msgspec.json.decode(table, type=DomainRecord) for table in tables]
    if not records:
        return CellsTogether(None, problem="there is none yet")
    if len({cells_key(record) for record in records}) == 1:
        return CellsTogether(domain_of(records[0]), cells_key(records[0]))
    if any(record.structural_zeros for record in records):
        return CellsTogether(None, problem="some of them leave out cells that cannot occur")
    axes: dict[str, list[Any]] = {}
    within: dict[str, str] = {}
    alike: dict[str, str] = {}
    for cells in map(domain_of, records):
        for name in cells.axes:
            key = cells_key(cells_record(cells.project(cells.closure([name]))))
            if alike.setdefault(name, key) != key:
                return CellsTogether(None, problem=f"the categories of {name!r} are not the same in all of them")
            axes.setdefault(name, list(cells.categories(name)))
        within |= cells.within
    leaves = math.prod(len(labels) for name, labels in axes.items() if name not in within.values())
    if leaves > MOST_CELLS or len(axes) > MAX_AXES:
        return CellsTogether(None, problem=f"all their axes together have more than {MOST_CELLS:,} cells")
    first = {name: place for place, name in enumerate(axes)}
    families = sorted(axes, key=lambda name: first[_root(name, within)])  # each together, parents first
    together = Domain({name: axes[name] for name in families}, within)
    return CellsTogether(together, cells_key(cells_record(together)))


def _root(name: str, within: dict[str, str]) -> str:
    while name in within:
        name = within[name]
    return name
