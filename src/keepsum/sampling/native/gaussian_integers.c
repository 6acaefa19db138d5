/* Gaussian noise coordinate by coordinate (Klein; Gentry, Peikert and Vaikuntanathan), and its acceptance.
 *
 * Each coordinate is a discrete Gaussian on the integers whose centre depends on those before it (gaussian/integers.py
 * has its proposals). The product of their laws is off by the factors rho_s(Z - c), which are at most rho_s(Z), so
 * accepting a whole block with the product of rho_s(Z - c) / rho_s(Z) makes the law exact (Brakerski et al. 2013, Lemma
 * 2.3). By Poisson summation a factor differs from 1 by less than 4 exp(-2 pi^2 s^2), far below what a word can tell for
 * s above 1.7.
 */
#include "gaussian.h"
#include "real.h"

/* The narrowest table that is wider by the gap. */
INNER i64 pick(const GaussianTables *tables, double variance, i64 guess) {
    while (AT(tables->largest, guess) < variance) guess++;
    while (guess > 0 && AT(tables->largest, guess - 1) >= variance) guess--;
    return guess;
}

/* The k-th of 0, -1, 1, -2, 2, ... */
INNER i64 signed_of(i64 k) {
    i64 x = (k + 1) >> 1;
    return k & 1 ? -x : x;
}

/* x times 2^bits. */
INNER i64 shifted(i64 x, i64 bits) { return (i64)((u64)x << bits); }

/* One draw, step by step: it can stop anywhere and go on. */
static i64 draw_by_steps(
    Words words, State *state, const GaussianTables *tables, double variance, double phi, double offset
) {
    i64 table = state->table, low_bits = state->low_bits;
    double wide = 0.5 / (AT(tables->square, table) * power_of_two(2 * low_bits));
    for (;;) {
        if (state->step == PROPOSE) {
            i64 k = settled(state);
            if (k < 0) {
                if (state->position >= words.size) return MORE;
                i64 start = AT(tables->table_start, table), guide = AT(tables->guide_start, table);
                k = look_up_packed(AT(words, state->position), &tables->packed, start, guide);
                if (k < 0) return k;
                state->position += 1;
            }
            state->high = shifted(signed_of(k), low_bits);
            state->low = 0;
            state->step = low_bits > 0 ? ADD_LOW : ACCEPT;
        }
        if (state->step == ADD_LOW) {
            if (state->position >= words.size) return MORE;
            state->low = (i64)(AT(words, state->position) >> (64 - low_bits)) - shifted(1, low_bits - 1);
            state->position += 1;
            state->step = ACCEPT;
        }
        double high = (double)state->high, distance = high + ((double)state->low - phi);
        double narrow_term = distance * distance * (0.5 / variance), wide_term = high * high * wide;
        double chance = exp_of(-(narrow_term - wide_term + offset));
        double error = (narrow_term + wide_term + offset + 4.0) * ERROR;
        double least_chance = chance * (1.0 - error), most_chance = larger(chance, TINY) * (1.0 + error);
        i64 code = accept(words, state, tables->packed.shift, least_chance, most_chance);
        if (code < 0) return code;
        state->step = PROPOSE;
        if (code == 1) {
            state->value = state->high + state->low;
            return DONE;
        }
    }
}

/* The same for a wide law: a proposal is 2^b h + l, l uniform. */
static i64 draw_wide(Words words, State *state, const GaussianTables *tables, double variance, double phi) {
    i64 low_bits = 0;
    double scale = 1.0;
    while (variance * scale > TOP) {
        scale *= 0.25;
        low_bits += 1;
    }
    state->table = pick(tables, variance * scale, state->table);
    state->low_bits = low_bits;
    double reach = FARTHEST_CENTRE + power_of_two(low_bits - 1);
    double offset = reach * reach / (2.0 * (AT(tables->square, state->table) / scale - variance));
    return draw_by_steps(words, state, tables, variance, phi, offset);
}

i64 draw_integer(Words words, State *state, const GaussianTables *tables, double variance, double phi) {
    if (variance > TOP) return draw_wide(words, state, tables, variance, phi);
    state->table = pick(tables, variance, state->table);
    state->low_bits = 0;
    double offset = phi * phi / (2.0 * (AT(tables->square, state->table) - variance));
    return draw_by_steps(words, state, tables, variance, phi, offset);
}

/* log(rho_s(Z - phi) / (sqrt(2 pi) s)), and the same at phi = 0. */
typedef struct { double there, centred; } Factors;

/* For s^2 from 0.16 on, by Poisson summation: log(1 + 2 sum over k > 0 of q^(k^2) cos(2 pi k phi)), q = exp(-2 pi^2 s^2).
 *
 * q is at most 0.0425 and errs by a share of 4 u |log q| + 3 u, so by less than u. The first cosine errs by 2^-48, the
 * others, polynomials of it, by at most nine times that. So the sum errs by less than 0.05 * 2^-48 + 4 u < 10^-15, the
 * terms left out are below 10^-21, and the logarithm errs by four times as much: far less than THETA_ERROR. */
