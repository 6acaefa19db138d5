"""What is done with proposals: chains that move to them, pairs of chains that meet, and rejection.

Each goes on where its words ended. ``mixture_kernels.py`` makes the proposals.
"""

from __future__ import annotations

import math

from keepsum.sampling.compiling import kernel
from keepsum.sampling.mixture_kernels import propose, unit

# What a run keeps between two buffers of words: places of its integers.
DRAW, STEP, ACCEPTED, TRIES = 0, 1, 2, 3


@kernel
def chains(words, per, scales, slabs, room, state, steps, fresh, out, log_weights, candidate):
    """Chains one after the other: the first proposal, then ``steps`` steps; goes on where the words ended.

    If they are not to be fresh, each goes on from the last state of the one before.
    """
    last = len(words) // per
    for n in range(last):
        draw = state[DRAW]
        if draw == len(out):
            return
        if state[STEP] == 0 and (fresh or draw == 0):
            log_weights[draw] = propose(words, n * per, scales, slabs, room, out[draw])
        else:
            if state[STEP] == 0:
                log_weights[draw] = log_weights[draw - 1]
                out[draw] = out[draw - 1]
            log_weight = propose(words, n * per, scales, slabs, room, candidate)
            if math.log(unit(words[(n + 1) * per - 1])) < log_weight - log_weights[draw]:
                log_weights[draw] = log_weight
                out[draw] = candidate
                state[ACCEPTED] += 1
        state[STEP] += 1
        if state[STEP] > steps:
            state[STEP] = 0
            state[DRAW] += 1


@kernel
def couple(words, per, scales, slabs, room, state, lag, most, times, log_weights, candidate):
    """Pairs of chains, the one ``lag`` steps ahead; both see the same proposals and meet when both accept one.

    A met pair stays together. All that decides is the weights of the two states: the proposal's and its uniform
    number's. ``times`` is the step of the leading chain at the meeting, -1 for a pair that had not met at ``most``.
    """
    last = len(words) // per
    for n in range(last):
        pair = state[DRAW]
        if pair == len(times):
            return
        step = state[STEP]
        log_weight = propose(words, n * per, scales, slabs, room, candidate)
        log_uniform = math.log(unit(words[(n + 1) * per - 1]))
        met = False
        if step == 0:
            log_weights[0] = log_weight
        elif step <= lag:
            if log_uniform < log_weight - log_weights[0]:
                log_weights[0] = log_weight
        elif step == lag + 1:
            log_weights[1] = log_weight  # where the second chain starts
        else:
            ahead = log_uniform < log_weight - log_weights[0]
            behind = log_uniform < log_weight - log_weights[1]
            if ahead:
                log_weights[0] = log_weight
            if behind:
                log_weights[1] = log_weight
            met = ahead and behind
        state[STEP] += 1
        if met or step > most:
            times[pair] = step - 1 if met else -1
            state[STEP] = 0
            state[DRAW] += 1


@kernel
def reject(words, per, scales, slabs, room, state, log_bound, out, candidate, most):
    """Proposals until every draw has one accepted with chance w / M, or ``most`` are made."""
    last = len(words) // per
    for n in range(last):
        if state[DRAW] == len(out) or state[TRIES] == most:
            return
        state[TRIES] += 1
        log_weight = propose(words, n * per, scales, slabs, room, candidate)
        if log_weight > log_bound:
            state[ACCEPTED] += 1  # cannot be: the bound is proved
        if math.log(unit(words[(n + 1) * per - 1])) < log_weight - log_bound:
            out[state[DRAW]] = candidate
            state[DRAW] += 1
