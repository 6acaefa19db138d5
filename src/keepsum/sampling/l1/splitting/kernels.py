"""Tables by splitting columns: bridges, and the loops over nodes and tables."""

from __future__ import annotations

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernel_arguments import Cells, State, States, Task
from keepsum.sampling.core.kernels import ACCEPT_BITS, DONE, MORE, TIE_ACCEPT, TINY, accept, settled
from keepsum.sampling.l1.forced_sums_kernels import fill_given_sum
from keepsum.sampling.l1.splitting.factor_kernels import ULP, accept_node, pick_label, pick_root, split_of_row
from keepsum.sampling.l1.splitting.kernel_arguments import GUIDE, SplitTables, SplittingRoom, SplittingTables

# The phases of a table: the base of the root; of a node, its rows, the row that is solved for, and the labels and
# factors of both children; the cells.
PICK_ROOT, DRAW_ROWS, ACCEPT_ROW, LABEL_LEFT, ACCEPT_LEFT, LABEL_RIGHT, ACCEPT_RIGHT, FILL = range(8)
OFFSET = 1 << 40  # answers must not be negative, sums may be


@kernel
def draw_sum(words, state: State, splits: SplitTables, shift, split, y):
    """The sum u below the left child given a sum y >= 0, with OFFSET added; or MORE, or TIE_ACCEPT."""
    value = settled(state)
    if value >= 0:
        return value
    position = state.position
    if position >= len(words):
        return np.int64(MORE)
    if y > splits.reach[split]:
        return np.int64(TIE_ACCEPT)
    count = min(ACCEPT_BITS, 64 - shift)
    unit = 2.0**-count
    low = np.float64(words[position] >> np.uint64(64 - count)) * unit
    place = splits.place_start[split] + y
    start, length, slack = splits.cumulative_start[place], splits.counts[place], splits.slack[place]
    cumulative = splits.cumulative
    m = splits.guide[place * GUIDE + np.int64(low * GUIDE)]
    while m < length and cumulative[start + m] <= low:
        m += 1
    if m == length:
        return np.int64(TIE_ACCEPT)
    below = cumulative[start + m - 1] if m > 0 else 0.0
    upto = cumulative[start + m]
    u = splits.lowest[place] + m
    if splits.stride > 1:
        left, right = splits.left[split], splits.right[split]
        u = splits.lowest[place] + m * splits.stride
        last = u + splits.stride
        upto = below
        while u < last:
            upto = below + weight_of(splits, left, u) * weight_of(splits, right, y - u) * splits.inverse[place]
            if upto > low:
                break
            below = upto
            u += 1
    if below + slack <= low and upto - slack >= low + unit:
        state.position = position + 1
        return u + OFFSET
    return np.int64(TIE_ACCEPT)


@kernel
def weight_of(splits: SplitTables, weights, y):
    """The weight of a sum, 0 beyond the table."""
    y = abs(y)
    return splits.weights[splits.weight_start[weights] + y] if y <= splits.weight_reach[weights] else 0.0


@kernel
def solved_row(tables: SplittingTables, room: SplittingRoom, node):
    """The row whose part is solved for: the one whose law is flattest."""
    splits = tables.splits
    best, solved = 4.0, np.int64(0)
    for i in range(len(tables.kind_of_row)):
        split = split_of_row(tables, node, room.base[node], i)
        y = abs(room.sums[node, i])
        if y <= splits.reach[split]:
            chance = splits.peak_chance[splits.place_start[split] + y]
            if chance < best:
                best, solved = chance, np.int64(i)
    return solved


@kernel
def draw_rows(words, state: State, tables: SplittingTables, room: SplittingRoom, node):
    """The parts of all rows but one, freely; that one makes their sum 0."""
    splits, shift, sums = tables.splits, tables.sums.shift, room.sums
    rows, part, base = len(tables.kind_of_row), tables.left[node], room.base[node]
    while state.row < rows:
        if state.answer < 0:
            run_rows(words, state, tables, room, node)
            if state.row == rows:
                break
        i = state.row
        if i == state.solved:
            state.row += 1
            continue
        y = sums[node, i]
        value = draw_sum(words, state, splits, shift, split_of_row(tables, node, base, i), abs(y))
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
def run_rows(words, state: State, tables: SplittingTables, room: SplittingRoom, node):
    """As many rows as the words at hand and the absence of ties allow: the loop where the time goes."""
    splits, part, sums = tables.splits, tables.left[node], room.sums
    cumulative_start, counts, slack = splits.cumulative_start, splits.counts, splits.slack
    cumulative, guide, lowest = splits.cumulative, splits.guide, splits.lowest
    rows, solved, node_base = len(tables.kind_of_row), state.solved, room.base[node]
    row, row_sum, position = state.row, state.row_sum, state.position
    bits = min(ACCEPT_BITS, 64 - tables.sums.shift)
    word_shift, unit = np.uint64(64 - bits), 2.0**-bits
    stop = rows if splits.stride == 1 else 0
    while row < stop:
        if row == solved:
            row += 1
            continue
        if position >= len(words):
            break
        y = sums[node, row]
        split = split_of_row(tables, node, node_base, row)
        size = abs(y)
        if size > splits.reach[split]:
            break
        low = np.float64(words[position] >> word_shift) * unit
        place = splits.place_start[split] + size
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
def accept_row(words, state: State, tables: SplittingTables, room: SplittingRoom, node):
    """Accept the part that is solved for, with its weight relative to the peak."""
    splits, shift, i = tables.splits, tables.sums.shift, state.solved
    split = split_of_row(tables, node, room.base[node], i)
    y, u = room.sums[node, i], room.sums[tables.left[node], i]
    if abs(y) > splits.reach[split]:
        return accept(words, state, shift, 0.0, 1.0)
    peak = splits.peak[splits.place_start[split] + abs(y)]
    left, right = splits.left[split], splits.right[split]
    u, v = abs(u), abs(y - u)
    if u > splits.weight_reach[left] or v > splits.weight_reach[right]:
        top = (
            splits.weight_top[left] * splits.weight_beyond[right]
            + splits.weight_beyond[left] * splits.weight_top[right]
        )
        return accept(words, state, shift, 0.0, min(1.0, 1.001 * top / peak + TINY))
    u, v = splits.weight_start[left] + u, splits.weight_start[right] + v
    low = max(0.0, splits.weights[u] - splits.weight_error[u]) * max(0.0, splits.weights[v] - splits.weight_error[v])
    high = (splits.weights[u] + splits.weight_error[u]) * (splits.weights[v] + splits.weight_error[v])
    low, high = low / peak * (1.0 - 8.0 * ULP), high / peak * (1.0 + 8.0 * ULP) + TINY
    return accept(words, state, shift, low, min(1.0, high))


