/* Proposals of the scale mixture: a variance for each region, then a lattice Gaussian with these variances.
 *
 * A proposal takes one word for each region and one for each coordinate, always: everything is drawn by inversion, so
 * that a buffer of whole proposals never ends in the middle of one, and chains that share words share proposals.
 * general/mixture.py says what is drawn and why, docs/general.md what floats do to it.
 */
#include "general.h"

#define ROOT 0x1.40d931ff62705p+1     /* the root of 2 pi */
#define LOG_ROOT 0x1.d67f1c864beb4p-1 /* ln of it */
#define HALF (0.5 + 0x1p-40)          /* centres half way between two whole numbers are common, and floats err both ways */
#define FLAT_FROM 2.0   /* from this variance on all centres have the same weight, to 1e-17 */
#define DUAL_FROM 0.5625 /* from this variance on, the first term of the dual sum gives the lattice's weight to 1e-19 */
enum { REFRESH = 16 };  /* weights by recurrence are computed anew after so many steps: errors grow like its square */

/* Ln of the sum over whole k of exp(-(k - phi)^2 / 2 s^2), |phi| <= 1/2. */
INNER double log_theta(double phi, double square) {
    if (square >= FLAT_FROM) return LOG_ROOT + 0.5 * log_of(square);
    if (square >= DUAL_FROM) {
        double dual = 2 * exp_of(-0x1.3bd3cc9be45dep+4 * square) * cos_of_turns(phi); /* -2 pi^2 s^2 */
        return LOG_ROOT + 0.5 * log_of(square) + log1p_of(dual);
    }
    /* The weight of 0 is taken out: it may be far below the smallest float. */
    double total = 1.0;
    for (i64 k = 1; k < 9; k++) {
        double cross = (double)(2 * k) * phi, own = (double)(k * k);
        total += exp_of((cross - own) / (2 * square)) + exp_of((-cross - own) / (2 * square));
    }
    return -phi * phi / (2 * square) + log_of(total);
}

/* A whole k with weight exp(-(k - phi)^2 / 2 s^2), by inversion from the middle outwards. */
INNER i64 draw_integer(double uniform, double phi, double square, double log_sum) {
    double half = 0.5 / square, goal; /* in units of the weight of 0 */
    if (square >= FLAT_FROM) {
        goal = uniform * ROOT * root_of(square) * exp_of(phi * phi * half);
    } else {
        goal = uniform * exp_of(log_sum + phi * phi * half);
    }
    double passed = 1.0, above = 1.0, below = 1.0;
    if (passed >= goal) return 0;
    double down = exp_of(-(2 * phi + 1) * half), up = down * exp_of(4 * phi * half), falling = exp_of(-2 * half);
    i64 last = (i64)(10 * root_of(square)) + 9;
    for (i64 k = 1; k < last; k++) {
        if (k % REFRESH == 0) {
            double twice = (double)(2 * k), cross = twice * phi, own = (double)(k * k);
            above = exp_of((cross - own) / (2 * square));
            below = exp_of((-cross - own) / (2 * square));
            up = exp_of((2 * phi - 1 - twice) / (2 * square));
            down = exp_of((-2 * phi - 1 - twice) / (2 * square));
        } else {
            above *= up;
            below *= down;
            up *= falling;
            down *= falling;
        }
        passed += above;
        if (passed >= goal) return k;
        passed += below;
        if (passed >= goal) return -k;
    }
    return 0;
}

/* A variance for each region, by inversion; ln of its density, target over proposal. */
static double draw_variances(const u64 *words, Ints laws, const ScaleTables *scales, const MixtureRoom *room) {
    double log_weight = 0.0;
    for (i64 region = 0; region < laws.size; region++) {
        i64 law = AT(laws, region), last = AT(scales->start, law + 1) - 1;
        double uniform = unit(words[region]);
        i64 piece = AT(scales->start, law) + CELL(scales->guide, law, (i64)(uniform * GUIDE));
        while (piece < last && AT(scales->passed, piece + 1) <= uniform) piece++;
        /* Inverts the mass from the edge on, exp(height) (exp(slope x) - 1) / slope. */
        double slope = AT(scales->slope, piece);
        double rise = log1p_of(slope * (uniform - AT(scales->passed, piece)) * AT(scales->unheight, piece));
        double y = AT(scales->edge, piece) + rise / slope;
        double log_ratio = -AT(scales->half, law) * y * y - AT(scales->height, piece) - rise;
        double power = AT(scales->power, law);
        if (power > 0) log_ratio += power * log_of(y);
        log_weight += log_ratio;
        AT(room->squares, region) = y * y;
        AT(room->variances, region) = larger(y * y, FLOOR);
    }
    return log_weight;
}

