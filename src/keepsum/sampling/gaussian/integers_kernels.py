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
from keepsum.sampling.core.kernels import (
    ACCEPT_BITS,
    ANSWER,
    CELL,
    CENTRE_BOTTOM,
    CENTRE_TOP,
    DONE,
    HIGH,
    JOB,
    LOW,
    MORE,
    NEAR,
    PHASE,
    POSITION,
    SHARE_BOTTOM,
    SHARE_TOP,
    TIE_DRAW,
    TOTAL,
    TRIES,
    VALUE,
    WHICH,
    accept,
)

PROPOSE, ADD_LOW, ACCEPT = 0, 1, 2  # NEAR: the stages of a one-dimensional draw
SAMPLE, FILL, DECIDE = 0, 1, 2  # PHASE: the stages of a block
THETA, THETA_CENTRED, CENTRE = 0, 1, 2  # in the array of reals: sums of logarithms, and a centre that ties

WIDE = 2.89  # s^2 from which on factors are 1 but for 4 exp(-2 pi^2 s^2) < 10^-24
WIDE_LOSS = 1e-24
THETA_ERROR = 1e-13  # of one logarithm of a factor, far more than its floats err
TOP = 48.0**2  # s^2 above this gets uniform bits
SCALE = 2.0**ACCEPT_BITS
TINY = 1e-290  # a chance that floats call 0 is none, and is left to others
FARTHEST = 0.75  # no centre lies this far from the whole number that floats call nearest
# Each term of an acceptance's exponent errs by a few units in its last place, s^2 and the centre included.
ERROR = 2.0**-46


@kernel
def pick(tables, variance, guess):
    """The narrowest table that is wider by the gap."""
    while tables.largest[guess] < variance:
        guess += 1
    while guess > 0 and tables.largest[guess - 1] >= variance:
        guess -= 1
    return guess


@kernel
def propose(word, tables, which):
    """The place of a proposal in 0, -1, 1, -2, 2, ..., or TIE_DRAW."""
    start = tables.table_start[which]
    bits = word >> np.uint64(tables.shift)
    k = np.int64(tables.guide[tables.guide_start[which] + np.int64(bits >> np.uint64(tables.guide_shift))])
    while tables.table[start + k] < bits:
        k += 1
    return np.int64(TIE_DRAW) if tables.table[start + k] == bits else k


@kernel
def signed(k):
    """The k-th of 0, -1, 1, -2, 2, ..."""
    x = (k + 1) >> 1
    return -x if k & 1 else x


@kernel
def draw_near(words, state, tables, variance, phi):
    """A draw with weight exp(-(x - phi)^2 / 2 s^2) for |phi| up to about 1/2, left in VALUE.

    WHICH holds the table used last, a good guess for the next, and the number of uniform bits above 2^8.
    """
    if variance > TOP:
        return draw_wide(words, state, tables, variance, phi)
    which = pick(tables, variance, state[WHICH] & 255)
    state[WHICH] = which
    square = tables.square[which]
    room = phi * phi / (2.0 * (square - variance))
    return draw_slowly(words, state, tables, which, 0, variance, phi, room)


@kernel
def draw_wide(words, state, tables, variance, phi):
    """The same for a wide law: a proposal is 2^b h + l, l uniform."""
    low_bits = np.int64(0)
    scale = 1.0
    while variance * scale > TOP:
        scale *= 0.25
        low_bits += 1
    which = pick(tables, variance * scale, state[WHICH] & 255)
    state[WHICH] = which | (low_bits << 8)
    reach = FARTHEST + 2.0 ** (low_bits - 1)
    room = reach * reach / (2.0 * (tables.square[which] / scale - variance))
    return draw_slowly(words, state, tables, which, low_bits, variance, phi, room)


