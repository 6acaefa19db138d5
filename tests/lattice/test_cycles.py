"""The shortest changes of two-way tables with structural zeros, against every vector of small lattices."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from keepsum.lattice import opposite as cycles
from keepsum.lattice.graphs import alternating_cycles
from keepsum.lattice.opposite import opposite_in_table
from keepsum.lattice.shortest import NONE, SHIFT, UNKNOWN, Measure
from keepsum.lattice.two_way import TwoWay
from support import mostly_audit

L1, FEWEST, SHORTEST = Measure("l1", True), Measure("l2", True), Measure("l2", False)
LARGEST_ENTRY = 3
RING = [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 0)]


def numbered(labels) -> np.ndarray:
    return np.unique(np.asarray(labels), return_inverse=True)[1]


def table_of(edges) -> TwoWay:
    row, column = zip(*edges, strict=True)
    return TwoWay(numbered(row), numbered(column))


def blocks(seed: int) -> list[TwoWay]:
    """The blocks of a random table with zeros, if they are small enough to enumerate."""
    rng = np.random.default_rng(seed)
    shape = [(4, 4), (3, 5), (5, 5), (6, 5), (6, 6)][seed % 5]
    row, column = np.nonzero(rng.random(shape) < rng.choice([0.35, 0.45, 0.6]))
    if not len(row):
        return []
    table = TwoWay(numbered(row), numbered(column))
    parts = [TwoWay(numbered(table.row[regions]), numbered(table.column[regions])) for regions in table.blocks()]
    return [part for part in parts if len(part.row) - sum(part.shape) + 1 <= 5]


def lattice_vectors(table: TwoWay) -> np.ndarray:
    """All vectors with entries up to 3: coefficients of fundamental cycles are entries, at edges of their own."""
    basis = np.zeros((len(table.row) - sum(table.shape) + 1, len(table.row)), dtype=np.int64)
    for k, cycle in enumerate(alternating_cycles(*table.graph)):
        basis[k, list(cycle)] = list(cycle.values())
    entries = range(-LARGEST_ENTRY, LARGEST_ENTRY + 1)
    vectors = np.array(list(product(entries, repeat=len(basis)))) @ basis
    return vectors[vectors.any(axis=1) & (np.abs(vectors).max(axis=1) <= LARGEST_ENTRY)]


def true_key(measure: Measure, vectors: np.ndarray) -> int:
    """The key of the vector that counts: the shortest, or of those with fewest changes the longest."""
    if not len(vectors):
        return NONE
    l1, squares = np.abs(vectors).sum(axis=1), (vectors**2).sum(axis=1)
    if measure.norm == "l1":
        return int(l1.min())
    return int(((l1 << SHIFT) - squares).min()) if measure.fewest_first else int(squares.min())


def all_pairs(table: TwoWay, measure: Measure) -> tuple[np.ndarray, np.ndarray]:
    """The bounds, with each region a class of its own."""
    classes = np.eye(len(table.row), dtype=bool)
    return opposite_in_table(table, measure, classes, ~classes, np.full(classes.shape, UNKNOWN))


def sums_without_removal(table: TwoWay, i: int, j: int, only_joint: bool) -> int:
    """The theorem, forgetting that the paths must not use the two edges, or that there may be two cycles."""
    tail, head, vertices = table.graph
    distance = np.full((vertices, vertices), 10**6)
    np.fill_diagonal(distance, 0)
    kept = [k for k in range(len(tail)) if not only_joint or k not in (i, j)]
    distance[tail[kept], head[kept]] = distance[head[kept], tail[kept]] = 1
    for k in range(vertices):
        distance = np.minimum(distance, distance[:, [k]] + distance[[k]])
    joint = distance[tail[i], tail[j]] + distance[head[j], head[i]]
    return 2 + int(joint if only_joint else min(joint, distance[tail[i], head[i]] + distance[head[j], tail[j]]))


@mostly_audit("measure", [L1, FEWEST, SHORTEST])
@pytest.mark.parametrize("seed", range(60))
def test_every_pair_against_every_vector(seed, measure):
    for table in blocks(seed):
        vectors = lattice_vectors(table)
        upper, lower = all_pairs(table, measure)
        for i, j in product(range(len(table.row)), repeat=2):
            if i == j:
                continue
            true = true_key(measure, vectors[(vectors[:, i] < 0) & (vectors[:, j] > 0)])
            assert lower[i, j] <= true <= upper[i, j]
            if measure is not SHORTEST:
                assert lower[i, j] == upper[i, j]


@pytest.mark.parametrize("measure", [L1, FEWEST, SHORTEST])
@pytest.mark.parametrize("seed", range(60))
def test_the_shortest_cycle_is_the_shortest_change(seed, measure):
    for table in blocks(seed):
        vectors = lattice_vectors(table)
        for region, length in enumerate(table.cycles.tolist()):
            assert measure.key(length, length) == true_key(measure, vectors[vectors[:, region] != 0])


def test_the_random_tables_need_all_of_the_theorem():
    """Among them are pairs for which a simpler formula is wrong, entries of 2, and pairs without any vector."""
    wrong, alone, doubled, none = 0, 0, 0, 0
    for table in (table for seed in range(60) for table in blocks(seed)):
        lengths, keys = all_pairs(table, L1)[0], all_pairs(table, FEWEST)[0]
        for i, j in product(range(len(table.row)), repeat=2):
            if i != j and lengths[i, j] < NONE:
                wrong += sums_without_removal(table, i, j, only_joint=False) != lengths[i, j]
                alone += sums_without_removal(table, i, j, only_joint=True) != lengths[i, j]
                doubled += FEWEST.lengths(keys)[i, j] > lengths[i, j]
            none += i != j and lengths[i, j] == NONE
    assert min(wrong, alone, doubled, none) >= 20


@pytest.mark.parametrize("measure", [L1, FEWEST])
@pytest.mark.parametrize("seed", range(20))
def test_classes_are_as_near_as_their_nearest_region(seed, measure):
    rng = np.random.default_rng(seed)
    for table in blocks(seed):
        width = len(table.row)
        classes = np.zeros((width, 3), dtype=bool)
        classes[np.arange(width), rng.integers(3, size=width)] = True
        single, _ = all_pairs(table, measure)
        upper, lower = opposite_in_table(table, measure, classes, ~classes, np.full(classes.shape, UNKNOWN))
        nearest = np.where(classes[None], single[:, :, None], NONE).min(axis=1)
        assert (upper[~classes] == nearest[~classes]).all()
        assert (lower[~classes] == nearest[~classes]).all()


@mostly_audit("measure", [L1, FEWEST])
@pytest.mark.parametrize("searches", [0, 3])
def test_searches_that_end_early_leave_bounds(searches, measure, monkeypatch):
    cut_off = 0
    for table in (table for seed in range(40) for table in blocks(seed)):
        true = measure.lengths(all_pairs(table, measure)[0])
        with monkeypatch.context() as patch:
            patch.setattr(cycles, "SEARCHES", searches)
            patch.setattr(cycles, "COMPARED", 10)
            upper, lower = map(measure.lengths, all_pairs(table, measure))
        others = ~np.eye(len(true), dtype=bool)
        assert (lower[others] <= true[others]).all()
        assert ((true <= upper) | (upper == UNKNOWN))[others].all()
        cut_off += (lower[others] < upper[others]).sum()
    assert cut_off > 100


def test_a_ring_rises_and_falls_in_turn():
    table = table_of(RING)
    upper, _ = all_pairs(table, L1)
    opposite = (np.arange(6)[:, None] - np.arange(6)) % 2 == 1
    assert (upper[opposite] == 6).all()
    assert (upper[~opposite & ~np.eye(6, dtype=bool)] == NONE).all()


def test_two_cycles_that_share_a_path_count_it_twice():
    """Three paths between two columns: two of length 2 and one of length 4, between which two cycles can share."""
    paths = [[(0, 0), (0, 1)], [(1, 0), (1, 1)], [(2, 0), (2, 2), (3, 2), (3, 1)]]
    table = table_of([edge for path in paths for edge in path])
    assert table.cycles.tolist() == [4, 4, 4, 4, 6, 6, 6, 6]
    vectors = lattice_vectors(table)
    keys, _ = all_pairs(table, FEWEST)
    for i, j in product(range(8), repeat=2):
        if i != j:
            assert keys[i, j] == true_key(FEWEST, vectors[(vectors[:, i] < 0) & (vectors[:, j] > 0)])
