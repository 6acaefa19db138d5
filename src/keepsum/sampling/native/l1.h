/* Double geometric noise: the kernels that others are made of. */
#ifndef KEEPSUM_L1_H
#define KEEPSUM_L1_H

#include "kernels.h"
#include "l1_arguments.h"

enum {
    MOST_PAIRS = 32,                                               /* that are drawn without a look at what they are */
    LARGEST_TOTAL = 2 * MOST_PAIRS * (1 << (MANY_COLUMNS - 1)) /* of that many, none of which means "or more" */
};
_Static_assert(2 * LARGEST_TOTAL <= OR_MORE, "an outcome that means more must be seen in the total");

/* Fill a run of cells with noise; the state has their total and the cell that it is at. */
i64 fill_noise(Words words, State *state, const NoiseTable *noise, Cells cells);

/* Accept with the chance of a sum of noise relative to that of 0: 1 or 0, or MORE, or TIE_ACCEPT. */
i64 accept_sum(Words words, State *state, const SumTables *sums, i64 law, i64 total);

/* Noise in one region, given its sum. */
i64 fill_given_sum(Words words, State *state, const NoiseTable *noise, const SumTables *sums, Cells cells, i64 goal);

/* A sign and h by the first table, as 2 h or 2 h + 1, or TIE_DRAW. */
INNER i64 draw_high(u64 number, const NoiseTable *noise) {
    Outcome drawn = look_up(number, noise->high, HALF_BITS - noise->column_bits);
    if (drawn.tie < 0 || drawn.value == OR_MORE) return TIE_DRAW;
    return (i64)((u64)drawn.value << 1) ^ (drawn.value >> 63); /* 2 v, or -2 v - 1 below 0 */
}

/* The value of a draw, 2 v or 2 v + 1. */
INNER i64 signed_value(i64 draw) { return (draw >> 1) ^ -(draw & 1); }

/* `draw_pairs` with columns of so many bits, a constant wherever it is called: the loop where the time goes. */
INNER bool draw_pairs_of(
    const u64 *words, const NoiseTable *noise, i64 column_bits, i64 *restrict out, i64 count, i64 *total
) {
    Words high = noise->high;
    u64 usable = noise->usable;
    i64 sum = 0, tie = 0;
    for (i64 i = 0; i < count; i++) {
        u64 word = words[i] & usable;
        Outcome first = look_up(word >> HALF_BITS, high, HALF_BITS - column_bits);
        Outcome second = look_up(word & UINT32_MAX, high, HALF_BITS - column_bits);
        out[2 * i] = first.value;
        out[2 * i + 1] = second.value;
        sum += first.value + second.value;
        tie |= first.tie | second.tie;
    }
    *total = sum;
    return tie >= 0 && sum <= LARGEST_TOTAL;
}

/* At most MOST_PAIRS pairs of draws by a law of one table, a pair for each word, and their sum; false if one of them is a
 * tie or means "or more": then nothing has been drawn. */
INNER bool draw_pairs(const u64 *words, const NoiseTable *noise, i64 *out, i64 count, i64 *total) {
    if (noise->column_bits == FEW_COLUMNS) return draw_pairs_of(words, noise, FEW_COLUMNS, out, count, total);
    return draw_pairs_of(words, noise, MANY_COLUMNS, out, count, total);
}

#endif
