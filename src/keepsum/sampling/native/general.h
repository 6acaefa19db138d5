/* What the general samplers share: triangular factors, proposals of the scale mixture, and uniform numbers. */
#ifndef KEEPSUM_GENERAL_H
#define KEEPSUM_GENERAL_H

#include "general_arguments.h"
#include "real.h"

/* general_factors.c */
void factor_form(OutFloatMatrix matrix, Ints profile, OutFloats roots);
void invert_form(OutFloatMatrix factor, OutFloats roots, OutFloatMatrix room, OutFloatMatrix out);
double dot(const double *one, const double *other, i64 count);

/* general_mixture.c */
double propose(const u64 *words, const MixtureTables *tables, const MixtureRoom *room, i64 *out);

/* A number strictly between 0 and 1: the last of 2^53 would round to 1. */
INNER double unit(u64 word) { return lesser(((double)(word >> 11) + 0.5) * 0x1p-53, 1 - 0x1p-53); }

INNER void copy(const i64 *source, i64 *target, i64 count) {
    for (i64 i = 0; i < count; i++) target[i] = source[i];
}

#endif
