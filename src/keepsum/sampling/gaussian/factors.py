"""The triangular factor of a lattice's Gram matrix: in floats on the safe side, or in closed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import sparse

from keepsum._arrays import Floats, IntArray
from keepsum.lattice.matrix import vectors_matrix
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import FloatMatrix, OutFloatMatrix
from keepsum.sampling.gaussian.kernel_arguments import FactorTables

# The triangular factor of a lattice's Gram matrix, in floats that are rigorously on the safe side.
#
# They define the proposals of an exact sampler, so they are the same floats on every processor
# (``native/gaussian_factors.c``).


add_products = Kernel("add_products", IntArray, IntArray, Floats, Floats, OutFloatMatrix)
factorise = Kernel("factorise", OutFloatMatrix)
subtract_form = Kernel("subtract_form", OutFloatMatrix, FloatMatrix, Floats)
centre_of = Kernel("centre_of", int, FactorTables, IntArray, returns=float)

LARGEST_DIMENSION = 3000  # the dimension up to which a dense factor is computed: some ten seconds
MACHINE_EPSILON = 2.0**-52


@dataclass(frozen=True, eq=False)
class Factor:
    """For a quadratic form G of a lattice: numbers with sum of (v_j - c_j)^2 / share_j <= v' G v for all whole v.

    ``c_j`` is minus the sum of ``factors`` times the coordinates behind j, as floats add it up. Up to the last digits
    of floats it is the Gram-Schmidt form, to which the two sides are equal.

    ``tables`` are the numbers, as the kernels read them.
    """

    tables: FactorTables

    @property
    def shares(self) -> Floats:
        """The variance of each coordinate given those behind it, as a share of sigma^2."""
        return self.tables.shares

    @property
    def _basis(self) -> sparse.csr_array:
        tables = self.tables
        return sparse.csr_array((tables.basis_values, tables.basis_rows, tables.basis_pointers))

    def variance(self, region: int) -> float:
        """The variance of a region's sum under wide noise, as a share of sigma^2."""
        tables, size = self.tables, len(self.shares)
        below = sparse.csc_array((tables.factors, tables.rows, tables.pointers), shape=(size, size))
        lower = below.toarray() + np.eye(size)
        entries = np.zeros(size)
        places = slice(tables.basis_pointers[region], tables.basis_pointers[region + 1])
        entries[tables.basis_rows[places]] = tables.basis_values[places]
        # b' G^-1 b with G = L D L', D the inverse of the shares.
        solved = np.linalg.solve(lower, entries)
        return float((solved**2 * self.shares).sum())

    @cached_property
    def _inverse(self) -> Floats:
        return np.asarray(np.linalg.pinv(self._basis.toarray().astype(np.float64)))

    def coordinates(self, sums: IntArray) -> IntArray:
        """The coordinates of a vector of the lattice."""
        rounded: IntArray = np.rint(self._inverse @ sums).astype(np.int64)
        if not np.array_equal(self._basis @ rounded, sums):
            raise AssertionError("not a vector of the lattice")
        return rounded

    def centres(self, coordinates: IntArray) -> Floats:
        """The centres that the kernels came to, the same floats."""
        return np.array([centre_of(j, self.tables, coordinates) for j in range(len(self.shares))])


def make_factor(basis: Sequence[Mapping[int, int]], sizes: IntArray, weights: Sequence[Fraction] = ()) -> Factor | None:
    """The factor for a basis over regions with the form sum of S^2 / n; None if it is too large or too skew.

    The form has a term w S^2 more for each of these weights, of a further entry of the vectors behind the regions.
    """
    if not 0 < len(basis) <= LARGEST_DIMENSION:
        return None
    form = np.concatenate([1.0 / sizes, [float(weight) for weight in weights]])
    matrix = vectors_matrix(basis, len(form))
    matrix = matrix[:, _narrow_order(matrix)]
    gram = gram_of(matrix, form)
    root = gram.copy()
    if not factorise(root):
        return None
    diagonal = np.diag(root).copy()
    upper = np.triu(root) / diagonal[:, None]
    upper[np.abs(upper) < 2.0**-60] = 0.0
    for safety in (2.0**-24, 2.0**-18, 2.0**-12, 2.0**-8):
        shares = 1.0 / (diagonal * (1.0 - safety))
        if dominated(gram, upper, shares, len(form)):
            return _packed(shares, sparse.csr_array(np.triu(upper, 1)), sparse.csr_array(matrix))
    return None


def gram_of(matrix: sparse.csr_array, form: Floats) -> Floats:
    """The upper triangle of B' diag(form) B; the rest is 0."""
    by_region = sparse.csr_array(matrix)
    by_region.sort_indices()
    gram = np.zeros((matrix.shape[1], matrix.shape[1]))
    add_products(
        by_region.indptr.astype(np.int64),
        by_region.indices.astype(np.int64),
        by_region.data.astype(np.float64),
        form,
        gram,
    )
    return gram


