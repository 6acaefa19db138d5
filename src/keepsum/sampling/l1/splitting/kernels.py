"""Tables by splitting columns: bridges, factors, and the loop over tables."""

from __future__ import annotations

import math

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernel_arguments import Cells, State, States, SumLaw, Task
from keepsum.sampling.core.kernels import ACCEPT_BITS, DONE, MORE, TIE_ACCEPT, TINY, accept, settled
from keepsum.sampling.l1.compositions_kernels import fill_region
from keepsum.sampling.l1.kernel_arguments import Region
from keepsum.sampling.l1.splitting.kernel_arguments import GUIDE, LawTables, SplittingRoom, SplittingTables

DRAW_ROWS, ACCEPT_ROW, ACCEPT_LEFT, ACCEPT_RIGHT, FILL = 0, 1, 2, 3, 4  # the phases of a node, and of a table
OFFSET = 1 << 40  # answers must not be negative, sums may be
ULP = 2.0**-53


@kernel
def draw_sum(words, state: State, laws: LawTables, shift, law, y):
    """The sum u below the left child given a sum y >= 0, with OFFSET added; or MORE, or TIE_ACCEPT."""
    value = settled(state)
    if value >= 0:
        return value
    position = state.position
    if position >= len(words):
        return np.int64(MORE)
    if y > laws.split_reach[law]:
        return np.int64(TIE_ACCEPT)
    count = min(ACCEPT_BITS, 64 - shift)
    bits = words[position] >> np.uint64(64 - count)
    unit = 2.0**-count
    low = np.float64(bits) * unit
    high = low + unit
    place = laws.place_start[law] + y
    start, length, slack = laws.cumulative_start[place], laws.counts[place], laws.slack[place]
    cumulative = laws.cumulative
    m = laws.guide[place * GUIDE + np.int64(low * GUIDE)]
    while m < length and cumulative[start + m] <= low:
        m += 1
    if m == length:
        return np.int64(TIE_ACCEPT)
    below = cumulative[start + m - 1] if m > 0 else 0.0
    upto = cumulative[start + m]
    u = laws.lowest[place] + m
    if laws.stride > 1:
        left, right = laws.left[law], laws.right[law]
        u = laws.lowest[place] + m * laws.stride
        last = u + laws.stride
        upto = below
        while u < last:
            upto = below + weight_of(laws, left, u) * weight_of(laws, right, y - u) * laws.inverse[place]
            if upto > low:
                break
            below = upto
            u += 1
    if below + slack <= low and upto - slack >= high:
        state.position = position + 1
        return u + OFFSET
    return np.int64(TIE_ACCEPT)


@kernel
def weight_of(laws: LawTables, law, y):
    """The weight of a sum, 0 beyond the table."""
    y = abs(y)
    return laws.weights[laws.weight_start[law] + y] if y <= laws.weight_reach[law] else 0.0


@kernel
def solved_row(tables: SplittingTables, sums, node):
    """The row whose part is solved for: the one whose law is flattest."""
    laws = tables.laws
    best, solved = 4.0, np.int64(0)
    for i in range(len(tables.kind_of_row)):
        law = tables.law[node * tables.kinds + tables.kind_of_row[i]]
        y = abs(sums[node, i])
        if y <= laws.split_reach[law]:
            chance = laws.peak_chance[laws.place_start[law] + y]
            if chance < best:
                best, solved = chance, np.int64(i)
    return solved


@kernel
def draw_rows(words, state: State, tables: SplittingTables, sums, node):
    """The parts of all rows but one, freely; that one makes their sum 0."""
    laws, shift, kinds = tables.laws, tables.geometric.shift, tables.kinds
    rows, part = len(tables.kind_of_row), tables.left[node]
    while state.row < rows:
        if state.answer < 0:
            run_rows(words, state, tables, sums, node)
            if state.row == rows:
                break
        i = state.row
        y = sums[node, i]
        value = draw_sum(words, state, laws, shift, tables.law[node * kinds + tables.kind_of_row[i]], abs(y))
        if value < 0:
            return value
        u = value - OFFSET if y >= 0 else OFFSET - value
        sums[part, i] = u
        state.row_sum += u
        state.row += 1
    sums[part, state.solved] = -state.row_sum
    state.rows_drawn += rows
    state.row = state.row_sum = 0
    return np.int64(DONE)


