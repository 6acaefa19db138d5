"""Columns on the command line: ``--wide race=white,black --flag OBS_STATUS=A``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from keepsum.cli.categories import parse_categories
from keepsum.errors import InputError


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
