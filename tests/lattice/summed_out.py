"""Totals that can be summed out family by family, and others that cannot."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from keepsum.lattice.structure import identical_columns


def cells_of(*axes):
    """The category of every cell in each axis, axes by name; T, for the grand total, has one category."""
    names = [name for name, _ in axes]
    places = np.indices([size for _, size in axes]).reshape(len(axes), -1)
    return dict(zip(names, places, strict=True)) | {"T": np.zeros_like(places[0])}


def nested(counties, state_of, *axes):
    """Counties within states, crossed with other axes: the state of every cell is one more axis."""
    cells = cells_of(("C", counties), *axes)
    return cells | {"S": np.asarray(state_of)[cells["C"]]}


def totals(cells, *margins):
    """One row for each combination of categories of each margin that has cells."""
    rows = []
    for margin in margins:
        keys = np.stack([cells[name] for name in margin], axis=1)
        rows += [(keys == key).all(axis=1) for key in np.unique(keys, axis=0)]
    return np.array(rows, dtype=np.int64)


def without(matrix, zeros):
    return np.delete(matrix, zeros, axis=1)


def holes(matrix, share, seed):
    """Structural zeros at random."""
    width = matrix.shape[1]
    return without(matrix, np.flatnonzero(np.random.default_rng(seed).random(width) < share))


def shuffled(matrix, seed):
    rng = np.random.default_rng(seed)
    return matrix[rng.permutation(len(matrix))][:, rng.permutation(matrix.shape[1])]


def rescaled(matrix, seed):
    rng = np.random.default_rng(seed)
    return matrix * rng.choice([1, -1, 2, 5], size=len(matrix))[:, None]


THREE = cells_of(("A", 4), ("B", 3), ("C", 2))
FOUR = cells_of(("A", 3), ("B", 3), ("C", 2), ("D", 2))
FIVE = cells_of(("A", 3), ("B", 2), ("C", 2), ("D", 2), ("E", 2))
STATES = [0, 0, 0, 1, 1, 2]
GEOGRAPHY = nested(6, STATES, ("A", 3), ("X", 2))
INCOMPLETE = totals(THREE, "A", "B", "C")[[0, 1, 2, 3, 4, 5, 7]]  # two of three B, one of two C
ONE_SEX = np.flatnonzero((THREE["A"] == 0) & (THREE["C"] == 1))

DECOMPOSABLE = {
    # one-way
    "two axes": totals(cells_of(("A", 4), ("B", 3)), "A", "B"),
    "three axes": totals(THREE, "A", "B", "C"),
    "three binary axes": totals(cells_of(("A", 2), ("B", 2), ("C", 2)), "A", "B", "C"),
    "four axes": totals(FOUR, "A", "B", "C", "D"),
    "five axes": totals(FIVE, "A", "B", "C", "D", "E"),
    "long and short": totals(cells_of(("A", 12), ("B", 2), ("C", 2)), "A", "B", "C"),
    # chains
    "AB, BC": totals(THREE, "AB", "BC"),
    "AB, BC, CD": totals(FOUR, "AB", "BC", "CD"),
    "AB, BC, CD, DE": totals(FIVE, "AB", "BC", "CD", "DE"),
    "ABC, BCD": totals(FOUR, "ABC", "BCD"),
    "ABC, CD, DE": totals(FIVE, "ABC", "CD", "DE"),
    # stars and forests
    "AB, AC": totals(THREE, "AB", "AC"),
    "AB, AC, AD": totals(FOUR, "AB", "AC", "AD"),
    "AB, AC, D": totals(FOUR, "AB", "AC", "D"),
    "AB, C, D": totals(FOUR, "AB", "C", "D"),
    "AB, CD": totals(FOUR, "AB", "CD"),
    "AB, CD, E": totals(FIVE, "AB", "CD", "E"),
    "ABC, ABD, ABE": totals(FIVE, "ABC", "ABD", "ABE"),
    # nested geography
    "county x sex, state x age": totals(GEOGRAPHY, "CX", "SA"),
    "county, age, sex": totals(GEOGRAPHY, "C", "A", "X"),
    "county, state x age, sex": totals(GEOGRAPHY, "C", "SA", "X"),
    "county, state x age, state x sex": totals(GEOGRAPHY, "C", "SA", "SX"),
    "county x age, state x sex": totals(GEOGRAPHY, "CA", "SX"),
    "county, state, age x sex": totals(GEOGRAPHY, "C", "S", "AX"),
    # structural zeros
    "three axes, one zero": without(totals(THREE, "A", "B", "C"), [5]),
    "three axes, zeros": holes(totals(cells_of(("A", 5), ("B", 4), ("C", 3)), "A", "B", "C"), 0.2, 1),
    "three axes, few cells": holes(totals(THREE, "A", "B", "C"), 0.6, 2),
    "chain, zeros": holes(totals(FOUR, "AB", "BC", "CD"), 0.15, 3),
    "star, zeros": holes(totals(FOUR, "AB", "AC", "D"), 0.2, 4),
    "geography, zeros": holes(totals(GEOGRAPHY, "CX", "SA"), 0.2, 5),
    "a category of one sex": without(totals(THREE, "A", "B", "C"), ONE_SEX),
    # redundant, rescaled and implied totals
    "grand total first": totals(THREE, "T", "A", "B", "C"),
    "margins of margins": totals(FOUR, "A", "AB", "T", "B", "BC", "C", "CD", "D"),
    "rescaled": rescaled(totals(THREE, "A", "B", "C"), 6),
    "repeated": np.repeat(totals(THREE, "A", "B", "C"), 2, axis=0),
    "classes left out": INCOMPLETE,
    "running totals": np.vstack([np.cumsum(totals(THREE, "A"), axis=0), totals(THREE, "B", "C")]),
    "ages of one state": np.vstack([totals(GEOGRAPHY, "CX"), totals(GEOGRAPHY, "SA")[:3]]),
}  # fmt: skip

REFUSED = {
    "AB, BC, CA": totals(cells_of(("A", 3), ("B", 3), ("C", 4)), "AB", "BC", "AC"),
    "a cycle of four": totals(FOUR, "AB", "BC", "CD", "AD"),
    "AB, BC, CA, D": totals(FOUR, "AB", "BC", "AC", "D"),
    "geography in a cycle": totals(GEOGRAPHY, "CX", "SA", "AX"),
    "all three-way": totals(FOUR, "ABC", "ABD", "ACD", "BCD"),
    "weights": np.vstack([totals(THREE, "A", "B", "C"), np.arange(24)[None]]),
}


def apart(matrix):
    """The same totals over regions: columns must differ."""
    return matrix[:, identical_columns(sparse.csc_array(matrix))[1]]
