"""Double geometric noise in cells under no total."""

from __future__ import annotations

import numpy as np

from keepsum.sampling.core.compiling import inner_kernel, kernel
from keepsum.sampling.core.kernel_arguments import HALF_BITS, Cells, State, States
from keepsum.sampling.core.kernels import DONE, MORE, TIE_DRAW, look_up, settled
from keepsum.sampling.l1.kernel_arguments import FEW_COLUMNS, LOW_DIGITS, MANY_COLUMNS, OR_MORE, PAIR_BITS, NoiseTable

MOST_PAIRS = 32  # that are drawn without a look at what they are
LARGEST_TOTAL = 2 * MOST_PAIRS * 2 ** (MANY_COLUMNS - 1)  # of that many pairs, none of which means "or more"
if 2 * LARGEST_TOTAL > OR_MORE:
    raise AssertionError("an outcome that means more must be seen in the total")


@kernel
def fill(words, state: State, noise: NoiseTable, cells: Cells):
    """Fill a run of cells with noise; ``state`` has their total and the cell that it is at."""
    while state.cell < cells.size:
        if state.answer < 0:
            if noise.low_bits == 0:
                fill_pairs(words, state, noise, cells)
            else:
                fill_singly(words, state, noise, cells)
            if state.cell == cells.size:
                break
        paired = noise.low_bits == 0 and state.cell + 1 < cells.size
        first, second = draw_word(words, state, noise, paired)
        if first < 0:
            return first
        put(state, cells, first)
        if paired:
            put(state, cells, second)
    state.cell = 0
    return np.int64(DONE)


@kernel
def draw_word(words, state: State, noise: NoiseTable, paired):
    """The first draw of a word and, if they are paired, the second, 2 v or 2 v + 1 each; or MORE or TIE_DRAW first."""
    value = settled(state)
    if value < 0:
        if state.position >= len(words):
            return np.int64(MORE), np.int64(0)
        value = look_up_word(words[state.position], noise, paired)
        if value < 0:
            return value, np.int64(0)
        state.position += 1
    if noise.low_bits > 0:
        return value, np.int64(0)
    return value >> np.int64(PAIR_BITS), value & np.int64((1 << PAIR_BITS) - 1)


@kernel
def look_up_word(word, noise: NoiseTable, paired):
    """What a word comes to: two draws as one number, or one draw; or TIE_DRAW, for outcomes "or more" as well.

    Without low bits, a draw that is not paired is the first of two all the same; the second is not looked at.
    """
    word &= noise.usable
    first = draw_high(word >> np.uint64(HALF_BITS), noise)
    if first < 0:
        return first
    lower = word & np.uint64((1 << HALF_BITS) - 1)
    if noise.low_bits == 0:
        second = draw_high(lower, noise) if paired else np.int64(0)
        return second if second < 0 else (first << np.int64(PAIR_BITS)) + second
    rest, tie = look_up(lower >> np.uint64(HALF_BITS - LOW_DIGITS - noise.low_bits), noise.low, LOW_DIGITS)
    if tie:
        return np.int64(TIE_DRAW)
    return (first >> 1 << np.int64(noise.low_bits + 1)) + (rest << 1) + (first & 1)


@inner_kernel
def draw_high(number, noise: NoiseTable):
    """A sign and h by the first table, as 2 h or 2 h + 1, or TIE_DRAW."""
    value, tie = look_up(number, noise.high, HALF_BITS - noise.column_bits)
    if tie or value == OR_MORE:
        return np.int64(TIE_DRAW)
    return 2 * value if value >= 0 else -2 * value - 1


@kernel
def put(state: State, cells: Cells, draw):
    """Write a draw, 2 v or 2 v + 1, into the next cell."""
    value = (draw >> 1) ^ -(draw & 1)
    cells.out[cells.start + state.cell] = value
    state.total += value
    state.cell += 1


@inner_kernel
def draw_pairs(words, position, noise: NoiseTable, out, place, count):
    """Write at most ``MOST_PAIRS`` pairs of draws by a law of one table.

    Returns the number of pairs that are done, up to a tie, and their sum; none if an outcome means "or more".
    """
    if noise.column_bits == FEW_COLUMNS:
        return draw_pairs_of(words, position, noise, FEW_COLUMNS, out, place, count)
    return draw_pairs_of(words, position, noise, MANY_COLUMNS, out, place, count)


@inner_kernel
def draw_pairs_of(words, position, noise: NoiseTable, column_bits, out, place, count):
    """The same, with columns of so many bits, a constant wherever it is called: the loop where the time goes.

    Places are counted without signs, for which numba would look from which end they count.
    """
    usable, half = noise.usable, np.uint64((1 << HALF_BITS) - 1)
    here, there, total = np.uint64(position), np.uint64(place), np.int64(0)
    for i in range(count):
        word = words[here] & usable
        first, tie = look_up(word >> np.uint64(HALF_BITS), noise.high, HALF_BITS - column_bits)
        second, other_tie = look_up(word & half, noise.high, HALF_BITS - column_bits)
        if tie | other_tie:
            count = i
            break
        out[there] = first
        out[there + np.uint64(1)] = second
        total += first + second
        here += np.uint64(1)
        there += np.uint64(2)
    if total > LARGEST_TOTAL:
        return 0, np.int64(0)
    return count, total


@kernel
def fill_pairs(words, state: State, noise: NoiseTable, cells: Cells):
    """As many pairs of cells as the words at hand and the absence of ties allow."""
    position, cell, total = state.position, state.cell, np.int64(0)
    count = min(len(words) - position, (cells.size - cell) // 2)
    while count > 0:
        some = min(count, MOST_PAIRS)
        done, part = draw_pairs(words, position, noise, cells.out, cells.start + cell, some)
        position, cell, total, count = position + done, cell + 2 * done, total + part, count - done
        if done < some:
            break
    state.position, state.cell = position, cell
    state.total += total


@kernel
def fill_singly(words, state: State, noise: NoiseTable, cells: Cells):
    """The same, cell by cell, for a law of two tables."""
    position, cell, total = state.position, state.cell, np.int64(0)
    place = cells.start + cell
    count = min(len(words) - position, cells.size - cell)
    for i in range(count):
        draw = look_up_word(words[position + i], noise, False)
        if draw < 0:
            count = i
            break
        value = (draw >> 1) ^ -(draw & 1)
        cells.out[place + i] = value
        total += value
    state.position, state.cell = position + count, cell + count
    state.total += total


@kernel
def fill_cells(words, states: States, noise: NoiseTable, cells: Cells):
    """``fill`` as Python runs it."""
    return fill(words, states[0], noise, cells)
