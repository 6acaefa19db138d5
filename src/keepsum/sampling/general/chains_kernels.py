"""What is done with proposals: chains that move to them, pairs of chains that meet, and rejection.

Each goes on where its words ended. ``mixture_kernels.py`` makes the proposals.

Chains do not see every proposal. One of weight w below the cap passes with chance w/cap, and the others all pass:
candidates so winnowed have the weight max(w, cap), nearly always the cap itself, so that a chain nearly always moves
(Tierney 1994, rejection sampling chains). The one uniform number of a proposal serves for both decisions: given that
it is below w/cap, its ratio to that is uniform again. A cap of 0 lets every proposal pass.
"""

from __future__ import annotations

import math

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.general.mixture_kernels import propose, unit

# What a run keeps between two buffers of words: places of its integers.
DRAW, STEP, TRIES, BEYOND = 0, 1, 2, 3


@kernel
def winnow(word, log_weight, log_cap):
    """Ln of the uniform number that the chain decides by; 0 or more for a proposal that does not pass."""
    log_uniform = math.log(unit(word))
    if log_weight < log_cap:
        log_uniform -= log_weight - log_cap
    return log_uniform


@kernel
def chains(words, per, scales, slabs, room, state, log_cap, steps, fresh, out, log_weights, candidate):
    """Chains one after the other: the first candidate, then ``steps`` steps; goes on where the words ended.

    If they are not to be fresh, each goes on from the last state of the one before.
    """
    last = len(words) // per
    for n in range(last):
        draw = state[DRAW]
        if draw == len(out):
            return
        log_weight = propose(words, n * per, scales, slabs, room, candidate)
        log_uniform = winnow(words[(n + 1) * per - 1], log_weight, log_cap)
        if log_uniform >= 0:
            continue
        log_weight = max(log_weight, log_cap)
        first = state[STEP] == 0 and (fresh or draw == 0)
        if state[STEP] == 0 and not first:
            log_weights[draw] = log_weights[draw - 1]
            out[draw] = out[draw - 1]
        if first or log_uniform < log_weight - log_weights[draw]:
            log_weights[draw] = log_weight
            out[draw] = candidate
        state[STEP] += 1
        if state[STEP] > steps:
            state[STEP] = 0
            state[DRAW] += 1


@kernel
def couple(words, per, scales, slabs, room, state, log_cap, lag, most, times, log_weights, candidate):
    """Pairs of chains, the one ``lag`` steps ahead; both see the same candidates and meet when both accept one.

    The second chain starts from the candidate that the first one sees at step ``lag``: most pairs meet there. A met
    pair stays together. All that decides is the weights of the two states, of the candidate, and its uniform number.
    ``times`` is the step of the leading chain at the meeting, -1 for a pair that had not met at ``most``.
    """
    last = len(words) // per
    for n in range(last):
        pair = state[DRAW]
        if pair == len(times):
            return
        step = state[STEP]
        log_weight = propose(words, n * per, scales, slabs, room, candidate)
        log_uniform = winnow(words[(n + 1) * per - 1], log_weight, log_cap)
        if log_uniform >= 0:
            continue
        log_weight = max(log_weight, log_cap)
        ahead = step == 0 or log_uniform < log_weight - log_weights[0]
        behind = step == lag or (step > lag and log_uniform < log_weight - log_weights[1])
        if ahead:
            log_weights[0] = log_weight
        if behind:
            log_weights[1] = log_weight
        met = ahead and behind
        state[STEP] += 1
        if met or step >= most:
            times[pair] = step if met else -1
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
            state[BEYOND] += 1  # cannot be, but for the rounding of a factor: the draw stops
        if math.log(unit(words[(n + 1) * per - 1])) < log_weight - log_bound:
            out[state[DRAW]] = candidate
            state[DRAW] += 1
