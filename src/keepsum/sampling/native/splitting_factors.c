/* What is decided about the sums of a bundle: bases, labels, and factors (docs/exact-tables.md).
 *
 * All chances are floats with error bounds; what these leave open, the referee settles (l1/splitting/referee.py).
 */
#include "real.h"
#include "splitting.h"

/* A word as a number between 0 and 1, whose further digits are not known. */
typedef struct { double low, high; } Interval;

INNER Interval interval_of(u64 word, i64 shift) {
    i64 bits = least(ACCEPT_BITS, 64 - shift);
    double low = (double)(word >> (64 - bits)) * unit_of(bits);
    return (Interval){low, low + unit_of(bits)};
}

/* The base of a bundle whose sums are all 0, by its cumulative chances; 1, MORE or TIE_ACCEPT. */
static i64 pick_root(
    Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, Bundle bundle
) {
    i64 value = settled(state), count = AT(tables->bases, bundle.form);
    if (value < 0 && count == 1) value = 0;
    if (value < 0) {
        if (state->position >= words.size) return MORE;
        const double *chances = SPAN(tables->root_chances, AT(tables->root_start, bundle.form), count);
        double error = AT(tables->root_error, bundle.form);
        Interval word = interval_of(AT(words, state->position), tables->sums.shift);
        value = 0;
        while (value < count && chances[value] <= word.low) value++;
        if (value == count) return TIE_ACCEPT;
        double below = value > 0 ? chances[value - 1] + error : 0.0;
        if (below > word.low) return TIE_ACCEPT;
        if (value < count - 1 && chances[value] - error < word.high) return TIE_ACCEPT;
        state->position += 1;
    }
    AT(room->base, bundle.number) = value;
    return 1;
}

/* The group of a bundle among all groups; of one whose sums are all 0 there is none, which is a number below 0. */
INNER i64 group_of(const SplittingTables *tables, const SplittingRoom *room, Bundle bundle) {
    i64 start = AT(tables->group_start, bundle.form);
    return start < 0 ? start : start + AT(room->group, bundle.number);
}

/* The logarithms of the labels' weights relative to the group's, added up over rows; false beyond the tables. */
static bool add_ratios(
    const SplittingTables *tables, const SplittingRoom *room, Bundle bundle, i64 group, i64 labels
) {
    const GroupTables *groups = &tables->groups;
    double *restrict logs = SPAN(room->logs, 0, labels + 1);
    for (i64 k = 0; k <= labels; k++) logs[k] = 0.0;
    for (i64 i = 0; i < bundle.rows; i++) {
        i64 y = magnitude(sum_of_row(tables, room, bundle, i));
        i64 law = AT(groups->law_start, group) + AT(tables->law, bundle.first + i);
        if (y > AT(groups->reach, law)) return false;
        const double *ratios = SPAN(groups->ratios, AT(groups->ratio_start, law) + y * (labels + 1), labels + 1);
        for (i64 k = 0; k <= labels; k++) logs[k] += ratios[k];
    }
    return true;
}

/* How many labels a group has. */
INNER i64 labels_of(const GroupTables *groups, i64 group) {
    return AT(groups->start, group + 1) - AT(groups->start, group);
}

i64 pick_label(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, Bundle bundle) {
    const GroupTables *groups = &tables->groups;
    i64 group = group_of(tables, room, bundle);
    if (group < 0) return pick_root(words, state, tables, room, bundle);
    i64 first = AT(groups->start, group), labels = labels_of(groups, group);
    if (labels == 1) {
        AT(room->base, bundle.number) = AT(groups->base, first);
        return 1;
    }
    i64 value = settled(state);
    if (value == 0) return 0;
    if (value > 0) {
        AT(room->base, bundle.number) = AT(groups->base, first + value - 1);
        return 1;
    }
    if (state->position >= words.size) return MORE;
    if (!add_ratios(tables, room, bundle, group, labels)) return TIE_ACCEPT;
    const double *logs = SPAN(room->logs, 0, labels + 1);
    Interval word = interval_of(AT(words, state->position), tables->sums.shift);
    /* Relative errors of all terms, their exponentials and sums; the terms add up to at most 1. */
    double operations = (double)(bundle.rows + labels) + 16.0;
    double error = 1.01 * (logs[labels] + operations * 8.0 * ULP), upto = 0.0;
    for (i64 k = 0; k < labels; k++) {
        double term = exp_of(lesser(logs[k], 0.0));
        if (upto + term > word.low) {
            bool above = upto * (1.0 + error) <= word.low, below = (upto + term) * (1.0 - error) >= word.high;
            if (!above || !below) return TIE_ACCEPT;
            state->position += 1;
            AT(room->base, bundle.number) = AT(groups->base, first + k);
            return 1;
        }
        upto += term;
    }
    if (upto * (1.0 + error) + TINY > word.low) return TIE_ACCEPT;
    state->position += 1;
    return 0;
}

