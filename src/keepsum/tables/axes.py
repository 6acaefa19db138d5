"""Axes and their categories, their natural order, and the cells of a family of nested axes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby, pairwise
from typing import Any, TypeAlias

import numpy as np

from keepsum._arguments import check_within, plain_text
from keepsum._arrays import IntArray
from keepsum._memory import check_room
from keepsum._saying import arg, the
from keepsum._text import given, shown_name, type_of
from keepsum.errors import DomainError

Label: TypeAlias = str | int

MAX_AXES = 64  # dimensions of a numpy array
MAX_CELLS = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Axis:
    """One named classification of the cells.

    A plain axis has a list of labels. A nested axis has a parent: each of its labels belongs to one category of the
    parent, and the same label under two parents is two categories. Labels of a nested axis are in the order of their
    parents, so that ``parent_codes`` never decreases.
    """

    name: str
    labels: tuple[Label, ...]
    parent: Axis | None = None
    parent_codes: IntArray | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Axis)
            and (self.name, self.labels, self.parent) == (other.name, other.labels, other.parent)
            and _same_codes(self.parent_codes, other.parent_codes)
        )

    def __hash__(self) -> int:
        return hash((self.name, len(self.labels)))

    def paths(self) -> list[tuple[Label, ...]]:
        """Each category with its ancestors, outermost first."""
        if self.parent is None or self.parent_codes is None:
            return [(label,) for label in self.labels]
        above = self.parent.paths()
        return [(*above[code], label) for code, label in zip(self.parent_codes.tolist(), self.labels, strict=True)]

    def lookup(self) -> dict[Any, int]:
        """The code of each category by label, or by (code of the parent, label) for a nested axis."""
        if self.parent_codes is None:
            return {label: code for code, label in enumerate(self.labels)}
        pairs = zip(self.parent_codes.tolist(), self.labels, strict=True)
        return {pair: code for code, pair in enumerate(pairs)}


def _same_codes(a: IntArray | None, b: IntArray | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def make_axes(categories: Mapping[str, Any], within: Mapping[str, str] | None) -> tuple[Axis, ...]:
    """Build and check the axes of a domain, with each family of nested axes together and parents first."""
    if not isinstance(categories, Mapping):
        raise DomainError(f"Axes must be a mapping from names to categories, got {type_of(categories)}.")
    if not categories:
        raise DomainError("A domain must have at least one axis, got none. Name an axis and its categories.")
    if len(categories) > MAX_AXES:
        raise DomainError(f"A domain must have at most {MAX_AXES} axes, got {len(categories):,}. Leave some out.")
    within = check_within(within, DomainError)
    check_nesting(list(categories), within)
    axes: dict[str, Axis] = {}
    for name in group_families(list(categories), within):
        parent = axes[within[name]] if name in within else None
        axis = _make_axis(name, categories[name], parent)
        axes[axis.name] = axis
    return tuple(axes.values())


def group_families(names: Sequence[str], within: Mapping[str, str]) -> Iterator[str]:
    """Each family of nested axes at the position of its first member, parents before children.

    >>> list(group_families(["county", "sex", "state"], {"county": "state"}))
    ['state', 'county', 'sex']
    """
    done: set[str] = set()

    def family(name: str) -> Iterator[str]:
        done.add(name)
        yield name
        for child in names:
            if within.get(child) == name:
                yield from family(child)

    for name in names:
        root = name
        while root in within:
            root = within[root]
        if root not in done:
            yield from family(root)


def nested_axis(name: str, labels: Sequence[Label], parent: Axis, parent_codes: IntArray) -> Axis:
    """A nested axis from labels and the codes of their parents, sorted by parent."""
    childless = np.flatnonzero(np.bincount(parent_codes, minlength=len(parent)) == 0)
    if len(childless):
        raise DomainError(
            f"Every category of {parent.name!r} must contain at least one {name!r}, but "
            f"{parent.labels[childless[0]]!r} contains none. Declare one, or remove that category."
        )
    order = np.argsort(parent_codes, kind="stable")
    codes = parent_codes[order]
    codes.setflags(write=False)
    return Axis(plain_text(name), tuple(labels[i] for i in order.tolist()), parent, codes)


def quoted(names: Iterable[object]) -> str:
    """Names in quotes, for a message."""
    return ", ".join(given(name) if isinstance(name, str) else repr(name) for name in names)


def check_label(name: str, label: Any) -> Label:
    """Return a category, which must be text or a whole number; anything else could be written in several ways."""
    if isinstance(label, np.generic):
        label = label.item()
    if not isinstance(label, (str, int)) or isinstance(label, bool) or label == "":
        raise DomainError(
            f"A category of axis {the.column(name)} must be text or a whole number, got {_kind_of_label(label)}. "
            "Convert it to text first."
        )
    if isinstance(label, str) and not label.isascii() and label.encode("utf-8", "replace").decode("utf-8") != label:
        raise DomainError(
            f"A category of axis {the.column(name)} must be text that UTF-8 can encode, but one contains half a "
            "character. Correct it."
        )
    return plain_text(label) if isinstance(label, str) else int(label)


def _kind_of_label(label: Any) -> str:
    """An invalid label for a message, without showing anything that may be a count."""
    return "an empty string" if isinstance(label, str) else type_of(label)


def _repeated(label: Label) -> str:
    """A repeated label for a message; a number is not shown, because it may be a count passed by mistake."""
    return shown_name(label) if isinstance(label, str) else "one"


def check_nesting(axes: Sequence[str], within: Mapping[str, str]) -> None:
    """Check that nested axes and their parents exist, and that no axis is nested in itself."""
    for child, parent in within.items():
        for name in (child, parent):
            if name not in axes:
                raise DomainError(
                    f"Axes {arg.within:in} must be axes of the domain, got {the.name(name)}. Declare its categories "
                    "too."
                )
        ancestor: str | None = parent
        for _ in within:
            if ancestor == child:
                raise DomainError(
                    f"An axis must not be nested in itself, directly or through others, got {the.name(child)}."
                )
            ancestor = within.get(ancestor) if ancestor is not None else None


def _make_axis(name: str, declared: Any, parent: Axis | None) -> Axis:
    if not isinstance(name, str) or not name:
        raise DomainError(f"The name of an axis must be non-empty text, got {_kind_of_label(name)}.")
    if isinstance(declared, (str, bytes)):
        raise DomainError(f"Categories of axis {the.column(name)} must be a list, got a single text. Put it in a list.")
    if not isinstance(declared, Iterable):
        raise DomainError(f"Categories of axis {the.column(name)} must be a list, got {type_of(declared)}.")
    if isinstance(declared, Mapping) and parent is None:
        raise DomainError(
            f"Categories of axis {the.column(name)} must be a list unless it is nested, got a mapping from parents. "
            f"Name its parent {arg.within:with}."
        )
    if parent is None:
        labels = tuple(check_label(name, label) for label in declared)
        _check_labels(name, labels, labels)
        return Axis(plain_text(name), labels)
    places = {path: code for code, path in enumerate(parent.paths())}
    codes: list[int] = []
    nested_labels: list[Label] = []
    for parent_path, label in _nested_pairs(name, declared, parent.name):
        code = places.get(parent_path)
        if code is None:
            raise DomainError(
                f"Categories of axis {the.column(name)} must be within a category of {parent.name!r}: "
                f"{shown_name(parent_path[-1])} is not a declared category."
            )
        codes.append(code)
        nested_labels.append(label)
    _check_labels(name, nested_labels, zip(codes, nested_labels, strict=True))
    return nested_axis(name, nested_labels, parent, np.array(codes, dtype=np.int64))


def _nested_pairs(name: str, declared: Any, parent: str) -> Iterator[tuple[tuple[Label, ...], Label]]:
    if isinstance(declared, Mapping):
        for key, labels in declared.items():
            if isinstance(labels, str) or not isinstance(labels, Iterable):
                raise DomainError(
                    f"Categories of axis {the.column(name)} within {shown_name(key)} must be a list, got "
                    f"{type_of(labels)}."
                )
            path = key if isinstance(key, tuple) and key else (key,)
            for label in labels:
                yield path, check_label(name, label)
        return
    for pair in declared:
        if not isinstance(pair, (tuple, list)) or len(pair) < 2:
            raise DomainError(
                f"Categories of nested axis {the.column(name)} must be ({parent}, {name}) pairs or a mapping from "
                f"{parent} to lists, got {type_of(pair)}."
            )
        yield tuple(check_label(parent, label) for label in pair[:-1]), check_label(name, pair[-1])


def _check_labels(name: str, labels: Sequence[Label], categories: Iterable[object]) -> None:
    if not labels:
        raise DomainError(f"Axis {the.column(name)} must have at least one category, got none.")
    kinds = sorted({kind.__name__ for kind in set(map(type, labels))})
    if len(kinds) > 1:
        raise DomainError(f"Categories of axis {the.column(name)} must be of one type, got {' and '.join(kinds)}.")
    seen: set[object] = set()
    for label, category in zip(labels, categories, strict=True):
        if category in seen:
            raise DomainError(f"Categories of axis {the.column(name)} must be different, got {_repeated(label)} twice.")
        seen.add(category)


def _check_family(cells: int, axes: int) -> None:
    """Refuse too large a family before its cells are listed: sibling axes within one parent multiply."""
    if cells > MAX_CELLS:
        raise DomainError(
            f"A domain must have at most {MAX_CELLS:,} cells, got {cells:,} from nested axes. "
            f"Drop an axis or merge categories."
        )
    check_room(cells * axes, f"A family of nested axes with {cells:,} cells", 16)


@dataclass(frozen=True)
class NestedCells:
    """The cells of a family of nested axes in lexicographic order, as codes per axis."""

    codes: dict[str, IntArray]
    size: int

    @classmethod
    def of(cls, axes: Sequence[Axis]) -> NestedCells:
        """Combine each category of a parent with every category within it."""
        root, *rest = axes
        codes: dict[str, IntArray] = {root.name: np.arange(len(root))}
        for axis in rest:
            if axis.parent is None or axis.parent_codes is None:
                raise AssertionError("only the first axis of a family has no parent")
            counts = np.bincount(axis.parent_codes, minlength=len(axis.parent))
            starts = np.cumsum(counts) - counts
            repeats = counts[codes[axis.parent.name]]
            _check_family(int(repeats.sum()), len(axes))
            rows = np.repeat(np.arange(len(repeats)), repeats)
            within_parent = np.arange(len(rows)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
            codes = {name: column[rows] for name, column in codes.items()}
            codes[axis.name] = starts[codes[axis.parent.name]] + within_parent
        return cls(codes, len(codes[axes[-1].name]))

    def project(self, names: Iterable[str]) -> tuple[int, IntArray]:
        """The margin over some axes: the number of marginal cells, and the marginal cell of each cell."""
        wanted = set(names)
        kept = [name for name in self.codes if name in wanted]
        if len(kept) == len(self.codes):
            return self.size, np.arange(self.size)
        if kept == list(self.codes)[: len(kept)]:
            # The cells are in lexicographic order: a new marginal cell starts where a kept code changes.
            changes = np.zeros(self.size, dtype=bool)
            for name in kept:
                changes[1:] |= self.codes[name][1:] != self.codes[name][:-1]
            place = np.cumsum(changes)
        else:
            place = np.zeros(self.size, dtype=np.int64)
            for name in kept:
                codes = self.codes[name]
                place = np.unique(place * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
        return int(place.max()) + 1, place

    def rows(self, codes: Mapping[str, IntArray]) -> IntArray:
        """The cell for each row of codes, -1 where there is none."""
        names = list(self.codes)
        if np.array_equal(self.codes[names[-1]], np.arange(self.size)):  # one axis, or each within the one before
            return codes[names[-1]]
        cell_keys = np.zeros(self.size, dtype=np.int64)
        row_keys = np.zeros(len(codes[names[0]]), dtype=np.int64)
        for name in names:
            width = max(int(self.codes[name].max()), int(codes[name].max(initial=0))) + 1
            both = np.concatenate([cell_keys * width + self.codes[name], row_keys * width + codes[name]])
            keys = np.unique(both, return_inverse=True)[1]
            cell_keys, row_keys = keys[: self.size], keys[self.size :]
        # The cells are in lexicographic order, so their keys never decrease.
        cell = np.minimum(np.searchsorted(cell_keys, row_keys), self.size - 1)
        return np.where(cell_keys[cell] == row_keys, cell, -1)


# Labels of categories: their natural order, for when none is declared, and how text matches whole numbers.

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
