import numpy as np
import pytest
from scipy import sparse

import keepsum as ks


@pytest.fixture
def places():
    return ks.Domain(
        {"state": ["IL", "WI"], "county": {"IL": ["Cook", "Lake"], "WI": ["Lake"]}, "sex": ["f", "m"]},
        within={"county": "state"},
    )


def test_margins_by_name(places):
    keep = ks.Invariants.margins(places, [["county"], ["state", "sex"], []])
    assert keep.height == 3 + 4 + 1
    assert [keep.name(i) for i in range(8)] == [
        "total of state=IL, county=Cook",
        "total of state=IL, county=Lake",
        "total of state=WI, county=Lake",
        "total of state=IL, sex=f",
        "total of state=IL, sex=m",
        "total of state=WI, sex=f",
        "total of state=WI, sex=m",
        "grand total",
    ]
    counts = np.arange(6) + 10
    assert keep.totals(counts).tolist() == [21, 25, 29, 22, 24, 14, 15, 75]
    with pytest.raises(ks.InputError, match="whole number from 0 to 7"):
        keep.name(8)


def test_the_same_margin_is_kept_once(places):
    keep = ks.Invariants.margins(places, [["county"], ["state", "county"], ["county"]])
    assert keep.height == 3
    assert (keep + keep).height == 3


def test_structural_zeros_are_in_no_total(places):
    keep = ks.Invariants.margins(places.without({"state": "WI", "sex": "m"}), [["state", "sex"]])
    assert keep.height == 3
    assert keep.coefficients.shape == (3, 5)


def test_matrices_dense_and_sparse():
    A = np.array([[1, 2, 3], [0, 0, 0]])
    for form in (A, A.tolist(), sparse.csr_matrix(A), sparse.coo_array(A)):
        keep = ks.Invariants.matrix(form, names=["weighted", "nothing"])
        assert keep.coefficients.toarray().tolist() == A.tolist()
        assert keep.name(0) == "weighted"
    assert ks.Invariants.matrix(A) == ks.Invariants.matrix(A)
    assert ks.Invariants.matrix(A) != ks.Invariants.matrix(2 * A)


def test_holds_and_broken(places):
    keep = ks.Invariants.margins(places, [["state"], []])
    a = ks.Table.from_array([1, 2, 3, 4, 5, 6], places)
    b = ks.Table.from_array([2, 1, 4, 3, 6, 5], places)
    c = ks.Table.from_array([1, 2, 3, 4, 5, 7], places)
    assert keep.holds(a, b)
    assert not keep.holds(a, c)
    assert keep.broken(a, c) == ["total of state=WI", "grand total"]
    assert keep.holds(a.counts, b)


def test_totals_do_not_wrap():
    keep = ks.Invariants.matrix([[2**40, 2**40]])
    assert keep.totals([2**40, 0]).tolist() == [2**80]
    assert not keep.holds([2**40, 0], [0, 0])  # equal modulo 2^64


def test_union(places):
    margins = ks.Invariants.margins(places, [["state"]])
    both = margins + ks.Invariants.subsets(6, [[0, 5]], names=["first and last"])
    assert both.domain is places
    assert both.name(2) == "first and last"
    assert repr(both) == "Invariants(2 totals of state, total 'first and last'; 6 cells)"
    with pytest.raises(ks.InputError, match="same cells"):
        margins + ks.Invariants.subsets(7, [[0]])
    with pytest.raises(ks.InputError, match="same domain"):
        margins + ks.Invariants.margins(ks.Domain({"a": list(range(6))}), [[]])


def test_over_names_the_cells(places):
    keep = ks.Invariants.subsets(6, [[0, 1]])
    assert keep.cell_name(1) == "cell 1"
    assert keep.over(places).cell_name(1) == "state=IL, county=Cook, sex=m"
    with pytest.raises(ks.InputError, match="must not already have another domain"):
        ks.Invariants.margins(places, [[]]).over(ks.Domain({"a": list(range(6))}))
    with pytest.raises(ks.InputError, match="6 cells"):
        keep.over(ks.Domain({"a": ["x"]}))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ks.Invariants.subsets(3, [[0, 3]]), "subset 0 must be whole numbers from 0 to 2"),
        (lambda: ks.Invariants.subsets(3, [[0], [-1]]), "subset 1 must be"),
        (lambda: ks.Invariants.subsets(3, [[0.5]]), "subset 0 must be"),
        (lambda: ks.Invariants.subsets(3, [[0, 0]]), "got one twice"),
        (lambda: ks.Invariants.subsets(3, [0, 1]), "Subset 0 must be a list"),
        (lambda: ks.Invariants.margins("domain", [[]]), "over a Domain"),
        (lambda: ks.Invariants.subsets(0, []), "number of cells"),
        (
            lambda: ks.Invariants.subsets(3, [[0]], names=["a", "b"]),
            "one name: 1 total, got 2 names",
        ),
        (lambda: ks.Invariants.matrix([[0.5]]), "whole numbers"),
        (lambda: ks.Invariants.subsets(3, [[0]]).totals([1, 2]), "3 cells"),
        (lambda: ks.Invariants.subsets(3, [[0]]).totals([1, 2, 0.5]), "whole numbers"),
    ],
)
def test_bad_invariants(make, message):
    with pytest.raises(ks.InputError, match=message):
        make()


def test_empty_subsets_and_no_subsets():
    assert ks.Invariants.subsets(3, []).totals([1, 2, 3]).tolist() == []
    assert ks.Invariants.subsets(3, [[]]).totals([1, 2, 3]).tolist() == [0]
