"""The focus that a spec declares: totals of axes, and named subsets of cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from keepsum._saying import arg
from keepsum.errors import InputError
from keepsum.sources.declarations import read_keep, subsets
from keepsum.specs.option import parse_names
from keepsum.specs.spec import NoiseSpec
from keepsum.tables.invariants import Invariants, Rows
from keepsum.tables.table import Table


def focus_of(noise: NoiseSpec, table: Table | None = None) -> dict[Any, Any] | None:
    """The focus by tuples of axes, and by subsets once the table is known; None without one.

    A key is the name of a subset, if there is one of that name, or else axes with commas between them.
    """
    named = {}
    if table is not None:
        declared = [msgspec.structs.asdict(subset) for subset in noise.subset or []]
        named = named_subsets(table, noise.focus_files or [], declared)
    if not noise.focus:
        if noise.subset or noise.focus_files:
            raise InputError(
                f"Subsets must be in the focus by their names: {arg.focus.of('NAME=1'):pass}, or leave them out."
            )
        return None
    focus: dict[Any, Any] = {}
    for key, weight in noise.focus.items():
        axes = _axes(key)
        if axes in focus:
            raise InputError(f"{arg.focus} must name different totals, got {key!r} twice.")
        focus[named.get(key, axes)] = weight
    return focus


def _axes(key: str) -> tuple[str, ...]:
    """The axes of a key, with commas between them; what is no list of names is one, perhaps that of a subset.

    >>> _axes('county, "Region, state"'), _axes(""), _axes('5" pipe, "long')
    (('county', 'Region, state'), (), ('5" pipe, "long',))
    """
    if not key:
        return ()
    with suppress(InputError):
        return tuple(parse_names([key], "A focus"))
    return (key,)


def axes_of(noise: NoiseSpec) -> list[str]:
    """The columns that a focus may name."""
    return [name for axes in focus_of(noise) or {} for name in axes]


def named_subsets(table: Table, files: Iterable[str], declared: Sequence[Any] = ()) -> dict[str, Invariants]:
    """The subsets of files, and those that are ``declared`` as in one, by their names."""
    found = [read_keep(path, table) for path in files]
    if declared:
        found.append(subsets(declared, table.domain, "[[mechanism.subset]]"))
    named: dict[str, Invariants] = {}
    for (part,) in (totals.parts for totals in found):
        if not isinstance(part, Rows) or part.kind != "subsets":
            raise InputError(f"Totals of {arg.focus_file} must be of subsets, without weights. Leave the weights out.")
        for name, cells in zip(part.names, part.rows.tolil().rows, strict=True):
            if name in named or name in table.domain.axes:
                raise InputError(f"Subsets of a focus must have names of their own, got {name!r} twice. Rename one.")
            named[name] = Invariants.subsets(table.domain.size, [cells], [name])
    return named
