/* Double geometric noise in two-way tables with all margins 0: exact, by splitting the columns.
 *
 * From the root of a tree over the columns down, the sums of the rows are split between two children: all rows but one
 * freely, that one is solved for and accepted; then the sums of each child are accepted with their factor. The proof is
 * in docs/exact-tables.md, the parts are described in l1/splitting/sampler.py.
 *
 * Where a chance is no number, because floats called a weight 0, `accept` leaves it to the referee.
 */
#include "splitting.h"

#define SUM(room, node, row) CELL((room)->sums, node, row)

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

/* The row whose part is solved for: the one whose law is flattest. */
static i64 solved_row(const SplittingTables *tables, const SplittingRoom *room, i64 node) {
    const SplitTables *splits = &tables->splits;
    double best = 4.0;
    i64 solved = 0;
    for (i64 i = 0; i < tables->kind_of_row.size; i++) {
        i64 split = split_of_row(tables, node, AT(room->base, node), i), y = magnitude(SUM(room, node, i));
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

/* As many rows as the words at hand and the absence of ties allow: the loop where the time goes. */
static void run_rows(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, i64 node) {
    const SplitTables *splits = &tables->splits;
    i64 part = AT(tables->left, node), base = AT(room->base, node), solved = state->solved;
    i64 row = state->row, row_sum = state->row_sum, position = state->position;
    i64 bits = least(ACCEPT_BITS, 64 - tables->sums.shift);
    double unit = unit_of(bits);
    i64 stop = splits->stride == 1 ? tables->kind_of_row.size : 0;
    for (; row < stop; row++) {
        if (row == solved) continue;
        if (position >= words.size) break;
        i64 y = SUM(room, node, row), split = split_of_row(tables, node, base, row), size = magnitude(y);
        if (size > AT(splits->reach, split)) break;
        double low = (double)(AT(words, position) >> (64 - bits)) * unit;
        i64 place = AT(splits->place_start, split) + size, length = AT(splits->counts, place);
        const double *cumulative = SPAN(splits->cumulative, AT(splits->cumulative_start, place), length);
        i64 m = AT(splits->guide, place * GUIDE + (i64)(low * GUIDE));
        while (m < length && cumulative[m] <= low) m++;
        if (m == length) break;
        double doubt = AT(splits->slack, place), below = m > 0 ? cumulative[m - 1] : 0.0;
        if (below + doubt > low || cumulative[m] - doubt < low + unit) break;
        i64 u = AT(splits->lowest, place) + m;
        u = y >= 0 ? u : -u;
        SUM(room, part, row) = u;
        row_sum += u;
        position++;
    }
    state->row = row;
    state->row_sum = row_sum;
    state->position = position;
}

/* The parts of all rows but one, freely; that one makes their sum 0. */
static i64 draw_rows(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, i64 node) {
    i64 rows = tables->kind_of_row.size, part = AT(tables->left, node), base = AT(room->base, node);
    while (state->row < rows) {
        if (state->answer < 0) {
            run_rows(words, state, tables, room, node);
            if (state->row == rows) break;
        }
        i64 i = state->row;
        if (i == state->solved) {
            state->row += 1;
            continue;
        }
        i64 y = SUM(room, node, i), split = split_of_row(tables, node, base, i);
        i64 value = draw_sum(words, state, &tables->splits, tables->sums.shift, split, magnitude(y));
        if (value < 0) return value;
        i64 u = y >= 0 ? value - OFFSET : OFFSET - value;
        SUM(room, part, i) = u;
        state->row_sum += u;
        state->row += 1;
    }
    SUM(room, part, state->solved) = -state->row_sum;
    state->rows_drawn += rows;
    state->row = state->row_sum = 0;
    return DONE;
}

/* Accept the part that is solved for, with its weight relative to the peak. */
static i64 accept_row(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, i64 node) {
    const SplitTables *splits = &tables->splits;
    i64 shift = tables->sums.shift, i = state->solved, split = split_of_row(tables, node, AT(room->base, node), i);
    i64 y = SUM(room, node, i), u = SUM(room, AT(tables->left, node), i);
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

/* The sums below the right child, and the groups of both; swapped if the label says so. */
static void hand_down(const SplittingTables *tables, const SplittingRoom *room, i64 node) {
    i64 columns = room->sums.columns, left = AT(tables->left, node), right = AT(tables->right, node);
    i64 place = AT(tables->base_start, node) + AT(room->base, node);
    const i64 *sums = ROW(room->sums, node);
    i64 *left_sums = ROW(room->sums, left), *right_sums = ROW(room->sums, right);
    bool swapped = AT(room->swapped, node);
    for (i64 i = 0; i < columns; i++) right_sums[i] = sums[i] - left_sums[i];
    AT(room->group, left) = swapped ? AT(tables->base_right, place) : AT(tables->base_left, place);
    AT(room->group, right) = swapped ? AT(tables->base_left, place) : AT(tables->base_right, place);
    if (swapped) {
        for (i64 i = 0; i < columns; i++) {
            i64 sum = left_sums[i];
            left_sums[i] = right_sums[i];
            right_sums[i] = sum;
        }
    }
}

/* -- nodes and tables --------------------------------------------------------------------------- */

/* Split the sums below a node; 1 if those of both children are accepted, else 0. */
static i64 split_node(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, i64 node) {
    i64 code;
    if (state->phase == DRAW_ROWS && state->row == 0 && state->answer < 0) {
        state->solved = solved_row(tables, room, node);
    }
    while (state->phase < LABEL_LEFT) {
        if (state->phase == DRAW_ROWS) {
            code = draw_rows(words, state, tables, room, node);
            if (code != DONE) return code;
            state->phase = ACCEPT_ROW;
        }
        code = accept_row(words, state, tables, room, node);
        if (code < 0) return code;
        state->phase = DRAW_ROWS;
        if (code == 1) {
            hand_down(tables, room, node);
            state->phase = LABEL_LEFT;
        }
    }
    while (state->phase < FILL) {
        i64 child = state->phase < LABEL_RIGHT ? AT(tables->left, node) : AT(tables->right, node);
        code = 1;
        if (child < tables->inner) {
            if (state->phase == LABEL_LEFT || state->phase == LABEL_RIGHT) {
                code = pick_label(words, state, tables, room, child);
            } else {
                code = accept_node(words, state, tables, room, child);
            }
        }
        if (code != 1) return code;
        state->phase += 1;
    }
    return 1;
}

/* The cells of all entries, given their sums. */
static i64 fill_entries(
    Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, OutInts out, i64 base
) {
    while (state->region < tables->entry_row.size) {
        i64 e = state->region, total = SUM(room, AT(tables->entry_leaf, e), AT(tables->entry_row, e));
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

/* From the root down: 1 if all nodes are accepted, 0 if one is not, or MORE, or TIE_ACCEPT. */
static i64 propose(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room) {
    if (state->phase == PICK_ROOT) {
        i64 code = pick_root(words, state, tables, room);
        if (code != DONE) return code;
        state->phase = DRAW_ROWS;
    }
    while (state->node < tables->inner) {
        i64 code = split_node(words, state, tables, room, state->node);
        if (code < 0) return code;
        if (code == 0) break;
        state->node += 1;
        state->phase = DRAW_ROWS;
    }
    bool accepted = state->node == tables->inner;
    state->node = 0;
    state->tries += 1;
    state->phase = accepted ? FILL : PICK_ROOT;
    return accepted;
}

/* Tables one behind the other in `out`: P(z) proportional to e^(-eps |z|_1), given the margins. */
KERNEL i64 fill_split_tables(
    const Words *words, const States *states, const SplittingTables *tables, const SplittingTask *task
) {
    State *state = states->at;
    while (task->first + state->job < task->last && (state->rows_drawn < task->most || state->phase == FILL)) {
        if (state->phase != FILL) {
            i64 code = propose(*words, state, tables, &task->room);
            if (code < 0) return code;
            if (code == 0) continue;
        }
        i64 base = (task->first + state->job) * tables->width;
        i64 code = fill_entries(*words, state, tables, &task->room, task->out, base);
        if (code != DONE) return code;
        state->phase = PICK_ROOT;
        state->job += 1;
    }
    return DONE;
}
