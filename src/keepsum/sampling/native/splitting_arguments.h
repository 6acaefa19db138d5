/* Written by scripts/write_structs.py from keepsum.sampling.l1.splitting.kernel_arguments: change that, not this. */
#ifndef KEEPSUM_SPLITTING_ARGUMENTS_H
#define KEEPSUM_SPLITTING_ARGUMENTS_H

#include "core_arguments.h"
#include "l1_arguments.h"

#define GUIDE 256
#define PICK_LABEL 0
#define ACCEPT_BUNDLE 1
#define DRAW_ROWS 2
#define ACCEPT_SUM 3
#define DRAW_SOLVED 4
#define ACCEPT_ROW 5
#define FILL 6
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
    Floats log_largest;
    Floats log_growth;
    Floats cumulative;
    Word16s guide;
    Floats log_numbers;
    Floats transform;
    Floats transform_imaginary;
    i64 stride;
} SplitTables;
_Static_assert(sizeof(SplitTables) == 456, "as Python packs it");

typedef struct {
    Ints start;
    Ints base;
    Ints reach;
    Ints law_start;
    Ints ratio_start;
    Floats ratios;
} GroupTables;
_Static_assert(sizeof(GroupTables) == 96, "as Python packs it");

typedef struct {
    SplitTables splits;
    GroupTables groups;
    Ints start;
    Ints at;
    Ints left;
    Ints right;
    Ints law;
    Ints below;
    Ints tagged;
    Ints tag_start;
    Ints tags;
    Ints restart;
    Ints form;
    Ints law_count;
    Ints split_start;
    Ints group_start;
    Ints blocks;
    Ints few;
    Ints frequencies;
    Ints measure_start;
    Floats measure;
    Ints points;
    Ints turn_start;
    Floats cosines;
    Floats sines;
    Floats growth;
    Floats centre;
    Floats log_alias;
    Ints bases;
    Ints root_start;
    Floats root_chances;
    Floats root_error;
    Ints entry_at;
    Ints entry_size;
    Ints entry_start;
    NoiseTable noise;
    SumTables sums;
    i64 solved_rows;
    i64 solved_every;
    i64 width;
} SplittingTables;
_Static_assert(sizeof(SplittingTables) == 1248, "as Python packs it");

typedef struct {
    OutInts sums;
    OutInts group;
    OutInts base;
    OutFloats logs;
    OutFloats product;
    OutFloats product_imaginary;
    OutFloats part;
} SplittingRoom;
_Static_assert(sizeof(SplittingRoom) == 112, "as Python packs it");

typedef struct {
    i64 first;
    i64 last;
    OutInts out;
    SplittingRoom room;
    i64 most;
} SplittingTask;
_Static_assert(sizeof(SplittingTask) == 152, "as Python packs it");

#endif
