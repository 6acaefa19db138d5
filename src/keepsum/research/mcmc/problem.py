"""What the chains need: a basis in compressed columns, the law of the pre-jumps, and the target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import fmpz_mat
from scipy import sparse

from keepsum._arguments import as_array
from keepsum._arrays import Floats, IntArray
from keepsum._text import given, type_of
from keepsum.errors import InputError
from keepsum.lattice import Lattice
from keepsum.lattice.kernel import LLL_LIMIT
from keepsum.lattice.matrix import as_matrix
from keepsum.privacy import as_mechanism
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.research.mcmc.kernel_arguments import (
    GAUSSIAN,
    GUIDE_BITS,
    L1,
    L2,
    OPEN,
    Columns,
    PreJumps,
    ProblemTables,
    Target,
)

LARGEST_ENTRY = 2**20  # of a basis, and of a start: squares and their sums then stay far below 2^63
TABLED = 1024  # acceptance chances that are looked up


@dataclass(frozen=True, eq=False)
class Problem:
    """A lattice by a basis, a double geometric law for each coordinate, and the target.

    Attributes
    ----------
    columns, jumps, target
        As the kernels read them.
    a
        The parameter of each coordinate's pre-jump.
    width
        The number of cells.
    """

    columns: Columns
    jumps: PreJumps
    target: Target
    a: Floats
    width: int

    @property
    def tables(self) -> ProblemTables:
        """What the kernels read."""
        return ProblemTables(self.columns, self.jumps, self.target)

    @property
    def dimension(self) -> int:
        """The number of columns."""
        return len(self.columns.starts) - 1

    @property
    def updates_per_step(self) -> float:
        """How many entries of the basis a proposal adds to cells, on average: a coordinate is 0 by (1 - a)/(1 + a)."""
        return float((2 * self.a / (1 + self.a)) @ np.diff(self.columns.starts))

    @property
    def touches_most(self) -> bool:
        """Whether summing all cells up anew is no dearer than following those that a proposal touches."""
        return self.updates_per_step >= self.width / 4

    def norm(self, z: IntArray) -> int:
        """|z| in l1, or its square in l2: a whole number either way."""
        return int(np.abs(z).sum()) if self.target.kind == L1 else int((z * z).sum())

    def log_density(self, z: IntArray) -> float:
        """The logarithm of q(z), up to a constant."""
        norm = float(self.norm(z))
        return -self.target.rate * (math.sqrt(norm) if self.target.kind == L2 else norm)


def pose(lattice: Lattice, mechanism: Request | Mechanism, a: float | Sequence[float], basis: Any = None) -> Problem:
    """Check what the user gave and bring it into the form that kernels read."""
    if not isinstance(lattice, Lattice):
        raise InputError(f"The lattice must be a ks.Lattice, got {type_of(lattice)}. Use ks.Lattice(A).")
    if lattice.dimension == 0:
        raise InputError("The lattice must have a dimension of at least 1, got 0. Every cell is pinned: keep less.")
    columns = _columns(lattice.sparse_basis if basis is None else _checked(lattice, basis))
    parameters = _parameters(a, lattice.dimension)
    return Problem(columns, _pre_jumps(parameters), _target(mechanism), parameters, lattice.width)


def _columns(basis: sparse.csc_array) -> Columns:
    if np.abs(basis.data).max() > LARGEST_ENTRY:
        raise InputError(f"The entries of the basis must be at most {LARGEST_ENTRY:,}, got larger ones.")
    parts = (basis.indptr, basis.indices, basis.data)
    return Columns(*(np.ascontiguousarray(part, dtype=np.int64) for part in parts))


def _checked(lattice: Lattice, basis: Any) -> sparse.csc_array:
    """The user's basis: in the lattice, and generating all of it (decided exactly up to dimension 500)."""
    shape = (lattice.width, lattice.dimension)
    matrix = sparse.csc_array(as_matrix(basis, "The basis"))
    if matrix.shape != shape:
        raise InputError(f"The basis must be {shape[0]} x {shape[1]}, one vector a column, got shape {matrix.shape}.")
    if not np.all(lattice.contains(matrix.toarray().T)):
        raise InputError("The basis must lie in the lattice, got a column that changes a kept total.")
    if shape[1] <= LLL_LIMIT:
        gram = fmpz_mat((matrix.T @ matrix).toarray().tolist())
        if int(gram.det()) != lattice.gram_determinant:
            raise InputError("The basis must generate the whole lattice, this one does not. Use lattice.basis.")
    matrix.eliminate_zeros()
    return matrix


