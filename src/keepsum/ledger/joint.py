"""The kept totals of all releases of a dataset together: what they determine, and what they leave protected.

Tables are lifted to the full cross-classification of the dataset, in which each of their cells is a sum of cells. Where
none was declared, only tables with the same cells can be put together. Tables of truncated records are sums of one
table only if they count the same records: ``count_apart`` finds the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import sparse

from keepsum.accounting.joint import JointDistances, joint_distances
from keepsum.errors import InputError, PlanError
from keepsum.lattice.determined import can_change, determined
from keepsum.lattice.matrix import frozen
from keepsum.lattice.structure import Structure
from keepsum.ledger.entries import KeptMargin, KeptRows, TableEntry
from keepsum.ledger.state import cells_key
from keepsum.privacy.distance import Norm
from keepsum.privacy.focus import Level
from keepsum.releasing.codec import cells_record, domain_of, records_of, records_record, rows_of, rows_part
from keepsum.tables.axes import quoted
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants, Margin, Part, Rows
from keepsum.tables.records import Records, changes_of

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
class Kept:
    """A table with its kept totals, as sums over the cells of a dataset.

    Attributes
    ----------
    number
        The entry that describes it; None if it is not in the ledger yet.
    cells
        The table's own cells.
    domain
        The cells of the dataset.
    place
        The table's cell of each cell of the dataset, -1 where it leaves that out.
    invariants
        The kept totals, over the cells of the dataset.
    records
        The records that it was counted from.
    """

    number: int | None
    cells: Domain
    domain: Domain
    place: npt.NDArray[np.int64]
    invariants: Invariants
    records: Records | None

    @classmethod
    def of(cls, entry: TableEntry, number: int | None, dataset: Domain | None) -> Kept:
        """The table of an entry, lifted to the cells of its dataset if these are declared.

        Raises
        ------
        InputError
            If it has an axis or a category that the dataset does not have.
        """
        cells = domain_of(entry.domain)
        parts: list[Part] = [
            Margin(cells, cells.closure(kept.axes)) if isinstance(kept, KeptMargin) else rows_of(kept.rows, cells.size)
            for kept in entry.kept
        ]
        own = Invariants(cells.size, tuple(parts), cells)
        records = records_of(entry.records)
        if dataset is None or dataset == cells:
            return cls(number, cells, cells, np.arange(cells.size), own, records)
        place = _place(cells, dataset)
        lifted = tuple(_lifted(part, cells, dataset, place) for part in parts)
        return cls(number, cells, dataset, place, Invariants(dataset.size, lifted, dataset), records)

    @property
    def shown(self) -> str:
        """Where the table is described, in words."""
        return "this release" if self.number is None else f"entry {self.number:,}"

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
    tables: Sequence[Kept], norm: Norm, levels: Sequence[Level] = (), weights: Sequence[Fraction] = ()
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


def check_joint(earlier: Sequence[Kept], new: Kept) -> None:
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


def newly_fixed(tables: Sequence[Kept]) -> list[str]:
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


def _pinned(table: Kept, cells: npt.NDArray[np.int64], new: Kept, earlier: Sequence[Kept]) -> str:
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
    """The first of some cells by name, and how many they are."""
    names = [domain.name(int(cell)) for cell in cells[:SHOWN_CELLS]]
    more = f" and {len(cells) - SHOWN_CELLS:,} more" if len(cells) > SHOWN_CELLS else ""
    return f"{quoted(names)}{more}", f"{len(cells):,} cell{'s' * (len(cells) != 1)}"


def _entries(tables: Sequence[Kept]) -> str:
    numbers = [f"{table.number:,}" for table in tables if table.number is not None]
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
                f"{quoted(dataset.axes)}. Declare the full cross-classification with domain=."
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


def _lifted(part: Part, cells: Domain, dataset: Domain, place: npt.NDArray[np.int64]) -> Part:
    """Totals of a table as totals of the dataset."""
    if isinstance(part, Margin) and (place >= 0).all():
        return Margin(dataset, dataset.closure(part.axes))
    there = np.flatnonzero(place >= 0)
    chosen = part.coefficients().tocsc()[:, place[there]].tocoo()
    rows = sparse.csr_array(
        (chosen.data, (chosen.row, there[chosen.col])), shape=(part.height, dataset.size), dtype=np.int64
    )
    kind = part.kind if isinstance(part, Rows) else "subsets"
    return Rows(frozen(rows), tuple(part.all_names()), kind)
