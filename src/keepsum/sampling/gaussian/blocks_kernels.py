"""Gaussian noise in blocks of regions: coordinates by a triangular factor, then the cells of each region."""

from __future__ import annotations

import math

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernels import ANSWER, DONE, JOB, NEAR, PHASE, REGION, TRIES, VALUE
from keepsum.sampling.gaussian.integers_kernels import (
    DECIDE,
    FILL,
    PROPOSE,
    SAMPLE,
    THETA,
    THETA_CENTRED,
    count_theta,
    decide,
    draw_near,
    fill_sum,
)


@kernel
def centre_of(j, pointers, rows, factors, coordinates):
    """Minus the sum of factor * coordinate over the coordinates drawn before; whatever it rounds to is the centre."""
    total = 0.0
    for place in range(pointers[j], pointers[j + 1]):
        total += factors[place] * np.float64(coordinates[rows[place]])
    return -total


@kernel
def fill_block(
    words, state, tables, variance, shares, pointers, rows, factors, basis_pointers, basis_rows, basis_values, sizes,
    starts, out, base, coordinates, centres, sums, reals,
):  # fmt: skip
    """A block of regions: its coordinates from the last to the first, the sums of its regions, then their cells."""
    count = len(shares)
    if state[PHASE] == SAMPLE:
        while state[REGION] < count:
            j = count - 1 - state[REGION]
            if state[NEAR] == PROPOSE and state[ANSWER] < 0:
                centres[j] = centre_of(j, pointers, rows, factors, coordinates)
            nearest = math.floor(centres[j] + 0.5)
            phi = centres[j] - nearest
            own = variance * shares[j]
            code = draw_near(words, state, tables, own, phi)
            if code != DONE:
                return code
            count_theta(reals, own, phi)
            coordinates[j] = np.int64(nearest) + state[VALUE]
            state[REGION] += 1
        for region in range(len(sizes)):
            total = np.int64(0)
            for place in range(basis_pointers[region], basis_pointers[region + 1]):
                total += basis_values[place] * coordinates[basis_rows[place]]
            sums[region] = total
        state[REGION] = 0
        state[PHASE] = FILL
    while state[REGION] < len(sizes):
        region = state[REGION]
        code = fill_sum(words, state, tables, variance, sizes[region], sums[region], out, base + starts[region], reals)
        if code != DONE:
            return code
        state[REGION] += 1
    state[REGION] = 0
    return np.int64(DONE)


@kernel
def mismatch_of(variance, shares, coordinates, centres, sizes, sums):
    """Half of (the quadratic form of the lattice less that of the draws), which is never negative."""
    proposed = 0.0
    for j in range(len(shares)):
        distance = np.float64(coordinates[j]) - centres[j]
        proposed += distance * distance / shares[j]
    wanted = 0.0
    for region in range(len(sizes)):
        wanted += np.float64(sums[region]) * np.float64(sums[region]) / sizes[region]
    return max(0.0, wanted - proposed) / (2.0 * variance), wanted / (2.0 * variance)


@kernel
def fill_blocks(
    words, state, tables, variances, shares, pointers, rows, factors, basis_pointers, basis_rows, basis_values, sizes,
    starts, width, count, first, last, out, deciding, thetas, most, coordinates, centres, sums, reals,
):  # fmt: skip
    """Blocks ``first`` to ``last``, ``count`` of them in each draw, in at most ``most`` tries."""
    steps = np.int64(len(shares)) + width
    while first + state[JOB] < last and (state[TRIES] < most or state[PHASE] != SAMPLE):
        job = first + state[JOB]
        variance = variances[job // count]
        if state[PHASE] != DECIDE:
            code = fill_block(
                words, state, tables, variance, shares, pointers, rows, factors, basis_pointers, basis_rows,
                basis_values, sizes, starts, out, job * width, coordinates, centres, sums, reals,
            )  # fmt: skip
            if code != DONE:
                return code
            state[TRIES] += 1
            state[PHASE] = DECIDE
        mismatch, size = mismatch_of(variance, shares, coordinates, centres, sizes, sums)
        if deciding:
            code = decide(
                words, state, tables, reals, steps, mismatch, (size + 1.0) * 1e-12 * (1.0 + len(sizes) / 4096.0)
            )
            if code < 0:
                return code
        else:
            code = np.int64(1)
            thetas[job] = reals[THETA] - mismatch
        reals[THETA] = reals[THETA_CENTRED] = 0.0
        state[PHASE] = SAMPLE
        state[JOB] += code
    return np.int64(DONE)
