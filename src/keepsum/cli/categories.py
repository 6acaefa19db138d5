"""Names and labels on the command line: ``--categories 'education=Low,Medium,High,Very High'``, ``--drop 'a,"b, c"'``.

One rule for all: a name or label that contains what separates it from others is put in double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keepsum.errors import InputError
from keepsum.specs.quoting import listed

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
        values.append(_unquoted(match[1]))
        position = match.end()
        if match[2] != separator:
            return values, position if match[2] == end else 0
    return values, 0


def parse_names(texts: Iterable[str] | None, option: str) -> list[str]:
    """Names with commas between them; one with a comma or a quote is put in double quotes.

    >>> parse_names(["county, Age group", '"Region, state"'], "Option --drop")
    ['county', 'Age group', 'Region, state']
    """
    names: list[str] = []
    for text in texts or []:
        values, end = _values(text, ",", "")
        if end < len(text) or not all(values):
            raise InputError(
                f"{option} must be names with commas between them, a name with a comma in double quotes, such as "
                f'county,"Region, state", got {text!r}.'
            )
        names += values
    return names


def parse_name(text: str | None) -> str | None:
    """A single name, which may be in double quotes.

    >>> parse_name('"Person: id"'), parse_name("Person: id"), parse_name('5" pipe')
    ('Person: id', 'Person: id', '5" pipe')
    """
    return _unquoted(text.strip()) if text is not None and re.fullmatch(_QUOTED, text.strip()) else text


def parse_margin(text: str) -> str | list[str]:
    """The axes of a margin: names if any of them is in double quotes, else the text, which may be one name with commas.

    >>> parse_margin("county,sex"), parse_margin('"Region, state",sex')
    ('county,sex', ['Region, state', 'sex'])
    """
    return parse_names([text], "A margin") if '"' in text else text


def parse_focus(texts: Sequence[str]) -> dict[str, Any]:
    """The share, or epsilon, of each of some totals, by their axes as a spec has them.

    >>> parse_focus(["county=2", '"Region, state",sex = 1/3'])
    {'county': '2', '"Region, state",sex': '1/3'}
    """
    focus: dict[str, Any] = {}
    for text in texts:
        axes, end = _values(text, ",", "=")
        weight = text[end:].strip()
        if not end or not weight or ("" in axes and len(axes) > 1):
            raise InputError(f"Option --focus must be AXIS=SHARE such as county=2, got {text!r}.")
        key = "" if axes == [""] else listed(axes)
        if key in focus:
            raise InputError(f"Option --focus must name different totals, got {key!r} twice.")
        focus[key] = weight
    return focus


def parse_carried(texts: Sequence[str] | None) -> list[str] | dict[str, str]:
    """Columns to carry, each with its axis if one of them has one.

    >>> parse_carried(["fips,iso"]), parse_carried(['"Age: code":Age group'])
    (['fips', 'iso'], {'Age: code': 'Age group'})
    """
    pairs = [part for text in texts or [] for part in _pairs(text, "--carry", "COLUMN:AXIS such as fips:county")]
    if all(len(part) == 1 for part in pairs):
        return [part[0] for part in pairs]
    carried: dict[str, str] = {}
    for part in pairs:
        if len(part) != 2:
            raise InputError(f"Option --carry must be COLUMN:AXIS such as fips:county, got {':'.join(part)!r}.")
        carried[part[0]] = part[1]
    return carried


def parse_nesting(texts: Sequence[str] | None) -> dict[str, str]:
    """The parent of each nested axis, from the option --within.

    >>> parse_nesting(["county:state", '"Age: years":Age group'])
    {'county': 'state', 'Age: years': 'Age group'}
    """
    nesting: dict[str, str] = {}
    for text in texts or []:
        names, end = _values(text, ":", "")
        if end < len(text) or len(names) != 2 or not all(names):
            raise InputError(f"Option --within must be CHILD:PARENT such as county:state, got {text!r}.")
        child, parent = names
        if nesting.setdefault(child, parent) != parent:
            raise InputError(f"Option --within must give {child!r} one parent, got two.")
    return nesting


def _pairs(text: str, option: str, form: str) -> list[list[str]]:
    """Names with commas between them, each of which may be followed by a colon and another."""
    parts: list[list[str]] = [[]]
    position = 0
    value = re.compile(rf"\s*({_QUOTED}|[^,:\"]*?)\s*([,:]|\Z)")
    while match := value.match(text, position):
        parts[-1].append(_unquoted(match[1]))
        position = match.end()
        if not match[2]:
            break
        if match[2] == ",":
            parts.append([])
    if position < len(text) or not all(name for part in parts for name in part):
        raise InputError(f"Option {option} must be {form}, got {text!r}.")
    return parts


def _unquoted(text: str) -> str:
    return text[1:-1].replace('""', '"') if text.startswith('"') else text
