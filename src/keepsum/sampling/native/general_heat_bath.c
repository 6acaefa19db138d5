/* Heat-bath moves along short lattice vectors: z becomes z + k b, with k drawn from its law given all the rest.
 *
 * One word for each move, drawn by inversion from the smallest k up: chains that share words and differ along b meet.
 * general/heat_bath.py has the laws and what floats do to them.
 */
#include "general.h"

#define NO_ROOM UNLIMITED /* a shift that no law has room for */

/* Ln of the weight of the sums that move b changes, moved by k. */
INNER double log_weight(const BathTables *bath, i64 b, const i64 *sums, i64 k) {
    double total = 0.0;
    i64 end = AT(bath->pointers, b + 1);
    for (i64 a = AT(bath->pointers, b); a < end; a++) {
        i64 region = AT(bath->regions, a), law = AT(bath->law, region);
        i64 place = AT(bath->starts, law) + magnitude(sums[region] + k * AT(bath->values, a));
        if (place >= AT(bath->starts, law + 1)) return -INFINITY;
        total += AT(bath->logs, place);
    }
    return total;
}

/* Write the weights, relative to that of the top, on one side of it, down to the faintest; how many, or NO_ROOM. */
INNER i64 go_down(
    const BathTables *bath, i64 b, const i64 *sums, i64 top, double best, i64 direction, double *middle, double *total
) {
    for (i64 n = 1;; n++) {
        double log_ratio = log_weight(bath, b, sums, top + direction * n) - best;
        if (log_ratio < FAINT) return n - 1;
        if (n > MOST_SHIFT) return NO_ROOM;
        middle[direction * n] = exp_of(log_ratio);
        *total += middle[direction * n];
    }
}

/* Draw the k to move by; NO_ROOM if its law reaches further than there is room for. */
static i64 draw_shift(double uniform, const BathTables *bath, i64 b, const i64 *sums, OutFloats weights) {
    /* The weight is log-concave in k: climb to the top, then go down both sides. */
    i64 top = 0;
    double best = log_weight(bath, b, sums, 0);
    for (i64 direction = 1; direction >= -1; direction -= 2) {
        for (;;) {
            double following = log_weight(bath, b, sums, top + direction);
            if (following <= best) break;
            top += direction;
            best = following;
        }
    }
    double *middle = SPAN(weights, 0, 2 * MOST_SHIFT + 1) + MOST_SHIFT, total = 1.0;
    middle[0] = 1.0;
    i64 low = go_down(bath, b, sums, top, best, -1, middle, &total);
    if (low == NO_ROOM) return NO_ROOM;
    i64 high = go_down(bath, b, sums, top, best, 1, middle, &total);
    if (high == NO_ROOM) return NO_ROOM;
    double goal = uniform * total, passed = middle[-low];
    i64 k = -low;
    while (passed < goal && k < high) {
        k++;
        passed += middle[k];
    }
    return k + top;
}

/* Move by k. */
INNER void shift(const BathTables *bath, i64 b, i64 *sums, i64 k) {
    if (k == 0) return;
    for (i64 a = AT(bath->pointers, b); a < AT(bath->pointers, b + 1); a++) {
        sums[AT(bath->regions, a)] += k * AT(bath->values, a);
    }
}

/* Whether two vectors are the same where move b changes them. */
INNER bool agree(const BathTables *bath, i64 b, const i64 *one, const i64 *other) {
    for (i64 a = AT(bath->pointers, b); a < AT(bath->pointers, b + 1); a++) {
        if (one[AT(bath->regions, a)] != other[AT(bath->regions, a)]) return false;
    }
    return true;
}

INNER bool equal(const i64 *one, const i64 *other, i64 count) {
    for (i64 i = 0; i < count; i++) {
        if (one[i] != other[i]) return false;
    }
    return true;
}

/* Every move once, in order; false if one has no room. */
static bool sweep(const u64 *words, const BathTables *bath, i64 *sums, OutFloats weights) {
    for (i64 b = 0; b < bath->pointers.size - 1; b++) {
        i64 k = draw_shift(unit(words[b]), bath, b, sums, weights);
        if (k == NO_ROOM) return false;
        shift(bath, b, sums, k);
    }
    return true;
}

/* The same for two chains that share their words; a move for which they agree is drawn once. */
static bool sweep_both(const u64 *words, const BathTables *bath, i64 *one, i64 *second, OutFloats weights) {
    for (i64 b = 0; b < bath->pointers.size - 1; b++) {
        double uniform = unit(words[b]);
        i64 k = draw_shift(uniform, bath, b, one, weights), other = k;
        if (!agree(bath, b, one, second)) other = draw_shift(uniform, bath, b, second, weights);
        if (k == NO_ROOM || other == NO_ROOM) return false;
        shift(bath, b, one, k);
        shift(bath, b, second, other);
    }
    return true;
}

INNER void set_to_zero(i64 *sums, i64 count) {
    for (i64 i = 0; i < count; i++) sums[i] = 0;
}

/* Chains one after the other, each from 0 for `steps` sweeps; the room is for the weights of a move. */
KERNEL i64 sweeps(const Words *words, const ChainStates *states, const SweepTables *tables, const SweepTask *task) {
    ChainState *state = states->at;
    i64 per = tables->bath.pointers.size - 1, width = task->out.columns;
    while (state->job < task->last) {
        i64 at = state->position, draw = state->job, *sums = ROW(task->out, draw);
        if (at + per > words->size) return MORE;
        state->position = at + per;
        if (state->step == 0) {
            if (tables->fresh || draw == 0) {
                set_to_zero(sums, width);
            } else {
                copy(ROW(task->out, draw - 1), sums, width);
            }
        }
        if (!sweep(words->at + at, &tables->bath, sums, task->room)) {
            state->exceeded = 1;
            return DONE;
        }
        state->step += 1;
        if (state->step >= tables->steps) {
            state->step = 0;
            state->job += 1;
        }
    }
    return DONE;
}

/* Pairs of chains, one `lag` sweeps ahead, that share their words until they are equal; -1 if not in time. */
KERNEL i64 couple_sweeps(
    const Words *words, const ChainStates *states, const SweepPairTables *tables, const SweepPairTask *task
) {
    ChainState *state = states->at;
    const OutIntMatrix pair = task->room.pair;
    const OutFloats weights = task->room.weights;
    const BathTables *bath = &tables->bath;
    i64 per = bath->pointers.size - 1, *one = ROW(pair, 0), *second = ROW(pair, 1);
    while (state->job < task->last) {
        i64 at = state->position;
        if (at + per > words->size) return MORE;
        state->position = at + per;
        if (state->step == 0) {
            set_to_zero(one, pair.columns);
            set_to_zero(second, pair.columns);
        }
        state->step += 1;
        const u64 *mine = words->at + at;
        bool together = state->step > tables->lag;
        if (!(together ? sweep_both(mine, bath, one, second, weights) : sweep(mine, bath, one, weights))) {
            state->exceeded = 1;
            return DONE;
        }
        if (together) {
            bool met = equal(one, second, pair.columns);
            if (met || state->step >= tables->last) {
                AT(task->out, state->job) = met ? state->step : -1;
                state->step = 0;
                state->job += 1;
            }
        }
    }
    return DONE;
}
