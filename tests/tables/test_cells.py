"""Rows never decide an order, nor the type of a count, nor which columns are axes, unless the curator says so."""

import itertools
import warnings
from decimal import Decimal

import pandas as pd
import polars as pl
import pytest

import keepsum as ks

TOWNS = ["Gort", "Bray", "Cobh", "Athy", "Naas", "Birr", "Trim", "Ennis"]


def table(columns, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ks.CategoriesFromDataWarning)
        return ks.Table.from_frame(pl.DataFrame(columns), count="n", **options)


@pytest.mark.parametrize(
    "counts",
    [
        [50, 49, 48, 47, 45, 45, 45, 43],  # an audit's pair: one person moved, and the order of the rows came out
        [50, 49, 48, 47, 44, 45, 46, 43],
        [9, 8, 7, 6, 5, 4, 3, 2],
        [5, 9, 1, 7, 3, 8, 2, 6],
        [7] * 8,
    ],
)
def test_rows_come_in_the_order_of_their_labels_whatever_the_counts(counts):
    made = table({"town": TOWNS, "n": counts})
    assert made.domain.categories("town") == tuple(sorted(TOWNS))
    assert made.to_frame()["town"].to_list() == sorted(TOWNS)
    assert made.to_frame()["n"].to_list() == [counts[TOWNS.index(town)] for town in sorted(TOWNS)]
    assert made.rows is None


@pytest.mark.parametrize(
    ("towns", "counts"),
    [
        (["c", "a", "b"], [9, 5, 2]),  # a small axis sorted by count
        (["Other", "Athy", "Bray", "Cobh", "Gort"], [90, 2, 5, 1, 4]),  # largest first, then A to Z
        (["5-9", "10-14", "0-4"], [1, 1, 1]),
    ],
)
def test_so_do_small_axes_and_half_sorted_ones(towns, counts):
    made = table({"town": towns, "n": counts})
    expected = ["0-4", "5-9", "10-14"] if "0-4" in towns else sorted(towns)
    assert made.to_frame()["town"].to_list() == expected


def test_so_do_nested_axes():
    """Below a declared parent, and below one that is not."""
    columns = {"state": ["w", "x", "w", "x"], "town": ["t10", "t9", "t9", "t10"], "n": [4, 3, 2, 1]}
    made = table(columns, within={"town": "state"})
    assert made.domain.categories("town") == (("w", "t9"), ("w", "t10"), ("x", "t9"), ("x", "t10"))
    made = table(columns, within={"town": "state"}, domain={"state": ["x", "w"]})
    assert made.domain.categories("town") == (("x", "t9"), ("x", "t10"), ("w", "t9"), ("w", "t10"))
    towns = {"w": ["t10", "t9"], "x": ["t10", "t9"]}
    made = table(columns, within={"town": "state"}, domain={"town": towns})
    assert made.domain.categories("town") == (("w", "t10"), ("w", "t9"), ("x", "t10"), ("x", "t9"))


def test_a_declared_order_holds_whatever_the_rows():
    declared = {"county": ["B", "A"], "level": ["Low", "Mid", "Top"]}
    cells = list(itertools.product(declared["county"], declared["level"]))
    rows = [(*cell, count) for count, cell in enumerate(cells)]
    for order in (rows, rows[::-1], rows[1::2] + rows[::2], rows[1:], rows[:0]):
        columns = {name: [row[k] for row in order] for k, name in enumerate(("county", "level", "n"))}
        made = table(
            pl.DataFrame(columns, schema={"county": pl.String, "level": pl.String, "n": pl.Int64}), domain=declared
        )
        assert list(zip(*(made.to_frame()[axis].to_list() for axis in declared), strict=True)) == cells


def test_absent_rows_do_not_show_in_the_order_of_categories():
    """Low comes late in the data only because (A, Low) is empty."""
    levels = ["Mid", "Top", "Low", "Mid", "Top"]
    made = table({"county": ["A", "A", "B", "B", "B"], "level": levels, "n": [1, 5, 2, 9, 3]})
    assert made.domain.categories("level") == ("Low", "Mid", "Top")


def test_nine_axes_of_two_categories_are_put_in_order():
    """Every permutation of the axes was tried here once."""
    cells = list(itertools.product("ba", repeat=9))
    columns = {f"x{k}": [cell[k] for cell in cells] for k in range(9)}
    made = table(columns | {"n": range(512)})
    assert made.counts.tolist() == list(range(512))[::-1]


# -- an order that is public ------------------------------------------------------------------------


def test_an_order_that_is_public_is_kept():
    columns = {"town": ["b", "c", "a"], "n": [5, 9, 7]}
    made = table(columns, keep_order=True)
    assert made.domain.categories("town") == ("b", "c", "a")
    assert made.to_frame().to_dict(as_series=False) == columns
    declared = table(columns, keep_order=True, domain={"town": ["a", "b", "c"]})
    assert declared.domain.categories("town") == ("a", "b", "c")
    assert declared.counts.tolist() == [7, 5, 9]
    assert declared.to_frame().to_dict(as_series=False) == columns


