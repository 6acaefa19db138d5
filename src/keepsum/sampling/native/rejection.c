/* Blocks of overlapping totals: most regions are drawn freely, the others are solved for, and the block is accepted.
 *
 * The law is double geometric noise given that all totals are 0; l1/rejection.py says why.
 */
#include "l1.h"

/* The sums of the other regions, -numerators * free / denominator; false if one is not whole. */
static bool solve(const SolvedTables *tables, const SolvedRoom *room) {
    const IntMatrix numerators = tables->numerators;
    i64 denominator = tables->denominator;
    for (i64 i = 0; i < numerators.rows; i++) {
        i64 value = 0; /* l1/rejection.py refuses coefficients with which it could wrap */
        for (i64 j = 0; j < numerators.columns; j++) value += CELL(numerators, i, j) * AT(room->free_sums, j);
        if (value % denominator != 0) return false;
        AT(room->solved_sums, i) = -(value / denominator);
    }
    return true;
}

/* All free regions and their sums; those of one cell come first and are drawn together. */
static i64 draw_free(
    Words words, State *state, const SolvedTables *tables, const SolvedRoom *room, OutInts out, i64 base
) {
    i64 code, singles = tables->singles;
    if (state->region < singles) {
        code = fill_noise(words, state, &tables->noise, (Cells){room->single_sums, 0, singles});
        if (code != DONE) return code;
        for (i64 i = 0; i < singles; i++) {
            i64 sum = AT(room->single_sums, i);
            AT(room->free_sums, i) = sum;
            AT(out, base + AT(tables->starts, AT(tables->free, i))) = sum;
        }
        state->total = 0;
        state->region = singles;
    }
    while (state->region < tables->free.size) {
        i64 r = AT(tables->free, state->region);
        Cells cells = {out, base + AT(tables->starts, r), AT(tables->sizes, r)};
        code = fill_noise(words, state, &tables->noise, cells);
        if (code != DONE) return code;
        AT(room->free_sums, state->region) = state->total;
        state->total = 0;
        state->region += 1;
    }
    state->region = 0;
    return DONE;
}

/* Accept the solved regions of one cell, all at once: their chances are those of one cell with their lengths. */
static i64 accept_singles(Words words, State *state, const SolvedTables *tables, const SolvedRoom *room) {
    state->rest = 0;
    for (i64 i = 0; i < tables->solved.size; i++) {
        if (AT(tables->sizes, AT(tables->solved, i)) == 1) state->rest += magnitude(AT(room->solved_sums, i));
    }
    if (state->rest == 0) return 1;
    return accept_sum(words, state, &tables->sums, 0, state->rest);
}

/* Accept the solved regions of several cells, one after the other. */
static i64 accept_wide(Words words, State *state, const SolvedTables *tables, const SolvedRoom *room) {
    while (state->region < tables->solved.size) {
        i64 i = state->region;
        if (AT(tables->sizes, AT(tables->solved, i)) > 1) {
            i64 code = accept_sum(words, state, &tables->sums, AT(tables->laws, i), AT(room->solved_sums, i));
            if (code == 0) state->region = 0;
            if (code != 1) return code;
        }
        state->region += 1;
    }
    state->region = 0;
    return 1;
}

/* The cells of the solved regions, given their sums. */
static i64 fill_solved(
    Words words, State *state, const SolvedTables *tables, const SolvedRoom *room, OutInts out, i64 base
) {
    while (state->region < tables->solved.size) {
        i64 r = AT(tables->solved, state->region), sum = AT(room->solved_sums, state->region);
        Cells cells = {out, base + AT(tables->starts, r), AT(tables->sizes, r)};
        i64 code = fill_given_sum(words, state, &tables->noise, &tables->sums, cells, sum);
        if (code != DONE) return code;
        state->region += 1;
    }
    state->region = 0;
    return DONE;
}

/* Blocks one behind the other in `out`. */
KERNEL i64 fill_solved_blocks(
    const Words *words, const States *states, const SolvedTables *tables, const SolvedTask *task
) {
    State *state = states->at;
    const SolvedRoom *room = &task->room;
    while (task->first + state->job < task->last && (state->tries < task->most || state->phase > DRAW_FREE)) {
        i64 code, base = (task->first + state->job) * tables->width;
        if (state->phase == DRAW_FREE) {
            code = draw_free(*words, state, tables, room, task->out, base);
            if (code != DONE) return code;
            state->tries += 1;
            if (!solve(tables, room)) continue;
            state->phase = ACCEPT_SINGLES;
        }
        if (state->phase == ACCEPT_SINGLES) {
            code = accept_singles(*words, state, tables, room);
            if (code < 0) return code;
            state->phase = code == 1 ? ACCEPT_WIDE : DRAW_FREE;
            if (code == 0) continue;
        }
        if (state->phase == ACCEPT_WIDE) {
            code = accept_wide(*words, state, tables, room);
            if (code < 0) return code;
            state->phase = code == 1 ? FILL_SOLVED : DRAW_FREE;
            if (code == 0) continue;
        }
        code = fill_solved(*words, state, tables, room, task->out, base);
        if (code != DONE) return code;
        state->phase = DRAW_FREE;
        state->job += 1;
    }
    return DONE;
}
