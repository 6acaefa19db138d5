/* Double geometric noise under decomposable totals: exact, by splitting columns, bundle by bundle.
 *
 * The sums of a bundle are accepted with their factor, and then split between two children: all rows but one freely,
 * that one is solved for and accepted. Of many rows a part is solved for together, in the same way. When a bundle is
 * rejected, all that it is connected to so far is drawn again. The proof is in docs/exact-tables.md, the parts are
 * described in l1/splitting/sampler.py.
 *
 * Where a chance is no number, because floats called a weight 0, `accept` leaves it to the referee.
 */
#include "splitting.h"

/* -- bridges ------------------------------------------------------------------------------------ */

/* The weight of a sum, 0 beyond the table. */
INNER double weight_of(const SplitTables *splits, i64 weights, i64 y) {
    y = magnitude(y);
    if (y > AT(splits->weight_reach, weights)) return 0.0;
    return AT(splits->weights, AT(splits->weight_start, weights) + y);
}

/* The sum u below the left child given a sum y >= 0, with OFFSET added; or MORE, or TIE_ACCEPT. */
static i64 draw_sum(Words words, State *state, const SplitTables *splits, i64 shift, i64 split, i64 y) {
    i64 value = settled(state);
    if (value >= 0) return value;
    i64 position = state->position;
    if (position >= words.size) return MORE;
    if (y > AT(splits->reach, split)) return TIE_ACCEPT;
    i64 count = least(ACCEPT_BITS, 64 - shift);
    double unit = unit_of(count), low = (double)(AT(words, position) >> (64 - count)) * unit;
    i64 place = AT(splits->place_start, split) + y, length = AT(splits->counts, place);
    const double *cumulative = SPAN(splits->cumulative, AT(splits->cumulative_start, place), length);
    i64 m = AT(splits->guide, place * GUIDE + (i64)(low * GUIDE));
    while (m < length && cumulative[m] <= low) m++;
    if (m == length) return TIE_ACCEPT;
    double below = m > 0 ? cumulative[m - 1] : 0.0, upto = cumulative[m], slack = AT(splits->slack, place);
    i64 u = AT(splits->lowest, place) + m;
    if (splits->stride > 1) {
        i64 left = AT(splits->left, split), right = AT(splits->right, split);
        u = AT(splits->lowest, place) + m * splits->stride;
        i64 last = u + splits->stride;
        for (upto = below; u < last; u++) {
            double chance = weight_of(splits, left, u) * weight_of(splits, right, y - u) * AT(splits->inverse, place);
            upto = below + chance;
            if (upto > low) break;
            below = upto;
        }
    }
    if (below + slack <= low && upto - slack >= low + unit) {
        state->position = position + 1;
        return u + OFFSET;
    }
    return TIE_ACCEPT;
}

/* The row whose part is solved for: of the part that is, the one whose law is flattest. */
static i64 solved_row(const SplittingTables *tables, const SplittingRoom *room, Bundle bundle, i64 every) {
    const SplitTables *splits = &tables->splits;
    double best = 4.0;
    i64 solved = 0;
    for (i64 i = 0; i < bundle.rows; i += every) {
        i64 split = split_of_row(tables, bundle, i), y = magnitude(sum_of_row(tables, room, bundle, i));
        if (y <= AT(splits->reach, split)) {
            double chance = AT(splits->peak_chance, AT(splits->place_start, split) + y);
            if (chance < best) {
                best = chance;
                solved = i;
            }
        }
    }
    return solved;
}

/* -u if y is negative, else u: without a branch, for signs cannot be foretold. */
INNER i64 with_sign_of(i64 y, i64 u) { return (u ^ (y >> 63)) - (y >> 63); }

/* The row after this one: of those that are solved for, or of the others. */
INNER i64 next_row(i64 row, i64 every, bool is_solving) {
    if (is_solving) return row + every;
    return (row + 1) % every == 0 ? row + 2 : row + 1;
}

/* As many rows as the words at hand and the absence of ties allow: the loop where the time goes.
 *
 * A guide is hardly ever off by more than one, which nobody can foretell: that step is arithmetic, so that the look-ups of
 * several rows are on their way at the same time. */
