/* Sums split into parts, from the roots down to the cells.
 *
 * The law is double geometric noise whose nested totals have weights of their own: l1/focus/sampler.py.
 */
#include "focus_arguments.h"
#include "kernels.h"

typedef struct { double low, high; } Bounds;

/* Bounds on the weight of a sum relative to that of 0; 1 if there is no such part. */
INNER Bounds weights(const FocusTables *tables, i64 kind, i64 total) {
    if (kind < 0) return (Bounds){1.0, 1.0};
    i64 distance = magnitude(total);
    if (distance > AT(tables->reach, kind)) return (Bounds){0.0, AT(tables->beyond, kind)};
    double value = AT(tables->values, AT(tables->value_start, kind) + distance), error = AT(tables->error, kind);
    return (Bounds){larger(0.0, value * (1.0 - ROUNDING) - error), value * (1.0 + ROUNDING) + error};
}

/* Bounds on the chance that a part u of y is accepted, proposed in block `step`. */
INNER Bounds chances(const FocusTables *tables, i64 kind, i64 y, i64 u, i64 step) {
    if (step > MANY) return (Bounds){0.0, 1.0};
    Bounds left = weights(tables, AT(tables->left, kind), u), right = weights(tables, AT(tables->right, kind), y - u);
    double scale = (double)((i64)1 << step) / AT(tables->peak, AT(tables->split_start, kind) + y);
    double low = left.low * right.low * scale * (1.0 - ROUNDING);
    return (Bounds){low, lesser(1.0, left.high * right.high * scale * (1.0 + ROUNDING) + TINY)};
}

/* The first `halving_bits` of a proposal's word behind its side. */
INNER u64 halvings_of(u64 word, i64 halving_bits) { return (word >> PLACE_BITS) & (((u64)1 << halving_bits) - 1); }

/* Its last 32 bits, the place in a block of such a length, whole and fraction. */
INNER u64 place_of(u64 word, u64 length) { return (word & UINT32_MAX) * length; }

/* The part that is so far from the middle, on the side that a word says. */
INNER i64 part_at(i64 middle, u64 word, i64 distance) { return middle + (word >> 63 ? distance : -1 - distance); }

/* Propose a part: a side, a block, `state->step`, and a place in it. DONE, or MORE.
 *
 * A word has a bit for the side, some for the block, the number of zeros before the first one, and 32 for the place x:
 * floor(x b / 2^32) is uniform if the x with x b mod 2^32 < 2^32 mod b are left out. */
static i64 propose_part(Words words, State *state, const FocusTables *tables, i64 place) {
    i64 bits = tables->halving_bits;
    u64 length = (u64)AT(tables->block, place);
    while (state->position < words.size) {
        u64 word = AT(words, state->position), halvings = halvings_of(word, bits);
        state->position += 1;
        if (halvings == 0) {
            state->step += bits;
            continue;
        }
        u64 product = place_of(word, length), fraction = product & UINT32_MAX;
        if (fraction < length && fraction < ((u64)1 << PLACE_BITS) % length) {
            state->step = 0;
            continue;
        }
        state->step += bits - bit_length((i64)halvings);
        i64 distance = state->step * (i64)length + (i64)(product >> PLACE_BITS);
        state->value = part_at(AT(tables->middle, place), word, distance);
        state->tries += 1;
        return DONE;
    }
    return MORE;
}

/* The left part of a sum y >= 0, with OFFSET added; or MORE, or TIE_DRAW, or TIE_ACCEPT. */
static i64 draw_part(Words words, State *state, const FocusTables *tables, i64 kind, i64 y) {
    if (y > AT(tables->split_reach, kind)) {
        i64 value = settled(state);
        if (value >= 0) return value;
        return state->position < words.size ? TIE_DRAW : MORE;
    }
    for (;;) {
        i64 code;
        if (state->stage == PROPOSE_PART) {
            code = propose_part(words, state, tables, AT(tables->split_start, kind) + y);
            if (code != DONE) return code;
            state->stage = ACCEPT_PART;
        }
        Bounds chance = chances(tables, kind, y, state->value, state->step);
        code = accept(words, state, tables->shift, chance.low, chance.high);
        if (code < 0) return code;
        state->stage = PROPOSE_PART;
        state->step = 0;
        if (code == 1) return state->value + OFFSET;
    }
}

