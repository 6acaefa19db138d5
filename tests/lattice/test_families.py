"""Families of totals that can be summed out: recognised, refused, and the parts they find, against exact algebra."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import sympy
from scipy import sparse

from keepsum.lattice import structure as structure_module
from keepsum.lattice.families import Collapse, collapses_of, dimension_of, matroid_components
from keepsum.lattice.lattice import Lattice
from keepsum.lattice.structure import decompose
from lattice.margins import rank
from lattice.summed_out import DECOMPOSABLE, FOUR, REFUSED, THREE, apart, cells_of, holes, shuffled, totals

# -- collapses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DECOMPOSABLE)
@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_families_are_summed_out_and_the_dimension_is_right(name, seed):
    matrix = apart(DECOMPOSABLE[name])
    if seed is not None:
        matrix = shuffled(matrix, seed)
    collapses = collapses_of(sparse.csr_array(matrix))
    assert collapses is not None
    assert dimension_of(collapses) == matrix.shape[1] - rank(matrix)
    assert_same_lattice(matrix, collapses)


@pytest.mark.parametrize("name", REFUSED)
def test_other_totals_are_refused(name):
    matrix = apart(REFUSED[name])
    assert collapses_of(sparse.csr_array(matrix)) is None
    for seed in range(3):
        assert collapses_of(sparse.csr_array(shuffled(matrix, seed))) is None


def assert_same_lattice(matrix, collapses):
    """The collapses describe tables whose lattice is that of the totals: each vector of a basis is 0 at the end.

    A vector of the first table goes from table to table: its column sums are 0 in each component (the sum over rows of
    a component is then 0 as well), structural zeros are 0, and the sums over rows are the vector of the next table.
    """
    vectors = np.array(Lattice(matrix).basis.T, dtype=np.int64).reshape(-1, matrix.shape[1])
    for collapse in collapses:
        assert vectors.shape[1] == len(collapse.row) == len(collapse.column)
        inside = collapse.row >= 0
        assert ((collapse.column >= 0) == inside).all()
        assert not vectors[:, ~inside].any()
        component = collapse.component[collapse.row[inside]]
        for p in range(collapse.column.max() + 1):
            of_column = collapse.column[inside] == p
            assert of_column.any()
            assert len(np.unique(component[of_column])) == 1
            assert not vectors[:, inside][:, of_column].sum(axis=1).any()
        after = np.zeros((len(vectors), len(collapse.component)), dtype=np.int64)
        np.add.at(after.T, collapse.row[inside], vectors[:, inside].T)
        assert np.bincount(collapse.row[inside], minlength=len(collapse.component)).all()
        vectors = after
        for s in range(collapse.component.max() + 1):
            assert not vectors[:, collapse.component == s].sum(axis=1).any()
    assert not vectors.any()


@pytest.mark.parametrize("name", ["three axes", "AB, BC, CD", "chain, zeros", "county x sex, state x age"])
def test_a_table_that_passes_all_collapses_keeps_the_totals(name):
    """The other half: a vector that is 0 where collapses say so is in the lattice, by dimension and by construction."""
    matrix = apart(DECOMPOSABLE[name])
    collapses = collapses_of(sparse.csr_array(matrix))
    conditions = [np.zeros((0, matrix.shape[1]), dtype=np.int64)]
    sums = np.eye(matrix.shape[1], dtype=np.int64)  # each entry of the table so far as a sum of cells
    for collapse in collapses:
        inside = collapse.row >= 0
        conditions.append(sums[~inside])
        conditions += [sums[collapse.column == p].sum(axis=0)[None] for p in range(collapse.column.max() + 1)]
        sums = np.array([sums[collapse.row == x].sum(axis=0) for x in range(len(collapse.component))])
    conditions.append(sums)
    conditions = np.vstack(conditions)
    assert rank(conditions) == rank(matrix) == rank(np.vstack([conditions, matrix]))


def test_the_longest_axis_stays():
    collapses = collapses_of(sparse.csr_array(totals(cells_of(("A", 3), ("B", 20), ("C", 8)), "A", "B", "C")))
    assert [(len(c.row), len(c.component)) for c in collapses] == [(480, 160), (160, 20)]


def test_separators_are_components():
    collapses = collapses_of(sparse.csr_array(totals(FOUR, "AB", "AC", "AD")))
    assert [int(c.component.max()) + 1 for c in collapses] == [3, 3]


def test_random_margins_agree_with_graham_reduction():
    """Crossed margins, all but structural zeros at random: found exactly where Graham's reduction ends."""
    rng = np.random.default_rng(11)
    found = 0
    for _ in range(150):
        names = "ABCDE"[: rng.integers(2, 6)]
        sizes = rng.integers(2, 4, size=len(names))
        margins = {"".join(n for n in names if rng.random() < 0.45) for _ in range(rng.integers(1, 5))} - {""}
        if not margins:
            continue
        matrix = apart(totals(cells_of(*zip(names, sizes.tolist(), strict=True)), *sorted(margins)))
        collapses = collapses_of(sparse.csr_array(matrix))
        assert (collapses is not None) == reduces_to_nothing(margins)
        if collapses is not None:
            found += 1
            assert dimension_of(collapses) == matrix.shape[1] - rank(matrix)
            assert_same_lattice(matrix, collapses)
    assert 50 < found < 145


