"""Blocks of overlapping totals: draw most regions freely, solve for the others, accept."""

from __future__ import annotations

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernels import (
    DONE,
    JOB,
    LARGEST,
    OTHER,
    PHASE,
    RATIO_AT,
    REGION,
    STAGE,
    TOTAL,
    TRIES,
    accept_mass,
    draw,
    draw_bars,
    fill,
    repair,
)
from keepsum.sampling.l1.compositions_kernels import BARS

DRAW_FREE, ACCEPT_SINGLE, ACCEPT_WIDE, FILL_WIDE = 0, 1, 2, 3


@kernel
def solve(numerators, denominator, free_sums, tail_sums):
    """The sums of the other regions, -numerators * free / denominator; False if one is not whole."""
    for i in range(numerators.shape[0]):
        value = np.int64(0)
        for j in range(numerators.shape[1]):
            value += numerators[i, j] * free_sums[j]
        if value % denominator != 0:
            return False
        tail_sums[i] = -(value // denominator)
    return True


@kernel
def fill_freely(words, state, table, out, start, size, scratch):
    """Independent double geometric noise in one region; its sum is left in OTHER."""
    if state[STAGE] == 0:
        code = fill(words, state, table, out, start, size)
        if code != DONE:
            return code
        state[OTHER] = state[TOTAL]
        state[TOTAL] = 0
        state[STAGE] = 1
    code = fill(words, state, table, scratch, 0, size)
    if code != DONE:
        return code
    for i in range(size):
        out[start + i] -= scratch[i]
    state[OTHER] -= state[TOTAL]
    state[TOTAL] = state[STAGE] = state[LARGEST] = 0
    return np.int64(DONE)


@kernel
def accept_single(words, state, table, tail, sizes, tail_sums):
    """Accept the solved regions of one cell: a geometric draw is at least k with chance a^k."""
    needed = np.int64(0)
    for i in range(len(tail)):
        if sizes[tail[i]] == 1:
            needed += abs(tail_sums[i])
    if needed == 0:
        return np.int64(1)
    value = draw(words, state, table)
    if value < 0:
        return value
    return np.int64(1) if value >= needed else np.int64(0)


@kernel
def accept_wide(words, state, table, a, size, mode, goal, out, start):
    """Accept a solved region of several cells: its positive parts, and the chance that the negative ones fit."""
    if state[STAGE] == 0:
        code = fill(words, state, table, out, start, size)
        if code != DONE:
            return code
        state[STAGE] = 1
    state[RATIO_AT] = state[TOTAL] - goal
    code = accept_mass(words, state, table.shift, size, a, mode, state[RATIO_AT])
    if code >= 0:
        state[STAGE] = state[TOTAL] = state[LARGEST] = 0
    return code


@kernel
def fill_wide(words, state, table, method, size, goal, out, start, scratch):
    """The negative parts of an accepted region."""
    if state[STAGE] == 0:
        total = np.int64(0)
        for i in range(size):
            total += out[start + i]
        state[RATIO_AT] = total - goal
        state[STAGE] = 2 if method == BARS else 1
    if state[STAGE] == 1:
        code = fill(words, state, table, scratch, 0, size)
        if code != DONE:
            return code
        state[OTHER] = state[TOTAL]
        state[STAGE] = 3
    if state[STAGE] == 2:
        code = draw_bars(words, state, scratch, 0, size, state[RATIO_AT])
    else:
        code = repair(words, state, scratch, size, state[RATIO_AT])
    if code != DONE:
        return code
    for i in range(size):
        out[start + i] -= scratch[i]
    state[STAGE] = state[TOTAL] = state[OTHER] = state[LARGEST] = 0
    return np.int64(DONE)


@kernel
def fill_blocks(
    words, state, table, a, sizes, starts, modes, methods, free, singles, tail, numerators, denominator, width, first,
    last, out, most, scratch, single_sums, free_sums, tail_sums,
):  # fmt: skip
    """Blocks ``first`` to ``last``, each ``width`` cells in ``out``, in at most ``most`` tries."""
    while first + state[JOB] < last and (state[TRIES] < most or state[PHASE] > DRAW_FREE):
        base = (first + state[JOB]) * width
        if state[PHASE] == DRAW_FREE:
            if state[REGION] < singles:
                # Free regions of one cell come first and are drawn together.
                code = fill_freely(words, state, table, single_sums, 0, singles, scratch)
                if code != DONE:
                    return code
                for i in range(singles):
                    free_sums[i] = single_sums[i]
                    out[base + starts[free[i]]] = single_sums[i]
                state[OTHER] = 0
                state[REGION] = singles
            while state[REGION] < len(free):
                r = free[state[REGION]]
                code = fill_freely(words, state, table, out, base + starts[r], sizes[r], scratch)
                if code != DONE:
                    return code
                free_sums[state[REGION]] = state[OTHER]
                state[OTHER] = 0
                state[REGION] += 1
            state[REGION] = 0
            state[TRIES] += 1
            if not solve(numerators, denominator, free_sums, tail_sums):
                continue
            state[PHASE] = ACCEPT_SINGLE
        if state[PHASE] == ACCEPT_SINGLE:
            code = accept_single(words, state, table, tail, sizes, tail_sums)
            if code < 0:
                return code
            state[PHASE] = ACCEPT_WIDE if code == 1 else DRAW_FREE
            if code == 0:
                continue
        accepted = True
        while state[PHASE] == ACCEPT_WIDE and state[REGION] < len(tail):
            i = state[REGION]
            r = tail[i]
            if sizes[r] == 1:
                out[base + starts[r]] = tail_sums[i]
            else:
                code = accept_wide(words, state, table, a, sizes[r], modes[r], tail_sums[i], out, base + starts[r])
                if code < 0:
                    return code
                if code == 0:
                    accepted = False
                    break
            state[REGION] += 1
        if state[PHASE] == ACCEPT_WIDE:
            state[REGION] = 0
            state[PHASE] = FILL_WIDE if accepted else DRAW_FREE
            if not accepted:
                continue
        while state[REGION] < len(tail):
            i = state[REGION]
            r = tail[i]
            if sizes[r] > 1:
                code = fill_wide(
                    words, state, table, methods[r], sizes[r], tail_sums[i], out, base + starts[r], scratch
                )
                if code != DONE:
                    return code
            state[REGION] += 1
        state[REGION] = state[PHASE] = 0
        state[JOB] += 1
    return np.int64(DONE)
