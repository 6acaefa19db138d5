/* The loops of Algorithms 1 and 2 of the paper "Integer Subspace Differential Privacy": a Metropolis chain on a lattice
 * with pre-jumps of double geometric coordinates, and two such chains coupled.
 *
 * research/mcmc/metropolis.py and coupling.py say what each draws. Where a pre-jump's parameter is so near 1 that cells
 * leave 64 bits, they wrap, as NumPy's do.
 */
#include "mcmc_arguments.h"
#include "real.h"

INNER i64 plus(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
INNER i64 minus(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
INNER i64 times(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
INNER i64 size_of(i64 a) { return a < 0 ? minus(0, a) : a; }

/* A float in [0, 1) from the upper 53 bits of a word. */
INNER double uniform(u64 word) { return (double)(word >> 11) * 0x1p-53; }

/* |v| of a double geometric v by inversion: the largest k with `tail` < P(|v| >= k) = a^k / half. */
INNER i64 jump_size(double tail, double log_a, double half) { return (i64)(log_of(tail * half) / log_a); }

/* A uniform number strictly between 0 and 1 from all but the lowest bit of a word. */
INNER double tail_of(u64 word) {
    u64 guide = (word >> 1) & ((1 << GUIDE_BITS) - 1);
    double rest = ((double)(word >> CHUNK_BITS) + 0.5) * 0x1p-52;
    _Static_assert(CHUNK_BITS == 12, "2^-52 is 2^(CHUNK_BITS - 64)");
    return ((double)guide + rest) * (1.0 / (1 << GUIDE_BITS));
}

/* Add a multiple of column j to z; the change of |z| in l1, or of its square. */
INNER i64 move(OutInts z, const Columns *columns, i64 j, i64 by, i64 kind) {
    i64 change = 0, start = AT(columns->starts, j), count = AT(columns->starts, j + 1) - start;
    const i64 *cells = SPAN(columns->cells, start, count), *entries = SPAN(columns->entries, start, count);
    for (i64 p = 0; p < count; p++) {
        i64 before = AT(z, cells[p]), after = plus(before, times(by, entries[p]));
        AT(z, cells[p]) = after;
        i64 grown = kind == L1 ? minus(size_of(after), size_of(before)) : minus(times(after, after), times(before, before));
        change = plus(change, grown);
    }
    return change;
}

/* Add a multiple of column j to z. */
INNER void add(OutInts z, const Columns *columns, i64 j, i64 by) {
    i64 start = AT(columns->starts, j), count = AT(columns->starts, j + 1) - start;
    const i64 *cells = SPAN(columns->cells, start, count), *entries = SPAN(columns->entries, start, count);
    for (i64 p = 0; p < count; p++) AT(z, cells[p]) = plus(AT(z, cells[p]), times(by, entries[p]));
}

/* |z| in l1. */
INNER i64 l1_norm(OutInts z) {
    i64 norm = 0;
    for (i64 i = 0; i < z.size; i++) norm = plus(norm, size_of(z.at[i]));
    return norm;
}

/* The square of |z| in l2. */
INNER i64 square_norm(OutInts z) {
    i64 norm = 0;
    for (i64 i = 0; i < z.size; i++) norm = plus(norm, times(z.at[i], z.at[i]));
    return norm;
}

INNER void copy(OutInts source, i64 *target) {
    for (i64 i = 0; i < source.size; i++) target[i] = source.at[i];
}

/* q(z*) / q(z) where the norm (or its square) changes by `change`; anything from 1 on means yes. */
INNER double ratio(const Target *target, i64 norm, i64 change) {
    if (change <= 0) return 1.0;
    if (target->kind == L2) {
        double before = root_of((double)norm), after = root_of((double)plus(norm, change));
        return exp_of(-target->rate * (after - before));
    }
    return exp_of(-target->rate * (double)change);
}

/* z ~ g: one pre-jump away from z. `coordinates` gains the pre-jump. */
KERNEL i64 start_from_g(const Words *words, const WalkStates *states, const ProblemTables *tables, const Start *start) {
    WalkState *state = states->at;
    const PreJumps *jumps = &tables->jumps;
    while (state->coordinate < start->coordinates.size) {
        if (state->position >= words->size) return MORE;
        i64 j = state->coordinate, law = AT(jumps->law, j);
        u64 word = AT(*words, state->position);
        i64 by = jump_size(tail_of(word), AT(jumps->log_a, law), AT(jumps->half, law));
        if (word & 1) by = -by;
        state->position += 1;
        AT(start->coordinates, j) = plus(AT(start->coordinates, j), by);
        state->norm = plus(state->norm, move(start->z, &tables->columns, j, by, tables->target.kind));
        state->coordinate += 1;
    }
    state->coordinate = 0;
    return DONE;
}

/* The pre-jumps of a step that are not 0: how many, and the words that they take. */
INNER i64 propose_jumps(const u64 *words, i64 *position, const PreJumps *jumps, i64 *moved, i64 *moves) {
    const i64 *laws = jumps->law.at, m = jumps->law.size;
    const int16_t *quick = jumps->quick.at;
    i64 count = 0, at = *position, chunks = 0, width = jumps->quick.columns;
    u64 word = 0;
    for (i64 j = 0; j < m; j++) {
        if (chunks == 0) {
            word = words[at++];
            chunks = CHUNKS;
        }
        u64 chunk = word & ((1 << CHUNK_BITS) - 1);
        i64 by = quick[laws[j] * width + (i64)chunk];
        if (by == OPEN) {
            double rest = ((double)(words[at++] >> 11) + 0.5) * 0x1p-53;
            double tail = ((double)(chunk >> 1) + rest) * (1.0 / (1 << GUIDE_BITS));
            by = jump_size(tail, AT(jumps->log_a, laws[j]), AT(jumps->half, laws[j])) * (1 - 2 * (i64)(chunk & 1));
        }
        /* Which coordinates are 0 cannot be foreseen: each is written down, and the count tells whether it stays. */
        moved[count] = j;
        moves[count] = by;
        count += by != 0;
        word >>= CHUNK_BITS;
        chunks--;
    }
    *position = at;
    return count;
}

/* Algorithm 1 up to step `last`; every `thin`-th state after the burn-in becomes a row of `out`.
 *
 * A step begins only when the words at hand would do for the longest step: one word for five coordinates, one for each
 * of these whose first bits leave it open, one for the acceptance. Words left over begin the next buffer. Where a
 * proposal touches most cells anyway (`whole`), the norm is summed up anew and a refused proposal is written over; else
 * the change of the norm is summed over the touched cells, and the refused proposal taken off. */
KERNEL i64 walk(const Words *words, const WalkStates *states, const ProblemTables *tables, const Walk *task) {
    WalkState *state = states->at;
    const Columns *columns = &tables->columns;
    const Target *target = &tables->target;
    OutInts z = task->z;
    i64 m = tables->jumps.law.size, kind = target->kind, follow = task->coordinates.size > 0;
    i64 *moved = SPAN(task->moved, 0, m), *moves = SPAN(task->moves, 0, m), *before = SPAN(task->before, 0, z.size);
    i64 longest = (m + CHUNKS - 1) / CHUNKS + m + 1, tabled = kind == L2 ? 0 : target->chances.size;
    copy(z, before);
    i64 position = state->position, step = state->step, norm = state->norm;
    i64 accepted = state->accepted, updates = state->updates, code = DONE;
    i64 kept = step > task->burn_in ? (step - task->burn_in) / task->thin : 0;
    i64 next_kept = task->burn_in + (kept + 1) * task->thin;
    while (step < task->last) {
        if (words->size - position < longest) {
            code = MORE;
            break;
        }
        i64 count = propose_jumps(words->at, &position, &tables->jumps, moved, moves), change = 0;
        if (task->whole) {
            for (i64 i = 0; i < count; i++) {
                updates += AT(columns->starts, moved[i] + 1) - AT(columns->starts, moved[i]);
                add(z, columns, moved[i], moves[i]);
            }
            change = minus(kind == L1 ? l1_norm(z) : square_norm(z), norm);
        } else {
            for (i64 i = 0; i < count; i++) {
                updates += AT(columns->starts, moved[i] + 1) - AT(columns->starts, moved[i]);
                change = plus(change, move(z, columns, moved[i], moves[i], kind));
            }
        }
        bool yes = change <= 0;
        if (!yes) {
            double chance = change < tabled ? AT(target->chances, change) : ratio(target, norm, change);
            yes = uniform(words->at[position++]) < chance;
        }
        if (yes) {
            norm = plus(norm, change);
            accepted += step >= task->burn_in;
            for (i64 i = 0; follow && i < count; i++) {
                AT(task->coordinates, moved[i]) = plus(AT(task->coordinates, moved[i]), moves[i]);
            }
            if (task->whole) copy(z, before);
        } else if (task->whole) {
            copy((OutInts){before, z.size}, z.at);
        } else {
            for (i64 i = 0; i < count; i++) add(z, columns, moved[i], minus(0, moves[i]));
        }
        step += 1;
        if (step == next_kept) {
            if (kept < task->out.rows) copy(z, ROW(task->out, kept));
            kept += 1;
            next_kept += task->thin;
        }
    }
    state->position = position;
    state->step = step;
    state->norm = norm;
    state->accepted = accepted;
    state->updates = updates;
    return code;
}

/* Add every column by its multiple; the change of the norm. */
static i64 move_all(OutInts z, const Columns *columns, OutInts moves, i64 kind) {
    i64 change = 0;
    for (i64 j = 0; j < moves.size; j++) {
        if (AT(moves, j) != 0) change = plus(change, move(z, columns, j, AT(moves, j), kind));
    }
    return change;
}

/* Take every multiple away again. */
static void undo_all(OutInts z, const Columns *columns, OutInts moves) {
    for (i64 j = 0; j < moves.size; j++) {
        if (AT(moves, j) != 0) add(z, columns, j, minus(0, AT(moves, j)));
    }
}

/* Propose for both chains, from the coordinate at hand on; DONE or MORE.
 *
 * Coordinate by coordinate the second chain takes the first one's proposal v* with chance
 * min(1, eta(v* - w) / eta(v* - v)); otherwise (`residual`) it draws proposals w* of its own until the first chain fails
 * to take one with chance min(1, eta(w* - v) / eta(w* - w)). */
static i64 propose_both(const Words *words, WalkState *state, const PreJumps *jumps, const Pair *pair) {
    i64 residual = state->residual, position = state->position, j = state->coordinate, code = DONE;
    while (j < pair->gaps.size) {
        if (words->size - position < 2) {
            code = MORE;
            break;
        }
        i64 gap = AT(pair->gaps, j), law = AT(jumps->law, j), excess;
        u64 word = words->at[position++];
        i64 by = CELL(jumps->quick, law, (i64)(word & ((1 << CHUNK_BITS) - 1)));
        if (by == OPEN) {
            by = jump_size(tail_of(word), AT(jumps->log_a, law), AT(jumps->half, law)) * (1 - 2 * (i64)(word & 1));
        }
        if (residual == 0) {
            AT(pair->x_moves, j) = by;
            AT(pair->y_moves, j) = minus(by, gap);
            excess = minus(size_of(minus(by, gap)), size_of(by));
        } else {
            AT(pair->y_moves, j) = by;
            excess = minus(size_of(plus(by, gap)), size_of(by));
        }
        if (excess > 0) {
            bool shared = uniform(words->at[position++]) < exp_of(AT(jumps->log_a, law) * (double)excess);
            residual = shared == (residual == 1);
        }
        j += 1 - residual;
    }
    state->residual = residual;
    state->position = position;
    state->coordinate = j;
    return code;
}

/* Algorithm 2 until the chains meet or step `last`: the proposals are set once, one uniform accepts for both.
 *
 * `gaps` are the coordinates of y less those of x, w_j - v_j: the chains have met when all are 0, for the columns are a
 * basis. */
KERNEL i64 couple_walks(const Words *words, const WalkStates *states, const ProblemTables *tables, const Pair *pair) {
    WalkState *state = states->at;
    const Columns *columns = &tables->columns;
    const Target *target = &tables->target;
    while (state->step < pair->last) {
        if (propose_both(words, state, &tables->jumps, pair) != DONE || state->position >= words->size) return MORE;
        double common = uniform(words->at[state->position++]);
        i64 change = move_all(pair->x, columns, pair->x_moves, target->kind);
        bool x_yes = common < ratio(target, state->norm, change);
        if (x_yes) {
            state->norm = plus(state->norm, change);
            state->accepted += 1;
        } else {
            undo_all(pair->x, columns, pair->x_moves);
        }
        change = move_all(pair->y, columns, pair->y_moves, target->kind);
        bool y_yes = common < ratio(target, state->second_norm, change);
        if (y_yes) {
            state->second_norm = plus(state->second_norm, change);
            state->second_accepted += 1;
        } else {
            undo_all(pair->y, columns, pair->y_moves);
        }
        i64 apart = 0;
        for (i64 i = 0; i < pair->gaps.size; i++) {
            i64 moved = minus(y_yes ? AT(pair->y_moves, i) : 0, x_yes ? AT(pair->x_moves, i) : 0);
            AT(pair->gaps, i) = plus(AT(pair->gaps, i), moved);
            apart += AT(pair->gaps, i) != 0;
        }
        state->step += 1;
        state->coordinate = 0;
        if (apart == 0) {
            state->met = 1;
            break;
        }
    }
    return DONE;
}
