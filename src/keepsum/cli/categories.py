"""Categories that are declared in a command: ``--categories 'education=Low,Medium,High,Very High'``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from keepsum.errors import InputError

# What stands before a mark: a text in quotes, with quotes doubled inside, or one without quotes.
_QUOTED = r'"(?:[^"]|"")*"'
FORM = "AXIS=LABEL,LABEL such as 'sex=f,m', or CHILD:PARENT=LABEL,LABEL such as 'county:IL=Cook,Lake'"


def parse_categories(texts: Iterable[str], within: Mapping[str, str]) -> dict[str, Any]:
    """The categories of axes from the options of a command, as ``Domain`` takes them.

    Blanks around a label are left out. A label with a comma, a quote or blanks at its ends stands in double quotes,
    with quotes doubled inside. Categories of a nested axis are given by parent, outermost first, with colons.

    Examples
    --------
    >>> parse_categories(['education=Low, Very High', 'town="Rome, NY","5"" pipe"'], {})
    {'education': ['Low', 'Very High'], 'town': ['Rome, NY', '5" pipe']}
    >>> parse_categories(["county:IL=Cook,Lake", "county:WI=Lake"], {"county": "state"})
    {'county': {('IL',): ['Cook', 'Lake'], ('WI',): ['Lake']}}
    """
    declared: dict[str, Any] = {}
    listed: set[tuple[str, ...]] = set()
    for text in texts:
        left, labels = _sides(text)
        axis, *path = left
        if axis not in within:  # a colon belongs to its name
            axis, path = ":".join(left), []
        elif not path:
            raise InputError(
                f"Option --categories must say within which {within[axis]!r} categories of {axis!r} lie, such as "
                f"{axis}:PARENT=LABEL,LABEL, got {text!r}."
            )
        if len(set(labels)) < len(labels):
            raise InputError(f"Option --categories must have different labels, got one twice in {text!r}.")
        if (axis, *path) in listed:
            raise InputError(f"Option --categories must list those of {':'.join(left)!r} once, got them twice.")
        listed.add((axis, *path))
        if path:
            declared.setdefault(axis, {})[tuple(path)] = labels
        else:
            declared[axis] = labels
    return declared


def _sides(text: str) -> tuple[list[str], list[str]]:
    """The axis with the parents, and the labels."""
    left, end = _pieces(text, ":", "=")
    labels, last = _pieces(text[end:], ",", "")
    if not end or last < len(text) - end or not all((*left, *labels)):
        raise InputError(f"Option --categories must be {FORM}, got {text!r}.")
    return left, labels


def _pieces(text: str, between: str, last: str) -> tuple[list[str], int]:
    """The pieces of a text up to a mark, or to its end, and where the rest starts; 0 if the mark does not come."""
    piece = re.compile(rf"\s*({_QUOTED}|[^{between}{last}\"]*?)\s*([{between}{last}]|\Z)")
    found: list[str] = []
    position = 0
    while match := piece.match(text, position):
        found.append(match[1][1:-1].replace('""', '"') if match[1].startswith('"') else match[1])
        position = match.end()
        if match[2] != between:
            return found, position if match[2] == last else 0
    return found, 0
