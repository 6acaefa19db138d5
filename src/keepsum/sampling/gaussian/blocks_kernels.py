"""Gaussian noise in blocks of regions: coordinates by a triangular factor, then the cells of each region."""

from __future__ import annotations

import math

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernel_arguments import Cells, State, States, Task
from keepsum.sampling.core.kernels import DONE
from keepsum.sampling.gaussian.integers_kernels import (
    DECIDE,
    FILL,
    PROPOSE,
    SAMPLE,
    count_theta,
    draw_integer,
    fill_sum,
    finish_block,
)
from keepsum.sampling.gaussian.kernel_arguments import Acceptance, BlockRoom, BlockTables, FactorTables


@kernel
def centre_of(j, factor: FactorTables, coordinates):
    """Minus the sum of factor * coordinate over the coordinates drawn before; whatever it rounds to is the centre."""
    total = 0.0
    for place in range(factor.pointers[j], factor.pointers[j + 1]):
        total += factor.factors[place] * np.float64(coordinates[factor.rows[place]])
    return -total


@kernel
def draw_coordinates(words, state: State, tables: BlockTables, variance, room: BlockRoom):
    """The coordinates of a block from the last to the first, then the sums of its regions."""
    gaussian, factor, shares = tables.gaussian, tables.factor, tables.factor.shares
    coordinates, centres, count = room.coordinates, room.centres, len(tables.factor.shares)
    while state.region < count:
        j = count - 1 - state.region
        if state.step == PROPOSE and state.answer < 0:
            centres[j] = centre_of(j, factor, coordinates)
        nearest = math.floor(centres[j] + 0.5)
        phi = centres[j] - nearest
        conditional = variance * shares[j]
        code = draw_integer(words, state, gaussian, conditional, phi)
        if code != DONE:
            return code
        count_theta(state, conditional, phi)
        coordinates[j] = np.int64(nearest) + state.value
        state.region += 1
    for region in range(len(tables.form)):
        total = np.int64(0)
        for place in range(factor.basis_pointers[region], factor.basis_pointers[region + 1]):
            total += factor.basis_values[place] * coordinates[factor.basis_rows[place]]
        room.sums[region] = total
    state.region = 0
    return np.int64(DONE)


@kernel
def mismatch_of(tables: BlockTables, variance, room: BlockRoom):
    """Half of (the quadratic form of the lattice less that of the draws), which is never negative."""
    coordinates, centres, sums, shares = room.coordinates, room.centres, room.sums, tables.factor.shares
    proposed = 0.0
    for j in range(len(shares)):
        distance = np.float64(coordinates[j]) - centres[j]
        proposed += distance * distance / shares[j]
    exact = 0.0
    for region in range(len(sums)):
        exact += np.float64(sums[region]) * np.float64(sums[region]) * tables.form[region]
    return max(0.0, exact - proposed) / (2.0 * variance), exact / (2.0 * variance)


@kernel
def fill_blocks(words, states: States, tables: BlockTables, task: Task):
    """Blocks one behind the other in ``out``; the room is a ``BlockRoom``."""
    state = states[0]
    gaussian, sizes, starts, room, out = tables.gaussian, tables.sizes, tables.starts, task.room, task.out
    steps = np.int64(len(tables.factor.shares)) + tables.width
    while task.first + state.job < task.last and (state.tries < task.most or state.phase != SAMPLE):
        job = task.first + state.job
        variance = tables.variances[job // tables.per_row]
        if state.phase == SAMPLE:
            code = draw_coordinates(words, state, tables, variance, room)
            if code != DONE:
                return code
            state.phase = FILL
        if state.phase == FILL:
            while state.region < len(sizes):
                region = state.region
                cells = Cells(out, job * tables.width + starts[region], sizes[region])
                code = fill_sum(words, state, gaussian, variance, room.sums[region], cells)
                if code != DONE:
                    return code
                state.region += 1
            state.region = 0
            state.tries += 1
            state.phase = DECIDE
        mismatch, size = mismatch_of(tables, variance, room)
        error = (size + 1.0) * 1e-12 * (1.0 + len(tables.form) / 4096.0)
        by = Acceptance(gaussian.packed.shift, tables.deciding, steps, mismatch, error)
        code = finish_block(words, state, by, room.log_weights, job)
        if code != DONE:
            return code
    return np.int64(DONE)
