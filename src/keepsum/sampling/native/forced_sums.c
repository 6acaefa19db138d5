/* Double geometric noise in the cells of a region, given their sum: exact, by drawing a part of them freely.
 *
 * The part is accepted with the chance that the rest has what is left of the sum; the rest is the same question. The
 * proof is in docs/sums.md, the tables of chances in l1/sum_laws.py.
 */
#include "l1.h"

enum { NEW, DRAWING, ACCEPTING };  /* the stages of a region */
enum { QUICK = 2 * MOST_PAIRS };   /* cells of a part that is drawn without keeping a state */

typedef struct { double low, high; } Bounds;

/* The rest of so many cells has 2^level, the largest power of two below. */
INNER i64 rest_level(i64 count) { return bit_length(count - 1) - 1; }

/* How many words a part of so many cells takes, with that which accepts it. */
INNER i64 words_of(i64 count) { return (count + 1) / 2 + 1; }

/* Bounds on the chance of a sum of noise relative to that of 0. */
INNER Bounds chances(const SumTables *sums, i64 law, i64 total) {
    i64 away = magnitude(total), bits = AT(sums->stride_bits, law);
    double error = AT(sums->errors, law);
    i64 place = AT(sums->starts, law) + (away >> bits), last = AT(sums->starts, law + 1) - 1;
    if (place >= last) return (Bounds){0.0, AT(sums->values, last) + error};
    const double *values = SPAN(sums->values, place, 2);
    double share = (double)(away & ((INT64_C(1) << bits) - 1)) * AT(sums->scales, law);
    double value = values[0] + share * (values[1] - values[0]);
    return (Bounds){value - error, value + error};
}

i64 accept_sum(Words words, State *state, const SumTables *sums, i64 law, i64 total) {
    Bounds chance = chances(sums, law, total);
    return accept(words, state, sums->shift, chance.low, chance.high);
}

/* Draw and accept a small part with the words at hand: 1 or 0, and its sum; or MORE, if there are too few words or a
 * comparison is left open: then nothing has happened, and `fill_noise` and `accept_sum` do the same step by step. */
INNER i64 try_part(
    const u64 *words, const NoiseTable *noise, const SumTables *sums, i64 level, i64 *out, i64 size, i64 rest, i64 *total
) {
    i64 pairs = size / 2;
    if (!draw_pairs(words, noise, out, pairs, total)) return MORE;
    if (size > 2 * pairs) {
        i64 draw = draw_high((words[pairs] & noise->usable) >> HALF_BITS, noise);
        if (draw < 0) return MORE;
        out[2 * pairs] = signed_value(draw);
        *total += out[2 * pairs];
    }
    Bounds chance = chances(sums, level, rest - *total);
    return compare(words[words_of(size) - 1], sums->shift, chance.low, chance.high);
}

/* Parts of a region one after the other, as far as the words at hand and the absence of ties allow. */
INNER void fill_quickly(Words words, State *state, const NoiseTable *noise, const SumTables *sums, Cells cells) {
    i64 position = state->position, filled = state->filled, rest = state->rest, total;
    while (filled < cells.size - 1) {
        i64 level = rest_level(cells.size - filled);
        i64 part = cells.size - filled - (INT64_C(1) << level);
        if (part > QUICK || position + words_of(part) > words.size) break;
        i64 *out = SPAN(cells.out, cells.start + filled, part);
        i64 code = try_part(SPAN(words, position, words_of(part)), noise, sums, level, out, part, rest, &total);
        if (code < 0) break;
        position += words_of(part);
        if (code == 1) {
            rest -= total;
            filled += part;
        }
    }
    state->position = position;
    state->filled = filled;
    state->rest = rest;
}

i64 fill_given_sum(Words words, State *state, const NoiseTable *noise, const SumTables *sums, Cells cells, i64 goal) {
    if (state->stage == NEW) {
        state->rest = goal;
        state->stage = DRAWING;
    }
    while (state->filled < cells.size - 1) {
        if (state->stage == DRAWING && state->cell == 0 && state->answer < 0 && noise->low_bits == 0) {
            fill_quickly(words, state, noise, sums, cells);
            if (state->filled == cells.size - 1) break;
        }
        i64 level = rest_level(cells.size - state->filled);
        i64 part = cells.size - state->filled - (INT64_C(1) << level);
        if (state->stage == DRAWING) {
            i64 code = fill_noise(words, state, noise, (Cells){cells.out, cells.start + state->filled, part});
            if (code != DONE) return code;
            state->stage = ACCEPTING;
        }
        i64 code = accept_sum(words, state, sums, level, state->rest - state->total);
        if (code < 0) return code;
        if (code == 1) {
            state->rest -= state->total;
            state->filled += part;
        }
        state->total = 0;
        state->stage = DRAWING;
    }
    AT(cells.out, cells.start + cells.size - 1) = state->rest;
    state->filled = 0;
    state->stage = NEW;
    return DONE;
}

/* Noise in regions, given the sum of each: job t is region t % R of draw t / R. */
KERNEL i64 fill_regions(const Words *words, const States *states, const RegionTables *tables, const Task *task) {
    State *state = states->at;
    i64 count = tables->sizes.size;
    while (task->first + state->job < task->last) {
        i64 job = task->first + state->job, r = job % count;
        Cells cells = {task->out, job / count * tables->width + AT(tables->starts, r), AT(tables->sizes, r)};
        i64 code = fill_given_sum(*words, state, &tables->noise, &tables->sums, cells, AT(tables->goals, r));
        if (code != DONE) return code;
        state->job += 1;
    }
    return DONE;
}

/* Accept the sum that is left to the rest of a region, or not: the answer stays in `total`. */
KERNEL i64 accept_part(const Words *words, const States *states, const SumTables *sums, const i64 *law) {
    State *state = states->at;
    i64 code = accept_sum(*words, state, sums, *law, state->rest);
    if (code < 0) return code;
    state->total = code;
    return DONE;
}
