"""A plan's declarations and results as facts of a certificate, and back again."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np
from scipy import sparse

from keepsum._memory import BYTES_A_CELL, check_room
from keepsum._saying import arg, the
from keepsum._text import type_of
from keepsum.accuracy.margins import Accuracy
from keepsum.convergence.observe import CONFIDENCES, FEWEST_PAIRS, MOST_PAIRS, BlockConvergence, Convergence
from keepsum.errors import DataError, InputError
from keepsum.planning.distances import AttributeDistance
from keepsum.planning.groups import BlockForm, BlockGroup
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.planning.selection.choice import Choice
from keepsum.privacy import mechanism_of
from keepsum.privacy.distance import Distance, Neighbours, Norm
from keepsum.privacy.focus import Level, Subsets
from keepsum.privacy.guarantee import added_delta
from keepsum.privacy.mechanism import Calibrated, Claim, Mechanism, MechanismFacts
from keepsum.privacy.numbers import Loss, decimal_text, exact, three_digits_up
from keepsum.releasing.canonical import LARGEST_INTEGER
from keepsum.releasing.facts import (
    EARLIER,
    AccuracyRecord,
    AskedRecord,
    AttributeRecord,
    AxisRecord,
    BlockRecord,
    CalibratedRecord,
    CarriedRecord,
    ClaimRecord,
    ConvergenceRecord,
    DistanceRecord,
    DomainRecord,
    Exactness,
    ExposureRecord,
    FocusedSubsets,
    FocusRecord,
    FormRecord,
    GuaranteeRecord,
    InvariantsFile,
    KeptRecord,
    MarginRecord,
    MarginTotal,
    MechanismRecord,
    NamedTotal,
    PartRecord,
    PersonRecord,
    Record,
    RecordsRecord,
    ReleaseFacts,
    RowsPart,
    SamplerRecord,
    SamplingRecord,
    SubsetsRecord,
    WeightedRecord,
    WholeNumber,
)
from keepsum.tables.axes import in_natural_order, make_axes
from keepsum.tables.cells import Carried
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import DeclaredTotals, Invariants, Margin, Rows
from keepsum.tables.origins import Records
from keepsum.tables.table import Table


def json_file(value: Any) -> bytes:
    """A value as a file of JSON for people and machines, with a line for each part."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


# The guarantee, the exposed cells and the accuracy of a plan, as records of a certificate.

R = TypeVar("R", bound=Record)
LEVEL = 0.95
LONGEST_COUPLING = 2**40  # the most steps after which a pair of chains is given up
WEAKEST: tuple[Exactness, ...] = ("exact", "rounded", "estimated", "claimed")


def _fields_of(kind: type[R], source: Any) -> R:
    """The record with the fields of that name of an object."""
    return msgspec.convert(source, kind, from_attributes=True)


# -- one person -------------------------------------------------------------------------------------


def person_record(plan: CompiledPlan) -> PersonRecord:
    """What the guarantee means for one person."""
    loss = plan.guarantee.person_loss or Loss()
    asked = plan.neighbours
    return PersonRecord(
        distance=None if plan.person is None else distance_record(plan.person),
        epsilon=None if loss.epsilon is None else decimal_text(loss.epsilon),
        delta=None if loss.delta is None else decimal_text(loss.delta),
        rho=None if loss.rho is None else decimal_text(loss.rho),
        attributes=[_attribute_record(attribute) for attribute in plan.attributes],
        asked=None
        if asked is None
        else AskedRecord(attributes=None if asked.attributes is None else list(asked.attributes), to=asked.to),
        within=[None if found is None else distance_record(found) for found in plan.distances.within_levels],
    )


def distance_record(distance: Distance) -> DistanceRecord:
    """A distance; its norm is that of the mechanism."""
    return _fields_of(DistanceRecord, distance)


def _attribute_record(attribute: AttributeDistance) -> AttributeRecord:
    return AttributeRecord(
        axis=attribute.axis,
        any_value=None if attribute.any_value is None else distance_record(attribute.any_value),
        other_value=None if attribute.other_value is None else distance_record(attribute.other_value),
        fixed_values=attribute.fixed_values,
        unprotected_cells=attribute.unprotected,
        stuck_cells=attribute.stuck,
        unknown_cells=attribute.unknown,
    )


