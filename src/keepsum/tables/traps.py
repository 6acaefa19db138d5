"""Mistakes that would publish nonsense in silence: rows of totals, nested columns taken for independent ones.

They are noticed by labels alone, never by a count, and only on axes whose categories nobody declared.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from keepsum._arrays import Integers, ranked
from keepsum._text import MAX_NAMES, has_number, shown_name, shown_names
from keepsum.errors import DataError
from keepsum.tables.axes import Label, group_families
from keepsum.tables.coded import Coded, combined
from keepsum.tables.source import with_parents
from keepsum.tables.total_labels import is_total, may_name_parent

REST = (
    "Publish one along with the other with carry=, drop it with drop=, or pass dense=True if every combination is "
    "meant to be a cell."
)
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
    undeclared = [name for name in columns if name not in declared]
    for name in undeclared:
        _refuse_totals(name, columns, within.get(name), wide)
    if dense or not undeclared or not len(next(iter(columns.values()))):
        return
    paths = {name: _path(name, columns, within) for name in columns}
    _refuse_nested(paths, within, undeclared)
    _refuse_sparse(columns, within)


# -- rows of totals ---------------------------------------------------------------------------------


def _refuse_totals(name: str, columns: Mapping[str, Coded], parent: str | None, wide: str | None) -> None:
    column = columns[name]
    if len(column.values) == 1:  # a column of one label has nothing that could be counted twice
        return
    totals = [label for label in column.values if is_total(label, name)]
    if not totals and parent is not None:
        totals = _totals_of_parents(name, column, columns[parent])
    if not totals:
        return
    nameable = len(totals) <= MAX_NAMES and not any(has_number(str(label)) for label in totals)
    if name == wide:
        raise DataError(
            f"Columns of a wide table must not be totals, which would be counted twice, but "
            f"{shown_names(totals) if nameable else 'some'} may be. Leave them out with "
            f"drop={totals if nameable else ''}, or declare the categories of {name!r} with domain= if they are among "
            f"them."
        )
    labels = totals[0] if len(totals) == 1 else totals
    example = f"{{{name!r}: {labels!r}}}" if nameable else ""
    raise DataError(
        f"Rows with the label {shown_name(totals[0])} in column {name!r} look like totals, which would be counted "
        f"twice. Leave them out with drop_rows={example}, or declare the categories of {name!r} with domain= if it is "
        f"one of them."
    )


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


def _refuse_nested(paths: Mapping[str, Integers], within: Mapping[str, str], undeclared: Sequence[str]) -> None:
    """Refuse an undeclared axis whose category determines that of an axis it is not declared to be nested in."""
    sizes = {name: ranked(path)[0] for name, path in paths.items()}
    parents: dict[str, str] = {}
    for child in undeclared:
        family = {child, *_ancestors(child, within), *(name for name in paths if child in _ancestors(name, within))}
        above = [name for name in paths if name not in family and determines(paths[child], paths[name])]
        if not above:
            continue
        same = next((name for name in above if sizes[name] == sizes[child]), None)
        if same is not None:
            raise DataError(
                f"Columns {same!r} and {child!r} determine each other, so they are no independent axes. {REST}"
            )
        if child in within:
            raise DataError(f"Each {child!r} has one {above[0]!r} in the data, so it is no independent axis. {REST}")
        parents[child] = max(above, key=lambda name: sizes[name])
    if parents:
        child, parent = next(iter(parents.items()))
        raise DataError(
            f"Each {child!r} has one {parent!r} in the data, as if nested in it, but they are declared as independent "
            f"axes. Pass within={ {**within, **parents}!r} to nest {'it' if len(parents) == 1 else 'them'}, or "
            f"dense=True if every combination is meant to be a cell."
        )


def _ancestors(name: str, within: Mapping[str, str]) -> Iterator[str]:
    while name in within:
        name = within[name]
        yield name


def _refuse_sparse(columns: Mapping[str, Coded], within: Mapping[str, str]) -> None:
    """Refuse a table most of whose cells have no row."""
    families: dict[str, list[str]] = {}
    for name in group_families(list(columns), within):
        root = [name, *_ancestors(name, within)][-1]
        families.setdefault(root, []).append(name)
    sizes = [ranked(combined([columns[name] for name in names]))[0] for names in families.values()]
    cells = math.prod(sizes)
    rows = len(next(iter(columns.values())))
    if 2 * rows < cells:
        raise DataError(
            f"Most of the {cells:,} combinations of categories have no row, and each would become a cell. Pass "
            f"dense=True if this is meant, name the parent of each nested axis with within=, or declare the categories "
            f"with domain=."
        )
