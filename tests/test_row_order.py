"""The order of rows and of categories must not tell what the counts are."""

import warnings

import numpy as np
import polars as pl
import pytest

import keepsum as ks
from keepsum.ordering import ranks_tell

TOWNS = ["Eve", "Ana", "Gil", "Cid", "Dot", "Ben", "Fay", "Hal", "Ida"]
FALLING = [90, 80, 70, 60, 50, 40, 30, 20, 10]


def table(columns, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ks.CategoriesFromDataWarning)
        return ks.Table.from_frame(pl.DataFrame(columns), count="n", **options)


def test_rows_in_the_order_of_their_counts_come_in_the_order_of_their_labels():
    with pytest.warns(ks.RowOrderWarning, match="order of their counts"):
        made = table({"town": TOWNS, "n": FALLING})
    assert made.domain.categories("town") == tuple(sorted(TOWNS))
    assert made.to_frame()["town"].to_list() == sorted(TOWNS)
    assert made.counts[0] == 80


@pytest.mark.parametrize(
    ("towns", "counts"),
    [
        (["Zeta", "Beta", "Omega", "Alpha", "Eta"], [900, 70, 31, 8, 3]),  # few rows
        ([*TOWNS, "Other"], [*FALLING, 400]),  # all but one
        (["Other", *TOWNS], [400, *FALLING[::-1]]),
    ],
)
def test_so_do_rows_that_are_nearly_ranked(towns, counts):
    with pytest.warns(ks.RowOrderWarning):
        made = table({"town": towns, "n": counts})
    assert made.domain.categories("town") == tuple(sorted(towns))


def test_so_do_categories_ranked_by_their_totals():
    """Within a town the sexes are in no order; the towns are in that of their totals."""
    towns = [town for town in TOWNS for _ in "fm"]
    counts = [part for total in FALLING for part in (total // 3, total - total // 3)]
    with pytest.warns(ks.RowOrderWarning):
        made = table({"town": towns, "sex": ["f", "m"] * 9, "n": counts})
    assert made.domain.categories("town") == tuple(sorted(TOWNS))


def test_so_do_nested_categories_ranked_within_each_parent():
    columns = {"state": ["x"] * 9 + ["w"] * 9, "town": TOWNS + TOWNS[::-1], "n": FALLING + FALLING}
    with pytest.warns(ks.RowOrderWarning):
        made = table(columns, within={"town": "state"})
    assert made.domain.categories("state") == ("w", "x")


def test_zero_rows_at_the_end_do_not_show_even_with_a_declared_domain():
    """As an outer join gives them: first what there is, then what there is not."""
    declared = {"county": ["A", "B"], "level": ["Low", "Mid", "Top"]}
    columns = {"county": ["A", "B", "B", "A", "A", "B"], "level": ["Mid", "Low", "Top", "Low", "Top", "Mid"]}
    made = table(columns | {"n": [4, 6, 5, 0, 0, 0]}, domain=declared)
    assert made.rows is None
    assert made.to_frame()["n"].to_list() == [0, 4, 0, 6, 0, 5]
    loops = {"level": ["Low", "Low", "Mid", "Mid", "Top", "Top"], "county": ["A", "B"] * 3, "n": [0, 6, 4, 0, 0, 5]}
    assert table(loops, domain=declared).to_frame()["n"].to_list() == loops["n"]


@pytest.mark.parametrize(
    ("towns", "counts"),
    [
        (sorted(TOWNS), FALLING),  # the labels explain the order
        (TOWNS, [5, 9, 1, 7, 3, 8, 2, 6, 4]),  # no order
        (TOWNS[:4], FALLING[:4]),  # chance does that
        (TOWNS, [9, 9, 9, 9, 9, 9, 9, 9, 9]),  # all are equal
    ],
)
def test_other_orders_are_kept(towns, counts):
    made = table({"town": towns, "n": counts})
    assert made.domain.categories("town") == tuple(towns)
    assert made.to_frame()["n"].to_list() == counts


def test_a_declared_order_is_kept():
    made = table({"town": TOWNS, "n": FALLING}, domain={"town": TOWNS})
    assert made.domain.categories("town") == tuple(TOWNS)


def test_absent_rows_do_not_show_in_the_order_of_categories():
    """Low comes late in the data only because (A, Low) is empty."""
    levels = ["Mid", "Top", "Low", "Mid", "Top"]
    made = table({"county": ["A", "A", "B", "B", "B"], "level": levels, "n": [1, 5, 2, 9, 3]})
    assert made.domain.categories("level") == ("Low", "Mid", "Top")
    assert made.rows is None


def test_chance_seldom_looks_like_it():
    """Of random orders about one in a hundred is taken for a ranking."""
    generator = np.random.default_rng(3)
    for size in (5, 9, 40):
        domain = ks.Domain({"town": [f"{k}" for k in generator.permutation(size)]})
        found = sum(ranks_tell(domain, "town", generator.permutation(size)) for _ in range(4000))
        assert found <= 120


def test_a_column_of_numbers_that_others_tell_is_no_axis():
    """A second measure, or an index, would be published as it is."""
    frame = pl.DataFrame({"town": ["a", "b", "c"], "last_year": [4, 9, 4], "n": [5, 8, 3]})
    with pytest.raises(ks.DataError, match="'last_year' holds numbers that the other columns tell already"):
        ks.Table.from_frame(frame, count="n")
    assert table(frame.to_dict(as_series=False), axes=["town"]).domain.axes == ("town",)
    ages = {"town": ["a", "a", "b", "b"], "age": [1, 2, 1, 2], "n": [5, 8, 3, 4]}
    assert table(ages).domain.axes == ("town", "age")