# -- sampling ---------------------------------------------------------------------------------------


def guarantee_record(plan: CompiledPlan) -> GuaranteeRecord:
    """The guarantee, and how each block is drawn; convergence must have been measured."""
    observed = plan.convergence.groups if plan.convergence is not None else (None,) * len(plan.groups)
    groups = zip(plan.groups, plan.samplers, observed, strict=True)
    blocks = [_block_record(group, choice, convergence) for group, choice, convergence in groups]
    return GuaranteeRecord(person=person_record(plan), sampling=sampling_record(blocks, plan.mechanism), blocks=blocks)


def sampling_record(blocks: Sequence[BlockRecord], mechanism: Mechanism) -> SamplingRecord:
    """All blocks together: as exact as the least exact one, with the sum of their total variations."""
    chains = [block.convergence for block in blocks if block.convergence is not None]
    distance = min(1.0, math.fsum(block.total_variation for block in blocks))
    extrapolated = math.fsum(
        block.total_variation if block.convergence is None else block.blocks * block.convergence.extrapolated
        for block in blocks
    )
    return SamplingRecord(
        exactness=max((block.exactness for block in blocks), key=WEAKEST.index, default="exact"),
        total_variation=distance,
        extrapolated=min(1.0, extrapolated) if chains else None,
        confidence=round(1 - math.fsum(1 - chain.confidence for chain in chains), 12) if chains else None,
        delta=three_digits_up(float(added_delta(distance, mechanism.unit_loss))),
    )


def form_of(record: FormRecord) -> BlockForm:
    """The form of a block from its record."""
    return BlockForm(record.kind, record.regions, record.totals, record.smallest, record.largest, tuple(record.shape))


def _block_record(group: BlockGroup, choice: Choice, observed: BlockConvergence | None) -> BlockRecord:
    if choice.method is None or (choice.exactness == "estimated" and observed is None):
        raise InputError(
            f"The convergence of blocks drawn by chains must be measured first. Use {the.call('plan.certify()')}."
        )
    return BlockRecord(
        form=_fields_of(FormRecord, group.form),
        blocks=group.blocks,
        cells=group.cells,
        sampler=_fields_of(SamplerRecord, choice),
        exactness=choice.exactness,
        total_variation=choice.rounding if observed is None else min(1.0, observed.blocks * observed.upper),
        convergence=None if observed is None else convergence_record(observed),
    )


def convergence_record(observed: BlockConvergence) -> ConvergenceRecord:
    """What coupled chains showed."""
    return _fields_of(ConvergenceRecord, observed)


def convergence_of(record: GuaranteeRecord) -> Convergence | None:
    """What coupled chains showed, from its record; limits are recomputed from the meetings."""
    groups = tuple(_block_convergence(block) for block in record.blocks)
    if not any(groups):
        return None
    rounding = math.fsum(block.total_variation for block in record.blocks if block.exactness == "rounded")
    return Convergence(groups, rounding, record.sampling.confidence or 0.0)


def _block_convergence(block: BlockRecord) -> BlockConvergence | None:
    stated = block.convergence
    if stated is None:
        return None
    if not pairs_are_plausible(stated):
        raise InputError("Meeting times in a certificate must be possible for its steps, lag and pairs.")
    return BlockConvergence(
        blocks=block.blocks,
        steps=stated.steps,
        lag=stated.lag,
        give_up=stated.give_up,
        meetings=tuple(stated.meetings),
        unmet=stated.unmet,
        confidence=stated.confidence,
        predicted=stated.predicted,
        rounding=stated.rounding,
    )


def pairs_are_plausible(stated: ConvergenceRecord) -> bool:
    """Whether pairs of chains can have met as stated."""
    return (
        min(stated.steps, stated.lag, stated.give_up - stated.lag) >= 1
        and stated.pairs >= FEWEST_PAIRS
        and all(before < after for (before, _), (after, _) in pairwise(stated.meetings))
        and stated.unmet >= 0
        and stated.give_up <= LONGEST_COUPLING
        and all(0 <= steps <= stated.give_up - stated.lag and count >= 1 for steps, count in stated.meetings)
        and sum(count for _, count in stated.meetings) + stated.unmet == stated.pairs <= MOST_PAIRS
        and CONFIDENCES[0] <= stated.confidence < 1
        and 0 <= stated.predicted <= 1
        and 0 <= stated.rounding <= 1
    )


