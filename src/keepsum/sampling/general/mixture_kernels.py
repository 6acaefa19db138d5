"""Proposals of the scale mixture: a variance for each region, then a lattice Gaussian with these variances.

A proposal takes one word for each region and one for each coordinate, always: everything is drawn by inversion, so
that a buffer of whole proposals never ends in the middle of one, and chains that share words share proposals.
``mixture.py`` says what is drawn and why.
"""

from __future__ import annotations

import math

import numpy as np

from keepsum.sampling.core.compiling import kernel, loose_kernel
from keepsum.sampling.core.kernel_arguments import States, Task
from keepsum.sampling.core.kernels import DONE, MORE
from keepsum.sampling.general.factor_kernels import cholesky, invert
from keepsum.sampling.general.kernel_arguments import MixtureRoom, MixtureTables, ScaleTables, SlabTables

TO_UNIT = 2.0**-53
ROOT = math.sqrt(2 * math.pi)
LOG_ROOT = 0.5 * math.log(2 * math.pi)
HALF = 0.5 + 2.0**-40  # centres half way between two whole numbers are common, and floats err to either side
FLOOR = 0.02  # a smaller variance is drawn with like this one: a step by 1 has chance e^-25
FLAT_FROM = 2.0  # from this variance on all centres have the same weight, to 1e-17
DUAL_FROM = 0.5625  # from this variance on, the first term of the dual sum gives the lattice's weight to 1e-19
REFRESH = 16  # weights by recurrence are computed anew after so many steps: their errors grow like its square
GUIDE = 4096  # cells of a guide


@kernel
def fall(rate, size, start, out):
    """Ratios of the law of a sum of double geometrics, from far out down to 0 (``scales.log_sum_law``)."""
    ratio = rate
    for s in range(start, 0, -1):
        below = (1 + rate * rate) * s + rate * (size - s - 1) * ratio
        ratio = rate * (size + s - 1) / below
        if s - 1 < len(out):
            out[s - 1] = ratio


@kernel
def accumulate(fresh, passed_on, last):
    """The largest errors of numbers that follow from each other downwards, a share of each passed on; their sum."""
    error, total = last, 0.0
    for n in range(len(passed_on) - 1, -1, -1):
        error = fresh + passed_on[n] * error
        total += error
    return total


@kernel
def unit(word):
    """A number strictly between 0 and 1: the last of 2^53 would round to 1."""
    return min((np.float64(word >> np.uint64(11)) + 0.5) * TO_UNIT, 1 - TO_UNIT)


@kernel
def log_theta(phi, square):
    """Ln of the sum over whole k of exp(-(k - phi)^2 / 2 s^2), |phi| <= 1/2."""
    if square >= FLAT_FROM:
        return LOG_ROOT + 0.5 * math.log(square)
    if square >= DUAL_FROM:
        dual = 2 * math.exp(-2 * math.pi * math.pi * square) * math.cos(2 * math.pi * phi)
        return LOG_ROOT + 0.5 * math.log(square) + math.log1p(dual)
    # The weight of 0 is taken out: it may be far below the smallest float.
    total = 1.0
    for k in range(1, 9):
        total += math.exp((2 * k * phi - k * k) / (2 * square)) + math.exp((-2 * k * phi - k * k) / (2 * square))
    return -phi * phi / (2 * square) + math.log(total)


@kernel
def draw_integer(uniform, phi, square, log_sum):
    """A whole k with weight exp(-(k - phi)^2 / 2 s^2), by inversion from the middle outwards."""
    half = 0.5 / square
    if square >= FLAT_FROM:
        goal = uniform * ROOT * math.sqrt(square) * math.exp(phi * phi * half)  # in units of the weight of 0
    else:
        goal = uniform * math.exp(log_sum + phi * phi * half)
    passed = 1.0
    if passed >= goal:
        return 0
    above, below = 1.0, 1.0
    down = math.exp(-(2 * phi + 1) * half)
    up = down * math.exp(4 * phi * half)
    falling = math.exp(-2 * half)
    last = int(10 * math.sqrt(square)) + 9
    for k in range(1, last):
        if k % REFRESH == 0:
            above = math.exp((2 * k * phi - k * k) / (2 * square))
            below = math.exp((-2 * k * phi - k * k) / (2 * square))
            up = math.exp((2 * phi - 1 - 2 * k) / (2 * square))
            down = math.exp((-2 * phi - 1 - 2 * k) / (2 * square))
        else:
            above *= up
            below *= down
            up *= falling
            down *= falling
        passed += above
        if passed >= goal:
            return k
        passed += below
        if passed >= goal:
            return -k
    return 0


