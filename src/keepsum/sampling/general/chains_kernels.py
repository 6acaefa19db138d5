"""What is done with proposals: chains that move to them, coupled pairs of chains, and rejection.

``mixture_kernels.py`` makes the proposals. The room of each task is a ``ChainRoom``.

Chains see proposals that are thinned: one of weight w below the cap passes with chance w/cap, the others all pass. What
passes, a candidate, has weight max(w, cap), nearly always the cap itself, so that a chain nearly always moves (Tierney
1994, rejection sampling chains). The one uniform number of a proposal serves for both decisions: given that it is below
w/cap, its ratio to that is uniform again. A cap of 0 lets every proposal pass.
"""

from __future__ import annotations

import math

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernel_arguments import States, Task
from keepsum.sampling.core.kernels import DONE, MORE, copy
from keepsum.sampling.general.kernel_arguments import ChainTables, PairTables, RejectionTables
from keepsum.sampling.general.mixture_kernels import propose, unit


@kernel
def thin(word, log_weight, log_cap):
    """Ln of the uniform number that the chain decides by; 0 or more for a proposal that does not pass."""
    log_uniform = math.log(unit(word))
    if log_weight < log_cap:
        log_uniform -= log_weight - log_cap
    return log_uniform


@kernel
def chains(words, states: States, tables: ChainTables, task: Task):
    """Chains one after the other: the first candidate, then ``steps`` steps; the last state of each is a row."""
    state = states[0]
    out, log_weights, candidate = task.out, task.room.log_weights, task.room.candidate
    per, log_cap = tables.mixture.words_per_proposal, tables.log_cap
    while state.job < task.last:
        at, draw = state.position, state.job
        if at + per > len(words):
            return MORE
        state.position = at + per
        log_weight = propose(words, at, tables.mixture, task.room.mixture, candidate)
        log_uniform = thin(words[at + per - 1], log_weight, log_cap)
        if log_uniform >= 0:
            continue
        log_weight = max(log_weight, log_cap)
        first = state.step == 0 and (tables.fresh or draw == 0)
        if state.step == 0 and not first:
            log_weights[draw] = log_weights[draw - 1]
            copy(out[draw - 1], out[draw])
        if first or log_uniform < log_weight - log_weights[draw]:
            log_weights[draw] = log_weight
            copy(candidate, out[draw])
        state.step += 1
        if state.step > tables.steps:
            state.step = 0
            state.job += 1
    return DONE


@kernel
def couple(words, states: States, tables: PairTables, task: Task):
    """Pairs of chains, one ``lag`` steps ahead; both see the same candidates and meet when both accept one.

    The second chain starts from the candidate that the first one sees at step ``lag``: most pairs meet there. A met
    pair stays together. All that decides is the weights of the two states, of the candidate, and its uniform number.
    What is written is the step of the leading chain at the meeting, -1 for a pair that had not met at step ``last``.
    """
    state = states[0]
    times, log_weights = task.out, task.room.log_weights
    per, log_cap, lag = tables.mixture.words_per_proposal, tables.log_cap, tables.lag
    while state.job < task.last:
        at, step = state.position, state.step
        if at + per > len(words):
            return MORE
        state.position = at + per
        log_weight = propose(words, at, tables.mixture, task.room.mixture, task.room.candidate)
        log_uniform = thin(words[at + per - 1], log_weight, log_cap)
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
        state.step += 1
        if met or step >= tables.last:
            times[state.job] = step if met else -1
            state.step = 0
            state.job += 1
    return DONE


@kernel
def reject(words, states: States, tables: RejectionTables, task: Task):
    """Proposals until every row has one accepted with chance w / M, or ``most`` are made."""
    state = states[0]
    per, log_bound, candidate = tables.mixture.words_per_proposal, tables.log_bound, task.room.candidate
    while state.job < task.last and state.tries < task.most:
        at = state.position
        if at + per > len(words):
            return MORE
        state.position = at + per
        state.tries += 1
        log_weight = propose(words, at, tables.mixture, task.room.mixture, candidate)
        if log_weight > log_bound:
            state.exceeded = 1  # cannot be, but for the rounding of a factor: the draw stops
            return DONE
        if math.log(unit(words[at + per - 1])) < log_weight - log_bound:
            copy(candidate, task.out[state.job])
            state.job += 1
    return DONE
