"""Arguments of the public face, checked for their type: one sentence for whatever is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._text import given, type_of
from keepsum.errors import InputError

LARGEST_FLOAT = 1e300
LARGEST = 2**62  # for numbers of which it is enough to say that they are whole: sums of some still fit 64 bits


def check_whole(value: Any, what: str, least: int, most: int | None = None) -> int:
    """A whole number within its limits.

    >>> check_whole(3, "The number of threads", 1)
    3
    """
    right = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not right or not least <= value <= (LARGEST if most is None else most):
        limits = f"from {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise InputError(f"{what} must be a whole number {limits}, got {given(value)}.")
    return int(value)


def check_number(value: Any, what: str, low: float, high: float) -> float:
    """A number strictly between two others."""
    right = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not right or not low < value < high or abs(value) > LARGEST_FLOAT:
        raise InputError(f"{what} must lie between {low:g} and {high:g}, got {given(value)}.")
    return float(value)


def check_choice(value: Any, what: str, options: Iterable[str]) -> str:
    """One of some words.

    >>> check_choice("l2", "Norm", ("l1", "l2"))
    'l2'
    """
    known = list(options)
    if not isinstance(value, str) or value not in known:
        words = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
        raise InputError(f"{what} must be {words}, got {given(value)}.")
    return value


def check_flag(value: Any, what: str) -> bool:
    """True or False, and nothing that only counts as one."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{what} must be True or False, got {given(value)}.")
    return bool(value)


def check_text(value: Any, what: str) -> str:
    """A text that is not empty: the name of a column, say."""
    if not isinstance(value, str):
        raise InputError(f"{what} must be text, got {type_of(value)}.")
    if not value:
        raise InputError(f"{what} must be text, got an empty one.")
    return value


def check_texts(values: Any, what: str) -> list[str]:
    """Several names, or one by itself."""
    if isinstance(values, str):
        return [values]
    if isinstance(values, (bytes, Mapping)) or not isinstance(values, Iterable):
        raise InputError(f"{what} must be a list of names, got {type_of(values)}.")
    listed = list(values)
    for value in listed:
        if not isinstance(value, str):
            raise InputError(f"{what} must be a list of names, got one with {type_of(value)}.")
    return listed


def check_within(within: Any, problem: type[InputError] = InputError) -> dict[str, str]:
    """Which axis is nested in which; None for no nesting.

    >>> check_within({"county": "state"}), check_within(None)
    ({'county': 'state'}, {})
    """
    if within is None:
        return {}
    if not isinstance(within, Mapping):
        raise problem(f"within= must be a mapping such as {{'county': 'state'}}, got {type_of(within)}.")
    for axis in (*within.keys(), *within.values()):
        if not isinstance(axis, str):
            raise problem(f"within= must map the name of an axis to that of its parent, got {type_of(axis)}.")
    return dict(within)


def as_array(values: Any) -> npt.NDArray[Any] | None:
    """An array of whatever numpy makes of values; None if their rows have several lengths."""
    try:
        return np.asarray(values)
    except (ValueError, TypeError):  # TypeError: an object that says it is an array, and is none
        return None


def check_path(value: Any, what: str) -> Path:
    """The name of a file or a folder."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        raise InputError(f"{what} must be given by its path, got {type_of(value)}.")
    if "\0" in os.fspath(value) or not _can_be_a_name(os.fspath(value)):
        raise InputError(f"{what} must be given by its path, got one with a character that no path has.")
    return Path(value)


def _can_be_a_name(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:  # half a character
        return False
    return True
