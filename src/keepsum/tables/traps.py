"""Mistakes that would publish nonsense in silence: rows of totals, nesting not declared or reversed, near labels."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from keepsum._arrays import Integers, ranked
from keepsum._saying import arg, the
from keepsum._text import shown_name
from keepsum.errors import DataError
from keepsum.tables.axes import Label, group_families
from keepsum.tables.findings import Finding, Following, NestedAxes, Same, Sparse, TotalLabels, refuse
from keepsum.tables.source import Coded, combined, with_parents
from keepsum.tables.total_labels import is_total, may_name_parent

# Labels that differ only in spaces or case, as if one category were written in two ways.
#
# They are noticed by labels alone, never by a count, and only on axes whose categories nobody declared.


def refuse_near_labels(columns: Mapping[str, Coded], within: Mapping[str, str], declared: Collection[str]) -> None:
    """Refuse two categories of an axis (of one parent, if it is nested) whose labels differ only in spaces or case.

    Parameters
    ----------
    columns, within
        The axes, and the parent of each nested one.
    declared
        The axes whose categories are declared: these are meant as they are.
    """
    for name, column in columns.items():
        if name in declared:
            continue
        pair = _near(column, [columns[axis] for axis in with_parents([name], within) if axis != name])
        if pair is not None:
            first, second = map(shown_name, pair)
            raise DataError(
                f"Labels {first} and {second} in column {the.column(name)} differ only in spaces or case, as if they "
                f"were one category. Correct the data, or declare the categories of {name!r} {arg.domain:with} if "
                "they are two."
            )


def _near(column: Coded, parents: list[Coded]) -> tuple[Label, Label] | None:
    """Two labels of one parent that differ only in spaces or case, if there are any."""
    spellings: dict[str, list[int]] = {}
    for code, label in enumerate(column.values):
        if isinstance(label, str):
            spellings.setdefault(plain(label), []).append(code)
    groups = [codes for codes in spellings.values() if len(codes) > 1]
    if not parents or not groups:
        return next(((column.values[codes[0]], column.values[codes[1]]) for codes in groups), None)
    group_of = {code: group for group, codes in enumerate(groups) for code in codes}
    may_be_near = np.zeros(len(column.values), dtype=bool)
    may_be_near[list(group_of)] = True
    rows = np.flatnonzero(may_be_near[column.codes])
    path = combined(parents)[rows]
    first_codes: dict[tuple[int, int], int] = {}
    for owner, code in dict.fromkeys(zip(path.tolist(), column.codes[rows].tolist(), strict=True)):
        first = first_codes.setdefault((owner, group_of[code]), code)
        if first != code:
            return column.values[first], column.values[code]
    return None


def plain(label: str) -> str:
    r"""A label without what is hardly seen: the case of letters, and spaces around and between words.

    >>> plain("Lake ") == plain("lake"), plain("St.\xa0 Clair") == plain("St. Clair"), plain("Lake") == plain("Lakes")
    (True, True, False)
    """
    return " ".join(label.casefold().split())


# Mistakes that would publish nonsense in silence: rows of totals, nested columns taken for independent ones.

FIRST_ROWS = 10**4  # looked at before all rows: enough to see that a column does not determine another


def refuse_traps(
    columns: Mapping[str, Coded],
    within: Mapping[str, str],
    declared: Collection[str],
    dense: bool,
    wide: str | None = None,
) -> None:
    """Refuse rows of totals, and axes that look nested without being declared so.

    Parameters
    ----------
    columns, within
        The axes, and the parent of each nested one.
    declared
        The axes whose categories are declared: these are meant as they are.
    dense
        Whether every combination of categories is meant to be a cell.
    wide
        The axis whose categories are columns, if there is one.
    """
    refuse(find_trap(columns, within, declared, dense, wide))


def find_trap(
    columns: Mapping[str, Coded], within: Mapping[str, str], declared: Collection[str], dense: bool, wide: str | None
) -> Finding | None:
    """The first thing that looks like a mistake; see ``refuse_traps``."""
    undeclared = [name for name in columns if name not in declared]
    for name in undeclared:
        totals = _totals(name, columns, within.get(name))
        if totals:
            return TotalLabels(name, tuple(totals), name == wide)
    if dense or not undeclared or not len(next(iter(columns.values()))):
        return None
    return _nested(columns, within, undeclared) or _sparse(columns, within)


# -- rows of totals ---------------------------------------------------------------------------------


def _totals(name: str, columns: Mapping[str, Coded], parent: str | None) -> list[Label]:
    column = columns[name]
    if len(column.values) == 1:  # a column of one label has nothing that could be counted twice
        return []
    totals = [label for label in column.values if is_total(label, name)]
    if not totals and parent is not None:
        totals = _totals_of_parents(name, column, columns[parent])
    return totals


def _totals_of_parents(name: str, column: Coded, parent: Coded) -> list[Label]:
    """The labels of a nested axis that name the parent of their row: "All Illinois" in Illinois.

    Places are often called like what they are in (New York in New York), so the label of the parent alone is a total
    only if most parents that have several categories have one of that name.
    """
    wholes = {label for label in parent.values if not str(label).isdecimal()}  # codes are often equal by chance
    named = np.array([label in wholes or may_name_parent(label) for label in column.values], dtype=bool)
    rows = np.flatnonzero(named[column.codes])
    if not len(rows):
        return []
    last = np.zeros(len(parent.values), dtype=np.int64)
    last[parent.codes] = column.codes
    has_several = np.zeros(len(parent.values), dtype=bool)
    has_several[parent.codes[column.codes != last[parent.codes]]] = True
    pairs = set(zip(parent.codes[rows].tolist(), column.codes[rows].tolist(), strict=True))
    totals = {inner for outer, inner in pairs if is_total(column.values[inner], name, parent.values[outer])}
    same = {
        outer: inner
        for outer, inner in pairs
        if has_several[outer] and column.values[inner] == parent.values[outer] and parent.values[outer] in wholes
    }
    if len(same) > 1 and 2 * len(same) > np.count_nonzero(has_several):
        totals |= set(same.values())
    return [column.values[inner] for inner in sorted(totals)]


# -- nested columns ---------------------------------------------------------------------------------


def _path(name: str, columns: Mapping[str, Coded], within: Mapping[str, str]) -> Integers:
    """The category of each row on an axis, which for a nested axis includes those of its parents."""
    path = [columns[axis] for axis in with_parents([name], within)]
    return path[0].codes if len(path) == 1 else ranked(combined(path))[1]


def determines(a: Integers, b: Integers) -> bool:
    """Whether rows with the same category in ``a`` always have the same in ``b``, which has several."""
    return bool(b.min() < b.max()) and follows(a, b)


def follows(a: Integers, b: Integers) -> bool:
    """Whether rows with the same category in ``a`` always have the same in ``b``."""
    for end in (FIRST_ROWS, len(a)):
        first, second = a[:end], b[:end]
        pairs = ranked(first.astype("int64") * (int(second.max()) + 1) + second)[0]
        if pairs > ranked(first)[0]:
            return False
    return True


def _nested(columns: Mapping[str, Coded], within: Mapping[str, str], undeclared: Sequence[str]) -> Finding | None:
    """An undeclared axis whose category determines that of an axis it is not declared to be nested in."""
    paths = {name: _path(name, columns, within) for name in columns}
    sizes = {name: ranked(path)[0] for name, path in paths.items()}
    parents: dict[str, str] = {}
    for child in undeclared:
        family = {child, *_ancestors(child, within), *(name for name in paths if child in _ancestors(name, within))}
        above = [name for name in paths if name not in family and determines(paths[child], paths[name])]
        if not above:
            continue
        same = next((name for name in above if sizes[name] == sizes[child]), None)
        if same is not None:
            return _same(same, child, columns, within)
        if child in within:
            return Following(child, above[0])
        parents[child] = max(above, key=lambda name: sizes[name])
    if parents:
        return NestedAxes(tuple(parents.items()), tuple({**within, **parents}.items()))
    return _nearly_nested(paths, sizes, within, undeclared)


def _nearly_nested(
    paths: Mapping[str, Integers], sizes: Mapping[str, int], within: Mapping[str, str], undeclared: Sequence[str]
) -> NestedAxes | None:
    """An undeclared axis most of whose labels occur with one label of a shorter axis: a name may occur in two places.

    In a table of independent columns that is so only if it is so sparse that few pairs of labels have a row.
    """
    for child in undeclared:
        if child in within or child in within.values():
            continue
        above = [name for name in paths if 1 < sizes[name] < sizes[child] and nearly_follows(paths[child], paths[name])]
        if above:
            parent = max(above, key=lambda name: sizes[name])
            return NestedAxes(((child, parent),), (*within.items(), (child, parent)), nearly=True)
    return None


def nearly_follows(a: Integers, b: Integers) -> bool:
    """Whether at least four fifths of the categories in ``a`` occur with one category of ``b`` each."""
    size = int(a.max()) + 1
    there, several = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    last = np.zeros(size, dtype=np.int64)
    there[a], last[a] = True, b
    several[a[b != last[a]]] = True
    return bool(5 * np.count_nonzero(several) <= np.count_nonzero(there))


def _same(first: str, second: str, columns: Mapping[str, Coded], within: Mapping[str, str]) -> Same:
    """Two columns that name the same: the code is the one with digits in every label, else the one further right.

    An axis that is nested, or has others within it, is not the code.
    """

    def rank(name: str) -> tuple[bool, bool, int]:
        is_nested = name in within or name in within.values()
        has_digits = all(any(map(str.isdigit, str(label))) for label in columns[name].values)
        return not is_nested, has_digits, list(columns).index(name)

    axis, code = sorted((first, second), key=rank)
    return Same(axis, code, (first, second))


def _ancestors(name: str, within: Mapping[str, str]) -> Iterator[str]:
    while name in within:
        name = within[name]
        yield name


def _sparse(columns: Mapping[str, Coded], within: Mapping[str, str]) -> Sparse | None:
    families: dict[str, list[str]] = {}
    for name in group_families(list(columns), within):
        root = [name, *_ancestors(name, within)][-1]
        families.setdefault(root, []).append(name)
    sizes = [ranked(combined([columns[name] for name in names]))[0] for names in families.values()]
    cells = math.prod(sizes)
    rows = len(next(iter(columns.values())))
    return Sparse(cells, tuple(columns)) if 2 * rows < cells else None


# A nesting that is declared the wrong way round: states within counties.
#
# It is noticed by labels alone, never by a count, and only on axes whose categories nobody declared.


def refuse_reversed_nesting(columns: Mapping[str, Coded], within: Mapping[str, str], declared: Collection[str]) -> None:
    """Refuse an axis nested in one that has more categories, each with a single category of the nested axis.

    Parameters
    ----------
    columns, within
        The axes, and the parent of each nested one.
    declared
        The axes whose categories are declared: these are meant as they are.
    """
    for child, parent in within.items():
        if {child, parent} & set(declared) or parent in within or not len(columns[child]):
            continue
        fewer = len(columns[child].values) < len(columns[parent].values)
        if fewer and determines(columns[parent].codes, columns[child].codes):
            nesting = {name: above for name, above in within.items() if name != child} | {parent: child}
            raise DataError(
                f"Each {parent!r} has one {child!r} in the data, as if {child!r} were its parent, but the nesting is "
                f"declared the other way round. {arg.within(nesting):Pass}, or declare the categories of {child!r} "
                f"{arg.domain:with} if it is meant."
            )
