"""Domain, kept totals and mechanism as facts of a certificate, and back again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from scipy import sparse

from keepsum._memory import BYTES_A_CELL, check_room
from keepsum._text import type_of
from keepsum.errors import DataError, InputError
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.privacy import mechanism_of
from keepsum.privacy.distance import Norm
from keepsum.privacy.focus import Level, Subsets
from keepsum.privacy.mechanism import Calibrated, Mechanism, MechanismFacts
from keepsum.privacy.neighbours import Neighbours
from keepsum.privacy.numbers import exact
from keepsum.releasing.canonical import LARGEST_INTEGER
from keepsum.releasing.facts import (
    EARLIER,
    AxisRecord,
    CarriedRecord,
    DomainRecord,
    InvariantsFile,
    KeptRecord,
    MarginRecord,
    MarginTotal,
    NamedTotal,
    PartRecord,
    RecordsRecord,
    ReleaseFacts,
    RowsPart,
    SubsetsRecord,
    WeightedRecord,
)
from keepsum.releasing.guarantee_facts import CalibratedRecord, FocusedSubsets, FocusRecord, MechanismRecord
from keepsum.releasing.record_types import WholeNumber
from keepsum.releasing.records import convergence_of
from keepsum.tables.axes import make_axes
from keepsum.tables.carried import Carried
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants, Margin, Part, Rows
from keepsum.tables.labels import in_natural_order
from keepsum.tables.records import Records
from keepsum.tables.table import Table

BYTES_AN_ENTRY = 24  # of the matrix of totals, while a plan is compiled


def plan_of(facts: ReleaseFacts, invariants: bytes | None) -> CompiledPlan:
    """The plan of a release, from its facts and the file of invariants where there is one.

    The observed convergence is kept if this version would draw the same blocks by chains.
    """
    made = planned_again(facts, kept_invariants(facts, invariants))
    observed = convergence_of(facts.guarantee)
    if observed is not None and len(observed.groups) == len(made.groups):
        pairs = zip(observed.groups, made.samplers, strict=True)
        if all((group is None) == (choice.chain is None) for group, choice in pairs):
            return made.with_convergence(observed)
    return made


def planned_again(facts: ReleaseFacts, kept: Invariants) -> CompiledPlan:
    """The plan of a release, given its kept totals."""
    asked = facts.guarantee.person.asked
    neighbours = None if asked is None else Neighbours.of(asked.attributes, asked.to)
    records, by_lattice = records_of(facts.records), facts.schema == EARLIER
    plan = compile_plan(kept, stated_mechanism(facts.mechanism), records=records, by_lattice=by_lattice)
    return replace(plan, neighbours=neighbours)


# -- the records ------------------------------------------------------------------------------------


def records_record(records: Records | None) -> RecordsRecord | None:
    """The records behind a table."""
    return None if records is None else RecordsRecord(unit=records.unit, max_rows_per_unit=records.max_rows)


def records_of(record: RecordsRecord | None) -> Records | None:
    """The records behind a table, from their record."""
    return None if record is None else Records(record.unit, record.max_rows_per_unit)


# -- the domain -------------------------------------------------------------------------------------


def check_labels(table: Table) -> None:
    """Refuse labels that a certificate cannot hold."""
    check_axes(table.domain)
    _check_integers((f"Values of column {column.name!r}", column.values) for column in table.carried)


def check_axes(domain: Domain) -> None:
    """Refuse labels of axes that a certificate cannot hold."""
    _check_integers((f"Labels of axis {name!r}", domain.axis(name).labels) for name in domain.axes)


def _check_integers(columns: Iterable[tuple[str, Sequence[Any]]]) -> None:
    for what, labels in columns:
        if any(isinstance(label, int) and abs(label) > LARGEST_INTEGER for label in labels):
            raise DataError(
                f"{what} must be integers up to 2^53 - 1, because not every JSON parser can tell larger ones apart. "
                f"Convert the column to text."
            )


def domain_record(table: Table) -> DomainRecord:
    """The domain of a confidential table, and what of it comes from the data."""
    return cells_record(table.domain, table.undeclared, table.rows is not None)


def cells_record(domain: Domain, taken: Sequence[str] = (), keeps_file_order: bool = False) -> DomainRecord:
    """The record of a domain."""
    axes = [
        AxisRecord(
            name=axis.name,
            labels=list(axis.labels),
            parent=None if axis.parent is None else axis.parent.name,
            parents=None if axis.parent_codes is None else axis.parent_codes.tolist(),
        )
        for axis in map(domain.axis, domain.axes)
    ]
    zeros = np.flatnonzero(~domain.is_cell).tolist() if domain.structural_zeros else []
    return DomainRecord(
        axes=axes,
        structural_zeros=zeros,
        taken_from_data=list(taken),
        keeps_file_order=keeps_file_order,
    )


def carried_records(table: Table) -> list[CarriedRecord]:
    """The columns that follow from an axis."""
    return [CarriedRecord(name=c.name, axis=c.axis, values=list(c.values)) for c in table.carried]


def carried_of(facts: ReleaseFacts, domain: Domain) -> tuple[Carried, ...]:
    """The columns that follow from an axis, checked against the domain."""
    names = [record.name for record in facts.carried]
    if len({*names, *domain.axes, facts.table.count}) < len(names) + len(domain.axes) + 1:
        raise InputError("Carried columns of the certificate must have names of their own.")
    for record in facts.carried:
        if record.axis not in domain.axes or len(record.values) != len(domain.axis(record.axis)):
            raise InputError(f"Carried column {record.name!r} of the certificate must have a value for each category.")
    return tuple(Carried(record.name, record.axis, tuple(record.values)) for record in facts.carried)


def order_is_as_recorded(record: DomainRecord, domain: Domain) -> bool:
    """Whether categories taken from the data are in an order that reveals nothing, or that is public."""
    return record.keeps_file_order or all(in_natural_order(domain.axis(name)) for name in record.taken_from_data)


def domain_of(record: DomainRecord, most: int | None = None) -> Domain:
    """The domain, checked like one that a user declares; of at most so many cells, by default as many as fit here."""
    categories: dict[str, Any] = {}
    within: dict[str, str] = {}
    paths: dict[str, list[tuple[Any, ...]]] = {}
    if len({axis.name for axis in record.axes}) < len(record.axes):
        raise InputError("Axes of the certificate must have different names.")
    for axis in record.axes:
        if axis.parent is None:
            if axis.parents is not None:
                raise InputError(
                    f"Axis {axis.name!r} of the certificate has no parent axis, so its categories must have none."
                )
            paths[axis.name] = [(label,) for label in axis.labels]
            categories[axis.name] = axis.labels
            continue
        above = paths.get(axis.parent)
        if above is None or axis.parents is None or len(axis.parents) != len(axis.labels):
            raise InputError(f"Axis {axis.name!r} of the certificate must have a parent for each of its categories.")
        if not all(0 <= code < len(above) for code in axis.parents):
            raise InputError(
                f"Parents of axis {axis.name!r} in the certificate must be positions in the parent's list."
            )
        paths[axis.name] = [(*above[code], label) for code, label in zip(axis.parents, axis.labels, strict=True)]
        categories[axis.name] = paths[axis.name]
        within[axis.name] = axis.parent
    domain = _made(categories, within, most)
    places = record.structural_zeros
    if places:
        if any(b <= a for a, b in pairwise(places)) or places[0] < 0 or places[-1] >= domain.size:
            raise InputError("Structural zeros of the certificate must be positions in the grid, in increasing order.")
        domain = Domain.of(map(domain.axis, domain.axes), np.array(places, dtype=np.int64))
    taken = tuple(name for name in domain.axes if name in record.taken_from_data)
    if cells_record(domain, taken, record.keeps_file_order) != record:
        raise InputError("Axes of the certificate must be in the order of their families, each named once.")
    return domain


def _made(categories: Mapping[str, Any], within: Mapping[str, str], most: int | None) -> Domain:
    if most is not None:
        return Domain.of(make_axes(categories, within), most=most)
    domain = Domain(categories, within)
    check_room(domain.size, f"A table of {domain.size:,} cells", BYTES_A_CELL)
    return domain


# -- the kept totals --------------------------------------------------------------------------------


def invariants_file(invariants: Invariants) -> bytes | None:
    """The totals that are not margins, if there are any."""
    parts = [rows_part(part) for part in invariants.parts if isinstance(part, Rows)]
    if not parts:
        return None
    return _file_bytes(InvariantsFile(schema="keepsum.invariants/2", size=invariants.size, parts=parts))


def _file_bytes(file: InvariantsFile) -> bytes:
    return msgspec.json.encode(file) + b"\n"


def rows_part(part: Rows) -> RowsPart:
    """The record of totals that are not margins."""
    rows = part.rows
    cuts = rows.indptr[1:-1]
    cells = [row.tolist() for row in np.split(rows.indices, cuts)] if part.height else []
    weights = None
    if (rows.data != 1).any():
        weights = [row.tolist() for row in np.split(rows.data, cuts)]
    return RowsPart(kind=part.kind, names=list(part.names), cells=cells, weights=weights)


def kept_record(invariants: Invariants, file: bytes | None, totals: Sequence[int]) -> KeptRecord:
    """The declared parts in their order, with the values of their totals."""
    values = iter(map(whole_number, totals))
    sha256 = hashlib.sha256(file or b"").hexdigest()
    parts: list[PartRecord] = []
    for part in invariants.parts:
        if isinstance(part, Margin):
            labelled = [MarginTotal(labels=labels, value=next(values)) for labels in part.all_labels()]
            parts.append(MarginRecord(axes=list(part.axes), totals=labelled))
        elif isinstance(part, Rows):
            number = sum(not isinstance(record, MarginRecord) for record in parts)
            named = [NamedTotal(name=name, value=next(values)) for name in part.names]
            kind = SubsetsRecord if part.kind == "subsets" else WeightedRecord
            parts.append(kind(part=number, sha256=sha256, totals=named))
    return KeptRecord(parts=parts)


def whole_number(value: int) -> WholeNumber:
    """An integer, as text where not every JSON parser would read it exactly."""
    return value if abs(value) <= LARGEST_INTEGER else str(value)


def kept_values(kept: KeptRecord) -> Iterator[int]:
    """The values of all kept totals, in order."""
    return (int(total.value) for part in kept.parts for total in part.totals)


def kept_invariants(facts: ReleaseFacts, file: bytes | None) -> Invariants:
    """The kept totals that a certificate declares."""
    if file is not None and not isinstance(file, bytes):
        raise InputError(f"The file of invariants must be given as bytes, got {type_of(file)}.")
    domain = domain_of(facts.domain)
    records = facts.kept.parts
    hashes = {record.sha256 for record in records if not isinstance(record, MarginRecord)}
    if len(hashes) > 1:
        raise InputError("All totals of the certificate that are not margins must be in one file.")
    # Every margin has an entry for each cell; a short certificate can declare very many.
    margins = sum(isinstance(record, MarginRecord) for record in records)
    check_room(margins * domain.size, f"{margins:,} margins over {domain.size:,} cells", BYTES_AN_ENTRY)
    rows = _rows_parts(hashes.pop(), file, domain.size) if hashes else []
    parts: list[Part] = []
    for record in records:
        if isinstance(record, MarginRecord):
            parts.append(Margin(domain, domain.closure(record.axes)))
        elif not 0 <= record.part < len(rows):
            raise InputError(f"The file of invariants must have a part {record.part}, but it has {len(rows)} parts.")
        else:
            parts.append(rows[record.part])
    kept = Invariants(domain.size, tuple(parts), domain)
    if len(set(map(_part_key, parts))) < len(parts):
        raise InputError("Kept totals of the certificate must be declared once each.")
    values = list(kept_values(facts.kept))
    if len(values) != kept.height or kept_record(kept, file, values) != facts.kept:
        raise InputError("Kept totals of the certificate must be those of its margins and its file, in their order.")
    return kept


def _part_key(part: Part) -> object:
    """What distinguishes parts: the axes of a margin, the position of the rows of a file."""
    return part.axes if isinstance(part, Margin) else id(part)


def _rows_parts(sha256: str, file: bytes | None, size: int) -> list[Rows]:
    if file is None:
        raise InputError("The certificate needs its file of invariants, and there is none beside it.")
    if hashlib.sha256(file).hexdigest() != sha256:
        raise InputError("The file of invariants must have the hash stated in the certificate, but it has another.")
    read, problem = None, ""
    try:
        read = msgspec.json.decode(file, type=InvariantsFile)
        if _file_bytes(read) != file:
            problem = "it is not in the form that Keepsum writes"
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        problem = str(error)
    if read is None or problem:
        raise InputError(f"The file of invariants must follow keepsum.invariants/2, but: {problem}.")
    if read.size != size:
        raise InputError(f"The file of invariants must cover {size:,} cells, got {read.size:,}.")
    return [rows_of(part, size) for part in read.parts]


def rows_of(part: RowsPart, size: int) -> Rows:
    """Totals that are not margins, from their record."""
    if any(row != sorted(row) for row in part.cells):
        raise InputError("Cells of a total in the file of invariants must be in increasing order.")
    plain = Invariants.subsets(size, part.cells, part.names).parts[0]
    rows = plain.coefficients()
    if part.weights is not None:
        if [len(row) for row in part.weights] != [len(row) for row in part.cells]:
            raise InputError("Weights in the file of invariants must be one for each cell.")
        if any(abs(weight) >= 2**62 for row in part.weights for weight in row):
            raise InputError("Weights in the file of invariants must fit 62 bits.")
        data = np.array([weight for row in part.weights for weight in row], dtype=np.int64)
        rows = sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
    return Rows(rows, tuple(part.names), part.kind)


# -- the mechanism ----------------------------------------------------------------------------------


def mechanism_record(mechanism: Mechanism) -> MechanismRecord:
    """A mechanism per unit of distance."""
    facts = mechanism.facts()
    focus = [_focus_record(level, facts.norm) for level in facts.focus]
    parameters, calibrated = dict(facts.parameters), _calibrated_record(facts.calibrated)
    return MechanismRecord(name=facts.name, norm=facts.norm, parameters=parameters, focus=focus, calibrated=calibrated)


def stated_mechanism(record: MechanismRecord) -> Mechanism:
    """The mechanism that a certificate states, with the sigma of the draw."""
    focus = tuple(stated_level(level, record.norm) for level in record.focus)
    calibrated = None if record.calibrated is None else _calibrated_of(record.calibrated)
    return mechanism_of(MechanismFacts(record.name, record.norm, record.parameters, focus, calibrated))


def _calibrated_record(goal: Calibrated | None) -> CalibratedRecord | None:
    if goal is None:
        return None
    return CalibratedRecord(
        epsilon=str(goal.epsilon),
        delta=str(goal.delta),
        length=goal.length,
        rho=None if goal.rho is None else str(goal.rho),
        exact=goal.exact,
        rule=goal.rule,
        version=goal.version,
    )


def _calibrated_of(record: CalibratedRecord) -> Calibrated:
    """What noise was calibrated to, as it is stated."""
    epsilon, delta = exact(record.epsilon, "Epsilon"), exact(record.delta, "Delta")
    rho = None if record.rho is None else exact(record.rho, "Rho")
    return Calibrated(epsilon, delta, record.length, rho, record.exact, record.rule, record.version)


def _focus_record(level: Level, norm: Norm) -> FocusRecord:
    subsets = None
    if level.subsets is not None:
        cells = [list(row) for row in level.subsets.cells]
        subsets = FocusedSubsets(size=level.subsets.size, names=list(level.subsets.names), cells=cells)
    weight = {"epsilon" if norm == "l1" else "rho": str(level.weight)}
    return FocusRecord(axes=list(level.axes), subsets=subsets, **weight)


def stated_level(record: FocusRecord, norm: Norm) -> Level:
    """A focus that is stated."""
    weight = exact(_weight(record, norm), "The weight of a focus")
    if record.subsets is None:
        return Level(tuple(record.axes), weight)
    if record.axes:
        raise InputError("A focus in a certificate must be on axes or on subsets, not on both.")
    stated = record.subsets
    return Level((), weight, Subsets.of(Invariants.subsets(stated.size, stated.cells, stated.names), "focus="))


def _weight(level: FocusRecord, norm: Norm) -> str:
    """The epsilon of focused totals in the l1 norm, their rho in the l2 norm."""
    weight, other = (level.epsilon, level.rho) if norm == "l1" else (level.rho, level.epsilon)
    if weight is None or other is not None:
        raise InputError("A focus in a certificate must have an epsilon in the l1 norm, and a rho in the l2 norm.")
    return weight