static void run_rows(
    Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, Bundle bundle,
    bool is_solving
) {
    const SplitTables *splits = &tables->splits;
    i64 row = state->row, row_sum = state->row_sum, position = state->position, every = state->every;
    i64 solved = is_solving ? state->solved : -1;
    i64 bits = least(ACCEPT_BITS, 64 - tables->sums.shift);
    double unit = unit_of(bits);
    i64 stop = splits->stride == 1 ? bundle.rows : 0;
    for (; row < stop; row = next_row(row, every, is_solving)) {
        if (row == solved) continue;
        if (position >= words.size) break;
        i64 y = sum_of_row(tables, room, bundle, row), split = split_of_row(tables, bundle, row), size = magnitude(y);
        if (size > AT(splits->reach, split)) break;
        double low = (double)(AT(words, position) >> (64 - bits)) * unit;
        i64 place = AT(splits->place_start, split) + size, length = AT(splits->counts, place);
        const double *cumulative = SPAN(splits->cumulative, AT(splits->cumulative_start, place), length);
        i64 m = AT(splits->guide, place * GUIDE + (i64)(low * GUIDE));
        m += cumulative[least(m, length - 1)] <= low;
        while (m < length && cumulative[m] <= low) m++;
        if (m >= length) break;
        double doubt = AT(splits->slack, place), below = m > 0 ? cumulative[m - 1] : 0.0;
        if (below + doubt > low || cumulative[m] - doubt < low + unit) break;
        i64 u = AT(splits->lowest, place) + m;
        u = with_sign_of(y, u);
        AT(room->sums, AT(tables->left, bundle.first + row)) = u;
        row_sum += u;
        position++;
    }
    state->row = row;
    state->row_sum = row_sum;
    state->position = position;
}

/* The parts of rows, freely: of those that are solved for, all but one, or of the others. */
static i64 draw_parts(
    Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, Bundle bundle,
    bool is_solving
) {
    i64 every = state->every, solved = is_solving ? state->solved : -1;
    while (state->row < bundle.rows) {
        if (state->answer < 0) {
            run_rows(words, state, tables, room, bundle, is_solving);
            if (state->row >= bundle.rows) break;
        }
        i64 i = state->row;
        if (i != solved) {
            i64 y = sum_of_row(tables, room, bundle, i), split = split_of_row(tables, bundle, i);
            i64 value = draw_sum(words, state, &tables->splits, tables->sums.shift, split, magnitude(y));
            if (value < 0) return value;
            i64 u = y >= 0 ? value - OFFSET : OFFSET - value;
            AT(room->sums, AT(tables->left, bundle.first + i)) = u;
            state->row_sum += u;
        }
        state->row = next_row(i, every, is_solving);
    }
    i64 in_part = (bundle.rows + every - 1) / every;
    state->rows_drawn += is_solving ? in_part : bundle.rows - in_part;
    return DONE;
}

/* Accept the part that is solved for, with its weight relative to the peak. */
static i64 accept_row(
    Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, Bundle bundle
) {
    const SplitTables *splits = &tables->splits;
    i64 shift = tables->sums.shift, i = state->solved, split = split_of_row(tables, bundle, i);
    i64 y = sum_of_row(tables, room, bundle, i), u = AT(room->sums, AT(tables->left, bundle.first + i));
    if (magnitude(y) > AT(splits->reach, split)) return accept(words, state, shift, 0.0, 1.0);
    double peak = AT(splits->peak, AT(splits->place_start, split) + magnitude(y));
    i64 left = AT(splits->left, split), right = AT(splits->right, split), v = magnitude(y - u);
    u = magnitude(u);
    if (u > AT(splits->weight_reach, left) || v > AT(splits->weight_reach, right)) {
        double top = AT(splits->weight_top, left) * AT(splits->weight_beyond, right) +
                     AT(splits->weight_beyond, left) * AT(splits->weight_top, right);
        return accept(words, state, shift, 0.0, lesser(1.0, 1.001 * top / peak + TINY));
    }
    u += AT(splits->weight_start, left);
    v += AT(splits->weight_start, right);
    double one = AT(splits->weights, u), other = AT(splits->weights, v);
    double error = AT(splits->weight_error, u), other_error = AT(splits->weight_error, v);
    double low = larger(0.0, one - error) * larger(0.0, other - other_error);
    double high = (one + error) * (other + other_error);
    low = low / peak * (1.0 - 8.0 * ULP);
    high = high / peak * (1.0 + 8.0 * ULP) + TINY;
    return accept(words, state, shift, low, lesser(1.0, high));
}

/* The sums of the right children, and their group, which is the base; and the tag of all entries. */
static void hand_down(const SplittingTables *tables, const SplittingRoom *room, Bundle bundle) {
    for (i64 i = 0; i < bundle.rows; i++) {
        i64 u = AT(room->sums, AT(tables->left, bundle.first + i));
        AT(room->sums, AT(tables->right, bundle.first + i)) = sum_of_row(tables, room, bundle, i) - u;
    }
    i64 below = AT(tables->below, bundle.number);
    if (below >= 0) AT(room->group, below) = bundle.base;
    i64 tagged = AT(tables->tagged, bundle.number);
    if (tagged >= 0) AT(room->group, tagged) = AT(tables->tags, AT(tables->tag_start, bundle.form) + bundle.base);
}

