/* Written by scripts/write_structs.py from keepsum.sampling.l1.kernel_arguments: change that, not this. */
#ifndef KEEPSUM_L1_ARGUMENTS_H
#define KEEPSUM_L1_ARGUMENTS_H

#include "core_arguments.h"

#define FEW_COLUMNS 8
#define MANY_COLUMNS 12
#define LOW_DIGITS 24
#define PAIR_BITS 31
#define OR_MORE 262144
#define DRAW_FREE 0
#define ACCEPT_SINGLES 1
#define ACCEPT_WIDE 2
#define FILL_SOLVED 3

typedef struct {
    Words high;
    Words low;
    i64 column_bits;
    i64 low_bits;
    u64 usable;
} NoiseTable;
_Static_assert(sizeof(NoiseTable) == 56, "as Python packs it");

typedef struct {
    Floats values;
    Ints starts;
    Ints stride_bits;
    Floats scales;
    Floats errors;
    i64 shift;
} SumTables;
_Static_assert(sizeof(SumTables) == 88, "as Python packs it");

typedef struct {
    NoiseTable noise;
    SumTables sums;
    Ints sizes;
    Ints goals;
    Ints starts;
    i64 width;
} RegionTables;
_Static_assert(sizeof(RegionTables) == 200, "as Python packs it");

typedef struct {
    NoiseTable noise;
    SumTables sums;
    Ints sizes;
    Ints starts;
    Ints free;
    i64 singles;
    Ints solved;
    Ints laws;
    IntMatrix numerators;
    i64 denominator;
    i64 width;
} SolvedTables;
_Static_assert(sizeof(SolvedTables) == 272, "as Python packs it");

typedef struct {
    OutInts single_sums;
    OutInts free_sums;
    OutInts solved_sums;
} SolvedRoom;
_Static_assert(sizeof(SolvedRoom) == 48, "as Python packs it");

typedef struct {
    i64 first;
    i64 last;
    OutInts out;
    SolvedRoom room;
    i64 most;
} SolvedTask;
_Static_assert(sizeof(SolvedTask) == 88, "as Python packs it");

#endif
