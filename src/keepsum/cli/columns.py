"""Columns on the command line: ``--axes a,b --within county:state --carry fips:county --flag OBS_STATUS=A``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from keepsum.cli.categories import parse_categories
from keepsum.errors import InputError


def parse_names(texts: Sequence[str] | None) -> list[str]:
    """Names with commas between them.

    >>> parse_names(["a,b", "c"])
    ['a', 'b', 'c']
    """
    return [name for text in texts or [] for name in text.split(",")]


def parse_carry(texts: Sequence[str] | None) -> list[str] | dict[str, str]:
    """Columns to carry, each with its axis if one of them has one.

    >>> parse_carry(["fips,name"]), parse_carry(["fips:county"])
    (['fips', 'name'], {'fips': 'county'})
    """
    pairs = [name.partition(":") for name in parse_names(texts)]
    if not any(colon for _, colon, _ in pairs):
        return [name for name, _, _ in pairs]
    for name, _, axis in pairs:
        if not name or not axis:
            raise InputError(f"Option --carry must be COLUMN:AXIS such as fips:county, got {name!r}.")
    return {name: axis for name, _, axis in pairs}


def parse_wide(text: str | None) -> str | dict[str, Any] | None:
    """An axis whose categories are columns, with these if they are named.

    >>> parse_wide("race"), parse_wide("race=white,black")
    ('race', {'race': ['white', 'black']})
    """
    return text if text is None or "=" not in text else parse_categories([text], {}, "--wide")


def parse_flags(texts: Iterable[str]) -> dict[str, str]:
    """The attributes of ``--flag``.

    >>> parse_flags(["OBS_STATUS=A"])
    {'OBS_STATUS': 'A'}
    """
    flags: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals or flags.setdefault(name, value) != value:
            raise InputError(f"Option --flag must give an attribute one value, such as OBS_STATUS=A, got {text!r}.")
    return flags


def parse_within(texts: Iterable[str]) -> dict[str, str]:
    """The parents of nested axes.

    >>> parse_within(["county:state"])
    {'county': 'state'}
    """
    nesting: dict[str, str] = {}
    for text in texts:
        child, colon, parent = text.partition(":")
        if not (child and colon and parent):
            raise InputError(f"Option --within must be CHILD:PARENT such as county:state, got {text!r}.")
        if nesting.setdefault(child, parent) != parent:
            raise InputError(f"Option --within must give {child!r} one parent, got two.")
    return nesting