def test_an_order_that_is_public_comes_back_in_files(tmp_path):
    data = b"state,town,n\nx,b,5\nw,c,9\nx,a,7\n"
    (tmp_path / "in.csv").write_bytes(data)
    with pytest.warns(ks.CategoriesFromDataWarning):
        made = ks.read_table(tmp_path / "in.csv", "n", within={"town": "state"}, keep_order=True)
    with pytest.warns(ks.LargeLossWarning):
        out = ks.release(made, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=40))
    assert out.save(tmp_path / "out.csv").read_bytes() == data  # epsilon 40: the noise is 0 but once in 10^17 draws


def test_which_cells_have_a_row_is_never_public():
    """It would tell which cells are empty, so an order is kept for all cells or refused."""
    columns = {"a": ["x", "y", "y"], "b": ["p", "p", "q"], "n": [1, 2, 3]}
    with pytest.raises(ks.DataError, match="Every cell must have a row") as caught:
        table(columns, keep_order=True)
    assert not any(character.isdigit() for character in str(caught.value).replace("count of 0", ""))
    domain = ks.Domain({"a": ["x", "y"], "b": ["p", "q"]}).without({"a": "x", "b": "q"})
    assert table(columns, keep_order=True, domain=domain).rows.tolist() == [0, 1, 2]
    zero = {"a": ["y", *columns["a"][:1], "x", "y"], "b": ["q", "q", "p", "p"], "n": [3, 0, 1, 2]}
    assert table(zero, keep_order=True, domain=domain).rows.tolist() == [2, 0, 1]


@pytest.mark.parametrize("wrong", ["yes", 1, None])
def test_keep_order_is_true_or_false(wrong):
    with pytest.raises(ks.InputError, match="keep_order= must be True or False"):
        table({"town": ["b"], "n": [5]}, keep_order=wrong)


# -- which columns are axes, and of what type -------------------------------------------------------


@pytest.mark.parametrize(
    "last_year",
    [
        [4, 9, 4, 9],
        [4, 9, 3, 1],
        [4, 4, 4, 4],
        [4.5, 9.0, 1.0, 2.0],
        ["4", "-", "9", "-"],
        ["1,234", "5", "6", "7"],
        ["12.5%", "a", "b", "c"],
    ],
    ids=str,
)
def test_a_column_of_numbers_must_be_named(last_year):
    """It may be another measure. Once its values decided, and with them which rows there were."""
    columns = {"town": ["a", "a", "b", "b"], "sex": ["f", "m", "f", "m"], "last_year": last_year, "n": [5, 8, 3, 1]}
    with pytest.raises(
        ks.DataError, match="'last_year' must be declared, because it contains numbers: it may be another measure"
    ):
        table(columns)
    assert table(columns, axes=["town", "sex"]).domain.axes == ("town", "sex")


def test_a_column_of_numbers_that_is_named_or_declared_is_an_axis():
    ages = {"town": ["a", "a", "b", "b"], "age": [10, 9, 10, 9], "n": [5, 8, 3, 4]}
    assert table(ages, axes=["town", "age"]).domain.categories("age") == (9, 10)
    assert table(ages, domain={"age": ["9", "10", "11"]}).domain.categories("age") == (9, 10, 11)
    assert table(ages, within={"age": "town"}).domain.size == 4
    columns = {"town": ["a", "b"], "age": [10, 9], "n": [5, 8]}
    assert table(columns, axes=["town", "age"], dense=True).domain.size == 4


@pytest.mark.parametrize("order", [["z", "a", "m"], ["a", "m", "z"]])
def test_the_type_of_a_column_has_the_categories_of_the_domain(order):
    """An ordered type whose list follows the rows would publish their order."""
    frame = pd.DataFrame({"g": pd.Categorical(order, categories=order, ordered=True), "n": [9, 5, 2]})
    with pytest.warns(ks.CategoriesFromDataWarning):
        back = ks.Table.from_frame(frame, count="n").to_frame()
    assert back["g"].cat.categories.tolist() == ["a", "m", "z"]
    assert back["g"].cat.ordered
    enum = pl.DataFrame({"g": order, "n": [9, 5, 2]}, schema_overrides={"g": pl.Enum([*order, "unused"])})
    back = table(enum).to_frame()
    assert back.schema["g"] == pl.Enum(["a", "m", "z"])


def test_an_axis_of_whole_numbers_stays_one():
    """pandas gives a column without rows a type of its own."""
    some = pd.DataFrame({"age": [1, 2], "n": [3, 4]})
    none = pd.DataFrame({"age": pd.Series([], dtype="float64"), "n": pd.Series([], dtype="float64")})
    types = [
        ks.Table.from_frame(frame, count="n", domain={"age": [1, 2]}).to_frame().dtypes.tolist()
        for frame in (some, none)
    ]
    assert types[0] == types[1]


@pytest.mark.parametrize("count", [5.5, Decimal("5.5")])
def test_a_count_with_decimals_is_told_so(count):
    with pytest.raises(ks.DataError, match="must be a whole number, but it has decimals"):
        table({"town": ["a", "b"], "n": [count, type(count)(7)]})


@pytest.mark.parametrize("name", ["cudf", "modin"])  # which no environment of ours has
def test_a_frame_of_a_library_that_is_not_installed(name):
    made = ks.release(table({"town": TOWNS, "n": [7] * 8}), keep=[[]], mechanism=ks.Laplace.per_unit(1))
    with pytest.raises(ks.InputError, match=f"needs {name}, which is not installed. .*: pip install {name}"):
        made.to_frame(name)
