"""Tables under both margins, by their last two rows: convolutions along a row, and the loop over tables."""

from __future__ import annotations

import math

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernels import (
    ACCEPT_BITS,
    ANSWER,
    BEFORE,
    COLUMN,
    DONE,
    JOB,
    MORE,
    PHASE,
    POSITION,
    REGION,
    TIE_ACCEPT,
    TRIES,
    accept,
)
from keepsum.sampling.l1.compositions_kernels import fill_region, fill_small

DRAW_ROWS, ACCEPT_ROWS, LAST_ROWS = 0, 1, 2
TINY = 1e-290  # no chance is taken to be smaller than this without the referee
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
    near, far = 0.0, 0.0
    for i in range(size):  # both tails in one loop: two chains of products run side by side
        x = i if ahead else size - 1 - i
        y = size - 1 - x
        out[x] = near
        near = b * (g[x] + near)
        work[y] = far
        far = b * (g[y] + far)
    for i in range(size - flat):
        x = i if ahead else size - 1 - i
        out[x] += work[x + t]
    window_sums(g, size, flat + 1, out, ahead)
    scale = a**flat
    for x in range(size):
        out[x] *= scale


@kernel
def suffix_weights(a, powers, sums, columns, reach, suffix, work):
    """suffix[j](x) for j >= 1: the weight of columns j, j + 1, ... with sum x; returned, that of all with sum 0."""
    size = 2 * reach + 1
    last = columns - 1
    for x in range(size):
        s = x - reach
        suffix[last, x] = powers[abs(s) + abs(s + sums[last])]
    for j in range(last - 1, 0, -1):
        convolve(suffix[j + 1], size, a, sums[j], suffix[j], work)
    total = 0.0
    for x in range(size):
        s = reach - x
        total += powers[abs(s) + abs(s + sums[0])] * suffix[1, x]
    return total


@kernel
def pick(words, state, shift, powers, t, rest, goal, reach, total, error):
    """Draw s with weight a^(|s| + |s + t|) rest(goal - s) by inversion, or MORE, or TIE_ACCEPT; OFFSET is added."""
    if state[ANSWER] >= 0:
        value = state[ANSWER]
        state[ANSWER] = -1
        return value
    position = state[POSITION]
    if position >= len(words):
        return np.int64(MORE)
    count = min(ACCEPT_BITS, 64 - shift)
    bits = np.float64(words[position] >> np.uint64(64 - count))
    unit = total * 2.0**-count
    low, high = bits * unit, (bits + 1.0) * unit
    below = 0.0
    for x in range(2 * reach, -1, -1):
        s = goal + reach - x
        upto = below + powers[abs(s) + abs(s + t)] * rest[x]
        if upto - error >= high:
            if below + error <= low:
                state[POSITION] = position + 1
                return np.int64(s + OFFSET)
            break
        if upto + error > low:
            break  # the word does not tell s from its neighbour
        below = upto
    return np.int64(TIE_ACCEPT)


@kernel
def accept_rows(words, state, shift, epsilon, bound, ceiling, tails, a, powers, sums, columns, suffix, work):
    """Accept column sums T with chance W(T) / W(0), 1 / W(0) lying between ``bound`` and ``ceiling``.

    First a cheap look: W(T) is at most the product of the whole weights of the columns, a^t (t + 1 + tails).
    """
    spread = 0
    for j in range(columns):
        spread += abs(sums[j])
    reach = reach_of(columns, epsilon, spread)
    size = 2 * reach + 1
    if size > suffix.shape[1]:
        return accept(words, state, shift, 0.0, 1.0)
    if state[ANSWER] < 0:
        position = state[POSITION]
        if position >= len(words):
            return np.int64(MORE)
        cheap = ceiling
        for j in range(columns):
            t = abs(sums[j])
            cheap *= powers[t] * (t + 1.0 + tails)
        count = min(ACCEPT_BITS, 64 - shift)
        # Beside the margin for rounding a floor: products may underflow, chances do not.
        if np.float64(words[position] >> np.uint64(64 - count)) >= max(cheap * (1.0 + 1e-12), TINY) * 2.0**count:
            state[POSITION] = position + 1
            return np.int64(0)
    weight = suffix_weights(a, powers, sums, columns, reach, suffix, work)
    error = (7.0 * size * columns + 16.0) * 2.0**-53
    low = weight * (1.0 - error) * bound * (1.0 - 1e-14)
    high = (weight * (1.0 + error) + tail_weight(columns, epsilon, spread, reach)) * ceiling
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
def last_rows(words, state, shift, epsilon, a, powers, sums, rows, columns, out, start, suffix, work):
    """Draw one of the last two rows column by column; the other makes up the column sums."""
    spread = 0
    for j in range(columns):
        spread += abs(sums[j])
    reach = reach_of(columns, epsilon, spread)
    size = 2 * reach + 1
    fits = size <= suffix.shape[1]
    weight = suffix_weights(a, powers, sums, columns, reach, suffix, work) if fits else 0.0
    error = (8.0 * size * columns + 16.0) * 2.0**-53
    tail = tail_weight(columns, epsilon, spread, reach)
    while state[COLUMN] < columns:
        j = state[COLUMN]
        goal = -state[BEFORE]
        value = goal + OFFSET
        if j < columns - 1:
            total = weight if j == 0 else (suffix[j, goal + reach] if fits and abs(goal) <= reach else 0.0)
            slack = (
                2.0 * (total * error + tail) + TINY
            )  # once for what is compared, once for the total it is measured by
            # Without room, or where rounding swallows the weight, every comparison is left to the referee.
            usable = reach if total > 0.0 else -1
            value = pick(words, state, shift, powers, sums[j], suffix[j + 1], goal, usable, total, slack)
            if value < 0:
                return value
        value -= OFFSET
        out[start + (rows - 2) * columns + j] = value
        out[start + (rows - 1) * columns + j] = -sums[j] - value
        state[BEFORE] += value
        state[COLUMN] += 1
    state[COLUMN] = state[BEFORE] = 0
    return np.int64(DONE)


@kernel
def fill_tables(
    words, state, table, a, epsilon, mode, totals, by_table, bound, ceiling, tails, powers, rows, columns, first, last,
    out, most, scratch, sums, suffix, work,
):  # fmt: skip
    """Tables ``first`` to ``last``, each ``rows`` x ``columns`` cells in ``out``, in at most ``most`` tries."""
    while first + state[JOB] < last and state[TRIES] < most:
        start = (first + state[JOB]) * rows * columns
        if state[PHASE] == DRAW_ROWS:
            while state[REGION] < rows - 2:
                place = start + state[REGION] * columns
                if by_table:
                    code = fill_small(words, state, totals, 0, 0, columns, out, place, scratch)
                else:
                    code = fill_region(words, state, table, table, a, columns, 0, mode, True, out, place, scratch)
                if code != DONE:
                    return code
                state[REGION] += 1
            state[PHASE] = ACCEPT_ROWS
        column_sums(out, start, rows, columns, sums)
        if state[PHASE] == ACCEPT_ROWS:
            code = accept_rows(
                words, state, table.shift, epsilon, bound, ceiling, tails, a, powers, sums, columns, suffix, work
            )
            if code < 0:
                return code
            state[REGION] = 0
            state[TRIES] += 1
            state[PHASE] = LAST_ROWS if code == 1 else DRAW_ROWS
            if code == 0:
                continue
        code = last_rows(words, state, table.shift, epsilon, a, powers, sums, rows, columns, out, start, suffix, work)
        if code != DONE:
            return code
        state[PHASE] = DRAW_ROWS
        state[JOB] += 1
    return np.int64(DONE)