/* Multiply complex numbers by those of a transform, the imaginary parts of which have this sign. */
INNER void multiply(
    double *restrict real, double *restrict imaginary, const double *restrict transform,
    const double *restrict transform_imaginary, double sign, i64 count
) {
    for (i64 k = 0; k < count; k++) {
        double a = real[k], b = imaginary[k], x = transform[k], z = sign * transform_imaginary[k];
        real[k] = a * x - b * z;
        imaginary[k] = a * z + b * x;
    }
}

/* What the factor of a bundle is made of: errors and tails, and in the room the products of transforms over the rows and
 * the logarithms of the numbers t of each block. */
typedef struct { double error, log_dropped, log_tails; } Product;

/* Multiply over every so-manieth row at so many frequencies; false if a sum lies beyond the tables. */
static bool multiply_rows(
    const SplittingTables *tables, const SplittingRoom *room, Bundle bundle, i64 every, i64 frequencies,
    const Floats *log_dropped, Product *product
) {
    Product total = {0.0, 0.0, AT(tables->log_alias, bundle.form)};
    const SplitTables *splits = &tables->splits;
    i64 blocks = AT(tables->blocks, bundle.form);
    double *restrict real = SPAN(room->product, 0, frequencies);
    double *restrict imaginary = SPAN(room->product_imaginary, 0, frequencies);
    double *restrict logs = SPAN(room->logs, 0, blocks);
    for (i64 k = 0; k < frequencies; k++) real[k] = 1.0;
    for (i64 k = 0; k < frequencies; k++) imaginary[k] = 0.0;
    for (i64 m = 0; m < blocks; m++) logs[m] = 0.0;
    for (i64 i = 0; i < bundle.rows; i += every) {
        i64 split = split_of_row(tables, bundle, i), sum = sum_of_row(tables, room, bundle, i), y = magnitude(sum);
        if (y > AT(splits->reach, split)) return false;
        i64 place = AT(splits->place_start, split) + y, start = AT(splits->transform_start, place);
        total.error += AT(splits->transform_error, place);
        total.log_dropped += AT(*log_dropped, place);
        total.log_tails += AT(splits->log_growth, place);
        const double *numbers = SPAN(splits->log_numbers, AT(splits->number_start, place), blocks);
        for (i64 m = 0; m < blocks; m++) logs[m] += numbers[m];
        const double *transform = SPAN(splits->transform, start, frequencies);
        const double *other = SPAN(splits->transform_imaginary, start, frequencies);
        multiply(real, imaginary, transform, other, sum >= 0 ? 1.0 : -1.0, frequencies);
    }
    *product = total;
    return true;
}

/* In a group of one label, the label's weight relative to that of the group is one more factor. */
i64 accept_bundle(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, Bundle bundle) {
    i64 shift = tables->sums.shift, group = group_of(tables, room, bundle);
    if (group < 0) return 1;
    i64 frequencies = AT(tables->few, bundle.form), blocks = AT(tables->blocks, bundle.form);
    double rows = (double)bundle.rows, factor = 1.0, factor_error = 0.0;
    if (labels_of(&tables->groups, group) == 1) {
        if (!add_ratios(tables, room, bundle, group, 1)) return accept(words, state, shift, 0.0, 1.0);
        factor = exp_of(lesser(AT(room->logs, 0), 0.0));
        factor_error = AT(room->logs, 1) + 8.0 * rows * ULP;
    }
    Product product;
    const Floats *log_dropped = &tables->splits.log_dropped;
    if (!multiply_rows(tables, room, bundle, 1, frequencies, log_dropped, &product)) return accept(words, state, shift, 0.0, 1.0);
    const double *measure = SPAN(tables->measure, AT(tables->measure_start, bundle.form), frequencies);
    const double *real = SPAN(room->product, 0, frequencies), *logs = SPAN(room->logs, 0, blocks);
    double chance = 0.0, numbers = 0.0, largest = 0.0;
    for (i64 k = 0; k < frequencies; k++) chance += measure[k] * real[k];
    for (i64 m = 0; m < blocks; m++) {
        numbers += exp_of(logs[m]);
        largest = larger(largest, -logs[m]);
    }
    /* Errors of the transforms and of products and sums of numbers of at most 1, whose measure is at most 1. */
    double error = 1.01 * (product.error + (6.0 * rows + (double)frequencies + 8.0) * ULP);
    double doubt = 1.01 * (error + exp_of(lesser(product.log_dropped, 0.0)));
    double low = chance - doubt - 1.01 * exp_of(lesser(product.log_tails, 0.0));
    double rounding = (rows + 8.0) * (largest + 2.0) * ULP + 1.01 * factor_error;
    low = larger(0.0, low / numbers * factor * (1.0 - rounding));
    double high = (chance + doubt) / numbers * factor * (1.0 + rounding);
    return accept(words, state, shift, low, larger(TINY, lesser(1.0, high)));
}

