"""What all releases of a dataset lose together at a change of one person, under the kept totals of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from keepsum._saying import arg, the
from keepsum._text import how_many
from keepsum.accounting.composition import root_of_squares
from keepsum.accounting.joint import JointDistances, joint_distances
from keepsum.accounting.total import Approximate, Total
from keepsum.errors import BudgetError, InputError, PlanError
from keepsum.lattice.determined import can_change, determined
from keepsum.lattice.matrix import frozen
from keepsum.lattice.structure import Structure
from keepsum.ledger.entries import UNIT, CostRecord, KeptMargin, KeptRows, TableEntry, encoded
from keepsum.ledger.state import Dataset, Shared, cells_key
from keepsum.planning.distances import AttributeDistance
from keepsum.privacy.distance import Distance, Norm, farthest
from keepsum.privacy.focus import MOST_LEVELS, Level, Subsets
from keepsum.releasing.codec import cells_record, domain_of, records_of, records_record, rows_of, rows_part
from keepsum.tables.axes import quoted
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import DeclaredTotals, Invariants, Margin, Rows
from keepsum.tables.origins import Records, changes_of, subject_of

# The kept totals of all releases of a dataset together: what they determine, and what they leave protected.
#
# Tables are lifted to the full cross-classification of the dataset, in which each of their cells is a sum of cells.
# Where none was declared, it is that of all axes, if somebody says that all tables count the same people. Tables of
# truncated records are sums of one table only if they count the same records: ``count_apart`` finds the others.

SHOWN_CELLS = 5


def table_entry(dataset: str, invariants: Invariants, records: Records | None) -> TableEntry:
    """A table and its kept totals, without their values."""
    if invariants.domain is None:
        raise InputError("A table must have names for its cells to be charged to a ledger.")
    kept: list[KeptMargin | KeptRows] = []
    for part in invariants.parts:
        if isinstance(part, Margin):
            kept.append(KeptMargin(axes=list(part.axes)))
        elif isinstance(part, Rows):
            kept.append(KeptRows(rows=rows_part(part)))
    domain = cells_record(invariants.domain)
    return TableEntry(dataset=dataset, domain=domain, kept=kept, records=records_record(records))


@dataclass(frozen=True, eq=False)
class KeptTable:
    """A table with its kept totals, as sums over the cells of a dataset."""

    number: int | None  # the entry that describes it; None if it is not in the ledger yet
    cells: Domain  # the table's own cells
    domain: Domain  # the cells of the dataset
    place: npt.NDArray[np.int64]  # the table's cell of each cell of the dataset, -1 where it leaves that out
    invariants: Invariants  # the kept totals, over the cells of the dataset
    records: Records | None  # the records that it was counted from

    @classmethod
    def of(cls, entry: TableEntry, number: int | None, dataset: Domain | None) -> KeptTable:
        """The table of an entry, lifted to the cells of its dataset if these are declared.

        Raises
        ------
        InputError
            If it has an axis or a category that the dataset does not have.
        """
        cells = domain_of(entry.domain)
        parts: list[DeclaredTotals] = [
            Margin(cells, cells.closure(kept.axes)) if isinstance(kept, KeptMargin) else rows_of(kept.rows, cells.size)
            for kept in entry.kept
        ]
        own = Invariants(cells.size, tuple(parts), cells)
        records = records_of(entry.records)
        if dataset is None or dataset == cells:
            return cls(number, cells, cells, np.arange(cells.size), own, records)
        place = _place(cells, dataset)
        lifted = tuple(_lifted_part(part, cells, dataset, place) for part in parts)
        return cls(number, cells, dataset, place, Invariants(dataset.size, lifted, dataset), records)

    @property
    def shown(self) -> str:
        """Where the table is described, in words."""
        if self.number is None:
            return "this release"
        return f"entry {self.number:,}" if self.number > 0 else "a release before it"

    @cached_property
    def sums(self) -> sparse.csr_array:
        """The table's cells as sums of cells of the dataset, one row each."""
        there = np.flatnonzero(self.place >= 0)
        ones = np.ones(len(there), dtype=np.int64)
        return sparse.csr_array((ones, (self.place[there], there)), shape=(self.cells.size, self.domain.size))

    def fixed(self, structure: Structure) -> npt.NDArray[np.bool_]:
        """For each of the table's cells, whether these totals determine it."""
        if self.cells == self.domain:
            fixed = np.zeros(self.cells.size, dtype=bool)
            fixed[structure.pinned] = True
            return fixed
        return determined(structure, self.sums)


