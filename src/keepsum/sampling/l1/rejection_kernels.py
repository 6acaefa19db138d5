"""Blocks of overlapping totals: draw most regions freely, solve for the others, accept."""

from __future__ import annotations

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernel_arguments import Cells, State, States, SumLaw, Task
from keepsum.sampling.core.kernels import DONE, draw_word
from keepsum.sampling.l1.compositions_kernels import NEGATIVE, accept_positive, fill_freely, fill_negative
from keepsum.sampling.l1.kernel_arguments import Region, SolvedRoom, SolvedTables

DRAW_FREE, ACCEPT_SINGLE, ACCEPT_WIDE, FILL_WIDE = 0, 1, 2, 3  # the phases of a block


@kernel
def solve(tables: SolvedTables, room: SolvedRoom):
    """The sums of the other regions, -numerators * free / denominator; False if one is not whole."""
    numerators, denominator = tables.numerators, tables.denominator
    for i in range(numerators.shape[0]):
        value = np.int64(0)
        for j in range(numerators.shape[1]):
            value += numerators[i, j] * room.free_sums[j]
        if value % denominator != 0:
            return False
        room.solved_sums[i] = -(value // denominator)
    return True


@kernel
def draw_free(words, state: State, tables: SolvedTables, room: SolvedRoom, out, base):
    """All free regions and their sums; those of one cell come first and are drawn together."""
    geometric, free, starts, singles = tables.geometric, tables.free, tables.starts, tables.singles
    if state.region < singles:
        code = fill_freely(words, state, geometric, Cells(room.single_sums, 0, singles), room.scratch)
        if code != DONE:
            return code
        for i in range(singles):
            room.free_sums[i] = room.single_sums[i]
            out[base + starts[free[i]]] = room.single_sums[i]
        state.current_total = 0
        state.region = singles
    while state.region < len(free):
        r = free[state.region]
        code = fill_freely(words, state, geometric, Cells(out, base + starts[r], tables.sizes[r]), room.scratch)
        if code != DONE:
            return code
        room.free_sums[state.region] = state.current_total
        state.current_total = 0
        state.region += 1
    state.region = 0
    return np.int64(DONE)


@kernel
def accept_single(words, state: State, tables: SolvedTables, room: SolvedRoom):
    """Accept the solved regions of one cell: a geometric draw is at least k with chance a^k."""
    needed = np.int64(0)
    for i in range(len(tables.solved)):
        if tables.sizes[tables.solved[i]] == 1:
            needed += abs(room.solved_sums[i])
    if needed == 0:
        return np.int64(1)
    value, _ = draw_word(words, state, tables.geometric)
    if value < 0:
        return value
    return np.int64(1) if value >= needed else np.int64(0)


@kernel
def accept_wide(words, state: State, tables: SolvedTables, room: SolvedRoom, out, base):
    """Accept the solved regions of several cells: their positive parts, and the chance that the negative ones fit."""
    while state.region < len(tables.solved):
        i = state.region
        r = tables.solved[i]
        if tables.sizes[r] == 1:
            out[base + tables.starts[r]] = room.solved_sums[i]
        else:
            law = SumLaw(tables.sizes[r], tables.rate, tables.modes[r], tables.geometric.shift)
            region = Region(law, room.solved_sums[i], tables.methods[r])
            cells = Cells(out, base + tables.starts[r], tables.sizes[r])
            code = accept_positive(words, state, tables.geometric, region, cells)
            if code < 0:
                return code
            if code == 0:
                state.region = 0
                return code
        state.region += 1
    state.region = 0
    return np.int64(1)


@kernel
def fill_wide(words, state: State, tables: SolvedTables, room: SolvedRoom, out, base):
    """The negative parts of the accepted regions of several cells."""
    while state.region < len(tables.solved):
        i = state.region
        r = tables.solved[i]
        if tables.sizes[r] > 1:
            cells = Cells(out, base + tables.starts[r], tables.sizes[r])
            if state.stage == 0:
                total = np.int64(0)
                for j in range(cells.size):
                    total += out[cells.start + j]
                state.negative_total = total - room.solved_sums[i]
                state.stage = NEGATIVE
            code = fill_negative(words, state, tables.geometric, tables.methods[r], cells, room.scratch)
            if code != DONE:
                return code
        state.region += 1
    state.region = 0
    return np.int64(DONE)


@kernel
def fill_blocks(words, states: States, tables: SolvedTables, task: Task):
    """Blocks one behind the other in ``out``; the room is a ``SolvedRoom``."""
    state = states[0]
    room, out = task.room, task.out
    while task.first + state.job < task.last and (state.tries < task.most or state.phase > DRAW_FREE):
        base = (task.first + state.job) * tables.width
        if state.phase == DRAW_FREE:
            code = draw_free(words, state, tables, room, out, base)
            if code != DONE:
                return code
            state.tries += 1
            if not solve(tables, room):
                continue
            state.phase = ACCEPT_SINGLE
        if state.phase == ACCEPT_SINGLE:
            code = accept_single(words, state, tables, room)
            if code < 0:
                return code
            state.phase = ACCEPT_WIDE if code == 1 else DRAW_FREE
            if code == 0:
                continue
        if state.phase == ACCEPT_WIDE:
            code = accept_wide(words, state, tables, room, out, base)
            if code < 0:
                return code
            state.phase = FILL_WIDE if code == 1 else DRAW_FREE
            if code == 0:
                continue
        code = fill_wide(words, state, tables, room, out, base)
        if code != DONE:
            return code
        state.phase = DRAW_FREE
        state.job += 1
    return np.int64(DONE)
