"""The totals of a released table: kept ones, which are exact, those of a focus, and those at the edges of a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from keepsum._arrays import IntArray
from keepsum.desk.grids import edge_axes, signed
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants, Margin

if TYPE_CHECKING:
    from keepsum.accuracy.margins import Accuracy

SHOWN = 50  # of each margin


@dataclass(frozen=True)
class Totals:
    """Totals as the page lists them: each with its name, its number, and its margin of error or that it is exact."""

    title: str
    words: str
    rows: list[tuple[str, str, str]]
    more: int
    is_exact: bool


def kept_totals(counts: IntArray, domain: Domain, kept: Invariants) -> list[Totals]:
    """Every kept total that is not at an edge of the picture, with its released value, which is the true one."""
    values, place, found = kept.totals(counts), 0, []
    at_edges = [(), *(domain.closure(axes) for axes in edge_axes(domain))]
    for part in kept.parts:
        if isinstance(part, Margin) and domain.closure(part.axes) in at_edges:
            place += part.height
            continue
        if isinstance(part, Margin):
            names = [", ".join(map(str, labels)) or "total" for labels in part.all_labels()[:SHOWN]]
            title = f"Totals of {' × '.join(part.axes)}" if part.axes else "The whole table"
        else:
            names, title = list(part.all_names()[:SHOWN]), "Totals of sets of cells"
        rows = [(name, signed(int(values[place + k])), "exact") for k, name in enumerate(names)]
        found.append(Totals(title, "kept exactly", rows, part.height - len(rows), is_exact=True))
        place += part.height
    return found


def focused_totals(counts: IntArray, domain: Domain, accuracy: Accuracy) -> list[Totals]:
    """The totals of each focus that is on a margin, with their margins of error."""
    found = []
    for level in accuracy.levels:
        values, margins = sums_of(counts, domain, level.axes), level.accuracy.margins
        if len(margins) != len(values):  # of sets of cells, which have no margin to name them by
            continue
        names = _names(domain, level.axes)
        rows = [(name, signed(int(values[k])), f"±{int(margins[k]):,}") for k, name in enumerate(names)]
        title = f"Totals of {' × '.join(level.axes)}" if level.axes else "The whole table"
        found.append(Totals(title, "in the focus, with noise", rows, len(values) - len(rows), is_exact=False))
    return found


def sums_of(counts: IntArray, domain: Domain, axes: Sequence[str]) -> IntArray:
    """The totals of a margin."""
    if not axes:
        return np.array([counts.sum()])
    sums = np.zeros(domain.project(axes).size, dtype=np.int64)
    np.add.at(sums, domain.marginal_index(axes), counts)
    return sums


def _names(domain: Domain, axes: Sequence[str]) -> list[str]:
    if not axes:
        return ["total"]
    projected = domain.project(axes)
    return [", ".join(str(label) for label in projected.cell(k).values()) for k in range(min(SHOWN, projected.size))]
