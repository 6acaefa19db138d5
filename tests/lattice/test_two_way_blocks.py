"""The blocks of two-way tables, without elimination, and the tables that people declare."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import keepsum as ks
from keepsum.lattice import structure as structure_module
from keepsum.lattice.structure import FORCED, decompose
from keepsum.lattice.two_way import recognise_two_way
from lattice.margins import FULL, HOLES, assert_same_totals, entries, margins_of, rank, subsets
from support import mostly_audit


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


@mostly_audit(
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
    plan = ks.plan(keep=totals, mechanism=ks.Laplace.per_unit(epsilon=1))
    assert "Other noise" in plan.explain(details=True)
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
