"""The triangular factor of nested totals, in closed form: as many numbers as there are totals and regions.

The sum S of a total is divided among its parts s_1, ..., s_k: the totals inside it, and the region of its other cells.
Coordinates are the remaining sums R_i = s_(i+1) + ... + s_k, i = 1, ..., k - 1. If a part's sum has variance v_i, given
nothing around it, and V_i is the sum of the v behind i, R_i given R_(i-1) has mean R_(i-1) V_i / V_(i-1), R_0 = S, and
variance v_i V_i / V_(i-1). A region of n cells has v = n; a total with weight w has v = 1 / (w + 1/V_0). All of these
are shares of sigma^2, and computed from positive numbers without subtraction.

The form of these draws must be at most the lattice's for all vectors x (``Factor``). With exact centres and variances
the two are equal, F(x). Computed centres are off by at most eta times the sum of |f x| over their e_j terms, f at most
1. As the form is at least the sum of squares of cells, x_k^2 <= N F, N the number of cells. So if variances are larger
by 1 + s,

    sum of (x_j - c_j)^2 / share_j <= (1 + t)/(1 + s) F + (1 + 1/t) eta^2 N sum of e_j^2 / share_j F,

which is at most F for t = s/4 if the last sum, times eta^2 N, is at most s^2 / 16 and s <= 1/8.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy import sparse

from keepsum._arrays import IntArray
from keepsum.sampling.gaussian.factors import MACHINE_EPSILON, Factor
from keepsum.sampling.gaussian.kernel_arguments import FactorTables

Combination = dict[int, int]  # the coordinates that a sum consists of, with their signs
SAFETIES = tuple(2.0**-power for power in (30, 24, 20, 16, 12))


class _Builder:
    """Coordinates, the factors and variances of each, and the sums of regions and totals."""

    def __init__(self, children: list[list[int]], variances: list[float]) -> None:
        self.children, self.variances = children, variances
        self.factors: list[dict[int, float]] = []
        self.shares: list[float] = []
        self.sums: dict[int, Combination] = {}

    def coordinate(self, share: float, factors: dict[int, float]) -> int:
        """A further coordinate, with its factors over those before it."""
        self.shares.append(share)
        self.factors.append(factors)
        return len(self.shares) - 1

    def divide(self, node: int) -> None:
        """The coordinates of the parts of a node, whose own sum is known."""
        parts, rest = self.children[node], self.sums[node]
        behind = np.cumsum([self.variances[part] for part in parts[::-1]])[::-1]
        for place, part in enumerate(parts[:-1]):
            mean, variance = behind[place + 1] / behind[place], self.variances[part] * behind[place + 1] / behind[place]
            number = self.coordinate(float(variance), {at: -sign * float(mean) for at, sign in rest.items()})
            self.sums[part] = {**rest, number: -1}
            rest = {number: 1}
        self.sums[parts[-1]] = rest


def tree_factor(parents: Sequence[int], sizes: IntArray, weights: Sequence[Fraction | None]) -> Factor | None:
    """The factor of nested totals, regions first and then totals; None if it cannot be proved to be on the safe side.

    Parameters
    ----------
    parents
        For each region and then for each total, the number of the smallest total around it, counted behind the
        regions; -1 for the outermost. Totals come after those around them.
    sizes
        The cells of each region.
    weights
        The weight of each total, where a cell has 1; None for a kept one, which is the outermost.
    """
    regions, nodes = len(sizes), len(parents)
    children: list[list[int]] = [[] for _ in range(nodes)]
    for node, parent in enumerate(parents):
        if parent >= 0:
            children[regions + parent].append(node)
    variances = [float(n) for n in sizes.tolist()] + [0.0] * len(weights)
    for node in range(nodes - 1, regions - 1, -1):
        inside, weight = sum(variances[child] for child in children[node]), weights[node - regions]
        variances[node] = inside if weight is None else 1.0 / (float(weight) + 1.0 / inside)
    built = _Builder(children, variances)
    root = regions
    built.sums[root] = {} if weights[0] is None else {built.coordinate(variances[root], {}): 1}
    for node in range(regions, nodes):
        built.divide(node)
    focused = [node for node in range(regions, nodes) if weights[node - regions] is not None]
    return _packed(built, [*range(regions), *focused], sizes)


def _packed(built: _Builder, columns: list[int], sizes: IntArray) -> Factor | None:
    """The factor with coordinates from the last to the first, which is the order of draws."""
    count = len(built.shares)
    terms = np.array([len(factors) for factors in built.factors])
    shares = np.array(built.shares)
    eta = (4.0 * (len(built.children) + 16.0)) * MACHINE_EPSILON
    slips = 2.0 * eta**2 * float(sizes.sum()) * float((terms**2 / shares).sum())
    safety = next((safety for safety in SAFETIES if slips <= safety**2 / 16 and 8 * eta <= safety), None)
    if safety is None or not count:
        return None
    entries = [(count - 1 - at, count - 1 - j, f) for j, of in enumerate(built.factors) for at, f in of.items()]
    below = _sparse([(row, column, value) for row, column, value in entries], (count, count)).tocsc()
    basis = _sparse(
        [(row, count - 1 - at, sign) for row, node in enumerate(columns) for at, sign in built.sums[node].items()],
        (len(columns), count),
    )
    below.sort_indices()
    basis.sort_indices()
    tables = FactorTables(
        shares=shares[::-1] * (1.0 + 2.0 * safety),
        pointers=below.indptr.astype(np.int64),
        rows=below.indices.astype(np.int64),
        factors=below.data.astype(np.float64),
        basis_pointers=basis.indptr.astype(np.int64),
        basis_rows=basis.indices.astype(np.int64),
        basis_values=basis.data.astype(np.int64),
    )
    return Factor(tables)


def _sparse(entries: list[tuple[int, int, float]], shape: tuple[int, int]) -> sparse.csr_array:
    rows, columns, values = (np.array(part) for part in zip(*entries, strict=True)) if entries else ([], [], [])
    return sparse.csr_array((values, (rows, columns)), shape=shape)