def together(
    tables: Sequence[KeptTable], norm: Norm, levels: Sequence[Level] = (), weights: Sequence[Fraction] = ()
) -> JointDistances:
    """The kept totals of several tables, and one person's distances under all of them; see ``joint_distances``."""
    most = max((table.records for table in tables if table.records is not None), key=lambda r: r.changes, default=None)
    invariants = [table.invariants for table in tables]
    return joint_distances(invariants, tables[0].domain, norm, most, levels, weights)


def count_apart(tables: Sequence[TableEntry], dataset: Domain | None) -> bool:
    """Whether tables count different records of a person, so that no distance of one person is known for all.

    Two cases are proved in ``docs/accounting.md``: tables that are sums of one table of counted records, and tables of
    all records, whichever of them they count, that keep no totals but their grand totals.
    """
    by_axes = sorted(tables, key=lambda table: len(table.domain.axes))
    if all(is_one_table(few, many) for few, many in pairwise(by_axes)):
        return False
    base = dataset or domain_of(tables[0].domain)
    return not all(_keeps_grand_total_only(table) and _has_margin(base, domain_of(table.domain)) for table in tables)


def is_one_table(few: TableEntry, many: TableEntry) -> bool:
    """Whether a table is a sum of one with as many or more axes, in the records that are counted.

    Of a unit the first records in the order of the axes are counted. The first in the order of many axes are the first
    in the order of the leading ones too, with ties settled by the others, which do not change what is counted.
    """
    records = [records_of(table.records) for table in (few, many)]
    truncated = [each is not None and each.truncated for each in records]
    if not any(truncated):
        return True
    units = {each.unit for each in records if each is not None and each.unit is not None}
    if not all(truncated) or len(units) > 1 or changes_of(records[0]) != changes_of(records[1]):
        return False
    less, more = domain_of(few.domain), domain_of(many.domain)
    return less.axes == more.axes[: len(less.axes)] and _has_margin(more, less)


def _has_margin(domain: Domain, cells: Domain) -> bool:
    """Whether these are the cells of a margin of the domain, with all categories: no record was left out for them."""
    if not set(cells.axes) <= set(domain.axes):
        return False
    return cells_key(cells_record(domain.project(cells.axes))) == cells_key(cells_record(cells))


def _keeps_grand_total_only(table: TableEntry) -> bool:
    return all(isinstance(part, KeptMargin) and not part.axes for part in table.kept)


def check_joint(earlier: Sequence[KeptTable], new: KeptTable) -> None:
    """Refuse totals that, with those of earlier releases, determine more than either does, or leave nothing protected.

    Raises
    ------
    PlanError
        With the cells that would be determined, or the attribute that would no longer be protected.
    """
    if not earlier:
        return
    alone, before = together([new], "l1"), together(earlier, "l1")
    after = together([*earlier, new], "l1")
    for table in [*earlier, new]:
        known = table.fixed((alone if table is new else before).structure)
        if any(other.cells == table.cells for other in ([new] if table is not new else earlier)):
            # Pinned cells of the same table, which the curator has accepted.
            known |= table.fixed((before if table is new else alone).structure)
        cells = np.flatnonzero(table.fixed(after.structure) & ~known)
        if len(cells):
            raise PlanError(_pinned(table, cells, new, earlier))
    known_cells = np.union1d(alone.structure.pinned, before.structure.pinned)
    cells = np.setdiff1d(after.structure.pinned, known_cells)  # which may be in no table by themselves
    if len(cells):
        names, count = _named(new.domain, cells)
        raise PlanError(
            f"The totals kept by {_entries(earlier)} and by this release together determine {count} of the dataset "
            f"exactly: {names}. Keep fewer totals."
        )
    for axis in new.domain.axes:
        values = new.domain.codes(axis)
        protected = any(can_change(distances.structure, values) for distances in (alone, before))
        if protected and not can_change(after.structure, values):
            raise PlanError(
                f"Together with the totals kept by {_entries(earlier)}, the totals of this release allow no change of "
                f"{axis!r} any more, so that nothing would protect it. Keep fewer totals."
            )