@kernel
def draw_slowly(words, state, tables, which, low_bits, variance, phi, room):
    """The same, stage by stage: it can stop anywhere and go on."""
    wide = 0.5 / (tables.square[which] * 4.0**low_bits)
    while True:
        if state[NEAR] == PROPOSE:
            k = state[ANSWER]
            if k >= 0:
                state[ANSWER] = -1
            else:
                position = state[POSITION]
                if position >= len(words):
                    return np.int64(MORE)
                k = propose(words[position], tables, which)
                if k < 0:
                    return np.int64(TIE_DRAW)
                state[POSITION] = position + 1
            state[HIGH] = signed(k) << low_bits
            state[LOW] = 0
            state[NEAR] = ADD_LOW if low_bits > 0 else ACCEPT
        if state[NEAR] == ADD_LOW:
            position = state[POSITION]
            if position >= len(words):
                return np.int64(MORE)
            state[LOW] = np.int64(words[position] >> np.uint64(64 - low_bits)) - (np.int64(1) << (low_bits - 1))
            state[POSITION] = position + 1
            state[NEAR] = ACCEPT
        high = np.float64(state[HIGH])
        distance = high + (np.float64(state[LOW]) - phi)
        near, far = distance * distance * (0.5 / variance), high * high * wide
        chance = math.exp(-(near - far + room))
        error = (near + far + room + 4.0) * ERROR
        code = accept(words, state, tables.shift, chance * (1.0 - error), max(chance, TINY) * (1.0 + error))
        if code < 0:
            return code
        state[NEAR] = PROPOSE
        if code == 1:
            state[VALUE] = state[HIGH] + state[LOW]
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
def count_theta(reals, variance, phi):
    """Add the factor of one coordinate to the sums of logarithms, where it can be told from 1."""
    if variance < WIDE:
        reals[THETA] += log_theta(variance, phi)
        reals[THETA_CENTRED] += log_theta(variance, 0.0)


@kernel
def decide(words, state, tables, reals, steps, mismatch, mismatch_error):
    """Accept a block with the product of its factors, times exp(-mismatch)."""
    exponent = reals[THETA_CENTRED] - reals[THETA] + mismatch
    error = steps * (THETA_ERROR if reals[THETA_CENTRED] > 0.0 else WIDE_LOSS) + mismatch_error + 2.0**-50
    chance = math.exp(-exponent)
    return accept(words, state, tables.shift, chance * (1.0 - error), min(1.0, chance * (1.0 + error)))


@kernel
def sum_run(
    words, state, square, largest, table, table_start, guide, guide_start, guide_shift, variance, size, goal, out,
    start, reals,
):  # fmt: skip
    """As many cells of a region as the words at hand and the absence of ties allow: the loop where the time goes."""
    position, cell, total, which = state[POSITION], state[CELL], state[TOTAL], state[WHICH] & 255
    low_bits, scale, each = np.int64(0), 1.0, np.int64(2)
    reach, half, low_shift = 0.0, np.int64(0), np.uint64(0)
    shift = np.uint64(guide_shift)
    open_end = False
    while cell < size - 1 and not open_end:
        left = np.float64(size - cell)
        rest = goal - total
        nearest = np.int64(math.floor(rest / left + 0.5))
        phi = np.float64(rest - nearest * (size - cell)) / left
        own = variance * (left - 1.0) / left
        if own * scale > TOP or (low_bits > 0 and own * scale * 4.0 <= TOP):  # as many uniform bits as draw_wide takes
            low_bits, scale = np.int64(0), 1.0
            while own * scale > TOP:
                scale *= 0.25
                low_bits += 1
            reach, each = FARTHEST + 2.0 ** (low_bits - 1), np.int64(3 if low_bits > 0 else 2)
            half = np.int64(1) << max(low_bits - 1, 0)
            low_shift = np.uint64(64 - max(low_bits, 1))
        while largest[which] < own * scale:
            which += 1
        while which > 0 and largest[which - 1] >= own * scale:
            which -= 1
        sigma = square[which] / scale
        far_off = reach if low_bits > 0 else phi
        room = far_off * far_off / (2.0 * (sigma - own))
        narrow, wide = 0.5 / own, 0.5 / sigma
        first, first_guide = table_start[which], guide_start[which]
        open_end = True
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
            far = np.float64(x) * x * wide
            if low_bits > 0:
                x += np.int64(words[position + 1] >> low_shift) - half
            distance = x - phi
            near = distance * distance * narrow
            loss = near - far + room
            error = (near + far + room + 4.0) * ERROR
            coin = np.float64(words[position + each - 1] >> np.uint64(64 - ACCEPT_BITS)) + 1.0
            accepted = coin <= (1.0 - loss - error) * SCALE  # exp(-x) >= 1 - x: mostly enough
            if not accepted:
                chance = max(math.exp(-loss), TINY) * SCALE
                accepted = coin <= chance * (1.0 - error)
                if not accepted and coin - 1.0 < chance * (1.0 + error):
                    break  # left open: the words are still there for others to settle
            position += each
            if accepted:
                if own < WIDE:
                    reals[THETA] += log_theta(own, phi)
                    reals[THETA_CENTRED] += log_theta(own, 0.0)
                out[start + cell] = nearest + x
                total += nearest + x
                cell += 1
                open_end = False
                break
    state[POSITION], state[CELL], state[TOTAL], state[WHICH] = position, cell, total, which


