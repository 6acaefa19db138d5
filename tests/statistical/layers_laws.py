"""The law of three-way tables with zero two-way margins, from Fourier transforms and by enumeration.

The slices of a table along its rows are two-way tables with zero margins, independent but for their sum, which is 0.
So the weight of all tables is the mean of a power of one transform.
"""

from __future__ import annotations

import functools

import numpy as np
from laws import as_tuples, boxed
from scipy import fft


def slice_entries(inner, layers, columns):
    """All entries of two-way tables with zero margins, from those without the last layer and column."""
    inner = np.asarray(inner).reshape(-1, layers - 1, columns - 1)
    full = np.zeros((len(inner), layers, columns), dtype=np.int64)
    full[:, :-1, :-1] = inner
    full[:, :-1, -1] = -inner.sum(axis=2)
    full[:, -1] = -full[:, :-1].sum(axis=1)
    return full.reshape(len(inner), -1)


@functools.lru_cache(maxsize=4)
def slice_transform(layers, columns, epsilon, points):
    """The transform of the weights of a slice, as a function of its entries but the last layer and column."""
    free = (layers - 1) * (columns - 1)
    axes = np.meshgrid(*[fft.fftfreq(points, 1 / points)] * free, indexing="ij", sparse=True)
    entries = np.array(axes, dtype=object).reshape(layers - 1, columns - 1)
    rows, sums = entries.sum(axis=1), entries.sum(axis=0)
    length = sum(np.abs(entry) for entry in [*entries.flat, *rows, *sums, entries.sum()])
    return fft.fftn(np.exp(-epsilon * length)).real


def whole_weight(shape, epsilon, points=32):
    """The weight of all tables with so many rows, layers and columns."""
    return float((slice_transform(shape[1], shape[2], epsilon, points) ** shape[0]).mean())


def slice_law(shape, epsilon, reach, points=32):
    """The law of one slice along the rows: entries but the last layer and column up to the reach."""
    rows, layers, columns = shape
    transform = slice_transform(layers, columns, epsilon, points)
    inner = boxed(reach, (layers - 1) * (columns - 1))
    place = tuple(inner.T % points)
    # Weights are even: that the others add up to the opposite weighs the same.
    chances = fft.ifftn(transform).real[place] * fft.ifftn(transform ** (rows - 1)).real[place]
    return as_tuples(slice_entries(inner, layers, columns)), chances / whole_weight(shape, epsilon, points)


def basic_moves(shape):
    """The tables with eight entries of 1 and -1, in a 2 x 2 x 2 part."""
    pairs = [[(i, j) for i in range(n) for j in range(i)] for n in shape]
    moves = []
    for place in ((a, b, c) for a in pairs[0] for b in pairs[1] for c in pairs[2]):
        move = np.zeros(shape, dtype=np.int64)
        for corner in np.ndindex(2, 2, 2):
            move[tuple(pair[k] for pair, k in zip(place, corner, strict=True))] = (-1) ** sum(corner)
        moves += [move.reshape(-1), -move.reshape(-1)]
    return np.array(moves)


@functools.lru_cache(maxsize=4)
def tables_law(shape, epsilon, longest, points=32):
    """The law of whole tables: those up to a length that basic moves lead to, one by one."""
    moves = basic_moves(shape)
    points_found = newest = {(0,) * moves.shape[1]}
    while newest:
        sums = {tuple(row) for point in newest for row in (moves + np.array(point)).tolist()}
        newest = {point for point in sums if sum(map(abs, point)) <= longest} - points_found
        points_found = points_found | newest
    ordered = sorted(points_found)
    weights = np.exp(-epsilon * np.abs(np.array(ordered)).sum(axis=1))
    return ordered, weights / whole_weight(shape, epsilon, points)
