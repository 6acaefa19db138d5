/* What column splitting decides by floats, one decision at a time, so that l1/test_splitting_bounds.py can call it. */
#include "splitting.c"

KERNEL i64 try_sum(
    const Words *words, const States *states, const SplitTables *splits, const i64 *shift, const i64 *split, const i64 *y
) {
    return draw_sum(*words, states->at, splits, *shift, *split, *y);
}

KERNEL i64 try_label(
    const Words *words, const States *states, const SplittingTables *tables, const SplittingRoom *room,
    const i64 *bundle
) {
    return pick_label(*words, states->at, tables, room, bundle_of(tables, room, *bundle));
}

KERNEL i64 try_bundle(
    const Words *words, const States *states, const SplittingTables *tables, const SplittingRoom *room,
    const i64 *bundle
) {
    return accept_bundle(*words, states->at, tables, room, bundle_of(tables, room, *bundle));
}
