"""Domain, kept totals, mechanism and what chains showed in the machine form of a certificate, and back again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from scipy import sparse

from keepsum._memory import BYTES_A_CELL, check_room
from keepsum._text import type_of
from keepsum.convergence.observe import MOST_PAIRS, BlockConvergence, Convergence
from keepsum.errors import InputError
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.privacy import Gaussian, Laplace
from keepsum.privacy.mechanism import Mechanism
from keepsum.privacy.neighbours import Neighbours
from keepsum.releasing.certificate import (
    AxisRecord,
    BlockRecord,
    Certificate,
    ConvergenceRecord,
    DomainRecord,
    GuaranteeRecord,
    InvariantsFile,
    MarginRecord,
    MechanismRecord,
    RowsPart,
    RowsRecord,
    read_strictly,
)
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants, Margin, Part, Rows
from keepsum.tables.labels import in_natural_order
from keepsum.tables.table import Table

BYTES_AN_ENTRY = 24  # of the matrix of totals, while a plan is made of it


def plan_of(certificate: Certificate, file: bytes | None) -> CompiledPlan:
    """The plan of a release again, with what was shown of its chains."""
    return planned_again(certificate, kept_invariants(certificate, file))


def planned_again(certificate: Certificate, kept: Invariants) -> CompiledPlan:
    """The plan of a release whose kept totals are known again."""
    asked = certificate.guarantee.person.promise
    promise = None if asked is None else Neighbours.of(asked.attributes, asked.to)
    again = replace(compile_plan(kept, mechanism_of(certificate.mechanism)), promise=promise)
    again.recall(certification_of(certificate.guarantee))
    return again


# -- the domain -------------------------------------------------------------------------------------


def domain_record(table: Table) -> DomainRecord:
    """The domain of a confidential table in machine form, and what else than a declaration made it."""
    return _domain_record(table.domain, table.undeclared, table.rows is not None)


def _domain_record(domain: Domain, taken: Sequence[str], keeps_file_order: bool) -> DomainRecord:
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


def order_is_as_recorded(record: DomainRecord, domain: Domain) -> bool:
    """Whether categories that were taken from the data stand in an order that tells nothing, or that is public."""
    return record.keeps_file_order or all(in_natural_order(domain.axis(name)) for name in record.taken_from_data)


def domain_of(record: DomainRecord) -> Domain:
    """The domain again, checked like one that a user declares."""
    categories: dict[str, Any] = {}
    within: dict[str, str] = {}
    paths: dict[str, list[tuple[Any, ...]]] = {}
    if len({axis.name for axis in record.axes}) < len(record.axes):
        raise InputError("Axes of the certificate must have different names.")
    for axis in record.axes:
        if axis.parent is None:
            if axis.parents is not None:
                raise InputError(f"Axis {axis.name!r} of the certificate has no parent, so it must have no parents.")
            paths[axis.name] = [(label,) for label in axis.labels]
            categories[axis.name] = axis.labels
            continue
        above = paths.get(axis.parent)
        if above is None or axis.parents is None or len(axis.parents) != len(axis.labels):
            raise InputError(f"Axis {axis.name!r} of the certificate must have a parent for each of its categories.")
        if not all(0 <= code < len(above) for code in axis.parents):
            raise InputError(f"Parents of axis {axis.name!r} in the certificate must be places in the parent's list.")
        paths[axis.name] = [(*above[code], label) for code, label in zip(axis.parents, axis.labels, strict=True)]
        categories[axis.name] = paths[axis.name]
        within[axis.name] = axis.parent
    domain = Domain(categories, within)
    check_room(domain.size, f"A table of {domain.size:,} cells", BYTES_A_CELL)
    places = record.structural_zeros
    if places:
        if any(b <= a for a, b in pairwise(places)) or places[0] < 0 or places[-1] >= domain.size:
            raise InputError("Structural zeros of the certificate must be places of the grid, in order.")
        domain = Domain.of(map(domain.axis, domain.axes), np.array(places, dtype=np.int64))
    taken = tuple(name for name in domain.axes if name in record.taken_from_data)
    if _domain_record(domain, taken, record.keeps_file_order) != record:
        raise InputError("Axes of the certificate must stand in the order of their families, each said of once.")
    return domain


# -- the kept totals --------------------------------------------------------------------------------


def invariants_file(invariants: Invariants) -> bytes | None:
    """The totals that are not margins, if there are any."""
    parts = [_rows_part(part) for part in invariants.parts if isinstance(part, Rows)]
    if not parts:
        return None
    file = InvariantsFile(schema="keepsum.invariants/1", size=invariants.size, parts=parts)
    return msgspec.json.encode(file) + b"\n"


def _rows_part(part: Rows) -> RowsPart:
    rows = part.rows
    cuts = rows.indptr[1:-1]
    cells = [row.tolist() for row in np.split(rows.indices, cuts)] if part.height else []
    weights = None
    if (rows.data != 1).any():
        weights = [row.tolist() for row in np.split(rows.data, cuts)]
    return RowsPart(names=list(part.names), words=part.words, cells=cells, weights=weights)


def part_records(invariants: Invariants, file: bytes | None) -> list[MarginRecord | RowsRecord]:
    """The declared parts in their order."""
    records: list[MarginRecord | RowsRecord] = []
    for part in invariants.parts:
        if isinstance(part, Margin):
            records.append(MarginRecord(axes=list(part.axes)))
        else:
            number = sum(isinstance(record, RowsRecord) for record in records)
            records.append(RowsRecord(part=number, sha256=hashlib.sha256(file or b"").hexdigest()))
    return records


def kept_invariants(certificate: Certificate, file: bytes | None) -> Invariants:
    """The kept totals again."""
    domain = domain_of(certificate.domain)
    parts: list[Part] = []
    rows: list[Rows] | None = None
    hashes = {record.sha256 for record in certificate.kept.parts if isinstance(record, RowsRecord)}
    if len(hashes) > 1:
        raise InputError("All totals of the certificate that are not margins must stand in one file.")
    # Every margin has an entry for each cell; a certificate of a few lines can ask for very many.
    margins = sum(isinstance(record, MarginRecord) for record in certificate.kept.parts)
    check_room(margins * domain.size, f"{margins:,} margins over {domain.size:,} cells", BYTES_AN_ENTRY)
    for record in certificate.kept.parts:
        if isinstance(record, MarginRecord):
            parts.append(Margin(domain, domain.closure(record.axes)))
            continue
        rows = rows if rows is not None else _rows_parts(record.sha256, file, domain.size)
        if not 0 <= record.part < len(rows):
            raise InputError(f"The file of invariants must have a part {record.part}, it has {len(rows)}.")
        parts.append(rows[record.part])
    kept = Invariants(domain.size, tuple(parts), domain)
    if len(set(map(_part_key, parts))) < len(parts) or part_records(kept, file) != certificate.kept.parts:
        raise InputError("Kept totals of the certificate must be declared once each, and in their order.")
    return kept


def _part_key(part: Part) -> object:
    """What tells parts apart: the axes of a margin; the rows of a file are told apart by their places."""
    return part.axes if isinstance(part, Margin) else id(part)


def _rows_parts(sha256: str, file: bytes | None, size: int) -> list[Rows]:
    if file is not None and not isinstance(file, bytes):
        raise InputError(f"The file of invariants must be given as bytes, got {type_of(file)}.")
    if file is None:
        raise InputError("The certificate needs its file of invariants, which is not beside it.")
    if hashlib.sha256(file).hexdigest() != sha256:
        raise InputError("The file of invariants must have the hash that the certificate states, it has another.")
    read, problem = None, ""
    try:
        read = read_strictly(file, InvariantsFile)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        problem = str(error)
    if read is None:
        raise InputError(f"The file of invariants must follow keepsum.invariants/1, but: {problem}.")
    if read.size != size:
        raise InputError(f"The file of invariants must be over {size:,} cells, it is over {read.size:,}.")
    return [_rows_again(part, size) for part in read.parts]


def _rows_again(part: RowsPart, size: int) -> Rows:
    if any(row != sorted(row) for row in part.cells):
        raise InputError("Cells of a total in the file of invariants must be in order.")
    plain = Invariants.subsets(size, part.cells, part.names).parts[0]
    rows = plain.coefficients()
    if part.weights is not None:
        if [len(row) for row in part.weights] != [len(row) for row in part.cells]:
            raise InputError("Weights in the file of invariants must be one for each cell.")
        if any(abs(weight) >= 2**62 for row in part.weights for weight in row):
            raise InputError("Weights in the file of invariants must fit 62 bits.")
        data = np.array([weight for row in part.weights for weight in row], dtype=np.int64)
        rows = sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
    return Rows(rows, tuple(part.names), part.words)


# -- the mechanism ----------------------------------------------------------------------------------


def mechanism_record(mechanism: Mechanism) -> MechanismRecord:
    """A mechanism per unit of distance, with its law."""
    gaussian = mechanism if isinstance(mechanism, Gaussian) else None
    shape = "Gaussian" if gaussian else "Laplace"
    return MechanismRecord(
        name="gaussian" if gaussian else "laplace",
        norm=mechanism.norm,
        epsilon=rational(mechanism.epsilon),
        delta=rational(gaussian.delta) if gaussian else None,
        rho=rational(gaussian.rho) if gaussian else None,
        sigma=rational(gaussian.sigma) if gaussian else None,
        calibration=gaussian.calibration if gaussian and gaussian.epsilon is not None else None,
        law=mechanism.law(),
        words=(
            f"Discrete {shape} noise: whole numbers z, one for each cell, with probability proportional to "
            f"{mechanism.law()} over all z that change no kept total. Its mean is 0 in every cell."
        ),
    )


def rational(number: Fraction | None) -> str | None:
    """An exact quotient as text."""
    return None if number is None else str(number)


def mechanism_of(record: MechanismRecord) -> Mechanism:
    """The mechanism again."""
    if record.name == "laplace":
        if record.epsilon is None:
            raise InputError("A Laplace mechanism in a certificate must have an epsilon.")
        return Laplace(record.epsilon, record.norm)
    if record.epsilon is None and record.rho is None:
        return Gaussian(sigma=record.sigma)
    return Gaussian(record.epsilon, record.delta, rho=record.rho, calibration=record.calibration or "zcdp")


# -- what chains showed -----------------------------------------------------------------------------


def convergence_record(shown: BlockConvergence) -> ConvergenceRecord:
    """What pairs of chains showed, in machine form."""
    return ConvergenceRecord(
        steps=shown.steps,
        lag=shown.lag,
        most=shown.give_up,
        pairs=shown.pairs,
        unmet=shown.unmet,
        meetings=list(shown.meetings),
        confidence=shown.confidence,
        foretold=shown.predicted,
        rounding=shown.rounding,
        upper=shown.upper,
        extrapolated=shown.extrapolated,
    )


def certification_of(record: GuaranteeRecord) -> Convergence | None:
    """What a certificate says that pairs of chains showed; its limits are worked out again from the meetings."""
    groups = tuple(_convergence_of(block) for block in record.blocks)
    chains = [group for group in groups if group is not None]
    if not chains:
        return None
    own = {group.confidence for group in chains}
    if len(own) != 1:
        raise InputError("The limits of a certificate must have one confidence, these have several.")
    rounding = sum(block.total_variation for block in record.blocks if block.guarantee == "rounded")
    return Convergence(groups, rounding, round(1 - len(chains) * (1 - own.pop()), 12))


def _convergence_of(block: BlockRecord) -> BlockConvergence | None:
    said = block.convergence
    if said is None:
        return None
    if min(said.steps, said.lag, said.most - said.lag, len(said.meetings) + said.unmet) < 1 or said.unmet < 0:
        raise InputError("Meetings of chains in a certificate must have steps, a lag and pairs.")
    if (
        not 0 <= said.foretold <= 1
        or not 0 <= said.rounding <= 1
        or not 0 < said.confidence < 1
        or any(not 0 <= steps <= said.most - said.lag or count < 1 for steps, count in said.meetings)
    ):
        raise InputError(
            "Meetings of chains in a certificate must be steps from 0 to where pairs are given up, with pairs from 1."
        )
    if sum(count for _, count in said.meetings) + said.unmet > MOST_PAIRS or said.most > 2**40:
        raise InputError(f"A certificate must speak of at most {MOST_PAIRS:,} pairs of chains, this one has more.")
    return BlockConvergence(
        blocks=block.blocks,
        steps=said.steps,
        lag=said.lag,
        give_up=said.most,
        meetings=tuple(said.meetings),
        unmet=said.unmet,
        confidence=said.confidence,
        predicted=said.foretold,
        rounding=said.rounding,
    )