@kernel
def hand_down(tables: SplittingTables, room: SplittingRoom, node):
    """The sums below the right child, and the groups of both; swapped if the label says so."""
    sums, left, right, base = room.sums, tables.left[node], tables.right[node], room.base[node]
    for i in range(sums.shape[1]):
        sums[right, i] = sums[node, i] - sums[left, i]
    place = tables.base_start[node] + base
    room.group[left], room.group[right] = tables.base_left[place], tables.base_right[place]
    if room.swapped[node]:
        room.group[left], room.group[right] = room.group[right], room.group[left]
        for i in range(sums.shape[1]):
            sums[left, i], sums[right, i] = sums[right, i], sums[left, i]


@kernel
def split_node(words, state: State, tables: SplittingTables, room: SplittingRoom, node):
    """Split the sums below a node; 1 if those of both children are accepted, else 0."""
    inner, left, right = tables.inner, tables.left[node], tables.right[node]
    if state.phase == DRAW_ROWS and state.row == 0 and state.answer < 0:
        state.solved = solved_row(tables, room, node)
    while state.phase < LABEL_LEFT:
        if state.phase == DRAW_ROWS:
            code = draw_rows(words, state, tables, room, node)
            if code != DONE:
                return code
            state.phase = ACCEPT_ROW
        code = accept_row(words, state, tables, room, node)
        if code < 0:
            return code
        state.phase = DRAW_ROWS
        if code == 1:
            hand_down(tables, room, node)
            state.phase = LABEL_LEFT
    while state.phase < FILL:
        child = left if state.phase < LABEL_RIGHT else right
        code = np.int64(1)
        if child < inner:
            if state.phase == LABEL_LEFT or state.phase == LABEL_RIGHT:
                code = pick_label(words, state, tables, room, child)
            else:
                code = accept_node(words, state, tables, room, child)
        if code != 1:
            return code
        state.phase += 1
    return np.int64(1)


@kernel
def fill_entries(words, state: State, tables: SplittingTables, room: SplittingRoom, out, base):
    """The cells of all entries, given their sums."""
    while state.region < len(tables.entry_row):
        e = state.region
        total = room.sums[tables.entry_leaf[e], tables.entry_row[e]]
        cells = Cells(out, base + tables.entry_start[e], tables.entry_size[e])
        if cells.size == 1:
            out[cells.start] = total
        else:
            code = fill_given_sum(words, state, tables.noise, tables.sums, cells, total)
            if code != DONE:
                return code
        state.region += 1
    state.region = 0
    return np.int64(DONE)


@kernel
def propose(words, state: State, tables: SplittingTables, room: SplittingRoom):
    """From the root down: 1 if all nodes are accepted, 0 if one is not, or MORE, or TIE_ACCEPT."""
    if state.phase == PICK_ROOT:
        code = pick_root(words, state, tables, room)
        if code != DONE:
            return code
        state.phase = DRAW_ROWS
    while state.node < tables.inner:
        code = split_node(words, state, tables, room, state.node)
        if code < 0:
            return code
        if code == 0:
            break
        state.node += 1
        state.phase = DRAW_ROWS
    accepted = np.int64(1) if state.node == tables.inner else np.int64(0)
    state.node = 0
    state.tries += 1
    state.phase = FILL if accepted else PICK_ROOT
    return accepted


@kernel
def fill_split_tables(words, states: States, tables: SplittingTables, task: Task):
    """Tables one behind the other in ``out``; the room is a ``SplittingRoom``."""
    state = states[0]
    room, out = task.room, task.out
    while task.first + state.job < task.last and (state.rows_drawn < task.most or state.phase == FILL):
        if state.phase != FILL:
            code = propose(words, state, tables, room)
            if code < 0:
                return code
            if code == 0:
                continue
        code = fill_entries(words, state, tables, room, out, (task.first + state.job) * tables.width)
        if code != DONE:
            return code
        state.phase = PICK_ROOT
        state.job += 1
    return np.int64(DONE)
