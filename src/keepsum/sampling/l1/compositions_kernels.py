"""Cells given their sum: the loop over regions."""

from __future__ import annotations

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernel_arguments import Cells, GeometricTable, PackedTables, State, States, SumLaw, Task
from keepsum.sampling.core.kernels import (
    DONE,
    MORE,
    accept_mass,
    draw_bars,
    fill,
    look_up_packed,
    repair,
    settled,
)
from keepsum.sampling.l1.kernel_arguments import Region, RegionTables

BY_REPAIR, BY_BARS, BY_TABLE = 0, 1, 2  # how a region is drawn
POSITIVE, ACCEPTING, NEGATIVE, REPAIRING = 0, 1, 2, 3  # the stages of a region


@kernel
def accept_positive(words, state: State, plus: GeometricTable, region: Region, cells: Cells):
    """Draw positive parts, and accept them (1) or not (0): their total leaves ``negative_total`` to the others."""
    if state.stage == POSITIVE:
        code = fill(words, state, plus, cells)
        if code != DONE:
            return code
        state.stage = ACCEPTING
    state.negative_total = state.total - region.goal
    code = accept_mass(words, state, region.law, state.negative_total)
    if code >= 0:
        state.total = state.largest = 0
        state.stage = POSITIVE
    return code


@kernel
def fill_negative(words, state: State, minus: GeometricTable, method, cells: Cells, scratch):
    """Take negative parts of the total that is left off the positive ones; the region is then done.

    They are drawn freely and repaired to the total, or placed by bars where repairing would move many balls.
    """
    negative = Cells(scratch, 0, cells.size)
    if method == BY_BARS:
        code = draw_bars(words, state, state.negative_total, negative)
    else:
        if state.stage == NEGATIVE:
            code = fill(words, state, minus, negative)
            if code != DONE:
                return code
            state.current_total = state.total
            state.stage = REPAIRING
        code = repair(words, state, state.negative_total, negative)
    if code == DONE:
        subtract(state, cells, scratch)
    return code


@kernel
def fill_region(words, state: State, plus, minus, region: Region, cells: Cells, scratch):
    """Double geometric noise in one region of any size, given its sum."""
    while state.stage < NEGATIVE:
        code = accept_positive(words, state, plus, region, cells)
        if code < 0:
            return code
        if code == 1:
            state.stage = NEGATIVE
    return fill_negative(words, state, minus, region.method, cells, scratch)


@kernel
def fill_small(words, state: State, totals: PackedTables, table_start, guide_start, cells: Cells, scratch):
    """The same for a small region with sum 0: its total by a table, both parts by bars."""
    if state.stage == 0:
        value = settled(state)
        if value < 0:
            if state.position >= len(words):
                return np.int64(MORE)
            value = look_up_packed(words[state.position], totals, table_start, guide_start)
            if value < 0:
                return value
            state.position += 1
        state.total = value
        state.stage = 1
    if state.stage == 1:
        code = draw_bars(words, state, state.total, cells)
        if code != DONE:
            return code
        state.stage = 2
    code = draw_bars(words, state, state.total, Cells(scratch, 0, cells.size))
    if code == DONE:
        subtract(state, cells, scratch)
    return code


@kernel
def subtract(state: State, cells: Cells, scratch):
    """Positive less negative parts; the region is done."""
    for i in range(cells.size):
        cells.out[cells.start + i] -= scratch[i]
    state.stage = state.total = state.current_total = state.largest = 0


@kernel
def fill_regions(words, states: States, tables: RegionTables, task: Task):
    """Job t is region ``t % R`` of draw ``t // R``; the room is for the largest region."""
    state = states[0]
    plus, minus, totals, rate = tables.plus, tables.minus, tables.totals, tables.rate
    sizes, goals, modes, methods = tables.sizes, tables.goals, tables.modes, tables.methods
    table_starts, guide_starts, starts = tables.table_starts, tables.guide_starts, tables.starts
    scratch, count = task.room, len(sizes)
    while task.first + state.job < task.last:
        job = task.first + state.job
        r = job % count
        cells = Cells(task.out, job // count * tables.width + starts[r], sizes[r])
        if methods[r] == BY_TABLE:
            code = fill_small(words, state, totals, table_starts[r], guide_starts[r], cells, scratch)
        else:
            region = Region(SumLaw(sizes[r], rate, modes[r], minus.shift), goals[r], methods[r])
            code = fill_region(words, state, plus, minus, region, cells, scratch)
        if code != DONE:
            return code
        state.job += 1
    return np.int64(DONE)


@kernel
def fill_freely(words, state: State, geometric: GeometricTable, cells: Cells, scratch):
    """Independent double geometric noise in one region; its sum is left in ``current_total``."""
    if state.stage == 0:
        code = fill(words, state, geometric, cells)
        if code != DONE:
            return code
        state.current_total = state.total
        state.total = 0
        state.stage = 1
    code = fill(words, state, geometric, Cells(scratch, 0, cells.size))
    if code != DONE:
        return code
    for i in range(cells.size):
        cells.out[cells.start + i] -= scratch[i]
    state.current_total -= state.total
    state.total = state.stage = state.largest = 0
    return np.int64(DONE)


@kernel
def fill_free(words, states: States, table: GeometricTable, task: Task):
    """Independent double geometric draws in the cells of a task; the room is for as many."""
    return fill_freely(words, states[0], table, Cells(task.out, task.first, task.last - task.first), task.room)


@kernel
def accept_total(words, states: States, law: SumLaw, verdict):
    """Accept the total that is left to the negative parts of a region filled elsewhere, or not."""
    state = states[0]
    code = accept_mass(words, state, law, state.negative_total)
    if code < 0:
        return code
    verdict[0] = code
    return np.int64(DONE)
