"""Counts of any origin as 64-bit integers, with a check for everything that can be wrong.

Messages name the row and the column, never a count.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arrays import IntArray
from keepsum.errors import DataError
from keepsum.lattice.matrix import INT64_MAX

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
            f"Counts in column {column!r} must have a sum that fits 64 bits; it does not fit. Check the units."
        )
    return counts


def _refuse(bad: npt.NDArray[np.bool_], problem: str, where: Callable[[int], str], column: str) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        raise _bad_count(where(int(rows[0])), column, problem)


def _bad_count(place: str, column: str, problem: str) -> DataError:
    return DataError(f"Count in {place}, column {column!r}, must be a whole number, but it {problem}.")


def _from_objects(values: list[Any], where: Callable[[int], str], column: str, decimals: bool) -> IntArray:
    """Counts from Python objects: text from a file, decimals, integers of any size."""
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