INNER Factors wide_factors(double variance, double phi) {
    const double PI = 0x1.921fb54442d18p+1;
    double q = exp_of(-2.0 * PI * PI * variance), square = q * q, fourth = square * square, ninth = fourth * fourth * q;
    double once = cos_of_turns(phi), twice = 2.0 * once * once - 1.0, thrice = once * (2.0 * twice - 1.0);
    double there = q * once + (fourth * twice + ninth * thrice), centred = q + (fourth + ninth);
    return (Factors){log1p_of(2.0 * there), log1p_of(2.0 * centred)};
}

/* For s^2 below 0.16 term by term, as shares of that of 0: with h = 1 / 2 s^2 the one of k, which phi is on the side of,
 * is exp((2 k |phi| - k^2) h), and that of -k is exp(-4 k |phi| h) times as large.
 *
 * The exponents err by a share of 4 u, and the terms, made of at most 3 exponentials and 6 products, by less than
 * 25 u + 4 u times their own exponents, so by less than 40 u in all. The terms of 4 and -4 are below 10^-15 of the sum,
 * those behind them negligible. A logarithm errs by a share of 2^-50, so by less than 20 * 2^-50 down to s^2 = 10^-17,
 * and phi^2 h by 3 u of itself: less than THETA_ERROR where that is at most 200. Where it is larger, no word but 0 comes
 * near the chance of the block, e^-200 or less, and none of its digits tells. */
INNER Factors narrow_factors(double variance, double phi) {
    const double PI = 0x1.921fb54442d18p+1;
    double h = 0.5 / variance, away = phi < 0.0 ? -phi : phi, root = root_of(2.0 * PI * variance);
    double e = exp_of(-h), near = exp_of((2.0 * away - 1.0) * h), far = exp_of(-4.0 * away * h);
    double e2 = e * e, e4 = e2 * e2, e9 = e4 * e4 * e, near2 = near * near, far2 = far * far;
    double first = near * (1.0 + far), second = near2 * e2 * (1.0 + far2);
    double third = near2 * near * (e4 * e2) * (1.0 + far2 * far);
    double there = 1.0 + (first + (second + third)), centred = 1.0 + 2.0 * (e + (e4 + e9));
    return (Factors){log_of(there / root) - phi * phi * h, log_of(centred / root)};
}

void count_theta(State *state, double variance, double phi) {
    if (variance < WIDE_VARIANCE) {
        Factors factors = variance >= 0.16 ? wide_factors(variance, phi) : narrow_factors(variance, phi);
        state->log_theta += factors.there;
        state->log_theta_centred += factors.centred;
    }
}

i64 finish_block(Words words, State *state, const Acceptance *by, OutFloats log_weights, i64 job) {
    i64 code = 1;
    if (by->deciding) {
        double exponent = state->log_theta_centred - state->log_theta + by->mismatch;
        double each = state->log_theta_centred > 0.0 ? THETA_ERROR : WIDE_LOSS;
        double error = (double)by->steps * each + by->error + 0x1p-50;
        double chance = exp_of(-exponent);
        code = accept(words, state, by->shift, chance * (1.0 - error), lesser(1.0, chance * (1.0 + error)));
        if (code < 0) return code;
    } else {
        AT(log_weights, job) = state->log_theta - by->mismatch;
    }
    state->log_theta = state->log_theta_centred = 0.0;
    state->phase = SAMPLE;
    state->job += code;
    return DONE;
}

/* -- regions with their sums given -------------------------------------------------------------- */

/* How a cell is proposed: 2^low_bits h + l, in two words or three, one of them for the acceptance. */
typedef struct {
    i64 low_bits, half, words;
    double scale, reach;
} Width;

/* As many uniform bits as `draw_wide` takes. */
INNER Width width_of(double conditional) {
    Width width = {0, 1, 2, 1.0, 0.0};
    while (conditional * width.scale > TOP) {
        width.scale *= 0.25;
        width.low_bits += 1;
    }
    if (width.low_bits > 0) {
        width.half = (i64)1 << (width.low_bits - 1);
        width.words = 3;
        width.reach = FARTHEST_CENTRE + power_of_two(width.low_bits - 1);
    }
    return width;
}

