"""What a user declares about records: the cells, the bins, the missing labels and the unit. Nothing is read here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keepsum._arguments import check_text, check_texts, check_whole, check_within
from keepsum._text import shown_name, shown_names, type_of
from keepsum.errors import DomainError, InputError
from keepsum.sources.records.bins import Bins, check_bins, check_missing
from keepsum.tables.axes import MAX_CELLS, Label, make_axes, quoted
from keepsum.tables.domain import Domain
from keepsum.tables.records import LARGEST_BOUND, Records
from keepsum.tables.source import with_parents


@dataclass(frozen=True)
class CellsOfRecords:
    """The cells that records are counted into.

    Attributes
    ----------
    domain
        All cells, from the declarations alone.
    bins
        The columns that are cut into bins.
    missing
        The category of missing labels, for the columns that may have some.
    records
        The unit, and how many records of each are counted at most.
    """

    domain: Domain
    bins: Mapping[str, Bins]
    missing: Mapping[str, Label]
    records: Records


def declare_cells(
    by: str | Sequence[str],
    domain: Domain | Mapping[str, Any] | None,
    *,
    within: Mapping[str, str] | None = None,
    bins: Mapping[str, Any] | None = None,
    missing: Mapping[str, Any] | None = None,
    unit: str | None = None,
    max_rows_per_unit: int | None = None,
    most_cells: int = MAX_CELLS,
) -> CellsOfRecords:
    """The cells of records from what a user declares, at most so many; see ``ks.tabulate``."""
    columns = check_texts(by, "Columns to count by")
    if not columns or len(set(columns)) < len(columns) or "" in columns:
        raise InputError("Columns to count by must be one or more different columns. Name them with by=.")
    if not isinstance(domain, (Domain, Mapping, type(None))):
        raise InputError(f"domain= must be a Domain or a mapping from axes to categories, got {type_of(domain)}.")
    cuts, absent = check_bins(bins), check_missing(missing)
    parents = _parents(domain, within)
    axes = with_parents(columns, parents) if set(parents) <= set(columns) else []
    if not axes:
        raise InputError("Axes in within= must be among the columns to count by. Name them with by=.")
    for what, given in (("Bins", cuts), ("Categories of missing values", absent)):
        others = [name for name in given if name not in axes]
        if others:
            raise InputError(
                f"{what} must be declared for columns to count by, {quoted(axes)}, got {shown_names(others)}. Correct "
                f"the name, or add the column with by=."
            )
    for name in cuts:
        if name in parents or name in parents.values():
            raise InputError(f"Column {shown_name(name)} must not be nested, because it is cut into bins.")
    records = check_unit(unit, max_rows_per_unit, axes)
    cells = _domain(axes, domain, parents, _binned(cuts, absent), most_cells)
    for name, label in absent.items():
        if name not in cuts and str(label) not in map(str, cells.axis(name).labels):
            raise DomainError(
                f"The category of missing values of {name!r} must be one of its categories. Declare it with domain=."
            )
    return CellsOfRecords(cells, cuts, absent, records)


def check_unit(unit: Any, max_rows: Any, axes: Sequence[str]) -> Records:
    """The unit and its bound: both or neither, or the bound 1 alone, if every record is declared to be of another."""
    if unit is None and max_rows is None:
        return Records()
    most = None if max_rows is None else check_whole(max_rows, "The number of records per unit", 1, LARGEST_BOUND)
    if most is None or (unit is None and most > 1):
        raise InputError(
            "unit= and max_rows_per_unit= must be given together: a guarantee per unit needs both. "
            "max_rows_per_unit=1 alone declares that every record is of another person."
        )
    if unit is None:
        return Records(None, most)
    unit = check_text(unit, "The column of the unit")
    if unit in axes:
        raise InputError(f"The column of the unit must not be an axis, which is published, got {shown_name(unit)}.")
    return Records(unit, most)


def _parents(domain: Domain | Mapping[str, Any] | None, within: Mapping[str, str] | None) -> dict[str, str]:
    parents = check_within(within)
    if not isinstance(domain, Domain):
        return parents
    if within is not None and parents != domain.within:
        raise InputError("within= must agree with the domain, which already declares the nesting. Leave it out.")
    return domain.within


def _binned(bins: Mapping[str, Bins], missing: Mapping[str, Label]) -> dict[str, list[str]]:
    """The categories of the columns that are cut into bins; that of missing values comes last."""
    binned: dict[str, list[str]] = {}
    for name, cut in bins.items():
        extra = [str(missing[name])] if name in missing else []
        if extra and extra[0] in cut.labels:
            raise DomainError(f"The category of missing values of {name!r} must not be one of its bins.")
        binned[name] = [*cut.labels, *extra]
    return binned


def _domain(
    axes: Sequence[str],
    declared: Domain | Mapping[str, Any] | None,
    within: Mapping[str, str],
    binned: Mapping[str, list[str]],
    most: int,
) -> Domain:
    """The declared categories and the bins as one domain, with every axis declared and no other."""
    known: Sequence[Any] = declared.axes if isinstance(declared, Domain) else list(declared or ())
    both = [name for name in binned if name in known]
    if isinstance(declared, Domain):
        both = [name for name in both if list(declared.axis(name).labels) != binned[name]]
    if both:
        raise InputError(f"Categories of {quoted(both)} must be declared once: by bins= or by domain=.")
    undeclared = [name for name in axes if name not in known and name not in binned]
    if undeclared:
        raise InputError(
            f"Every column to count by must have declared categories, because nothing is inferred from records, got "
            f"none for {shown_names(undeclared)}. Declare them with domain=, or cut numbers and dates with bins=."
        )
    extra = [name for name in known if name not in axes]
    if extra:
        raise InputError(
            f"Categories must be declared for columns to count by, {quoted(axes)}, got {shown_names(extra)} as well."
        )
    if isinstance(declared, Domain):
        fresh = {name: labels for name, labels in binned.items() if name not in known}
        return declared * Domain(fresh) if fresh else declared
    categories = {name: binned[name] if name in binned else (declared or {})[name] for name in axes}
    return Domain.of(make_axes(categories, within), most=most)
