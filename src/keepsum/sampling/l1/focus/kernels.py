"""Sums split into parts, from the roots down to the cells."""

from __future__ import annotations

import numpy as np

from keepsum.sampling.core.compiling import inner_kernel, kernel
from keepsum.sampling.core.kernel_arguments import State, States, Task
from keepsum.sampling.core.kernels import DONE, MORE, TIE_DRAW, TINY, accept, compare, settled
from keepsum.sampling.l1.focus.kernel_arguments import ROUNDING, FocusRoom, FocusTables

PROPOSE_PART, ACCEPT_PART = 0, 1  # the stages of a part
OFFSET = 1 << 40  # answers must not be negative, sums may be
PLACE_BITS = 32  # of a proposal's word, for the place in a block
MANY = 60  # halvings, from which on floats are not asked


@inner_kernel
def weights(tables: FocusTables, kind, total):
    """Bounds on the weight of a sum relative to that of 0; 1 if there is no such part."""
    if kind < 0:
        return 1.0, 1.0
    distance = abs(total)
    if distance > tables.reach[kind]:
        return 0.0, tables.beyond[kind]
    value, error = tables.values[tables.value_start[kind] + distance], tables.error[kind]
    return max(0.0, value * (1.0 - ROUNDING) - error), value * (1.0 + ROUNDING) + error


@inner_kernel
def chances(tables: FocusTables, kind, y, u, step):
    """Bounds on the chance that a part u of y is accepted, proposed in block ``step``."""
    if step > MANY:
        return 0.0, 1.0
    low, high = weights(tables, tables.left[kind], u)
    other_low, other_high = weights(tables, tables.right[kind], y - u)
    scale = np.float64(np.int64(1) << step) / tables.peak[tables.split_start[kind] + y]
    return low * other_low * scale * (1.0 - ROUNDING), min(1.0, high * other_high * scale * (1.0 + ROUNDING) + TINY)


@kernel
def propose_part(words, state: State, tables: FocusTables, place):
    """Propose a part: a side, a block, ``state.step``, and a place in it. DONE, or MORE.

    A word has a bit for the side, some for the block, the number of zeros before the first one, and 32 for the place x:
    floor(x b / 2^32) is uniform if the x with x b mod 2^32 < 2^32 mod b are left out.
    """
    bits, length = np.uint64(tables.halving_bits), np.uint64(tables.block[place])
    ones = (np.uint64(1) << bits) - np.uint64(1)
    while state.position < len(words):
        word = words[state.position]
        state.position += 1
        halvings = (word >> np.uint64(PLACE_BITS)) & ones
        if halvings == 0:
            state.step += tables.halving_bits
            continue
        product = (word & np.uint64((1 << PLACE_BITS) - 1)) * length
        fraction = product & np.uint64((1 << PLACE_BITS) - 1)
        if fraction < length and fraction < np.uint64(1 << PLACE_BITS) % length:
            state.step = 0
            continue
        while not halvings >> (bits - np.uint64(1)):
            halvings <<= np.uint64(1)
            state.step += 1
        distance = np.int64(state.step) * np.int64(length) + np.int64(product >> np.uint64(PLACE_BITS))
        state.value = tables.middle[place] + (distance if word >> np.uint64(63) else -1 - distance)
        state.tries += 1
        return np.int64(DONE)
    return np.int64(MORE)


@kernel
def draw_part(words, state: State, tables: FocusTables, kind, y):
    """The left part of a sum y >= 0, with OFFSET added; or MORE, or TIE_DRAW, or TIE_ACCEPT."""
    if y > tables.split_reach[kind]:
        value = settled(state)
        if value >= 0:
            return value
        return np.int64(TIE_DRAW) if state.position < len(words) else np.int64(MORE)
    while True:
        if state.stage == PROPOSE_PART:
            code = propose_part(words, state, tables, tables.split_start[kind] + y)
            if code != DONE:
                return code
            state.stage = ACCEPT_PART
        low, high = chances(tables, kind, y, state.value, state.step)
        code = accept(words, state, tables.shift, low, high)
        if code < 0:
            return code
        state.stage = PROPOSE_PART
        state.step = 0
        if code == 1:
            return state.value + OFFSET


