"""The law of noise under nested totals by enumeration, straight from its definition, and trees to draw it on."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from laws import as_tuples, boxed

from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.focus.tree import NestedTotals

KEPT = None


def totals(epsilon, *nodes):
    """Nested totals: the parent, the number of cells and the weight of each, as text; ``KEPT`` for a kept one."""
    parents, cells, weights = zip(*nodes, strict=True)
    return NestedTotals(parents, cells, [KEPT if w is KEPT else Fraction(w) for w in weights], Fraction(epsilon))


# The deepest have three levels. Their laws are enumerated up to 5 cells.
TREES = {
    "kept": totals("1/2", (-1, 3, KEPT)),
    "focused": totals("1/2", (-1, 3, "1/3")),
    "wide noise": totals("1/5", (-1, 2, "1/8"), (0, 1, "1/10")),
    "narrow noise": totals("3/2", (-1, 2, "1/2"), (0, 2, "1")),
    "without a weight": totals("1", (-1, 2, "0"), (0, 2, "1/2")),
    "one cell": totals("1/2", (-1, 1, "1/4")),
    "a total of one total": totals("1/2", (-1, 0, "1/2"), (0, 2, "1/4")),
    "kept root": totals("1/2", (-1, 0, KEPT), (0, 2, "1/2"), (0, 2, "1")),
    "free root": totals("1/2", (-1, 0, "1/3"), (0, 2, "1/2"), (0, 2, "1/2")),
    "unequal children": totals("1/2", (-1, 1, KEPT), (0, 3, "1"), (0, 1, "1/2")),
    "three levels": totals("1/2", (-1, 0, "1/2"), (0, 0, "1"), (1, 2, "1/3"), (1, 1, "1/2"), (0, 2, "1/4")),
    "three levels kept": totals("1/2", (-1, 0, KEPT), (0, 0, "1/2"), (1, 2, "1/2"), (1, 2, "1"), (0, 1, "1/4")),
    "kept in the middle": totals("1/2", (-1, 1, "1/2"), (0, 0, KEPT), (1, 1, "1/2"), (1, 2, "1"), (0, 1, "1/3")),
    "nothing but kept ones": totals("1", (-1, 0, "1/2"), (0, 2, KEPT), (0, 2, KEPT)),
    "two trees": totals("1", (-1, 2, "1/2"), (-1, 0, KEPT), (1, 1, "1"), (1, 1, "1/2")),
}


def members(tree, node):
    """The cells of a total."""
    inside = {node}
    for child, parent in enumerate(tree.parents):  # parents come first
        if parent in inside:
            inside.add(child)
    return [cell for cell, home in enumerate(np.repeat(np.arange(len(tree.cells)), tree.cells)) if home in inside]


def log_weights(tree, points):
    """The logarithm of the weight of each vector, and whether it keeps what is kept."""
    logs, kept = -float(tree.epsilon) * np.abs(points).sum(axis=1), np.ones(len(points), dtype=bool)
    for node, weight in enumerate(tree.weights):
        sums = points[:, members(tree, node)].sum(axis=1)
        if weight is KEPT:
            kept &= sums == 0
        else:
            logs -= float(weight) * np.abs(sums)
    return logs, kept


def enumerated(tree, reach):
    """Every vector with entries up to the reach, and its chance."""
    points = boxed(reach, sum(tree.cells))
    logs, kept = log_weights(tree, points)
    return as_tuples(points[kept]), np.exp(logs[kept]) / whole_weight(tree)


def whole_weight(tree):
    """The weight of all vectors: sums of totals one after the other, by convolutions."""
    box = int(45 / tree.epsilon)
    place = np.abs(np.arange(-box, box + 1))
    cell, nothing = np.exp(-float(tree.epsilon) * place), (place == 0).astype(float)
    below, whole = [nothing] * len(tree.parents), 1.0
    for node in reversed(range(len(tree.parents))):
        for _ in range(tree.cells[node]):
            below[node] = np.convolve(below[node], cell, mode="same")
        weight, parent = tree.weights[node], tree.parents[node]
        if weight is KEPT:
            whole *= below[node][box]
            continue
        weighted = below[node] * np.exp(-float(weight) * place)
        if parent < 0:
            whole *= weighted.sum()
        else:
            below[parent] = np.convolve(below[parent], weighted, mode="same")
    return whole


def drawn(sampler, count, seed=1, threads=1):
    """So many draws, a row each."""
    out = np.empty((count, sampler.width), dtype=np.int64)
    sampler.draw_into(out, rng(seed=seed), threads)
    return out
