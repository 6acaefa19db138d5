"""A plan from a matrix, and what is said of everything that is not one."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import keepsum as ks

A = [[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]]
FORMS = {
    "nested list": A,
    "tuples": tuple(map(tuple, A)),
    "list of arrays": [np.array(row) for row in A],
    "array": np.array(A),
    "floats that are whole": np.array(A, dtype=float),
    "sparse array": sparse.csc_array(A),
    "sparse matrix": sparse.coo_matrix(A),
    "lattice": ks.Lattice(A),
    "invariants": ks.Invariants.matrix(A),
}


@pytest.mark.parametrize("totals", FORMS.values(), ids=FORMS)
def test_a_matrix_is_enough(totals):
    noise = ks.plan(totals, ks.Laplace(epsilon=1)).sample(1000, rng=ks.rng(seed=1))
    assert noise.shape == (1000, 5)
    assert not (np.array(A) @ noise.T).any()
    same = ks.plan(ks.Invariants.matrix(A), ks.Laplace(epsilon=1)).sample(1000, rng=ks.rng(seed=1))
    assert np.array_equal(noise, same)


def test_a_plan_of_a_matrix_releases_a_table():
    table = ks.Table.from_array([3, 4, 5, 6, 7], axes={"age": list("abcde")})
    released = ks.plan(np.array(A), ks.Laplace(epsilon=1)).release(table)
    assert (np.array(A) @ released.table.counts).tolist() == [12, 18]


def test_a_matrix_without_rows_keeps_nothing():
    assert ks.plan(np.zeros((0, 3), dtype=int), ks.Laplace(epsilon=1)).invariants.height == 0


TABLE = ks.Table.from_array([[3, 4], [5, 6]], axes={"county": ["a", "b"], "sex": ["f", "m"]})
WRONG = {
    "table": (TABLE, "got a Table. Say which totals of it: ks.plan(table.keep('county'), ...), or ks.release("),
    "released": (
        ks.release(TABLE, keep=["county"], mechanism=ks.Laplace(epsilon=1)).table,
        "got a released table, which is not confidential any more",
    ),
    "domain": (TABLE.domain, "got a Domain. Say which margins: ks.plan(ks.Invariants.margins(domain, "),
    "pandas": (pd.DataFrame({"county": ["a"], "n": [5]}), "got a data frame. Use table = ks.Table.from_frame("),
    "polars": (pl.DataFrame({"county": ["a"], "n": [5]}), "got a data frame"),
    "lazy": (pl.LazyFrame({"county": ["a"], "n": [5]}), "got a data frame"),
    "axes": (["county", "sex"], "got names of axes. Axes belong to a table: ks.plan(table.keep(...), ...)"),
    "margins": ([["county"], []], "got names of axes"),
    "axis": ("county", "got 'county'. Read the table first"),
    "flat": ([1, 1, 1], "got a value of type 'list'"),
    "number": (3, "got a value of type 'int'"),
    "none": (None, "got a value of type 'NoneType'"),
    "empty": ([], "got a value of type 'list'"),
    "ragged": ([[1, 1], [1]], "must have rows of one length"),
    "half": ([[0.5, 1]], "must have whole numbers as entries"),
    "vector": (np.array([1, 1]), "must have two dimensions"),
}


@pytest.mark.parametrize(("totals", "words"), WRONG.values(), ids=WRONG)
def test_anything_else_is_told_what_it_is(totals, words):
    with pytest.raises(ks.InputError) as error:
        ks.plan(totals, ks.Laplace(epsilon=1))
    assert words in str(error.value)


def test_no_number_of_a_table_is_repeated():
    for totals in ("Alpha,15", [["Alpha", 15]], pd.Series([15]), {"a": 15}):
        with pytest.raises(ks.InputError) as error:
            ks.plan(totals, ks.Laplace(epsilon=1))
        assert "15" not in str(error.value)


def test_research_names_are_listed_and_internals_are_not():
    assert "keepsum.facade.functions" in sys.modules  # internals that are loaded are still not listed
    assert {"mcmc", "baselines"} <= set(dir(ks))
    assert set(dir(ks)) == {*ks.__all__, "__version__"}
    assert not {"facade", "functions", "annotations", "Any", "TYPE_CHECKING"} & set(dir(ks))