/* form += B' V^-1 B on and below the diagonal, for the regions of one slab. */
static void add_form(OutFloatMatrix form, const double *variances, const SlabTables *slabs) {
    for (i64 region = 0; region < slabs->pointers.size - 1; region++) {
        double weight = 1 / variances[region];
        i64 start = AT(slabs->pointers, region), end = AT(slabs->pointers, region + 1);
        for (i64 a = start; a < end; a++) {
            double *row = ROW(form, AT(slabs->rows, a)), weighted = weight * AT(slabs->values, a);
            for (i64 b = start; b <= a; b++) row[AT(slabs->rows, b)] += weighted * AT(slabs->values, b);
        }
    }
}

/* The same for a row with its sum kept, in the basis e_i - e_last. */
static void add_row_form(OutFloatMatrix form, const double *variances, i64 width) {
    double last = 1 / variances[width - 1];
    for (i64 i = 0; i < width - 1; i++) {
        double *row = ROW(form, i);
        for (i64 j = 0; j < i; j++) row[j] += last;
        row[i] += last + 1 / variances[i];
    }
}

/* Zero on and below the diagonal. */
static void clear(OutFloatMatrix matrix, Ints profile) {
    for (i64 i = 0; i < profile.size; i++) {
        double *row = ROW(matrix, i);
        for (i64 j = AT(profile, i); j <= i; j++) row[j] = 0.0;
    }
}

/* A row with its sum kept has covariance D - D 1 1' D / (sum of its variances), in the basis e_i - e_last. */
static void add_row_covariance(OutFloatMatrix sums, const double *variances, i64 width) {
    double whole = 0.0;
    for (i64 region = 0; region < width; region++) whole += variances[region];
    double share = 1 / whole;
    for (i64 i = 0; i < width - 1; i++) {
        double *row = ROW(sums, i), part = variances[i] * share;
        for (i64 j = 0; j <= i; j++) row[j] -= part * variances[j];
        row[i] += variances[i];
    }
}

/* One of several matrices. */
INNER OutFloatMatrix layer(OutFloatCube cube, i64 k) {
    return (OutFloatMatrix){cube.at + in_bounds(k, cube.layers) * cube.rows * cube.columns, cube.rows, cube.columns};
}

/* room->precisions[k] = (sum over the slabs after k of the covariance of their coordinates)^-1. */
static void inverse_sums(const SlabTables *slabs, const MixtureRoom *room) {
    OutFloatMatrix form = room->form, sums = room->sums;
    i64 width = slabs->pointers.size - 1, size = slabs->profile.size;
    clear(sums, slabs->profile);
    for (i64 slab = slabs->slabs - 1; slab > 0; slab--) {
        const double *variances = SPAN(room->variances, slab * width, width);
        OutFloatMatrix out = layer(room->precisions, slab - 1);
        if (slabs->simple) {
            add_row_covariance(sums, variances, width);
        } else {
            clear(form, slabs->profile);
            add_form(form, variances, slabs);
            factor_form(form, slabs->profile, room->roots);
            invert_form(form, room->roots, room->inverse, out);
            for (i64 i = 0; i < size; i++) {
                for (i64 j = 0; j <= i; j++) CELL(sums, i, j) += CELL(out, i, j);
            }
        }
        for (i64 i = 0; i < size; i++) {
            for (i64 j = 0; j <= i; j++) CELL(form, i, j) = CELL(sums, i, j);
        }
        factor_form(form, slabs->profile, room->roots);
        invert_form(form, room->roots, room->inverse, out);
    }
}

/* Start a slab's form and centre: the slabs after it add up to minus what has passed and its own. */
static void turn(OutFloatMatrix precision, OutFloats passed, OutFloats centres, OutFloatMatrix form) {
    for (i64 i = 0; i < passed.size; i++) {
        AT(centres, i) = -dot(ROW(precision, i), passed.at, passed.size);
        for (i64 j = 0; j <= i; j++) CELL(form, i, j) = CELL(precision, i, j);
    }
}

/* Centres become L^-1 centres. */
static void solve(OutFloatMatrix form, Ints profile, OutFloats roots, OutFloats centres) {
    for (i64 i = 0; i < profile.size; i++) {
        i64 first = AT(profile, i);
        double total = dot(ROW(form, i) + first, SPAN(centres, first, i - first), i - first);
        AT(centres, i) = (AT(centres, i) - total) * AT(roots, i);
    }
}

