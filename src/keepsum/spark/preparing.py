"""What a release in Spark is of, and everything that a curator must know before it is drawn: nothing is spent here."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keepsum._arguments import check_text
from keepsum._arrays import IntArray
from keepsum._memory import check_room
from keepsum._saying import arg, the
from keepsum._text import shown_names, type_of
from keepsum.accuracy.disclosure import bounded_cells
from keepsum.accuracy.levels import accuracy_by_level
from keepsum.errors import DataError, InputError, LargeLossWarning, PlanError
from keepsum.lattice.structure import FREE
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.planning.quotient import Quotient
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.privacy.numbers import Number
from keepsum.releasing.codec import LEVEL, accuracy_record, check_axes, exposure_record, guarantee_record
from keepsum.releasing.release import PlannedFacts, checked_plan
from keepsum.releasing.wording import loss_concern
from keepsum.sampling.core.rng import Rng
from keepsum.sampling.l1.forced_sums import split_sums
from keepsum.sources.records.declaring import declare_cells
from keepsum.spark import workers
from keepsum.spark.layout import TASK_CELLS, Layout
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants
from keepsum.tables.origins import Records

# On the driver: the sums of pieces that the kept totals leave open, and what is refused because they do.
#
# A group whose sum the totals force has the sum 0; groups in overlapping totals get theirs from the sampler of their
# block, as on one machine.

BLOCK_CELLS = 10**8  # in overlapping totals, whose noise the driver draws to know the sums
BYTES_A_CELL = 48  # that drawing them takes


def check_distributable(plan: CompiledPlan) -> Quotient:
    """The groups of a plan, if its noise can be drawn task by task.

    Raises
    ------
    PlanError
        With what stands in the way, and what to do instead.
    """
    structure, quotient, kind = plan.structure, plan.quotient, plan.mechanism.kind
    if quotient is None:
        raise AssertionError("plans of Spark are in groups")
    if kind == "laplace-l2":
        raise PlanError(
            "Noise in Spark must be l1 Laplace or Gaussian noise: l2 Laplace noise shares one scale between all "
            f"cells, so that no part of it can be drawn alone. Choose {arg.norm('l1')} or Gaussian noise, or release "
            "on one machine."
        )
    inside = sum(int(structure.sizes[block.regions].sum()) for block in structure.blocks)
    if inside > BLOCK_CELLS:
        raise PlanError(
            f"Kept totals that overlap must concern at most {BLOCK_CELLS:,} cells in Spark, because the driver draws "
            f"their sums, and these concern {inside:,}. Keep totals that are nested or disjoint."
        )
    check_room(inside, f"Overlapping totals of {inside:,} cells, which the driver draws,", BYTES_A_CELL)
    largest = int(structure.sizes.max())
    if kind == "gaussian" and largest > TASK_CELLS and not is_free(plan):
        raise PlanError(
            f"Under Gaussian noise a kept total must have at most {TASK_CELLS:,} cells of its own in Spark, and one "
            f"has {largest:,}: no exact way is known to divide it between tasks. Choose Laplace noise, or keep totals "
            f"inside it."
        )
    return quotient


def is_free(plan: CompiledPlan) -> bool:
    """Whether all cells are under no total, and no focus."""
    return bool((plan.blocks.noise_structure.part == FREE).all())


def draw_sums(plan: CompiledPlan, layout: Layout, rng: Rng) -> IntArray | None:
    """The sum of the noise of each piece; None if all are 0."""
    divided = len(layout.pieces) - 1 > len(layout.ends)
    if is_free(plan) or not (plan.structure.blocks or plan.blocks.nested or divided):
        return None
    sums = np.zeros(len(layout.ends), dtype=np.int64)
    for group, choice in zip(plan.groups, plan.samplers, strict=True):
        if choice.sampler is None or group.in_closed_form:
            continue
        noise = np.empty((1, choice.sampler.width), dtype=np.int64)
        choice.sampler.draw_into(noise, rng)
        if group.members:
            np.add.at(sums, choice.cells, noise[0])
        else:
            sums[choice.cells] = _of_groups(plan, choice.cells, noise[0], rng)
    # The sums of groups, those of large ones divided between their pieces
    epsilon = 1 / plan.mechanism.scale
    group_of = layout.group(layout.pieces[:-1])
    of_pieces, sizes = sums[group_of], np.diff(layout.pieces)
    for number in np.flatnonzero(np.bincount(group_of) > 1).tolist():
        first, last = np.searchsorted(group_of, [number, number + 1])
        of_pieces[first:last] = split_sums(epsilon, sizes[first:last], int(sums[number]), rng)
    return of_pieces


def _of_groups(plan: CompiledPlan, groups: IntArray, drawn: IntArray, rng: Rng) -> IntArray:
    """The sums of groups in nested totals, from those of the cells that stand in a total and in no smaller one."""
    nested, weight = plan.blocks.nested, plan.structure.weight
    if nested is None or weight is None:
        raise AssertionError("these groups are in nested totals")
    _, place = np.unique(nested.home[groups], return_inverse=True)
    sums = drawn[place]
    for number in np.flatnonzero(np.bincount(place) > 1).tolist():
        several = np.flatnonzero(place == number)
        sums[several] = split_sums(1 / plan.mechanism.scale, weight[groups[several]], int(drawn[number]), rng)
    return sums


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
                raise InputError(
                    f"{arg.max_rows_per_unit} must be given for records, got it {arg.count:with}. Leave one out."
                )
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
            f"Every axis must have its categories {arg.domain:in}, got none for {shown_names(missing)}. Check the "
            "spelling, or declare them."
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
    wrong = sorted(set(total[group == workers.PROBLEM].tolist()))
    if wrong:
        raise DataError(_problem(wrong[0], declared))
    sums = np.zeros(len(layout.ends), dtype=np.int64)
    np.add.at(sums, group, total)
    if float(np.bincount(group, weights=total.astype(np.float64)).sum() if len(group) else 0) >= workers.COUNT_LIMIT:
        raise DataError(_problem(workers.TOO_LARGE, declared))
    return sums


def _problem(code: int, declared: Declared) -> str:
    """What is wrong with the table, without anything of what it holds."""
    number, kind = divmod(code, workers.KINDS)
    axis = declared.domain.axis(declared.domain.axes[number])
    if kind == workers.MISSING:
        return (
            f"Values of column {axis.name!r} must not be missing (null or empty), but some are. Give them a category "
            f"that is declared, or leave those rows out."
        )
    if kind == workers.UNDECLARED:
        within = "" if axis.parent is None else f" within its {axis.parent.name!r}"
        return (
            f"Values of column {the.column(axis.name)} must be declared categories{within}, but some are not. Which "
            f"ones is not said, because values are confidential. Declare them {arg.domain:with}, or leave those rows "
            "out."
        )
    if kind == workers.TWICE:
        return (
            "Each cell must have one row, but some have several. Add them up first, or add the axis that "
            f"distinguishes them; for one row per record {arg.count:pass}None."
        )
    what = {
        workers.NO_COUNT: "some are missing",
        workers.NEGATIVE: "some are negative; counts start at 0",
        workers.FRACTION: "some have decimals",
        workers.TOO_LARGE: "some, or their sum, do not fit 62 bits",
    }[kind]
    return f"Counts in column {declared.released!r} must be whole numbers, but {what}."
