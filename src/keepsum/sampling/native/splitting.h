/* Tables by splitting columns: what the loops over bundles (splitting.c) need of labels and factors
 * (splitting_factors.c). */
#ifndef KEEPSUM_SPLITTING_H
#define KEEPSUM_SPLITTING_H

#include "l1.h"
#include "splitting_arguments.h"

/* A bundle: its places, its form, and the first of the splits of its base. */
typedef struct { i64 number, first, rows, form, base, splits; } Bundle;

INNER Bundle bundle_of(const SplittingTables *tables, const SplittingRoom *room, i64 number) {
    i64 first = AT(tables->start, number), form = AT(tables->form, number), base = AT(room->base, number);
    i64 splits = AT(tables->split_start, form) + base * AT(tables->law_count, form);
    return (Bundle){number, first, AT(tables->start, number + 1) - first, form, base, splits};
}

/* The split of a row of a bundle, and its sum. */
INNER i64 split_of_row(const SplittingTables *tables, Bundle bundle, i64 row) {
    return bundle.splits + AT(tables->law, bundle.first + row);
}

INNER i64 sum_of_row(const SplittingTables *tables, const SplittingRoom *room, Bundle bundle, i64 row) {
    return AT(room->sums, AT(tables->at, bundle.first + row));
}

/* Choose a label for the sums of a bundle, with the chances of the labels relative to the group, or a base where all sums
 * are 0: 1, or 0 if none. A group of one label is left to `accept_bundle`. */
i64 pick_label(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, Bundle bundle);

/* Accept the sums of a bundle with chance B over the sum, over blocks, of products of t; always where all are 0. */
i64 accept_bundle(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, Bundle bundle);

/* The transform of the sum over every so-manieth row, with what bounds it, kept in the room for `accept_others`; false if
 * too little is known of it, because hardly any of these rows can split: then all rows are solved for. */
bool multiply_part(State *state, const SplittingTables *tables, const SplittingRoom *room, Bundle bundle);

/* Accept the sum over all other rows with the chance that this part has the sum that is needed, over a bound on it: 1 or
 * 0, or MORE, or TIE_ACCEPT. */
i64 accept_others(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, Bundle bundle);

#endif
