"""What a user declares about records: the cells, the bins, the missing labels and the unit. Nothing is read here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from keepsum._arguments import check_text, check_texts, check_whole, check_within
from keepsum._saying import arg, the
from keepsum._text import shown_name, shown_names, type_of
from keepsum.errors import DomainError, InputError
from keepsum.tables.axes import MAX_CELLS, Label, make_axes, quoted
from keepsum.tables.domain import Domain
from keepsum.tables.origins import LARGEST_BOUND, Records
from keepsum.tables.source import with_parents

# Bins of numbers and dates: declared edges, and the categories that they make.

Edge: TypeAlias = int | Decimal | date
Kind: TypeAlias = Literal["whole", "decimal", "date"]

LARGEST_EDGE = 2**53  # below this a whole number is exact in 64-bit floats too
_WHOLE = re.compile(r"[+-]?[0-9]{1,16}")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True)
class Bins:
    """The bins of one column: each holds what is at least its lower edge and below its upper one.

    Examples
    --------
    >>> Bins.of("age", [0, 18, 65, None]).labels
    ('0-17', '18-64', '65+')
    >>> Bins.of("share", [0.0, 0.5, 1.0]).labels
    ('[0, 0.5)', '[0.5, 1)')
    >>> Bins.of("born", [None, "2020-01-01", "2020-07-01"]).labels
    ('before 2020-01-01', '2020-01-01 to 2020-06-30')
    """

    kind: Kind
    edges: tuple[Edge | None, ...]

    @classmethod
    def of(cls, column: str, edges: Any) -> Bins:
        """The bins between edges that a user declares."""
        if isinstance(edges, (str, bytes, Mapping)) or not isinstance(edges, Iterable):
            raise InputError(f"Bins of {shown_name(column)} must be a list of edges, got {type_of(edges)}.")
        given = list(edges)
        parsed = [_edge(edge, column) for edge in given]
        if len(parsed) < 2 or None in parsed[1:-1] or all(edge is None for edge in parsed):
            raise InputError(
                f"Bins of {shown_name(column)} must have at least two edges, of which only the first and the last may "
                f"be open."
            )
        kind = _kind([edge for edge in parsed if edge is not None], column)
        of_one_kind = tuple(Decimal(e) if kind == "decimal" and isinstance(e, int) else e for e in parsed)
        finite: list[Any] = [edge for edge in of_one_kind if edge is not None]
        if any(b <= a for a, b in pairwise(finite)):
            raise InputError(f"Edges of the bins of {shown_name(column)} must increase.")
        return cls(kind, of_one_kind)

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories, one per bin, in order."""
        return tuple(_label(low, high) for low, high in pairwise(self.edges))


def check_bins(bins: Any) -> dict[str, Bins]:
    """The bins of each column; None means no bins."""
    if bins is None:
        return {}
    if not isinstance(bins, Mapping):
        raise InputError(f"{arg.bins} must be a mapping such as {{'age': [0, 18, 65, None]}}, got {type_of(bins)}.")
    for column in bins:
        if not isinstance(column, str):
            raise InputError(f"{arg.bins} must map names of columns to edges, got {type_of(column)}.")
    return {column: Bins.of(column, edges) for column, edges in bins.items()}


def _edge(given: Any, column: str) -> Edge | None:
    edge: Any = given.item() if isinstance(given, np.generic) else given
    if isinstance(edge, str):
        edge = _parsed(edge.strip())
    elif isinstance(edge, float):
        edge = Decimal(repr(edge))
    is_edge = edge is None or isinstance(edge, (int, Decimal, date))
    if not is_edge or isinstance(edge, (bool, datetime)) or (isinstance(edge, Decimal) and not edge.is_finite()):
        raise InputError(
            f"Edges of the bins of {shown_name(column)} must be numbers, or dates such as 2020-01-31, and nothing for "
            f"an open end."
        )
    if isinstance(edge, (int, Decimal)) and not -LARGEST_EDGE < edge < LARGEST_EDGE:
        raise InputError(f"Edges of the bins of {shown_name(column)} must be below 2^53.")
    checked: Edge | None = edge
    return checked


