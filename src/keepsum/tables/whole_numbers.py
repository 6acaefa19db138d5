"""Which columns may hold counts: by the kind of their values, never by how large they are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from keepsum.tables.counts import WHOLE, is_missing

_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}([./-])\d{1,2}\2\d{2,4}")
_NUMBER = re.compile(r"[+-]?[0-9]*[.,]?[0-9]+(?:[eE][+-]?[0-9]+)?%?")
_GROUPED = re.compile(r"[0-9]{1,3}([.,][0-9]{3})+")  # 1,000 may be meant as a whole number


def are_whole(values: Iterable[Any]) -> bool:
    """Whether all values that are not missing are whole numbers, and there are some.

    >>> are_whole(["5", "12", ""]), are_whole(["5", "x"]), are_whole([1.5]), are_whole(["2020-01-31"]), are_whole([])
    (True, False, False, False, False)
    """
    present = [value for value in values if not _is_blank(value)]
    return bool(present) and all(map(_is_whole, present))


def may_be_counts(values: Iterable[Any]) -> bool:
    """Whether some values are whole numbers, and none is a date or has decimals; others may be signs such as ``<5``.

    >>> [may_be_counts(values) for values in (["5", "<5"], ["5", "0.5"], ["2020-01-31", "5"], ["x"])]
    [True, False, False, False]
    """
    present = [value for value in values if not _is_blank(value)]
    return any(map(_is_whole, present)) and not any(map(_is_other, present))


def _is_blank(value: Any) -> bool:
    return is_missing(value) or (isinstance(value, str) and not value.strip())


def _is_whole(value: Any) -> bool:
    if isinstance(value, str):
        return bool(WHOLE.fullmatch(value.strip()))
    if isinstance(value, (float, Decimal, np.floating)):
        return bool(np.isfinite(float(value)) and value == int(value))
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_other(value: Any) -> bool:
    """Whether a value is a date or a number with decimals."""
    if isinstance(value, str):
        text = value.strip()
        is_decimal = _NUMBER.fullmatch(text) and not WHOLE.fullmatch(text) and not _GROUPED.fullmatch(text)
        return bool(is_decimal or _DATE.fullmatch(text))
    return isinstance(value, (date, np.datetime64, float, Decimal, np.floating)) and not _is_whole(value)
