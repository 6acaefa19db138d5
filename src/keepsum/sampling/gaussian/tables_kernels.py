"""Gaussian noise in tables under all margins of one way less: centres in closed form."""

from __future__ import annotations

import math

import numpy as np

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernels import (
    CELL,
    CENTRE_BOTTOM,
    CENTRE_TOP,
    DONE,
    JOB,
    PHASE,
    REGION,
    SHARE_BOTTOM,
    SHARE_TOP,
    TOTAL,
    TRIES,
    VALUE,
)
from keepsum.sampling.gaussian.integers_kernels import (
    DECIDE,
    SAMPLE,
    THETA,
    THETA_CENTRED,
    count_theta,
    decide,
    draw_near,
)


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
def fill_table(words, state, tables, variance, shape, out, start, sums, innovation, level_start, index, reals):
    """A table whose margins of one way less are all 0, cell by cell in row-major order.

    For each axis ``l`` and the indices before it, ``sums`` holds the sum of the finished slabs, and ``innovation`` its
    innovations D. With r_l cells left along axis l, the mean of the next cell given all before it is minus the sum of
    D_l / r_l, and its variance s^2 times the product of (r_l - 1) / r_l: those of a tensor product of single sums.
    A slab at the end of an axis is minus the sum of the others.
    """
    ways = len(shape)
    last_axis = shape[ways - 1]
    rows = 1
    for axis in range(ways - 1):
        rows *= shape[axis]
    while state[REGION] < rows:
        # The indices of this row, and the outermost axis at its end.
        rest = state[REGION]
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
                out[start + state[REGION] * last_axis + i] = -sums[level_start[ended] + i]
            done = size // last_axis
        else:
            place = start + state[REGION] * last_axis
            while state[CELL] < last_axis - 1:
                left = last_axis - state[CELL]
                top = state[TOTAL]
                bottom = np.int64(1)
                share = 1.0
                top_share, bottom_share = np.int64(left - 1), np.int64(left)
                numerator = np.int64(0)
                for axis in range(ways - 1):
                    inner = np.int64(0)
                    for behind in range(axis + 1, ways - 1):
                        inner = inner * shape[behind] + index[behind]
                    inner = inner * last_axis + state[CELL]
                    numerator += innovation[level_start[axis] + inner] * bottom
                    along = shape[axis] - index[axis]
                    bottom *= along
                    top_share *= along - 1
                    bottom_share *= along
                    share *= (along - 1.0) / along
                numerator += top * bottom
                bottom *= left
                own = variance * share * (left - 1) / left
                nearest = np.int64(math.floor(0.5 - np.float64(numerator) / bottom))
                phi = np.float64(-numerator - nearest * bottom) / bottom
                code = draw_near(words, state, tables, own, phi)
                if code != DONE:
                    state[CENTRE_TOP], state[CENTRE_BOTTOM] = -numerator - nearest * bottom, bottom
                    state[SHARE_TOP], state[SHARE_BOTTOM] = top_share, bottom_share
                    return code
                count_theta(reals, own, phi)
                value = nearest + state[VALUE]
                out[place + state[CELL]] = value
                state[TOTAL] += value
                state[CELL] += 1
            out[place + last_axis - 1] = -state[TOTAL]
            state[CELL] = state[TOTAL] = 0
            done = np.int64(1)
        state[REGION] += done
        close_slabs(state[REGION], shape, out, start, sums, innovation, level_start)
    state[REGION] = 0
    return np.int64(DONE)


@kernel
def close_slabs(row, shape, out, start, sums, innovation, level_start):
    """Add the slabs that end before this row to the sums of their axes; what lies inside them starts anew."""
    ways = len(shape)
    size = shape[ways - 1]
    behind = np.int64(1)  # rows of a slab along the axis
    for axis in range(ways - 2, -1, -1):
        if row % behind != 0:
            return
        along = (row // behind) % shape[axis]
        slab = start + (row - behind) * shape[ways - 1]
        for i in range(size):
            sums[level_start[axis] + i] = (0 if along == 1 else sums[level_start[axis] + i]) + out[slab + i]
        if along == 0:  # the axis is at its end: its sums are 0 again
            for i in range(size):
                sums[level_start[axis] + i] = 0
                innovation[level_start[axis] + i] = 0
        elif along < shape[axis] - 1:
            own = sums[level_start[axis] : level_start[axis] + size]
            innovations(own, innovation[level_start[axis] : level_start[axis] + size], shape, axis)
        behind *= shape[axis]
        size *= shape[axis]
        if along != 0:
            return


@kernel
def fill_tables(
    words, state, tables, variances, shape, count, first, last, out, deciding, thetas, most, sums, innovation,
    level_start, index, reals,
):  # fmt: skip
    """Tables ``first`` to ``last``, ``count`` of them in each draw, in at most ``most`` tries."""
    width = np.int64(1)
    steps = np.int64(1)
    for n in shape:
        width *= n
        steps *= n - 1
    while first + state[JOB] < last and (state[TRIES] < most or state[PHASE] != SAMPLE):
        job = first + state[JOB]
        if state[PHASE] == SAMPLE:
            code = fill_table(
                words, state, tables, variances[job // count], shape, out, job * width, sums, innovation, level_start,
                index, reals,
            )  # fmt: skip
            if code != DONE:
                return code
            state[TRIES] += 1
            state[PHASE] = DECIDE
        if deciding:
            code = decide(words, state, tables, reals, steps, 0.0, 0.0)
            if code < 0:
                return code
        else:
            code = np.int64(1)
            thetas[job] = reals[THETA]
        reals[THETA] = reals[THETA_CENTRED] = 0.0
        state[PHASE] = SAMPLE
        state[JOB] += code
    return np.int64(DONE)
