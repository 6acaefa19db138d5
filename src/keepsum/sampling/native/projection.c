/* Two-way tables: excess is moved along cheapest paths of rows, columns and entries, in integers alone.
 *
 * projection/tables.py has the method, a capacity scaling for convex costs, and why it is exact; it refuses tables whose
 * costs and prices could leave 2^60, so that no sum here wraps.
 */
#include "kernels.h"
#include "projection_arguments.h"

#define FAR UNLIMITED /* a distance that no node has */

/* -- what a unit costs -------------------------------------------------------------------------- */

/* What the cells of an entry add up to at a level. */
static i64 sum_at(const Entries *table, i64 e, i64 level) {
    i64 start = AT(table->start, e), low = start, high = AT(table->start, e + 1);
    while (low < high) {
        i64 middle = (low + high) / 2;
        if (AT(table->counts, middle) > level) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > start ? AT(table->upto, low - 1) - (low - start) * level : 0;
}

/* The smallest level at which the cells of an entry add up to at most a total (projection/nearest.py). */
INNER i64 level_at(const Entries *table, i64 e, i64 total) {
    i64 first = AT(table->start, e), low = 1, high = AT(table->start, e + 1) - first;
    while (low < high) {
        i64 middle = (low + high + 1) / 2, place = first + middle - 1;
        if (AT(table->upto, place) - middle * AT(table->counts, place) <= total) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    i64 rest = total - AT(table->upto, first + low - 1);
    return -(low == 1 ? rest : floor_quotient(rest, low)); /* most entries are one cell, and divisions are slow */
}

/* What the next unit of an entry costs: it grows with the total. */
INNER i64 cost(const Entries *table, i64 e, i64 total) {
    i64 level = level_at(table, e, total);
    return -level + (level <= 0 ? table->step : 0);
}

/* What it costs, beyond the prices, to lower or raise an entry; FAR if it cannot be lowered by this amount. */
INNER i64 reduced(const Entries *table, const Flow *flow, i64 e, bool lowers, i64 amount) {
    i64 price = AT(flow->price, AT(table->row, e)) + AT(flow->price, AT(table->column, e));
    if (!lowers) return cost(table, e, AT(flow->sums, e)) - price;
    if (AT(flow->sums, e) < amount) return FAR;
    return price - cost(table, e, AT(flow->sums, e) - amount);
}

/* -- cheapest paths ----------------------------------------------------------------------------- */

/* Put a node on the heap. */
INNER void push(const Flow *flow, i64 size, i64 distance, i64 node) {
    i64 k = size;
    while (k > 0 && AT(flow->heap_distance, (k - 1) / 2) > distance) {
        AT(flow->heap_distance, k) = AT(flow->heap_distance, (k - 1) / 2);
        AT(flow->heap_node, k) = AT(flow->heap_node, (k - 1) / 2);
        k = (k - 1) / 2;
    }
    AT(flow->heap_distance, k) = distance;
    AT(flow->heap_node, k) = node;
}

/* Take the first node off the heap of this size: the last one replaces it and moves down. */
INNER void pop(const Flow *flow, i64 size) {
    i64 distance = AT(flow->heap_distance, size - 1), node = AT(flow->heap_node, size - 1), k = 0;
    while (2 * k + 1 < size - 1) {
        i64 child = 2 * k + 1;
        if (child + 1 < size - 1 && AT(flow->heap_distance, child + 1) < AT(flow->heap_distance, child)) child++;
        if (AT(flow->heap_distance, child) >= distance) break;
        AT(flow->heap_distance, k) = AT(flow->heap_distance, child);
        AT(flow->heap_node, k) = AT(flow->heap_node, child);
        k = child;
    }
    AT(flow->heap_distance, k) = distance;
    AT(flow->heap_node, k) = node;
}

/* Dijkstra from all nodes with excess to the nearest with a deficit; false if none can be reached.
 *
 * Prices are then such that nothing costs less than 0 and cheapest paths cost 0. */
static bool reprice(const Entries *table, const Flow *flow, i64 amount) {
    i64 nodes = flow->price.size, rows = table->rows, size = 0, nearest = FAR;
    for (i64 node = 0; node < nodes; node++) {
        bool source = AT(flow->excess, node) >= amount;
        AT(flow->distance, node) = source ? 0 : FAR;
        if (source) push(flow, size++, 0, node);
    }
    while (size > 0 && nearest == FAR) {
        i64 distance = AT(flow->heap_distance, 0), node = AT(flow->heap_node, 0);
        pop(flow, size--);
        if (distance > AT(flow->distance, node)) continue;
        if (AT(flow->excess, node) <= -amount) nearest = distance;
        for (i64 k = AT(table->pointers, node); k < AT(table->pointers, node + 1); k++) {
            i64 e = AT(table->at, k), arc = reduced(table, flow, e, node < rows, amount);
            i64 other = node < rows ? AT(table->column, e) : AT(table->row, e);
            if (arc < FAR && distance + arc < AT(flow->distance, other)) {
                AT(flow->distance, other) = distance + arc;
                push(flow, size++, distance + arc, other);
            }
        }
    }
    if (nearest == FAR) return false;
    for (i64 node = 0; node < nodes; node++) {
        i64 moved = least(AT(flow->distance, node), nearest);
        AT(flow->price, node) += node < rows ? moved : -moved;
    }
    return true;
}

/* Move an amount along the path: entries on steps from a row are lowered, the others raised. */
static void move(const Entries *table, const Flow *flow, i64 depth, i64 amount) {
    for (i64 k = 0; k < depth; k++) {
        i64 e = AT(flow->entry, k), node = AT(flow->path, k);
        AT(flow->sums, e) += node == AT(table->row, e) ? -amount : amount;
        AT(flow->seen, node) = 0;
    }
    AT(flow->seen, AT(flow->path, depth)) = 0;
    AT(flow->excess, AT(flow->path, 0)) -= amount;
    AT(flow->excess, AT(flow->path, depth)) += amount;
}

/* The next node to which a step costs nothing, by `next_arc`, or -1. */
static i64 free_step(const Entries *table, const Flow *flow, i64 node, i64 amount) {
    while (AT(flow->next_arc, node) < AT(table->pointers, node + 1)) {
        i64 e = AT(table->at, AT(flow->next_arc, node));
        bool lowers = node == AT(table->row, e);
        i64 other = lowers ? AT(table->column, e) : AT(table->row, e);
        if (AT(flow->seen, other) == 0 && reduced(table, flow, e, lowers, amount) == 0) return other;
        AT(flow->next_arc, node) += 1;
    }
    return -1;
}

/* From each node with excess, depth first along steps that cost nothing, to nodes with a deficit. */
static void move_along_free_paths(const Entries *table, const Flow *flow, i64 amount) {
    i64 nodes = flow->price.size;
    for (i64 node = 0; node < nodes; node++) {
        AT(flow->seen, node) = 0;
        AT(flow->next_arc, node) = AT(table->pointers, node);
    }
    for (i64 source = 0; source < nodes; source++) {
        i64 depth = -1;
        if (AT(flow->excess, source) >= amount && AT(flow->seen, source) == 0) {
            depth = 0;
            AT(flow->path, 0) = source;
            AT(flow->seen, source) = 1;
        }
        while (depth >= 0) {
            i64 node = AT(flow->path, depth);
            if (AT(flow->excess, node) <= -amount) {
                move(table, flow, depth, amount);
                depth = -1;
                if (AT(flow->excess, source) >= amount) {
                    depth = 0;
                    AT(flow->seen, source) = 1;
                }
                continue;
            }
            i64 other = free_step(table, flow, node, amount);
            if (other >= 0) {
                AT(flow->entry, depth) = AT(table->at, AT(flow->next_arc, node));
                depth++;
                AT(flow->path, depth) = other;
                AT(flow->seen, other) = 1;
            } else { /* nothing leads on from here, until prices change */
                depth--;
            }
        }
    }
}

/* Move excess along cheapest paths, for so many rounds of new prices; 0 if none can be moved any more, else 1. */
KERNEL i64 settle(const Entries *table, const Flow *flow, const i64 *amount, const i64 *rounds) {
    for (i64 round = 0; round < *rounds; round++) {
        if (!reprice(table, flow, *amount)) return 0;
        move_along_free_paths(table, flow, *amount);
    }
    return 1;
}

/* Lower entries by half of the amount before, where that costs less than the prices. */
KERNEL i64 lower_where_it_pays(const Entries *table, const Flow *flow, const i64 *amount) {
    for (i64 e = 0; e < flow->sums.size; e++) {
        if (reduced(table, flow, e, true, *amount) < 0) {
            AT(flow->sums, e) -= *amount;
            AT(flow->excess, AT(table->row, e)) -= *amount;
            AT(flow->excess, AT(table->column, e)) += *amount;
        }
    }
    return DONE;
}

/* -- the first of all nearest tables ------------------------------------------------------------ */

/* By how many units an entry can be lowered or raised at the price of the first. */
static i64 units(const Entries *table, const Flow *flow, i64 e, bool lowers) {
    i64 sum = AT(flow->sums, e);
    if (lowers) return sum - sum_at(table, e, level_at(table, e, sum - 1));
    return sum_at(table, e, level_at(table, e, sum) - 1) - sum;
}

/* Breadth first from the row of an entry to its column, by later entries and steps that cost nothing.
 *
 * `entry` is then the entry by which each node was reached, and `path` the nodes in that order. */
static bool find_way(const Entries *table, const Flow *flow, i64 first) {
    for (i64 node = 0; node < flow->price.size; node++) AT(flow->seen, node) = 0;
    i64 head = 0, tail = 1;
    AT(flow->path, 0) = AT(table->row, first);
    AT(flow->seen, AT(table->row, first)) = 1;
    while (head < tail) {
        i64 node = AT(flow->path, head);
        head++;
        for (i64 k = AT(table->pointers, node); k < AT(table->pointers, node + 1); k++) {
            i64 e = AT(table->at, k);
            bool lowers = node == AT(table->row, e);
            i64 other = lowers ? AT(table->column, e) : AT(table->row, e);
            if (e > first && AT(flow->seen, other) == 0 && reduced(table, flow, e, lowers, 1) == 0) {
                AT(flow->seen, other) = 1;
                AT(flow->entry, other) = e;
                AT(flow->path, tail) = other;
                tail++;
                if (other == AT(table->column, first)) return true;
            }
        }
    }
    return false;
}

/* Raise an entry by what the way that was found carries at no cost. */
static void shift(const Entries *table, const Flow *flow, i64 first) {
    i64 amount = units(table, flow, first, false), origin = AT(table->row, first);
    i64 node = AT(table->column, first);
    while (node != origin) {
        i64 e = AT(flow->entry, node);
        bool lowers = node == AT(table->column, e);
        amount = least(amount, units(table, flow, e, lowers));
        node = lowers ? AT(table->row, e) : AT(table->column, e);
    }
    node = AT(table->column, first);
    while (node != origin) {
        i64 e = AT(flow->entry, node);
        bool lowers = node == AT(table->column, e);
        AT(flow->sums, e) += lowers ? -amount : amount;
        node = lowers ? AT(table->row, e) : AT(table->column, e);
    }
    AT(flow->sums, first) += amount;
}

/* Raise each entry in turn as far as later entries can make up for it at no cost.
 *
 * While nothing is shifted, fewer and fewer entries are later ones: what could not be reached from a row stays so. */
KERNEL i64 prefer_first(const Entries *table, const Flow *flow, const i64 *begin, const i64 *end) {
    i64 searched = -1; /* the row from which a search has ended in vain, since something was shifted */
    for (i64 e = *begin; e < *end; e++) {
        while (reduced(table, flow, e, false, 1) == 0) {
            if (searched == AT(table->row, e) && AT(flow->seen, AT(table->column, e)) == 0) break;
            if (!find_way(table, flow, e)) {
                searched = AT(table->row, e);
                break;
            }
            shift(table, flow, e);
            searched = -1;
        }
    }
    return DONE;
}