@kernel
def draw_variances(words, at, laws, scales: ScaleTables, room: MixtureRoom):
    """A variance for each region, by inversion; ln of its density, target over proposal."""
    start, edge, height, unheight, slope = scales.start, scales.edge, scales.height, scales.unheight, scales.slope
    passed, guide, power, half = scales.passed, scales.guide, scales.power, scales.half
    log_weight = 0.0
    for region in range(len(laws)):
        law = laws[region]
        uniform = unit(words[at + region])
        piece = start[law] + guide[law, np.int64(uniform * GUIDE)]
        while piece + 1 < start[law + 1] and passed[piece + 1] <= uniform:
            piece += 1
        # Inverts the mass from the edge on, exp(height) (exp(slope x) - 1) / slope.
        grown = slope[piece] * (uniform - passed[piece]) * unheight[piece]
        rise = math.log1p(grown)
        y = edge[piece] + rise / slope[piece]
        log_ratio = -half[law] * y * y - height[piece] - rise
        if power[law] > 0:
            log_ratio += power[law] * math.log(y)
        log_weight += log_ratio
        room.squares[region] = y * y
        room.variances[region] = max(y * y, FLOOR)
    return log_weight


@kernel
def add_form(form, variances, first, slabs: SlabTables):
    """Form += B' V^-1 B on and below the diagonal, for the regions of one slab."""
    pointers, rows, values = slabs.pointers, slabs.rows, slabs.values
    for region in range(len(pointers) - 1):
        weight = 1 / variances[first + region]
        for a in range(pointers[region], pointers[region + 1]):
            for b in range(pointers[region], a + 1):
                form[rows[a], rows[b]] += weight * values[a] * values[b]


@kernel
def add_row_form(form, variances, first, width):
    """The same for a row with its sum kept, in the basis e_i - e_last."""
    last = 1 / variances[first + width - 1]
    for i in range(width - 1):
        for j in range(i):
            form[i, j] += last
        form[i, i] += last + 1 / variances[first + i]


@kernel
def clear(matrix, profile):
    """Zero on and below the diagonal."""
    for i in range(len(profile)):
        for j in range(profile[i], i + 1):
            matrix[i, j] = 0.0


@kernel
def add_row_covariance(sums, variances, first, width):
    """A row with its sum kept has covariance D - D 1 1' D / (sum of its variances), in the basis e_i - e_last."""
    whole = 0.0
    for region in range(width):
        whole += variances[first + region]
    share = 1 / whole
    for i in range(width - 1):
        part = variances[first + i] * share
        for j in range(i + 1):
            sums[i, j] -= part * variances[first + j]
        sums[i, i] += variances[first + i]


@kernel
def inverse_sums(slabs: SlabTables, room: MixtureRoom):
    """room.precisions[k] = (sum over the slabs after k of the covariance of their coordinates)^-1."""
    profile, variances = slabs.profile, room.variances
    form, sums, roots, inverse = room.form, room.sums, room.roots, room.inverse
    width, size = len(slabs.pointers) - 1, len(profile)
    clear(sums, profile)
    for slab in range(slabs.slabs - 1, 0, -1):
        first, out = slab * width, room.precisions[slab - 1]
        if slabs.simple:
            add_row_covariance(sums, variances, first, width)
        else:
            clear(form, profile)
            add_form(form, variances, first, slabs)
            cholesky(form, profile, roots)
            invert(form, roots, inverse, out)
            for i in range(size):
                for j in range(i + 1):
                    sums[i, j] += out[i, j]
        for i in range(size):
            for j in range(i + 1):
                form[i, j] = sums[i, j]
        cholesky(form, profile, roots)
        invert(form, roots, inverse, out)


@loose_kernel
def turn(precision, passed, centres, form):
    """Start a slab's form and centre: the slabs after it add up to minus what has passed and its own."""
    for i in range(len(passed)):
        total = 0.0
        for j in range(len(passed)):
            total += precision[i, j] * passed[j]
        centres[i] = -total
        for j in range(i + 1):
            form[i, j] = precision[i, j]


