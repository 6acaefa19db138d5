"""The focus that a spec declares: totals of axes, and named subsets of cells."""

from __future__ import annotations

import csv
from typing import Any

import msgspec

from keepsum.errors import InputError
from keepsum.sources.declarations import read_keep, subsets
from keepsum.specs.spec import Noise
from keepsum.tables.invariants import Invariants, Rows
from keepsum.tables.table import Table


def focus_of(noise: Noise, table: Table | None = None) -> dict[Any, Any] | None:
    """The focus by tuples of axes, and by subsets once the table is known; None without one.

    A key is the name of a subset, if there is one of that name, or else axes with commas between them.
    """
    named = {} if table is None else _subsets(noise, table)
    if not noise.focus:
        if noise.subset or noise.focus_files:
            raise InputError("Subsets must be in the focus by their names: pass --focus NAME=1, or leave them out.")
        return None
    focus: dict[Any, Any] = {}
    for key, weight in noise.focus.items():
        axes = tuple(name.strip() for name in next(csv.reader([key], skipinitialspace=True), []))
        if axes in focus:
            raise InputError(f"Option --focus must name different totals, got {key!r} twice.")
        focus[named.get(key, axes)] = weight
    return focus


def axes_of(noise: Noise) -> list[str]:
    """The columns that a focus may name."""
    return [name for axes in focus_of(noise) or {} for name in axes]


def _subsets(noise: Noise, table: Table) -> dict[str, Invariants]:
    """The subsets by their names."""
    found = [read_keep(path, table) for path in noise.focus_files or []]
    if noise.subset:
        declared = [msgspec.structs.asdict(subset) for subset in noise.subset]
        found.append(subsets(declared, table.domain, "[[mechanism.subset]]"))
    named: dict[str, Invariants] = {}
    for (part,) in (totals.parts for totals in found):
        if not isinstance(part, Rows) or part.kind != "subsets":
            raise InputError("Totals of --focus-file must be of subsets, without weights. Leave the weights out.")
        for name, cells in zip(part.names, part.rows.tolil().rows, strict=True):
            if name in named or name in table.domain.axes:
                raise InputError(f"Subsets of a focus must have names of their own, got {name!r} twice. Rename one.")
            named[name] = Invariants.subsets(table.domain.size, [cells], [name])
    return named