def _parsed(text: str) -> Any:
    if not text:
        return None
    if _WHOLE.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return Decimal(text)
    if _DATE.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:  # 2020-02-31
            return text
    return text


def _kind(edges: list[Edge], column: str) -> Kind:
    dates = sum(isinstance(edge, date) for edge in edges)
    if dates not in (0, len(edges)):
        raise InputError(f"Edges of the bins of {shown_name(column)} must all be numbers or all be dates.")
    if dates:
        return "date"
    return "whole" if all(isinstance(edge, int) for edge in edges) else "decimal"


def _label(low: Any, high: Any) -> str:
    """The category of one bin; the type of the edges decides how it is written."""
    edge = low if low is not None else high
    if isinstance(edge, date):
        return _date_label(low, high)
    if isinstance(edge, Decimal):
        if low is None or high is None:
            return f"{_digits(low)} or more" if high is None else f"under {_digits(high)}"
        return f"[{_digits(low)}, {_digits(high)})"
    if low is None or high is None:
        return f"{low}+" if high is None else f"under {high}"
    last = high - 1
    return f"{low}" if low == last else f"{low} to {last}" if low < 0 else f"{low}-{last}"


def _date_label(low: date | None, high: date | None) -> str:
    if low is None or high is None:
        return f"from {low}" if low is not None else f"before {high}"
    last = high - timedelta(days=1)
    return f"{low}" if low == last else f"{low} to {last}"


