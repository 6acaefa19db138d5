"""Gaussian noise under overlapping totals: a query sees only its projection onto the lattice's span."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from keepsum._arrays import Floats
from keepsum.accuracy.queries import Weights
from keepsum.lattice.structure import Structure

ROOM = 1 + 1e-6  # for what an iterative solver errs by


@dataclass(frozen=True)
class ProjectedPiece:
    """Gaussian noise of a query whose projection has this squared length: only bounds are known."""

    sigma: float
    square: float

    @property
    def largest_tilt(self) -> float:
        """Moments are finite everywhere."""
        return math.inf

    @property
    def variance(self) -> float:
        """An upper bound on the variance."""
        return self.sigma**2 * self.square

    def log_moments(self, tilts: Floats) -> Floats:
        """Upper bounds on ln E[exp(h X)]."""
        return np.asarray(tilts**2 * self.variance / 2)

    def least_fall(self, angles: Floats) -> Floats | None:
        """None: only moments are known."""
        return None

    @property
    def cost(self) -> int:
        """Nothing is computed."""
        return 0

    def transform(self, angles: Floats) -> Floats:
        """Not known."""
        raise AssertionError("only moments are known")


def projected_square(query: Weights, structure: Structure) -> float:
    """An upper bound on the squared length of the projection of a query in blocks onto the span of the lattice.

    Taking any combination of kept totals from a query does not change its noise, so that what is left has at least this
    length, whichever combination a solver finds.
    """
    from scipy.sparse.linalg import lsqr  # which no release needs

    vector = np.zeros(query.size)
    vector[query.cells] = query.weights
    total = 0.0
    touched = np.unique(structure.part[structure.region[query.cells]])
    for number in touched.tolist():
        block = structure.blocks[number]
        place = np.full(len(structure.sizes), -1, dtype=np.int64)
        place[block.regions] = np.arange(len(block.regions))
        cells = np.flatnonzero(structure.part[structure.region] == number)
        rows = block.system.matrix.tocsc()[:, place[structure.region[cells]]].astype(np.float64)
        found = lsqr(rows.T, vector[cells], atol=1e-12, btol=1e-12, iter_lim=20 * sum(rows.shape))[0]
        left = vector[cells] - rows.T @ found
        total += float(left @ left)
    return total * ROOM