@kernel
def run_rows(words, state: State, tables: SplittingTables, sums, node):
    """As many rows as the words at hand and the absence of ties allow: the loop where the time goes."""
    laws, part, kinds = tables.laws, tables.left[node], tables.kinds
    starts, reaches, kind_of_row = laws.place_start, laws.split_reach, tables.kind_of_row
    cumulative_start, counts, slack = laws.cumulative_start, laws.counts, laws.slack
    cumulative, guide, lowest = laws.cumulative, laws.guide, laws.lowest
    rows, solved = len(kind_of_row), state.solved
    row, row_sum, position = state.row, state.row_sum, state.position
    bits = min(ACCEPT_BITS, 64 - tables.geometric.shift)
    word_shift, unit = np.uint64(64 - bits), 2.0**-bits
    stop = rows if laws.stride == 1 else 0
    law, base, reach = np.int64(-1), np.int64(0), np.int64(0)
    while row < stop:
        if row == solved:
            row += 1
            continue
        if position >= len(words):
            break
        y = sums[node, row]
        row_law = tables.law[node * kinds + kind_of_row[row]]
        if row_law != law:
            law, base, reach = row_law, starts[row_law], reaches[row_law]
        size = abs(y)
        if size > reach:
            break
        low = np.float64(words[position] >> word_shift) * unit
        place = base + size
        start = cumulative_start[place]
        m = guide[place * GUIDE + np.int64(low * GUIDE)]
        length = counts[place]
        while m < length and cumulative[start + m] <= low:
            m += 1
        if m == length:
            break
        doubt = slack[place]
        below = cumulative[start + m - 1] if m > 0 else 0.0
        if below + doubt > low or cumulative[start + m] - doubt < low + unit:
            break
        u = lowest[place] + m
        u = u if y >= 0 else -u
        sums[part, row] = u
        row_sum += u
        position += 1
        row += 1
    state.row, state.row_sum, state.position = row, row_sum, position


@kernel
def accept_row(words, state: State, tables: SplittingTables, sums, node):
    """Accept the part that is solved for, with its weight relative to the peak."""
    laws, shift, i = tables.laws, tables.geometric.shift, state.solved
    law = tables.law[node * tables.kinds + tables.kind_of_row[i]]
    y, u = sums[node, i], sums[tables.left[node], i]
    if abs(y) > laws.split_reach[law]:
        return accept(words, state, shift, 0.0, 1.0)
    peak = laws.peak[laws.place_start[law] + abs(y)]
    left, right = laws.left[law], laws.right[law]
    u, v = abs(u), abs(y - u)
    if u > laws.weight_reach[left] or v > laws.weight_reach[right]:
        top = laws.weight_top[left] * laws.weight_beyond[right] + laws.weight_beyond[left] * laws.weight_top[right]
        return accept(words, state, shift, 0.0, min(1.0, 1.001 * top / peak + TINY))
    u, v = laws.weight_start[left] + u, laws.weight_start[right] + v
    low = max(0.0, laws.weights[u] - laws.weight_error[u]) * max(0.0, laws.weights[v] - laws.weight_error[v])
    high = (laws.weights[u] + laws.weight_error[u]) * (laws.weights[v] + laws.weight_error[v])
    low, high = low / peak * (1.0 - 8.0 * ULP), high / peak * (1.0 + 8.0 * ULP) + TINY
    return accept(words, state, shift, low, min(1.0, high))


