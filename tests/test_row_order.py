"""The order of rows and of categories must not tell what the counts are."""

import warnings

import numpy as np
import polars as pl
import pytest

import keepsum as ks
from keepsum.counting import ranks_tell

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


def test_so_do_rows_ranked_within_each_run_of_an_axis():
    columns = {"state": ["x"] * 9 + ["w"] * 9, "town": TOWNS + TOWNS[::-1], "n": FALLING + FALLING}
    with pytest.warns(ks.RowOrderWarning):
        made = table(columns, within={"town": "state"})
    assert made.domain.categories("state") == ("w", "x")


@pytest.mark.parametrize(
    ("towns", "counts"),
    [
        (sorted(TOWNS), FALLING),  # the labels explain the order
        (TOWNS, [5, 9, 1, 7, 3, 8, 2, 6, 4]),  # no order
        (TOWNS[:5], FALLING[:5]),  # chance does that
        (TOWNS, [9, 9, 9, 9, 9, 9, 9, 9, 1]),  # nearly all are equal
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
    made = table(
        {"county": ["A", "A", "B", "B", "B"], "level": ["Mid", "Top", "Low", "Mid", "Top"], "n": [1, 5, 2, 9, 3]}
    )
    assert made.domain.categories("level") == ("Low", "Mid", "Top")
    assert made.rows is None


def test_chance_seldom_looks_like_it():
    """Of random orders at most one in 10,000 is taken for a ranking, whichever runs there are."""
    generator = np.random.default_rng(3)
    columns = {"a": [k % 3 for k in range(9)], "b": TOWNS}
    found = sum(ranks_tell(columns, generator.permutation(9)) for _ in range(20_000))
    assert found <= 8  # Poisson with mean 2 exceeds 8 once in 4,000 times; the seed is fixed
