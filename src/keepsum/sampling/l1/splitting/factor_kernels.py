"""What is decided about the sums below a node: the base of the root, labels, and factors."""

from __future__ import annotations

import math

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernel_arguments import State
from keepsum.sampling.core.kernels import ACCEPT_BITS, DONE, MORE, TIE_ACCEPT, TINY, accept, settled
from keepsum.sampling.l1.splitting.kernel_arguments import GroupTables, SplittingRoom, SplittingTables

ULP = 2.0**-53


@kernel
def split_of_row(tables: SplittingTables, node, base, row):
    """The split of a row at a node with that base."""
    law = tables.law[node * tables.kinds + tables.kind_of_row[row]]
    return tables.split_start[node] + base * tables.law_count[node] + law


@kernel
def set_base(room: SplittingRoom, node, base, copy):
    """Give a node its base; the second copy of a label is the one where left and right change places."""
    room.base[node] = base
    room.swapped[node] = copy


@kernel
def pick_root(words, state: State, tables: SplittingTables, room: SplittingRoom):
    """The base of the root, by its cumulative chances; DONE, MORE or TIE_ACCEPT."""
    value = settled(state)
    count = len(tables.root_chances)
    if value < 0 and count == 1:
        value = np.int64(0)
    if value < 0:
        if state.position >= len(words):
            return np.int64(MORE)
        bits = min(ACCEPT_BITS, 64 - tables.sums.shift)
        low = np.float64(words[state.position] >> np.uint64(64 - bits)) * 2.0**-bits
        high = low + 2.0**-bits
        value = np.int64(0)
        while value < count and tables.root_chances[value] <= low:
            value += 1
        if value == count:
            return np.int64(TIE_ACCEPT)
        below = tables.root_chances[value - 1] + tables.root_error if value > 0 else 0.0
        if below > low or (value < count - 1 and tables.root_chances[value] - tables.root_error < high):
            return np.int64(TIE_ACCEPT)
        state.position += 1
    set_base(room, 0, value, 0)
    return np.int64(DONE)


@kernel
def add_ratios(tables: SplittingTables, room: SplittingRoom, node, group, labels):
    """The logarithms of the labels' weights relative to the group's, added up over rows; False beyond the tables."""
    groups: GroupTables = tables.groups
    logs, ratios = room.logs, groups.ratios
    for k in range(labels + 1):
        logs[k] = 0.0
    for i in range(len(tables.kind_of_row)):
        y = abs(room.sums[node, i])
        law = groups.law_start[group] + tables.law[node * tables.kinds + tables.kind_of_row[i]]
        if y > groups.reach[law]:
            return False
        start = groups.ratio_start[law] + y * (labels + 1)
        for k in range(labels + 1):
            logs[k] += ratios[start + k]
    return True


