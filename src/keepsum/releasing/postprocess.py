"""A release without negative counts, from what is published alone."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from keepsum._arrays import IntArray
from keepsum._text import given
from keepsum.errors import InputError, KeepsumError
from keepsum.lattice.structure import Structure
from keepsum.privacy.distance import Norm
from keepsum.projection.nearest import check_possible, is_nearest, is_unique, nearest
from keepsum.releasing.codec import whole_number
from keepsum.releasing.facts import NonNegativeRecord
from keepsum.releasing.release import Drawn
from keepsum.sources.writing import table_hash
from keepsum.tables.invariants import Invariants
from keepsum.tables.released import ReleasedTable


def checked_norm(norm: object) -> Norm:
    """The norm in which a table is to be nearest."""
    if isinstance(norm, str) and norm == "l1":
        return "l1"
    if isinstance(norm, str) and norm == "l2":
        return "l2"
    raise InputError(f"The norm of the nearest table must be 'l1' or 'l2', got {given(norm)}.")


def check_nonnegative(structure: Structure, norm: Norm) -> None:
    """Refuse, before any noise is drawn, totals for which no nearest table can be found."""
    check_possible(structure, norm)


def without_negative(drawn: Drawn, structure: Structure, kept: Invariants, norm: Norm = "l1") -> Drawn:
    """The release with the nearest table without negative counts, and with its own table beside it.

    It reads the released counts and the kept totals alone, so it costs no privacy. The certificate is not signed: a
    signature is of the certificate before.

    Raises
    ------
    PlanError
        If the norm is l2 and some totals are not sums, hierarchies or two-way tables, or a solver gives up.
    """
    certificate = drawn.certificate
    if certificate.postprocessing:
        raise InputError("The release must be as it was drawn, but its negative counts have been removed already.")
    released = drawn.table
    projected = replace(released, counts=nearest(structure, released.counts, norm))
    if int(projected.counts.min(initial=0)) < 0 or not kept.holds(released, projected):
        raise KeepsumError("A kept total was not kept, so nothing is published. Please report this as a bug.")
    record = nonnegative_record(released, projected, norm, is_unique(structure))
    stated = msgspec.structs.replace(certificate, postprocessing=[record], signature=None)
    return Drawn(projected, stated, drawn.invariants, released)


def nonnegative_record(
    released: ReleasedTable, projected: ReleasedTable, norm: Norm, unique: bool
) -> NonNegativeRecord:
    """What is stated of a table without negative counts."""
    change = np.abs(projected.counts - released.counts)
    return NonNegativeRecord(
        norm=norm,
        unique=unique,
        sha256=table_hash(projected),
        cells_changed=int(np.count_nonzero(change)),
        l1_distance=whole_number(_sum(change)),
        largest_change=whole_number(int(change.max(initial=0))),
    )


def _sum(values: IntArray) -> int:
    """A sum that may exceed 64 bits while a forged certificate is read."""
    return int(values.sum(dtype=object)) if values.size else 0


def problem_of(
    record: NonNegativeRecord, released: ReleasedTable, projected: ReleasedTable, structure: Structure, kept: Invariants
) -> str | None:
    """What is wrong with a table that is stated to be the nearest one without negative counts, if anything is."""
    if table_hash(projected) != record.sha256:
        return "does not match the certificate"
    if int(projected.counts.min(initial=0)) < 0:
        return "has negative counts"
    if not kept.holds(released, projected):
        return "does not keep every total"
    if record != nonnegative_record(released, projected, record.norm, is_unique(structure)):
        return "did not change as the certificate states"
    if not is_nearest(structure, released.counts, projected.counts, record.norm):
        return f"is not the nearest to the unbiased table in {record.norm}"
    return None
