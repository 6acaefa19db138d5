"""Gaussian noise in tables under all margins of one way less: centres in closed form."""

from __future__ import annotations

import math

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernel_arguments import State, States, Task
from keepsum.sampling.core.kernels import DONE
from keepsum.sampling.gaussian.integers_kernels import DECIDE, SAMPLE, count_theta, draw_integer, finish_block
from keepsum.sampling.gaussian.kernel_arguments import Acceptance, FullRoom, FullTables


@kernel
def innovations(source, target, shape, level):
    """What each cell of a table adds to the mean of those before, along every axis behind ``level``, as numerators.

    Along one axis of n cells it is (n - k) z_k + z_0 + ... + z_(k-1), over n - k.
    """
    size = 1
    for axis in range(level + 1, len(shape)):
        size *= shape[axis]
    for i in range(size):
        target[i] = source[i]
    stride = 1
    for axis in range(len(shape) - 1, level, -1):
        n = shape[axis]
        block = stride * n
        for base in range(0, size, block):
            for offset in range(stride):
                before = np.int64(0)
                for k in range(n):
                    place = base + offset + k * stride
                    value = target[place]
                    target[place] = (n - k) * value + before
                    before += value
        stride = block


@kernel
def fill_table(words, state: State, tables: FullTables, variance, room: FullRoom, out, start):
    """A table whose margins of one way less are all 0, cell by cell in row-major order.

    For each axis ``l`` and the indices before it, ``room.sums`` holds the sum of the finished slabs, and
    ``room.innovation`` its innovations D. With r_l cells remaining along axis l, the mean of the next cell given all
    before it is minus the sum of D_l / r_l, and its variance s^2 times the product of (r_l - 1) / r_l: those of a
    tensor product of single sums. A slab at the end of an axis is minus the sum of the others.
    """
    gaussian, shape, level_start = tables.gaussian, tables.shape, tables.level_start
    sums, innovation, index = room.sums, room.innovation, room.indices
    ways = len(shape)
    last_axis = shape[ways - 1]
    rows = 1
    for axis in range(ways - 1):
        rows *= shape[axis]
    while state.region < rows:
        # The indices of this row, and the outermost axis at its end.
        rest = state.region
        for axis in range(ways - 2, -1, -1):
            index[axis] = rest % shape[axis]
            rest //= shape[axis]
        ended = -1
        for axis in range(ways - 1):
            if index[axis] == shape[axis] - 1:
                ended = axis
                break
        if ended >= 0:
            size = last_axis
            for axis in range(ended + 1, ways - 1):
                size *= shape[axis]
            for i in range(size):
                out[start + state.region * last_axis + i] = -sums[level_start[ended] + i]
            done = size // last_axis
        else:
            place = start + state.region * last_axis
            while state.cell < last_axis - 1:
                remaining = last_axis - state.cell
                top = state.total
                bottom = np.int64(1)
                share = 1.0
                top_share, bottom_share = np.int64(remaining - 1), np.int64(remaining)
                numerator = np.int64(0)
                for axis in range(ways - 1):
                    inner = np.int64(0)
                    for behind in range(axis + 1, ways - 1):
                        inner = inner * shape[behind] + index[behind]
                    inner = inner * last_axis + state.cell
                    numerator += innovation[level_start[axis] + inner] * bottom
                    along = shape[axis] - index[axis]
                    bottom *= along
                    top_share *= along - 1
                    bottom_share *= along
                    share *= (along - 1.0) / along
                numerator += top * bottom
                bottom *= remaining
                conditional = variance * share * (remaining - 1) / remaining
                nearest = np.int64(math.floor(0.5 - np.float64(numerator) / bottom))
                phi = np.float64(-numerator - nearest * bottom) / bottom
                code = draw_integer(words, state, gaussian, conditional, phi)
                if code != DONE:
                    state.centre_numerator, state.centre_denominator = -numerator - nearest * bottom, bottom
                    state.share_numerator, state.share_denominator = top_share, bottom_share
                    return code
                count_theta(state, conditional, phi)
                value = nearest + state.value
                out[place + state.cell] = value
                state.total += value
                state.cell += 1
            out[place + last_axis - 1] = -state.total
            state.cell = state.total = 0
            done = np.int64(1)
        state.region += done
        close_slabs(state.region, tables, room, out, start)
    state.region = 0
    return np.int64(DONE)


@kernel
def close_slabs(row, tables: FullTables, room: FullRoom, out, start):
    """Add the slabs that end before this row to the sums of their axes; what lies inside them starts anew."""
    shape, level_start, sums, innovation = tables.shape, tables.level_start, room.sums, room.innovation
    ways = len(shape)
    size = shape[ways - 1]
    behind = np.int64(1)  # rows of a slab along the axis
    for axis in range(ways - 2, -1, -1):
        if row % behind != 0:
            return
        along = (row // behind) % shape[axis]
        slab = start + (row - behind) * shape[ways - 1]
        first = level_start[axis]
        for i in range(size):
            sums[first + i] = (0 if along == 1 else sums[first + i]) + out[slab + i]
        if along == 0:  # the axis is at its end: its sums are 0 again
            for i in range(size):
                sums[first + i] = 0
                innovation[first + i] = 0
        elif along < shape[axis] - 1:
            innovations(sums[first : first + size], innovation[first : first + size], shape, axis)
        behind *= shape[axis]
        size *= shape[axis]
        if along != 0:
            return


@kernel
def fill_tables(words, states: States, tables: FullTables, task: Task):
    """Tables one behind the other in ``out``; the room is a ``FullRoom``."""
    state = states[0]
    room, out = task.room, task.out
    width = np.int64(1)
    steps = np.int64(1)
    for n in tables.shape:
        width *= n
        steps *= n - 1
    while task.first + state.job < task.last and (state.tries < task.most or state.phase != SAMPLE):
        job = task.first + state.job
        if state.phase == SAMPLE:
            variance = tables.variances[job // tables.per_row]
            code = fill_table(words, state, tables, variance, room, out, job * width)
            if code != DONE:
                return code
            state.tries += 1
            state.phase = DECIDE
        by = Acceptance(tables.gaussian.packed.shift, tables.deciding, steps, 0.0, 0.0)
        code = finish_block(words, state, by, room.log_weights, job)
        if code != DONE:
            return code
    return np.int64(DONE)