def reduces_to_nothing(margins):
    """Graham's reduction: remove axes that are in one margin, and margins that are in another."""
    kept = [set(margin) for margin in margins]
    while True:
        before = [set(margin) for margin in kept]
        for axis in set().union(*kept):
            holders = [margin for margin in kept if axis in margin]
            if len(holders) == 1:
                holders[0].discard(axis)
        kept = [m for k, m in enumerate(kept) if not any(m < o or (m == o and k > n) for n, o in enumerate(kept))]
        if kept == before:
            return len(kept) <= 1


# -- blocks -------------------------------------------------------------------------------------------


def by_algebra(monkeypatch, matrix):
    """What elimination alone finds, without recognised families."""
    with monkeypatch.context() as patch:
        patch.setattr(structure_module, "collapses_of", lambda matrix: None)
        return decompose(sparse.csr_array(matrix))


def parts(structure):
    blocks = [block.regions.tolist() for block in structure.blocks]
    ranks = [block.system.rank for block in structure.blocks]
    return structure.region.tolist(), structure.part.tolist(), blocks, ranks, structure.rank, structure.pinned.tolist()


def assert_same_parts(monkeypatch, matrix):
    ours, expected = decompose(sparse.csr_array(matrix)), by_algebra(monkeypatch, matrix)
    assert parts(ours) == parts(expected)
    for one, other in zip(ours.blocks, expected.blocks, strict=True):
        assert (one.system.matrix != other.system.matrix).nnz == 0
    return ours


@pytest.mark.parametrize("name", DECOMPOSABLE | REFUSED)
def test_parts_are_those_of_elimination(name, monkeypatch):
    assert_same_parts(monkeypatch, (DECOMPOSABLE | REFUSED)[name])


def test_parts_are_those_of_elimination_with_many_structural_zeros(monkeypatch):
    """Blocks that fall apart, entries that are determined, and tables where that is not settled without algebra."""
    seen = {"one": 0, "several": 0, "coloops": 0}
    shapes = [("A", "B", "C"), ("AB", "BC"), ("AB", "C", "D"), ("AB", "BC", "CD"), ("A", "B", "C", "D")]
    for seed, (margins, share) in enumerate(product(shapes * 8, (0.1, 0.3, 0.5, 0.65))):
        cells = cells_of(("A", 4), ("B", 3), ("C", 3), ("D", 2)) if "D" in "".join(margins) else THREE
        ours = assert_same_parts(monkeypatch, holes(totals(cells, *margins), share, seed))
        seen["one"] += len(ours.blocks) == 1
        seen["several"] += len(ours.blocks) > 1
        seen["coloops"] += len(ours.pinned) > 0
    assert min(seen.values()) > 10


def test_components_are_settled_without_algebra_where_zeros_are_few():
    settled = 0
    for seed in range(30):
        matrix = apart(holes(totals(cells_of(("A", 6), ("B", 5), ("C", 4)), "A", "B", "C"), 0.2, seed))
        label = matroid_components(collapses_of(sparse.csr_array(matrix)))
        settled += label is not None
        assert label is None or set(label.tolist()) == {0}
    assert settled > 25


def components_by_circuits(matrix):
    """By brute force: a basis of the kernel in reduced echelon form, its supports joined."""
    label = np.full(matrix.shape[1], -1)
    for k, vector in enumerate(sympy.Matrix(matrix).nullspace()):
        support = [j for j, entry in enumerate(vector) if entry != 0]
        merged = np.isin(label, [old for old in label[support] if old >= 0])
        label[merged] = k
        label[support] = k
    return {frozenset(np.flatnonzero(label == k).tolist()) for k in set(label.tolist()) - {-1}}


def test_components_of_the_matroid_against_brute_force():
    answered = 0
    for seed in range(60):
        matrix = apart(holes(totals(THREE, "A", "B", "C") if seed % 2 else totals(THREE, "AB", "BC"), 0.4, seed))
        collapses = collapses_of(sparse.csr_array(matrix))
        label = matroid_components(collapses) if collapses is not None else None
        if label is None:
            continue
        answered += 1
        ours = {frozenset(np.flatnonzero(label == k).tolist()) for k in set(label.tolist()) - {-1}}
        assert ours == components_by_circuits(matrix)
    assert answered > 30


def test_structural_zeros_are_marked():
    """A row that is alone in its class after a collapse is 0, and is left out from there on."""
    collapses = collapses_of(sparse.csr_array(apart(DECOMPOSABLE["three axes, few cells"])))
    assert any((c.row < 0).any() for c in collapses)
    assert all(isinstance(c, Collapse) for c in collapses)


@pytest.mark.parametrize("shape", [(3143, 8, 2), (20, 20, 20), (10,) * 5])
def test_large_tables_are_not_eliminated(shape, monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("eliminated")

    width = int(np.prod(shape))
    ones = np.ones(width, dtype=np.int64), np.arange(width)
    margins = [sparse.csr_array((ones[0], (place.ravel(), ones[1]))) for place in np.indices(shape)]
    monkeypatch.setattr(structure_module, "eliminate", refuse)
    parts = decompose(sparse.csr_array(sparse.vstack(margins)))
    assert parts.rank == sum(shape) - len(shape) + 1
    assert [len(block.regions) for block in parts.blocks] == [np.prod(shape)]
    assert dimension_of(parts.blocks[0].system.collapses) == np.prod(shape) - parts.rank
