import numpy as np
import pytest

import keepsum as ks


@pytest.fixture
def places():
    return ks.Domain(
        {
            "state": ["IL", "WI"],
            "county": [("WI", "Lake"), ("IL", "Cook"), ("IL", "Lake")],
            "tract": {("IL", "Cook"): ["01", "02"], ("IL", "Lake"): ["01"], ("WI", "Lake"): ["01", "03"]},
        },
        within={"county": "state", "tract": "county"},
    )


def test_three_levels(places):
    assert places.size == 5
    assert places.categories("tract") == (
        ("IL", "Cook", "01"),
        ("IL", "Cook", "02"),
        ("IL", "Lake", "01"),
        ("WI", "Lake", "01"),
        ("WI", "Lake", "03"),
    )
    assert places.marginal_index(["county"]).tolist() == [0, 0, 1, 2, 2]
    assert places.project(["county"]).categories("county") == (("IL", "Cook"), ("IL", "Lake"), ("WI", "Lake"))
    assert places.within == {"county": "state", "tract": "county"}


def test_cell_and_index_are_inverse(places):
    domain = (places * ks.Domain({"sex": ["f", "m"]})).without({"state": "WI", "sex": "m"})
    assert domain.size == 8
    for i in range(domain.size):
        assert domain.index(domain.cell(i)) == i
    with pytest.raises(ks.DomainError, match="structural zero"):
        domain.index({"state": "WI", "county": "Lake", "tract": "01", "sex": "m"})
    with pytest.raises(ks.DomainError, match="'county' must be one of"):
        domain.index({"state": "WI", "county": "Cook", "tract": "01", "sex": "f"})


def test_a_family_of_axes_stands_together():
    """Declared apart, a child still stands behind its parent, and the parent's parent before it."""
    domain = ks.Domain(
        {"county": [("IL", "Cook"), ("WI", "Dane")], "sex": ["f", "m"], "state": ["IL", "WI"]},
        within={"county": "state"},
    )
    assert domain.axes == ("state", "county", "sex")
    assert domain.shape == (2, 2)


def test_two_axes_within_one_parent():
    domain = ks.Domain(
        {
            "state": ["IL", "WI"],
            "county": {"IL": ["Cook", "Lake"], "WI": ["Dane"]},
            "district": {"IL": ["1"], "WI": ["1", "2"]},
        },
        within={"county": "state", "district": "state"},
    )
    assert [tuple(domain.cell(i).values()) for i in range(domain.size)] == [
        ("IL", "Cook", "1"),
        ("IL", "Lake", "1"),
        ("WI", "Dane", "1"),
        ("WI", "Dane", "2"),
    ]
    assert domain.marginal_index(["district"]).tolist() == [0, 0, 1, 2]
    for i in range(domain.size):
        assert domain.index(domain.cell(i)) == i


def test_codes_and_locate():
    domain = ks.Domain({"a": ["x", "y", "z"], "b": [1, 2]}).without({"a": "y", "b": 2})
    codes = {name: domain.codes(name) for name in domain.axes}
    assert domain.locate(codes).tolist() == list(range(domain.size))
    assert domain.locate({"a": np.array([1]), "b": np.array([1])}).tolist() == [-1]


def test_projection_drops_what_only_structural_zeros_filled():
    domain = ks.Domain({"a": ["x", "y"], "b": [1, 2]}).without({"a": "x"})
    assert domain.project(["a"]).size == 1
    assert domain.marginal_index(["a"]).tolist() == [0, 0]
    product = domain * ks.Domain({"c": ["p", "q"]})
    assert product.size == 4
    assert product.structural_zeros == 4


def test_equality_and_hash():
    one, two = (ks.Domain({"a": ["x", "y"]}) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert one != ks.Domain({"a": ["y", "x"]})
    assert one != one.without({"a": "x"})
    assert one != "domain"


@pytest.mark.parametrize(
    ("categories", "within", "message"),
    [
        ({}, None, "at least one axis"),
        ({"a": []}, None, "at least one category"),
        ({"a": ["x", "x"]}, None, "different, got 'x' twice"),
        ({"a": "xyz"}, None, "must be a list"),
        ({"a": ["x", 1]}, None, "of one type, got int and str"),
        ({"a": [1.5]}, None, "text or a whole number"),
        (
            {"a": ["é", "x\ud800"]},
            None,
            "axis 'a' must be text that UTF-8 can encode, but one contains half a character",
        ),
        ({"a": ["x"], "b": [("x", "\udc80")]}, {"b": "a"}, "axis 'b' must be text that UTF-8 can encode"),
        ({"a": [None]}, None, "text or a whole number"),
        ({"": ["x"]}, None, "name of an axis"),
        (["a"], None, "mapping from names"),
        ({"a": 3}, None, "must be a list, got a value of type"),
        ({"a": {"x": ["y"]}}, None, "got a mapping from parents. Name its parent with within="),
        ({"a": ["x"]}, "a", "within= must be a mapping"),
        ({"a": ["x"], "b": ["y"]}, {"b": "c"}, "got 'c'"),
        ({"a": ["x"]}, {"a": "a"}, "must not be nested in itself"),
        ({"a": ["x"], "b": ["y"]}, {"a": "b", "b": "a"}, "must not be nested in itself"),
        ({"a": ["x"], "b": ["y"]}, {"b": "a"}, "pairs"),
        ({"a": ["x"], "b": [("z", "y")]}, {"b": "a"}, "'z' is not a declared category"),
        ({"a": ["x"], "b": [("x", "y"), ("x", "y")]}, {"b": "a"}, "twice"),
        ({"a": ["x", "w"], "b": [("x", "y")]}, {"b": "a"}, "'w' contains none"),
        ({"a": list(range(50_000)), "b": list(range(50_000))}, None, "at most 2,147,483,647 cells"),
    ],
)
def test_bad_domains(categories, within, message):
    with pytest.raises(ks.DomainError, match=message):
        ks.Domain(categories, within)


def test_bad_questions(places):
    for question, message in [
        (lambda: places.axis("planet"), "got 'planet'"),
        (lambda: places.cell(5), "from 0 to 4"),
        (lambda: places.cell(1.5), "whole number"),
        (lambda: places.project(3), "list of names"),
        (lambda: places.index({"state": ["IL"], "county": "Cook", "tract": "01"}), "one of its categories"),
        (lambda: places.index({"state": "IL"}), "a label for each of"),
        (lambda: places.project([]), "at least one axis"),
        (lambda: places.without({"state": "IL", "county": "Dane"}), "'Dane'"),
        (lambda: places.without({"state": "IL", "tract": "03"}), "matches none"),
        (lambda: places.without({"state": ["IL", "WI"]}), "at least one cell"),
        (lambda: places * places, "different axes"),
    ]:
        with pytest.raises(ks.DomainError, match=message):
            question()


def test_domain_is_frozen(places):
    with pytest.raises(AttributeError):
        places._axes = ()
