"""Bounds on the noise of queries under overlapping totals, without drawing any: free noise has larger moments.

Write f(x) = rho(M + x) / rho(M) for a lattice M, rho the sum of exp(-|v|^2/2) over all v. Then (Regev and
Stephens-Davidowitz, An inequality for Gaussians on lattices, 2017)

    f(x)^2 f(y)^2 <= f(x + y) f(x - y):

with (u, v) -> (u + v, u - v), rho(M + x) rho(M + y) is the sum of g_c(x + y) g_c(x - y) over the cosets c of 2M in M,
where g_c(w) sums exp(-|v|^2/4) over 2M + c + w; Cauchy and Schwarz bound its square by the sums of g_c(x + y)^2 and
of g_c(x - y)^2, which are rho(M + x + y) rho(M) and rho(M + x - y) rho(M).

If M lies in a lattice L, rho(L + x) is the sum of rho(M + x + c) over cosets c and -c; with
f(x + c) + f(x - c) >= 2 f(x) f(c) it follows that rho(M + x)/rho(M) <= rho(L + x)/rho(L). As rho(L + x)/rho(L) is
exp(-|x|^2/2) E[exp(<x, z>)] for Gaussian noise z on L, **the moments E[exp(<h, z>)] of Gaussian noise are at most those
on any larger lattice**, for any scale of each coordinate: at most those of independent cells, and so are variances.

l1 Laplace noise is Gaussian noise with independent scales s_i, their law weighted by rho_s(L). Relative to independent
cells that weight is g(s) = rho_s(L)/rho_s(Z^n), which falls with every s_i, as d ln rho_s / d(-1/2 s_i^2) is the second
moment of z_i. The moments of independent cells rise with every s_i, so their mean under g is at most that without it
(Harris). So **E[exp(<h, z>)] <= product of M(h_i)**, M the moments of a free cell, also for l1 Laplace noise.

Noise with a focus is such noise on a longer lattice: with a cell y_g = z(g) for each focused total g, which has weights
of its own. So the moments of queries over its other cells are at most those of free cells as well.

Any combination of kept totals may be taken from a query, whose noise stays the same; least squares find a good one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.accuracy.free_cells import FreeCell
from keepsum.accuracy.queries import Weights
from keepsum.lattice.structure import FORCED, Structure

ROOM = 1 + 1e-9  # for rounding
NEGLIGIBLE_WEIGHT = 1e-9  # relative to the largest: a solver's rounding


@dataclass(frozen=True, eq=False)
class DominatedPiece:
    """The noise of a query under overlapping totals: its moments are at most those of free cells with these weights."""

    cell: FreeCell
    weights: Floats
    counts: Floats

    @property
    def largest_tilt(self) -> float:
        """Moments are finite below this."""
        limit = self.cell.largest_tilt
        return limit if math.isinf(limit) else limit / float(np.abs(self.weights).max())

    @property
    def variance(self) -> float:
        """An upper bound on the variance."""
        return self.cell.variance * float((self.counts * self.weights**2).sum()) * ROOM

    def log_moments(self, tilts: Floats) -> Floats:
        """Upper bounds on ln E[exp(h X)]."""
        each = [float((self.counts * self.cell.log_moment(tilt * self.weights)).sum()) for tilt in tilts.tolist()]
        return np.array(each) * ROOM

    def least_fall(self, angles: Floats) -> Floats | None:
        """None: only moments are known."""
        return None

    def work(self, angles: int) -> int:
        """Nothing is computed."""
        return 0

    def transform(self, where: IntArray, points: int, unit: int) -> Floats:
        """Not known."""
        raise AssertionError("only moments are known")


def dominated_piece(query: Weights, structure: Structure, cell: FreeCell) -> DominatedPiece:
    """The bound for a query, less the combination of kept totals in each block that leaves the shortest query.

    ``structure`` is that of the kept totals: cells under a focus are in regions with a kept sum, or under no total.
    """
    from scipy.sparse.linalg import lsqr  # which no release needs

    vector = np.zeros(query.size)
    vector[query.cells] = query.weights
    parts = []
    touched = np.unique(structure.part[structure.region[query.cells]])
    for number in touched.tolist():
        if number < 0:
            continue
        block = structure.blocks[number]
        place = np.full(len(structure.sizes), -1, dtype=np.int64)
        place[block.regions] = np.arange(len(block.regions))
        cells = np.flatnonzero(structure.part[structure.region] == number)
        rows = block.system.matrix.tocsc()[:, place[structure.region[cells]]].astype(np.float64)
        found = lsqr(rows.T, vector[cells], atol=1e-12, btol=1e-12, iter_lim=20 * sum(rows.shape))[0]
        parts.append(vector[cells] - rows.T @ found)
    for cells in _regions(query.cells, structure):
        forced = structure.part[structure.region[cells[0]]] == FORCED
        parts.append(vector[cells] - (vector[cells].mean() if forced else 0.0))
    left = np.concatenate(parts)
    # Rounded away from 0, so that bounds still hold, to weights of which there are few.
    grid = float(np.abs(left).max()) * NEGLIGIBLE_WEIGHT
    sizes, counts = np.unique(np.ceil(np.abs(left) / grid), return_counts=True)
    return DominatedPiece(cell, sizes * grid, counts.astype(np.float64))


def _regions(cells: IntArray, structure: Structure) -> Iterator[IntArray]:
    """All cells of each region outside of blocks that a query touches."""
    touched = np.unique(structure.region[cells])
    for region in touched[structure.part[touched] < 0].tolist():
        yield structure.cells(region)