/* -- bundles and tables ------------------------------------------------------------------------- */

/* Draw the parts of a bundle given that they add up to 0: 1, or MORE, or TIE_ACCEPT. */
static i64 draw_bridge(
    Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, Bundle bundle
) {
    i64 code;
    while (true) {
        if (state->phase == DRAW_ROWS) {
            code = draw_parts(words, state, tables, room, bundle, false);
            if (code != DONE) return code;
            state->others_sum = state->row_sum;
            state->row_sum = 0;
            state->phase = ACCEPT_SUM;
        }
        if (state->phase == ACCEPT_SUM) {
            code = accept_others(words, state, tables, room, bundle);
            if (code < 0) return code;
            state->row = code == 1 ? 0 : 1;
            state->phase = code == 1 ? DRAW_SOLVED : DRAW_ROWS;
            if (code == 0) continue;
        }
        if (state->phase == DRAW_SOLVED) {
            code = draw_parts(words, state, tables, room, bundle, true);
            if (code != DONE) return code;
            i64 rest = -state->others_sum - state->row_sum;
            AT(room->sums, AT(tables->left, bundle.first + state->solved)) = rest;
            state->row = state->row_sum = 0;
            state->phase = ACCEPT_ROW;
        }
        code = accept_row(words, state, tables, room, bundle);
        if (code != 0) return code;
        state->phase = DRAW_SOLVED;
    }
}

/* Accept the sums of a bundle and split them: 1 if they are accepted, else 0. */
static i64 split_bundle(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room) {
    i64 code;
    if (state->phase == PICK_LABEL) {
        code = pick_label(words, state, tables, room, bundle_of(tables, room, state->bundle));
        if (code != 1) return code;
        state->phase = ACCEPT_BUNDLE;
    }
    Bundle bundle = bundle_of(tables, room, state->bundle);
    if (state->phase == ACCEPT_BUNDLE) {
        code = accept_bundle(words, state, tables, room, bundle);
        if (code != 1) return code;
        bool is_nested = bundle.rows >= tables->solved_rows && multiply_part(state, tables, room, bundle);
        state->every = is_nested ? tables->solved_every : 1;
        state->solved = solved_row(tables, room, bundle, state->every);
        state->others_sum = state->row_sum = 0;
        state->row = is_nested;
        state->phase = is_nested ? DRAW_ROWS : DRAW_SOLVED;
    }
    code = draw_bridge(words, state, tables, room, bundle);
    if (code != 1) return code;
    hand_down(tables, room, bundle);
    return 1;
}

/* The cells of all entries, given their sums. */
static i64 fill_entries(
    Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, OutInts out, i64 base
) {
    while (state->region < tables->entry_at.size) {
        i64 e = state->region, total = AT(room->sums, AT(tables->entry_at, e));
        Cells cells = {out, base + AT(tables->entry_start, e), AT(tables->entry_size, e)};
        if (cells.size == 1) {
            AT(out, cells.start) = total;
        } else {
            i64 code = fill_given_sum(words, state, &tables->noise, &tables->sums, cells, total);
            if (code != DONE) return code;
        }
        state->region += 1;
    }
    state->region = 0;
    return DONE;
}

/* Bundle by bundle, until all are accepted: DONE, or MORE, or TIE_ACCEPT; or `most` parts are drawn before. */
static i64 split_bundles(
    Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, i64 most_parts
) {
    while (state->bundle < tables->form.size) {
        if (state->phase == PICK_LABEL && state->rows_drawn >= most_parts) return DONE;
        i64 code = split_bundle(words, state, tables, room);
        if (code < 0) return code;
        state->tries += code == 0;
        state->bundle = code == 1 ? state->bundle + 1 : AT(tables->restart, state->bundle);
        state->phase = PICK_LABEL;
        state->row = 0;
    }
    state->bundle = 0;
    state->tries += 1;
    state->phase = FILL;
    return DONE;
}

/* Tables one behind the other in `out`: P(z) proportional to e^(-eps |z|_1), given the totals. */
KERNEL i64 fill_split_tables(
    const Words *words, const States *states, const SplittingTables *tables, const SplittingTask *task
) {
    State *state = states->at;
    while (task->first + state->job < task->last) {
        if (state->phase != FILL) {
            i64 code = split_bundles(*words, state, tables, &task->room, task->most);
            if (code != DONE) return code;
            if (state->phase != FILL) return DONE;
        }
        i64 base = (task->first + state->job) * tables->width;
        i64 code = fill_entries(*words, state, tables, &task->room, task->out, base);
        if (code != DONE) return code;
        state->phase = PICK_LABEL;
        state->job += 1;
    }
    return DONE;
}