@kernel
def fill_sum(words, state, tables, variance, size, goal, out, start, reals):
    """Cells of a region with sum ``goal``: given those before, the next of r that are left has mean (what is left)/r.

    Its variance is s^2 (r - 1)/r. Progress is in CELL, the sum so far in TOTAL.
    """
    while state[CELL] < size - 1:
        if state[NEAR] == PROPOSE and state[ANSWER] < 0 and tables.shift == 0:
            sum_run(
                words, state, tables.square, tables.largest, tables.table, tables.table_start, tables.guide,
                tables.guide_start, tables.guide_shift, variance, size, goal, out, start, reals,
            )  # fmt: skip
            if state[CELL] == size - 1:
                break
        left = size - state[CELL]
        rest = goal - state[TOTAL]
        nearest = np.int64(math.floor(np.float64(rest) / left + 0.5))
        phi = np.float64(rest - nearest * left) / left
        own = variance * (left - 1.0) / left
        code = draw_near(words, state, tables, own, phi)
        if code != DONE:
            state[CENTRE_TOP], state[CENTRE_BOTTOM] = rest - nearest * left, left
            state[SHARE_TOP], state[SHARE_BOTTOM] = left - 1, left
            return code
        count_theta(reals, own, phi)
        value = nearest + state[VALUE]
        out[start + state[CELL]] = value
        state[TOTAL] += value
        state[CELL] += 1
    out[start + size - 1] = goal - state[TOTAL]
    state[CELL] = state[TOTAL] = 0
    return np.int64(DONE)


@kernel
def fill_free(words, state, tables, variances, width, first, last, out):
    """Independent cells ``first`` to ``last``; a row of ``width`` cells has a variance of its own."""
    while first + state[CELL] < last:
        cell = first + state[CELL]
        code = draw_near(words, state, tables, variances[cell // width], 0.0)
        if code != DONE:
            state[CENTRE_TOP], state[CENTRE_BOTTOM] = 0, 1
            state[SHARE_TOP], state[SHARE_BOTTOM] = 1, 1
            return code
        out[cell] = state[VALUE]
        state[CELL] += 1
    return np.int64(DONE)


@kernel
def fill_sums(words, state, tables, variances, sizes, starts, width, first, last, out, deciding, thetas, reals):
    """Regions with sum 0, draw by draw, region by region; job = draw * regions + region."""
    count = len(sizes)
    while first + state[JOB] < last:
        job = first + state[JOB]
        region = job % count
        row = job // count
        if state[PHASE] == SAMPLE:
            code = fill_sum(
                words, state, tables, variances[row], sizes[region], 0, out, row * width + starts[region], reals
            )
            if code != DONE:
                return code
            state[TRIES] += 1
            state[PHASE] = DECIDE
        if deciding:
            code = decide(words, state, tables, reals, sizes[region], 0.0, 0.0)
            if code < 0:
                return code
        else:
            code = np.int64(1)
            thetas[job] = reals[THETA]
        reals[THETA] = reals[THETA_CENTRED] = 0.0
        state[PHASE] = SAMPLE
        state[JOB] += code
    return np.int64(DONE)
