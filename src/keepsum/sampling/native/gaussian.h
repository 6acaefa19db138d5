/* Gaussian noise on lattices: one-dimensional draws, and how the blocks that they make up are accepted. */
#ifndef KEEPSUM_GAUSSIAN_H
#define KEEPSUM_GAUSSIAN_H

#include "gaussian_arguments.h"
#include "kernels.h"

/* A draw with weight exp(-(x - phi)^2 / 2 s^2) for |phi| up to about 1/2, left in `state->value`.
 *
 * `state->table` is the table used last, a good guess for the next. */
i64 draw_integer(Words words, State *state, const GaussianTables *tables, double variance, double phi);

/* Add the factor of one coordinate to the sums of logarithms, where it can be told from 1. */
void count_theta(State *state, double variance, double phi);

/* Cells with sum `goal`: given those before, the next of r that remain has mean (what is left of the goal) / r.
 *
 * Its variance is s^2 (r - 1) / r. */
i64 fill_gaussian_sum(
    Words words, State *state, const GaussianTables *tables, double variance, i64 goal, Cells cells
);

/* How a block of so many `steps` is accepted: by its factors, times exp(-`mismatch`), right to `error`; or not
 * accepted, if somebody else decides: then its log weight is written down. */
typedef struct {
    i64 shift, deciding, steps;
    double mismatch, error;
} Acceptance;

/* Accept a block that is drawn, or write down its log weight; then go on to the next. */
i64 finish_block(Words words, State *state, const Acceptance *by, OutFloats log_weights, i64 job);

#endif
