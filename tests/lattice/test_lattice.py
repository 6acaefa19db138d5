"""The lattice against outside oracles: sympy, brute-force enumeration, and flint's own reductions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
import sympy
from scipy import sparse
from sympy.matrices.normalforms import smith_normal_decomp

import keepsum as ks
from keepsum.lattice import elimination as kernel_module
from support import mostly_audit

CASES = {
    "one sum": [[1, 1, 1, 1]],
    "no unit": [[2, 3, 5]],
    "no unit, two rows": [[2, 4, 6, 3], [3, 0, 9, 5]],
    "common factor": [[2, 4, 6]],
    "dependent rows": [[1, 1, 0], [0, 1, 1], [1, 2, 1]],
    "zero row": [[0, 0, 0], [1, 1, 1]],
    "only zeros": [[0, 0]],
    "repeated columns": [[1, 1, 2, 2], [0, 0, 3, 3]],
    "2 x 2 margins": [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]],
    "all fixed": [[1, 0], [0, 1]],
    "negative": [[1, -1, 0], [0, 2, -2]],
    "one cell": [[7]],
    "torsion": [[2, 0, 0], [0, 6, 0], [0, 0, 4]],
}


def systems():
    rng = np.random.default_rng(2026)
    yield from ((name, np.array(rows)) for name, rows in CASES.items())
    yield "no rows", np.zeros((0, 4), dtype=np.int64)
    for trial in range(40):
        height, width = int(rng.integers(1, 9)), int(rng.integers(2, 25))
        yield f"random {trial}: {height} x {width}", rng.integers(-9, 10, size=(height, width))
    for trial in range(20):
        height, width = int(rng.integers(1, 6)), int(rng.integers(2, 12))
        yield f"random 0/1 {trial}", rng.integers(0, 2, size=(height, width))


SYSTEMS = dict(systems())


def exact(array) -> sympy.Matrix:
    return sympy.Matrix(array.shape[0], array.shape[1], [int(e) for e in array.ravel()])


def sympy_rank(A) -> int:
    return exact(A).rank() if A.size else 0


@mostly_audit("name", SYSTEMS)
def test_basis_is_the_whole_kernel(name):
    """A B = 0, the right dimension, and saturated: no vector of the lattice is missed."""
    A = SYSTEMS[name]
    lattice = ks.Lattice(A)
    B = lattice.basis
    assert lattice.rank == sympy_rank(A)
    assert B.shape == (A.shape[1], A.shape[1] - lattice.rank)
    assert not np.any(A.astype(object) @ B.astype(object))
    if B.shape[1]:
        # Saturated exactly if the Smith form of B has ones only.
        D = smith_normal_decomp(exact(B), domain=sympy.ZZ)[0]
        assert all(abs(D[i, i]) == 1 for i in range(B.shape[1]))


@mostly_audit("name", SYSTEMS)
def test_smith_against_sympy(name):
    A = SYSTEMS[name]
    U, D, V = ks.Lattice(A).smith
    height, width = A.shape
    assert U.shape == (height, height)
    assert V.shape == (width, width)
    assert np.array_equal(U.astype(object) @ A.astype(object) @ V.astype(object), D)
    if height:
        assert abs(exact(U).det()) == 1
    assert abs(exact(V).det()) == 1
    diagonal = [int(D[i, i]) for i in range(min(D.shape))]
    assert np.count_nonzero(D) == sum(e != 0 for e in diagonal)
    nonzero = [e for e in diagonal if e]
    assert diagonal[: len(nonzero)] == nonzero
    assert all(e > 0 for e in nonzero)
    assert all(b % a == 0 for a, b in pairwise(nonzero))
    if height:
        theirs = smith_normal_decomp(exact(A), domain=sympy.ZZ)[0]
        assert nonzero == [abs(int(theirs[i, i])) for i in range(min(A.shape)) if theirs[i, i]]
    assert np.array_equal(V[:, len(nonzero) :], ks.Lattice(A).basis)


@mostly_audit("name", [name for name, A in SYSTEMS.items() if A.shape[1] <= 6])
def test_every_short_vector_is_an_integer_combination(name):
    """Brute force: all integer vectors in a box that A sends to zero, solved for in the basis."""
    A = SYSTEMS[name]
    lattice = ks.Lattice(A)
    B = exact(lattice.basis)
    reach = 2
    members = [z for z in product(range(-reach, reach + 1), repeat=A.shape[1]) if not np.any(A @ np.array(z))]
    answers = lattice.contains(np.array(list(product(range(-reach, reach + 1), repeat=A.shape[1]))))
    assert answers.sum() == len(members)
    if not B.shape[1]:
        assert members == [(0,) * A.shape[1]]
        return
    left_inverse = (B.T * B).inv() * B.T
    for z in members:
        coordinates = left_inverse * sympy.Matrix(z)
        assert all(c.is_integer for c in coordinates)
        assert B * coordinates == sympy.Matrix(z)


@mostly_audit("name", SYSTEMS)
def test_gram_determinant(name):
    lattice = ks.Lattice(SYSTEMS[name])
    B = exact(lattice.basis)
    expected = (B.T * B).det() if B.shape[1] else 1
    assert lattice.gram_determinant == expected


def gram_schmidt(B):
    """Exact coefficients and squared norms."""
    vectors = [[Fraction(int(e)) for e in column] for column in B.T]
    stars, norms, coefficients = [], [], []
    for v in vectors:
        mu = [sum(a * b for a, b in zip(v, star, strict=True)) / norm for star, norm in zip(stars, norms, strict=True)]
        star = list(v)
        for m, other in zip(mu, stars, strict=True):
            star = [a - m * b for a, b in zip(star, other, strict=True)]
        coefficients.append(mu)
        stars.append(star)
        norms.append(sum(a * a for a in star))
    return coefficients, norms


def assert_lll_reduced(B):
    coefficients, norms = gram_schmidt(B)
    assert all(abs(m) <= Fraction(51, 100) for mu in coefficients for m in mu)
    for i in range(1, len(norms)):
        assert norms[i] >= (Fraction(98, 100) - coefficients[i][-1] ** 2) * norms[i - 1]


@pytest.mark.parametrize("name", SYSTEMS)
def test_basis_is_lll_reduced(name):
    assert_lll_reduced(ks.Lattice(SYSTEMS[name]).basis)


def margins(shape, margins_kept) -> sparse.csr_array:
    domain = ks.Domain({f"axis{a}": list(range(n)) for a, n in enumerate(shape)})
    return ks.Invariants.margins(domain, [[f"axis{a}" for a in kept] for kept in margins_kept]).coefficients


@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (2, 3, 4), (2, 2, 2, 2)])
def test_closed_form_of_tables_is_reduced(shape):
    """The star basis as it is, without flint's reduction behind it."""
    ways = range(len(shape))
    A = margins(shape, [[a for a in ways if a != summed] for summed in ways])
    block = ks.Lattice(A).structure.blocks[0]
    assert block.system.grid is not None
    assert block.system.grid.shape == shape
    vectors = block.system.grid.basis()
    B = np.array([[vector.get(j, 0) for vector in vectors] for j in range(A.shape[1])])
    assert not (A @ B).any()
    assert_lll_reduced(B)
    assert B.shape[1] == A.shape[1] - np.linalg.matrix_rank(A.toarray())


