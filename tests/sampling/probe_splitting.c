/* What column splitting decides by floats, one decision at a time, so that l1/test_splitting_bounds.py can call it. */
#include "splitting.c"

KERNEL i64 try_sum(
    const Words *words, const States *states, const SplitTables *splits, const i64 *shift, const i64 *split, const i64 *y
) {
    return draw_sum(*words, states->at, splits, *shift, *split, *y);
}

KERNEL i64 try_root(
    const Words *words, const States *states, const SplittingTables *tables, const SplittingRoom *room
) {
    return pick_root(*words, states->at, tables, room);
}

KERNEL i64 try_label(
    const Words *words, const States *states, const SplittingTables *tables, const SplittingRoom *room, const i64 *node
) {
    return pick_label(*words, states->at, tables, room, *node);
}

KERNEL i64 try_node(
    const Words *words, const States *states, const SplittingTables *tables, const SplittingRoom *room, const i64 *node
) {
    return accept_node(*words, states->at, tables, room, *node);
}
