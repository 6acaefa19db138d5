"""Noise in cells whose sum is given: a part drawn freely, accepted, and the rest given what is left."""

from __future__ import annotations

import numpy as np

from keepsum.sampling.core.compiling import inner_kernel, kernel
from keepsum.sampling.core.kernel_arguments import HALF_BITS, Cells, State, States, Task
from keepsum.sampling.core.kernels import DONE, MORE, accept, bit_length, compare
from keepsum.sampling.l1.double_geometric_kernels import MOST_PAIRS, draw_high, draw_pairs, fill
from keepsum.sampling.l1.kernel_arguments import NoiseTable, RegionTables, SumTables

NEW, DRAWING, ACCEPTING = 0, 1, 2  # the stages of a region
QUICK = 2 * MOST_PAIRS  # cells of a part that is drawn without keeping a state


@kernel
def rest_level(count):
    """The rest of so many cells has 2^level, the largest power of two below."""
    return bit_length(count - 1) - 1


@inner_kernel
def chances(sums: SumTables, law, total):
    """Bounds on the chance of a sum of noise relative to that of 0."""
    distance, bits, error = abs(total), sums.stride_bits[law], sums.errors[law]
    place, last = sums.starts[law] + (distance >> bits), sums.starts[law + 1] - 1
    if place >= last:
        return 0.0, sums.values[last] + error
    share = np.float64(distance & ((np.int64(1) << bits) - 1)) * sums.scales[law]
    value = sums.values[place] + share * (sums.values[place + 1] - sums.values[place])
    return value - error, value + error


@kernel
def accept_sum(words, state: State, sums: SumTables, law, total):
    """Accept with the chance of a sum of noise relative to that of 0: 1 or 0, or MORE, or TIE_ACCEPT."""
    low, high = chances(sums, law, total)
    return accept(words, state, sums.shift, low, high)


@inner_kernel
def try_part(words, position, noise: NoiseTable, sums: SumTables, level, cells: Cells, rest):
    """Draw and accept a small part with the words at hand.

    Returns 1 or 0, and its sum; or MORE, if there are too few words or a comparison is left open: then nothing has
    happened, and ``fill`` and ``accept_sum`` do the same step by step.
    """
    pairs = cells.size // 2
    done, total = draw_pairs(words, position, noise, cells.out, cells.start, pairs)
    if done < pairs:
        return np.int64(MORE), total
    if cells.size > 2 * pairs:
        draw = draw_high((words[position + pairs] & noise.usable) >> np.uint64(HALF_BITS), noise)
        if draw < 0:
            return np.int64(MORE), total
        value = (draw >> 1) ^ -(draw & 1)
        cells.out[cells.start + 2 * pairs] = value
        total += value
    low, high = chances(sums, level, rest - total)
    return compare(words[position + words_of(cells.size) - 1], sums.shift, low, high), total


@kernel
def words_of(count):
    """How many words a part of so many cells takes, with that which accepts it."""
    return (count + 1) // 2 + 1


@inner_kernel
def fill_quickly(words, state: State, noise: NoiseTable, sums: SumTables, cells: Cells):
    """Parts of a region one after the other, as far as the words at hand and the absence of ties allow."""
    position, filled, rest = state.position, state.filled, state.rest
    while filled < cells.size - 1:
        level = rest_level(cells.size - filled)
        part = cells.size - filled - (np.int64(1) << level)
        if part > QUICK or position + words_of(part) > len(words):
            break
        code, total = try_part(words, position, noise, sums, level, Cells(cells.out, cells.start + filled, part), rest)
        if code < 0:
            break
        position += words_of(part)
        if code == 1:
            rest -= total
            filled += part
    state.position, state.filled, state.rest = position, filled, rest


@kernel
def fill_given_sum(words, state: State, noise: NoiseTable, sums: SumTables, cells: Cells, goal):
    """Noise in one region, given its sum."""
    if state.stage == NEW:
        state.rest = goal
        state.stage = DRAWING
    while state.filled < cells.size - 1:
        if state.stage == DRAWING and state.cell == 0 and state.answer < 0 and noise.low_bits == 0:
            fill_quickly(words, state, noise, sums, cells)
            if state.filled == cells.size - 1:
                break
        level = rest_level(cells.size - state.filled)
        part = cells.size - state.filled - (np.int64(1) << level)
        if state.stage == DRAWING:
            code = fill(words, state, noise, Cells(cells.out, cells.start + state.filled, part))
            if code != DONE:
                return code
            state.stage = ACCEPTING
        code = accept_sum(words, state, sums, level, state.rest - state.total)
        if code < 0:
            return code
        if code == 1:
            state.rest -= state.total
            state.filled += part
        state.total = 0
        state.stage = DRAWING
    cells.out[cells.start + cells.size - 1] = state.rest
    state.filled = 0
    state.stage = NEW
    return np.int64(DONE)


@kernel
def fill_regions(words, states: States, tables: RegionTables, task: Task):
    """Job t is region ``t % R`` of draw ``t // R``."""
    state = states[0]
    noise, sums, count = tables.noise, tables.sums, len(tables.sizes)
    while task.first + state.job < task.last:
        job = task.first + state.job
        r = job % count
        cells = Cells(task.out, job // count * tables.width + tables.starts[r], tables.sizes[r])
        code = fill_given_sum(words, state, noise, sums, cells, tables.goals[r])
        if code != DONE:
            return code
        state.job += 1
    return np.int64(DONE)


@kernel
def accept_part(words, states: States, sums: SumTables, law):
    """Accept the sum that is left to the rest of a region, or not: the answer stays in ``total``."""
    state = states[0]
    code = accept_sum(words, state, sums, law, state.rest)
    if code < 0:
        return code
    state.total = code
    return np.int64(DONE)