@pytest.mark.parametrize(("shape", "kept"), [((24, 24), [[0], [1]]), ((9, 9, 9), [[0, 1], [0, 2], [1, 2]])])
def test_large_tables(shape, kept):
    """Beyond the dimension at which the whole basis goes through LLL."""
    A = margins(shape, kept)
    lattice = ks.Lattice(A)
    assert lattice.dimension > kernel_module.LLL_LIMIT
    B = lattice.basis
    assert B.shape == (A.shape[1], np.prod([n - 1 for n in shape]))
    assert not (A @ B).any()
    # A unit triangle inside the basis: every integer combination is reached, so it is saturated.
    assert np.array_equal(np.abs(np.diagonal(B[np.argmax(np.abs(B[::-1]), axis=0) * -1 - 1])), np.ones(B.shape[1]))
    assert lattice.sparse_basis.toarray().tolist() == B.tolist()


def test_smith_of_margins_20_x_20():
    A = margins((20, 20), [[0], [1]])
    U, D, V = ks.Lattice(A).smith
    assert np.array_equal(U @ A.toarray() @ V, D)
    assert np.diagonal(D).tolist() == [1] * 39 + [0]


def test_entries_near_the_limit_do_not_wrap():
    big = 2**62
    lattice = ks.Lattice([[big, big - 1, 3]])
    assert not lattice.contains([4, 0, 0])  # 4 * 2^62 wraps to 0 in 64 bits
    assert lattice.contains([big - 1, -big, 0])
    B = lattice.basis
    assert not np.any(np.array([[big, big - 1, 3]], dtype=object) @ B.astype(object))
    U, D, V = lattice.smith
    assert np.array_equal(U.astype(object) @ np.array([[big, big - 1, 3]], dtype=object) @ V.astype(object), D)
    assert lattice.gram_determinant == big**2 + (big - 1) ** 2 + 9


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[2**63, 1]], "64-bit"),
        (np.array([[2**64 - 1, 1]], dtype=np.uint64), "64-bit"),
        ([[0.5, 1]], "whole numbers"),
        ([[float("nan"), 1]], "whole numbers"),
        ([[2.0**60, 1]], "2\\^53"),
        ([["a", "b"]], "whole numbers"),
        ([1, 2, 3], "two dimensions"),
        ([[1, 2], [3]], "rows of one length"),
        (np.zeros((2, 0)), "at least one column"),
        (np.ma.array([[1, 2]], mask=[[True, False]]), "masked"),
    ],
)
def test_bad_matrices(matrix, message):
    with pytest.raises(ks.InputError, match=message):
        ks.Lattice(matrix)


