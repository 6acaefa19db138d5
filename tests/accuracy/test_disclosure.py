"""Bounds against all tables of whole numbers that have the same kept totals."""

import itertools

import numpy as np
import pytest

import keepsum as ks
from keepsum.accuracy.disclosure import bounded_cells
from support import mostly_audit

WIDE = 10**6  # a margin beyond any range, so that every cell is looked at


def ranges(plan, counts, margin=WIDE):
    found = bounded_cells(plan.structure, np.asarray(counts), np.full(plan.size, margin))
    return {
        c: (low, high)
        for c, low, high in zip(found.cells.tolist(), found.low.tolist(), found.high.tolist(), strict=True)
    }


def all_tables(matrix, counts, largest):
    """Every table of whole numbers from 0 with the same totals."""
    matrix, counts = np.asarray(matrix), np.asarray(counts)
    cells = np.array(list(itertools.product(range(largest + 1), repeat=len(counts))))
    return cells[(cells @ matrix.T == matrix @ counts).all(axis=1)]


SYSTEMS = {
    "one sum": ([[1, 1, 1, 0]], [2, 0, 1, 5]),
    "nested sums": ([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], [1, 0, 2, 0, 1]),
    "2 x 3 margins": (None, [2, 0, 1, 0, 3, 1]),
    "overlap": ([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]], [1, 0, 2, 1, 0]),
    "weights": ([[1, 2, 3, 0], [0, 1, 1, 1]], [1, 0, 1, 2]),
    "a total of 0": ([[1, 1, 0, 0], [0, 1, 1, 1]], [0, 0, 2, 1]),
}


@pytest.mark.parametrize(("matrix", "counts"), SYSTEMS.values(), ids=SYSTEMS)
def test_bounds_hold_every_table_and_are_met(matrix, counts):
    if matrix is None:
        domain = ks.Domain({"a": ["0", "1"], "b": ["0", "1", "2"]})
        matrix = ks.Invariants.margins(domain, [["a"], ["b"]]).coefficients.toarray()
    plan = ks.plan(keep=ks.Invariants.matrix(matrix), mechanism=ks.Laplace.per_unit(epsilon=1))
    tables = all_tables(matrix, counts, sum(counts))
    assert len(tables) > 1
    found = ranges(plan, counts)
    free = [cell for cell in range(plan.size) if not np.any(np.asarray(matrix)[:, cell])]
    assert set(found) == set(range(plan.size)) - set(plan.pinned.tolist()) - set(free)
    for cell, (low, high) in found.items():
        assert (low, high) == (tables[:, cell].min(), tables[:, cell].max())


def test_a_cube_by_linear_programs():
    """Bounds by a program may be wider than those of whole numbers, never narrower."""
    domain = ks.Domain({"a": ["0", "1"], "b": ["0", "1"], "c": ["0", "1", "2"]})
    keep = ks.Invariants.margins(domain, [["a", "b"], ["a", "c"], ["b", "c"]])
    plan = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=1))
    counts = np.array([1, 0, 2, 0, 1, 0, 0, 1, 0, 1, 0, 1])
    basis = ks.Lattice(keep.coefficients).basis
    moves = np.array(list(itertools.product(range(-3, 4), repeat=basis.shape[1]))) @ basis.T
    tables = (counts + moves)[((counts + moves) >= 0).all(axis=1)]
    for cell, (low, high) in ranges(plan, counts).items():
        assert low <= tables[:, cell].min()
        assert tables[:, cell].max() <= high
        assert high - low <= counts.sum()


def test_only_narrow_ranges_are_listed(children):
    plan = ks.plan(children, keep=["county", "education"], mechanism=ks.Laplace.per_unit(epsilon=0.25))
    assert ranges(plan, children.counts, 6) == {}
    assert ranges(plan, children.counts, 21) == {c: (0, 20) for c in range(16) if c < 4 or c % 4 == 3}


def test_bounds_depend_on_the_kept_totals_alone(circles):
    """Another table with the same totals gives the same bounds."""
    plan = ks.plan(keep=circles, mechanism=ks.Laplace.per_unit(epsilon=1))
    counts = np.arange(14)
    moved = counts + ks.Lattice(circles.coefficients).basis[:, :4].sum(axis=1)
    assert circles.holds(counts, moved)
    assert ranges(plan, counts, 30) == ranges(plan, moved, 30)


def test_large_blocks_are_not_checked(monkeypatch, circles):
    monkeypatch.setattr("keepsum.accuracy.disclosure.PROGRAM_LIMIT", 3)
    plan = ks.plan(keep=circles, mechanism=ks.Laplace.per_unit(epsilon=1))
    found = bounded_cells(plan.structure, np.arange(14), np.full(14, WIDE))
    assert found.not_checked == 14
    assert len(found.cells) == 0


@mostly_audit("seed", range(12))
def test_bounds_look_at_kept_totals_only(seed):
    """Tables with the same kept totals have the same bounds, under any overlap of totals and any weights."""
    generator = np.random.default_rng(seed)
    matrix = generator.integers(0, 2, size=(3, 7)) * generator.choice([1, 1, 1, 2, -1], size=(3, 7))
    plan = ks.plan(keep=ks.Invariants.matrix(matrix), mechanism=ks.Laplace.per_unit(epsilon=1))
    basis = ks.Lattice(matrix).basis
    changes = [basis @ generator.integers(-3, 4, size=basis.shape[1]) for _ in range(5)]
    base = generator.integers(0, 3, size=7) + np.max(np.abs(changes), axis=0)  # room for all of them
    for margin in (3, 20, WIDE):
        expected = ranges(plan, base, margin)
        assert all(ranges(plan, base + change, margin) == expected for change in changes)
