"""Type and range checks for arguments of the public API, each with one error sentence."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._saying import arg
from keepsum._text import given, type_of
from keepsum.errors import InputError

LARGEST_FLOAT = 1e300
LARGEST_INTEGER = 2**62  # where no smaller limit is stated: sums of a few still fit 64 bits


def check_whole(value: Any, what: str, least: int, most: int | None = None) -> int:
    """Return a whole number within limits.

    >>> check_whole(3, "The number of threads", 1)
    3
    """
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_whole or not least <= value <= (LARGEST_INTEGER if most is None else most):
        limits = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise InputError(f"{what} must be a whole number {limits}, got {given(value)}.")
    return int(value)


def check_number(value: Any, what: str, low: float, high: float) -> float:
    """Return a number strictly between two limits."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or not low < value < high or abs(value) > LARGEST_FLOAT:
        raise InputError(f"{what} must lie between {low:g} and {high:g}, got {given(value)}.")
    return float(value)


def check_choice(value: Any, what: str, options: Iterable[str]) -> str:
    """Return one of several options.

    >>> check_choice("l2", "Norm", ("l1", "l2"))
    'l2'
    """
    *others, last = options
    if not isinstance(value, str) or value not in (*others, last):
        raise InputError(f"{what} must be {', '.join(map(repr, others))} or {last!r}, got {given(value)}.")
    return plain_text(value)


def check_flag(value: Any, what: str) -> bool:
    """Return True or False; other truthy or falsy values are refused."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{what} must be True or False, got {given(value)}.")
    return bool(value)


def check_text(value: Any, what: str) -> str:
    """Return non-empty text, such as the name of a column."""
    if not isinstance(value, str):
        raise InputError(f"{what} must be text, got {type_of(value)}.")
    if not value:
        raise InputError(f"{what} must be text, got an empty string.")
    return plain_text(value)


def plain_text(text: str) -> str:
    """Text as Python's own type, where it is of another one such as ``numpy.str_``, which no file could be made of.

    >>> type(plain_text(np.str_("county")))
    <class 'str'>
    """
    return text if type(text) is str else str.__str__(text)


def check_texts(values: Any, what: str) -> list[str]:
    """Return a list of names; a single name may come without a list."""
    if isinstance(values, str):
        return [plain_text(values)]
    if isinstance(values, (bytes, Mapping)) or not isinstance(values, Iterable):
        raise InputError(f"{what} must be a list of names, got {type_of(values)}.")
    names = list(values)
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{what} must be a list of names, got a list containing {type_of(name)}.")
    return [plain_text(name) for name in names]


def check_within(within: Any, problem: type[InputError] = InputError) -> dict[str, str]:
    """Return the parent of each nested axis; None means no nesting.

    >>> check_within({"county": "state"}), check_within(None)
    ({'county': 'state'}, {})
    """
    if within is None:
        return {}
    if not isinstance(within, Mapping):
        raise problem(f"{arg.within} must be a mapping such as {{'county': 'state'}}, got {type_of(within)}.")
    for axis in (*within.keys(), *within.values()):
        if not isinstance(axis, str):
            raise problem(f"{arg.within} must map axis names to the names of their parents, got {type_of(axis)}.")
    return {plain_text(axis): plain_text(parent) for axis, parent in within.items()}


def as_array(values: Any) -> npt.NDArray[Any] | None:
    """Whatever array numpy makes of the values; None if rows differ in length."""
    try:
        return np.asarray(values)
    except (ValueError, TypeError):  # TypeError: an object that claims to be an array but is not
        return None


def check_path(value: Any, what: str) -> Path:
    """Return the path of a file or folder."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        raise InputError(f"{what} must be a path, got {type_of(value)}.")
    if "\0" in os.fspath(value) or not _is_encodable(os.fspath(value)):
        raise InputError(f"{what} must be a path, got text with a character that no path can contain.")
    return Path(value)


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True
