/* What is decided about the sums below a node: the base of the root, labels, and factors (docs/exact-tables.md).
 *
 * All chances are floats with error bounds; what these leave open, the referee settles (l1/splitting/referee.py).
 */
#include "real.h"
#include "splitting.h"

/* Give a node its base; the second copy of a label is the one where left and right change places. */
INNER void set_base(const SplittingRoom *room, i64 node, i64 base, i64 copy) {
    AT(room->base, node) = base;
    AT(room->swapped, node) = copy;
}

/* A word as a number between 0 and 1, whose further digits are not known. */
typedef struct { double low, high; } Interval;

INNER Interval interval_of(u64 word, i64 shift) {
    i64 bits = least(ACCEPT_BITS, 64 - shift);
    double low = (double)(word >> (64 - bits)) * unit_of(bits);
    return (Interval){low, low + unit_of(bits)};
}

i64 pick_root(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room) {
    i64 value = settled(state), count = tables->root_chances.size;
    if (value < 0 && count == 1) value = 0;
    if (value < 0) {
        if (state->position >= words.size) return MORE;
        const double *chances = SPAN(tables->root_chances, 0, count);
        Interval word = interval_of(AT(words, state->position), tables->sums.shift);
        value = 0;
        while (value < count && chances[value] <= word.low) value++;
        if (value == count) return TIE_ACCEPT;
        double below = value > 0 ? chances[value - 1] + tables->root_error : 0.0;
        if (below > word.low) return TIE_ACCEPT;
        if (value < count - 1 && chances[value] - tables->root_error < word.high) return TIE_ACCEPT;
        state->position += 1;
    }
    set_base(room, 0, value, 0);
    return DONE;
}

/* The logarithms of the labels' weights relative to the group's, added up over rows; false beyond the tables. */
static bool add_ratios(
    const SplittingTables *tables, const SplittingRoom *room, i64 node, i64 group, i64 labels
) {
    const GroupTables *groups = &tables->groups;
    double *restrict logs = SPAN(room->logs, 0, labels + 1);
    for (i64 k = 0; k <= labels; k++) logs[k] = 0.0;
    for (i64 i = 0; i < tables->kind_of_row.size; i++) {
        i64 y = magnitude(CELL(room->sums, node, i));
        i64 law = AT(groups->law_start, group) + AT(tables->law, node * tables->kinds + AT(tables->kind_of_row, i));
        if (y > AT(groups->reach, law)) return false;
        const double *ratios = SPAN(groups->ratios, AT(groups->ratio_start, law) + y * (labels + 1), labels + 1);
        for (i64 k = 0; k <= labels; k++) logs[k] += ratios[k];
    }
    return true;
}

/* Whether a group has one label alone, and that in one copy. */
INNER bool is_single(const GroupTables *groups, i64 group) {
    i64 first = AT(groups->start, group);
    return AT(groups->start, group + 1) - first == 1 && AT(groups->copies, first) == 1;
}

