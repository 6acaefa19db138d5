/* Gaussian noise in blocks of regions: coordinates by a triangular factor, then the cells of each region.
 *
 * gaussian/blocks.py has the law, and docs/gaussian.md why it is exact though the factor is in floats.
 */
#include "gaussian.h"
#include "real.h"

/* Minus the sum of factor * coordinate over the coordinates drawn before; whatever it rounds to is the centre. */
INNER double centre_at(i64 j, const FactorTables *factor, Ints coordinates) {
    double total = 0.0;
    for (i64 place = AT(factor->pointers, j); place < AT(factor->pointers, j + 1); place++) {
        total += AT(factor->factors, place) * (double)AT(coordinates, AT(factor->rows, place));
    }
    return -total;
}

/* The same as Python asks for it. */
KERNEL double centre_of(const i64 *j, const FactorTables *factor, const Ints *coordinates) {
    return centre_at(*j, factor, *coordinates);
}

/* The coordinates of a block from the last to the first, then the sums of its regions. */
static i64 draw_coordinates(
    Words words, State *state, const BlockTables *tables, double variance, const BlockRoom *room
) {
    const FactorTables *factor = &tables->factor;
    i64 count = factor->shares.size;
    while (state->region < count) {
        i64 j = count - 1 - state->region;
        if (state->step == PROPOSE && state->answer < 0) {
            Ints drawn = {room->coordinates.at, room->coordinates.size};
            AT(room->centres, j) = centre_at(j, factor, drawn);
        }
        i64 nearest = floor_of(AT(room->centres, j) + 0.5);
        double phi = AT(room->centres, j) - (double)nearest, conditional = variance * AT(factor->shares, j);
        i64 code = draw_integer(words, state, &tables->gaussian, conditional, phi);
        if (code != DONE) return code;
        count_theta(state, conditional, phi);
        AT(room->coordinates, j) = nearest + state->value;
        state->region += 1;
    }
    for (i64 region = 0; region < tables->form.size; region++) {
        i64 total = 0;
        for (i64 place = AT(factor->basis_pointers, region); place < AT(factor->basis_pointers, region + 1); place++) {
            total += AT(factor->basis_values, place) * AT(room->coordinates, AT(factor->basis_rows, place));
        }
        AT(room->sums, region) = total;
    }
    state->region = 0;
    return DONE;
}

typedef struct { double mismatch, size; } Forms;

/* Half of (the quadratic form of the lattice less that of the draws), which is never negative; and of the former. */
static Forms forms_of(const BlockTables *tables, double variance, const BlockRoom *room) {
    double proposed = 0.0, exact = 0.0;
    for (i64 j = 0; j < tables->factor.shares.size; j++) {
        double distance = (double)AT(room->coordinates, j) - AT(room->centres, j);
        proposed += distance * distance / AT(tables->factor.shares, j);
    }
    for (i64 region = 0; region < room->sums.size; region++) {
        double sum = (double)AT(room->sums, region);
        exact += sum * sum * AT(tables->form, region);
    }
    return (Forms){larger(0.0, exact - proposed) / (2.0 * variance), exact / (2.0 * variance)};
}

/* The cells of all regions, given their sums. */
static i64 fill_regions_of(
    Words words, State *state, const BlockTables *tables, double variance, const BlockTask *task, i64 job
) {
    while (state->region < tables->sizes.size) {
        i64 region = state->region, start = job * tables->width + AT(tables->starts, region);
        Cells cells = {task->out, start, AT(tables->sizes, region)};
        i64 sum = AT(task->room.sums, region);
        i64 code = fill_gaussian_sum(words, state, &tables->gaussian, variance, sum, cells);
        if (code != DONE) return code;
        state->region += 1;
    }
    state->region = 0;
    return DONE;
}

/* Blocks one behind the other in `out`. */
KERNEL i64 fill_gaussian_blocks(
    const Words *words, const States *states, const BlockTables *tables, const BlockTask *task
) {
    State *state = states->at;
    const BlockRoom *room = &task->room;
    i64 steps = tables->factor.shares.size + tables->width;
    while (task->first + state->job < task->last && (state->tries < task->most || state->phase != SAMPLE)) {
        i64 code, job = task->first + state->job;
        double variance = AT(tables->variances, job / tables->per_row);
        if (state->phase == SAMPLE) {
            code = draw_coordinates(*words, state, tables, variance, room);
            if (code != DONE) return code;
            state->phase = FILL;
        }
        if (state->phase == FILL) {
            code = fill_regions_of(*words, state, tables, variance, task, job);
            if (code != DONE) return code;
            state->tries += 1;
            state->phase = DECIDE;
        }
        Forms forms = forms_of(tables, variance, room);
        double error = (forms.size + 1.0) * 1e-12 * (1.0 + (double)tables->form.size / 4096.0);
        Acceptance by = {tables->gaussian.packed.shift, tables->deciding, steps, forms.mismatch, error};
        code = finish_block(*words, state, &by, room->log_weights, job);
        if (code != DONE) return code;
    }
    return DONE;
}
