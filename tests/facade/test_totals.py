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
    noise = ks.plan(keep=totals, mechanism=ks.Laplace.per_unit(epsilon=1)).sample(1000, rng=ks.rng(seed=1))
    assert noise.shape == (1000, 5)
    assert not (np.array(A) @ noise.T).any()
    same = ks.plan(keep=ks.Invariants.matrix(A), mechanism=ks.Laplace.per_unit(epsilon=1)).sample(
        1000, rng=ks.rng(seed=1)
    )
    assert np.array_equal(noise, same)


def test_a_plan_of_a_matrix_releases_a_table():
    table = ks.Table.from_array([3, 4, 5, 6, 7], axes={"age": list("abcde")})
    released = ks.plan(keep=np.array(A), mechanism=ks.Laplace.per_unit(epsilon=1)).release(table)
    assert (np.array(A) @ released.table.counts).tolist() == [12, 18]


def test_a_matrix_without_rows_keeps_nothing():
    assert ks.plan(keep=np.zeros((0, 3), dtype=int), mechanism=ks.Laplace.per_unit(epsilon=1)).invariants.height == 0


TABLE = ks.Table.from_array([[3, 4], [5, 6]], axes={"county": ["a", "b"], "sex": ["f", "m"]})
WRONG = {
    "table": (TABLE, "got a Table. Say which totals of it: ks.plan(table, keep=['county'], mechanism=...)."),
    "released": (
        ks.release(TABLE, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=1)).table,
        "got a released table, which is not confidential any more",
    ),
    "domain": (TABLE.domain, "got a Domain. Say which margins of it: ks.plan(domain, keep=[...], mechanism=...)."),
    "pandas": (pd.DataFrame({"county": ["a"], "n": [5]}), "got a data frame. Use table = ks.Table.from_frame("),
    "polars": (pl.DataFrame({"county": ["a"], "n": [5]}), "got a data frame"),
    "lazy": (pl.LazyFrame({"county": ["a"], "n": [5]}), "got a data frame"),
    "axes": (
        ["county", "sex"],
        "got names of axes. Axes belong to a table: ks.plan(table, keep=[...], mechanism=...).",
    ),
    "margins": ([["county"], []], "got names of axes"),
    "axis": ("county", "got names of axes"),
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
        ks.plan(keep=totals, mechanism=ks.Laplace.per_unit(epsilon=1))
    assert words in str(error.value)


DOMAIN = TABLE.domain
LAPLACE = ks.Laplace(epsilon=1)


@pytest.mark.parametrize("cells", [TABLE, DOMAIN], ids=["table", "domain"])
@pytest.mark.parametrize("keep", [["county", []], [["county"], []], TABLE.keep("county", total=True)])
def test_a_plan_reads_as_a_release(cells, keep):
    plan = ks.plan(cells, keep=keep, mechanism=LAPLACE)
    assert plan.invariants == TABLE.keep("county", total=True)
    assert plan.release(TABLE).plan.explain() == ks.release(TABLE, keep=keep, mechanism=LAPLACE).plan.explain()
    assert ks.mechanism_for(cells, keep=keep, mechanism=LAPLACE, margin=20).epsilon > 0


def test_a_matrix_over_a_table_has_its_names():
    plan = ks.plan(DOMAIN, keep=np.array([[1, 1, 0, 0]]), mechanism=LAPLACE)
    assert (plan.invariants.domain, plan.invariants.cell_name(0)) == (DOMAIN, "county=a, sex=f")
    assert ks.plan(DOMAIN, keep=ks.Lattice([[1, 1, 1, 1]]), mechanism=LAPLACE).person_distance == 2


def test_a_table_knows_the_records_behind_it():
    people = pd.DataFrame({"who": [1, 1, 2], "sex": ["f", "m", "m"]})
    table = ks.tabulate(people, by="sex", domain={"sex": ["f", "m"]}, unit="who", max_rows_per_unit=2)
    plan = ks.plan(table, keep=[[]], mechanism=LAPLACE)
    assert plan.person_distance == 4
    assert ks.plan(table, keep=[[]], mechanism=LAPLACE, max_rows_per_unit=2).person_distance == 4
    plan.release(table)
    with pytest.raises(ks.InputError, match="max_rows_per_unit= must be that of the table"):
        ks.plan(table, keep=[[]], mechanism=LAPLACE, max_rows_per_unit=3)


def test_a_table_of_counts_has_no_bound_per_unit():
    with pytest.raises(ks.InputError, match="must be left out for a table of counts") as caught:
        ks.plan(TABLE, keep=[[]], mechanism=LAPLACE, max_rows_per_unit=3)
    assert "another bound" not in str(caught.value)
    assert ks.plan(TABLE.domain, keep=[[]], mechanism=LAPLACE, max_rows_per_unit=3).person_distance == 6
    assert ks.plan(TABLE, keep=[[]], mechanism=LAPLACE, max_rows_per_unit=1).person_distance == 2


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (TABLE.keep("county"), "Totals that have their cells are given alone, without a table."),
        (np.array(A), "are given alone"),
        (A, "are given alone"),
        (ks.Lattice(A), "are given alone"),
        (pd.DataFrame({"county": ["a"], "n": [5]}), "got a data frame. Use ks.Table.from_frame(frame, ...)."),
        ("counts.csv", "Read the table first: ks.read_table."),
        (ks.release(TABLE, keep=[[]], mechanism=LAPLACE).table, "which is not confidential any more"),
        (5, "got 5"),
    ],
)
def test_cells_are_those_of_a_table_or_a_domain(cells, words):
    with pytest.raises(ks.InputError) as error:
        ks.plan(cells, keep=["county"], mechanism=LAPLACE)
    assert words in str(error.value) or words == "got 5"
    assert "Table or its Domain" in str(error.value)


def test_no_number_of_a_table_is_repeated():
    for totals in ("Alpha,15", [["Alpha", 15]], pd.Series([15]), {"a": 15}):
        with pytest.raises(ks.InputError) as error:
            ks.plan(keep=totals, mechanism=ks.Laplace.per_unit(epsilon=1))
        assert "15" not in str(error.value)


def test_modules_list_their_own_names_only():
    for module in (ks.baselines, ks.mcmc, ks.postprocess):
        assert dir(module) == sorted(module.__all__)


def test_plumbing_is_not_on_the_public_face():
    hidden = {
        ks.Plan: "of over quotient groups asked_distance with_convergence blocks distances neighbours stated_loss",
        ks.Release: "of drawn",
        ks.Certificate: "of from_document",
        ks.Marginal: "plan beside sums as_file",
    }
    for kind, names in hidden.items():
        assert not set(names.split()) & set(dir(kind)), kind


def test_research_names_are_listed_and_internals_are_not():
    assert "keepsum.facade.functions" in sys.modules  # internals that are loaded are still not listed
    assert {"mcmc", "baselines"} <= set(dir(ks))
    assert set(dir(ks)) == {*ks.__all__, "__version__"}
    assert not {"facade", "functions", "annotations", "Any", "TYPE_CHECKING"} & set(dir(ks))
