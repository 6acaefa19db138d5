"""Blocks of overlapping totals: draw most regions freely, solve for the others, accept."""

from __future__ import annotations

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernel_arguments import Cells, State, States, Task
from keepsum.sampling.core.kernels import DONE
from keepsum.sampling.l1.double_geometric_kernels import fill
from keepsum.sampling.l1.forced_sums_kernels import accept_sum, fill_given_sum
from keepsum.sampling.l1.kernel_arguments import SolvedRoom, SolvedTables

DRAW_FREE, ACCEPT_SINGLES, ACCEPT_WIDE, FILL_SOLVED = 0, 1, 2, 3  # the phases of a block


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
    noise, free, starts, singles = tables.noise, tables.free, tables.starts, tables.singles
    if state.region < singles:
        code = fill(words, state, noise, Cells(room.single_sums, 0, singles))
        if code != DONE:
            return code
        for i in range(singles):
            room.free_sums[i] = room.single_sums[i]
            out[base + starts[free[i]]] = room.single_sums[i]
        state.total = 0
        state.region = singles
    while state.region < len(free):
        r = free[state.region]
        code = fill(words, state, noise, Cells(out, base + starts[r], tables.sizes[r]))
        if code != DONE:
            return code
        room.free_sums[state.region] = state.total
        state.total = 0
        state.region += 1
    state.region = 0
    return np.int64(DONE)


@kernel
def accept_singles(words, state: State, tables: SolvedTables, room: SolvedRoom):
    """Accept the solved regions of one cell, all at once: their chances are those of one cell with their lengths."""
    state.rest = 0
    for i in range(len(tables.solved)):
        if tables.sizes[tables.solved[i]] == 1:
            state.rest += abs(room.solved_sums[i])
    if state.rest == 0:
        return np.int64(1)
    return accept_sum(words, state, tables.sums, 0, state.rest)


@kernel
def accept_wide(words, state: State, tables: SolvedTables, room: SolvedRoom):
    """Accept the solved regions of several cells, one after the other."""
    while state.region < len(tables.solved):
        i = state.region
        if tables.sizes[tables.solved[i]] > 1:
            code = accept_sum(words, state, tables.sums, tables.laws[i], room.solved_sums[i])
            if code != 1:
                state.region = 0 if code == 0 else state.region
                return code
        state.region += 1
    state.region = 0
    return np.int64(1)


@kernel
def fill_solved(words, state: State, tables: SolvedTables, room: SolvedRoom, out, base):
    """The cells of the solved regions, given their sums."""
    while state.region < len(tables.solved):
        r = tables.solved[state.region]
        cells = Cells(out, base + tables.starts[r], tables.sizes[r])
        code = fill_given_sum(words, state, tables.noise, tables.sums, cells, room.solved_sums[state.region])
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
            state.phase = ACCEPT_SINGLES
        if state.phase == ACCEPT_SINGLES:
            code = accept_singles(words, state, tables, room)
            if code < 0:
                return code
            state.phase = ACCEPT_WIDE if code == 1 else DRAW_FREE
            if code == 0:
                continue
        if state.phase == ACCEPT_WIDE:
            code = accept_wide(words, state, tables, room)
            if code < 0:
                return code
            state.phase = FILL_SOLVED if code == 1 else DRAW_FREE
            if code == 0:
                continue
        code = fill_solved(words, state, tables, room, out, base)
        if code != DONE:
            return code
        state.phase = DRAW_FREE
        state.job += 1
    return np.int64(DONE)