def _digits(edge: Decimal) -> str:
    text = format(edge, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def check_missing(missing: Any) -> dict[str, Any]:
    """The category of missing labels of each column; None means that none may be missing."""
    if missing is None:
        return {}
    if not isinstance(missing, Mapping):
        raise InputError(f"{arg.missing} must be a mapping such as {{'race': 'unknown'}}, got {type_of(missing)}.")
    for column, label in missing.items():
        if not isinstance(column, str):
            raise InputError(f"{arg.missing} must map names of columns to categories, got {type_of(column)}.")
        is_whole = isinstance(label, int) and not isinstance(label, bool) and abs(label) < LARGEST_EDGE
        if not is_whole and (not isinstance(label, str) or not label):
            raise DomainError(
                f"The category of missing values of {shown_name(column)} must be text or a whole number "
                f"below 2^53, got {type_of(label)}."
            )
    return dict(missing)


# What keys say about values that belong to no cell, and what text must look like to be a number or a date.

OUT_OF_RANGE, NOT_A_VALUE, MISSING = -1, -2, -3  # instead of the number of a bin
NOT_WHOLE, NO_LABEL = "\x01 not a whole number", "\x01 not a label"  # instead of a label, and never one themselves
UNIT_WHOLE, UNIT_TEXT, UNIT_MISSING, UNIT_UNUSABLE = 0, 1, 2, 3  # how a unit is identified
LARGEST_FLOAT = 1.7976931348623157e308

# Values in columns of text, such as those of a CSV file.
WHOLE_TEXT = r" *[+-]?[0-9]{1,15} *"
DECIMAL_TEXT = r" *[+-]?([0-9]{1,40}[.]?[0-9]{0,40}|[.][0-9]{1,40})([eE][+-]?[0-9]{1,2})? *"
_ANY_YEAR = (
    r"[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_LEAP_YEAR = r"([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?"
DATE_TEXT = rf"({_ANY_YEAR}|{_LEAP_YEAR})([ T]{_TIME})?"


def matches(text: Any, pattern: str, dialect: str) -> Any:
    """Whether all of a text is like a pattern. In SQLite, whose patterns are Python's, $ would allow a line end."""
    return text.re_search(rf"^({pattern})\Z" if dialect == "sqlite" else f"^({pattern})$")


def whole(number: Any) -> tuple[Any, Any]:
    """Whether a float is a whole number below 2^53, and a float that every database can convert: 0.5 if it is not."""
    import ibis

    bounded = ibis.cases((number.abs() < LARGEST_EDGE, number), else_=0.5)
    return bounded == bounded.floor(), bounded


def day_number(text: Any, usable: Any) -> tuple[Any, Any]:
    """Whether text is a date, and the date as a number such as 20200131, which no collation compares differently."""
    import ibis

    safe = ibis.cases((usable, text), else_="0001-01-01")  # so that no order of evaluation can make the cast fail
    number = safe.left(10).replace("-", "").cast("int64")
    return usable & (number >= 1_01_01), number  # there is no year 0


@dataclass(frozen=True)
class CellsOfRecords:
    """The cells that records are counted into."""

    domain: Domain  # all cells, from the declarations alone
    bins: Mapping[str, Bins]  # the columns that are cut into bins
    missing: Mapping[str, Label]  # the category of missing labels, for the columns that may have some
    records: Records  # the unit, and how many records of each are counted at most


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
        raise InputError(f"Columns to count by must be one or more different columns. Name them {arg.by:with}.")
    if not isinstance(domain, (Domain, Mapping, type(None))):
        raise InputError(f"{arg.domain} must be a Domain or a mapping from axes to categories, got {type_of(domain)}.")
    cuts, absent = check_bins(bins), check_missing(missing)
    parents = _parents(domain, within)
    axes = with_parents(columns, parents) if set(parents) <= set(columns) else []
    if not axes:
        raise InputError(f"Axes {arg.within:in} must be among the columns to count by. Name them {arg.by:with}.")
    for what, given in (("Bins", cuts), ("Categories of missing values", absent)):
        others = [name for name in given if name not in axes]
        if others:
            raise InputError(
                f"{what} must be declared for columns to count by, {quoted(axes)}, got {shown_names(others)}. Correct "
                f"the name, or add the column {arg.by:with}."
            )
    for name in cuts:
        if name in parents or name in parents.values():
            raise InputError(f"Column {shown_name(name)} must not be nested, because it is cut into bins.")
    records = check_unit(unit, max_rows_per_unit, axes)
    cells = _domain(axes, domain, parents, _binned(cuts, absent), most_cells)
    for name, label in absent.items():
        if name not in cuts and str(label) not in map(str, cells.axis(name).labels):
            raise DomainError(
                f"The category of missing values of {name!r} must be one of its categories. Declare it "
                f"{arg.domain:with}."
            )
    return CellsOfRecords(cells, cuts, absent, records)


def check_unit(unit: Any, max_rows: Any, axes: Sequence[str]) -> Records:
    """The unit and its bound: both or neither, or the bound 1 alone, if every record is declared to be of another."""
    if unit is None and max_rows is None:
        return Records()
    most = None if max_rows is None else check_whole(max_rows, "The number of records per unit", 1, LARGEST_BOUND)
    if most is None or (unit is None and most > 1):
        raise InputError(
            f"{arg.unit} and {arg.max_rows_per_unit} must be given together: a guarantee per unit needs both. "
            f"{arg.max_rows_per_unit(1)} alone declares that every record is of another person."
        )
    if unit is None:
        return Records(None, most)
    unit = check_text(unit, "The column of the unit")
    if unit in axes:
        raise InputError(f"The column of the unit must not be an axis, which is published, got {the.name(unit)}.")
    return Records(unit, most)


def _parents(domain: Domain | Mapping[str, Any] | None, within: Mapping[str, str] | None) -> dict[str, str]:
    parents = check_within(within)
    if not isinstance(domain, Domain):
        return parents
    if within is not None and parents != domain.within:
        raise InputError(f"{arg.within} must agree with the domain, which already declares the nesting. Leave it out.")
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
        raise InputError(f"Categories of {quoted(both)} must be declared once: {arg.bins:by} or {arg.domain:by}.")
    undeclared = [name for name in axes if name not in known and name not in binned]
    if undeclared:
        raise InputError(
            "Every column to count by must have declared categories, because nothing is inferred from records, got "
            f"none for {shown_names(undeclared)}. Declare them {arg.domain:with}, or cut numbers and dates "
            f"{arg.bins:with}."
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