# -- exposure and accuracy --------------------------------------------------------------------------


def exposure_record(plan: CompiledPlan, bounded: int, not_checked: int) -> ExposureRecord:
    """The cells that the kept totals disclose: pinned, bounded, or not checked."""
    domain = plan.invariants.domain
    if domain is None:
        raise AssertionError("the cells of a release have names")
    cells = map(domain.cell, plan.pinned.tolist())
    return ExposureRecord(
        pinned=[[labels[axis] for axis in domain.axes] for labels in cells], bounded=bounded, not_checked=not_checked
    )


def accuracy_record(accuracy: Accuracy) -> AccuracyRecord:
    """The margin of error."""
    return AccuracyRecord(
        level=accuracy.level,
        typical_margin=accuracy.typical,
        simulated_draws=accuracy.draws,
        simulated_error=float(f"{accuracy.error:.3g}"),
        conservative=accuracy.basis == "conservative",
        focused_margins=[totals.accuracy.typical for totals in accuracy.levels],
    )


# Domain, kept totals and mechanism as facts of a certificate, and back again.

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
        axes=axes, structural_zeros=zeros, taken_from_data=list(taken), keeps_file_order=keeps_file_order
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
            raise InputError(
                f"Carried column {the.column(record.name)} of the certificate must have a value for each category."
            )
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
                    f"Axis {the.column(axis.name)} of the certificate has no parent axis, so its categories must have "
                    "none."
                )
            paths[axis.name] = [(label,) for label in axis.labels]
            categories[axis.name] = axis.labels
            continue
        above = paths.get(axis.parent)
        if above is None or axis.parents is None or len(axis.parents) != len(axis.labels):
            raise InputError(
                f"Axis {the.column(axis.name)} of the certificate must have a parent for each of its categories."
            )
        if not all(0 <= code < len(above) for code in axis.parents):
            raise InputError(
                f"Parents of axis {the.column(axis.name)} in the certificate must be positions in the parent's list."
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
    parts: list[DeclaredTotals] = []
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


def _part_key(part: DeclaredTotals) -> object:
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
    return MechanismRecord(
        name=facts.name,
        norm=facts.norm,
        parameters=parameters,
        focus=focus,
        calibrated=calibrated,
        claim=_claim_record(facts),
    )


def stated_mechanism(record: MechanismRecord) -> Mechanism:
    """The mechanism that a certificate states, with the sigma of the draw."""
    focus = tuple(stated_level(level, record.norm) for level in record.focus)
    calibrated = None if record.calibrated is None else _calibrated_of(record.calibrated)
    claim, loss = _claim_of(record.claim)
    return mechanism_of(MechanismFacts(record.name, record.norm, record.parameters, focus, calibrated, claim, loss))


def _claim_record(facts: MechanismFacts) -> ClaimRecord | None:
    claim = facts.claim
    if claim is None or facts.loss is None:
        return None
    return ClaimRecord(
        loss=facts.loss,
        name=claim.name,
        version=claim.version,
        law=claim.law,
        parameters=dict(claim.parameters),
        source=claim.source,
    )


def _claim_of(record: ClaimRecord | None) -> tuple[Claim | None, Literal["laplace", "gaussian"] | None]:
    if record is None:
        return None, None
    parameters = tuple(record.parameters.items())
    return Claim(record.name, record.version, record.law, parameters, record.source), record.loss


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
    return Level((), weight, Subsets.of(Invariants.subsets(stated.size, stated.cells, stated.names), f"{arg.focus}"))


def _weight(level: FocusRecord, norm: Norm) -> str:
    """The epsilon of focused totals in the l1 norm, their rho in the l2 norm."""
    weight, other = (level.epsilon, level.rho) if norm == "l1" else (level.rho, level.epsilon)
    if weight is None or other is not None:
        raise InputError("A focus in a certificate must have an epsilon in the l1 norm, and a rho in the l2 norm.")
    return weight