/* Propose and accept a part of a sum y >= 0 with the two words at hand: 1 or 0, and the part; or MORE, if a comparison
 * is left open or a proposal takes more words: then nothing has happened, and `draw_part` does the same step by step. */
INNER i64 try_part(Words words, i64 position, const FocusTables *tables, i64 kind, i64 y, i64 *part) {
    i64 place = AT(tables->split_start, kind) + y;
    u64 word = AT(words, position), halvings = halvings_of(word, tables->halving_bits);
    u64 length = (u64)AT(tables->block, place), product = place_of(word, length);
    if (halvings == 0 || (product & UINT32_MAX) < length) return MORE;
    i64 step = tables->halving_bits - bit_length((i64)halvings);
    i64 distance = step * (i64)length + (i64)(product >> PLACE_BITS);
    *part = part_at(AT(tables->middle, place), word, distance);
    Bounds chance = chances(tables, kind, y, *part, step);
    return compare(AT(words, position + 1), tables->shift, chance.low, chance.high);
}

/* The sum on top of those that wait is its left part, and behind that waits the right one; returns the new top. */
INNER i64 put_parts(const FocusTables *tables, const FocusRoom *room, i64 top, i64 left_sum) {
    i64 kind = AT(room->kinds, top), left = AT(tables->left, kind), right = AT(tables->right, kind);
    if (right >= 0) {
        AT(room->kinds, top) = right;
        AT(room->sums, top) -= left_sum;
        top += 1;
    }
    AT(room->kinds, top) = left;
    AT(room->sums, top) = left_sum;
    return top;
}

/* Split sums as far as the words at hand and the absence of ties allow: the loop where the time goes. */
static void split_quickly(
    Words words, State *state, const FocusTables *tables, const FocusRoom *room, OutInts out, i64 base, i64 start
) {
    i64 position = state->position, top = state->node - 1, cell = state->cell, tries = 0, last = words.size - 2;
    while (top >= 0 && position <= last) {
        i64 kind = AT(room->kinds, top), y = AT(room->sums, top), u;
        if (AT(tables->left, kind) < 0) {
            AT(out, base + AT(tables->order, start + cell)) = y;
            cell += 1;
            top -= 1;
            continue;
        }
        if (magnitude(y) > AT(tables->split_reach, kind)) break;
        i64 code = try_part(words, position, tables, kind, magnitude(y), &u);
        if (code < 0) break;
        position += 2;
        tries += 1;
        if (code == 1) top = put_parts(tables, room, top, y >= 0 ? u : -u);
    }
    state->position = position;
    state->node = top + 1;
    state->cell = cell;
    state->tries += tries;
}

/* Split sums until all are cells, the left part of each first; `state->node` of them are waiting. */
static i64 split_sums(
    Words words, State *state, const FocusTables *tables, const FocusRoom *room, OutInts out, i64 base, i64 start
) {
    while (state->node > 0) {
        if (state->stage == PROPOSE_PART && state->step == 0 && state->answer < 0) {
            split_quickly(words, state, tables, room, out, base, start);
            if (state->node == 0) break;
        }
        i64 top = state->node - 1, kind = AT(room->kinds, top), y = AT(room->sums, top);
        if (AT(tables->left, kind) < 0) {
            AT(out, base + AT(tables->order, start + state->cell)) = y;
            state->cell += 1;
            state->node = top;
            continue;
        }
        i64 value = draw_part(words, state, tables, kind, magnitude(y));
        if (value < 0) return value;
        state->node = put_parts(tables, room, top, y >= 0 ? value - OFFSET : OFFSET - value) + 1;
    }
    return DONE;
}

/* Job t is root t % R of draw t / R. */
KERNEL i64 fill_trees(const Words *words, const States *states, const FocusTables *tables, const FocusTask *task) {
    State *state = states->at;
    const FocusRoom *room = &task->room;
    i64 count = tables->root_kind.size, width = tables->order.size;
    while (task->first + state->job < task->last) {
        i64 job = task->first + state->job, root = job % count;
        if (state->node == 0) {
            AT(room->kinds, 0) = AT(tables->root_kind, root);
            AT(room->sums, 0) = 0;
            state->node = 1;
        }
        i64 start = AT(tables->root_start, root);
        i64 code = split_sums(*words, state, tables, room, task->out, job / count * width, start);
        if (code != DONE) return code;
        state->cell = 0;
        state->job += 1;
    }
    return DONE;
}
