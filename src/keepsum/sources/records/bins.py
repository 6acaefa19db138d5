"""Bins of numbers and dates: declared edges, and the categories that they make."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from keepsum._text import shown_name, type_of
from keepsum.errors import DomainError, InputError

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
        raise InputError(f"bins= must be a mapping such as {{'age': [0, 18, 65, None]}}, got {type_of(bins)}.")
    for column in bins:
        if not isinstance(column, str):
            raise InputError(f"bins= must map names of columns to edges, got {type_of(column)}.")
    return {column: Bins.of(column, edges) for column, edges in bins.items()}


def _edge(given: Any, column: str) -> Edge | None:
    """An edge as a number or a date; None if the end is open."""
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
    """An edge in plain digits, without zeros at its end."""
    text = format(edge, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def check_missing(missing: Any) -> dict[str, Any]:
    """The category of missing labels of each column; None means that none may be missing."""
    if missing is None:
        return {}
    if not isinstance(missing, Mapping):
        raise InputError(f"missing= must be a mapping such as {{'race': 'unknown'}}, got {type_of(missing)}.")
    for column, label in missing.items():
        if not isinstance(column, str):
            raise InputError(f"missing= must map names of columns to categories, got {type_of(column)}.")
        is_whole = isinstance(label, int) and not isinstance(label, bool) and abs(label) < LARGEST_EDGE
        if not is_whole and (not isinstance(label, str) or not label):
            raise DomainError(
                f"The category of missing values of {shown_name(column)} must be text or a whole number "
                f"below 2^53, got {type_of(label)}."
            )
    return dict(missing)