/* The coordinates of a slab given those of the slabs before, from the last to the first; ln of the weight. */
static double draw_slab(const u64 *words, i64 slab, const SlabTables *slabs, const MixtureRoom *room) {
    OutFloatMatrix form = room->form;
    OutFloats centres = room->centres;
    i64 width = slabs->pointers.size - 1, size = slabs->profile.size;
    const double *variances = SPAN(room->variances, slab * width, width);
    if (slabs->slabs > 1) {
        turn(layer(room->precisions, slab), room->passed, centres, form);
    } else {
        clear(form, slabs->profile);
        for (i64 i = 0; i < size; i++) AT(centres, i) = 0.0;
    }
    if (slabs->simple) {
        add_row_form(form, variances, width);
    } else {
        add_form(form, variances, slabs);
    }
    factor_form(form, slabs->profile, room->roots);
    solve(form, slabs->profile, room->roots, centres);
    double log_weight = 0.0;
    for (i64 i = size - 1; i >= 0; i--) {
        /* Later coordinates have taken their part off this centre. */
        double root = AT(room->roots, i), centre = AT(centres, i) * root, square = root * root;
        i64 nearest = floor_of(centre + HALF);
        double phi = centre - (double)nearest, log_sum = log_theta(phi, square);
        i64 k = draw_integer(unit(*words++), phi, square, log_sum);
        double coordinate = (double)(nearest + k), away = (double)k - phi;
        AT(room->coordinates, i) = coordinate;
        log_weight += log_sum + away * away / (2 * square);
        const double *row = ROW(form, i);
        for (i64 j = AT(slabs->profile, i); j < i; j++) AT(centres, j) -= row[j] * coordinate;
    }
    return log_weight;
}

/* The sums of a slab's regions from its coordinates. */
static void write_slab(const SlabTables *slabs, OutFloats coordinates, double sign, i64 *out) {
    for (i64 region = 0; region < slabs->pointers.size - 1; region++) {
        double total = 0.0;
        for (i64 a = AT(slabs->pointers, region); a < AT(slabs->pointers, region + 1); a++) {
            total += AT(slabs->values, a) * AT(coordinates, AT(slabs->rows, a));
        }
        out[region] = (i64)(sign * total);
    }
}

/* Ln of the weight of the sums given the variances, and of the law of sums over its mixture. */
static double log_target(Ints laws, const ScaleTables *scales, OutFloats squares, const i64 *out) {
    double total = 0.0;
    for (i64 region = 0; region < laws.size; region++) {
        i64 law = AT(laws, region), first = AT(scales->ratio_start, law), end = AT(scales->ratio_start, law + 1);
        if (out[region] != 0) {
            double sum = (double)out[region];
            total -= sum * sum / (2 * AT(squares, region));
        }
        if (end > first) {
            i64 place = first + magnitude(out[region]);
            if (place >= end) return -INFINITY;
            total += AT(scales->ratios, place);
        }
    }
    return total;
}

/* Sums of regions into `out`; ln of their weight: the target's density over the one drawn from.
 *
 * Whatever the factor's rounding does, the weight is that of the centres and widths which were used. */
double propose(const u64 *words, const MixtureTables *tables, const MixtureRoom *room, i64 *out) {
    const SlabTables *slabs = &tables->slabs;
    i64 count = slabs->slabs, size = slabs->profile.size, width = slabs->pointers.size - 1;
    double log_weight = draw_variances(words, slabs->law, &tables->scales, room);
    words += slabs->law.size;
    for (i64 i = 0; i < size; i++) AT(room->passed, i) = 0.0;
    if (count > 1) inverse_sums(slabs, room);
    for (i64 slab = 0; slab < most(1, count - 1); slab++) {
        log_weight += draw_slab(words, slab, slabs, room);
        words += size;
        for (i64 i = 0; i < size; i++) AT(room->passed, i) += AT(room->coordinates, i);
        write_slab(slabs, room->coordinates, 1.0, out + slab * width);
    }
    if (count > 1) write_slab(slabs, room->passed, -1.0, out + (count - 1) * width);
    return log_weight + log_target(slabs->law, &tables->scales, room->squares, out);
}

/* Independent proposals and their log weights. */
KERNEL i64 weigh(const Words *words, const ChainStates *states, const MixtureTables *tables, const MixtureTask *task) {
    ChainState *state = states->at;
    while (state->job < task->last) {
        i64 at = state->position;
        if (at + tables->words_per_proposal > words->size) return MORE;
        state->position = at + tables->words_per_proposal;
        double log_weight = propose(words->at + at, tables, &task->room.mixture, ROW(task->out, state->job));
        AT(task->room.log_weights, state->job) = log_weight;
        state->job += 1;
    }
    return DONE;
}

/* Ratios of the law of a sum of double geometrics, from far out down to 0 (scales.log_sum_law). */
KERNEL i64 fall(const double *rate, const i64 *size, const i64 *start, const OutFloats *out) {
    double ratio = *rate;
    for (i64 s = *start; s > 0; s--) {
        double below = (1 + *rate * *rate) * (double)s + *rate * (double)(*size - s - 1) * ratio;
        ratio = *rate * (double)(*size + s - 1) / below;
        if (s - 1 < out->size) AT(*out, s - 1) = ratio;
    }
    return DONE;
}

/* The largest errors of numbers that follow from each other downwards, a share of each passed on; their sum. */
KERNEL double accumulate(const double *fresh, const Floats *passed_on, const double *last) {
    double error = *last, total = 0.0;
    for (i64 n = passed_on->size - 1; n >= 0; n--) {
        error = *fresh + AT(*passed_on, n) * error;
        total += error;
    }
    return total;
}
