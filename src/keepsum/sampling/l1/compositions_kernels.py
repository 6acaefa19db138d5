"""Cells given their sum: the loop over regions."""

from __future__ import annotations

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernels import (
    ANSWER,
    CELL,
    DONE,
    JOB,
    LARGEST,
    MORE,
    OTHER,
    POSITION,
    RATIO_AT,
    STAGE,
    TIE_DRAW,
    TOTAL,
    accept_mass,
    draw,
    draw_bars,
    fill,
    repair,
)

MEND, BARS, TABLE = 0, 1, 2


@kernel
def draw_positive(words, state, plus, minus, a, size, goal, mode, out, start):
    """Positive parts until their total is accepted; RATIO_AT is then the total of the negative parts, STAGE is 2."""
    while state[STAGE] < 2:
        if state[STAGE] == 0:
            code = fill(words, state, plus, out, start, size)
            if code != DONE:
                return code
            state[STAGE] = 1
        state[RATIO_AT] = state[TOTAL] - goal
        code = accept_mass(words, state, minus.shift, size, a, mode, state[RATIO_AT])
        if code < 0:
            return code
        state[TOTAL] = state[LARGEST] = 0
        state[STAGE] = 2 if code == 1 else 0
    return np.int64(DONE)


@kernel
def fill_region(words, state, plus, minus, a, size, goal, mode, by_bars, out, start, scratch):
    """Double geometric noise in one region of any size, given that its sum is ``goal``.

    Stages: 0 and 1, the positive parts; 2, the negative parts; 3, mend their total. Where mending would move many
    balls the negative parts are placed by bars instead, total and all.
    """
    code = draw_positive(words, state, plus, minus, a, size, goal, mode, out, start)
    if code != DONE:
        return code
    if by_bars:
        code = draw_bars(words, state, scratch, 0, size, state[RATIO_AT])
    else:
        if state[STAGE] == 2:
            code = fill(words, state, minus, scratch, 0, size)
            if code != DONE:
                return code
            state[OTHER] = state[TOTAL]
            state[STAGE] = 3
        code = repair(words, state, scratch, size, state[RATIO_AT])
    if code != DONE:
        return code
    subtract(state, size, out, start, scratch)
    return np.int64(DONE)


@kernel
def fill_small(words, state, totals, table_start, guide_start, size, out, start, scratch):
    """The same for a small region with sum 0: its total by a table, both parts by bars."""
    if state[STAGE] == 0:
        value = state[ANSWER]
        if value >= 0:
            state[ANSWER] = -1
        else:
            if state[POSITION] >= len(words):
                return np.int64(MORE)
            bits = words[state[POSITION]] >> np.uint64(totals.shift)
            k = np.int64(totals.guide[guide_start + np.int64(bits >> np.uint64(totals.guide_shift))])
            while totals.table[table_start + k] < bits:
                k += 1
            if totals.table[table_start + k] == bits:
                return np.int64(TIE_DRAW)
            state[POSITION] += 1
            value = k
        state[TOTAL] = value
        state[STAGE] = 1
    if state[STAGE] == 1:
        code = draw_bars(words, state, out, start, size, state[TOTAL])
        if code != DONE:
            return code
        state[STAGE] = 2
    code = draw_bars(words, state, scratch, 0, size, state[TOTAL])
    if code != DONE:
        return code
    subtract(state, size, out, start, scratch)
    return np.int64(DONE)


@kernel
def subtract(state, size, out, start, scratch):
    """Positive less negative parts; the region is done."""
    for i in range(size):
        out[start + i] -= scratch[i]
    state[STAGE] = state[TOTAL] = state[OTHER] = state[LARGEST] = 0


@kernel
def fill_regions(
    words, state, plus, minus, a, totals, sizes, goals, modes, methods, table_starts, guide_starts, starts, width,
    first, last, out, scratch,
):  # fmt: skip
    """Jobs ``first`` to ``last``: job t is region ``t % R`` of draw ``t // R``, a draw being ``width`` cells."""
    count = len(sizes)
    while first + state[JOB] < last:
        job = first + state[JOB]
        r = job % count
        n = sizes[r]
        start = job // count * width + starts[r]
        if methods[r] == TABLE:
            code = fill_small(words, state, totals, table_starts[r], guide_starts[r], n, out, start, scratch)
        else:
            bars = methods[r] == BARS
            code = fill_region(words, state, plus, minus, a, n, goals[r], modes[r], bars, out, start, scratch)
        if code != DONE:
            return code
        state[JOB] += 1
    return np.int64(DONE)


@kernel
def fill_free(words, state, table, first, last, out):
    """Independent double geometric draws in cells ``first`` to ``last``."""
    size = last - first
    while state[CELL] < size:
        if state[STAGE] == 0:
            value = draw(words, state, table)
            if value < 0:
                return value
            state[TOTAL] = value
            state[STAGE] = 1
        value = draw(words, state, table)
        if value < 0:
            return value
        out[first + state[CELL]] = state[TOTAL] - value
        state[CELL] += 1
        state[STAGE] = 0
    return np.int64(DONE)


@kernel
def accept_total(words, state, shift, size, a, mode):
    """Accept the total in RATIO_AT of a region filled elsewhere; the answer in TOTAL."""
    code = accept_mass(words, state, shift, size, a, mode, state[RATIO_AT])
    if code < 0:
        return code
    state[TOTAL] = code
    return np.int64(DONE)