@loose_kernel
def solve(form, profile, roots, centres):
    """Centres become L^-1 centres."""
    for i in range(len(profile)):
        total = 0.0
        for j in range(profile[i], i):
            total += form[i, j] * centres[j]
        centres[i] = (centres[i] - total) * roots[i]


@kernel
def draw_slab(words, at, slab, slabs: SlabTables, room: MixtureRoom):
    """The coordinates of a slab given those of the slabs before, from the last to the first; ln of the weight."""
    profile, form, roots, centres, coordinates = slabs.profile, room.form, room.roots, room.centres, room.coordinates
    width, size = len(slabs.pointers) - 1, len(profile)
    if slabs.slabs > 1:
        turn(room.precisions[slab], room.passed, centres, form)
    else:
        clear(form, profile)
        for i in range(size):
            centres[i] = 0.0
    if slabs.simple:
        add_row_form(form, room.variances, slab * width, width)
    else:
        add_form(form, room.variances, slab * width, slabs)
    cholesky(form, profile, roots)
    solve(form, profile, roots, centres)
    log_weight = 0.0
    for i in range(size - 1, -1, -1):
        # Later coordinates have taken their part off this centre.
        centre = centres[i] * roots[i]
        square = roots[i] * roots[i]
        nearest = math.floor(centre + HALF)
        phi = centre - nearest
        log_sum = log_theta(phi, square)
        k = draw_integer(unit(words[at]), phi, square, log_sum)
        at += 1
        coordinates[i] = nearest + k
        log_weight += log_sum + (k - phi) * (k - phi) / (2 * square)
        for j in range(profile[i], i):
            centres[j] -= form[i, j] * coordinates[i]
    return log_weight


@kernel
def write_slab(slabs: SlabTables, slab, coordinates, sign, out):
    """The sums of a slab's regions from its coordinates."""
    pointers, rows, values = slabs.pointers, slabs.rows, slabs.values
    first = slab * (len(pointers) - 1)
    for region in range(len(pointers) - 1):
        total = 0.0
        for a in range(pointers[region], pointers[region + 1]):
            total += values[a] * coordinates[rows[a]]
        out[first + region] = np.int64(sign * total)


@kernel
def propose(words, at, tables: MixtureTables, room: MixtureRoom, out):
    """Sums of regions into ``out``; ln of their weight: the target's density over the one drawn from.

    Whatever the factor's rounding does, the weight is that of the centres and widths which were used.
    """
    scales, slabs = tables.scales, tables.slabs
    log_weight = draw_variances(words, at, slabs.law, scales, room)
    at += len(slabs.law)
    count, size = slabs.slabs, len(slabs.profile)
    for i in range(size):
        room.passed[i] = 0.0
    if count > 1:
        inverse_sums(slabs, room)
    for slab in range(max(1, count - 1)):
        log_weight += draw_slab(words, at, slab, slabs, room)
        at += size
        for i in range(size):
            room.passed[i] += room.coordinates[i]
        write_slab(slabs, slab, room.coordinates, 1.0, out)
    if count > 1:
        write_slab(slabs, count - 1, room.passed, -1.0, out)
    return log_weight + log_target(slabs.law, scales, room.squares, out)


@kernel
def log_target(laws, scales: ScaleTables, squares, out):
    """Ln of the weight of the sums given the variances, and of the law of sums over its mixture."""
    starts, ratios = scales.ratio_start, scales.ratios
    total = 0.0
    for region in range(len(out)):
        law = laws[region]
        if out[region] != 0:
            s = np.float64(out[region])
            total -= s * s / (2 * squares[region])
        if starts[law + 1] > starts[law]:
            place = starts[law] + abs(out[region])
            if place >= starts[law + 1]:
                return -math.inf
            total += ratios[place]
    return total


@kernel
def weigh(words, states: States, tables: MixtureTables, task: Task):
    """Independent proposals and their log weights; the room is a ``ChainRoom``."""
    state = states[0]
    while state.job < task.last:
        at = state.position
        if at + tables.words_per_proposal > len(words):
            return MORE
        state.position = at + tables.words_per_proposal
        task.room.log_weights[state.job] = propose(words, at, tables, task.room.mixture, task.out[state.job])
        state.job += 1
    return DONE