def newly_fixed_in(dataset: Dataset) -> list[str]:
    """Cells of a dataset that the kept totals of all releases determine, where they may: others were refused."""
    later = dataset.was_declared_later
    if not (dataset.has_imports or later) and dataset.is_one_table():
        return []
    base = dataset.cells.domain if len(dataset.tables) > (0 if later else 1) else None
    if base is None:
        return []
    try:
        return newly_fixed([KeptTable.of(table, number, base) for number, table in dataset.tables.items()])
    except PlanError as error:
        return [f"{error.problem} Nothing that was released protects anybody then."]


def newly_fixed(tables: Sequence[KeptTable]) -> list[str]:
    """Which cells the kept totals of all tables determine, though those of their own table do not, in sentences."""
    after = together(tables, "l1")
    sentences = []
    for table in tables:
        own = together([other for other in tables if other.cells == table.cells], "l1")
        cells = np.flatnonzero(table.fixed(after.structure) & ~table.fixed(own.structure))
        if len(cells):
            names, count = _named(table.cells, cells)
            sentences.append(
                f"The kept totals of all releases together determine {count} of the table of {table.shown}, whatever "
                f"noise was drawn: {names}."
            )
    return sentences


def _pinned(table: KeptTable, cells: npt.NDArray[np.int64], new: KeptTable, earlier: Sequence[KeptTable]) -> str:
    names, count = _named(table.cells, cells)
    if table is new:
        return (
            f"The totals kept by {_entries(earlier)} and by this release together determine {count} of this table "
            f"exactly, whatever noise is drawn: {names}. Keep fewer totals."
        )
    return (
        f"The totals kept by this release and by {_entries(earlier)} together determine {count} of the table of "
        f"{table.shown}, which was released with noise: {names}. Keep fewer totals."
    )


def _named(domain: Domain, cells: npt.NDArray[np.int64]) -> tuple[str, str]:
    names = [domain.name(int(cell)) for cell in cells[:SHOWN_CELLS]]
    more = f" and {len(cells) - SHOWN_CELLS:,} more" if len(cells) > SHOWN_CELLS else ""
    return f"{quoted(names)}{more}", how_many(len(cells), "cell")


def _entries(tables: Sequence[KeptTable]) -> str:
    numbers = [f"{table.number:,}" for table in tables if table.number is not None and table.number > 0]
    if len(numbers) < len(tables):  # some are only planned
        return "the releases before it"
    few = numbers[:SHOWN_CELLS] + (["others"] if len(numbers) > SHOWN_CELLS else [])
    if len(few) == 1:
        return f"the table of entry {few[0]}"
    return f"the tables of entries {', '.join(few[:-1])} and {few[-1]}"


def _place(cells: Domain, dataset: Domain) -> npt.NDArray[np.int64]:
    """The table's cell of each cell of the dataset, -1 where there is none."""
    codes: dict[str, npt.NDArray[np.int64]] = {}
    for name in cells.axes:
        if name not in dataset.axes:
            raise InputError(
                f"Axes of the table must be among those declared for the dataset, and {name!r} is not one of "
                f"{quoted(dataset.axes)}. Declare the full cross-classification ({the.call('ledger.set_domain')})."
            )
        mine = {category: code for code, category in enumerate(cells.categories(name))}
        theirs = dataset.categories(name)
        if not set(mine) <= set(theirs):
            raise InputError(
                f"Categories of {name!r} must be among those declared for the dataset, nested alike, and some are not. "
                f"Declare finer and coarser ones as nested axes."
            )
        translated = np.array([mine.get(category, -1) for category in theirs], dtype=np.int64)
        codes[name] = translated[dataset.codes(name)]
    out = np.logical_or.reduce([code < 0 for code in codes.values()])
    place = cells.locate({name: np.maximum(code, 0) for name, code in codes.items()})
    return np.where(out, -1, place)


