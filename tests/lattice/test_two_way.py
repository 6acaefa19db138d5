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
from keepsum.lattice import two_way
from keepsum.lattice.two_way import TwoWay, recognise_two_way
from lattice.margins import FULL, HOLES, assert_same_totals, entries, margins_of


def assert_recognised(A, shape=None) -> TwoWay:
    table = recognise_two_way(sparse.csr_array(A))
    assert table is not None
    assert_same_totals(table, np.asarray(A))
    if shape is not None:
        assert table.shape == shape
    return table


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
