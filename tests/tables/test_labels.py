"""The natural order of labels: total, the same everywhere, and blind to everything but the two labels."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keepsum as ks
from keepsum.tables.axes import as_declared, in_natural_order, match_column_types, natural_order

ORDERS = {
    "ages": ["0-4", "5-9", "10-14", "85+", "Under 5"],
    "whole numbers": [-10, -9, 0, 2, 10, 100],
    "numbers as text": ["-10", "-9", "0", "2", "10", "100"],
    "negative ranges": ["-10 to -5", "-5 to 0", "0 to 5", "5 to 10"],
    "a minus inside a text is none": ["a-1", "a-2", "a-10"],
    "numbers of one value": ["1", "1.0", "1.00", "2", "02.5"],
    "leading zeros": ["01", "1", "001a", "2"],
    "fractions": ["0.25", "0.5", "0.75", "1", "1.5"],
    "classification codes": ["01.1", "01.11", "01.12", "01.2", "02"],
    "mixed text": ["10 miles", "A2", "A10", "a1", "a2b3", "a2b20", "b"],
    "text by code points": ["Ab", "Z", "a", "É", "é", "α", "一"],
    "digits of other scripts are text": ["9", "10", "٣"],
    "numbers of any length": ["9" * 4999, "1" + "0" * 4999, "2" + "0" * 4999],
}


@pytest.mark.parametrize("labels", ORDERS.values(), ids=ORDERS)
def test_orders(labels):
    generator = random.Random(5)
    for _ in range(20):
        shuffled = generator.sample(labels, len(labels))
        assert sorted(shuffled, key=natural_order) == labels


texts = st.text(st.sampled_from("ab-.019 é"), min_size=1, max_size=6)


@given(st.lists(texts, min_size=3, max_size=3, unique=True))
def test_the_order_is_total(labels):
    """Any two labels are in an order, and three never in a circle."""
    for a, b in itertools.permutations(labels, 2):
        assert (natural_order(a) < natural_order(b)) != (natural_order(b) < natural_order(a))
    assert len({tuple(sorted(order, key=natural_order)) for order in itertools.permutations(labels)}) == 1


def test_nested_axes_are_in_order_below_each_parent():
    within = {"county": "state"}
    good = ks.Domain({"state": ["b", "a"], "county": {"b": ["x2", "x10"], "a": ["x1"]}}, within)
    bad = ks.Domain({"state": ["b", "a"], "county": {"b": ["x10", "x2"], "a": ["x1"]}}, within)
    assert in_natural_order(good.axis("county"))
    assert not in_natural_order(bad.axis("county"))
    assert not in_natural_order(good.axis("state"))


def test_texts_match_whole_numbers_by_the_type_of_the_column():
    declared = {"state": ["17", "x"], "county": [["17", "031"], ["17", "31"]], "sex": ["1"], "odd": 5}
    matched = match_column_types(declared, {"county": "state"}, lambda name: name != "sex")
    assert matched == {"state": [17, "x"], "county": [(17, "031"), (17, 31)], "sex": ["1"], "odd": 5}
    assert as_declared(["1", "01", "-2"], [[("a"), 1], ["a", -2]]) == [1, "01", -2]
    assert as_declared(["1"], {"a": 5}) == ["1"]
    assert as_declared(["1"], []) == ["1"]


def test_a_domain_of_whole_numbers_fits_a_text_file(tmp_path):
    """Declared whole, or below a parent."""
    (tmp_path / "in.csv").write_text("state,county,n\nIL,31,5\nWI,1,6\nIL,7,8\n")
    declared = {"state": ["WI", "IL"], "county": {"IL": [31, 7], "WI": [1]}}
    within = {"county": "state"}
    for domain in (declared, ks.Domain(declared, within)):
        table = ks.read_table(tmp_path / "in.csv", "n", within=within, domain=domain)
        assert table.domain == ks.Domain(declared, within)
        assert table.counts.tolist() == [6, 5, 8]
    assert np.issubdtype(table.counts.dtype, np.int64)
