"""What real tables need at most, against brute force, 4ti2 and integer programming."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from flint import fmpz_mat
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from keepsum._work import limited
from keepsum.errors import TooMuchWorkError
from keepsum.lattice import graver
from keepsum.lattice.elimination import kernel, reduce
from keepsum.lattice.graver import Longest, TooLongError, Work, is_unimodular, longest_change, longest_needed, needed
from keepsum.lattice.grids import table_matrix
from keepsum.lattice.matrix import as_matrix, matrix_rows
from keepsum.lattice.structure import System, decompose
from keepsum.lattice.two_way import TwoWay
from lattice.margins import entries, margins_of, rank

AMPLE = 10**10


def system(A) -> System:
    """The only block of a matrix of totals."""
    (block,) = decompose(as_matrix(A)).blocks
    assert len(block.regions) == np.asarray(A).shape[1], "the block has all columns"
    return block.system


def table(*shape: int) -> np.ndarray:
    return table_matrix(shape).toarray()


def one_way(*shape: int, zeros=()) -> np.ndarray:
    """The one-way margins of a table with structural zeros."""
    cells = [cell for cell in product(*map(range, shape)) if cell not in zeros]
    return np.array([[cell[a] == v for cell in cells] for a, n in enumerate(shape) for v in range(n)]).astype(np.int64)


def elements(A) -> np.ndarray:
    """The Graver basis that is enumerated, with both signs."""
    return _elements(tuple(map(tuple, (A.toarray() if sparse.issparse(A) else np.asarray(A)).tolist())))


@cache
def _elements(A) -> np.ndarray:
    rows = matrix_rows(as_matrix(A))
    basis = graver.graver_basis(reduce(kernel(rows, len(A[0])), len(A[0])), len(A[0]), Work(AMPLE))
    basis.setflags(write=False)
    return basis


def l1(vectors):
    return np.abs(vectors).sum(axis=1)


def l2(vectors):
    return (vectors**2).sum(axis=1)


def in_box(A, largest: int) -> np.ndarray:
    """All nonzero vectors of the lattice with entries up to this one: the other half of a vector is looked up."""
    A = np.asarray(A)
    half = A.shape[1] // 2
    ends = {}
    for end in product(range(-largest, largest + 1), repeat=A.shape[1] - half):
        ends.setdefault(tuple(A[:, half:] @ end), []).append(end)
    starts = product(range(-largest, largest + 1), repeat=half)
    vectors = [start + end for start in starts for end in ends.get(tuple(-(A[:, :half] @ start)), [])]
    vectors = np.array(vectors)
    return vectors[vectors.any(axis=1)]


def conformally_minimal(vectors: np.ndarray) -> set[tuple[int, ...]]:
    """The vectors to which no other one is conformal."""
    minimal: list[np.ndarray] = []
    for v in vectors[np.argsort(l1(vectors), kind="stable")]:
        if not any(((u * v >= 0) & (np.abs(u) <= np.abs(v))).all() for u in minimal):
            minimal.append(v)
    return {tuple(v.tolist()) for v in minimal}


def distance(A, x, j) -> int | None:
    """The l1 distance from x to the nearest real table with the same totals and somebody in j; None if there is none.

    By integer programming, y = x + up - down.
    """
    A, n = np.asarray(A), len(x)
    least = np.zeros(2 * n)
    least[j] = 1
    keep = LinearConstraint(np.hstack([A, -A]), 0, 0)
    found = milp(
        np.ones(2 * n), constraints=keep, integrality=np.ones(2 * n), bounds=Bounds(least, [*([np.inf] * n), *x])
    )
    return round(found.fun) if found.success else None


def worst_real(A, largest: int, length) -> int:
    """The largest distance from any real table with counts up to ``largest`` in these lengths, by listing fibres."""
    A = np.asarray(A)
    fibres: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for x in product(range(largest + 1), repeat=A.shape[1]):
        fibres.setdefault(tuple(A @ x), []).append(x)
    worst = 0
    for fibre in map(np.array, fibres.values()):
        for x in fibre:
            lengths = length(fibre - x)
            for j in np.flatnonzero((x == 0) & fibre.any(axis=0)):
                worst = max(worst, lengths[fibre[:, j] > 0].min())
    return int(worst)


# -- enumeration -------------------------------------------------------------------------------------

# Up to sign the number of elements, the longest in l1, the largest square: output of 4ti2-graver, 4ti2 1.6.9 (Debian).
FOUR_TI_TWO = {
    "3 x 3": (table(3, 3), 15, 6, 6),
    "4 x 4": (table(4, 4), 204, 8, 8),
    "3 x 3 x 2": (table(3, 3, 2), 15, 12, 12),
    "3 x 3 x 3": (table(3, 3, 3), 795, 24, 32),
    "twisted cubic": ([[1, 1, 1, 1], [0, 1, 2, 3]], 5, 6, 14),
    "curve of degree 6": ([[1] * 7, range(7)], 127, 12, 62),
    "curve of degree 8": ([[1] * 9, range(9)], 798, 16, 114),
    "weights": ([[1] * 6, [1, 2, 3, 1, 2, 3], [1, 1, 1, 0, 0, 0]], 11, 6, 10),
    "no unit weight": ([[6, 10, 15, 21]], 29, 31, 541),
    "prime weights": ([[7, 11, 13]], 11, 24, 290),
    "one-way 2 x 2 x 2": (one_way(2, 2, 2), 20, 6, 8),
    "one-way 2 x 2 x 3": (one_way(2, 2, 3), 129, 8, 12),
}


@pytest.mark.parametrize("name", FOUR_TI_TWO)
def test_as_many_and_as_long_as_4ti2_finds(name):
    A, count, longest, square = FOUR_TI_TWO[name]
    basis = elements(A)
    assert len(basis) == 2 * count == len(np.unique(basis, axis=0))
    assert not (basis @ np.asarray(A).T).any()
    assert (l1(basis).max(), l2(basis).max()) == (longest, square)


def random_totals(rng) -> np.ndarray:
    kind = rng.integers(4)
    height = int(rng.integers(1, 4))
    width = int(rng.integers(height + 2, 7))  # more columns than totals
    A = rng.integers(0, 2, (height, width)) if kind < 2 else rng.integers(-2 * (kind == 3), 4, (height, width))
    return np.vstack([A, np.ones_like(A[:1])]) if kind % 2 else A


@pytest.mark.parametrize("seed", range(30))
def test_by_brute_force(seed):
    """All minimal vectors of a box, and nothing else of the box; most elements are in it, and each is minimal."""
    A = random_totals(np.random.default_rng(seed))
    largest = 3 if A.shape[1] < 6 else 2
    basis = elements(A)
    inside = basis[np.abs(basis).max(axis=1) <= largest]
    assert conformally_minimal(in_box(A, largest)) == {tuple(g) for g in inside.tolist()}
    assert len(conformally_minimal(basis)) == len(basis)


def test_brute_force_would_notice_a_missing_element():
    A = [[1, 1, 1, 1], [0, 1, 2, 3]]
    found = {tuple(g) for g in elements(A).tolist()}
    wanted = conformally_minimal(in_box(A, 3))
    assert found == wanted
    assert all(found - {g} != wanted for g in found)


@pytest.mark.parametrize(
    "A",
    [
        [[1, 1, 1], [1, 2, 3]],
        [[2, 3, 5]],
        [[1, 1, 1, 1], [1, 2, 3, 0]],
        [[1, 1, 0, 1, 0], [0, 1, 1, 1, 0], [1, 0, 0, 1, 1]],
        [[1, 1, 1, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1]],
        table(2, 3),
        margins_of([0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 0]),
    ],
    ids=lambda A: str(np.shape(A)),
)
def test_needed_is_what_the_worst_fibre_needs(A):
    """Every table up to a largest count that includes the decreases of all elements: equal, not only enough."""
    basis = elements(A)
    for length in (l1, l2):
        assert needed(basis, length(basis), Work()) == worst_real(A, int(np.abs(basis).max()), length)


# -- real tables -------------------------------------------------------------------------------------

KINDS = {
    "3 x 4": table(3, 4),
    "3 x 3 x 2": table(3, 3, 2),
    "3 x 4 x 2": table(3, 4, 2),
    "3 x 3 x 3": table(3, 3, 3),
    "3 x 3 x 4": table(3, 3, 4),
    "3 x 3 x 5": table(3, 3, 5),
    "3 x 3 x 3 x 2": table(3, 3, 3, 2),
    "2 x 2 x 2 x 2": table(2, 2, 2, 2),
    "cyclic": margins_of([0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 1, 2, 2, 3, 3, 0]),
    "no diagonal": margins_of(*entries(~np.eye(5, dtype=bool))),
    "holes": margins_of(*entries([[1, 1, 0, 1, 1, 0], [0, 1, 1, 1, 0, 1], [1, 0, 1, 1, 1, 1], [1, 1, 1, 0, 0, 1]])),
    "holes x 2": np.kron([[1, 0], [0, 1]], margins_of(*entries(1 - np.eye(4)))),
    "weighted": np.array([[1] * 6, [1, 2, 3, 1, 2, 3], [1, 1, 1, 0, 0, 0]]),
    "ranges": np.array([[int(a <= j < a + 4) for j in range(9)] for a in range(6)]),
    "one-way": one_way(2, 2, 2),
    "one-way with zeros": one_way(2, 2, 2, zeros={(0, 0, 0)}),
}
KINDS["holes x 2"] = np.vstack([KINDS["holes x 2"], np.kron([1, 1], np.eye(12, dtype=np.int64))])
KINDS = {name: np.asarray(A) for name, A in KINDS.items()}


@pytest.mark.parametrize("name", KINDS)
def test_no_real_table_needs_more(name):
    """Random sparse tables, where changes are long, with empty cells that another table fills."""
    A = KINDS[name]
    block = system(A)
    stated = longest_change(block)
    basis = np.zeros((len(block.basis), A.shape[1]), dtype=np.int64)
    for k, vector in enumerate(block.basis):
        basis[k, list(vector)] = list(vector.values())
    rng = np.random.default_rng(len(name))
    tried = 0
    while tried < 25:
        z = rng.choice([-1, 0, 0, 1], len(basis)) @ basis
        x = np.maximum(-z, 0) + rng.poisson(0.05, len(z))
        for j in rng.permutation(np.flatnonzero((z > 0) & (x == 0)))[:3]:
            assert distance(A, x, j) <= stated.length
            tried += 1


EXACT = [name for name in KINDS if name not in ("3 x 3 x 4", "3 x 3 x 5", "3 x 3 x 3 x 2", "3 x 3 x 3")]


def hardest(A) -> tuple[np.ndarray, int]:
    """A real table and an empty cell that it takes longest to fill, from the Graver basis, in another way."""
    basis = elements(A)
    lengths, decrease = l1(basis), np.maximum(-basis, 0)
    worst, where = 0, None
    for h in np.argsort(-lengths, kind="stable"):
        if lengths[h] <= worst:
            break
        possible = np.flatnonzero((decrease <= decrease[h]).all(axis=1))
        need = np.where(basis[possible] > 0, lengths[possible, None], 10**6).min(axis=0)
        j = int(np.argmax(np.where(basis[h] > 0, need, 0)))
        if need[j] > worst:
            worst, where = need[j], (decrease[h], j)
    return where


@pytest.mark.parametrize("name", EXACT)
def test_exact_means_that_a_real_table_needs_as_much(name):
    """So a bound of one less is rejected."""
    A = KINDS[name]
    stated = longest_change(system(A))
    assert stated.exact
    assert distance(A, *hardest(A)) == stated.length


def test_a_cube_of_three_needs_18():
    """A table and an empty cell from the Graver basis, solved by integer programming; in l2 by lemma 1."""
    A = KINDS["3 x 3 x 3"]
    assert longest_change(system(A)) == Longest(18, 20, True, "table")
    x, j = hardest(A)
    assert distance(A, x, j) == 18
    basis = elements(A)
    assert (needed(basis, l1(basis), Work()), needed(basis, l2(basis), Work())) == (18, 20)
    nearest = basis[(basis[:, j] > 0) & (x + basis >= 0).all(axis=1)]
    assert (l1(nearest).min(), l2(nearest).min()) == (18, 20)


def test_lifting_a_cube_doubles_its_longest_element_not_what_it_needs():
    A = KINDS["3 x 3 x 3 x 2"]
    assert longest_change(system(A)) == Longest(48, 64, True, "table")
    basis = elements(table(3, 3, 3))
    for length, stated in ((l1, 48), (l2, 64)):
        g = basis[np.argmax(length(basis))]
        x = np.stack([np.maximum(-g, 0), np.maximum(g, 0)], axis=1).ravel()
        y = np.stack([np.maximum(g, 0), np.maximum(-g, 0)], axis=1).ravel()
        assert not (A @ (y - x)).any()
        assert length((y - x)[None]) == stated
        assert distance(A, x, int(np.argmax(y > x))) == 48  # no other table, whichever length is the longest


# Graver elements of 3 x 3 x 4, from the output of 4ti2-graver: one that real tables need, and the longest.
NEEDED = [0, 0, 1, -1, -1, 0, 0, 1, 1, 0, -1, 0, 1, 0, -1, 0, -1, 1]
NEEDED += [0, 0, 0, -1, 1, 0, -1, 0, 0, 1, 2, -1, 0, -1, -1, 1, 0, 0]
LONGEST = [0, 1, -1, 0, -1, -1, 0, 2, 1, 0, 1, -2, 2, 0, 0, -2, -2, 1]
LONGEST += [1, 0, 0, -1, -1, 2, -2, -1, 1, 2, 3, 0, -1, -2, -1, 1, 0, 0]


def test_three_by_three_by_four_attains_what_is_stated():
    needed_one, longest = np.array([NEEDED]), np.array([LONGEST])
    stated = longest_change(system(table(3, 3, 4)))
    assert (l1(needed_one), l2(needed_one)) == (stated.length, stated.squared) == (20, 22)
    assert distance(table(3, 3, 4), np.maximum(-needed_one, 0)[0], 2) == 20
    stated = longest_change(system(table(3, 3, 4, 2)))
    assert (2 * l1(longest), 2 * l2(longest)) == (stated.length, stated.squared)
    x = np.stack([np.maximum(-longest, 0), np.maximum(longest, 0)], axis=-1).ravel()
    assert distance(table(3, 3, 4, 2), x, 2) == stated.length


# -- closed forms ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "length", "squared"),
    [
        ((2, 2), 4, 4),
        ((7, 5), 4, 4),
        ((2, 2, 2), 8, 8),
        ((5, 2, 2), 8, 8),
        ((4, 3, 2), 12, 12),
        ((2, 6, 5), 20, 20),
        ((5, 2, 4, 2), 32, 32),
        ((4, 3, 3), 20, 22),
        ((3, 3, 4, 2), 72, 120),
    ],
)
def test_full_tables(shape, length, squared):
    assert longest_change(system(table(*shape))) == Longest(length, squared, True, "table")


def test_two_layers_need_a_cycle_through_all_rows():
    """The example of the issue: x[k, k, 0] = x[k, k + 1, 1] = 1 has one other table, 4n away."""
    for n in (3, 4, 5):
        x = np.zeros((n, n, 2), dtype=np.int64)
        k = np.arange(n)
        x[k, k, 0] = x[k, (k + 1) % n, 1] = 1
        assert distance(table(n, n, 2), x.ravel(), 1) == 4 * n == longest_change(system(table(n, n, 2))).length


@pytest.mark.parametrize("shape", [(3, 4, 4), (3, 3, 3, 3), (4, 5, 6, 2), (100, 100, 100)])
def test_other_tables_are_not_known(shape):
    grid = system(table(*shape)).grid if np.prod(shape) < 1000 else None
    assert (graver._in_table(shape) if grid is None else longest_change(system(table(*shape)))) is None


def test_layers_of_a_table_of_three_by_three():
    """Any 3 x 3 x n: at most 48, and squares of 96, whichever of the 3 x 3 elements are in one layer.

    The 953 minimal relations of the 15 elements have at most 9 terms: the Graver complexity of Santos and Sturmfels,
    Higher Lawrence configurations, J. Combin. Theory Ser. A 103 (2003).
    """
    cycles = np.array([g for g in elements(table(3, 3)).tolist() if g > [0] * 9])
    relations = np.array([g for g in elements(cycles.T).tolist() if g > [0] * 15])
    assert (len(cycles), len(relations), l1(relations).max()) == (15, 953, 9)
    assert (np.abs(relations) @ l1(cycles)).max() == 48
    assert max(_most_squares(relation, cycles) for relation in relations) == 96
    assert longest_change(system(table(3, 7, 3))) == Longest(48, 96, False, "table")


def _most_squares(relation, cycles) -> int:
    """The largest sum of squares over all ways to put the terms of a relation into layers of one sign per entry."""
    terms = [np.sign(times) * cycles[k] for k, times in enumerate(relation) for _ in range(abs(times))]
    sums = {0: np.zeros(9, dtype=np.int64)}
    layers = [0]
    for t, term in enumerate(terms):
        for layer in list(layers):
            if (sums[layer] * term >= 0).all():
                sums[layer | 1 << t] = sums[layer] + term
                layers.append(layer | 1 << t)
    squares = {layer: int((total**2).sum()) for layer, total in sums.items()}
    most = [0] * (1 << len(terms))
    for chosen in range(1, len(most)):
        low = chosen & -chosen
        most[chosen] = max(
            squares[layer] + most[chosen ^ layer] for layer in layers if layer & low and not layer & ~chosen
        )
    return most[-1]


def test_one_way_margins_with_zeros_need_6():
    """Whichever cell of 2 x 2 x 2 is a structural zero."""
    for zero in product(range(2), repeat=3):
        stated = longest_change(system(one_way(2, 2, 2, zeros={zero})))
        assert (stated.length, stated.exact) == (6, True)


# -- two-way tables with structural zeros ------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 4, 7, 40])
def test_a_cyclic_pattern_needs_all_of_it(n):
    k = np.arange(n)
    A = margins_of(np.tile(k, 2), np.concatenate([k, (k + 1) % n]))
    assert longest_change(system(A)) == Longest(2 * n, 2 * n, True, "cycles")


@pytest.mark.parametrize("seed", range(40))
def test_cycles_as_by_enumeration(seed):
    rng = np.random.default_rng(seed)
    mask = rng.random((int(rng.integers(3, 6)), int(rng.integers(3, 6)))) < rng.choice([0.5, 0.7, 0.9])
    for block in decompose(as_matrix(margins_of(*entries(mask | (mask.sum() == 0))))).blocks:
        if block.system.grid is not None:
            continue
        two_way = block.system.two_way
        basis = elements(block.system.matrix)
        need = needed(basis, l1(basis), Work())
        assert longest_needed(two_way) == (need, True)
        assert need <= 2 * graver._bound(two_way) <= 2 * min(two_way.shape)


def test_jumps_forward_shorten_what_is_needed():
    """Sparse tables, some with longer cycles that zeros alone would allow, against enumeration."""
    rng = np.random.default_rng(2)
    shorter = 0
    for _ in range(12):
        mask = rng.random((7, 7)) < 0.4
        for block in decompose(as_matrix(margins_of(*entries(mask)))).blocks:
            two_way = block.system.with_zeros
            if two_way is None or len(two_way.row) > 20:
                continue
            basis = elements(block.system.matrix)
            need = needed(basis, l1(basis), Work(AMPLE))
            assert longest_needed(two_way) == (need, True)
            shorter += need < min(l1(basis).max(), 2 * graver._bound(two_way))
    assert shorter


def test_zeros_of_a_large_table_bound_what_it_needs():
    """One zero in each row and column: 6, whatever the size; nothing is searched there."""
    mask = ~np.eye(300, dtype=bool)
    two_way = TwoWay(*np.nonzero(mask))
    assert longest_needed(two_way) == (6, False)
    mask = ~np.eye(30, dtype=bool)
    assert longest_needed(TwoWay(*np.nonzero(mask))) == (6, True)


def test_a_search_that_is_given_up_leaves_the_upper_bound(monkeypatch):
    two_way = TwoWay(*entries([[1, 1, 0, 1, 1, 0], [0, 1, 1, 1, 0, 1], [1, 0, 1, 1, 1, 1], [1, 1, 1, 0, 0, 1]]))
    need, exact = longest_needed(two_way)
    assert exact
    monkeypatch.setattr(graver, "SEARCHED", 3)
    bound, exact = longest_needed(two_way)
    assert not exact
    assert bound == 2 * graver._bound(two_way) >= need


# -- unimodular totals and liftings ------------------------------------------------------------------


def all_minors(A) -> set[int]:
    """The absolute values of the minors of full rank, of independent rows."""
    A = np.asarray(A)
    rows = next(list(r) for r in combinations(range(len(A)), rank(A)) if rank(A[list(r)]) == rank(A))
    columns = combinations(range(A.shape[1]), len(rows))
    return {abs(int(fmpz_mat(A[np.ix_(rows, list(c))].tolist()).det())) for c in columns} - {0}


def test_unimodular_only_where_it_is():
    """Whatever is called unimodular is: nonzero minors of full rank are equal up to sign; many are recognised."""
    rng = np.random.default_rng(5)
    called = missed = 0
    for _ in range(400):
        height = int(rng.integers(2, 5))
        A = rng.integers(0, 2, (height, int(rng.integers(height + 1, 8))))
        A = A[A.any(axis=1)] * rng.choice([1, 1, -3])
        if not len(A):
            continue
        is_so = len(all_minors(A)) == 1
        if is_unimodular(as_matrix(A)):
            assert is_so, A
            called += 1
        else:
            missed += is_so
    assert called > 2 * missed


def test_overlapping_ranges_are_unimodular():
    """Totals of age ranges, too large to enumerate: one more than their number, at most."""
    ranges = [[int(a <= j < a + 7) for j in range(300)] for a in range(0, 294, 2)]
    large = max((block.system for block in decompose(as_matrix(ranges)).blocks), key=lambda block: block.width)
    assert large.width > graver.WIDTH
    assert longest_change(large) == Longest(large.rank + 1, large.rank + 1, False, "unimodular")
    small = system(KINDS["ranges"])
    basis = elements(small.matrix)
    assert np.abs(basis).max() == 1
    assert l1(basis).max() <= small.rank + 1
    assert graver._longest_element(small) == Longest(small.rank + 1, small.rank + 1, False, "unimodular")


def lifted(A) -> np.ndarray:
    A = np.asarray(A)
    return np.vstack([np.kron(np.eye(2, dtype=np.int64), A), np.kron([1, 1], np.eye(A.shape[1], dtype=np.int64))])


@pytest.mark.parametrize("name", ["no diagonal", "weighted", "ranges", "one-way", "3 x 3 x 2"])
def test_a_lifting_is_recognised(name):
    """What is lifted has the same lattice, and the longest element of the lifting is what real tables need."""
    block = system(lifted(KINDS[name]))
    base, times = graver._lifting(block)
    assert times * base.width == block.width
    longest = [length(elements(KINDS[name])).max() for length in (l1, l2)]
    assert [times * length(elements(base.matrix)).max() for length in (l1, l2)] == [2 * length for length in longest]
    assert base.rank == rank(base.matrix.toarray()) == base.width - (block.width - block.rank)
    stated = longest_change(block)
    assert (stated.length, stated.squared, stated.exact) == (2 * longest[0], 2 * longest[1], True)
    closed = graver._longest_element(block)
    assert closed is None or closed.length >= stated.length
    assert closed is None or closed.squared >= stated.squared


def test_a_large_table_of_two_layers_with_zeros():
    """Too large to enumerate: at most twice the longest cycle there can be."""
    mask = ~np.eye(12, dtype=bool)
    assert longest_change(system(lifted(margins_of(*entries(mask))))) == Longest(48, 48, False, "cycles")


def test_a_lifting_of_a_single_vector():
    """Two layers of a ring of 80 entries: every entry is as every other one, up to sign."""
    k = np.arange(40)
    ring = lifted(margins_of(np.tile(k, 2), np.concatenate([k, (k + 1) % 40])))
    stated = longest_change(system(ring))
    assert (stated.length, stated.squared) == (160, 160)


def test_no_lifting_where_there_is_none():
    for A in (KINDS["one-way"], KINDS["ranges"], KINDS["weighted"]):
        assert graver._lifting(system(A)) is None
    extreme = System(as_matrix([[2**62 + 1, 2**62 + 1]]), 1, None)
    assert graver._lifting(extreme) is None


# -- limits ------------------------------------------------------------------------------------------


def test_large_blocks_are_not_known():
    assert longest_change(System(as_matrix([[1] * 40, range(40)]), 2, None)) is None
    assert longest_change(System(as_matrix([[1] * 10**5, range(10**5)]), 2, None)) is None


def test_work_is_counted_not_timed(monkeypatch):
    A = KINDS["one-way"]
    work = Work(AMPLE)
    basis = graver.graver_basis(system(A).basis, A.shape[1], work)
    spent = AMPLE - work.left
    again = graver.graver_basis(system(A).basis, A.shape[1], Work(spent))
    assert (basis == again).all()
    with pytest.raises(TooLongError):
        graver.graver_basis(system(A).basis, A.shape[1], Work(spent - 1))
    monkeypatch.setattr(Work.__init__, "__defaults__", (spent - 1,))
    assert longest_change(system(A)) is None


def test_limited_work_ends():
    """`verify` computes bounds again within its own limit."""
    for A in (KINDS["one-way"], KINDS["holes"]):
        block = system(A)
        longest_change(block)
        with limited(1), pytest.raises(TooMuchWorkError):
            longest_change(block)


def test_large_weights_end():
    weights = np.random.default_rng(3).integers(1, 2**40, (2, 6))
    assert longest_change(System(as_matrix(weights), 2, None)) is None
    assert not is_unimodular(sparse.csr_array(weights))