#define LITTLE_KNOWN 1e-6

bool multiply_part(State *state, const SplittingTables *tables, const SplittingRoom *room, Bundle bundle) {
    i64 every = tables->solved_every, frequencies = AT(tables->frequencies, bundle.form);
    double *part = SPAN(room->part, 0, 3);
    Product product;
    state->part_total = 0;
    for (i64 i = 0; i < bundle.rows; i += every) state->part_total += sum_of_row(tables, room, bundle, i);
    const Floats *largest = &tables->splits.log_largest;
    if (!multiply_rows(tables, room, bundle, every, frequencies, largest, &product)) return false;
    const double *measure = SPAN(tables->measure, AT(tables->measure_start, bundle.form), frequencies);
    const double *real = SPAN(room->product, 0, frequencies);
    const double *imaginary = SPAN(room->product_imaginary, 0, frequencies);
    double rows = (double)bundle.rows, bound = 0.0;
    for (i64 k = 0; k < frequencies; k++) bound += measure[k] * root_of(real[k] * real[k] + imaginary[k] * imaginary[k]);
    /* As in `accept_bundle`; a turn has an error of a few units, too. */
    part[0] = 1.01 * (product.error + (6.0 * rows + (double)frequencies + 32.0) * ULP);
    part[0] = 1.01 * (part[0] + exp_of(lesser(product.log_dropped, 0.0)));
    part[1] = product.log_tails;
    part[2] = lesser(1.0, 1.001 * (bound + part[0]));
    return part[0] <= LITTLE_KNOWN * bound;
}

i64 accept_others(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, Bundle bundle) {
    i64 shift = tables->sums.shift, frequencies = AT(tables->frequencies, bundle.form);
    const double *part = SPAN(room->part, 0, 3);
    i64 needed = -state->others_sum, points = AT(tables->points, bundle.form);
    i64 turn = floor_remainder(2 * needed - state->part_total, 2 * points), at = 0;
    i64 start = AT(tables->turn_start, bundle.form);
    const double *cosines = SPAN(tables->cosines, start, 2 * points), *sines = SPAN(tables->sines, start, 2 * points);
    const double *measure = SPAN(tables->measure, AT(tables->measure_start, bundle.form), frequencies);
    const double *real = SPAN(room->product, 0, frequencies);
    const double *imaginary = SPAN(room->product_imaginary, 0, frequencies);
    double chance = 0.0;
    for (i64 k = 0; k < frequencies; k++) {
        chance += measure[k] * (real[k] * cosines[at] + imaginary[k] * sines[at]);
        at += turn;
        if (at >= 2 * points) at -= 2 * points;
    }
    double apart = (double)needed - AT(tables->centre, bundle.form) * (double)state->part_total;
    double log_tails = part[1] + AT(tables->growth, bundle.form) * larger(apart, -apart) * (1.0 + 8.0 * ULP) + 1e-9;
    double low = chance - part[0] - 1.01 * exp_of(lesser(log_tails, 0.0)), high = chance + part[0];
    low = larger(0.0, low / part[2] * (1.0 - 8.0 * ULP));
    high = larger(TINY, lesser(1.0, high / part[2] * (1.0 + 8.0 * ULP)));
    return accept(words, state, shift, low, high);
}
