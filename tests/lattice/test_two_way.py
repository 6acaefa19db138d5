"""Two-way tables recognised from their totals, in every disguise, and never where there is none."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from flint import fmpq_mat, fmpz_mat
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import keepsum as ks
from keepsum.lattice import structure as structure_module
from keepsum.lattice import two_way
from keepsum.lattice.graphs import alternating_cycles, biconnected_components, spanning_forest
from keepsum.lattice.structure import FORCED, decompose
from keepsum.lattice.two_way import TwoWay, recognise_two_way


def rank(A) -> int:
    return int(fmpz_mat(np.asarray(A).astype(int).tolist()).rank()) if len(A) else 0


def margins_of(row, column):
    """The totals of rows and columns, one row of the matrix each."""
    row, column = np.asarray(row), np.asarray(column)
    return np.array([row == i for i in np.unique(row)] + [column == j for j in np.unique(column)]).astype(np.int64)


def assert_same_totals(table: TwoWay, A):
    """The table has one entry per region, none twice, and its margins span the row space of the totals."""
    assert len(table.row) == len(table.column) == A.shape[1]
    assert len(set(zip(table.row.tolist(), table.column.tolist(), strict=True))) == A.shape[1]
    rows, columns = table.shape
    assert (np.bincount(table.row, minlength=rows) > 0).all()
    assert (np.bincount(table.column, minlength=columns) > 0).all()
    B = margins_of(table.row, table.column)
    assert rank(A) == rank(B) == rank(np.vstack([A, B]))


def assert_recognised(A, shape=None) -> TwoWay:
    table = recognise_two_way(sparse.csr_array(A))
    assert table is not None
    assert_same_totals(table, np.asarray(A))
    if shape is not None:
        assert table.shape == shape
    return table


def entries(mask):
    """The rows and columns of the entries of a table that are not structural zeros."""
    return np.nonzero(np.asarray(mask))


HOLES = entries([[1, 1, 0, 1, 1, 0], [0, 1, 1, 1, 0, 1], [1, 0, 1, 1, 1, 1], [1, 1, 1, 0, 0, 1]])
FULL = entries(np.ones((3, 5)))


# -- disguises ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("entry", "shape"), [(FULL, (3, 5)), (HOLES, (4, 6))])
@pytest.mark.parametrize("seed", range(5))
def test_in_any_order_transposed_and_scaled(entry, shape, seed):
    rng = np.random.default_rng(seed)
    for row, column in (entry, entry[::-1]):
        A = margins_of(row, column)
        A = A[rng.permutation(len(A))] * rng.choice([1, -1, 2, -3, 2**40], size=(len(A), 1))
        assert_recognised(A, shape)
        assert_recognised(A[:, rng.permutation(A.shape[1])], shape)


def test_entries_are_where_they_were():
    """Up to the names of rows and columns: two regions share a row if and only if they did."""
    row, column = HOLES
    table = assert_recognised(margins_of(row, column))
    for j, k in combinations(range(len(row)), 2):
        assert (table.row[j] == table.row[k]) == (row[j] == row[k])
        assert (table.column[j] == table.column[k]) == (column[j] == column[k])
    assert table.zeros == 24 - len(row)
    assert table.grid is None


def redundant():
    for name, entry in (("full", FULL), ("holes", HOLES)):
        A = margins_of(*entry)
        R, C = A[: entry[0].max() + 1], A[entry[0].max() + 1 :]
        everything = C.sum(axis=0)
        yield f"{name}, grand total", [everything]
        yield f"{name}, two columns", [C[0] + C[1]]
        yield f"{name}, two rows and three", [R[0] + R[1], R.sum(axis=0) - R[2], R[1] + R[2]]
        yield f"{name}, duplicates", [R[0], 2 * R[0], -C[1]]
        yield f"{name}, weights", [3 * R[0] - 2 * C[1] + C[2], 10**15 * R[1] + C[0]]
        yield f"{name}, weights of 62 bits", [2**61 * R[1] + C[0], 2**61 * R[0] - 2**61 * C[0]]
        yield f"{name}, every pair of columns", [a + b for a, b in combinations(C, 2)]
        yield f"{name}, a coarser partition", [C[0] + C[1], C[2] + C[3], C[4:].sum(axis=0), everything]


@pytest.mark.parametrize(("name", "more"), list(redundant()))
@pytest.mark.parametrize("first", [True, False])
def test_with_redundant_totals(name, more, first):
    A = margins_of(*(FULL if name.startswith("full") else HOLES))
    assert_recognised(np.vstack([more, A] if first else [A, more]), (3, 5) if name.startswith("full") else (4, 6))


def test_a_small_redundant_total_that_is_tried_first(monkeypatch):
    """Two rows less the columns that lie in them: two regions, which meet every other total at most once."""
    row, column = entries([[1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0], [0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1]])
    A = margins_of(row, column)
    small = A[0] + A[1] - A[4:7].sum(axis=0)
    assert small.tolist() == [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    totals = np.vstack([small, A])
    assert_recognised(totals, (4, 6))
    monkeypatch.setattr(two_way, "FURTHER", len(totals) - 1)  # too many for another attempt
    assert recognise_two_way(sparse.csr_array(totals)) is None


def test_totals_given_as_running_totals():
    row, column = FULL
    A = margins_of(row, column)
    running = np.vstack([np.cumsum(A[:3], axis=0), A[3:]])
    assert_recognised(running, (3, 5))


def test_all_but_one_of_each_margin_and_the_grand_total():
    """As in the design matrix of a model with an intercept and two factors."""
    A = margins_of(*FULL)
    design = np.vstack([np.ones((1, 15), dtype=np.int64), A[1:3], A[4:]])
    assert_recognised(design, (3, 5))
    assert recognise_two_way(sparse.csr_array(np.vstack([A[1:3], A[4:]]))) is None  # without it, something is free


def test_part_of_a_row_is_a_row():
    """The totals of some entries of a row, and so of the others: one row more. An entry that is kept is a row too."""
    A = margins_of(*FULL)
    assert_recognised(np.vstack([A, [[1, 1] + [0] * 13]]), (4, 5))
    assert_recognised(np.vstack([A, [[-(2**62)] + [0] * 14]]), (4, 5))


# -- one margin incomplete -----------------------------------------------------------------------------


def merged(A):
    """Each column once."""
    return np.unique(A, axis=1)


@pytest.mark.parametrize("entry", [FULL, HOLES])
def test_one_margin_incomplete(entry):
    """The cells of the other columns are one region of each row, and these are a column together."""
    row, column = entry
    rows = row.max() + 1
    A = margins_of(row, column)
    kept = merged(np.vstack([A[:rows], A[rows : rows + 2]]))
    table = assert_recognised(kept)
    assert sorted(table.shape) == sorted((rows, 3))
    kept = merged(np.vstack([A[1:rows], A[rows:]]))
    assert sorted(assert_recognised(kept).shape) == sorted((rows, column.max() + 1))


def test_both_margins_incomplete_is_no_table():
    A = margins_of(*FULL)
    both = A[1:3, :], A[4:, :]
    kept = np.vstack(both)[:, 1:]  # the first cell is in no total
    assert recognise_two_way(sparse.csr_array(merged(kept))) is None


# -- what is no table ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "A",
    [
        [[1, 1, 0], [0, 1, 1], [1, 0, 1]],  # an odd cycle
        [[1, 1, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 1, 1]],  # regions in a single total on both sides
        [[1, 1, 1, 1]],  # regions that are not distinct
        [[1, 2, 3]],
        [[0, 0], [0, 0]],
        np.vstack([margins_of(*FULL), [[1] + [0] * 5 + [1] + [0] * 8]]),  # two entries of different rows and columns
        np.vstack([margins_of(*FULL), [[1, 2] + [0] * 13]]),
        np.vstack([margins_of(*FULL), [[2**62, 1] + [0] * 13]]),
        margins_of(*FULL) * np.array([1] * 14 + [2]),
        np.hstack([margins_of(*FULL), np.zeros((8, 1), dtype=np.int64)]),
        ks.Invariants.margins(
            ks.Domain({"a": range(3), "b": range(3), "c": range(3)}), [["a"], ["b"], ["c"]]
        ).coefficients.toarray(),
    ],
)
def test_what_is_no_table_is_not_recognised(A):
    assert recognise_two_way(sparse.csr_array(np.asarray(A))) is None


def test_sums_that_wrap_around_64_bits_are_not_taken_for_redundant():
    """Weights that agree with those of a redundant total modulo 2^64 only."""
    A = margins_of(*entries(np.ones((2, 2))))
    high = 2**62
    assert recognise_two_way(sparse.csr_array(np.vstack([A, [[high, -high, high, -high]]]))) is not None
    # a0 + b0 = h, a0 + b1 = -h, a1 + b0 = -h gives a1 + b1 = -3h, which is h modulo 4h = 2^64.
    assert recognise_two_way(sparse.csr_array(np.vstack([A, [[high, -high, -high, high]]]))) is None


# -- properties ------------------------------------------------------------------------------------------


@st.composite
def disguised(draw):
    """The totals of a table with zeros: shuffled, scaled, with redundant ones, perhaps without one of them."""
    height, width = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    mask = np.array(draw(st.lists(st.booleans(), min_size=height * width, max_size=height * width)))
    mask[draw(st.integers(0, height * width - 1))] = True
    row, column = entries(mask.reshape(height, width))
    A = margins_of(row, column)
    rows = len(np.unique(row))
    totals = list(A)
    if draw(st.booleans()) and len(A) - rows > 1:
        del totals[draw(st.integers(rows, len(A) - 1))]
    for _ in range(draw(st.integers(0, 3))):
        side = A[:rows] if draw(st.booleans()) else A[rows:]
        totals.append(side[draw(st.lists(st.integers(0, len(side) - 1), min_size=1, unique=True))].sum(axis=0))
    weights = st.lists(st.integers(-2, 2), min_size=len(A), max_size=len(A))
    totals.extend(np.array(combination) @ A for combination in draw(st.lists(weights, max_size=2)))
    scales = draw(st.lists(st.sampled_from([1, -1, 2, -6]), min_size=len(totals), max_size=len(totals)))
    order, places = draw(st.permutations(range(len(totals)))), draw(st.permutations(range(A.shape[1])))
    return (np.array(totals) * np.array(scales)[:, None])[order][:, places]


@given(disguised())
def test_every_disguised_table_is_recognised(A):
    assert_recognised(A)


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(st.integers(0, 1), min_size=n, max_size=n), min_size=1)))
def test_no_other_matrix_is_taken_for_a_table(columns):
    A = merged(np.array(columns).T)
    table = recognise_two_way(sparse.csr_array(A))
    if table is not None:
        assert_same_totals(table, A)


def bipartite_graphs(width):
    """Every graph of that many edges, up to names: which edges share a row, and which a column."""

    def partitions(n):
        if n == 0:
            yield []
            return
        for labels in partitions(n - 1):
            for label in range(max(labels, default=-1) + 2):
                yield [*labels, label]

    for row, column in product(partitions(width), repeat=2):
        if len(set(zip(row, column, strict=True))) == width:
            yield margins_of(row, column)


def row_space(A):
    """The nonzero rows of the reduced row echelon form, which two matrices share if they share the row space."""
    reduced, pivots = fmpq_mat(fmpz_mat(A.tolist())).rref()
    return str(reduced.table()[:pivots])


def test_small_systems_against_every_table():
    """Whatever is recognised is one of the tables, and what has all totals of a table in it is recognised."""
    tables = list(bipartite_graphs(4))
    spaces = {row_space(A) for A in tables}
    seen = 0
    for chosen in combinations(range(1, 16), 3):
        A = np.array([[n >> k & 1 for k in range(4)] for n in chosen])
        if len(np.unique(A, axis=1).T) < 4 or (A.sum(axis=0) == 0).any():
            continue
        table = recognise_two_way(sparse.csr_array(A))
        if table is not None:
            assert_same_totals(table, A)
            assert row_space(A) in spaces
            seen += 1
        else:
            assert not any(set(map(tuple, B)) <= set(map(tuple, A)) for B in tables)
    assert seen > 20


# -- graphs ------------------------------------------------------------------------------------------------


def cycles_by_brute_force(edges):
    """The sets of edges that are simple cycles: connected, and two edges at each vertex."""
    for size in range(3, len(edges) + 1):
        for chosen in combinations(range(len(edges)), size):
            degree: dict[int, list[int]] = {}
            for k in chosen:
                for end in edges[k]:
                    degree.setdefault(end, []).append(k)
            if any(len(at) != 2 for at in degree.values()):
                continue
            reached, queue = {chosen[0]}, [chosen[0]]
            while queue:
                k = queue.pop()
                for other in {e for end in edges[k] for e in degree[end]} - reached:
                    reached.add(other)
                    queue.append(other)
            if len(reached) == size:
                yield set(chosen)


@pytest.mark.parametrize("seed", range(25))
def test_biconnected_components_against_every_cycle(seed):
    rng = np.random.default_rng(seed)
    pairs = list(combinations(range(7), 2))
    edges = [pairs[k] for k in rng.permutation(len(pairs))[: rng.integers(1, 11)]]
    expected = {frozenset([k]) for k in range(len(edges))}
    for cycle in cycles_by_brute_force(edges):
        touched = {part for part in expected if part & cycle}
        expected = (expected - touched) | {frozenset().union(*touched)}
    tail, head = np.array(edges).T
    components = biconnected_components(tail, head, 7)
    assert {frozenset(component.tolist()) for component in components} == expected
    assert [int(component[0]) for component in components] == sorted(int(component.min()) for component in components)


def test_long_paths_and_cycles_do_not_recurse():
    n = 20_000
    tail, head = np.arange(n), np.arange(n) + 1
    assert [len(component) for component in biconnected_components(tail, head, n + 1)] == [1] * n
    head = np.where(head == n, 0, head)
    assert [len(component) for component in biconnected_components(tail, head, n)] == [n]
    (cycle,) = alternating_cycles(tail, head, n)
    assert sorted(cycle) == list(range(n))
    assert {cycle[k] * cycle[k + 1] for k in range(n - 1)} == {-1}


@pytest.mark.parametrize("seed", range(8))
def test_forests_and_cycles(seed):
    rng = np.random.default_rng(seed)
    row, column = entries(rng.random((6, 7)) < 0.5)
    table = TwoWay(np.unique(row, return_inverse=True)[1], np.unique(column, return_inverse=True)[1])
    A = margins_of(row, column)
    tail, head, vertices = table.graph
    forest = spanning_forest(tail, head, vertices)
    assert sorted(forest.order) == list(range(vertices))
    for place, vertex in enumerate(forest.order):
        if forest.parent[vertex] >= 0:
            assert forest.parent[vertex] in forest.order[:place]
            assert {int(tail[forest.edge[vertex]]), int(head[forest.edge[vertex]])} == {vertex, forest.parent[vertex]}
    basis = np.zeros((len(table.basis()), len(row)), dtype=np.int64)
    for k, vector in enumerate(table.basis()):
        basis[k, list(vector)] = list(vector.values())
    assert len(basis) == len(row) - rank(A)
    assert not (A @ basis.T).any()
    # Saturated: the lattice is that of the general algorithm, which has this determinant.
    assert int(fmpz_mat((basis @ basis.T).tolist()).det()) == ks.Lattice(A).gram_determinant


# -- blocks ------------------------------------------------------------------------------------------------


def subsets(row, column, *more):
    A = margins_of(row, column)
    totals = [np.flatnonzero(total).tolist() for total in A]
    return ks.Invariants.subsets(len(row), [*totals, *more])


def test_a_table_with_zeros_is_one_block():
    (block,) = decompose(subsets(*HOLES).coefficients).blocks
    assert (block.system.rank, block.system.grid, block.system.two_way.shape) == (9, None, (4, 6))
    assert_same_totals(block.system.two_way, block.system.matrix.toarray())


def test_two_tables_joined_in_a_corner_and_a_bridge():
    """Two 2 x 2 tables that share a row, and an entry that is on no cycle: two blocks of one system, one forced."""
    mask = ["110000", "111110", "001100", "000011", "000001"]
    row, column = entries([[entry == "1" for entry in line] for line in mask])
    structure = decompose(subsets(row, column, range(len(row))).coefficients)
    assert [block.regions.tolist() for block in structure.blocks] == [[0, 1, 2, 3], [4, 5, 7, 8]]
    assert structure.blocks[0].system is structure.blocks[1].system
    assert structure.blocks[0].system.grid.shape == (2, 2)
    assert np.flatnonzero(structure.part == FORCED).tolist() == [6, 9, 10, 11]
    assert structure.rank == rank(margins_of(row, column))


def test_a_bridge_between_two_tables_with_zeros():
    """Six-cycles, that is 3 x 3 tables with three zeros, joined by a bridge that no total determines alone."""
    ring = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    mask = np.block([[ring, np.zeros((3, 3), dtype=int)], [np.zeros((3, 3), dtype=int), ring]])
    mask[0, 3] = 1
    row, column = entries(mask)
    structure = decompose(subsets(row, column).coefficients)
    bridge = int(np.flatnonzero((row == 0) & (column == 3))[0])
    assert np.flatnonzero(structure.part == FORCED).tolist() == [bridge]
    assert [block.system.two_way.shape for block in structure.blocks] == [(3, 3), (3, 3)]
    assert structure.blocks[0].system is structure.blocks[1].system
    assert structure.rank == rank(margins_of(row, column)) == 11


def test_a_full_table_with_an_implied_margin_is_a_grid():
    A = margins_of(*FULL)
    (block,) = decompose(sparse.csr_array(A[1:])).blocks
    assert block.system.grid.shape == block.system.two_way.shape == (3, 5)
    assert block.system.rank == 7


def test_two_way_follows_from_a_grid():
    (block,) = decompose(subsets(*FULL).coefficients).blocks
    table, grid = block.system.two_way, block.system.grid
    assert table.shape == grid.shape
    assert (grid.column[table.row, table.column] == np.arange(15)).all()
    domain = ks.Domain({"a": range(2), "b": range(3), "c": range(3)})
    three = ks.Invariants.margins(domain, [["a", "b"], ["a", "c"], ["b", "c"]])
    (block,) = decompose(three.coefficients).blocks
    assert block.system.grid is not None
    assert block.system.two_way is None


def test_a_large_basis_is_that_of_the_graph():
    row, column = entries(np.random.default_rng(3).random((40, 30)) < 0.9)
    (block,) = decompose(subsets(row, column).coefficients).blocks
    basis = block.system.basis
    assert len(basis) == len(row) - 69
    assert {abs(entry) for vector in basis for entry in vector.values()} == {1}
    assert not (margins_of(row, column) @ dense(basis, len(row)).T).any()


def dense(rows, width):
    result = np.zeros((len(rows), width), dtype=np.int64)
    for k, vector in enumerate(rows):
        result[k, list(vector)] = list(vector.values())
    return result


@pytest.mark.parametrize("seed", range(10))
def test_totals_restricted_to_a_component_have_its_row_space(seed):
    """A six-cycle and weighted totals, mixed: no total lies in the cycle alone, yet its block is a table."""
    rng = np.random.default_rng(seed)
    ring = margins_of(*entries([[1, 1, 0], [0, 1, 1], [1, 0, 1]]))
    other = np.array([[1, 2, 3, 4], [2, 1, 1, 5]])
    A = np.block([
        [ring, np.zeros((6, 4), dtype=np.int64)],
        [np.zeros((2, 6), dtype=np.int64), other],
    ])  # fmt: skip
    mixed = A.copy()
    mixed[:6, 6:] = rng.integers(1, 4, size=(6, 2)) @ other
    assert (mixed[:6, 6:] != 0).any(axis=1).all()
    structure = decompose(sparse.csr_array(mixed))
    assert sorted(block.regions.tolist() for block in structure.blocks) == [list(range(6)), list(range(6, 10))]
    for block in structure.blocks:
        ours, theirs = block.system.matrix.toarray(), A[:, block.regions]
        assert rank(ours) == rank(theirs) == rank(np.vstack([ours, theirs])) == block.system.rank
    table = next(block.system.two_way for block in structure.blocks if len(block.regions) == 6)
    assert table.shape == (3, 3)


@pytest.mark.parametrize("seed", range(20))
def test_blocks_of_the_graph_are_those_of_elimination(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    row, column = entries(rng.random((7, 9)) < rng.choice([0.2, 0.3, 0.5]))
    keep = subsets(row, column, range(len(row)), np.flatnonzero(row < 3).tolist()).coefficients
    by_graph = decompose(keep)
    monkeypatch.setattr(structure_module, "recognise_two_way", lambda matrix: None)
    by_elimination = decompose(keep)
    assert by_graph.rank == by_elimination.rank == rank(margins_of(row, column))

    def ranks(structure):
        return {(tuple(sorted(block.regions.tolist())), block.system.rank) for block in structure.blocks}

    assert ranks(by_graph) == ranks(by_elimination)
    assert (np.minimum(by_graph.part, 0) == np.minimum(by_elimination.part, 0)).all()


CUBE = ks.Domain({"a": range(3), "b": range(3), "c": range(3)}).without({"a": 0, "b": 0, "c": 0})


@pytest.mark.parametrize(
    "totals",
    [
        subsets(*HOLES),
        ks.Invariants.margins(CUBE, [["a", "b"], ["a", "c"], ["b", "c"]]),
        ks.Invariants.subsets(7, [[c for c in range(7) if (c + 1) >> k & 1] for k in range(3)]),
    ],
)
def test_totals_are_recognised_once(totals, monkeypatch):
    """Whether or not they are a table, and for all the mechanisms that a plan is compared with."""
    seen = []
    monkeypatch.setattr(structure_module, "recognise_two_way", lambda m: (seen.append(m), recognise_two_way(m))[1])
    plan = ks.plan(totals, ks.Laplace(epsilon=1))
    assert "Other noise" in plan.explain()
    assert len(seen) == len(plan.structure.blocks) == 1


# -- what people declare --------------------------------------------------------------------------------------


SURVEY = ks.Domain(
    {
        "state": ["x", "y"],
        "county": [("x", 1), ("x", 2), ("x", 3), ("y", 1), ("y", 2), ("y", 3)],
        "sex": ["f", "m"],
        "age": [1, 2, 3, 4],
        "education": [1, 2, 3],
    },
    within={"county": "state"},
)


def tables_of(domain, kept):
    structure = decompose(ks.Invariants.margins(domain, kept).coefficients)
    return [block.system.two_way and block.system.two_way.shape for block in structure.blocks]


@pytest.mark.parametrize("more", [[], [[]], [["state"]], [["state"], []]])
@pytest.mark.parametrize(
    ("kept", "shapes"),
    [
        ([["county"], ["age"]], [(4, 6)]),
        ([["county", "sex"], ["age"]], [(4, 12)]),
        ([["age"], ["sex", "county"]], [(4, 12)]),
        ([["county", "sex"], ["age", "sex"]], [(4, 6)] * 2),
        ([["county"], ["state", "age"]], [(3, 4)] * 2),
        ([["county", "age"], ["state", "education"]], [(3, 12)] * 2),
    ],
)
def test_margins_that_people_keep(kept, shapes, more):
    assert tables_of(SURVEY, kept + more) == shapes
    gone = SURVEY.without({"state": "x", "county": 2, "age": 3}, {"state": "y", "county": 1, "age": 1, "sex": "f"})
    # Where counties by age are rows, a county without an age is a row less; elsewhere it is a structural zero.
    assert tables_of(gone, kept + more) == ([(3, 11), (3, 12)] if ["county", "age"] in kept else shapes)


def test_three_margins_are_no_two_way_table():
    assert tables_of(SURVEY, [["county"], ["age"], ["sex"]]) == [None]


def test_counties_by_race_with_zeros_and_state_totals():
    """Without elimination, which would take minutes at this size."""
    rng = np.random.default_rng(0)
    row, column = entries(rng.random((3143, 8)) < 0.95)
    states = [np.flatnonzero(row // 63 == k).tolist() for k in range(50)]
    structure = decompose(subsets(row, column, *states, range(len(row))).coefficients)
    (block,) = structure.blocks
    assert block.system.two_way.shape == (8, 3143)
    assert (block.system.rank, len(block.regions)) == (3150, len(row))
