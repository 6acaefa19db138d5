"""Decomposable totals under l1 Laplace noise: by splitting columns, family by family, where that is fast enough."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.grids import Grid
from keepsum.lattice.structure import System
from keepsum.lattice.two_way import TwoWay
from keepsum.planning.selection.choice import (
    Choice,
    Folded,
    Method,
    Reason,
    Sampler,
    core_shape,
    fold_signs,
    folded_order,
)
from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.forced_sums import ForcedSums, FreeCells
from keepsum.sampling.l1.splitting.bundles import Bundles, SplitTable, bundled, in_runs
from keepsum.sampling.l1.splitting.laws import Labelling, entries_of
from keepsum.sampling.l1.splitting.sampler import Splitting
from keepsum.sampling.l1.splitting.slices import two_way

# What a pilot spends, in parts of rows: for each number of labels, and then, if nothing was accepted, some seconds at
# most.
SPLITTING_PILOT, LONGER_PILOTS = 10**6, (10**7, 3 * 10**7)
PART_COST = 4  # the time that a part of a row takes, in cells
# How many labels bundles have: more only where fewer proposals than this are accepted. Where tables are grafted onto
# each other tags do more than further labels.
LABELLINGS, OFTEN = (Labelling(1, 1), Labelling(4, 4), Labelling(8, 8), Labelling(12, 16)), 0.25
TAGGED = (Labelling(1, 1), Labelling(4, 4), Labelling(4, 4, 4), Labelling(8, 8, 8), Labelling(12, 16, 8))
# Entries of the tables of a tree that are computed, without labels and with: about a minute, and some seconds. Where
# a tree that takes off one column at a time has more than some seconds' worth, columns are taken in runs.
ENTRIES, LABELLED_ENTRIES, PEELED_ENTRIES = 2 * 10**9, 3 * 10**8, 3 * 10**8


def choose_decomposable(system: System, sizes: IntArray, cells: list[IntArray], epsilon: Fraction) -> Choice | None:
    """The exact sampler of a two-way table, or of totals that can be summed out family by family; else None."""
    if system.grid is not None or system.two_way is not None:
        return choose_two_way(system, sizes, cells, epsilon)
    return choose_families(system, sizes, cells, epsilon)


def choose_two_way(system: System, sizes: IntArray, cells: list[IntArray], epsilon: Fraction) -> Choice | None:
    """The exact sampler of a table with at most two axes of more than two categories; None for other blocks."""
    if system.grid is not None and sizes.max() == 1:
        if len(core_shape(system.grid)) > 2:
            return None
        places = folded_order(system.grid)
        return _table_choice(system.grid, len(cells), epsilon, np.concatenate([block[places] for block in cells]))
    if system.two_way is None:
        return None
    entries, places = entry_order(system.two_way, sizes)
    return by_splitting(epsilon, two_way(entries), len(cells), np.concatenate([block[places] for block in cells]))


def choose_families(system: System, sizes: IntArray, cells: list[IntArray], epsilon: Fraction) -> Choice | None:
    """The exact sampler of totals that can be summed out family by family; None for other blocks."""
    if system.collapses is None:
        return None
    table = SplitTable(sizes[:, None], system.collapses)
    return by_splitting(epsilon, table, len(cells), np.concatenate(cells), method="axis_elimination")


def fits(system: System, sizes: IntArray, epsilon: Fraction) -> bool:
    """Whether the tables of the exact sampler of these totals would be small enough; nothing is computed."""
    if system.grid is not None and sizes.max() == 1:
        core = core_shape(system.grid)
        pairs = len(system.grid.shape) - len(core)
        if len(core) < 2:
            return True
        table = two_way(np.ones(core, dtype=np.int64)) if len(core) == 2 else None
        epsilon *= 2**pairs
    elif system.two_way is not None:
        table = two_way(entry_order(system.two_way, sizes)[0])
    else:
        table = None if system.collapses is None else SplitTable(sizes[:, None], system.collapses)
    return table is not None and bool(_labellings(epsilon, bundled(table)))


def _table_choice(grid: Grid, tables: int, epsilon: Fraction, cells: IntArray) -> Choice:
    """A table under all margins of one way less, with at most two axes of more than two categories."""
    core = core_shape(grid)
    pairs = len(grid.shape) - len(core)
    signs = fold_signs(pairs)
    rate = epsilon * 2**pairs
    if len(core) == 2:
        return by_splitting(rate, two_way(np.ones(core, dtype=np.int64)), tables, cells, signs)
    inner: Sampler = ForcedSums(rate, [core[0]] * tables) if core else FreeCells(rate, tables)
    return Choice("part_by_part", Folded(inner, tables, signs), cells, len(cells))


def entry_order(table: TwoWay, sizes: IntArray) -> tuple[IntArray, IntArray]:
    """The number of cells of each entry, the longer side as rows, and the cells of a block entry by entry.

    >>> corner = TwoWay(np.array([0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, 2]))
    >>> entries, places = entry_order(corner, np.array([1, 2, 1, 1, 3]))
    >>> entries.tolist(), places.tolist()
    ([[1, 1], [2, 1], [0, 3]], [0, 3, 1, 2, 4, 5, 6, 7])
    """
    row, column = (table.row, table.column) if table.shape[0] >= table.shape[1] else (table.column, table.row)
    entries = np.zeros((max(table.shape), min(table.shape)), dtype=np.int64)
    entries[row, column] = sizes
    starts = np.cumsum(sizes) - sizes
    order = np.lexsort((column, row))
    return entries, np.concatenate([np.arange(starts[k], starts[k] + sizes[k]) for k in order.tolist()])


def by_splitting(
    epsilon: Fraction,
    table: SplitTable,
    tables: int,
    cells: IntArray,
    signs: IntArray | None = None,
    method: Method = "column_splitting",
) -> Choice:
    """Split the columns of a table if its tables are small enough and a pilot accepts a draw.

    The pilots draw noise with a fixed seed that is used for nothing else, so that a plan is always the same.
    """
    source = rng(seed="keepsum pilot")
    trials: list[_Trial] = []
    if entries_of(epsilon, bundled(table), LABELLINGS[0]) > PEELED_ENTRIES:
        table = in_runs(table)
    for labelling in _labellings(epsilon, bundled(table)):
        sampler = Splitting(epsilon, table, tables, labelling=labelling)
        if not sampler.usable:
            break
        trials.append(_Trial(sampler, *sampler.pilot(source, SPLITTING_PILOT)))
        if trials[-1].accepted >= OFTEN * trials[-1].proposals:
            break
    if not trials:
        return Choice.none(cells, Reason("table_too_large"))
    best = min(reversed(trials), key=lambda trial: trial.parts / trial.accepted if trial.accepted else math.inf)
    for most in LONGER_PILOTS:
        if not best.accepted:
            best = _Trial(best.sampler, *best.sampler.pilot(source, most, 2))
    if not best.accepted:
        return Choice.none(cells, Reason("rarely_accepted", limit=LONGER_PILOTS[-1]))
    whole = best.sampler if signs is None else Folded(best.sampler, tables, signs)
    cost = tables * (PART_COST * best.parts // best.accepted) + len(cells)
    return Choice(method, whole, cells, cost, acceptance=best.accepted / best.proposals)


class _Trial(NamedTuple):
    """What a pilot of a sampler showed."""

    sampler: Splitting
    accepted: int
    proposals: int
    parts: int


def _labellings(epsilon: Fraction, bundles: Bundles) -> list[Labelling]:
    """Numbers of labels whose tables are not too large, fewest first."""
    labellings = TAGGED if any(form.has_tags for form in bundles.forms) else LABELLINGS
    return [
        labelling
        for labelling in labellings
        if entries_of(epsilon, bundles, labelling) <= (ENTRIES if labelling == LABELLINGS[0] else LABELLED_ENTRIES)
    ]
