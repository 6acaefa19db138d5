/* Written by scripts/write_structs.py from keepsum.projection.kernel_arguments: change that, not this. */
#ifndef KEEPSUM_PROJECTION_ARGUMENTS_H
#define KEEPSUM_PROJECTION_ARGUMENTS_H

#include "core_arguments.h"

typedef struct {
    Ints row;
    Ints column;
    Ints start;
    Ints counts;
    Ints upto;
    Ints pointers;
    Ints at;
    i64 step;
    i64 rows;
} Entries;
_Static_assert(sizeof(Entries) == 128, "as Python packs it");

typedef struct {
    OutInts sums;
    OutInts price;
    OutInts excess;
    OutInts distance;
    OutInt8s seen;
    OutInts next_arc;
    OutInts path;
    OutInts entry;
    OutInts heap_distance;
    OutInts heap_node;
} Flow;
_Static_assert(sizeof(Flow) == 160, "as Python packs it");

#endif
