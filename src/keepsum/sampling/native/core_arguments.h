/* Written by scripts/write_structs.py from keepsum.sampling.core.kernel_arguments: change that, not this. */
#ifndef KEEPSUM_CORE_ARGUMENTS_H
#define KEEPSUM_CORE_ARGUMENTS_H

#include "types.h"

#define DONE 0
#define MORE (-1)
#define TIE_DRAW (-2)
#define TIE_ACCEPT (-3)
#define WORD_BITS 64
#define HALF_BITS 32
#define OUTCOME_BITS 20
#define ACCEPT_BITS 52
#define TINY 0x1.8f2b061aea072p-964
#define UNLIMITED INT64_C(4611686018427387904)

typedef struct {
    i64 position;
    i64 answer;
    i64 job;
    i64 tries;
    i64 stage;
    i64 filled;
    i64 rest;
    i64 cell;
    i64 total;
    i64 phase;
    i64 region;
    i64 row_sum;
    i64 others_sum;
    i64 part_total;
    i64 every;
    i64 bundle;
    i64 row;
    i64 solved;
    i64 rows_drawn;
    i64 node;
    i64 step;
    i64 high;
    i64 low;
    i64 table;
    i64 low_bits;
    i64 value;
    i64 centre_numerator;
    i64 centre_denominator;
    i64 share_numerator;
    i64 share_denominator;
    double log_theta;
    double log_theta_centred;
} ExactState;
_Static_assert(sizeof(ExactState) == 256, "as NumPy lays it out");
typedef struct {
    ExactState *at;
    i64 size;
} ExactStates;

typedef struct {
    i64 first;
    i64 last;
    OutInts out;
    i64 most;
} Task;
_Static_assert(sizeof(Task) == 40, "as Python packs it");

typedef struct {
    i64 first;
    i64 last;
    OutIntMatrix out;
    i64 most;
} RowsTask;
_Static_assert(sizeof(RowsTask) == 48, "as Python packs it");

typedef struct {
    OutInts out;
    i64 start;
    i64 size;
} Cells;
_Static_assert(sizeof(Cells) == 32, "as Python packs it");

typedef struct {
    Words table;
    Word16s guide;
    i64 shift;
    i64 guide_shift;
} PackedTables;
_Static_assert(sizeof(PackedTables) == 48, "as Python packs it");

#endif
