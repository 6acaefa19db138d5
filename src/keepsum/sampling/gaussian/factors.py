"""The triangular factor of a lattice's Gram matrix, in floats that are rigorously on the safe side.

They define the proposals of an exact sampler, so they are the same floats on every processor
(``native/gaussian_factors.c``).
"""

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
            return _packed(shares, upper, matrix)
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


def _packed(shares: Floats, upper: Floats, matrix: sparse.csr_array) -> Factor:
    below = sparse.csr_array(np.triu(upper, 1))
    by_region = sparse.csr_array(matrix)
    by_region.sort_indices()
    tables = FactorTables(
        shares=shares,
        pointers=below.indptr.astype(np.int64),
        rows=below.indices.astype(np.int64),
        factors=below.data.astype(np.float64),
        basis_pointers=by_region.indptr.astype(np.int64),
        basis_rows=by_region.indices.astype(np.int64),
        basis_values=by_region.data.astype(np.int64),
    )
    return Factor(tables)
