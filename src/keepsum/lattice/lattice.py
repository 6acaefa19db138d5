"""The lattice of all noise that keeps the totals, ``{ z in Z^d : A z = 0 }``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from flint import fmpz_mat
from scipy import sparse

from keepsum.errors import InputError
from keepsum.lattice.elimination import LLL_LIMIT, eliminate, reduce, smith
from keepsum.lattice.matrix import Row, as_integers, as_matrix, dense, matrix_rows, product, to_flint
from keepsum.lattice.structure import FORCED, FREE, Block, Structure, System, decompose

# A dense basis with more entries than this (2 GB) is refused; the sparse basis has no such limit.
DENSE_LIMIT = 2**28


class Smith(NamedTuple):
    """U A V = D with U, V unimodular and each diagonal entry of D dividing the next."""

    U: npt.NDArray[Any]
    D: npt.NDArray[Any]
    V: npt.NDArray[Any]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Lattice:
    """All integer vectors that an integer matrix sends to zero.

    Parameters
    ----------
    A
        Any integer matrix, dense or scipy sparse. It may be rank-deficient, contain zero rows, or have no rows.

    Notes
    -----
    Everything is computed in integers. Arrays are returned as int64, or as Python integers (dtype object) where an
    entry does not fit; nothing overflows. Properties are computed at first use and cached.

    Examples
    --------
    >>> import keepsum as ks
    >>> lattice = ks.Lattice([[2, 3, 5]])
    >>> lattice.rank, lattice.dimension, lattice.gram_determinant
    (1, 2, 38)
    >>> lattice.basis
    array([[ 1,  3],
           [ 1, -2],
           [-1,  0]])
    >>> lattice.contains([3, -2, 0]), lattice.contains([1, 0, 0])
    (True, False)
    >>> U, D, V = lattice.smith
    >>> D
    array([[1, 0, 0]])
    """

    matrix: sparse.csr_array

    def __init__(self, A: Any) -> None:
        object.__setattr__(self, "matrix", as_matrix(A))

    @property
    def width(self) -> int:
        """The number of cells, d."""
        return int(self.matrix.shape[1])

    @property
    def rank(self) -> int:
        """The rank of the matrix."""
        return self.structure.rank

    @property
    def dimension(self) -> int:
        """The dimension of the lattice, d - rank."""
        return self.width - self.rank

    @cached_property
    def structure(self) -> Structure:
        """Regions, forced sums and blocks."""
        return decompose(self.matrix)

    @cached_property
    def vectors(self) -> list[Row]:
        """The basis vectors as dictionaries from cell to entry, without zeros.

        Up to dimension 500 the whole basis is LLL-reduced. Beyond that each block is reduced separately if it has a
        closed form or dimension at most 500; blocks are orthogonal, so only the order of the vectors may differ.
        """
        structure = self.structure
        vectors = [{int(cell): 1} for cell in np.flatnonzero((structure.part == FREE)[structure.region])]
        for region in np.flatnonzero(structure.part == FORCED).tolist():
            vectors += _star(structure.cells(region).tolist())
        for block in structure.blocks:
            vectors += _block_vectors(structure, block)
        if len(structure.blocks) == 1 and (structure.part == 0).all():
            return vectors  # there is only one block, and it is already reduced
        vectors.sort(key=lambda vector: sum(e * e for e in vector.values()))
        return reduce(vectors, self.width) if len(vectors) <= LLL_LIMIT else vectors

    @property
    def basis(self) -> npt.NDArray[Any]:
        """A short basis as a d x m array, one vector per column; it generates every vector of the lattice."""
        if self.width * self.dimension > DENSE_LIMIT:
            raise InputError(
                f"A dense basis must have at most {DENSE_LIMIT:,} entries, got {self.width:,} x {self.dimension:,}. "
                f"Use sparse_basis."
            )
        return dense(self.vectors, self.width).T

    @property
    def sparse_basis(self) -> sparse.csc_array:
        """The same basis as a sparse int64 matrix."""
        entries = [entry for vector in self.vectors for entry in vector.values()]
        if any(abs(entry) >= 2**63 for entry in entries):
            raise InputError("A sparse basis must fit 64-bit integers, got a larger entry. Use vectors or basis.")
        indptr = np.cumsum([0, *(len(vector) for vector in self.vectors)])
        cells = [cell for vector in self.vectors for cell in vector]
        return sparse.csc_array(
            (np.array(entries, dtype=np.int64), np.array(cells, dtype=np.int64), indptr),
            shape=(self.width, len(self.vectors)),
        )

    @cached_property
    def smith(self) -> Smith:
        """The Smith normal form; the last d - rank columns of V are ``basis``."""
        height = self.matrix.shape[0]
        u, diagonal, columns = smith(matrix_rows(self.matrix), self.width, self.vectors)
        middle = [{i: entry} for i, entry in enumerate(diagonal)] + [{}] * (height - len(diagonal))
        return Smith(dense(u, height), dense(middle, self.width), dense(columns, self.width).T)

    @cached_property
    def gram_determinant(self) -> int:
        """det(B'B) of any basis B, the squared volume of the fundamental cell.

        For independent rows it is det(A A') divided by the square of the greatest common divisor of the maximal
        minors of A, which is the product of the diagonal of its Smith form. The determinants of blocks multiply.
        """
        structure = self.structure
        volume: int = math.prod(structure.sizes[structure.part == FORCED].tolist())
        solved: dict[tuple[int, bytes], int] = {}
        for block in structure.blocks:
            sizes = structure.sizes[block.regions]
            key = (id(block.system), sizes.tobytes())
            if key not in solved:
                solved[key] = _volume(block.system, sizes.tolist())
            volume *= solved[key]
        return volume

    def contains(self, z: Any) -> Any:
        """Whether z leaves every total unchanged; for a two-dimensional array, one answer per row."""
        vectors = as_integers(z, "A vector")
        if vectors.ndim not in (1, 2) or vectors.shape[-1] != self.width:
            raise InputError(f"A vector must have {self.width} entries, got shape {vectors.shape}.")
        answers = ~np.any(product(self.matrix, vectors) != 0, axis=-1)
        return bool(answers) if vectors.ndim == 1 else answers

    def __repr__(self) -> str:
        return f"Lattice({self.matrix.shape[0]} x {self.width} matrix, dimension {self.dimension})"


def _star(cells: list[int]) -> list[Row]:
    """The reduced basis e_0 - e_i of the vectors on these cells that sum to zero."""
    return [{cells[0]: 1, cell: -1} for cell in cells[1:]]


def _block_vectors(structure: Structure, block: Block) -> list[Row]:
    """A basis for the cells of a block: the basis of the region sums on first cells, and a star within each region."""
    cells = [structure.cells(region).tolist() for region in block.regions.tolist()]
    lifted = [{cells[j][0]: entry for j, entry in vector.items()} for vector in block.system.basis]
    vectors = lifted + [vector for members in cells for vector in _star(members)]
    one_cell_each = len(vectors) == len(lifted)
    if one_cell_each or len(vectors) > LLL_LIMIT:
        return vectors  # with one cell per region this is the basis of the system, already reduced
    return reduce(vectors, structure.region.size)


def _volume(system: System, sizes: list[int]) -> int:
    """The Gram determinant of one block whose regions have these sizes."""
    rows = matrix_rows(system.matrix)
    reduced = eliminate(rows, system.width, units_only=False)
    independent = [rows[i] for i in reduced.pivots]
    units = eliminate(independent, system.width, units_only=True)
    leftover = [units.rows[i] for i in units.leftover]
    index = 1
    if leftover:
        normal = to_flint(leftover, system.width).snf()
        index = math.prod(int(normal[i, i]) for i in range(len(leftover)))
    weighted = [{j: entry * sizes[j] for j, entry in row.items()} for row in independent]
    gram = fmpz_mat([[sum(e * other.get(j, 0) for j, e in row.items()) for other in weighted] for row in independent])
    return int(gram.det()) // index**2