@inner_kernel
def try_part(words, position, tables: FocusTables, kind, y):
    """Propose and accept a part of a sum y >= 0 with the two words at hand.

    Returns 1 or 0, and the part; or MORE, if a comparison is left open or a proposal takes more words: then nothing has
    happened, and ``draw_part`` does the same step by step.
    """
    place, word = tables.split_start[kind] + y, words[position]
    halvings = (word >> np.uint64(PLACE_BITS)) & ((np.uint64(1) << np.uint64(tables.halving_bits)) - np.uint64(1))
    product = (word & np.uint64((1 << PLACE_BITS) - 1)) * np.uint64(tables.block[place])
    if halvings == 0 or (product & np.uint64((1 << PLACE_BITS) - 1)) < np.uint64(tables.block[place]):
        return np.int64(MORE), np.int64(0)
    step, first = np.int64(0), np.uint64(1) << np.uint64(tables.halving_bits - 1)
    while halvings < first:
        halvings <<= np.uint64(1)
        step += 1
    distance = step * tables.block[place] + np.int64(product >> np.uint64(PLACE_BITS))
    u = tables.middle[place] + (distance if word >> np.uint64(63) else -1 - distance)
    low, high = chances(tables, kind, y, u, step)
    return compare(words[position + 1], tables.shift, low, high), u


@kernel
def split_quickly(words, state: State, tables: FocusTables, room: FocusRoom, out, base, start):
    """Split sums as far as the words at hand and the absence of ties allow: the loop where the time goes."""
    kinds, sums, order = room.kinds, room.sums, tables.order
    position, top, cell, tries, last = state.position, state.node - 1, state.cell, np.int64(0), len(words) - 2
    while top >= 0 and position <= last:
        kind, y = kinds[top], sums[top]
        left, right = tables.left[kind], tables.right[kind]
        if left < 0:
            out[base + order[start + cell]] = y
            cell += 1
            top -= 1
            continue
        if abs(y) > tables.split_reach[kind]:
            break
        code, u = try_part(words, position, tables, kind, abs(y))
        if code < 0:
            break
        position += 2
        tries += 1
        if code == 1:
            u = u if y >= 0 else -u
            if right >= 0:
                kinds[top], sums[top] = right, y - u
                top += 1
            kinds[top], sums[top] = left, u
    state.position, state.node, state.cell = position, top + 1, cell
    state.tries += tries


@kernel
def split_sums(words, state: State, tables: FocusTables, room: FocusRoom, out, base, start):
    """Split sums until all are cells, the left part of each first; ``state.node`` of them are waiting."""
    kinds, sums = room.kinds, room.sums
    while state.node > 0:
        if state.stage == PROPOSE_PART and state.step == 0 and state.answer < 0:
            split_quickly(words, state, tables, room, out, base, start)
            if state.node == 0:
                break
        top = state.node - 1
        kind, y = kinds[top], sums[top]
        left, right = tables.left[kind], tables.right[kind]
        if left < 0:
            out[base + tables.order[start + state.cell]] = y
            state.cell += 1
            state.node = top
            continue
        value = draw_part(words, state, tables, kind, abs(y))
        if value < 0:
            return value
        u = value - OFFSET if y >= 0 else OFFSET - value
        if right >= 0:
            kinds[top], sums[top] = right, y - u
            top += 1
        kinds[top], sums[top] = left, u
        state.node = top + 1
    return np.int64(DONE)


@kernel
def fill_trees(words, states: States, tables: FocusTables, task: Task):
    """Job t is root ``t % R`` of draw ``t // R``; the room is a ``FocusRoom``."""
    state = states[0]
    count, width = len(tables.root_kind), len(tables.order)
    while task.first + state.job < task.last:
        job = task.first + state.job
        root = job % count
        if state.node == 0:
            task.room.kinds[0], task.room.sums[0] = tables.root_kind[root], 0
            state.node = 1
        code = split_sums(words, state, tables, task.room, task.out, job // count * width, tables.root_start[root])
        if code != DONE:
            return code
        state.cell = 0
        state.job += 1
    return np.int64(DONE)
