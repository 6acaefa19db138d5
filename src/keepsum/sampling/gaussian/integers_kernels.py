"""Gaussian noise on lattices, coordinate by coordinate (Klein; Gentry, Peikert and Vaikuntanathan), and its acceptance.

Each coordinate is a discrete Gaussian on the integers whose centre depends on those before it. The product of their
laws is off by the factors rho_s(Z - c), which are at most rho_s(Z), so accepting a whole block with the product of
rho_s(Z - c) / rho_s(Z) makes the law exact (Brakerski et al. 2013, Lemma 2.3). By Poisson summation a factor differs
from 1 by less than 4 exp(-2 pi^2 s^2), far below what a word can tell for s above 1.7.
"""

from __future__ import annotations

import math

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernel_arguments import Cells, State, States, Task
from keepsum.sampling.core.kernels import (
    ACCEPT_BITS,
    DONE,
    MORE,
    TINY,
    accept,
    look_up_packed,
    settled,
)
from keepsum.sampling.gaussian.kernel_arguments import Acceptance, FreeTables, GaussianTables, SumsTables

PROPOSE, ADD_LOW, ACCEPT = 0, 1, 2  # the steps of a one-dimensional draw
SAMPLE, FILL, DECIDE = 0, 1, 2  # the phases of a block

WIDE_VARIANCE = 2.89  # s^2 from which on factors are 1 but for 4 exp(-2 pi^2 s^2) < 10^-24
WIDE_LOSS = 1e-24
THETA_ERROR = 1e-13  # of one logarithm of a factor, far more than its floats err
TOP = 48.0**2  # s^2 above this gets uniform bits
SCALE = 2.0**ACCEPT_BITS
FARTHEST_CENTRE = 0.75  # no centre lies this far from the whole number that floats call nearest
# Each term of an acceptance's exponent errs by a few units in its last place, s^2 and the centre included.
ERROR = 2.0**-46


@kernel
def pick(tables: GaussianTables, variance, guess):
    """The narrowest table that is wider by the gap."""
    while tables.largest[guess] < variance:
        guess += 1
    while guess > 0 and tables.largest[guess - 1] >= variance:
        guess -= 1
    return guess


@kernel
def signed(k):
    """The k-th of 0, -1, 1, -2, 2, ..."""
    x = (k + 1) >> 1
    return -x if k & 1 else x


@kernel
def draw_integer(words, state: State, tables: GaussianTables, variance, phi):
    """A draw with weight exp(-(x - phi)^2 / 2 s^2) for |phi| up to about 1/2, left in ``state.value``.

    ``state.table`` is the table used last, a good guess for the next.
    """
    if variance > TOP:
        return draw_wide(words, state, tables, variance, phi)
    state.table = pick(tables, variance, state.table)
    state.low_bits = 0
    offset = phi * phi / (2.0 * (tables.square[state.table] - variance))
    return draw_by_steps(words, state, tables, variance, phi, offset)


@kernel
def draw_wide(words, state: State, tables: GaussianTables, variance, phi):
    """The same for a wide law: a proposal is 2^b h + l, l uniform."""
    low_bits = np.int64(0)
    scale = 1.0
    while variance * scale > TOP:
        scale *= 0.25
        low_bits += 1
    state.table = pick(tables, variance * scale, state.table)
    state.low_bits = low_bits
    reach = FARTHEST_CENTRE + 2.0 ** (low_bits - 1)
    offset = reach * reach / (2.0 * (tables.square[state.table] / scale - variance))
    return draw_by_steps(words, state, tables, variance, phi, offset)


@kernel
def draw_by_steps(words, state: State, tables: GaussianTables, variance, phi, offset):
    """The same, step by step: it can stop anywhere and go on."""
    table, low_bits = state.table, state.low_bits
    wide = 0.5 / (tables.square[table] * 4.0**low_bits)
    while True:
        if state.step == PROPOSE:
            k = settled(state)
            if k < 0:
                position = state.position
                if position >= len(words):
                    return np.int64(MORE)
                k = look_up_packed(words[position], tables.packed, tables.table_start[table], tables.guide_start[table])
                if k < 0:
                    return k
                state.position = position + 1
            state.high = signed(k) << low_bits
            state.low = 0
            state.step = ADD_LOW if low_bits > 0 else ACCEPT
        if state.step == ADD_LOW:
            position = state.position
            if position >= len(words):
                return np.int64(MORE)
            state.low = np.int64(words[position] >> np.uint64(64 - low_bits)) - (np.int64(1) << (low_bits - 1))
            state.position = position + 1
            state.step = ACCEPT
        high = np.float64(state.high)
        distance = high + (np.float64(state.low) - phi)
        narrow_term, wide_term = distance * distance * (0.5 / variance), high * high * wide
        chance = math.exp(-(narrow_term - wide_term + offset))
        error = (narrow_term + wide_term + offset + 4.0) * ERROR
        code = accept(words, state, tables.packed.shift, chance * (1.0 - error), max(chance, TINY) * (1.0 + error))
        if code < 0:
            return code
        state.step = PROPOSE
        if code == 1:
            state.value = state.high + state.low
            return np.int64(DONE)