def _lifted_part(part: DeclaredTotals, cells: Domain, dataset: Domain, place: npt.NDArray[np.int64]) -> DeclaredTotals:
    if isinstance(part, Margin) and (place >= 0).all():
        return Margin(dataset, dataset.closure(part.axes))
    there = np.flatnonzero(place >= 0)
    chosen = part.coefficients().tocsc()[:, place[there]].tocoo()
    rows = sparse.csr_array(
        (chosen.data, (chosen.row, there[chosen.col])), shape=(part.height, dataset.size), dtype=np.int64
    )
    kind = part.kind if isinstance(part, Rows) else "subsets"
    return Rows(frozen(rows), tuple(part.all_names()), kind)


# Losses per unit of distance add up, and count at the largest distance. Where noise has a focus, that is more than
# one person loses: a change counts in cells and in the totals of each focus by what it does to these. The loss of
# Laplace noise is then a norm, and that of all releases the norm with all weights added up; docs/accounting.md has
# the proofs.

NO_CELLS = (
    "A budget per person must be for tables whose cells can be put together, and these cannot: {}. Say so, or declare "
    f"the full cross-classification ({the.call('ledger.set_domain')}), or use a budget per unit of distance, "
    f"{arg.per_unit:with}."
)
COUNTED_ALIKE = "with the same unit and bound, and by the first of the same columns in the same order"
PERSON_APART = (
    "A budget per person must be for tables that count the same records of a person, and those of this dataset count "
    f"different ones. Count every table {COUNTED_ALIKE}, keep no totals but grand totals, or use a budget per unit of "
    f"distance, {arg.per_unit:with}."
)
PERSON_NOT_KNOWN = (
    "A budget per person must be for totals under which one person's distance is known, and under the kept totals of "
    "all releases of this dataset together it is not. Keep fewer totals, or use a budget per unit of distance, "
    f"{arg.per_unit:with}."
)
Key: TypeAlias = object  # which totals a share is of; CELLS for cells
CELLS: Key = None
Weights: TypeAlias = dict[Key, Fraction]


@dataclass(frozen=True)
class CountedReleases:
    """All releases as they count in a budget."""

    # What they cost, and at which distance that counts; at distance 1 if it was worked out for one person's change.
    total: Total | None
    at: Distance
    distance: Distance  # that of the change, or 1
    # Why shares of a focus count at the largest distance all the same, as the end of a sentence, if they do.
    coarse: str | None = None


@dataclass(frozen=True)
class ByAttribute:
    """A change of one attribute, with the releases as they count at it."""

    attribute: AttributeDistance
    counted: CountedReleases


class CoarseError(Exception):
    """Shares of a focus cannot be counted apart; says why, as the end of a sentence."""


def counted(dataset: Dataset) -> CountedReleases:
    """All releases as they count in the budget: per unit of distance, or for one person.

    Totals that make the longest changes impossible must not give a budget back: the largest loss over all stages
    counts. It is between datasets; in a table with fewer cells it is no larger in l1, but it may be in l2.
    """
    total = dataset.total()
    if total is None or not dataset.budget.per_person:
        return CountedReleases(total, UNIT, UNIT)
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


