"""Categories declared on the command line: ``--categories 'education=Low,Medium,High,Very High'``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from keepsum.errors import InputError

_QUOTED = r'"(?:[^"]|"")*"'  # text in double quotes, with quotes doubled inside
FORM = "AXIS=LABEL,LABEL such as 'sex=f,m', or CHILD:PARENT=LABEL,LABEL such as 'county:IL=Cook,Lake'"


def parse_categories(texts: Iterable[str], within: Mapping[str, str], option: str = "--categories") -> dict[str, Any]:
    """Categories of axes from command-line options, in the form that ``Domain`` takes.

    Blanks around a label are ignored. A label that contains a comma or a quote, or starts or ends with a blank, must be
    in double quotes, with quotes doubled inside. Categories of a nested axis are given per parent, outermost first,
    separated by colons.

    Examples
    --------
    >>> parse_categories(['education=Low, Very High', 'town="Rome, NY","5"" pipe"'], {})
    {'education': ['Low', 'Very High'], 'town': ['Rome, NY', '5" pipe']}
    >>> parse_categories(["county:IL=Cook,Lake", "county:WI=Lake"], {"county": "state"})
    {'county': {('IL',): ['Cook', 'Lake'], ('WI',): ['Lake']}}
    """
    declared: dict[str, Any] = {}
    seen: set[tuple[str, ...]] = set()
    for text in texts:
        target, labels = _split(text, option)
        axis, *path = target
        if axis not in within:  # a colon is part of its name
            axis, path = ":".join(target), []
        elif not path:
            raise InputError(
                f"Option {option} must say within which {within[axis]!r} the categories of {axis!r} are, such as "
                f"{axis}:PARENT=LABEL,LABEL, got {text!r}."
            )
        if len(set(labels)) < len(labels):
            raise InputError(f"Option {option} must have different labels, got one twice in {text!r}.")
        if (axis, *path) in seen:
            raise InputError(f"Option {option} must give the labels of {':'.join(target)!r} once, got them twice.")
        seen.add((axis, *path))
        if path:
            declared.setdefault(axis, {})[tuple(path)] = labels
        else:
            declared[axis] = labels
    return declared


def _split(text: str, option: str) -> tuple[list[str], list[str]]:
    """The axis with its parents, and the labels."""
    target, end = _values(text, ":", "=")
    labels, last = _values(text[end:], ",", "")
    if not end or last < len(text) - end or not all((*target, *labels)):
        raise InputError(f"Option {option} must be {FORM}, got {text!r}.")
    return target, labels


def _values(text: str, separator: str, end: str) -> tuple[list[str], int]:
    """The separated values up to an end mark (or the end of the text), and the position after it; 0 without it."""
    value = re.compile(rf"\s*({_QUOTED}|[^{separator}{end}\"]*?)\s*([{separator}{end}]|\Z)")
    values: list[str] = []
    position = 0
    while match := value.match(text, position):
        values.append(match[1][1:-1].replace('""', '"') if match[1].startswith('"') else match[1])
        position = match.end()
        if match[2] != separator:
            return values, position if match[2] == end else 0
    return values, 0
