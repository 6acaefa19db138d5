"""The table, the kept totals and the mechanism that a spec declares."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from keepsum._memory import BYTES_A_CELL, check_room
from keepsum._saying import arg, the
from keepsum.errors import InputError
from keepsum.privacy.gaussian import Gaussian
from keepsum.privacy.laplace import Laplace
from keepsum.privacy.mechanism import Request
from keepsum.privacy.profile import RULE
from keepsum.sources.declarations import read_domain, read_keep, subsets
from keepsum.sources.reading import FileForm, table_in
from keepsum.sources.records.files import is_address
from keepsum.sources.uploads import Upload
from keepsum.specs.focus import axes_of, focus_of
from keepsum.specs.option import Option
from keepsum.specs.options import OPTIONS, value_of
from keepsum.specs.spec import NoiseSpec, Spec, asks
from keepsum.tables.declared import DeclaredColumns
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants
from keepsum.tables.source import DEFAULT_COUNT
from keepsum.tables.table import Table, quoted_table

OF_COUNTS = [one for one in OPTIONS.values() if one.rows == "counts"]
OF_RECORDS = [one for one in OPTIONS.values() if one.rows == "records" and one.key != "records.by"]
OF_FILES = [one for one in OPTIONS.values() if one.of_file]
OF_GAUSSIAN = [one for one in OPTIONS.values() if one.noise == "gaussian"]


def noise_of(noise: NoiseSpec, table: Table | None = None) -> Request:
    """The mechanism; subsets in its focus are those of a table, and without one nothing is known of them."""
    focus = focus_of(noise, table)
    return _laplace(noise, focus) if noise.kind in (None, "laplace") else _gaussian(noise, focus)


def _laplace(noise: NoiseSpec, focus: dict[Any, Any] | None) -> Laplace:
    for one in OF_GAUSSIAN:
        if getattr(noise, one.name) is not None:
            raise InputError(
                f"{arg[one.argument]} requires {arg.mechanism('gaussian')}. "
                f"{arg[one.argument].called('Leave it out')} for Laplace noise."
            )
    if noise.epsilon is None:
        raise InputError(f"{arg.epsilon} must be given for Laplace noise. {arg.epsilon(0.25):Pass}, for example.")
    norm = "l1" if noise.norm is None else noise.norm
    _check_shares(noise, focus)
    if noise.per_unit:
        return Laplace.per_unit(noise.epsilon, norm, focus=focus)
    return Laplace(noise.epsilon, norm, focus=focus, **_person(noise))


def _gaussian(noise: NoiseSpec, focus: dict[Any, Any] | None) -> Gaussian:
    if noise.norm == "l1":
        raise InputError(f"{arg.norm} must be l2 for Gaussian noise. Leave it out.")
    if noise.calibration is not None and noise.epsilon is None:
        raise InputError(
            f"{arg.calibration} requires {arg.epsilon} and {arg.delta}, from which sigma follows. Leave it out."
        )
    if noise.sigma is not None:
        # Refuse what is about a loss, which a width is not
        for one in _never_with("mechanism.sigma"):
            if asks(getattr(noise, one.name)):
                raise InputError(
                    f"{arg.sigma} must not be combined with {arg[one.argument]}, because it is not a privacy loss. "
                    f"{arg[one.argument]:Leave out}."
                )
    _check_shares(noise, focus)
    loss: dict[str, Any] = {"epsilon": noise.epsilon, "delta": noise.delta, "rho": noise.rho}
    calibration = noise.calibration or RULE
    if noise.per_unit:
        return Gaussian.per_unit(**loss, calibration=calibration, focus=focus)
    return Gaussian(**loss, sigma=noise.sigma, calibration=calibration, focus=focus, **_person(noise))


def _check_shares(noise: NoiseSpec, focus: dict[Any, Any] | None) -> None:
    """Refuse what is about the loss of one person where that per unit of distance is asked for."""
    if noise.cell_share is not None and focus is None:
        raise InputError(
            f"{arg.cell_share} requires {arg.focus}, whose values are shares. {arg.cell_share.called('Leave it out')}."
        )
    for one in _never_with("mechanism.per_unit"):
        if noise.per_unit and asks(getattr(noise, one.name)):
            raise InputError(
                f"{arg[one.argument]} must not be combined {arg.per_unit:with}, because it is about the loss of one "
                f"person. {arg[one.argument]:Leave out}."
            )


def _never_with(key: str) -> list[Option]:
    return [one for one in OPTIONS.values() if key in one.not_with]


def _person(noise: NoiseSpec) -> dict[str, Any]:
    """The changes of one person that the loss is for, and the share of cells in it."""
    share = {} if noise.cell_share is None else {"cell_share": noise.cell_share}
    return {"attributes": noise.attributes or None, "to": noise.to or "any value", **share}


def table_of(spec: Spec, counted: bool = True, upload: Upload | None = None) -> Table:
    """The table; without data, or of records that are not to be ``counted``, an empty one over the declared cells.

    An ``upload`` is read instead of the file that the spec names.
    """
    if spec.records.by:
        return _quoted(_of_records(spec, counted, upload), spec)
    source = spec.source
    # Refuse what describes records
    for one in OF_RECORDS:
        if asks(value_of(spec, one)):
            raise InputError(f"{arg[one.argument]} requires {arg.by}, the columns to count records by.")
    if isinstance(source.data, list):
        raise InputError(
            f"A table of counts must be one file, got a list. Count records {arg.by:with}, or name one file."
        )
    if source.data is not None and is_address(source.data):
        raise InputError(
            f"A database must be read {arg.by:with}, the columns to count its records by, and {arg.table}, its table."
        )
    categories = categories_of(spec)
    if source.data is not None:
        return _of_counts(spec, source.data, categories, upload)
    if categories is None:
        raise InputError(f"A table must be given, or its categories {arg.categories:with} or {arg.domain}.")
    _check_empty(spec)
    return _quoted(_empty(Domain(categories, spec.axes.within or None), source.count or DEFAULT_COUNT), spec)


def _check_empty(spec: Spec) -> None:
    for one in OF_FILES:
        if value_of(spec, one):
            raise InputError(f"{arg[one.argument]} requires a table. Leave it out.")
    if spec.source.keep_order:
        raise InputError(f"{arg.keep_order} requires a table. Leave it out: cells are in the order of the categories.")


def _quoted(table: Table, spec: Spec) -> Table:
    """A table over declared cells, with formulas among its labels quoted if that is asked for."""
    return quoted_table(table) if spec.axes.quote_formulas else table


def _of_counts(spec: Spec, data: str, categories: dict[str, Any] | None, upload: Upload | None) -> Table:
    """The table in a file; a column named in a kept margin, or a focus, is an axis even if it contains numbers."""
    source = spec.source
    if data == "-" and upload is None and sys.stdin is None:
        raise InputError("Standard input must be open to read a table from it, but it is closed.")
    named = [name for margin in spec.keep.margins or [] for name in _names_of(margin)]
    named += axes_of(spec.mechanism)
    declared = DeclaredColumns.checked(
        source.count or DEFAULT_COUNT,
        spec.axes.names or None,
        within=spec.axes.within or None,
        domain=categories,
        drop=source.drop or [],
        drop_rows=source.drop_rows,
        carry=source.carry or [],
        wide=source.wide,
        keep_order=bool(source.keep_order),
        dense=bool(spec.axes.dense),
        quote_formulas=bool(spec.axes.quote_formulas),
        named=named,
    )
    form = FileForm.checked(source.sheet, source.encoding, source.structure, source.flags or {})
    return table_in(upload or (sys.stdin.buffer if data == "-" else data), declared, form)


def _names_of(margin: str | list[str]) -> list[str]:
    """The columns that a margin may name: a comma separates axes, unless it is part of the name of one."""
    return [margin, *_parts(margin)] if isinstance(margin, str) else margin


def _of_records(spec: Spec, counted: bool, upload: Upload | None) -> Table:
    """The counts of records; or their declared cells without any, because a plan depends on nothing else."""
    from keepsum.sources.records.counting import count_records
    from keepsum.sources.records.declaring import declare_cells

    # Refuse what describes a file of counts
    for one in OF_COUNTS:
        if asks(value_of(spec, one)):
            raise InputError(f"{arg[one.argument]} must not be combined {arg.by:with}, which counts records.")
    records = spec.records
    cells = declare_cells(
        records.by or [],
        categories_of(spec),
        within=spec.axes.within or None,
        bins={column: [str(edge) for edge in edges] for column, edges in (records.bins or {}).items()},
        missing=records.missing or {},
        unit=records.unit,
        max_rows_per_unit=records.max_rows_per_unit,
    )
    if not counted:
        return _empty(cells.domain, DEFAULT_COUNT, cells.records)
    source = spec.source
    if source.data is None:
        raise InputError(f"Records must be given: name their file, and the columns to count them by {arg.by:with}.")
    if upload is not None:
        return count_records(upload, cells, source.table, DEFAULT_COUNT)
    if source.data == "-":
        raise InputError("Records must be in a file or a database, got standard input. Save them as a file first.")
    return count_records(source.data, cells, source.table, DEFAULT_COUNT)


def _empty(domain: Domain, count: str, records: Any = None) -> Table:
    check_room(domain.size, f"A table of {domain.size:,} cells", BYTES_A_CELL)
    return Table(domain, np.zeros(domain.size, dtype=np.int64), count, records=records)


def categories_of(spec: Spec) -> dict[str, Any] | None:
    """The declared categories, of the spec itself and of its file of categories."""
    axes = spec.axes
    if not axes.categories and axes.domain is None:
        return None
    from_file = {} if axes.domain is None else read_domain(axes.domain)
    declared = axes.categories or {}
    for axis in declared:
        if axis in from_file:
            raise InputError(
                f"Categories of axis {the.column(axis)} must be declared once, {arg.categories:with} or {arg.domain}."
            )
    return {**declared, **from_file}


def kept_of(spec: Spec, table: Table) -> Invariants:
    """The totals to keep."""
    keep = spec.keep
    margins = [margin_of(margin, table.domain.axes) for margin in keep.margins or []]
    invariants = table.keep(*margins, total=bool(keep.total))
    for path in keep.files or []:
        invariants = invariants + read_keep(path, table)
    if keep.subset:
        declared = [msgspec.structs.asdict(subset) for subset in keep.subset]
        named = [{key: value for key, value in subset.items() if value is not None} for subset in declared]
        invariants = invariants + subsets(named, table.domain, "[[keep.subset]]")
    if len(set(invariants.names)) < invariants.height:
        raise InputError(f"Kept totals must have different names. Rename the totals in the files of {arg.keep_file}.")
    if keep.nothing and invariants.height:
        raise InputError(f"{arg.keep_nothing} must not be combined with totals to keep. {arg.keep_nothing:Leave out}.")
    if not (invariants.height or keep.nothing or spec.mechanism.focus):
        raise InputError(
            f"At least one total must be kept. {arg.keep:Pass}, {arg.keep_total}, {arg.keep_file}, or "
            f"{arg.keep_nothing}."
        )
    return invariants


def margin_of(margin: str | list[str], axes: Sequence[str]) -> list[str]:
    """The axes of a margin; commas separate them, unless that is the name of an axis."""
    if isinstance(margin, list):
        return margin
    return [margin] if margin in axes else _parts(margin)


def _parts(margin: str) -> list[str]:
    return [name.strip() for name in margin.split(",")]
