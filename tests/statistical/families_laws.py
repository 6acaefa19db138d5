"""Laws of tables under decomposable totals: short vectors by enumeration, slices of one-way tables by transforms."""

from __future__ import annotations

import functools

import numpy as np
from laws import as_tuples, boxed
from scipy import fft


def short_vectors(matrix, longest):
    """All integer vectors up to a length whose totals are 0; each family of totals in turn covers all cells.

    Cell by cell: what is missing in any family must be made up for by the cells that are left.
    """
    width = matrix.shape[1]
    family = (np.cumsum(matrix.sum(axis=1)) - 1) // width
    assert (np.array([matrix[family == k].sum(axis=0) for k in range(family.max() + 1)]) == 1).all()
    points, values = np.zeros((1, 0), dtype=np.int64), np.arange(-(longest // 2), longest // 2 + 1)
    for j in range(width):
        points = np.concatenate([np.repeat(points, len(values), axis=0), np.tile(values, len(points))[:, None]], axis=1)
        left = longest - np.abs(points).sum(axis=1)
        residual = points @ matrix[:, : j + 1].T
        closed = ~matrix[:, j + 1 :].any(axis=1)
        needed = np.stack([np.abs(residual[:, family == k]).sum(axis=1) for k in range(family.max() + 1)]).max(axis=0)
        points = points[(needed <= left) & ~residual[:, closed].any(axis=1)]
    return points


def short_law(matrix, epsilon, longest):
    """Short vectors, and their chances given that a vector is short."""
    points = short_vectors(matrix, longest)
    weights = np.exp(-epsilon * np.abs(points).sum(axis=1))
    return as_tuples(points), weights / weights.sum()


def slice_law(shape, epsilon, reach, points):
    """The cells of the first slice of a table with a total for each category of each of three axes.

    Slices are independent but for the totals of the other two axes, which are functions of the margins of each; a slice
    itself adds up to 0. All cells but the last, up to the reach.
    """
    slices, rows, columns = shape
    one = _margin_transform(rows, columns, epsilon, points)
    others = fft.ifftn(one ** (slices - 1)).real
    cells = boxed(reach, rows * columns - 1)
    cells = np.concatenate([cells, -cells.sum(axis=1, keepdims=True)], axis=1)
    tables = cells.reshape(-1, rows, columns)
    margins = np.concatenate([tables.sum(axis=2)[:, :-1], tables.sum(axis=1)[:, :-1]], axis=1)
    assert np.abs(margins).max() < points // 2
    chances = np.exp(-epsilon * np.abs(cells).sum(axis=1)) * others[tuple(margins.T)] / (one**slices).mean()
    return as_tuples(cells), chances


@functools.cache
def _margin_transform(rows, columns, epsilon, points):
    """The transform of what all tables that add up to 0 weigh, as a function of all margins but the last ones."""
    angles = 2 * np.pi * np.arange(points) / points
    grid = np.meshgrid(*[angles] * (rows + columns - 2), indexing="ij", sparse=True)
    alpha, beta = [*grid[: rows - 1], np.zeros(())], [*grid[rows - 1 :], np.zeros(())]
    a, whole = np.exp(-epsilon), 0.0
    for shift in angles:
        product = 1.0
        for one in alpha:
            for two in beta:
                product = product * ((1 - a**2) / (1 - 2 * a * np.cos(one + two + shift) + a**2))
        whole = whole + product / points
    return whole
