/* Written by scripts/write_structs.py from keepsum.research.mcmc.kernel_arguments: change that, not this. */
#ifndef KEEPSUM_MCMC_ARGUMENTS_H
#define KEEPSUM_MCMC_ARGUMENTS_H

#include "core_arguments.h"

#define L1 0
#define L2 1
#define GAUSSIAN 2
#define GUIDE_BITS 11
#define CHUNK_BITS 12
#define CHUNKS 5
#define OPEN (-32768)

typedef struct {
    i64 position;
    i64 answer;
    i64 step;
    i64 accepted;
    i64 updates;
    i64 norm;
    i64 second_norm;
    i64 second_accepted;
    i64 coordinate;
    i64 residual;
    i64 met;
} WalkState;
_Static_assert(sizeof(WalkState) == 88, "as NumPy lays it out");
typedef struct {
    WalkState *at;
    i64 size;
} WalkStates;

typedef struct {
    Ints starts;
    Ints cells;
    Ints entries;
} Columns;
_Static_assert(sizeof(Columns) == 48, "as Python packs it");

typedef struct {
    Ints law;
    Int16Matrix quick;
    Floats log_a;
    Floats half;
} PreJumps;
_Static_assert(sizeof(PreJumps) == 72, "as Python packs it");

typedef struct {
    i64 kind;
    double rate;
    Floats chances;
} Target;
_Static_assert(sizeof(Target) == 32, "as Python packs it");

typedef struct {
    Columns columns;
    PreJumps jumps;
    Target target;
} ProblemTables;
_Static_assert(sizeof(ProblemTables) == 152, "as Python packs it");

typedef struct {
    OutInts z;
    OutInts coordinates;
} Start;
_Static_assert(sizeof(Start) == 32, "as Python packs it");

typedef struct {
    OutInts z;
    OutIntMatrix out;
    i64 burn_in;
    i64 thin;
    i64 last;
    OutInts coordinates;
    OutInts moved;
    OutInts moves;
    OutInts before;
    i64 whole;
} Walk;
_Static_assert(sizeof(Walk) == 136, "as Python packs it");

typedef struct {
    OutInts x;
    OutInts y;
    OutInts gaps;
    OutInts x_moves;
    OutInts y_moves;
    i64 last;
} Pair;
_Static_assert(sizeof(Pair) == 88, "as Python packs it");

#endif
