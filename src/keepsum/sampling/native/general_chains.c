/* What is done with proposals: chains that move to them, coupled pairs of chains, and rejection.
 *
 * Chains see proposals that are thinned: one of weight w below the cap passes with chance w/cap, the others all pass.
 * What passes, a candidate, has weight max(w, cap), nearly always the cap itself, so that a chain nearly always moves
 * (Tierney 1994, rejection sampling chains). The one uniform number of a proposal serves for both decisions: given that
 * it is below w/cap, its ratio to that is uniform again. A cap of 0 lets every proposal pass. docs/general.md has the
 * proofs.
 */
#include "general.h"

/* Ln of the uniform number that the chain decides by; 0 or more for a proposal that does not pass. */
INNER double thin(u64 word, double log_weight, double log_cap) {
    double log_uniform = log_of(unit(word));
    return log_weight < log_cap ? log_uniform - (log_weight - log_cap) : log_uniform;
}

/* Chains one after the other: the first candidate, then `steps` steps; the last state of each is a row. */
KERNEL i64 chains(const Words *words, const ChainStates *states, const ChainTables *tables, const MixtureTask *task) {
    ChainState *state = states->at;
    const OutIntMatrix out = task->out;
    const OutFloats log_weights = task->room.log_weights;
    const OutInts candidate = task->room.candidate;
    i64 per = tables->mixture.words_per_proposal;
    while (state->job < task->last) {
        i64 at = state->position, draw = state->job;
        if (at + per > words->size) return MORE;
        state->position = at + per;
        double log_weight = propose(words->at + at, &tables->mixture, &task->room.mixture, candidate.at);
        double log_uniform = thin(words->at[at + per - 1], log_weight, tables->log_cap);
        if (log_uniform >= 0) continue;
        log_weight = larger(log_weight, tables->log_cap);
        bool first = state->step == 0 && (tables->fresh || draw == 0);
        if (state->step == 0 && !first) {
            AT(log_weights, draw) = AT(log_weights, draw - 1);
            copy(ROW(out, draw - 1), ROW(out, draw), out.columns);
        }
        if (first || log_uniform < log_weight - AT(log_weights, draw)) {
            AT(log_weights, draw) = log_weight;
            copy(candidate.at, ROW(out, draw), out.columns);
        }
        state->step += 1;
        if (state->step > tables->steps) {
            state->step = 0;
            state->job += 1;
        }
    }
    return DONE;
}

/* Pairs of chains, one `lag` steps ahead; both see the same candidates and meet when both accept one.
 *
 * The second chain starts from the candidate that the first one sees at step `lag`: most pairs meet there. A met pair
 * stays together. All that decides is the weights of the two states, of the candidate, and its uniform number. What is
 * written is the step of the leading chain at the meeting, -1 for a pair that had not met at step `last`. */
KERNEL i64 couple_chains(const Words *words, const ChainStates *states, const PairTables *tables, const TimesTask *task) {
    ChainState *state = states->at;
    const OutFloats log_weights = task->room.log_weights;
    i64 per = tables->mixture.words_per_proposal, lag = tables->lag;
    while (state->job < task->last) {
        i64 at = state->position, step = state->step;
        if (at + per > words->size) return MORE;
        state->position = at + per;
        double log_weight = propose(words->at + at, &tables->mixture, &task->room.mixture, task->room.candidate.at);
        double log_uniform = thin(words->at[at + per - 1], log_weight, tables->log_cap);
        if (log_uniform >= 0) continue;
        log_weight = larger(log_weight, tables->log_cap);
        bool ahead = step == 0 || log_uniform < log_weight - AT(log_weights, 0);
        bool behind = step == lag || (step > lag && log_uniform < log_weight - AT(log_weights, 1));
        if (ahead) AT(log_weights, 0) = log_weight;
        if (behind) AT(log_weights, 1) = log_weight;
        bool met = ahead && behind;
        state->step += 1;
        if (met || step >= tables->last) {
            AT(task->out, state->job) = met ? step : -1;
            state->step = 0;
            state->job += 1;
        }
    }
    return DONE;
}

/* Proposals until every row has one accepted with chance w / M, or `most` are made. */
KERNEL i64 reject(const Words *words, const ChainStates *states, const RejectionTables *tables, const MixtureTask *task) {
    ChainState *state = states->at;
    const OutInts candidate = task->room.candidate;
    i64 per = tables->mixture.words_per_proposal;
    while (state->job < task->last && state->tries < task->most) {
        i64 at = state->position;
        if (at + per > words->size) return MORE;
        state->position = at + per;
        state->tries += 1;
        double log_weight = propose(words->at + at, &tables->mixture, &task->room.mixture, candidate.at);
        if (log_weight > tables->log_bound) {
            state->exceeded = 1; /* cannot be, but for the rounding of a factor: the draw stops */
            return DONE;
        }
        if (log_of(unit(words->at[at + per - 1])) < log_weight - tables->log_bound) {
            copy(candidate.at, ROW(task->out, state->job), task->out.columns);
            state->job += 1;
        }
    }
    return DONE;
}
