/* Tables by splitting columns: what the loops over nodes (splitting.c) need of labels and factors
 * (splitting_factors.c). */
#ifndef KEEPSUM_SPLITTING_H
#define KEEPSUM_SPLITTING_H

#include "l1.h"
#include "splitting_arguments.h"

/* The split of a row at a node with that base. */
INNER i64 split_of_row(const SplittingTables *tables, i64 node, i64 base, i64 row) {
    i64 law = AT(tables->law, node * tables->kinds + AT(tables->kind_of_row, row));
    return AT(tables->split_start, node) + base * AT(tables->law_count, node) + law;
}

/* The base of the root, by its cumulative chances; DONE, MORE or TIE_ACCEPT. */
i64 pick_root(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room);

/* Choose a label for the sums below a node, with the chances of the labels relative to the group: 1, or 0 if none. A
 * group of one label is left to `accept_node`. */
i64 pick_label(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, i64 node);

/* Accept the sums below an inner node with chance B over the sum, over blocks, of products of t. */
i64 accept_node(Words words, State *state, const SplittingTables *tables, const SplittingRoom *room, i64 node);

#endif
