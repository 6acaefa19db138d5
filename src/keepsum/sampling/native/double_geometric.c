/* Double geometric noise in cells under no total: P(z) proportional to e^(-eps |z|), exactly.
 *
 * Half a word and one look into an alias table are a draw; where eps is small, a word and two looks. What the tables
 * hold, and why the draws are exact, is in l1/double_geometric.py and core/alias.py.
 */
#include "l1.h"

/* What a word comes to: two draws as one number, or one draw; or TIE_DRAW, for outcomes "or more" as well.
 *
 * Without low bits, a draw that is not paired is the first of two all the same; the second is not looked at. */
INNER i64 look_up_word(u64 word, const NoiseTable *noise, bool paired) {
    word &= noise->usable;
    i64 first = draw_high(word >> HALF_BITS, noise);
    if (first < 0) return first;
    u64 lower = word & UINT32_MAX;
    if (noise->low_bits == 0) {
        i64 second = paired ? draw_high(lower, noise) : 0;
        return second < 0 ? second : (first << PAIR_BITS) + second;
    }
    Outcome rest = look_up(lower >> (HALF_BITS - LOW_DIGITS - noise->low_bits), noise->low, LOW_DIGITS);
    if (rest.tie < 0) return TIE_DRAW;
    return (first >> 1 << (noise->low_bits + 1)) + (rest.value << 1) + (first & 1);
}

/* The first draw of a word and, if they are paired, the second; or MORE or TIE_DRAW first. */
static i64 draw_word(Words words, State *state, const NoiseTable *noise, bool paired, i64 *second) {
    i64 value = settled(state);
    *second = 0;
    if (value < 0) {
        if (state->position >= words.size) return MORE;
        value = look_up_word(AT(words, state->position), noise, paired);
        if (value < 0) return value;
        state->position += 1;
    }
    if (noise->low_bits > 0) return value;
    *second = value & ((INT64_C(1) << PAIR_BITS) - 1);
    return value >> PAIR_BITS;
}

/* Write a draw into the next cell. */
static void put(State *state, Cells cells, i64 draw) {
    i64 value = signed_value(draw);
    AT(cells.out, cells.start + state->cell) = value;
    state->total += value;
    state->cell += 1;
}

/* Pairs of cells by the words at hand, as long as none of MOST_PAIRS is a tie. */
static void fill_pairs(Words words, State *state, const NoiseTable *noise, Cells cells) {
    i64 position = state->position, cell = state->cell, total;
    i64 count = least(words.size - position, (cells.size - cell) / 2);
    while (count > 0) {
        i64 some = least(count, MOST_PAIRS);
        i64 *out = SPAN(cells.out, cells.start + cell, 2 * some);
        if (!draw_pairs(SPAN(words, position, some), noise, out, some, &total)) break;
        position += some;
        cell += 2 * some;
        state->total += total;
        count -= some;
    }
    state->position = position;
    state->cell = cell;
}

/* Cell by cell, as many as the words at hand and the absence of ties allow, for a law of two tables. */
static void fill_singly(Words words, State *state, const NoiseTable *noise, Cells cells) {
    i64 position = state->position, cell = state->cell, total = 0;
    i64 count = least(words.size - position, cells.size - cell);
    const u64 *word = SPAN(words, position, most(count, 0));
    i64 *out = SPAN(cells.out, cells.start + cell, most(count, 0));
    for (i64 i = 0; i < count; i++) {
        i64 draw = look_up_word(word[i], noise, false);
        if (draw < 0) {
            count = i;
            break;
        }
        out[i] = signed_value(draw);
        total += out[i];
    }
    state->position = position + count;
    state->cell = cell + count;
    state->total += total;
}

i64 fill_noise(Words words, State *state, const NoiseTable *noise, Cells cells) {
    while (state->cell < cells.size) {
        if (state->answer < 0) {
            if (noise->low_bits == 0) {
                fill_pairs(words, state, noise, cells);
            } else {
                fill_singly(words, state, noise, cells);
            }
            if (state->cell == cells.size) break;
        }
        bool paired = noise->low_bits == 0 && state->cell + 1 < cells.size;
        i64 second, first = draw_word(words, state, noise, paired, &second);
        if (first < 0) return first;
        put(state, cells, first);
        if (paired) put(state, cells, second);
    }
    state->cell = 0;
    return DONE;
}

/* `fill_noise` as Python runs it. */
KERNEL i64 fill_cells(const Words *words, const States *states, const NoiseTable *noise, const Cells *cells) {
    return fill_noise(*words, states->at, noise, *cells);
}