@kernel
def accept_node(words, state: State, tables: SplittingTables, room: SplittingRoom, node):
    """Accept the sums below an inner node with chance B / product of t."""
    laws, shift, kinds, sums = tables.laws, tables.geometric.shift, tables.kinds, room.sums
    rows, frequencies = len(tables.kind_of_row), tables.frequencies[node]
    real, imaginary = room.product, room.product_imaginary
    for k in range(frequencies):
        real[k] = 1.0
        imaginary[k] = 0.0
    numbers, error, log_dropped, log_tails = 1.0, 0.0, 0.0, tables.log_alias[node]
    for i in range(rows):
        law = tables.law[node * kinds + tables.kind_of_row[i]]
        y = abs(sums[node, i])
        if y > laws.split_reach[law]:
            return accept(words, state, shift, 0.0, 1.0)
        place = laws.place_start[law] + y
        numbers *= laws.numbers[place]
        error += laws.transform_error[place]
        log_dropped += laws.log_dropped[place]
        log_tails += laws.log_growth[place]
        start = laws.transform_start[place]
        if tables.is_real[node]:
            for k in range(frequencies):
                real[k] *= laws.transform[start + k]
        else:
            sign = 1.0 if sums[node, i] >= 0 else -1.0
            for k in range(frequencies):
                x, z = laws.transform[start + k], sign * laws.transform_imaginary[start + k]
                real[k], imaginary[k] = real[k] * x - imaginary[k] * z, real[k] * z + imaginary[k] * x
    chance = 0.0
    start = tables.measure_start[node]
    for k in range(frequencies):
        chance += tables.measure[start + k] * real[k]
    # Errors of the transforms and of products and sums of numbers of at most 1, whose measure is at most 1.
    error = 1.01 * (error + (6.0 * rows + frequencies + 8.0) * ULP)
    doubt = 1.01 * (error + math.exp(min(log_dropped, 0.0)))
    low = chance - doubt - 1.01 * math.exp(min(log_tails, 0.0))
    rounding = (rows + 8.0) * ULP
    low = max(0.0, low / numbers * (1.0 - rounding))
    high = (chance + doubt) / numbers * (1.0 + rounding)
    return accept(words, state, shift, low, max(TINY, min(1.0, high)))


@kernel
def split_node(words, state: State, tables: SplittingTables, room: SplittingRoom, node):
    """Split the sums below a node; 1 if those of both children are accepted, else 0."""
    sums, inner = room.sums, tables.inner
    left, right = tables.left[node], tables.right[node]
    if state.phase == DRAW_ROWS and state.row == 0 and state.answer < 0:
        state.solved = solved_row(tables, sums, node)
    while state.phase < ACCEPT_LEFT:
        if state.phase == DRAW_ROWS:
            code = draw_rows(words, state, tables, sums, node)
            if code != DONE:
                return code
            state.phase = ACCEPT_ROW
        code = accept_row(words, state, tables, sums, node)
        if code < 0:
            return code
        state.phase = ACCEPT_LEFT if code == 1 else DRAW_ROWS
    if state.phase == ACCEPT_LEFT:
        for i in range(sums.shape[1]):
            sums[right, i] = sums[node, i] - sums[left, i]
        code = accept_node(words, state, tables, room, left) if left < inner else np.int64(1)
        if code != 1:
            return code
        state.phase = ACCEPT_RIGHT
    return accept_node(words, state, tables, room, right) if right < inner else np.int64(1)


@kernel
def fill_entries(words, state: State, tables: SplittingTables, room: SplittingRoom, out, base):
    """The cells of all entries, given their sums."""
    geometric = tables.geometric
    while state.region < len(tables.entry_row):
        e = state.region
        total = room.sums[tables.entry_leaf[e], tables.entry_row[e]]
        start, size = base + tables.entry_start[e], tables.entry_size[e]
        if size == 1:
            out[start] = total
        else:
            law = SumLaw(size, tables.rate, tables.entry_mode[e], geometric.shift)
            region = Region(law, total, tables.entry_method[e])
            code = fill_region(words, state, geometric, geometric, region, Cells(out, start, size), room.scratch)
            if code != DONE:
                return code
        state.region += 1
    state.region = 0
    return np.int64(DONE)


@kernel
def fill_split_tables(words, states: States, tables: SplittingTables, task: Task):
    """Tables one behind the other in ``out``; the room is a ``SplittingRoom``."""
    state = states[0]
    room, out = task.room, task.out
    while task.first + state.job < task.last and state.rows_drawn < task.most:
        while state.phase < FILL:
            code = split_node(words, state, tables, room, state.node)
            if code < 0:
                return code
            state.node = state.node + 1 if code == 1 else np.int64(0)
            state.phase = FILL if state.node == tables.inner else DRAW_ROWS
            state.tries += 1 if code == 0 or state.phase == FILL else 0
            if code == 0 and state.rows_drawn >= task.most:
                break
        if state.phase == FILL:
            code = fill_entries(words, state, tables, room, out, (task.first + state.job) * tables.width)
            if code != DONE:
                return code
            state.phase = DRAW_ROWS
            state.node = 0
            state.job += 1
    return np.int64(DONE)
