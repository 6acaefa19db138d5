"""The law of tables whose margins have weights of their own, by enumeration, straight from its definition."""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np
from laws import as_tuples, boxed
from scipy import fft
from splitting_laws import entry_weight

from keepsum.sampling.l1.splitting.slices import KEPT, NOTHING, MarginWeights


def margins(rows, columns, whole="0"):
    """Weights as text; ``KEPT`` for a kept total."""

    def weight(text):
        return KEPT if text is KEPT else Fraction(text)

    return MarginWeights(tuple(map(weight, rows)), tuple(map(weight, columns)), weight(whole))


# Sizes of entries, epsilon, margins, and how far entries are enumerated.
TABLES = {
    "both focused": ([[1, 1], [1, 1]], "1", margins(["1/2"] * 2, ["1/3"] * 2), 5),
    "whole focused": ([[1, 1], [1, 1]], "1", margins(["1/2"] * 2, ["1/3"] * 2, "1/4"), 5),
    "whole kept": ([[1, 1], [1, 1]], "1", margins(["1/2"] * 2, ["1/3"] * 2, KEPT), 6),
    "rows kept": ([[1, 1], [1, 1]], "1", margins([KEPT] * 2, ["1/3"] * 2), 8),
    "columns kept": ([[1, 1], [1, 1]], "1", margins(["1/2"] * 2, [KEPT] * 2), 8),
    "one row kept": ([[1, 1], [1, 1]], "1", margins([KEPT, "1/2"], ["1/3", KEPT]), 8),
    "strong and weak": ([[1, 1], [1, 1]], "1", margins(["3"] * 2, ["1/12"] * 2), 5),
    "unlike weights": ([[1, 1], [1, 1]], "1", margins(["1/2", "2"], ["1/3", "1/5"]), 5),
    "2 x 3": ([[1] * 3] * 2, "3/2", margins(["1/2"] * 2, ["1"] * 3), 2),
    "3 x 2, rows kept": ([[1] * 2] * 3, "1", margins([KEPT] * 3, ["1/2"] * 2), 4),
    "2 x 3, rows kept": ([[1] * 3] * 2, "1", margins([KEPT] * 2, ["1/2"] * 3), 4),
    "3 x 3": ([[1] * 3] * 3, "2", margins(["1"] * 3, ["1/2"] * 3), 1),
    "3 x 3, rows kept": ([[1] * 3] * 3, "3/2", margins([KEPT] * 3, ["1/2"] * 3), 2),
    "regions": ([[1, 2], [3, 1]], "1", margins(["1/2"] * 2, ["1/3"] * 2), 5),
    "a structural zero": ([[1, 1], [0, 1]], "1", margins(["1/2"] * 2, ["1/3"] * 2), 8),
    "an entry that is kept": ([[2, 0], [1, 1]], "1", margins([KEPT] * 2, ["1/3"] * 2), 9),
}


def log_margins(table, weights):
    """What margins add to the logarithm of the weight of each table, and whether what is kept is 0."""
    logs, kept = np.zeros(len(table)), np.ones(len(table), dtype=bool)
    sums = [*zip(weights.rows, table.sum(axis=2).T, strict=True)]
    sums += [*zip(weights.columns, table.sum(axis=1).T, strict=True), (weights.whole, table.sum(axis=(1, 2)))]
    for weight, total in sums:
        if weight is KEPT:
            kept &= total == 0
        else:
            logs -= float(weight) * np.abs(total)
    return logs, kept


def entries_law(name):
    """Every table with entries up to the reach, and its chance."""
    sizes, epsilon, weights, reach = TABLES[name]
    sizes = np.array(sizes)
    points = boxed(reach, sizes.size)
    points = points[(points[:, sizes.reshape(-1) == 0] == 0).all(axis=1)]
    logs, kept = log_margins(points.reshape(-1, *sizes.shape), weights)
    points, logs = points[kept], logs[kept]
    weight = {n: np.log(entry_weight(n, float(Fraction(epsilon)), 4096).clip(1e-300)) for n in set(sizes.flat)}
    for place, n in enumerate(sizes.reshape(-1)):
        logs += weight[n][points[:, place]]
    return as_tuples(points), np.exp(logs) / whole_weight(name)


@functools.cache
def whole_weight(name):
    """The weight of all tables: the sum over all margins of their weight, times that of all tables that have them.

    Those of tables are convolutions of rows, each of which is a function of what it adds to the columns.
    """
    sizes, epsilon, weights, _ = TABLES[name]
    columns = len(weights.columns)
    points = {2: 256, 3: 96}[columns]
    place = fft.fftfreq(points, 1 / points)
    grids = np.meshgrid(*[place] * columns, indexing="ij", sparse=True)
    total = sum(grids)

    def weigh(weight, values):
        return (values == 0).astype(float) if weight is KEPT else np.exp(-float(weight) * np.abs(values))

    product = 1.0
    for row, weight in zip(sizes, weights.rows, strict=True):
        laws = [entry_weight(n, float(Fraction(epsilon)), points) for n in row]
        joint = functools.reduce(np.multiply, [law[grid.astype(int)] for law, grid in zip(laws, grids, strict=True)])
        product = product * fft.fftn(joint * weigh(weight, total))
    sums = fft.ifftn(product).real
    for grid, weight in zip(grids, weights.columns, strict=True):
        sums = sums * weigh(weight, grid)
    return float((sums * weigh(weights.whole, total)).sum())


__all__ = ["KEPT", "NOTHING", "TABLES", "entries_law", "log_margins", "margins", "whole_weight"]
