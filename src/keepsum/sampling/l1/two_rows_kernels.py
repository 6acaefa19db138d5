"""Tables under both margins, by their last two rows: convolutions along a row, and the loop over tables."""

from __future__ import annotations

import math

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernel_arguments import Cells, State, States, Task
from keepsum.sampling.core.kernels import ACCEPT_BITS, DONE, MORE, TIE_ACCEPT, TINY, accept, settled
from keepsum.sampling.l1.compositions_kernels import BY_BARS, fill_region, fill_small
from keepsum.sampling.l1.kernel_arguments import Entry, Region, TwoRowsRoom, TwoRowsTables

DRAW_ROWS, ACCEPT_ROWS, LAST_ROWS = 0, 1, 2  # the phases of a table
OFFSET = 1 << 40  # answers must not be negative, entries of a table may be


@kernel
def reach_of(columns, epsilon, spread):
    """How far sums along a row are followed: the rest weighs less than ``tail_weight``."""
    r = math.exp(-0.5 * epsilon)
    return int((16.0 + columns * math.log((1.0 + r) / (1.0 - r)) + 2.0 * epsilon * spread) / (1.5 * epsilon)) + 1


@kernel
def tail_weight(columns, epsilon, spread, reach):
    """A bound on the weight of all u with |u|_1 beyond ``reach``.

    a^(|u_j| + |u_j + T_j|) <= a^(2 |u_j| - |T_j|), and with r = exp(-eps/2) the sum of r^(4 |u|_1) over |u|_1 > h
    is at most r^(3 h) times the sum of r^(|u|_1), which is ((1 + r)/(1 - r))^c. One part in a thousand is for the
    rounding of this very formula.
    """
    r = math.exp(-0.5 * epsilon)
    exponent = columns * math.log((1.0 + r) / (1.0 - r)) + epsilon * spread - 1.5 * epsilon * reach
    return 1.001 * math.exp(exponent)


@kernel
def window_sums(g, size, length, out, ahead):
    """out[x] += g[x] + ... + g[x + length - 1] (or backwards), by sums alone: nothing is subtracted."""
    before = 0.0  # the sum from the start of a stretch of `length` entries
    for start in range(0, size, length):
        stop = min(start + length, size)
        # Entries up to the end of the stretch, for each x in it; then entries from the start of the next one.
        after = 0.0
        for i in range(stop - 1, start - 1, -1):
            x = i if ahead else size - 1 - i
            after += g[x]
            out[x] += after
        before = 0.0
        for i in range(stop, min(stop + length - 1, size)):
            before += g[i if ahead else size - 1 - i]
            x = i - length + 1
            if start < x < stop:
                out[x if ahead else size - 1 - x] += before
        for x in range(max(start + 1, size - length + 1), stop):
            if x + length - 1 >= size:  # the window reaches beyond the end: all of the next stretch
                out[x if ahead else size - 1 - x] += before


@kernel
def convolve(g, size, a, t, out, work):
    """out(x) = sum over s of a^(|s| + |s + t|) g(x - s): a flat part over t + 1 entries and two geometric tails.

    Sums and products of positive numbers only, so that relative errors add up to less than 6 * size * 2^-53.
    """
    b = a * a
    ahead = t >= 0
    flat = abs(t)
    forward, backward = 0.0, 0.0
    for i in range(size):  # both tails in one loop: two chains of products run side by side
        x = i if ahead else size - 1 - i
        y = size - 1 - x
        out[x] = forward
        forward = b * (g[x] + forward)
        work[y] = backward
        backward = b * (g[y] + backward)
    for i in range(size - flat):
        x = i if ahead else size - 1 - i
        out[x] += work[x + t]
    window_sums(g, size, flat + 1, out, ahead)
    scale = a**flat
    for x in range(size):
        out[x] *= scale


@kernel
def spread_of(sums):
    """|T| in l1."""
    spread = np.int64(0)
    for j in range(len(sums)):
        spread += abs(sums[j])
    return spread


@kernel
def suffix_weights(tables: TwoRowsTables, room: TwoRowsRoom, reach):
    """suffix[j](x) for j >= 1: the weight of columns j, j + 1, ... with sum x; returned, that of all with sum 0."""
    powers, sums, suffix = tables.powers, room.sums, room.suffix
    size = 2 * reach + 1
    last = tables.columns - 1
    for x in range(size):
        s = x - reach
        suffix[last, x] = powers[abs(s) + abs(s + sums[last])]
    for j in range(last - 1, 0, -1):
        convolve(suffix[j + 1], size, tables.law.rate, sums[j], suffix[j], room.work)
    total = 0.0
    for x in range(size):
        s = reach - x
        total += powers[abs(s) + abs(s + sums[0])] * suffix[1, x]
    return total


@kernel
def pick(words, state: State, shift, powers, rest, entry: Entry):
    """Draw an entry by inversion, or MORE, or TIE_ACCEPT; OFFSET is added. ``rest`` weighs the columns behind."""
    value = settled(state)
    if value >= 0:
        return value
    position = state.position
    if position >= len(words):
        return np.int64(MORE)
    count = min(ACCEPT_BITS, 64 - shift)
    bits = np.float64(words[position] >> np.uint64(64 - count))
    unit = entry.total * 2.0**-count
    low, high = bits * unit, (bits + 1.0) * unit
    below = 0.0
    for x in range(2 * entry.reach, -1, -1):
        s = entry.goal + entry.reach - x
        upto = below + powers[abs(s) + abs(s + entry.need)] * rest[x]
        if upto - entry.error >= high:
            if below + entry.error <= low:
                state.position = position + 1
                return np.int64(s + OFFSET)
            break
        if upto + entry.error > low:
            break  # the word does not tell s from its neighbour
        below = upto
    return np.int64(TIE_ACCEPT)


