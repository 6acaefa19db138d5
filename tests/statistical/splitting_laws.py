"""The law of tables with zero margins whose entries are regions or structural zeros, from Fourier transforms.

An entry of n cells that has the sum z weighs what all its fillings weigh together. Rows are independent but for the
column sums, so the weight of all tables is the mean of a product of transforms of rows, and the law of a row is its
weight times the weight of the other rows having the opposite column sums.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from laws import as_tuples, boxed
from scipy import fft

from keepsum.sampling.core.rng import rng

BIG = {2: 65536, 3: 1024, 4: 128}  # points of a grid, by the number of columns


def drawn(sampler, count, seed=1):
    """So many draws, a row each."""
    out = np.empty((count, sampler.width), dtype=np.int64)
    sampler.draw_into(out, rng(seed=seed))
    return out


def entry_sums(draws, sizes):
    """The sums of the entries, structural zeros included, rows of the table one after the other."""
    flat = np.asarray(sizes).reshape(-1)
    bounds = np.concatenate([[0], np.cumsum(flat)])
    before = np.concatenate([np.zeros((len(draws), 1), dtype=np.int64), np.cumsum(draws, axis=1)], axis=1)
    return before[:, bounds[1:]] - before[:, bounds[:-1]]


def entry_weight(cells, epsilon, points):
    """The weight of each sum of so many cells, at 0, 1, ..., -2, -1 modulo the number of points."""
    one = np.exp(-epsilon * np.abs(fft.fftfreq(points, 1 / points)))
    return fft.ifft(fft.fft(one) ** cells).real


def row_transform(cells, epsilon, points):
    """The transform of a row's weight, as a function of all its entries but the last, which makes its sum 0."""
    place = np.meshgrid(*[np.arange(points)] * (len(cells) - 1), indexing="ij", sparse=True)
    weights = [entry_weight(n, epsilon, points) for n in cells]
    row = functools.reduce(np.multiply, [w[z] for w, z in zip(weights, place, strict=False)])
    return fft.fftn(row * weights[-1][-sum(place) % points]).real


def whole_weight(sizes, epsilon, points=None):
    """The weight of all tables."""
    return _whole_weight(tuple(map(tuple, np.asarray(sizes).tolist())), epsilon, points or BIG[np.shape(sizes)[1]])


@functools.cache
def _whole_weight(sizes, epsilon, points):
    kinds, times = np.unique(sizes, axis=0, return_counts=True)
    powers = [row_transform(kind.tolist(), epsilon, points) ** n for kind, n in zip(kinds, times, strict=True)]
    return float(functools.reduce(np.multiply, powers).mean())


def entries_law(sizes, epsilon, reach, longest=math.inf):
    """The entries of a table, all but a row and a column up to the reach, their lengths together up to ``longest``."""
    sizes = np.asarray(sizes)
    rows, columns = sizes.shape
    blocks = boxed(reach, (rows - 1) * (columns - 1)).reshape(-1, rows - 1, columns - 1)
    full = np.zeros((len(blocks), rows, columns), dtype=int)
    full[:, :-1, :-1] = blocks
    full[:, :-1, -1] = -blocks.sum(axis=2)
    full[:, -1] = -full[:, :-1].sum(axis=1)
    full = full[np.abs(full).sum(axis=(1, 2)) <= longest]
    full = full[(full[:, sizes == 0] == 0).all(axis=1)]
    weight = {n: entry_weight(n, epsilon, 4096) for n in np.unique(sizes).tolist()}
    chances = np.ones(len(full))
    for i, j in np.ndindex(rows, columns):
        chances *= weight[int(sizes[i, j])][full[:, i, j]]
    return as_tuples(full.reshape(len(full), -1)), chances / whole_weight(sizes, epsilon)


def cells_law(sizes, epsilon, longest):
    """The cells of a table: everything up to a length, found by adding two-cell and four-cell moves to 0."""
    sizes = np.asarray(sizes)
    matrix = margins_of(sizes)
    moves = boxed(1, matrix.shape[1])
    moves = moves[(np.abs(moves).sum(axis=1) <= 6) & ~(moves @ matrix.T).any(axis=1)]
    points = {(0,) * matrix.shape[1]}
    newest = points
    while newest:
        sums = {tuple(row) for point in newest for row in (moves + np.array(point)).tolist()}
        newest = {point for point in sums if sum(map(abs, point)) <= longest} - points
        points = points | newest
    ordered = sorted(points)
    return ordered, np.exp(-epsilon * np.abs(np.array(ordered)).sum(axis=1)) / whole_weight(sizes, epsilon)


def margins_of(sizes):
    """The row and column sums of the cells."""
    rows, columns = np.nonzero(sizes)
    place = np.repeat(np.stack([rows, columns]), np.asarray(sizes)[rows, columns], axis=1)
    return np.stack(
        [place[0] == i for i in range(len(sizes))] + [place[1] == j for j in range(np.shape(sizes)[1])]
    ).astype(int)


def rows_law(sizes, epsilon, rows, reach, points=None):
    """The law of the sum of some rows of a table, all entries but the last, each up to the reach."""
    sizes = np.asarray(sizes)
    points = points or BIG[sizes.shape[1]]
    inside = np.zeros(len(sizes), dtype=bool)
    inside[list(rows)] = True
    weights = []
    for chosen in (inside, ~inside):
        kinds, times = np.unique(sizes[chosen], axis=0, return_counts=True)
        transforms = [row_transform(kind.tolist(), epsilon, points) for kind in kinds]
        # Relative to their sums: powers of hundreds of rows are too large for floats.
        powers = [(row / row.flat[0]) ** n for row, n in zip(transforms, times, strict=True)]
        weights.append(fft.ifftn(functools.reduce(np.multiply, powers)).real)
    law = weights[0] * weights[1]  # both are even: that the others have the opposite sums weighs the same
    values = boxed(reach, sizes.shape[1] - 1)
    chances = law[tuple(values.T)] / law.sum()
    return as_tuples(values), chances


def row_sums(draws, sizes, rows):
    """The sum of some rows of each table, all entries but the last."""
    tables = entry_sums(draws, sizes).reshape(-1, *np.shape(sizes))
    return tables[:, list(rows), :-1].sum(axis=1)