def _narrow_order(matrix: sparse.csr_array) -> IntArray:
    """An order of the vectors that keeps a sparse factor sparse; vectors that all touch stay as they are."""
    links = (abs(matrix).T @ abs(matrix)).tocsr()
    if links.nnz > matrix.shape[1] ** 2 // 4:
        return np.arange(matrix.shape[1])
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    return np.asarray(reverse_cuthill_mckee(links, symmetric_mode=True), dtype=np.int64)


def dominated(gram: Floats, upper: Floats, shares: Floats, terms: int = 0) -> bool:
    """Whether the sum of (v_j - c_j)^2 / share_j is at most v' G v for all v, c_j as floats add it up.

    A float c_j errs by at most e_j = m u |L|_j |v|, u the unit of roundoff, so with any t > 0 the left side is at most
    (1 + t) times the exact form F plus (1 + 1/t) times the sum of e_j^2 / share_j, which is at most k |v|^2. What must
    be shown is that G - (1 + t) F - k I is positive semidefinite. A factorisation that succeeds in floats for that
    matrix less c I shows it, if c exceeds what floats can err by: in the entries, and in the factorisation (Rump,
    Verification of positive definiteness, BIT 46, 2006, whose argument holds for L D L' as for L L'). Entries of
    ``gram`` are sums of so many ``terms``. Of ``gram``, as of L' (``upper``), there is the upper triangle only.
    """
    size = len(gram)
    t = 2.0**-30
    slips = (1.0 + 1.0 / t) * (size * MACHINE_EPSILON) ** 2 * float((upper**2 / shares[:, None]).sum()) * size
    rest = gram.copy()
    subtract_form(rest, upper, (1.0 + t) / shares)
    # No entry of a positive semidefinite matrix is larger than the largest of its diagonal; that of F is G's, nearly.
    largest = 2.0 * float(np.diag(gram).max() + np.abs(np.diag(rest)).max())
    entries = 4.0 * size * (size + terms + 8.0) * MACHINE_EPSILON * largest
    factoring = 2.0 * (size + 4.0) * MACHINE_EPSILON * float(np.abs(np.diag(rest)).sum())
    rest[np.diag_indices(size)] -= slips + entries + factoring
    return bool(factorise(rest))


def _packed(shares: Floats, below: sparse.csr_array | sparse.csc_array, basis: sparse.csr_array) -> Factor:
    """The factor, from what is below its diagonal, column by column, and the basis, region by region."""
    below.sort_indices()
    basis.sort_indices()
    tables = FactorTables(
        shares=shares,
        pointers=below.indptr.astype(np.int64),
        rows=below.indices.astype(np.int64),
        factors=below.data.astype(np.float64),
        basis_pointers=basis.indptr.astype(np.int64),
        basis_rows=basis.indices.astype(np.int64),
        basis_values=basis.data.astype(np.int64),
    )
    return Factor(tables)


# The triangular factor of nested totals, in closed form: as many numbers as there are totals and regions.
#
# The sum S of a total is divided among its parts s_1, ..., s_k: the totals inside it, and the region of its other
# cells. Coordinates are the remaining sums R_i = s_(i+1) + ... + s_k, i = 1, ..., k - 1. If a part's sum has variance
# v_i, given nothing around it, and V_i is the sum of the v behind i, R_i given R_(i-1) has mean R_(i-1) V_i /
# V_(i-1), R_0 = S, and variance v_i V_i / V_(i-1). A region of n cells has v = n; a total with weight w has v = 1 /
# (w + 1/V_0). All of these are shares of sigma^2, and computed from positive numbers without subtraction.
#
# The form of these draws must be at most the lattice's for all vectors x (``Factor``). With exact centres and
# variances the two are equal, F(x). Computed centres are off by at most eta times the sum of |f x| over their e_j
# terms, f at most 1. As the form is at least the sum of squares of cells, x_k^2 <= N F, N the number of cells. So if
# variances are larger by 1 + s,
#
#     sum of (x_j - c_j)^2 / share_j <= (1 + t)/(1 + s) F + (1 + 1/t) eta^2 N sum of e_j^2 / share_j F,
#
# which is at most F for t = s/4 if the last sum, times eta^2 N, is at most s^2 / 16 and s <= 1/8.


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
    return _packed_tree(built, [*range(regions), *focused], sizes)


def _packed_tree(built: _Builder, columns: list[int], sizes: IntArray) -> Factor | None:
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
    below = _sparse(entries, (count, count)).tocsc()
    basis = _sparse(
        [(row, count - 1 - at, sign) for row, node in enumerate(columns) for at, sign in built.sums[node].items()],
        (len(columns), count),
    )
    return _packed(shares[::-1] * (1.0 + 2.0 * safety), below, basis)


def _sparse(entries: list[tuple[int, int, float]], shape: tuple[int, int]) -> sparse.csr_array:
    rows, columns, values = (np.array(part) for part in zip(*entries, strict=True)) if entries else ([], [], [])
    return sparse.csr_array((values, (rows, columns)), shape=shape)