def _parameters(a: float | Sequence[float], dimension: int) -> Floats:
    array = as_array(a)
    if array is None or array.dtype.kind not in "iuf":
        raise InputError(f"a must be a number between 0 and 1, or one per coordinate, got {given(a)}.")
    if array.ndim > 1 or array.size not in (1, dimension):
        raise InputError(f"a must be one number or {dimension}, one per coordinate, got shape {array.shape}.")
    if not np.all((array > 0) & (array < 1)):
        raise InputError(f"a must lie strictly between 0 and 1, got {given(a)}. The paper takes exp(-1) to exp(-2.5).")
    return np.array(np.broadcast_to(array.astype(np.float64).reshape(-1), dimension))


def _pre_jumps(parameters: Floats) -> PreJumps:
    """Tables for the different parameters; a cell of a table is decided where its two ends have the same magnitude."""
    different, law = np.unique(parameters, return_inverse=True)
    log_a, half = np.log(different), (1 + different) / 2
    ends = np.arange(1, 2**GUIDE_BITS + 1) / 2**GUIDE_BITS
    at_ends = np.floor(np.log(ends * half[:, None]) / log_a[:, None])
    same = at_ends[:, 1:] == at_ends[:, :-1]
    quick = np.full((len(different), 2**GUIDE_BITS, 2), OPEN, dtype=np.int16)
    for sign, bit in ((1, 0), (-1, 1)):
        quick[:, 1:, bit][same] = sign * at_ends[:, 1:][same]
    return PreJumps(law.astype(np.int64), quick.reshape(len(different), -1), log_a, half)


def _target(mechanism: Request | Mechanism) -> Target:
    """The law of a mechanism, as the loops read it; one that depends on a plan is given as ``plan.mechanism``."""
    known = as_mechanism(mechanism)
    scale = known.scale
    laws = {
        "laplace-l1": (L1, 1 / scale),
        "laplace-l2": (L2, 1 / scale),
        "gaussian": (GAUSSIAN, 1 / (2 * scale**2)),
    }
    if known.kind not in laws:
        raise InputError(f"The paper's chain is for Laplace and Gaussian noise, got {known!r}.")
    kind, rate = laws[known.kind]
    return _law(kind, float(rate))


def _law(kind: int, rate: float) -> Target:
    return Target(kind, rate, np.exp(-rate * np.arange(TABLED)))


def as_starts(start: Any, lattice: Lattice, rows: int) -> npt.NDArray[np.int64] | None:
    """Where chains start, one row each, or None for the law g: one vector of the lattice, or one for each chain."""
    if start is None:
        return None
    array = as_array(start)
    shapes = ((lattice.width,), (rows, lattice.width))
    if array is None or array.shape not in shapes or array.dtype.kind not in "iu":
        kind = "rows of several lengths" if array is None else f"{array.dtype} of shape {array.shape}"
        raise InputError(f"The start must be whole numbers of shape {shapes[0]} or {shapes[1]}, got {kind}.")
    if array.size and np.abs(array).max() > LARGEST_ENTRY:
        raise InputError(f"The entries of the start must be at most {LARGEST_ENTRY:,}, got larger ones.")
    if not np.all(lattice.contains(array)):
        raise InputError("The start must lie in the lattice, got a vector that changes a kept total.")
    return np.array(np.broadcast_to(array, (rows, lattice.width)), dtype=np.int64)
