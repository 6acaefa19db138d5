/* Written by scripts/write_structs.py from keepsum.sampling.general.kernel_arguments: change that, not this. */
#ifndef KEEPSUM_GENERAL_ARGUMENTS_H
#define KEEPSUM_GENERAL_ARGUMENTS_H

#include "core_arguments.h"

#define FLOOR 0x1.47ae147ae147bp-6
#define GUIDE 4096
#define LEAST_SQUARE 0x1.56e1fc2f8f359p-997
#define FAINT -0x1.5000000000000p+5
#define MOST_SHIFT 1024

typedef struct {
    i64 position;
    i64 answer;
    i64 job;
    i64 tries;
    i64 step;
    i64 exceeded;
} ChainState;
_Static_assert(sizeof(ChainState) == 48, "as NumPy lays it out");
typedef struct {
    ChainState *at;
    i64 size;
} ChainStates;

typedef struct {
    Ints start;
    Floats edge;
    Floats height;
    Floats unheight;
    Floats slope;
    Floats passed;
    Int32Matrix guide;
    Floats power;
    Floats half;
    Ints ratio_start;
    Floats ratios;
} ScaleTables;
_Static_assert(sizeof(ScaleTables) == 184, "as Python packs it");

typedef struct {
    Ints law;
    i64 slabs;
    i64 simple;
    Ints pointers;
    Ints rows;
    Floats values;
    Ints profile;
} SlabTables;
_Static_assert(sizeof(SlabTables) == 96, "as Python packs it");

typedef struct {
    OutFloats squares;
    OutFloats variances;
    OutFloatCube precisions;
    OutFloatMatrix form;
    OutFloatMatrix inverse;
    OutFloatMatrix sums;
    OutFloats roots;
    OutFloats centres;
    OutFloats coordinates;
    OutFloats passed;
} MixtureRoom;
_Static_assert(sizeof(MixtureRoom) == 200, "as Python packs it");

typedef struct {
    ScaleTables scales;
    SlabTables slabs;
    i64 words_per_proposal;
} MixtureTables;
_Static_assert(sizeof(MixtureTables) == 288, "as Python packs it");

typedef struct {
    MixtureRoom mixture;
    OutFloats log_weights;
    OutInts candidate;
} ChainRoom;
_Static_assert(sizeof(ChainRoom) == 232, "as Python packs it");

typedef struct {
    MixtureTables mixture;
    double log_bound;
} RejectionTables;
_Static_assert(sizeof(RejectionTables) == 296, "as Python packs it");

typedef struct {
    MixtureTables mixture;
    double log_cap;
    i64 steps;
    i64 fresh;
} ChainTables;
_Static_assert(sizeof(ChainTables) == 312, "as Python packs it");

typedef struct {
    MixtureTables mixture;
    double log_cap;
    i64 lag;
    i64 last;
} PairTables;
_Static_assert(sizeof(PairTables) == 312, "as Python packs it");

typedef struct {
    Ints law;
    Ints starts;
    Floats logs;
    Ints pointers;
    Ints regions;
    Ints values;
} BathTables;
_Static_assert(sizeof(BathTables) == 96, "as Python packs it");

typedef struct {
    BathTables bath;
    i64 steps;
    i64 fresh;
} SweepTables;
_Static_assert(sizeof(SweepTables) == 112, "as Python packs it");

typedef struct {
    BathTables bath;
    i64 lag;
    i64 last;
} SweepPairTables;
_Static_assert(sizeof(SweepPairTables) == 112, "as Python packs it");

typedef struct {
    OutIntMatrix pair;
    OutFloats weights;
} SweepPairRoom;
_Static_assert(sizeof(SweepPairRoom) == 40, "as Python packs it");

typedef struct {
    i64 first;
    i64 last;
    OutIntMatrix out;
    ChainRoom room;
    i64 most;
} MixtureTask;
_Static_assert(sizeof(MixtureTask) == 280, "as Python packs it");

typedef struct {
    i64 first;
    i64 last;
    OutInts out;
    ChainRoom room;
    i64 most;
} TimesTask;
_Static_assert(sizeof(TimesTask) == 272, "as Python packs it");

typedef struct {
    i64 first;
    i64 last;
    OutIntMatrix out;
    OutFloats room;
    i64 most;
} SweepTask;
_Static_assert(sizeof(SweepTask) == 64, "as Python packs it");

typedef struct {
    i64 first;
    i64 last;
    OutInts out;
    SweepPairRoom room;
    i64 most;
} SweepPairTask;
_Static_assert(sizeof(SweepPairTask) == 80, "as Python packs it");

#endif