def test_matrices_in_any_form():
    A = np.array([[1, 0, 2], [0, 1, 1]])
    expected = ks.Lattice(A).basis.tolist()
    for form in (A.tolist(), A.astype(float), A.astype(np.uint8), sparse.coo_matrix(A), sparse.csc_array(A)):
        assert ks.Lattice(form).basis.tolist() == expected
    doubled = sparse.coo_array(([1, 1, 1], ([0, 0, 0], [0, 0, 1])), shape=(1, 2))  # an entry listed twice
    assert ks.Lattice(doubled).contains([1, -2])


def test_the_callers_matrix_is_left_alone():
    m = sparse.csr_array(np.array([[1, 0, 1], [0, 2, 3]]))
    m.data[0] = 0  # a stored zero
    lattice = ks.Lattice(m)
    assert m.toarray().tolist() == [[0, 0, 1], [0, 2, 3]]
    m.data[:] = 9
    assert lattice.matrix.toarray().tolist() == [[0, 0, 1], [0, 2, 3]]
    with pytest.raises(ValueError, match="read-only"):
        lattice.matrix.data[0] = 1


@pytest.mark.parametrize("kind", [np.uint64, np.float64, object])
def test_vectors_of_any_kind_are_compared_as_integers(kind):
    assert not ks.Lattice([[1, -1]]).contains(np.array([2**52 + 1, 2**52], dtype=kind))
    assert not ks.Lattice([[2049, -2048, -2048]]).contains(np.array([2**52 - 1, 2**52 - 1, 2**41], dtype=kind))
    assert ks.Lattice([[1, -1]]).contains(np.array([2**52, 2**52], dtype=kind))


def test_large_entries_are_separated_without_growing():
    """Two blocks, mixed: the rows of each, eliminated, would not fit 64 bits; restricted to its columns they do."""
    U = np.array([[2**61 + 1, 2**61 - 3, 2**60 + 7], [2**60 + 9, 2**61 + 5, 2**59 + 3]])
    A = np.zeros((4, 6), dtype=np.int64)
    A[:2, :3] = U
    A[2:, 3:] = U[:, ::-1] + 2
    mixed = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, -1, 0], [0, 1, 0, -1]]) @ A
    lattice = ks.Lattice(mixed)
    assert (lattice.rank, lattice.dimension) == (4, 2)
    assert not np.any(A.astype(object) @ lattice.basis.astype(object))
    assert lattice.gram_determinant == ks.Lattice(A).gram_determinant


def test_duplicates_that_may_not_fit_are_refused():
    with pytest.raises(ks.InputError, match="sum_duplicates"):
        ks.Lattice(sparse.coo_array(([2**62, 2**62], ([0, 0], [0, 0])), shape=(1, 2)))


def test_contains_refuses_anything_but_an_integer_vector():
    lattice = ks.Lattice([[1, 1]])
    with pytest.raises(ks.InputError, match="whole numbers"):
        lattice.contains([0.5, -0.5])
    with pytest.raises(ks.InputError, match="2 entries"):
        lattice.contains([1, -1, 0])
    assert lattice.contains([[1, -1], [1, 1]]).tolist() == [True, False]


def test_a_dense_basis_that_would_not_fit_is_refused():
    lattice = ks.Lattice(np.ones((1, 30_000), dtype=np.int64))
    with pytest.raises(ks.InputError, match="sparse_basis"):
        _ = lattice.basis
    assert lattice.sparse_basis.shape == (30_000, 29_999)


def test_lattice_is_immutable():
    lattice = ks.Lattice([[1, 1]])
    with pytest.raises(AttributeError):
        lattice.matrix = None
