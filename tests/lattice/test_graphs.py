"""Spanning forests, biconnected components, fundamental and shortest cycles, against every cycle of small graphs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from flint import fmpz_mat

import keepsum as ks
from keepsum.lattice import graphs
from keepsum.lattice.graphs import (
    alternating_cycles,
    biconnected_components,
    connected_components,
    shortest_cycles,
    spanning_forest,
)
from keepsum.lattice.two_way import TwoWay
from lattice.margins import entries, margins_of, rank


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


@pytest.mark.parametrize("seed", range(25))
def test_shortest_cycles_against_every_cycle(seed):
    """Odd cycles and bridges included."""
    rng = np.random.default_rng(seed)
    edges = [pair for pair in combinations(range(7), 2) if rng.random() < rng.choice([0.25, 0.4])][:12]
    tail, head = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    lengths = dict.fromkeys(range(len(edges)), 0)
    for cycle in sorted(cycles_by_brute_force(edges), key=len, reverse=True):
        lengths |= dict.fromkeys(cycle, len(cycle))
    some = rng.permutation(len(edges))[: 1 + len(edges) // 2]
    assert shortest_cycles(tail, head, 7, some).tolist() == [lengths[k] for k in some.tolist()]


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


@pytest.mark.parametrize("seed", range(20))
def test_connected_components_are_those_of_scipy(monkeypatch, seed):
    """Few edges are followed here, many by scipy: count, labels and their order agree."""
    numbers = np.random.default_rng(seed)
    vertices = int(numbers.integers(1, 40))
    tail, head = numbers.integers(0, vertices, size=(2, int(numbers.integers(0, 40))))
    count, label = connected_components(tail, head, vertices)
    monkeypatch.setattr(graphs, "FEW_EDGES", -1)
    expected_count, expected = connected_components(tail, head, vertices)
    assert count == expected_count
    np.testing.assert_array_equal(label, expected)


def test_components_of_a_long_path():
    vertices = 5000
    order = np.random.default_rng(1).permutation(vertices)
    assert connected_components(order[:-1], order[1:], vertices)[0] == 1