def _for_one_person(dataset: Dataset, total: Total) -> CountedReleases:
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
    plain = CountedReleases(total, distance, distance)
    if not dataset.shared:
        return plain
    try:
        shares = Shares.of(dataset, tables)

        def at(weights: Weights) -> Found:
            return max((_focused(dataset, shares, weights, stage) for stage in stages), key=lambda found: found.loss)

        return shares.counted(plain, at)
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
    norm: Norm = total.norm if _whole(dataset, tables) else "l1"
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
    base = dataset.cells.domain
    if base is None:
        raise BudgetError(NO_CELLS.format(dataset.cells.problem))
    units = {table.records.unit for table in tables if table.records is not None and table.records.unit is not None}
    if len(units) > 1:
        raise BudgetError(
            "A budget per person must be for records of the same unit, and records of this dataset were bounded by "
            f"different columns. Use the same column, or a budget per unit of distance, {arg.per_unit:with}."
        )
    kept = [KeptTable.of(table, None, base) for table in tables]
    if any(subject_of(one.records) == "record" for one in kept):
        raise BudgetError(
            "A budget per person must be for records that are bounded per person, and a person may have any number of "
            f"the records of this dataset. Count {arg.unit:with} and {arg.max_rows_per_unit}, "
            f"{arg.max_rows_per_unit(1):with} alone if every record is of another person, or use a budget per unit of "
            f"distance, {arg.per_unit:with}."
        )
    if apart(dataset, tables):
        raise BudgetError(PERSON_APART)
    return together(kept, norm, levels, weights)


def apart(dataset: Dataset, tables: Sequence[TableEntry]) -> bool:
    """Whether tables count different records, so that no distance of one person is known for all of them."""
    return len(tables) > 1 and count_apart(tables, dataset.cells.domain)


def _base(dataset: Dataset, tables: Sequence[TableEntry]) -> Domain:
    return dataset.cells.domain or domain_of(tables[0].domain)


def _whole(dataset: Dataset, tables: Sequence[TableEntry]) -> bool:
    """Whether all tables have the cells of the dataset."""
    return all(cells_key(table.domain) == dataset.cells.key for table in tables)


def _person(dataset: Dataset, norm: Norm, tables: Sequence[TableEntry]) -> Distance:
    """The distance of one person under the kept totals of these tables; what was found is remembered."""
    key = (norm, dataset.cells.key, *map(encoded, tables))
    if key not in dataset.distances:
        distance = joint(dataset, norm, tables).person()
        if distance is None:
            raise BudgetError(PERSON_NOT_KNOWN)
        dataset.distances[key] = distance
    return dataset.distances[key]


# -- shares of a focus ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """The largest weighed length of one person's change, and that change."""

    loss: Fraction
    distance: Distance


@dataclass(frozen=True)
class Shares:
    """What the releases of a dataset lose by cells and by the totals of each focus."""

    norm: Norm  # l1 if all noise is Laplace, l2 if all is Gaussian
    levels: dict[Key, Level]  # the totals by their keys, over the cells of the dataset
    # For each kind of release, what each unit loses, and how many such releases there are.
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

    def counted(self, plain: CountedReleases, at: Callable[[Weights], Found]) -> CountedReleases:
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
            return CountedReleases(
                replace(total, rho=loss, zcdp=loss, approximate=Approximate(rho=loss)), UNIT, found.distance
            )
        weights, factor = self.squared
        squares = factor * at(weights).loss ** 2 / 2
        epsilon, zcdp = min(loss, total.epsilon * length), min(squares, total.zcdp * length**2)
        here = replace(total, epsilon=epsilon, zcdp=zcdp, approximate=Approximate(epsilon))
        return CountedReleases(here, UNIT, found.distance)


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
    kept = KeptTable.of(table, None, base)
    if (kept.place < 0).any():
        return {CELLS: cost.loss}
    weights: Weights = {CELLS: cost.loss - sum(cost.levels)}
    for level, weight in zip(shared.levels, cost.levels, strict=True):
        lifted, key = _lifted(level, kept, base)
        levels.setdefault(key, lifted)
        weights[key] = weights.get(key, Fraction(0)) + weight
    return weights


def _lifted(level: Level, kept: KeptTable, base: Domain) -> tuple[Level, Key]:
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
    key = (shares.norm, dataset.cells.key, tuple(levels), tuple(scaled), *map(encoded, tables))
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
        return ByAttribute(attribute, CountedReleases(total, UNIT, UNIT))
    plain = CountedReleases(total, attribute.any_value, attribute.any_value)
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