@kernel
def log_theta(variance, phi):
    """log(rho_s(Z - phi) / (sqrt(2 pi) s)), by whichever series is short."""
    if variance >= 0.16:
        q = math.exp(-2.0 * math.pi * math.pi * variance)
        total = 0.0
        for k in range(4, 0, -1):
            total += q ** (k * k) * math.cos(2.0 * math.pi * k * phi)
        return math.log1p(2.0 * total)
    total = 0.0
    for x in range(-5, 6):
        distance = x - phi
        total += math.exp(-distance * distance / (2.0 * variance))
    return math.log(total / math.sqrt(2.0 * math.pi * variance))


@kernel
def count_theta(state: State, variance, phi):
    """Add the factor of one coordinate to the sums of logarithms, where it can be told from 1."""
    if variance < WIDE_VARIANCE:
        state.log_theta += log_theta(variance, phi)
        state.log_theta_centred += log_theta(variance, 0.0)


@kernel
def finish_block(words, state: State, by: Acceptance, log_weights, job):
    """Accept a block that is drawn, or write down its log weight if somebody else decides; then go on to the next."""
    code = np.int64(1)
    if by.deciding:
        exponent = state.log_theta_centred - state.log_theta + by.mismatch
        error = by.steps * (THETA_ERROR if state.log_theta_centred > 0.0 else WIDE_LOSS) + by.error + 2.0**-50
        chance = math.exp(-exponent)
        code = accept(words, state, by.shift, chance * (1.0 - error), min(1.0, chance * (1.0 + error)))
        if code < 0:
            return code
    else:
        log_weights[job] = state.log_theta - by.mismatch
    state.log_theta = state.log_theta_centred = 0.0
    state.phase = SAMPLE
    state.job += code
    return np.int64(DONE)


@kernel
def sum_run(words, state: State, tables: GaussianTables, variance, goal, cells: Cells):
    """As many cells of a region as the words at hand and the absence of ties allow: the loop where the time goes."""
    square, largest, table, guide = tables.square, tables.largest, tables.packed.table, tables.packed.guide
    table_start, guide_start, shift = tables.table_start, tables.guide_start, np.uint64(tables.packed.guide_shift)
    out, start, size = cells.out, cells.start, cells.size
    position, cell, total, which = state.position, state.cell, state.total, state.table
    low_bits, scale, each = np.int64(0), 1.0, np.int64(2)
    reach, half, low_shift = 0.0, np.int64(0), np.uint64(0)
    stopped = False
    while cell < size - 1 and not stopped:
        remaining = np.float64(size - cell)
        rest = goal - total
        nearest = np.int64(math.floor(rest / remaining + 0.5))
        phi = np.float64(rest - nearest * (size - cell)) / remaining
        conditional = variance * (remaining - 1.0) / remaining
        # As many uniform bits as draw_wide takes.
        if conditional * scale > TOP or (low_bits > 0 and conditional * scale * 4.0 <= TOP):
            low_bits, scale = np.int64(0), 1.0
            while conditional * scale > TOP:
                scale *= 0.25
                low_bits += 1
            reach, each = FARTHEST_CENTRE + 2.0 ** (low_bits - 1), np.int64(3 if low_bits > 0 else 2)
            half = np.int64(1) << max(low_bits - 1, 0)
            low_shift = np.uint64(64 - max(low_bits, 1))
        while largest[which] < conditional * scale:
            which += 1
        while which > 0 and largest[which - 1] >= conditional * scale:
            which -= 1
        sigma = square[which] / scale
        farthest = reach if low_bits > 0 else phi
        offset = farthest * farthest / (2.0 * (sigma - conditional))
        narrow, wide = 0.5 / conditional, 0.5 / sigma
        first, first_guide = table_start[which], guide_start[which]
        stopped = True
        while position + each <= len(words):
            bits = words[position]
            k = first + np.int64(guide[first_guide + np.int64(bits >> shift)])
            while table[k] < bits:
                k += 1
            if table[k] == bits:
                break
            k -= first
            x = (k + 1) >> 1
            x = (-x if k & 1 else x) << low_bits
            wide_term = np.float64(x) * x * wide
            if low_bits > 0:
                x += np.int64(words[position + 1] >> low_shift) - half
            distance = x - phi
            narrow_term = distance * distance * narrow
            loss = narrow_term - wide_term + offset
            error = (narrow_term + wide_term + offset + 4.0) * ERROR
            coin = np.float64(words[position + each - 1] >> np.uint64(64 - ACCEPT_BITS)) + 1.0
            accepted = coin <= (1.0 - loss - error) * SCALE  # exp(-x) >= 1 - x: mostly enough
            if not accepted:
                chance = max(math.exp(-loss), TINY) * SCALE
                accepted = coin <= chance * (1.0 - error)
                if not accepted and coin - 1.0 < chance * (1.0 + error):
                    break  # left open: the words are still there for others to settle
            position += each
            if accepted:
                if conditional < WIDE_VARIANCE:
                    state.log_theta += log_theta(conditional, phi)
                    state.log_theta_centred += log_theta(conditional, 0.0)
                out[start + cell] = nearest + x
                total += nearest + x
                cell += 1
                stopped = False
                break
    state.position, state.cell, state.total, state.table = position, cell, total, which


