"""Labels of categories: their natural order, for when none is declared, and how text matches whole numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import groupby, pairwise
from typing import Any

from keepsum.tables.axes import Axis, Label

# A minus sign counts only at the start of a label: 5-9 is a range, -5 a number.
_NUMBERS = re.compile(r"(^-?[0-9]+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?)")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


def natural_order(label: Label) -> tuple[bool, tuple[Any, ...], str]:
    """A key that sorts labels as people would: numbers inside text by value, the rest by code point.

    The order of two labels depends on these two only, never on other labels, the machine or its locale. Labels of equal
    value, such as 1 and 01, are ordered by code point. Whole numbers come before text, though no axis may have both.

    Examples
    --------
    >>> sorted(["85+", "10-14", "5-9", "Under 5"], key=natural_order)
    ['5-9', '10-14', '85+', 'Under 5']
    >>> sorted(["1", "b2", "-5", "01", "b10", "0.25", "-10", "B2", "0.5"], key=natural_order)
    ['-10', '-5', '0.25', '0.5', '01', '1', 'B2', 'b2', 'b10']
    """
    if not isinstance(label, str):
        return False, (label,), ""
    parts = _NUMBERS.split(label)  # text and numbers alternate, text first
    # Decimal rather than int: comparisons are exact as well, and numbers may have any length.
    return True, tuple(Decimal(part) if k % 2 else part for k, part in enumerate(parts)), label


def in_natural_order(axis: Axis) -> bool:
    """Whether the categories of an axis (within each parent, if it is nested) are in natural order."""
    parents = [0] * len(axis) if axis.parent_codes is None else axis.parent_codes.tolist()
    return all(
        natural_order(a) < natural_order(b)
        for _, family in groupby(zip(parents, axis.labels, strict=True), key=lambda pair: pair[0])
        for (_, a), (_, b) in pairwise(family)
    )


def as_label(label: Any, whole: bool) -> Any:
    """A label as a whole number, if the axis has whole numbers and the text is the plain form of one.

    >>> as_label("7", whole=True), as_label("07", whole=True), as_label("7", whole=False)
    (7, '07', '7')
    """
    if whole and isinstance(label, str) and _WHOLE.fullmatch(label):
        return int(label)
    return label


def as_declared(labels: Sequence[Any], declared: Any) -> Sequence[Any]:
    """Labels from a text file, as whole numbers if whole numbers are declared.

    >>> as_declared(["1", "2"], [1, 2]), as_declared(["1", "2"], {"IL": [1, 2]}), as_declared(["1", "2"], ["1", "2"])
    ([1, 2], [1, 2], ['1', '2'])
    """
    lists = list(declared.values()) if isinstance(declared, Mapping) else [declared]
    if not all(isinstance(categories, (list, tuple)) for categories in lists):
        return labels
    ends = [item[-1] if isinstance(item, (list, tuple)) and item else item for items in lists for item in items]
    whole = bool(ends) and all(type(label) is int for label in ends)
    return [as_label(label, whole=True) for label in labels] if whole else labels


def match_column_types(
    declared: Mapping[str, Any], within: Mapping[str, str], whole: Callable[[str], bool]
) -> dict[str, Any]:
    """Declared categories, as whole numbers on the axes whose columns have an integer type.

    Options of a command and keys of a TOML file are always text. Anything but a list is left for the domain to refuse.

    >>> match_column_types({"state": ["17"], "county": {"17": ["31"]}}, {"county": "state"}, lambda name: True)
    {'state': [17], 'county': {17: [31]}}
    """
    matched: dict[str, Any] = {}
    for name, categories in declared.items():
        path = [name]
        while path[0] in within and len(path) <= len(within):
            path.insert(0, within[path[0]])
        matched[name] = _converted(categories, [whole(axis) for axis in path])
    return matched


def _converted(categories: Any, whole: Sequence[bool]) -> Any:
    """Categories of an axis, given for its ancestors and itself whether they have whole numbers."""
    if isinstance(categories, Mapping):
        return {_path(parent, whole[:-1]): _converted(labels, whole[-1:]) for parent, labels in categories.items()}
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