@kernel
def accept_rows(words, state: State, tables: TwoRowsTables, room: TwoRowsRoom):
    """Accept column sums T with chance W(T) / W(0).

    First a cheap look: W(T) is at most the product of the whole weights of the columns, a^t (t + 1 + tails).
    """
    columns, epsilon, shift = tables.columns, tables.epsilon, tables.geometric.shift
    spread = spread_of(room.sums)
    reach = reach_of(columns, epsilon, spread)
    size = 2 * reach + 1
    if size > room.suffix.shape[1]:
        return accept(words, state, shift, 0.0, 1.0)
    if state.answer < 0:
        position = state.position
        if position >= len(words):
            return np.int64(MORE)
        cheap = tables.scale_high
        for j in range(columns):
            t = abs(room.sums[j])
            cheap *= tables.powers[t] * (t + 1.0 + tables.tails)
        count = min(ACCEPT_BITS, 64 - shift)
        # Beside the margin for rounding a floor: products may underflow, chances do not.
        if np.float64(words[position] >> np.uint64(64 - count)) >= max(cheap * (1.0 + 1e-12), TINY) * 2.0**count:
            state.position = position + 1
            return np.int64(0)
    weight = suffix_weights(tables, room, reach)
    error = (7.0 * size * columns + 16.0) * 2.0**-53
    low = weight * (1.0 - error) * tables.scale_low * (1.0 - 1e-14)
    high = (weight * (1.0 + error) + tail_weight(columns, epsilon, spread, reach)) * tables.scale_high
    return accept(words, state, shift, low, max(high, TINY))


@kernel
def column_sums(out, start, rows, columns, sums):
    """The sums over all rows but the last two."""
    for j in range(columns):
        sums[j] = 0
    for i in range(rows - 2):
        for j in range(columns):
            sums[j] += out[start + i * columns + j]


@kernel
def last_rows(words, state: State, tables: TwoRowsTables, room: TwoRowsRoom, out, start):
    """Draw one of the last two rows column by column; the other makes up the column sums."""
    rows, columns, sums, suffix = tables.rows, tables.columns, room.sums, room.suffix
    spread = spread_of(sums)
    reach = reach_of(columns, tables.epsilon, spread)
    size = 2 * reach + 1
    fits = size <= suffix.shape[1]
    weight = suffix_weights(tables, room, reach) if fits else 0.0
    error = (8.0 * size * columns + 16.0) * 2.0**-53
    tail = tail_weight(columns, tables.epsilon, spread, reach)
    while state.column < columns:
        j = state.column
        goal = -state.row_sum
        value = goal + OFFSET
        if j < columns - 1:
            total = weight if j == 0 else (suffix[j, goal + reach] if fits and abs(goal) <= reach else 0.0)
            # Once for what is compared, once for the total it is measured by.
            slack = 2.0 * (total * error + tail) + TINY
            # Without room, or where rounding swallows the weight, every comparison is left to the referee.
            entry = Entry(sums[j], goal, reach if total > 0.0 else -1, total, slack)
            value = pick(words, state, tables.geometric.shift, tables.powers, suffix[j + 1], entry)
            if value < 0:
                return value
        value -= OFFSET
        out[start + (rows - 2) * columns + j] = value
        out[start + (rows - 1) * columns + j] = -sums[j] - value
        state.row_sum += value
        state.column += 1
    state.column = state.row_sum = 0
    return np.int64(DONE)


@kernel
def draw_rows(words, state: State, tables: TwoRowsTables, scratch, out, start):
    """All rows but the last two."""
    geometric = tables.geometric
    region = Region(tables.law, np.int64(0), np.int64(BY_BARS))
    while state.region < tables.rows - 2:
        cells = Cells(out, start + state.region * tables.columns, tables.columns)
        if tables.by_table:
            code = fill_small(words, state, tables.totals, 0, 0, cells, scratch)
        else:
            code = fill_region(words, state, geometric, geometric, region, cells, scratch)
        if code != DONE:
            return code
        state.region += 1
    state.region = 0
    return np.int64(DONE)


@kernel
def fill_tables(words, states: States, tables: TwoRowsTables, task: Task):
    """Tables one behind the other in ``out``; the room is a ``TwoRowsRoom``."""
    state = states[0]
    room, out, rows, columns = task.room, task.out, tables.rows, tables.columns
    while task.first + state.job < task.last and state.tries < task.most:
        start = (task.first + state.job) * rows * columns
        if state.phase == DRAW_ROWS:
            code = draw_rows(words, state, tables, room.scratch, out, start)
            if code != DONE:
                return code
            state.phase = ACCEPT_ROWS
        column_sums(out, start, rows, columns, room.sums)
        if state.phase == ACCEPT_ROWS:
            code = accept_rows(words, state, tables, room)
            if code < 0:
                return code
            state.tries += 1
            state.phase = LAST_ROWS if code == 1 else DRAW_ROWS
            if code == 0:
                continue
        code = last_rows(words, state, tables, room, out, start)
        if code != DONE:
            return code
        state.phase = DRAW_ROWS
        state.job += 1
    return np.int64(DONE)