i64 pick_label(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, i64 node) {
    const GroupTables *groups = &tables->groups;
    i64 group = AT(tables->group_start, node) + AT(room->group, node);
    i64 first = AT(groups->start, group), labels = AT(groups->start, group + 1) - first;
    if (is_single(groups, group)) {
        set_base(room, node, AT(groups->base, first), 0);
        return 1;
    }
    i64 value = settled(state);
    if (value == 0) return 0;
    if (value > 0) {
        set_base(room, node, AT(groups->base, first + (value - 1) / 2), (value - 1) % 2);
        return 1;
    }
    if (state->position >= words.size) return MORE;
    if (!add_ratios(tables, room, node, group, labels)) return TIE_ACCEPT;
    const double *logs = SPAN(room->logs, 0, labels + 1);
    Interval word = interval_of(AT(words, state->position), tables->sums.shift);
    /* Relative errors of all terms, their exponentials and sums; the terms add up to at most 1. */
    double operations = (double)(tables->kind_of_row.size + labels) + 16.0;
    double error = 1.01 * (logs[labels] + operations * 8.0 * ULP), upto = 0.0;
    for (i64 k = 0; k < labels; k++) {
        double term = exp_of(lesser(logs[k], 0.0));
        for (i64 copy = 0; copy < AT(groups->copies, first + k); copy++) {
            if (upto + term > word.low) {
                bool above = upto * (1.0 + error) <= word.low, below = (upto + term) * (1.0 - error) >= word.high;
                if (!above || !below) return TIE_ACCEPT;
                state->position += 1;
                set_base(room, node, AT(groups->base, first + k), copy);
                return 1;
            }
            upto += term;
        }
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

/* What the factor of a node is made of: errors and tails, and in the room the products of transforms over the rows and
 * the logarithms of the numbers t of each block. */
typedef struct { double error, log_dropped, log_tails; } Product;

/* Multiply over the rows; false if a sum lies beyond the tables. Where the children of a node and their groups are alike,
 * the transforms are real. */
static bool multiply_rows(
    const SplittingTables *tables, const SplittingRoom *room, i64 node, Product *product
) {
    Product total = {0.0, 0.0, AT(tables->log_alias, node)};
    const SplitTables *splits = &tables->splits;
    i64 frequencies = AT(tables->frequencies, node), blocks = AT(tables->blocks, node), base = AT(room->base, node);
    double *restrict real = SPAN(room->product, 0, frequencies);
    double *restrict imaginary = SPAN(room->product_imaginary, 0, frequencies);
    double *restrict logs = SPAN(room->logs, 0, blocks);
    i64 pair = AT(tables->base_start, node) + base;
    bool is_real = AT(tables->is_real, node) && AT(tables->base_left, pair) == AT(tables->base_right, pair);
    for (i64 k = 0; k < frequencies; k++) real[k] = 1.0;
    for (i64 k = 0; k < frequencies; k++) imaginary[k] = 0.0;
    for (i64 m = 0; m < blocks; m++) logs[m] = 0.0;
    for (i64 i = 0; i < tables->kind_of_row.size; i++) {
        i64 split = split_of_row(tables, node, base, i), sum = CELL(room->sums, node, i), y = magnitude(sum);
        if (y > AT(splits->reach, split)) return false;
        i64 place = AT(splits->place_start, split) + y, start = AT(splits->transform_start, place);
        total.error += AT(splits->transform_error, place);
        total.log_dropped += AT(splits->log_dropped, place);
        total.log_tails += AT(splits->log_growth, place);
        const double *numbers = SPAN(splits->log_numbers, AT(splits->number_start, place), blocks);
        for (i64 m = 0; m < blocks; m++) logs[m] += numbers[m];
        const double *transform = SPAN(splits->transform, start, frequencies);
        if (is_real) {
            for (i64 k = 0; k < frequencies; k++) real[k] *= transform[k];
        } else {
            const double *other = SPAN(splits->transform_imaginary, start, frequencies);
            multiply(real, imaginary, transform, other, sum >= 0 ? 1.0 : -1.0, frequencies);
        }
    }
    *product = total;
    return true;
}

/* In a group of one label, the label's weight relative to that of the group is one more factor. */
i64 accept_node(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, i64 node) {
    i64 shift = tables->sums.shift, frequencies = AT(tables->frequencies, node), blocks = AT(tables->blocks, node);
    i64 group = AT(tables->group_start, node) + AT(room->group, node);
    double rows = (double)tables->kind_of_row.size, factor = 1.0, factor_error = 0.0;
    if (is_single(&tables->groups, group)) {
        if (!add_ratios(tables, room, node, group, 1)) return accept(words, state, shift, 0.0, 1.0);
        factor = exp_of(lesser(AT(room->logs, 0), 0.0));
        factor_error = AT(room->logs, 1) + 8.0 * rows * ULP;
    }
    Product product;
    if (!multiply_rows(tables, room, node, &product)) return accept(words, state, shift, 0.0, 1.0);
    const double *measure = SPAN(tables->measure, AT(tables->measure_start, node), frequencies);
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
