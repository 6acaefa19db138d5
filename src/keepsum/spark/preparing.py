"""What a release in Spark is of, and everything that a curator must know before it is drawn: nothing is spent here."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keepsum._arguments import check_text
from keepsum._arrays import IntArray
from keepsum._text import shown_names, type_of
from keepsum.accuracy.disclosure import bounded_cells
from keepsum.accuracy.levels import accuracy_by_level
from keepsum.errors import DataError, InputError, LargeLossWarning
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.privacy.numbers import Number
from keepsum.releasing.codec import check_axes
from keepsum.releasing.records import LEVEL, accuracy_record, exposure_record, guarantee_record
from keepsum.releasing.release import PlannedFacts, checked_plan
from keepsum.releasing.statements import loss_concern
from keepsum.sources.records.declaring import declare_cells
from keepsum.spark import encoding
from keepsum.spark.layout import Layout
from keepsum.spark.sums import check_distributable
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants
from keepsum.tables.records import Records

LARGEST = 2**63  # that a kept total stays below
MOST_CELLS = 2**50  # of a table that no machine lists
RELEASED = "count"  # the column of counts, where records are counted


@dataclass(frozen=True, eq=False)
class Declared:
    """What is released: the cells, the column of counts if there is one, and the records that are counted if not."""

    domain: Domain
    count: str | None
    records: Records | None

    @classmethod
    def of(
        cls,
        axes: str | Sequence[str],
        count: str | None,
        domain: Domain | Mapping[str, Any],
        within: Mapping[str, str] | None,
        max_rows_per_unit: int | None,
    ) -> Declared:
        """What a user declares, checked; nothing is read."""
        if count is not None:
            check_text(count, "The name of the count column")
            if max_rows_per_unit is not None:
                raise InputError("max_rows_per_unit= must be given for records, got it with count=. Leave one out.")
        _check_declared(axes, domain)
        cells = declare_cells(axes, domain, within=within, max_rows_per_unit=max_rows_per_unit, most_cells=MOST_CELLS)
        own = [axis.lower() for axis in cells.domain.axes] if count is None else cells.domain.axes  # Spark ignores case
        if (count or RELEASED) in own:
            raise InputError(f"The count column must not be an axis, got {count or RELEASED!r}. Rename the axis.")
        check_axes(cells.domain)
        return cls(cells.domain, count, cells.records if count is None else None)

    @property
    def released(self) -> str:
        """The name of the column of counts in the released table."""
        return self.count or RELEASED

    def plan(self, keep: Invariants | Iterable[str | Iterable[str]], mechanism: Request | Mechanism) -> CompiledPlan:
        """The plan, in groups of cells."""
        if not isinstance(keep, (Invariants, Iterable)) or isinstance(keep, (bytes, Mapping)):
            raise InputError(f"Totals to keep must be Invariants or a list of margins, got {type_of(keep)}.")
        if isinstance(keep, Invariants):
            kept = keep.over(self.domain)
        else:
            margins = [[margin] if isinstance(margin, str) else margin for margin in _listed(keep)]
            kept = Invariants.margins(self.domain, margins)
        return compile_plan(kept, mechanism, records=self.records, in_groups=True)


def _check_declared(axes: object, domain: object) -> None:
    """Every axis must be declared; whatever else may be wrong with the two is found later."""
    if not isinstance(domain, Mapping) or not isinstance(axes, (str, Sequence)):
        return
    names = [axes] if isinstance(axes, str) else axes
    missing = [name for name in names if isinstance(name, str) and name not in domain]
    if missing:
        raise InputError(
            f"Every axis must have its categories in domain=, got none for {shown_names(missing)}. Check the "
            f"spelling, or declare them."
        )


def _listed(keep: Iterable[str | Iterable[str]]) -> Iterable[str | Iterable[str]]:
    return [keep] if isinstance(keep, str) else keep


def ready_plan(plan: CompiledPlan, accept_pinned: str | Iterable[Any], accept_delta: Number | None) -> CompiledPlan:
    """A plan that can be drawn in Spark, and by which a table may be released."""
    check_distributable(plan)
    return checked_plan(plan, accept_pinned, accept_delta)


def facts_of(plan: CompiledPlan, sums: IntArray) -> PlannedFacts:
    """What the certificate states about a plan, given the sums of all groups."""
    accuracy = accuracy_by_level(plan.blocks, LEVEL)
    bounds = bounded_cells(plan.structure, sums, accuracy.margins)
    exposure = exposure_record(plan, plan.structure.number_of(bounds.cells), bounds.not_checked)
    for sentence in loss_concern(plan.guarantee, plan.records):
        warnings.warn(sentence, LargeLossWarning, stacklevel=4)
    return PlannedFacts(plan, guarantee_record(plan), exposure, accuracy_record(accuracy))


def totals_of(plan: CompiledPlan, sums: IntArray) -> list[int]:
    """The kept totals, from the sums of all groups."""
    if plan.quotient is None:
        raise AssertionError("plans of Spark are in groups")
    totals = [int(total) for total in plan.quotient.totals.totals(sums)]
    if any(total >= LARGEST for total in totals):
        raise DataError("Kept totals must fit in 64 bits, and one does not. Check the units.")
    return totals


def group_sums(summary: Any, layout: Layout, declared: Declared) -> IntArray:
    """The sums of all groups, from what workers found; refuses a table that is not as declared."""
    group, total = summary.column("group").to_numpy(), summary.column("total").to_numpy()
    wrong = sorted(set(total[group == encoding.PROBLEM].tolist()))
    if wrong:
        raise DataError(_problem(wrong[0], declared))
    sums = np.zeros(len(layout.ends), dtype=np.int64)
    np.add.at(sums, group, total)
    if float(np.bincount(group, weights=total.astype(np.float64)).sum() if len(group) else 0) >= encoding.COUNT_LIMIT:
        raise DataError(_problem(encoding.TOO_LARGE, declared))
    return sums


def _problem(code: int, declared: Declared) -> str:
    """What is wrong with the table, without anything of what it holds."""
    number, kind = divmod(code, encoding.KINDS)
    axis = declared.domain.axis(declared.domain.axes[number])
    if kind == encoding.MISSING:
        return (
            f"Values of column {axis.name!r} must not be missing (null or empty), but some are. Give them a category "
            f"that is declared, or leave those rows out."
        )
    if kind == encoding.UNDECLARED:
        within = "" if axis.parent is None else f" within its {axis.parent.name!r}"
        return (
            f"Values of column {axis.name!r} must be declared categories{within}, but some are not. Which ones is not "
            f"said, because values are confidential. Declare them with domain=, or leave those rows out."
        )
    if kind == encoding.TWICE:
        return (
            "Each cell must have one row, but some have several. Add them up first, or add the axis that distinguishes "
            "them; for one row per record pass count=None."
        )
    what = {
        encoding.NO_COUNT: "some are missing",
        encoding.NEGATIVE: "some are negative; counts start at 0",
        encoding.FRACTION: "some have decimals",
        encoding.TOO_LARGE: "some, or their sum, do not fit 62 bits",
    }[kind]
    return f"Counts in column {declared.released!r} must be whole numbers, but {what}."
