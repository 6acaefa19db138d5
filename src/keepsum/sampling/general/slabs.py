"""How the lattice of a block is laid out for drawing it coordinate by coordinate.

A table under all margins of one way less is a stack of *slabs*: each slab lies in one smaller lattice, and all slabs
add up to 0. The slabs are then eliminated one after the other, in time proportional to their number. Any other lattice
is a single slab, its basis ordered so that the factor of its form stays near the diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from scipy import sparse

from keepsum._arrays import Floats, IntArray
from keepsum.lattice.matrix import Row, vectors_matrix
from keepsum.sampling.general.kernel_arguments import SlabTables
from keepsum.sampling.general.verified import VerifiedForm, cholesky, verified_form


@dataclass(frozen=True, eq=False)
class Slabs:
    """A lattice of region sums in slabs.

    Attributes
    ----------
    order
        The column of the block that each region stands for, slab by slab.
    slabs
        How many slabs there are; with one, the lattice is the slab's.
    basis
        The basis of a slab, regions by coordinates.
    """

    order: IntArray
    slabs: int
    basis: sparse.csr_array

    @property
    def size(self) -> int:
        """The coordinates of a slab."""
        return int(self.basis.shape[1])

    @property
    def drawn(self) -> int:
        """The slabs that are drawn; the last of several follows from the others."""
        return max(1, self.slabs - 1)

    @property
    def dimension(self) -> int:
        """The dimension of the lattice."""
        return self.drawn * self.size

    @cached_property
    def profile(self) -> IntArray:
        """Where each row of the factor of a slab's form starts."""
        if self.slabs > 1:
            return np.zeros(self.size, dtype=np.int64)
        pattern = sparse.coo_array(abs(self.basis).T @ abs(self.basis))
        first = np.arange(self.size)
        np.minimum.at(first, pattern.row, pattern.col)
        return first.astype(np.int64)

    @property
    def multiplications(self) -> int:
        """About how many multiplications the factors of one proposal take."""
        reach = np.arange(self.size) - self.profile + 1.0
        if self.slabs == 1:
            return int((reach**2).sum() / 2)
        rows_only = 5 / 6 if self.is_rows else 3 / 2
        return int(rows_only * self.slabs * self.size**3)

    @property
    def is_rows(self) -> bool:
        """Whether a slab is a row with its sum kept."""
        width, size = self.basis.shape
        star = sparse.vstack([sparse.eye_array(size), -np.ones((1, size))]) if width == size + 1 else None
        return self.slabs > 1 and star is not None and abs(self.basis - star).nnz == 0

    def tables(self, law: IntArray) -> SlabTables:
        """As the kernels read them; ``law`` is the number of each region's law."""
        basis = sparse.csr_array(self.basis)
        basis.sort_indices()
        return SlabTables(
            law=law,
            slabs=self.slabs,
            simple=self.is_rows,
            pointers=basis.indptr.astype(np.int64),
            rows=basis.indices.astype(np.int64),
            values=basis.data.astype(np.float64),
            profile=self.profile,
        )

    def full_basis(self) -> Floats:
        """The basis of the whole lattice, regions by coordinates; the last coordinate is the first to be drawn."""
        one: Floats = self.basis.toarray().astype(np.float64)
        if self.slabs == 1:
            return one
        turned = np.vstack([np.eye(self.slabs - 1)[::-1], -np.ones((1, self.slabs - 1))])
        return np.asarray(np.kron(turned, one))

    def form(self, variances: Floats) -> VerifiedForm | None:
        """What is proved of the form B' V^-1 B; it is worked out once for all mixtures on these slabs."""
        key = variances.tobytes()
        if key not in self._forms:
            self._forms[key] = verified_form(self.full_basis(), variances)
        return self._forms[key]

    @cached_property
    def _forms(self) -> dict[bytes, VerifiedForm | None]:
        return {}

    def widths(self, variances: Floats | None = None) -> Floats:
        """The standard deviation with which each coordinate is drawn when regions have these variances, or 1."""
        basis = self.full_basis()
        form = basis.T @ (basis if variances is None else basis / variances[:, None])
        roots = np.zeros(self.dimension)
        cholesky(form, np.zeros(self.dimension, dtype=np.int64), roots)
        return roots

    @cached_property
    def width_bounds(self) -> tuple[Floats, Floats]:
        """Below and above the ``widths``, proved: those of a slab times sqrt(j/(j+1)) for the j-th slab from the last.

        A factor of a Kronecker product is the product of factors. Where floats prove nothing, 0 and infinity.
        """
        form = verified_form(self.basis.toarray().astype(np.float64), np.ones(self.basis.shape[0]))
        if form is None:
            return np.zeros(self.dimension), np.full(self.dimension, np.inf)
        j = np.arange(1, self.drawn + 1) if self.slabs > 1 else np.array([np.inf])
        stacked = 1 / np.sqrt(1 + 1 / j)
        low, high = form.widths
        return (
            np.asarray(np.kron(stacked, low) * (1 - 2.0**-50), dtype=np.float64),
            np.asarray(np.kron(stacked, high) * (1 + 2.0**-50), dtype=np.float64),
        )


def table_slabs(column: IntArray) -> Slabs:
    """A table under all margins of one way less: slabs along its longest axis."""
    longest = int(np.argmax(column.shape))
    stacked = np.moveaxis(column, longest, 0)
    stars = [
        np.vstack([np.eye(n - 1, dtype=np.int64), -np.ones((1, n - 1), dtype=np.int64)]) for n in stacked.shape[1:]
    ]
    return Slabs(stacked.reshape(-1), stacked.shape[0], sparse.csr_array(reduce(np.kron, stars)))


def lattice_slab(basis: list[Row], width: int) -> Slabs:
    """Any other lattice: one slab, its basis in an order that keeps the factor's rows short."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    matrix = vectors_matrix(basis, width)
    order = reverse_cuthill_mckee(sparse.csr_array(abs(matrix).T @ abs(matrix)), symmetric_mode=True)
    as_given = Slabs(np.arange(width), 1, matrix)
    ordered = Slabs(np.arange(width), 1, sparse.csr_array(matrix[:, order]))
    # A reduced basis has its shortest vectors first, which serves the widths: kept unless the order pays well.
    return ordered if ordered.multiplications < as_given.multiplications / 4 else as_given


def leverages(matrix: sparse.csr_array, variances: Floats) -> Floats:
    """How much of each region's variance the totals take away: v a'(A V A')^-1 a."""
    dense = matrix.toarray().astype(np.float64)
    inverse = np.linalg.pinv((dense * variances) @ dense.T, hermitian=True)
    return np.asarray(variances * np.einsum("ij,ij->j", dense, inverse @ dense))
