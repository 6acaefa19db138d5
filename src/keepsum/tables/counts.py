"""Counts of any origin as 64-bit integers, and which columns may hold them: by kind, never by size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arrays import IntArray
from keepsum._saying import the
from keepsum.errors import DataError
from keepsum.lattice.matrix import INT64_MAX

# Counts of any origin as 64-bit integers, with a check for everything that can be wrong.
#
# Messages name the row and the column, never a count.

# Digits, and a decimal point or comma with zeros only. Three zeros could as well be thousands (1.000, 1,000), and four
# ten thousands (1,0000, as in East Asia); no digits are grouped by another number.
WHOLE = re.compile(r"([+-]?[0-9]+)(?:[.,](?:0{1,2}|0{5,})?)?")
# What offices write instead of a count: <5, *, .., -, x, NA, (D), suppressed.
_SUPPRESSED = re.compile(
    r"\(?(?:[<≤]=? ?[0-9]+|[*.…:#/†‡–—-]{1,3}|[a-z]|n[./]?a\.?|n[./]?d\.?|nan|null|none|suppressed|confidential)\)?",
    re.IGNORECASE,
)
SUPPRESSED = (
    "is a sign for a suppressed or missing count (such as <5, NA or *), which cannot be read. Take the table as it was "
    "before suppression"
)


def check_counts(
    values: Any, where: Callable[[int], str], column: str, negative: bool = False, decimals: bool = True
) -> IntArray:
    """Counts as int64: whole numbers whose sum fits 64 bits.

    Negative counts are only for released tables; text such as ``15.0`` is only for tables that people made.

    What is refused here depends on the counts. Only the curator sees the message, and nothing is published with it.
    """
    if isinstance(values, np.ma.MaskedArray):
        _refuse(np.ma.getmaskarray(values), "is missing", where, column)
    array = np.asarray(values, dtype=object) if isinstance(values, list) else np.asarray(values)
    if array.dtype.kind in "mM":
        raise _bad_count(where(0), column, "is a time")
    if array.dtype.kind not in "iuf":
        array = _from_objects(array.tolist(), where, column, decimals)
    if array.dtype.kind == "f":
        _refuse(np.isnan(array), "is missing", where, column)
        _refuse(array != np.rint(array), "has decimals", where, column)
        _refuse(np.abs(array) >= 2**53, "is a float too large to be exact", where, column)
    if not negative:
        _refuse(array < 0, "is negative; counts start at 0", where, column)
    if array.dtype.kind == "u":
        _refuse(array > INT64_MAX, "does not fit 64 bits", where, column)
    counts = array.astype(np.int64)
    # A sum of floats cannot overflow; near the limit, the sum of integers decides.
    if (
        counts.size
        and float(np.abs(counts.astype(np.float64)).sum()) > 2**62
        and sum(map(abs, counts.tolist())) > INT64_MAX
    ):
        raise DataError(
            f"Counts in column {the.column(column)} must have a sum that fits 64 bits; it does not fit. Check the "
            "units."
        )
    return counts


def _refuse(bad: npt.NDArray[np.bool_], problem: str, where: Callable[[int], str], column: str) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        raise _bad_count(where(int(rows[0])), column, problem)


def _bad_count(place: str, column: str, problem: str) -> DataError:
    return DataError(
        f"Count in {the.row(place)}, column {the.column(column)}, must be a whole number, but it {problem}."
    )


def _from_objects(values: list[Any], where: Callable[[int], str], column: str, decimals: bool) -> IntArray:
    if all(type(value) is str and value.isascii() and value.isdigit() and len(value) < 19 for value in values):
        return np.array(list(map(int, values)), dtype=np.int64)  # the usual case for files
    counts = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values):
        count = _as_int(value, decimals)
        if isinstance(count, str):
            raise _bad_count(where(row), column, count)
        counts[row] = count
    return counts


def _as_int(value: Any, decimals: bool) -> int | str:
    """The count as an integer within 64 bits, or what is wrong with it."""
    if is_missing(value) or (isinstance(value, str) and not value.strip()):
        return "is missing"
    if isinstance(value, str):
        if decimals and _SUPPRESSED.fullmatch(value.strip()):
            return SUPPRESSED
        match = WHOLE.fullmatch(value.strip())
        if match is None or not (decimals or match[0] == match[1]):
            return "is not in plain digits (without thousands separators or decimals other than 0)"
        text = match[1]
        value = int(text) if len(text) <= 20 else 10**20 * (-1 if text[0] == "-" else 1)
    if isinstance(value, (bool, np.timedelta64)) or not isinstance(value, (int, float, Decimal, np.number)):
        return "is not a number"
    if isinstance(value, (float, np.floating)) and abs(float(value)) >= 2**53:
        return "is a float too large to be exact"
    try:
        number = int(value)
    except (ValueError, ArithmeticError, TypeError):  # an infinite decimal, a complex number
        return "is not a finite number"
    if number != value:
        return "has decimals"
    return number if abs(number) <= INT64_MAX else "does not fit 64 bits"


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or a missing value of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, (float, np.floating)) and bool(value != value)


# Which columns may hold counts: by the kind of their values, never by how large they are.

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
