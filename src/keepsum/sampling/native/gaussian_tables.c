/* Gaussian noise in tables under all margins of one way less: centres in closed form (gaussian/tables.py). */
#include "gaussian.h"
#include "real.h"

/* What each cell of a table adds to the mean of those before, along every axis behind `level`, as numerators.
 *
 * Along one axis of n cells it is (n - k) z_k + z_0 + ... + z_(k-1), over n - k. */
static void find_innovations(const i64 *source, i64 *target, Ints shape, i64 level) {
    i64 size = 1, stride = 1;
    for (i64 axis = level + 1; axis < shape.size; axis++) size *= AT(shape, axis);
    for (i64 i = 0; i < size; i++) target[i] = source[i];
    for (i64 axis = shape.size - 1; axis > level; axis--) {
        i64 n = AT(shape, axis), block = stride * n;
        for (i64 base = 0; base < size; base += block) {
            for (i64 offset = 0; offset < stride; offset++) {
                i64 before = 0;
                for (i64 k = 0; k < n; k++) {
                    i64 place = base + offset + k * stride, value = target[place];
                    target[place] = (n - k) * value + before;
                    before += value;
                }
            }
        }
        stride = block;
    }
}

/* The same for whole arrays, as Python runs it. */
KERNEL i64 innovations(const Ints *source, const OutInts *target, const Ints *shape, const i64 *level) {
    find_innovations(SPAN(*source, 0, target->size), SPAN(*target, 0, source->size), *shape, *level);
    return DONE;
}

/* A cell that is drawn: its mean is -numerator / bottom, its variance share * s^2, top_share / bottom_share exactly. */
typedef struct {
    i64 numerator, bottom, top_share, bottom_share;
    double share;
} Step;

/* The step at the cell that the state is at, in the row whose indices are in the room. */
INNER Step step_at(const State *state, const FullTables *tables, const FullRoom *room) {
    Ints shape = tables->shape;
    i64 last = shape.size - 1, remaining = AT(shape, last) - state->cell;
    Step step = {0, 1, remaining - 1, remaining, 1.0};
    for (i64 axis = 0; axis < last; axis++) {
        i64 inner = 0;
        for (i64 behind = axis + 1; behind < last; behind++) {
            inner = inner * AT(shape, behind) + AT(room->indices, behind);
        }
        inner = inner * AT(shape, last) + state->cell;
        step.numerator += AT(room->innovation, AT(tables->level_start, axis) + inner) * step.bottom;
        i64 along = AT(shape, axis) - AT(room->indices, axis);
        step.bottom *= along;
        step.top_share *= along - 1;
        step.bottom_share *= along;
        step.share *= ((double)along - 1.0) / (double)along;
    }
    step.numerator += state->total * step.bottom;
    step.bottom *= remaining;
    return step;
}

/* The cells of a row, which add up to 0. */
static i64 fill_row(
    Words words, State *state, const FullTables *tables, double variance, const FullRoom *room, OutInts out, i64 place
) {
    i64 size = AT(tables->shape, tables->shape.size - 1);
    while (state->cell < size - 1) {
        Step step = step_at(state, tables, room);
        i64 remaining = size - state->cell;
        double conditional = variance * step.share * (double)(remaining - 1) / (double)remaining;
        i64 nearest = floor_of(0.5 - (double)step.numerator / (double)step.bottom);
        i64 away = -step.numerator - nearest * step.bottom;
        double phi = (double)away / (double)step.bottom;
        i64 code = draw_integer(words, state, &tables->gaussian, conditional, phi);
        if (code != DONE) {
            state->centre_numerator = away;
            state->centre_denominator = step.bottom;
            state->share_numerator = step.top_share;
            state->share_denominator = step.bottom_share;
            return code;
        }
        count_theta(state, conditional, phi);
        i64 value = nearest + state->value;
        AT(out, place + state->cell) = value;
        state->total += value;
        state->cell += 1;
    }
    AT(out, place + size - 1) = -state->total;
    state->cell = state->total = 0;
    return DONE;
}

