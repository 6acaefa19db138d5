/* Written by scripts/write_structs.py from keepsum.sampling.gaussian.kernel_arguments: change that, not this. */
#ifndef KEEPSUM_GAUSSIAN_ARGUMENTS_H
#define KEEPSUM_GAUSSIAN_ARGUMENTS_H

#include "core_arguments.h"

#define PROPOSE 0
#define ADD_LOW 1
#define ACCEPT 2
#define SAMPLE 0
#define FILL 1
#define DECIDE 2
#define WIDE_VARIANCE 0x1.71eb851eb851fp+1
#define WIDE_LOSS 0x1.357c299a88ea7p-80
#define THETA_ERROR 0x1.c25c268497682p-44
#define TOP 0x1.2000000000000p+11
#define SCALE 0x1.0000000000000p+52
#define FARTHEST_CENTRE 0x1.8000000000000p-1
#define ERROR 0x1.0000000000000p-46

typedef struct {
    Floats square;
    Floats largest;
    PackedTables packed;
    Ints table_start;
    Ints guide_start;
} GaussianTables;
_Static_assert(sizeof(GaussianTables) == 112, "as Python packs it");

typedef struct {
    GaussianTables gaussian;
    Floats variances;
    i64 width;
} FreeTables;
_Static_assert(sizeof(FreeTables) == 136, "as Python packs it");

typedef struct {
    GaussianTables gaussian;
    Floats variances;
    i64 deciding;
    Ints sizes;
    Ints goals;
    Ints starts;
    i64 width;
} SumsTables;
_Static_assert(sizeof(SumsTables) == 192, "as Python packs it");

typedef struct {
    GaussianTables gaussian;
    Floats variances;
    i64 deciding;
    Ints shape;
    Ints level_start;
    i64 per_row;
} FullTables;
_Static_assert(sizeof(FullTables) == 176, "as Python packs it");

typedef struct {
    OutFloats log_weights;
    OutInts sums;
    OutInts innovation;
    OutInts indices;
} FullRoom;
_Static_assert(sizeof(FullRoom) == 64, "as Python packs it");

typedef struct {
    Floats shares;
    Ints pointers;
    Ints rows;
    Floats factors;
    Ints basis_pointers;
    Ints basis_rows;
    Ints basis_values;
} FactorTables;
_Static_assert(sizeof(FactorTables) == 112, "as Python packs it");

typedef struct {
    GaussianTables gaussian;
    Floats variances;
    i64 deciding;
    FactorTables factor;
    Floats form;
    Ints sizes;
    Ints starts;
    i64 width;
    i64 per_row;
} BlockTables;
_Static_assert(sizeof(BlockTables) == 312, "as Python packs it");

typedef struct {
    OutFloats log_weights;
    OutInts coordinates;
    OutFloats centres;
    OutInts sums;
} BlockRoom;
_Static_assert(sizeof(BlockRoom) == 64, "as Python packs it");

typedef struct {
    i64 first;
    i64 last;
    OutInts out;
    OutFloats room;
    i64 most;
} WeightsTask;
_Static_assert(sizeof(WeightsTask) == 56, "as Python packs it");

typedef struct {
    i64 first;
    i64 last;
    OutInts out;
    FullRoom room;
    i64 most;
} FullTask;
_Static_assert(sizeof(FullTask) == 104, "as Python packs it");

typedef struct {
    i64 first;
    i64 last;
    OutInts out;
    BlockRoom room;
    i64 most;
} BlockTask;
_Static_assert(sizeof(BlockTask) == 104, "as Python packs it");

#endif