@kernel
def fill_sum(words, state: State, tables: GaussianTables, variance, goal, cells: Cells):
    """Cells with sum ``goal``: given those before, the next of r that remain has mean (what is left of the goal)/r.

    Its variance is s^2 (r - 1)/r.
    """
    out, start, size = cells.out, cells.start, cells.size
    while state.cell < size - 1:
        if state.step == PROPOSE and state.answer < 0 and tables.packed.shift == 0:
            sum_run(words, state, tables, variance, goal, cells)
            if state.cell == size - 1:
                break
        remaining = size - state.cell
        rest = goal - state.total
        nearest = np.int64(math.floor(np.float64(rest) / remaining + 0.5))
        phi = np.float64(rest - nearest * remaining) / remaining
        conditional = variance * (remaining - 1.0) / remaining
        code = draw_integer(words, state, tables, conditional, phi)
        if code != DONE:
            state.centre_numerator, state.centre_denominator = rest - nearest * remaining, remaining
            state.share_numerator, state.share_denominator = remaining - 1, remaining
            return code
        count_theta(state, conditional, phi)
        value = nearest + state.value
        out[start + state.cell] = value
        state.total += value
        state.cell += 1
    out[start + size - 1] = goal - state.total
    state.cell = state.total = 0
    return np.int64(DONE)


@kernel
def fill_free(words, states: States, tables: FreeTables, task: Task):
    """Independent cells."""
    state = states[0]
    gaussian, variances, out = tables.gaussian, tables.variances, task.out
    while task.first + state.cell < task.last:
        cell = task.first + state.cell
        code = draw_integer(words, state, gaussian, variances[cell // tables.width], 0.0)
        if code != DONE:
            state.centre_numerator, state.centre_denominator = 0, 1
            state.share_numerator, state.share_denominator = 1, 1
            return code
        out[cell] = state.value
        state.cell += 1
    return np.int64(DONE)


@kernel
def fill_sums(words, states: States, tables: SumsTables, task: Task):
    """Regions with given sums: job t is region ``t % R`` of row ``t // R``; the room is for log weights."""
    state = states[0]
    gaussian, variances, sizes, starts = tables.gaussian, tables.variances, tables.sizes, tables.starts
    out, log_weights, count = task.out, task.room, len(tables.sizes)
    while task.first + state.job < task.last:
        job = task.first + state.job
        region = job % count
        row = job // count
        if state.phase == SAMPLE:
            cells = Cells(out, row * tables.width + starts[region], sizes[region])
            code = fill_sum(words, state, gaussian, variances[row], tables.goals[region], cells)
            if code != DONE:
                return code
            state.tries += 1
            state.phase = DECIDE
        by = Acceptance(gaussian.packed.shift, tables.deciding, sizes[region], 0.0, 0.0)
        code = finish_block(words, state, by, log_weights, job)
        if code != DONE:
            return code
    return np.int64(DONE)