@kernel
def pick_label(words, state: State, tables: SplittingTables, room: SplittingRoom, node):
    """Choose a label for the sums below a node, with the chances of the labels relative to the group: 1, or 0 if none.

    A group of one label is left to ``accept_node``.
    """
    groups: GroupTables = tables.groups
    group = tables.group_start[node] + room.group[node]
    first = groups.start[group]
    labels = groups.start[group + 1] - first
    if labels == 1 and groups.copies[first] == 1:
        set_base(room, node, groups.base[first], 0)
        return np.int64(1)
    value = settled(state)
    if value >= 0:
        if value == 0:
            return np.int64(0)
        set_base(room, node, groups.base[first + (value - 1) // 2], (value - 1) % 2)
        return np.int64(1)
    if state.position >= len(words):
        return np.int64(MORE)
    if not add_ratios(tables, room, node, group, labels):
        return np.int64(TIE_ACCEPT)
    bits = min(ACCEPT_BITS, 64 - tables.sums.shift)
    low = np.float64(words[state.position] >> np.uint64(64 - bits)) * 2.0**-bits
    high = low + 2.0**-bits
    # Relative errors of all terms, their exponentials and sums; the terms add up to at most 1.
    error = 1.01 * (room.logs[labels] + (len(tables.kind_of_row) + labels + 16.0) * 8.0 * ULP)
    upto = 0.0
    for k in range(labels):
        term = math.exp(min(room.logs[k], 0.0))
        for copy in range(groups.copies[first + k]):
            if upto + term > low:
                if upto * (1.0 + error) <= low and (upto + term) * (1.0 - error) >= high:
                    state.position += 1
                    set_base(room, node, groups.base[first + k], copy)
                    return np.int64(1)
                return np.int64(TIE_ACCEPT)
            upto += term
    if upto * (1.0 + error) + TINY <= low:
        state.position += 1
        return np.int64(0)
    return np.int64(TIE_ACCEPT)


@kernel
def accept_node(words, state: State, tables: SplittingTables, room: SplittingRoom, node):
    """Accept the sums below an inner node with chance B over the sum, over blocks, of products of t.

    In a group of one label, the label's weight relative to that of the group is one more factor.
    """
    splits, shift, sums, groups = tables.splits, tables.sums.shift, room.sums, tables.groups
    rows, frequencies, blocks, base = (
        len(tables.kind_of_row),
        tables.frequencies[node],
        tables.blocks[node],
        room.base[node],
    )
    real, imaginary, logs = room.product, room.product_imaginary, room.logs
    for k in range(frequencies):
        real[k] = 1.0
        imaginary[k] = 0.0
    factor, factor_error = 1.0, 0.0
    group = tables.group_start[node] + room.group[node]
    if groups.start[group + 1] - groups.start[group] == 1 and groups.copies[groups.start[group]] == 1:
        if not add_ratios(tables, room, node, group, np.int64(1)):
            return accept(words, state, shift, 0.0, 1.0)
        factor, factor_error = math.exp(min(logs[0], 0.0)), logs[1] + 8.0 * rows * ULP
    for m in range(blocks):
        logs[m] = 0.0
    error, log_dropped, log_tails = 0.0, 0.0, tables.log_alias[node]
    place = tables.base_start[node] + base
    is_real = tables.is_real[node] and tables.base_left[place] == tables.base_right[place]
    for i in range(rows):
        split = split_of_row(tables, node, base, i)
        y = abs(sums[node, i])
        if y > splits.reach[split]:
            return accept(words, state, shift, 0.0, 1.0)
        place = splits.place_start[split] + y
        error += splits.transform_error[place]
        log_dropped += splits.log_dropped[place]
        log_tails += splits.log_growth[place]
        start = splits.number_start[place]
        for m in range(blocks):
            logs[m] += splits.log_numbers[start + m]
        start = splits.transform_start[place]
        if is_real:
            for k in range(frequencies):
                real[k] *= splits.transform[start + k]
        else:
            sign = 1.0 if sums[node, i] >= 0 else -1.0
            for k in range(frequencies):
                x, z = splits.transform[start + k], sign * splits.transform_imaginary[start + k]
                real[k], imaginary[k] = real[k] * x - imaginary[k] * z, real[k] * z + imaginary[k] * x
    chance = 0.0
    start = tables.measure_start[node]
    for k in range(frequencies):
        chance += tables.measure[start + k] * real[k]
    numbers, largest = 0.0, 0.0
    for m in range(blocks):
        numbers += math.exp(logs[m])
        largest = max(largest, -logs[m])
    # Errors of the transforms and of products and sums of numbers of at most 1, whose measure is at most 1.
    error = 1.01 * (error + (6.0 * rows + frequencies + 8.0) * ULP)
    doubt = 1.01 * (error + math.exp(min(log_dropped, 0.0)))
    low = chance - doubt - 1.01 * math.exp(min(log_tails, 0.0))
    rounding = (rows + 8.0) * (largest + 2.0) * ULP + 1.01 * factor_error
    low = max(0.0, low / numbers * factor * (1.0 - rounding))
    high = (chance + doubt) / numbers * factor * (1.0 + rounding)
    return accept(words, state, shift, low, max(TINY, min(1.0, high)))
