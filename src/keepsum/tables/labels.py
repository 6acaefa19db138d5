"""Labels of categories: the order in which they stand when none is declared, and how texts match whole numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import groupby, pairwise
from typing import Any

from keepsum.tables.axes import Axis, Label

# A minus counts only in front of a label: 5-9 is a range, -5 a number.
_NUMBERS = re.compile(r"(^-?[0-9]+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?)")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


def natural_order(label: Label) -> tuple[bool, tuple[Any, ...], str]:
    """A key that sorts labels as people would: numbers in a text by their value, the rest by code points.

    The order of two labels depends on these two alone, never on other labels, the machine or its language. Labels of
    equal value, such as 1 and 01, are told apart by their code points. Whole numbers come before texts, though no axis
    may have both.

    Examples
    --------
    >>> sorted(["85+", "10-14", "5-9", "Under 5"], key=natural_order)
    ['5-9', '10-14', '85+', 'Under 5']
    >>> sorted(["1", "b2", "-5", "01", "b10", "0.25", "-10", "B2", "0.5"], key=natural_order)
    ['-10', '-5', '0.25', '0.5', '01', '1', 'B2', 'b2', 'b10']
    """
    if not isinstance(label, str):
        return False, (label,), ""
    parts = _NUMBERS.split(label)  # texts and numbers by turns, a text first
    # Decimal and not int: its comparisons are exact too, and it reads numbers of any length.
    return True, tuple(Decimal(part) if k % 2 else part for k, part in enumerate(parts)), label


def in_natural_order(axis: Axis) -> bool:
    """Whether the categories of an axis, of a nested one those below each parent, stand in natural order."""
    parents = [0] * len(axis) if axis.parent_codes is None else axis.parent_codes.tolist()
    return all(
        natural_order(a) < natural_order(b)
        for _, family in groupby(zip(parents, axis.labels, strict=True), key=lambda pair: pair[0])
        for (_, a), (_, b) in pairwise(family)
    )


def as_label(label: Any, whole: bool) -> Any:
    """A label that is a text, as a whole number where the axis has these and nothing is lost by it.

    >>> as_label("7", whole=True), as_label("07", whole=True), as_label("7", whole=False)
    (7, '07', '7')
    """
    if whole and isinstance(label, str) and _WHOLE.fullmatch(label):
        return int(label)
    return label


def as_declared(labels: Sequence[Any], declared: Any) -> Sequence[Any]:
    """Labels of a text file as whole numbers, where these are what is declared.

    >>> as_declared(["1", "2"], [1, 2]), as_declared(["1", "2"], {"IL": [1, 2]}), as_declared(["1", "2"], ["1", "2"])
    ([1, 2], [1, 2], ['1', '2'])
    """
    lists = list(declared.values()) if isinstance(declared, Mapping) else [declared]
    if not all(isinstance(categories, (list, tuple)) for categories in lists):
        return labels
    ends = [item[-1] if isinstance(item, (list, tuple)) and item else item for some in lists for item in some]
    whole = bool(ends) and all(type(label) is int for label in ends)
    return [as_label(label, whole=True) for label in labels] if whole else labels


def as_columns_have_them(
    declared: Mapping[str, Any], within: Mapping[str, str], whole: Callable[[str], bool]
) -> dict[str, Any]:
    """Declared categories as whole numbers on the axes whose columns hold these by their type.

    A command line, and the keys of a TOML file, know texts only. What is no list is left for the domain to refuse.

    >>> as_columns_have_them({"state": ["17"], "county": {"17": ["31"]}}, {"county": "state"}, lambda name: True)
    {'state': [17], 'county': {17: [31]}}
    """
    found: dict[str, Any] = {}
    for name, categories in declared.items():
        path = [name]
        while path[0] in within and len(path) <= len(within):
            path.insert(0, within[path[0]])
        found[name] = _converted(categories, [whole(axis) for axis in path])
    return found


def _converted(categories: Any, whole: Sequence[bool]) -> Any:
    """Categories of an axis, given which of its ancestors and itself hold whole numbers."""
    if isinstance(categories, Mapping):
        return {_path(above, whole[:-1]): _converted(labels, whole[-1:]) for above, labels in categories.items()}
    if not isinstance(categories, (list, tuple)):
        return categories
    if len(whole) == 1:
        return [as_label(label, whole[0]) for label in categories]
    return [_path(pair, whole) if isinstance(pair, (list, tuple)) else pair for pair in categories]


def _path(labels: Any, whole: Sequence[bool]) -> Any:
    if not isinstance(labels, (list, tuple)):
        return as_label(labels, whole[-1]) if whole else labels
    if len(labels) != len(whole):
        return labels
    return tuple(as_label(label, kind) for label, kind in zip(labels, whole, strict=True))
