"""Regions, forced sums, matroid blocks, recognised tables and shortest vectors, against brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import sympy
from scipy import sparse

import keepsum as ks
from keepsum.lattice.grids import recognise
from keepsum.lattice.shortest import Measure, ShortVectors
from keepsum.lattice.structure import FORCED, FREE, decompose


def table_rows(shape, kept, seed=None):
    """The rows of some margins of a table, shuffled on request."""
    domain = ks.Domain({f"axis{a}": list(range(n)) for a, n in enumerate(shape)})
    A = ks.Invariants.margins(domain, [[f"axis{a}" for a in axes] for axes in kept]).coefficients.toarray()
    if seed is not None:
        rng = np.random.default_rng(seed)
        A = A[rng.permutation(len(A))][:, rng.permutation(A.shape[1])]
    return A


def components_by_circuits(A):
    """Matroid components by brute force: join the supports of a kernel basis in reduced echelon form."""
    kernel = sympy.Matrix(A).nullspace()
    parent = list(range(A.shape[1]))

    def root(j):
        while parent[j] != j:
            j = parent[j]
        return j

    on_a_circuit = set()
    for vector in kernel:
        support = [j for j, e in enumerate(vector) if e != 0]
        on_a_circuit.update(support)
        for j in support:
            parent[root(j)] = root(support[0])
    return {frozenset(j for j in on_a_circuit if root(j) == r) for r in {root(j) for j in on_a_circuit}}


def components_of(structure):
    """Our blocks as sets of cells: free cells and forced regions included, pinned cells not."""
    components = set()
    for region, part in enumerate(structure.part):
        cells = structure.cells(region).tolist()
        if part == FREE:
            components |= {frozenset([cell]) for cell in cells}
        elif part == FORCED and len(cells) > 1:
            components.add(frozenset(cells))
    for block in structure.blocks:
        components.add(frozenset(cell for region in block.regions for cell in structure.cells(region).tolist()))
    return components


def some_systems():
    rng = np.random.default_rng(7)
    for trial in range(60):
        height, width = int(rng.integers(1, 6)), int(rng.integers(2, 11))
        yield f"0/1 {trial}", rng.integers(0, 2, size=(height, width))
    for trial in range(40):
        height, width = int(rng.integers(1, 5)), int(rng.integers(2, 9))
        yield f"sparse {trial}", rng.integers(-3, 4, size=(height, width)) * (rng.random((height, width)) < 0.4)
    yield "two tables, one grand total", two_tables_and_a_total()
    yield "3 x 3 with a hole", table_rows((3, 3), [[0], [1]])[:, [j for j in range(9) if j != 4]]
    yield "hierarchy", np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0]])


def two_tables_and_a_total():
    one = table_rows((2, 3), [[0], [1]])
    both = np.block([[one, np.zeros_like(one)], [np.zeros_like(one), one]])
    return np.vstack([np.ones((1, 12), dtype=np.int64), both])


SYSTEMS = dict(some_systems())


@pytest.mark.parametrize("name", SYSTEMS)
def test_blocks_are_the_components_of_the_matroid(name):
    A = SYSTEMS[name]
    assert components_of(decompose(sparse.csr_array(A))) == components_by_circuits(A)


@pytest.mark.parametrize("name", SYSTEMS)
def test_each_block_has_its_own_lattice(name):
    """The totals kept for a block say about its cells what the whole matrix says."""
    A = SYSTEMS[name]
    structure = decompose(sparse.csr_array(A))
    assert structure.rank == np.linalg.matrix_rank(A)
    for block in structure.blocks:
        first = [structure.cells(region)[0] for region in block.regions]
        ours = sympy.Matrix(block.system.matrix.toarray())
        theirs = sympy.Matrix(A[:, first])
        # Columns outside the block are independent of it, so only kernels supported inside it count.
        kernel = sympy.Matrix.hstack(*ours.nullspace())
        assert theirs * kernel == sympy.zeros(A.shape[0], kernel.shape[1])
        assert block.system.rank == ours.rank()


def test_redundant_grand_total_does_not_join_two_tables():
    structure = decompose(sparse.csr_array(two_tables_and_a_total()))
    assert [block.system.grid.shape for block in structure.blocks] == [(2, 3), (2, 3)]


@pytest.mark.parametrize("name", SYSTEMS)
def test_regions_hold_equal_columns(name):
    A = SYSTEMS[name]
    region = decompose(sparse.csr_array(A)).region
    for i, j in product(range(A.shape[1]), repeat=2):
        assert (region[i] == region[j]) == np.array_equal(A[:, i], A[:, j])


def test_a_hierarchy_has_no_blocks():
    A = SYSTEMS["hierarchy"]
    structure = decompose(sparse.csr_array(A))
    assert structure.blocks == ()
    assert structure.part.tolist() == [FORCED, FORCED, FORCED]
    assert structure.pinned.tolist() == [5]


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize("extra", [[], [[]]])
def test_two_way_tables_are_recognised_in_any_order(seed, extra):
    A = table_rows((3, 5), [[0], [1], *extra], seed)
    grid = recognise(sparse.csr_array(A))
    assert sorted(grid.shape) == [3, 5]
    assert_margins_of(grid, A)


@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 3, 4), (3, 3, 3), (2, 2, 3, 2)])
def test_higher_tables_are_recognised(shape):
    ways = range(len(shape))
    A = table_rows(shape, [[a for a in ways if a != left] for left in ways])
    grid = recognise(sparse.csr_array(A))
    assert sorted(grid.shape) == sorted(shape)
    assert_margins_of(grid, A)


def assert_margins_of(grid, A):
    """The rows are sums of whole lines of the grid, and every line is there."""
    rows = {tuple(sorted(np.flatnonzero(row).tolist())) for row in A}
    for axis in range(len(grid.shape)):
        for line in np.moveaxis(grid.column, axis, -1).reshape(-1, grid.shape[axis]):
            assert tuple(sorted(line.tolist())) in rows


@pytest.mark.parametrize(
    "A",
    [
        table_rows((3, 3), [[0], [1]])[:, :8],  # a cell is missing
        table_rows((3, 3), [[0], [1]])[1:],  # a margin is missing: same lattice, another matrix
        table_rows((3, 3, 3), [[0], [1], [2]]),  # too few margins
        table_rows((3, 3), [[0], [1]]) * np.array([[1, 1, 1, 1, 1, 1, 1, 1, 2]]),
        np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]),
    ],
)
def test_what_is_no_table_is_not_recognised(A):
    assert recognise(sparse.csr_array(A)) is None


def shortest_by_brute_force(A, norm, box):
    best = {}
    for z in product(range(-box, box + 1), repeat=A.shape[1]):
        if any(z) and not np.any(A @ np.array(z)):
            length = sum(abs(e) if norm == "l1" else e * e for e in z)
            for j in np.flatnonzero(z):
                best[j] = min(length, best.get(j, length))
    return best


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize(
    "A",
    [
        np.array([[2, 3, 5]]),
        np.array([[1, 2, 4, 8]]),
        np.array([[1, 1, 0, 2], [0, 1, 1, 1]]),
        np.array([[1, 1, 0, 0, 1], [0, 1, 1, 0, 1], [0, 0, 1, 1, 1]]),
        table_rows((2, 3), [[0], [1]]),
    ],
)
def test_shortest_vectors(A, norm):
    """Boxes are wide enough: no shortest vector through a cell has an entry beyond."""
    basis = [{int(j): int(c[j]) for j in np.flatnonzero(c)} for c in ks.Lattice(A).basis.T]
    columns = sorted({j for vector in basis for j in vector})
    short = ShortVectors(sparse.csr_array(A), basis, np.ones(A.shape[1], dtype=np.int64))
    upper, lower = short.through(Measure(norm, fewest_first=False), columns)
    expected = shortest_by_brute_force(A, norm, 4 if A.shape[1] <= 4 else 2)
    assert upper[columns].tolist() == lower[columns].tolist() == [expected[j] for j in columns]


def test_a_short_search_says_that_it_is_a_bound():
    A = np.array([[1, 5, 25, 125, 31, 17]])
    basis = [{int(j): int(c[j]) for j in np.flatnonzero(c)} for c in ks.Lattice(A).basis.T]
    measure, sizes = Measure("l1", fewest_first=False), np.ones(6, dtype=np.int64)
    upper, lower = ShortVectors(sparse.csr_array(A), basis, sizes, limit=20).through(measure, list(range(6)))
    true, same = ShortVectors(sparse.csr_array(A), basis, sizes).through(measure, list(range(6)))
    assert (true == same).all()
    assert (lower <= true).all()
    assert (true <= upper).all()
    assert (lower < upper).any()


def test_weights_that_would_take_minutes_are_refused():
    """A forged certificate may hold any totals: 60 dense ones of 62 bits took 40 seconds, 80 minutes."""
    A = np.random.default_rng(0).integers(-(2**61), 2**61, size=(60, 120))
    with pytest.raises(ks.InputError, match="60 totals with weights of 61 bits would take minutes"):
        ks.plan(keep=ks.Invariants.matrix(A), mechanism=ks.Laplace.per_unit(epsilon=1))
    few = A[:3, :8]
    assert len(decompose(ks.Invariants.matrix(few).coefficients).blocks[0].system.basis) == 5