/* The indices of a row into the room; the outermost axis at its end, or -1. */
static i64 find_indices(i64 row, const FullTables *tables, const FullRoom *room) {
    i64 ended = -1;
    for (i64 axis = tables->shape.size - 2; axis >= 0; axis--) {
        i64 n = AT(tables->shape, axis), index = row % n;
        AT(room->indices, axis) = index;
        if (index == n - 1) ended = axis;
        row /= n;
    }
    return ended;
}

/* Add the slabs that end before this row to the sums of their axes; what lies inside them starts anew. */
static void close_slabs(i64 row, const FullTables *tables, const FullRoom *room, OutInts out, i64 start) {
    Ints shape = tables->shape;
    i64 last = AT(shape, shape.size - 1), size = last, behind = 1; /* rows of a slab along the axis */
    for (i64 axis = shape.size - 2; axis >= 0; axis--) {
        if (row % behind != 0) return;
        i64 along = row / behind % AT(shape, axis), first = AT(tables->level_start, axis);
        const i64 *slab = SPAN(out, start + (row - behind) * last, size);
        i64 *sums = SPAN(room->sums, first, size), *innovation = SPAN(room->innovation, first, size);
        if (along == 0) { /* the axis is at its end: its sums are 0 again */
            for (i64 i = 0; i < size; i++) sums[i] = innovation[i] = 0;
        } else {
            for (i64 i = 0; i < size; i++) sums[i] = (along == 1 ? 0 : sums[i]) + slab[i];
            if (along < AT(shape, axis) - 1) find_innovations(sums, innovation, shape, axis);
            return;
        }
        behind *= AT(shape, axis);
        size *= AT(shape, axis);
    }
}

/* A table whose margins of one way less are all 0, cell by cell in row-major order.
 *
 * For each axis l and the indices before it, `room->sums` holds the sum of the finished slabs, and `room->innovation` its
 * innovations D. With r_l cells remaining along axis l, the mean of the next cell given all before it is minus the sum of
 * D_l / r_l, and its variance s^2 times the product of (r_l - 1) / r_l: those of a tensor product of single sums. A slab
 * at the end of an axis is minus the sum of the others. */
static i64 fill_table(
    Words words, State *state, const FullTables *tables, double variance, const FullRoom *room, OutInts out, i64 start
) {
    Ints shape = tables->shape;
    i64 ways = shape.size, last = AT(shape, ways - 1), rows = 1;
    for (i64 axis = 0; axis < ways - 1; axis++) rows *= AT(shape, axis);
    while (state->region < rows) {
        i64 ended = find_indices(state->region, tables, room), place = start + state->region * last, done = 1;
        if (ended >= 0) {
            for (i64 axis = ended + 1; axis < ways - 1; axis++) done *= AT(shape, axis);
            const i64 *sums = SPAN(room->sums, AT(tables->level_start, ended), done * last);
            i64 *cells = SPAN(out, place, done * last);
            for (i64 i = 0; i < done * last; i++) cells[i] = -sums[i];
        } else {
            i64 code = fill_row(words, state, tables, variance, room, out, place);
            if (code != DONE) return code;
        }
        state->region += done;
        close_slabs(state->region, tables, room, out, start);
    }
    state->region = 0;
    return DONE;
}

/* Tables one behind the other in `out`. */
KERNEL i64 fill_gaussian_tables(
    const Words *words, const States *states, const FullTables *tables, const FullTask *task
) {
    State *state = states->at;
    i64 width = 1, steps = 1;
    for (i64 axis = 0; axis < tables->shape.size; axis++) {
        width *= AT(tables->shape, axis);
        steps *= AT(tables->shape, axis) - 1;
    }
    while (task->first + state->job < task->last && (state->tries < task->most || state->phase != SAMPLE)) {
        i64 code, job = task->first + state->job;
        if (state->phase == SAMPLE) {
            double variance = AT(tables->variances, job / tables->per_row);
            code = fill_table(*words, state, tables, variance, &task->room, task->out, job * width);
            if (code != DONE) return code;
            state->tries += 1;
            state->phase = DECIDE;
        }
        Acceptance by = {tables->gaussian.packed.shift, tables->deciding, steps, 0.0, 0.0};
        code = finish_block(*words, state, &by, task->room.log_weights, job);
        if (code != DONE) return code;
    }
    return DONE;
}
