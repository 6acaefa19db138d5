/* What every kernel is built on: access to arguments, and draws from words.
 *
 * Whatever Python runs has one signature, kernel(words, states, tables, task); core/kernels.py says what each is and
 * what a kernel returns. What a kernel does depends on the words alone, never on where a buffer ends, and no float
 * decides anything that it cannot bound.
 */
#ifndef KEEPSUM_KERNELS_H
#define KEEPSUM_KERNELS_H

#include <math.h>

#include "core_arguments.h"

#define INNER static inline __attribute__((always_inline))
#define KERNEL __attribute__((visibility("default")))

typedef ExactState State;
typedef ExactStates States;

/* -- access ------------------------------------------------------------------------------------- */

/* An element of an array, a run of so many elements from one on, and an element of a matrix. With KEEPSUM_BOUNDS, a
 * place outside ends the process. */
#define AT(array, place) ((array).at[in_bounds((place), (array).size)])
#define SPAN(array, start, count) ((array).at + span_in_bounds((start), (count), (array).size))
#define CELL(matrix, row, column) \
    ((matrix).at[in_bounds((row), (matrix).rows) * (matrix).columns + in_bounds((column), (matrix).columns)])
#define ROW(matrix, row) ((matrix).at + in_bounds((row), (matrix).rows) * (matrix).columns)

#ifdef KEEPSUM_BOUNDS
#include <stdio.h>
#include <stdlib.h>
#define in_bounds(place, size) checked_place((place), (size), __FILE__, __LINE__)
#define span_in_bounds(start, count, size) checked_span((start), (count), (size), __FILE__, __LINE__)
static inline i64 checked_span(i64 start, i64 count, i64 size, const char *file, int line) {
    if (start < 0 || count < 0 || start > size - count) {
        fprintf(stderr, "%s:%d: %lld from %lld on of %lld\n", file, line, (long long)count, (long long)start, (long long)size);
        abort();
    }
    return start;
}
static inline i64 checked_place(i64 place, i64 size, const char *file, int line) {
    return checked_span(place, 1, size, file, line);
}
#else
#define in_bounds(place, size) (place)
#define span_in_bounds(start, count, size) (start)
#endif

/* -- numbers ------------------------------------------------------------------------------------ */

#define ULP 0x1p-53

INNER i64 least(i64 a, i64 b) { return b < a ? b : a; }
INNER i64 most(i64 a, i64 b) { return b > a ? b : a; }
INNER i64 magnitude(i64 a) { return a < 0 ? -a : a; }
/* As Python's min and max of floats: the first argument where they are equal. */
INNER double lesser(double a, double b) { return b < a ? b : a; }
INNER double larger(double a, double b) { return b > a ? b : a; }
/* 2^-bits, for bits of at most 62. */
INNER double unit_of(i64 bits) { return 1.0 / (double)((i64)1 << bits); }
/* The number of binary digits of a number that is not negative. */
INNER i64 bit_length(i64 value) { return value > 0 ? 64 - __builtin_clzll((u64)value) : 0; }
/* As Python's a // b and a % b, for b that is not 0; not for the least integer by -1, which has no quotient. */
INNER i64 floor_quotient(i64 a, i64 b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
INNER i64 floor_remainder(i64 a, i64 b) {
    i64 rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* -- draws -------------------------------------------------------------------------------------- */

/* What a comparison that was left open has been settled to, which is then used up; -1 if there is none. */
INNER i64 settled(State *state) {
    i64 value = state->answer;
    state->answer = -1;
    return value;
}

/* What a look-up gives; `tie` is negative if it is one, and else not. */
typedef struct { i64 value, tie; } Outcome;

/* What a number stands for, its last `width` bits, of at most 24, below its column (core/alias.py).
 *
 * Arithmetic alone, for no processor can foretell the outcome, and compilers make branches of comparisons: the
 * difference of digits and threshold, each below 2^24, has ones in its upper 40 bits if it is negative, and is 0 if
 * that less 1 is negative and itself is not. Loops of look-ups become vector operations. */
INNER Outcome look_up(u64 number, Words columns, i64 width) {
    const u64 ones = ((u64)1 << OUTCOME_BITS) - 1, sign = (u64)1 << (OUTCOME_BITS - 1);
    u64 digits = number & (((u64)1 << width) - 1);
    u64 entry = AT(columns, (i64)(number >> width));
    u64 away = digits - (entry >> (2 * OUTCOME_BITS));
    u64 first = away >> (2 * OUTCOME_BITS) & ones; /* all ones or zeros */
    u64 outcome = ((entry ^ (entry >> OUTCOME_BITS)) & first) ^ (entry & ones);
    return (Outcome){(i64)(outcome ^ sign) - (i64)sign, (i64)((away - 1) & ~away)};
}

/* The smallest k whose threshold exceeds the word, or TIE_DRAW, in one of several tables, which starts there. */
INNER i64 look_up_packed(u64 word, const PackedTables *tables, i64 table_start, i64 guide_start) {
    u64 bits = word >> tables->shift;
    i64 k = AT(tables->guide, guide_start + (i64)(bits >> tables->guide_shift));
    while (AT(tables->table, table_start + k) < bits) k++;
    return AT(tables->table, table_start + k) == bits ? TIE_DRAW : k;
}

/* 1 or 0 for a word, with a probability between `low` and `high`, or TIE_ACCEPT. */
INNER i64 compare(u64 word, i64 shift, double low, double high) {
    i64 count = least(ACCEPT_BITS, 64 - shift);
    double bits = (double)(word >> (64 - count));
    double scale = (double)((i64)1 << count);
    /* Of the products only the rounding is in doubt: scale is a power of two, so there is none. */
    if (bits + 1.0 <= low * scale) return 1;
    if (bits >= high * scale) return 0;
    return TIE_ACCEPT;
}

/* 1 or 0 with a probability between `low` and `high`, or MORE, or TIE_ACCEPT. */
INNER i64 accept(Words words, State *state, i64 shift, double low, double high) {
    i64 code = settled(state);
    if (code >= 0) return code;
    if (state->position >= words.size) return MORE;
    code = compare(AT(words, state->position), shift, low, high);
    if (code >= 0) state->position += 1;
    return code;
}

#endif
