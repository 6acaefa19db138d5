"""Laws that must hold for every input, searched by hypothesis."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import keepsum as ks

matrices = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=7).flatmap(
    lambda shape: hnp.arrays(np.int64, shape, elements=st.integers(-9, 9))
)
huge = hnp.arrays(np.int64, (2, 4), elements=st.integers(-(2**62), 2**62))
labels = st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=4, unique=True)


@st.composite
def domains(draw):
    """One to three axes, sometimes a nested one, sometimes with structural zeros."""
    axes = {f"axis {i}": draw(labels) for i in range(draw(st.integers(1, 3)))}
    within = {}
    if draw(st.booleans()):
        axes["child"] = {label: draw(labels) for label in axes["axis 0"]}
        within = {"child": "axis 0"}
    domain = ks.Domain(axes, within)
    if domain.size > 1 and draw(st.booleans()):
        domain = domain.without(domain.cell(draw(st.integers(0, domain.size - 1))))
    return domain


@st.composite
def tables(draw):
    domain = draw(domains())
    counts = draw(st.lists(st.integers(0, 2**40), min_size=domain.size, max_size=domain.size))
    return ks.Table.from_array(counts, domain)


def exact(array):
    return array.astype(object)


def determinant(matrix):
    from flint import fmpz_mat

    return int(fmpz_mat([[int(e) for e in row] for row in matrix]).det())


@given(matrices)
def test_smith(A):
    U, D, V = ks.Lattice(A).smith
    assert np.array_equal(exact(U) @ exact(A) @ exact(V), exact(D))
    assert abs(determinant(U)) == 1
    assert abs(determinant(V)) == 1


@given(huge)
def test_smith_and_kernel_near_the_limit(A):
    lattice = ks.Lattice(A)
    U, D, V = lattice.smith
    assert np.array_equal(exact(U) @ exact(A) @ exact(V), exact(D))
    assert abs(determinant(V)) == 1
    assert not np.any(exact(A) @ exact(lattice.basis))


@given(matrices, st.data())
def test_lattice_is_closed(A, data):
    lattice = ks.Lattice(A)
    v = data.draw(hnp.arrays(np.int64, lattice.dimension, elements=st.integers(-50, 50)))
    z = exact(lattice.basis) @ exact(v) if lattice.dimension else np.zeros(A.shape[1], dtype=object)
    assert not np.any(exact(A) @ z)
    assert lattice.contains(z.astype(np.int64))


@given(matrices)
def test_row_operations_do_not_change_the_lattice(A):
    """Permuted, repeated and added rows: the same rank, dimension and volume."""
    more = np.vstack([A[::-1], A[:1] + A[-1:], A[:1] * 3])
    one, two = ks.Lattice(A), ks.Lattice(more)
    assert (one.rank, one.gram_determinant) == (two.rank, two.gram_determinant)
    assert two.contains(one.basis.T).all() if one.dimension else two.dimension == 0


@given(domains())
def test_cell_and_index(domain):
    assert [domain.index(domain.cell(i)) for i in range(domain.size)] == list(range(domain.size))


@given(domains(), st.data())
def test_marginal_index_agrees_with_projection(domain, data):
    axes = data.draw(st.lists(st.sampled_from(domain.axes), min_size=1, unique=True))
    margin = domain.project(axes)
    index = domain.marginal_index(axes)
    assert set(index.tolist()) == set(range(margin.size))
    for i in range(domain.size):
        cell = domain.cell(i)
        assert margin.cell(int(index[i])) == {name: cell[name] for name in margin.axes}


@given(tables())
def test_frames_round_trip(table):
    frame = table.to_frame("polars")
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
    back = ks.Table.from_frame(shuffled, domain=table.domain)
    assert np.array_equal(back.counts, table.counts)
    assert isinstance(back.to_frame(), pl.DataFrame)
    assert back.to_frame().equals(frame)
    kept = ks.Table.from_frame(shuffled, domain=table.domain, keep_order=True)
    assert np.array_equal(kept.counts, table.counts)
    assert kept.to_frame().equals(shuffled)


@given(tables(), st.data())
def test_lattice_vectors_keep_the_totals(table, data):
    """What the plan calls noise changes no kept total, and what it calls pinned is never moved."""
    margins = data.draw(st.lists(st.lists(st.sampled_from(table.domain.axes), unique=True), min_size=1, max_size=3))
    keep = table.keep(*margins)
    lattice = ks.Lattice(keep.coefficients)
    if not lattice.dimension:
        return
    v = data.draw(hnp.arrays(np.int64, lattice.dimension, elements=st.integers(-5, 5)))
    z = lattice.basis @ v
    assert keep.holds(table.counts, table.counts + z)
    plan = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=1))
    assert not z[plan.pinned].any()
    moved = np.abs(lattice.basis).sum(axis=1) > 0
    assert np.array_equal(np.flatnonzero(~moved), plan.pinned)


@given(tables(), tables())
def test_union_of_invariants_keeps_both(one, two):
    keep = one.keep(*one.domain.axes[:1]) + one.keep(total=True)
    assert keep.height == one.keep(*one.domain.axes[:1]).height + 1
    assert keep.holds(one, one)
    if two.domain == one.domain and two.counts.sum() != one.counts.sum():
        assert not keep.holds(one, two)
