/* Written by scripts/write_structs.py from keepsum.sampling.l1.splitting.kernel_arguments: change that, not this. */
#ifndef KEEPSUM_SPLITTING_ARGUMENTS_H
#define KEEPSUM_SPLITTING_ARGUMENTS_H

#include "core_arguments.h"
#include "l1_arguments.h"

#define GUIDE 128
#define PICK_ROOT 0
#define DRAW_ROWS 1
#define ACCEPT_ROW 2
#define LABEL_LEFT 3
#define ACCEPT_LEFT 4
#define LABEL_RIGHT 5
#define ACCEPT_RIGHT 6
#define FILL 7
#define OFFSET INT64_C(1099511627776)

typedef struct {
    Ints weight_start;
    Ints weight_reach;
    Floats weight_top;
    Floats weight_beyond;
    Floats weights;
    Floats weight_error;
    Ints left;
    Ints right;
    Ints reach;
    Ints place_start;
    Ints cumulative_start;
    Ints counts;
    Ints lowest;
    Floats slack;
    Floats inverse;
    Floats peak;
    Floats peak_chance;
    Ints number_start;
    Ints transform_start;
    Floats transform_error;
    Floats log_dropped;
    Floats log_growth;
    Floats cumulative;
    Ints guide;
    Floats log_numbers;
    Floats transform;
    Floats transform_imaginary;
    i64 stride;
} SplitTables;
_Static_assert(sizeof(SplitTables) == 440, "as Python packs it");

typedef struct {
    Ints start;
    Ints base;
    Ints copies;
    Ints reach;
    Ints law_start;
    Ints ratio_start;
    Floats ratios;
} GroupTables;
_Static_assert(sizeof(GroupTables) == 112, "as Python packs it");

typedef struct {
    SplitTables splits;
    GroupTables groups;
    i64 kinds;
    Ints kind_of_row;
    Ints left;
    Ints right;
    i64 inner;
    Ints law;
    Ints law_count;
    Ints base_start;
    Ints base_left;
    Ints base_right;
    Ints split_start;
    Ints group_start;
    Ints blocks;
    Ints frequencies;
    Ints measure_start;
    Floats measure;
    Floats log_alias;
    Ints is_real;
    Floats root_chances;
    double root_error;
    Ints entry_row;
    Ints entry_leaf;
    Ints entry_size;
    Ints entry_start;
    NoiseTable noise;
    SumTables sums;
    i64 width;
} SplittingTables;
_Static_assert(sizeof(SplittingTables) == 1064, "as Python packs it");

typedef struct {
    OutIntMatrix sums;
    OutInts group;
    OutInts base;
    OutInts swapped;
    OutFloats logs;
    OutFloats product;
    OutFloats product_imaginary;
} SplittingRoom;
_Static_assert(sizeof(SplittingRoom) == 120, "as Python packs it");

typedef struct {
    i64 first;
    i64 last;
    OutInts out;
    SplittingRoom room;
    i64 most;
} SplittingTask;
_Static_assert(sizeof(SplittingTask) == 160, "as Python packs it");

#endif