/* As many cells of a region as the words at hand and the absence of ties allow: the loop where the time goes. */
static void fill_quickly(
    Words words, State *state, const GaussianTables *tables, double variance, i64 goal, Cells cells
) {
    i64 position = state->position, cell = state->cell, total = state->total, which = state->table;
    Width width = width_of(0.0);
    bool stopped = false;
    while (cell < cells.size - 1 && !stopped) {
        double remaining = (double)(cells.size - cell);
        i64 rest = goal - total, nearest = floor_of((double)rest / remaining + 0.5);
        double phi = (double)(rest - nearest * (cells.size - cell)) / remaining;
        double conditional = variance * (remaining - 1.0) / remaining;
        if (conditional * width.scale > TOP || (width.low_bits > 0 && conditional * width.scale * 4.0 <= TOP)) {
            width = width_of(conditional);
        }
        which = pick(tables, conditional * width.scale, which);
        double square = AT(tables->square, which) / width.scale, farthest = width.low_bits > 0 ? width.reach : phi;
        double offset = farthest * farthest / (2.0 * (square - conditional));
        double narrow = 0.5 / conditional, wide = 0.5 / square;
        i64 start = AT(tables->table_start, which), guide = AT(tables->guide_start, which);
        stopped = true;
        while (position + width.words <= words.size) {
            i64 k = look_up_packed(AT(words, position), &tables->packed, start, guide);
            if (k < 0) break;
            i64 x = shifted(signed_of(k), width.low_bits);
            double wide_term = (double)x * (double)x * wide;
            if (width.low_bits > 0) x += (i64)(AT(words, position + 1) >> (64 - width.low_bits)) - width.half;
            double distance = (double)x - phi, narrow_term = distance * distance * narrow;
            double loss = narrow_term - wide_term + offset;
            double error = (narrow_term + wide_term + offset + 4.0) * ERROR;
            double coin = (double)(AT(words, position + width.words - 1) >> (64 - ACCEPT_BITS)) + 1.0;
            bool accepted = coin <= (1.0 - loss - error) * SCALE; /* exp(-x) >= 1 - x: mostly enough */
            if (!accepted) {
                double chance = larger(exp_of(-loss), TINY) * SCALE;
                accepted = coin <= chance * (1.0 - error);
                /* Left open: the words are still there for others to settle. */
                if (!accepted && coin - 1.0 < chance * (1.0 + error)) break;
            }
            position += width.words;
            if (accepted) {
                count_theta(state, conditional, phi);
                AT(cells.out, cells.start + cell) = nearest + x;
                total += nearest + x;
                cell += 1;
                stopped = false;
                break;
            }
        }
    }
    state->position = position;
    state->cell = cell;
    state->total = total;
    state->table = which;
}

i64 fill_gaussian_sum(
    Words words, State *state, const GaussianTables *tables, double variance, i64 goal, Cells cells
) {
    while (state->cell < cells.size - 1) {
        if (state->step == PROPOSE && state->answer < 0 && tables->packed.shift == 0) {
            fill_quickly(words, state, tables, variance, goal, cells);
            if (state->cell == cells.size - 1) break;
        }
        i64 remaining = cells.size - state->cell, rest = goal - state->total;
        i64 nearest = floor_of((double)rest / (double)remaining + 0.5), away = rest - nearest * remaining;
        double phi = (double)away / (double)remaining;
        double conditional = variance * ((double)remaining - 1.0) / (double)remaining;
        i64 code = draw_integer(words, state, tables, conditional, phi);
        if (code != DONE) {
            state->centre_numerator = away;
            state->centre_denominator = remaining;
            state->share_numerator = remaining - 1;
            state->share_denominator = remaining;
            return code;
        }
        count_theta(state, conditional, phi);
        i64 value = nearest + state->value;
        AT(cells.out, cells.start + state->cell) = value;
        state->total += value;
        state->cell += 1;
    }
    AT(cells.out, cells.start + cells.size - 1) = goal - state->total;
    state->cell = state->total = 0;
    return DONE;
}

/* Independent cells. */
KERNEL i64 fill_gaussian_cells(const Words *words, const States *states, const FreeTables *tables, const Task *task) {
    State *state = states->at;
    while (task->first + state->cell < task->last) {
        i64 cell = task->first + state->cell;
        double variance = AT(tables->variances, cell / tables->width);
        i64 code = draw_integer(*words, state, &tables->gaussian, variance, 0.0);
        if (code != DONE) {
            state->centre_numerator = 0;
            state->centre_denominator = state->share_numerator = state->share_denominator = 1;
            return code;
        }
        AT(task->out, cell) = state->value;
        state->cell += 1;
    }
    return DONE;
}

/* Regions with given sums: job t is region t % R of row t / R. */
KERNEL i64 fill_gaussian_sums(
    const Words *words, const States *states, const SumsTables *tables, const WeightsTask *task
) {
    State *state = states->at;
    i64 count = tables->sizes.size;
    while (task->first + state->job < task->last) {
        i64 code, job = task->first + state->job, region = job % count, row = job / count;
        i64 size = AT(tables->sizes, region);
        if (state->phase == SAMPLE) {
            Cells cells = {task->out, row * tables->width + AT(tables->starts, region), size};
            double variance = AT(tables->variances, row);
            i64 goal = AT(tables->goals, region);
            code = fill_gaussian_sum(*words, state, &tables->gaussian, variance, goal, cells);
            if (code != DONE) return code;
            state->tries += 1;
            state->phase = DECIDE;
        }
        Acceptance by = {tables->gaussian.packed.shift, tables->deciding, size, 0.0, 0.0};
        code = finish_block(*words, state, &by, task->room, job);
        if (code != DONE) return code;
    }
    return DONE;
}
