/* Written by scripts/write_structs.py from keepsum.sampling.l1.focus.kernel_arguments: change that, not this. */
#ifndef KEEPSUM_FOCUS_ARGUMENTS_H
#define KEEPSUM_FOCUS_ARGUMENTS_H

#include "core_arguments.h"

#define PROPOSE_PART 0
#define ACCEPT_PART 1
#define OFFSET INT64_C(1099511627776)
#define PLACE_BITS 32
#define MANY 60
#define ROUNDING 0x1.0000000000000p-50

typedef struct {
    Ints left;
    Ints right;
    Ints value_start;
    Ints reach;
    Floats error;
    Floats beyond;
    Floats values;
    Ints split_start;
    Ints split_reach;
    Ints middle;
    Ints block;
    Floats peak;
    Ints root_kind;
    Ints root_start;
    Ints order;
    i64 halving_bits;
    i64 shift;
} FocusTables;
_Static_assert(sizeof(FocusTables) == 256, "as Python packs it");

typedef struct {
    OutInts kinds;
    OutInts sums;
} FocusRoom;
_Static_assert(sizeof(FocusRoom) == 32, "as Python packs it");

typedef struct {
    i64 first;
    i64 last;
    OutInts out;
    FocusRoom room;
    i64 most;
} FocusTask;
_Static_assert(sizeof(FocusTask) == 72, "as Python packs it");

#endif
