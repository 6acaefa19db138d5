"""The release of a table by a plan: first everything a curator must know, then the noise.

``prepare`` works out what a release keeps, guarantees and discloses, and refuses what must not be published; it spends
nothing. ``Prepared.draw`` draws the noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from platform import python_version
from typing import Any

import numpy as np

from keepsum._saying import arg, marked, the
from keepsum._text import how_many, shown_name, type_of
from keepsum.accuracy.disclosure import Bounds, bounded_cells
from keepsum.accuracy.levels import accuracy_by_level
from keepsum.accuracy.margins import Accuracy
from keepsum.errors import DataError, InputError, KeepsumError, LargeLossWarning, PlanError
from keepsum.planning.describe import describe_alternatives
from keepsum.planning.plan import CompiledPlan
from keepsum.privacy.numbers import Number, exact, three_digits_up
from keepsum.releasing.certificate import CertificateRecord
from keepsum.releasing.codec import (
    LEVEL,
    accuracy_record,
    carried_records,
    check_labels,
    domain_record,
    exposure_record,
    guarantee_record,
    invariants_file,
    kept_record,
    mechanism_record,
    records_record,
)
from keepsum.releasing.explain import exact_instead, in_the_way
from keepsum.releasing.facts import (
    SCHEMA,
    AccuracyRecord,
    CarriedRecord,
    DomainRecord,
    ExposureRecord,
    GuaranteeRecord,
    KeptRecord,
    LedgerRecord,
    TableRecord,
)
from keepsum.releasing.wording import concerns, loss_concern, per_unit
from keepsum.sampling.core.rng import Rng, checked_rng
from keepsum.sources.writing import hash_and_file
from keepsum.tables.axes import quoted
from keepsum.tables.origins import TextFile, changes_of, subject_of
from keepsum.tables.released import ReleasedTable
from keepsum.tables.table import Table

SHOWN_CELLS = 8
SMALL_DELTA = Fraction(1, 10**6)  # what sampling may add to per-person delta without being accepted
COUNT_LIMIT = 2**62  # counts below this cannot overflow by any noise that a release can draw
SOFTWARE = ("keepsum", "numpy", "scipy", "python-flint", "cryptography")


@dataclass(frozen=True, eq=False)
class Drawn:
    """A release: the table, its certificate, and the file of kept totals that are not margins, if there are any.

    ``unbiased`` is the table as it was drawn, if another was made from it; ``csv`` is the table's file, if hashing it
    made that too.
    """

    table: ReleasedTable
    certificate: CertificateRecord
    invariants: bytes | None
    unbiased: ReleasedTable | None = None
    csv: bytes | None = None


@dataclass(frozen=True, eq=False)
class Prepared:
    """A release that is ready to be drawn, and what a curator must know before it is."""

    # What is to be released, and how.
    plan: CompiledPlan
    table: Table
    accuracy: Accuracy  # the margins of error
    bounds: Bounds  # the cells that the kept totals bound more tightly than the margin of error
    # The guarantee and the exposed cells, as the certificate will state them.
    guarantee: GuaranteeRecord
    exposure: ExposureRecord
    warnings: tuple[str, ...]  # what the curator and every reader of the certificate must know

    @cached_property
    def totals(self) -> list[int]:
        """The kept totals, which will be published."""
        totals = [int(total) for total in self.plan.invariants.totals(self.table)]
        if any(abs(total) >= 2**63 for total in totals):
            raise DataError("Kept totals must fit in 64 bits, and one does not. Use smaller weights.")
        return totals

    def draw(self, rng: Rng | None = None, threads: int = 1, ledger: LedgerRecord | None = None) -> Drawn:
        """Draw the noise. This spends privacy budget, which must be charged already if there is a ledger."""
        source = checked_rng(rng)
        (noise,) = self.plan.blocks.sample(1, source, threads)
        table = self.table
        released = ReleasedTable(
            table.domain, table.counts + noise, table.count, table.origin, table.rows, table.carried
        )
        if not self.plan.invariants.holds(table, released):
            raise KeepsumError("A kept total was not kept, so nothing is released. Please report this as a bug.")
        file = invariants_file(self.plan.invariants)
        sha256, csv = hash_and_file(released)
        return Drawn(released, self._certificate(sha256, file, source.seeded, ledger), file, csv=csv)

    def _certificate(
        self, sha256: str, file: bytes | None, seeded: bool, ledger: LedgerRecord | None
    ) -> CertificateRecord:
        facts = PlannedFacts(self.plan, self.guarantee, self.exposure, accuracy_record(self.accuracy))
        record = TableRecord(
            cells=self.table.domain.size,
            count=self.table.count,
            sha256=sha256,
            attributes=dict(self.table.origin.constants) if isinstance(self.table.origin, TextFile) else {},
        )
        kept = kept_record(self.plan.invariants, file, self.totals)
        carried = carried_records(self.table)
        return facts.certificate(record, domain_record(self.table), kept, seeded, ledger, carried=carried)


@dataclass(frozen=True, eq=False)
class PlannedFacts:
    """What the certificate of a release states about its plan."""

    plan: CompiledPlan
    guarantee: GuaranteeRecord
    exposure: ExposureRecord
    accuracy: AccuracyRecord

    def certificate(
        self,
        table: TableRecord,
        domain: DomainRecord,
        kept: KeptRecord,
        seeded: bool,
        ledger: LedgerRecord | None,
        software: Sequence[str] = (),
        carried: Sequence[CarriedRecord] = (),
    ) -> CertificateRecord:
        """The certificate, with what became of the release; ``software`` are further packages that drew it."""
        from importlib.metadata import version  # slow to import, and no plan needs it

        return CertificateRecord(
            schema=SCHEMA,
            released=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            table=table,
            domain=domain,
            records=records_record(self.plan.records),
            kept=kept,
            mechanism=mechanism_record(self.plan.mechanism),
            guarantee=self.guarantee,
            exposure=self.exposure,
            accuracy=self.accuracy,
            randomness="seed" if seeded else "system",
            postprocessing=[],
            ledger=ledger,
            software={"python": python_version()} | {name: version(name) for name in (*SOFTWARE, *software)},
            signature=None,
            carried=list(carried),
        )


def prepare(
    plan: CompiledPlan,
    table: Table,
    accept_pinned: str | Iterable[Any] = (),
    seeded: bool = False,
    progress: Callable[[int, int], None] | None = None,
    accept_delta: Number | None = None,
    threads: int | None = None,
) -> Prepared:
    """Work out what a release of this table keeps, guarantees and discloses.

    Convergence that has not been measured is measured here: ``progress`` is called with the pairs done and wanted.

    Raises
    ------
    PlanError
        If pinned cells, or the delta of sampling, are not accepted, or a block has no sampler.
    """
    check_confidential(table)
    if plan.invariants.domain is None:
        plan = plan.over(table.domain)
    if plan.invariants.domain != table.domain:
        raise InputError(
            "The table must have the domain of the plan, and it has another. Declare the totals with "
            f"{the.call('table.keep')}."
        )
    plan = _with_records(plan, table)
    check_labels(table)
    # An error about counts is for the curator's eyes, and nothing is published with it.
    if table.counts.size and int(table.counts.max()) >= COUNT_LIMIT:
        raise DataError("Counts must be below 2^62 to leave room for noise, and one is not. Check the units.")
    plan = checked_plan(plan, accept_pinned, accept_delta, progress, threads)
    accuracy = accuracy_by_level(plan.blocks, LEVEL)
    bounds = bounded_cells(plan.structure, table.counts, accuracy.margins)
    guarantee = guarantee_record(plan)
    exposure = exposure_record(plan, len(bounds.cells), bounds.not_checked)
    for sentence in loss_concern(plan.guarantee, plan.records):
        warnings.warn(sentence, LargeLossWarning, stacklevel=4)
    carried = carried_records(table)
    caveats = concerns(plan.guarantee, guarantee, domain_record(table), exposure, seeded, plan.records, carried)
    return Prepared(plan, table, accuracy, bounds, guarantee, exposure, tuple(caveats))


def checked_plan(
    plan: CompiledPlan,
    accept_pinned: str | Iterable[Any] = (),
    accept_delta: Number | None = None,
    progress: Callable[[int, int], None] | None = None,
    threads: int | None = None,
) -> CompiledPlan:
    """A plan by which a table may be released, with its convergence measured.

    Raises
    ------
    PlanError
        If pinned cells, or the delta of sampling, are not accepted, or a block has no sampler.
    """
    if not isinstance(accept_pinned, Iterable):
        raise InputError(f"Accepted cells must be a list of cells, or 'all', got {type_of(accept_pinned)}.")
    _check_pinned(plan, accept_pinned)
    if plan.guarantee.sampling == "no sampler":
        plan.blocks.check(" ".join(map(marked, [*exact_instead(plan), *in_the_way(plan)])))
    if plan.guarantee.sampling == "estimated" and plan.convergence is None:
        _check_foreseen_delta(plan, accept_delta)
        plan = plan.certify(threads=threads, progress=progress)
    _check_delta(plan, accept_delta)
    return plan


def check_confidential(table: object) -> None:
    """Only a confidential table can be released."""
    if isinstance(table, ReleasedTable):
        raise InputError("The table must be confidential, got one that is already released. Release the original.")
    if not isinstance(table, Table):
        raise InputError(
            f"The table must be a keepsum Table, got {type_of(table)}. Read a file with {the.call('ks.read_table')}, "
            f"or a data frame with {the.call('ks.Table.from_frame')}."
        )


def _with_records(plan: CompiledPlan, table: Table) -> CompiledPlan:
    """The plan with the records of the table, which must have the bound that the distances assume."""
    planned, counted = changes_of(plan.records), changes_of(table.records)
    if planned != counted:
        raise InputError(
            f"The table must have at most {how_many(planned, 'record')} per unit, as the plan assumes, but "
            f"was counted with at most {counted:,}. Make the plan {arg.max_rows_per_unit(counted):with}."
        )
    if plan.neighbours is not None and subject_of(plan.records) != subject_of(table.records):
        raise InputError(
            "The plan must state the loss of what the table counts: it states that of one person, who may have any "
            f"number of records in the table. Use {the.call('ks.release')}, which states the loss of one record, or "
            f"count {arg.unit:with} and {arg.max_rows_per_unit}, {arg.max_rows_per_unit(1):with} alone if every "
            "record is of another person."
        )
    return replace(plan, records=table.records)


def _check_foreseen_delta(plan: CompiledPlan, accepted: Number | None) -> None:
    """Refuse before minutes of measuring what no measurement can make acceptable."""
    delta = replace(plan.guarantee, error=plan.smallest_error).sampling_delta(plan.person)
    if delta <= _largest_delta(accepted):
        return
    least = three_digits_up(float(delta))
    accept = arg.accept_delta(least).of("DELTA")
    measured = f"measure it by {the.call('plan.certify()')} and accept it {accept:with}" if delta < 1 else ""
    raise PlanError(
        f"Sampling adds delta {_per_person(plan)}, and the confidence limit from coupled chains will not be below "
        f"{least}; it was not measured. {_other_ways(plan, measured)}"
    )


def _check_delta(plan: CompiledPlan, accepted: Number | None) -> None:
    """What sampling adds to per-person delta must be negligible, or accepted."""
    delta = plan.guarantee.sampling_delta(plan.person)
    if delta <= _largest_delta(accepted):
        return
    amount = three_digits_up(float(delta))
    raise PlanError(
        f"Sampling adds delta {amount} {_per_person(plan)}, {_how_known(plan)}. "
        + _other_ways(plan, f"accept it {arg.accept_delta(amount):with}" if delta < 1 else "")
    )


def _largest_delta(accepted: Number | None) -> Fraction:
    largest = SMALL_DELTA if accepted is None else exact(accepted, "The accepted delta")
    if largest >= 1:
        raise InputError("The accepted delta must be below 1: a delta of 1 is no guarantee.")
    return largest


def _per_person(plan: CompiledPlan) -> str:
    return "per unit of distance" if plan.person is None else per_unit(plan.records).replace("-", " ")


def _other_ways(plan: CompiledPlan, accept: str) -> str:
    """What to do about a delta from sampling: the noise that is exact; how to accept the delta, if that is possible."""
    instead = " ".join(map(marked, exact_instead(plan))) or describe_alternatives(plan.mechanism.kind)
    otherwise = f" If that is not possible, {accept}." if accept else ""
    return f"Choose noise whose sampling is exact. {instead}{otherwise}"


def _how_known(plan: CompiledPlan) -> str:
    if plan.guarantee.sampling == "rounded":
        return "a proved bound"
    return "a confidence limit from coupled chains, not a proved bound"


def _check_pinned(plan: CompiledPlan, accepted: str | Iterable[Any]) -> None:
    """Every pinned cell must be accepted, and every accepted cell must be pinned."""
    if isinstance(accepted, str) and accepted == "all":
        return
    given = [accepted] if isinstance(accepted, (str, Mapping, int)) else list(accepted)
    if any(isinstance(cell, str) and cell == "all" for cell in given):
        return
    named: dict[str, list[int]] = {}
    for cell in plan.pinned.tolist():
        named.setdefault(plan.invariants.cell_name(cell), []).append(cell)
    pinned = set(plan.pinned.tolist())
    chosen = {_cell_number(plan, cell, named) for cell in given}
    if not chosen <= pinned:  # which one is not shown: a number may be a count that was given by mistake
        raise InputError(f"Accepted cells must be pinned, got one that is not. {the.call('plan.pinned')} lists them.")
    missing = [plan.invariants.cell_name(cell) for cell in sorted(pinned - chosen)]
    if missing:
        count = len(missing)
        more = f" and {count - SHOWN_CELLS:,} more" if count > SHOWN_CELLS else ""
        raise PlanError(
            f"The kept totals pin {how_many(count, 'cell')}, which would be published without noise: "
            f"{quoted(missing[:SHOWN_CELLS])}{more}. Keep fewer totals, or accept each by its name "
            f"{arg.accept_pinned:in} (or 'all')."
        )


def _cell_number(plan: CompiledPlan, cell: Any, named: Mapping[str, list[int]]) -> int:
    if isinstance(cell, str):
        cells = named.get(cell, [])
        if len(cells) != 1:
            how = "fits several cells; give its labels" if cells else "fits no pinned cell"
            raise InputError(f"Accepted cells must be pinned, but the name {shown_name(cell)} {how}.")
        return cells[0]
    if isinstance(cell, Mapping) and plan.invariants.domain is not None:
        return plan.invariants.domain.index(cell)
    if isinstance(cell, (int, np.integer)) and not isinstance(cell, bool) and 0 <= cell < plan.size:
        return int(cell)
    raise InputError(f"An accepted cell must be given by name, number or labels, got {type_of(cell)}.")
