"""Mistakes that would publish nonsense in silence: rows of totals, nested columns taken for independent ones.

They are noticed by labels alone, never by a count, and only on axes whose categories nobody declared.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from keepsum._arrays import Integers, ranked
from keepsum._text import has_number, shown_name
from keepsum.errors import DataError
from keepsum.tables.axes import group_families
from keepsum.tables.coded import Coded, combined
from keepsum.tables.source import with_parents
from keepsum.tables.total_labels import is_total

REST = (
    "Publish one along with the other with carry=, drop it with drop=, or pass dense=True if every combination is "
    "meant to be a cell."
)
FIRST_ROWS = 10**4  # looked at before all rows: enough to see that a column does not determine another


def refuse_traps(
    columns: Mapping[str, Coded], within: Mapping[str, str], declared: Collection[str], dense: bool
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
    """
    undeclared = [name for name in columns if name not in declared]
    for name in undeclared:
        _refuse_totals(name, columns[name])
    if dense or not undeclared or not len(next(iter(columns.values()))):
        return
    paths = {name: _path(name, columns, within) for name in columns}
    _refuse_nested(paths, within, undeclared)
    _refuse_sparse(columns, within)


# -- rows of totals ---------------------------------------------------------------------------------


def _refuse_totals(name: str, column: Coded) -> None:
    label = next((label for label in column.values if is_total(label, name)), None)
    if label is None or len(column.values) == 1:  # a column of one label has nothing that could be counted twice
        return
    example = "..." if has_number(label) else f"{{{name!r}: {label!r}}}"
    raise DataError(
        f"Rows with the label {shown_name(label)} in column {name!r} look like totals, which would be counted twice. "
        f"Leave them out with drop_rows={example}, or declare the categories of {name!r} with domain= if it is one of "
        f"them."
    )


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
