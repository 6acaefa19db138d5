"""Heat-bath moves along short lattice vectors: z becomes z + k b, with k drawn from its law given all the rest.

One word for each move, drawn by inversion from the smallest k up: chains that share words and differ along b meet.
"""

from __future__ import annotations

import math

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernel_arguments import States, Task
from keepsum.sampling.core.kernels import DONE, MORE, copy
from keepsum.sampling.general.kernel_arguments import BathTables, SweepPairTables, SweepTables
from keepsum.sampling.general.mixture_kernels import unit

FAINT = -42.0  # moves less likely than e^-42 of the likeliest are left out
NO_ROOM = 2**62
MOST_SHIFT = 1024  # k on either side of the likeliest; laws so wide that they reach further are not drawn this way


@kernel
def log_weight(bath: BathTables, b, sums, k):
    """Ln of the weight of the sums that move b changes, moved by k."""
    law, starts, regions, values = bath.law, bath.starts, bath.regions, bath.values
    total = 0.0
    for a in range(bath.pointers[b], bath.pointers[b + 1]):
        region = regions[a]
        place = starts[law[region]] + abs(sums[region] + k * values[a])
        if place >= starts[law[region] + 1]:
            return -math.inf
        total += bath.logs[place]
    return total


@kernel
def draw_shift(uniform, bath: BathTables, b, sums, weights):
    """Draw the k to move by; NO_ROOM if its law reaches further than there is room for."""
    # The weight is log-concave in k: climb to the top, then go down both sides.
    top = 0
    best = log_weight(bath, b, sums, 0)
    for direction in (1, -1):
        while True:
            following = log_weight(bath, b, sums, top + direction)
            if following <= best:
                break
            top += direction
            best = following
    weights[MOST_SHIFT] = 1.0
    total = 1.0
    low, high = 0, 0
    for n in range(1, MOST_SHIFT + 2):
        log_ratio = log_weight(bath, b, sums, top - n) - best
        if log_ratio < FAINT:
            break
        if n > MOST_SHIFT:
            return NO_ROOM
        low = n
        weights[MOST_SHIFT - n] = math.exp(log_ratio)
        total += weights[MOST_SHIFT - n]
    for n in range(1, MOST_SHIFT + 2):
        log_ratio = log_weight(bath, b, sums, top + n) - best
        if log_ratio < FAINT:
            break
        if n > MOST_SHIFT:
            return NO_ROOM
        high = n
        weights[MOST_SHIFT + n] = math.exp(log_ratio)
        total += weights[MOST_SHIFT + n]
    goal = uniform * total
    k = -low
    passed = weights[MOST_SHIFT + k]
    while passed < goal and k < high:
        k += 1
        passed += weights[MOST_SHIFT + k]
    return k + top


@kernel
def shift(bath: BathTables, b, sums, k):
    """Move by k."""
    if k != 0:
        for a in range(bath.pointers[b], bath.pointers[b + 1]):
            sums[bath.regions[a]] += k * bath.values[a]


@kernel
def agree(bath: BathTables, b, one, other):
    """Whether two vectors are the same where move b changes them."""
    for a in range(bath.pointers[b], bath.pointers[b + 1]):  # noqa: SIM110 - compiled
        if one[bath.regions[a]] != other[bath.regions[a]]:
            return False
    return True


@kernel
def equal(one, other):
    """Whether two vectors are the same."""
    for i in range(len(one)):  # noqa: SIM110 - compiled
        if one[i] != other[i]:
            return False
    return True


@kernel
def sweep(words, at, bath: BathTables, sums, weights):
    """Every move once, in order; False if one has no room."""
    for b in range(len(bath.pointers) - 1):
        k = draw_shift(unit(words[at + b]), bath, b, sums, weights)
        if k == NO_ROOM:
            return False
        shift(bath, b, sums, k)
    return True


@kernel
def sweep_both(words, at, bath: BathTables, pair, weights):
    """The same for two chains that share their words; a move for which they agree is drawn once."""
    for b in range(len(bath.pointers) - 1):
        uniform = unit(words[at + b])
        k = draw_shift(uniform, bath, b, pair[0], weights)
        other = k
        if not agree(bath, b, pair[0], pair[1]):
            other = draw_shift(uniform, bath, b, pair[1], weights)
        if k == NO_ROOM or other == NO_ROOM:
            return False
        shift(bath, b, pair[0], k)
        shift(bath, b, pair[1], other)
    return True


@kernel
def sweeps(words, states: States, tables: SweepTables, task: Task):
    """Chains one after the other, each from 0 for ``steps`` sweeps; the room is for the weights of a move."""
    state = states[0]
    bath, out, weights = tables.bath, task.out, task.room
    per = len(bath.pointers) - 1
    while state.job < task.last:
        at, draw = state.position, state.job
        if at + per > len(words):
            return MORE
        state.position = at + per
        if state.step == 0:
            if tables.fresh or draw == 0:
                out[draw] = 0
            else:
                copy(out[draw - 1], out[draw])
        if not sweep(words, at, bath, out[draw], weights):
            state.exceeded = 1
            return DONE
        state.step += 1
        if state.step >= tables.steps:
            state.step = 0
            state.job += 1
    return DONE


@kernel
def couple_sweeps(words, states: States, tables: SweepPairTables, task: Task):
    """Pairs of chains, one ``lag`` sweeps ahead, that share their words until they are equal; -1 if not in time.

    The room is a ``SweepPairRoom``.
    """
    state = states[0]
    bath, times, pair, weights = tables.bath, task.out, task.room.pair, task.room.weights
    per = len(bath.pointers) - 1
    while state.job < task.last:
        at = state.position
        if at + per > len(words):
            return MORE
        state.position = at + per
        if state.step == 0:
            pair[:] = 0
        state.step += 1
        together = state.step > tables.lag
        one = pair[0]
        if not (sweep_both(words, at, bath, pair, weights) if together else sweep(words, at, bath, one, weights)):
            state.exceeded = 1
            return DONE
        if together:
            met = equal(pair[0], pair[1])
            if met or state.step >= tables.last:
                times[state.job] = state.step if met else -1
                state.step = 0
                state.job += 1
    return DONE
