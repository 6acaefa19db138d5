"""Heat-bath moves along short lattice vectors: z becomes z + k b, with k drawn from its law given all the rest.

One word for each move, drawn by inversion from the smallest k up: chains that share words and differ along b meet.
"""

from __future__ import annotations

import math

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.general.chains_kernels import DRAW, STEP
from keepsum.sampling.general.mixture_kernels import unit

FAINT = -42.0  # moves less likely than e^-42 of the likeliest are left out
MOST = 1024  # k on either side of the likeliest; laws so wide that they reach further are not drawn this way


@kernel
def log_weight(law, starts, logs, regions, values, first, last, sums, k):
    """Ln of the weight of the sums that a move by k changes."""
    total = 0.0
    for a in range(first, last):
        region = regions[a]
        place = starts[law[region]] + abs(sums[region] + k * values[a])
        if place >= starts[law[region] + 1]:
            return -math.inf
        total += logs[place]
    return total


@kernel
def move(uniform, law, starts, logs, regions, values, first, last, sums, weights):
    """Draw k, and move by it; False if its law reaches further than there is room for."""
    # The weight is log-concave in k: climb to the top, then go down both sides.
    top = 0
    best = log_weight(law, starts, logs, regions, values, first, last, sums, 0)
    for direction in (1, -1):
        while True:
            following = log_weight(law, starts, logs, regions, values, first, last, sums, top + direction)
            if following <= best:
                break
            top += direction
            best = following
    weights[MOST] = 1.0
    total = 1.0
    low, high = 0, 0
    for n in range(1, MOST + 2):
        own = log_weight(law, starts, logs, regions, values, first, last, sums, top - n) - best
        if own < FAINT:
            break
        if n > MOST:
            return False
        low = n
        weights[MOST - n] = math.exp(own)
        total += weights[MOST - n]
    for n in range(1, MOST + 2):
        own = log_weight(law, starts, logs, regions, values, first, last, sums, top + n) - best
        if own < FAINT:
            break
        if n > MOST:
            return False
        high = n
        weights[MOST + n] = math.exp(own)
        total += weights[MOST + n]
    goal = uniform * total
    k = -low
    passed = weights[MOST + k]
    while passed < goal and k < high:
        k += 1
        passed += weights[MOST + k]
    k += top
    if k != 0:
        for a in range(first, last):
            sums[regions[a]] += k * values[a]
    return True


@kernel
def sweep(words, at, law, starts, logs, pointers, regions, values, sums, weights):
    """Every move once, in order; False if one has no room."""
    for b in range(len(pointers) - 1):
        first, last = pointers[b], pointers[b + 1]
        if not move(unit(words[at + b]), law, starts, logs, regions, values, first, last, sums, weights):
            return False
    return True


@kernel
def sweeps(words, per, law, starts, logs, pointers, regions, values, weights, state, steps, fresh, out):
    """Chains one after the other, each from 0 for ``steps`` sweeps; goes on where the words ended.

    If they are not to be fresh, each goes on from the last state of the one before. False if a move has no room.
    """
    for n in range(len(words) // per):
        draw = state[DRAW]
        if draw == len(out):
            return True
        if state[STEP] == 0:
            if fresh or draw == 0:
                out[draw] = 0
            else:
                out[draw] = out[draw - 1]
        if not sweep(words, n * per, law, starts, logs, pointers, regions, values, out[draw], weights):
            return False
        state[STEP] += 1
        if state[STEP] >= steps:
            state[STEP] = 0
            state[DRAW] += 1
    return True


@kernel
def couple_sweeps(words, per, law, starts, logs, pointers, regions, values, weights, state, lag, most, times, pair):
    """Pairs of chains, the one ``lag`` sweeps ahead, that share their words until they are equal; -1 if not in time.

    False if a move has no room.
    """
    for n in range(len(words) // per):
        place = state[DRAW]
        if place == len(times):
            return True
        if state[STEP] == 0:
            pair[:] = 0
        if not sweep(words, n * per, law, starts, logs, pointers, regions, values, pair[0], weights):
            return False
        state[STEP] += 1
        if state[STEP] > lag:
            if not sweep(words, n * per, law, starts, logs, pointers, regions, values, pair[1], weights):
                return False
            met = np.all(pair[0] == pair[1])
            if met or state[STEP] >= most:
                times[place] = state[STEP] if met else -1
                state[STEP] = 0
                state[DRAW] += 1
    return True
