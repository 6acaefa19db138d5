"""Labels that a spreadsheet would run are quoted before anything is hashed, if that is asked for."""

from __future__ import annotations

import csv
import sqlite3

import pandas as pd
import polars as pl
import pytest

import keepsum as ks

HOSTILE = ["=cmd()", "+1+cmd", "-1+cmd", "@a", "\tx", "\rx", " =x", "＝x"]
HARMLESS = ["-5", "+1.5", "5-9", "a=b", "'=done", "x"]
TEXT = "place,code,age,n\n=A(),=1,0-17,12\n=A(),=1,18+,7\n-B,@2,0-17,3\n-B,@2,18+,9\nplain,3,0-17,11\nplain,3,18+,6\n"
QUOTED = ["'-B", "'=A()", "plain"]


@pytest.fixture
def file(tmp_path):
    (tmp_path / "in.csv").write_text(TEXT, newline="")
    return tmp_path / "in.csv"


def labels_in(path, column="place"):
    with path.open(newline="", encoding="utf-8") as file:
        return list(dict.fromkeys(row[column] for row in csv.DictReader(file)))


@pytest.mark.filterwarnings("ignore::keepsum.errors.CategoriesFromDataWarning")
@pytest.mark.parametrize("label", HOSTILE + HARMLESS)
def test_what_is_quoted(label):
    frame = pd.DataFrame({"x": [label, "other"], "count": [5, 6]})
    table = ks.Table.from_frame(frame, axes="x", quote_formulas=True)
    assert set(table.domain.categories("x")) == {f"'{label}" if label in HOSTILE else label, "other"}
    plain = ks.Table.from_frame(frame, axes="x")
    assert set(plain.domain.categories("x")) == {label, "other"}


def test_a_release_has_the_quoted_labels_and_verifies(file, tmp_path, run_release):
    """With undeclared categories in the natural order of the quoted labels, and a column that is carried along."""
    with pytest.warns(ks.KeepsumWarning, match="published"):
        table = ks.read_table(file, "n", carry={"code": "place"}, quote_formulas=True)
    assert list(table.domain.categories("place")) == QUOTED
    path = run_release(table)
    assert labels_in(path) == QUOTED
    assert labels_in(path, "code") == ["'@2", "'=1", "3"]
    released = pd.read_csv(path, dtype=str)
    kept = released.groupby("place").n.apply(lambda counts: sum(map(int, counts)))
    assert kept.to_dict() == {"'-B": 12, "'=A()": 19, "plain": 17}
    with pytest.warns(ks.KeepsumWarning, match="published"):
        again = ks.read_table(_positive(path), "n", carry={"code": "place"})
    assert again.domain == table.domain


@pytest.fixture
def run_release(tmp_path):
    """Release a table with a kept margin, verify it, and say where it is."""

    def release(table):
        released = ks.release(table, keep=["place"], mechanism=ks.Laplace.per_unit(epsilon=1))
        released.save(tmp_path / "out.csv")
        assert ks.verify(tmp_path / "out.csv")
        return tmp_path / "out.csv"

    return release


def _positive(path):
    """The released file with counts that a table can have."""
    rows = pd.read_csv(path, dtype=str)
    rows.assign(n=rows.n.str.lstrip("-")).to_csv(path.with_name("again.csv"), index=False)
    return path.with_name("again.csv")


@pytest.mark.parametrize(
    "domain",
    [
        {"state": ["=S", "T"], "place": {"=S": ["=A", "b"], "T": ["=A"]}},
        {"state": ["=S", "T"], "place": [("=S", "=A"), ("=S", "b"), ("T", "=A")]},
        ks.Domain({"state": ["=S", "T"], "place": {"=S": ["=A", "b"], "T": ["=A"]}}, {"place": "state"}),
    ],
    ids=["by parent", "pairs", "Domain"],
)
def test_nesting_and_declared_categories(domain, tmp_path):
    """Categories are declared as they are in the data, and quoted like it."""
    frame = pl.DataFrame({"state": ["T", "=S", "=S"], "place": ["=A", "b", "=A"], "count": [3, 4, 5]})
    within = None if isinstance(domain, ks.Domain) else {"place": "state"}
    table = ks.Table.from_frame(frame, domain=domain, within=within, quote_formulas=True)
    assert table.domain.categories("place") == (("'=S", "'=A"), ("'=S", "b"), ("T", "'=A"))
    assert table.counts.tolist() == [5, 4, 3]
    released = ks.release(table, keep=table.keep(total=True), mechanism=ks.Laplace.per_unit(epsilon=1))
    assert released.table.to_frame("polars")["state"].to_list() == ["'=S", "'=S", "T"]


def test_structural_zeros_stay_where_they_are():
    domain = ks.Domain({"x": ["=a", "b"], "y": ["@c", "d"]}).without({"x": "=a", "y": "d"})
    frame = pd.DataFrame({"x": ["=a", "b", "b"], "y": ["@c", "@c", "d"], "count": [1, 2, 3]})
    table = ks.Table.from_frame(frame, domain=domain, quote_formulas=True)
    assert table.domain == ks.Domain({"x": ["'=a", "b"], "y": ["'@c", "d"]}).without({"x": "'=a", "y": "d"})
    assert table.counts.tolist() == [1, 2, 3]


def test_rows_to_drop_and_wide_tables_are_named_as_they_are(tmp_path):
    (tmp_path / "wide.csv").write_text("place,=a,b\nx,1,2\n=Total,4,6\ny,3,4\n")
    with pytest.warns(ks.KeepsumWarning, match="published"):
        table = ks.read_table(
            tmp_path / "wide.csv", wide={"race": ["=a", "b"]}, drop_rows={"place": "=Total"}, quote_formulas=True
        )
    assert table.domain.categories("race") == ("'=a", "b")
    release = ks.release(table, keep=["place"], mechanism=ks.Laplace.per_unit(epsilon=1))
    release.save(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("place,'=a,b\n")
    assert ks.verify(tmp_path / "out.csv")


@pytest.mark.filterwarnings("ignore::keepsum.errors.CategoriesFromDataWarning")
def test_what_is_noticed_is_told_with_the_labels_of_the_data():
    """They are what rows are dropped by."""
    frame = pd.DataFrame({"x": ["a", "b", "=Total"], "count": [1, 2, 3]})
    with pytest.raises(ks.DataError, match=r"with drop_rows=\{'x': '=Total'\}"):
        ks.Table.from_frame(frame, quote_formulas=True)
    assert ks.Table.from_frame(frame, quote_formulas=True, drop_rows={"x": "=Total"}).counts.tolist() == [1, 2]


@pytest.mark.parametrize("source", ["frame", "sqlite"])
def test_records(source, tmp_path):
    people = pd.DataFrame({"place": ["=A", "b", "=A"], "age": [-3, 4, -2]})
    if source == "sqlite":
        with sqlite3.connect(tmp_path / "people.db") as database:
            people.to_sql("people", database, index=False)
        database.close()
    where = {"source": people} if source == "frame" else {"source": tmp_path / "people.db", "table": "people"}
    table = ks.tabulate(
        **where, by=["place", "age"], domain={"place": ["=A", "b"]}, bins={"age": [-5, 0, 5]}, quote_formulas=True
    )
    assert table.domain == ks.Domain({"place": ["'=A", "b"], "age": ["'-5 to -1", "0-4"]})
    assert table.counts.tolist() == [2, 0, 0, 1]


SAME = "Labels of 'x' must be different once formulas are quoted"


@pytest.mark.filterwarnings("ignore::keepsum.errors.CategoriesFromDataWarning")
def test_labels_that_become_the_same_are_refused():
    both = ["=a", "'=a"]
    frame = pd.DataFrame({"x": both, "count": [1, 2]})
    with pytest.raises(ks.DataError, match=SAME):
        ks.Table.from_frame(frame, quote_formulas=True)
    one = pd.DataFrame({"x": ["=a"], "count": [1]})
    for domain in ({"x": both}, ks.Domain({"x": both})):
        with pytest.raises(ks.DataError, match=SAME):
            ks.Table.from_frame(one, domain=domain, quote_formulas=True)
    with pytest.raises(ks.DataError, match=SAME):
        ks.tabulate(one, by="x", domain={"x": both}, quote_formulas=True)


@pytest.mark.filterwarnings("ignore::keepsum.errors.CategoriesFromDataWarning")
def test_names_of_columns_are_refused():
    frame = pd.DataFrame({"=x": ["a", "b"], "count": [1, 2]})
    refused = "Names of columns must not be formulas if labels are quoted, got '=x'. Rename"
    with pytest.raises(ks.DataError, match=refused):
        ks.Table.from_frame(frame, quote_formulas=True)
    with pytest.raises(ks.DataError, match=refused):
        ks.tabulate(frame, by="=x", domain={"=x": ["a", "b"]}, quote_formulas=True)
    assert ks.Table.from_frame(frame).domain.axes == ("=x",)


@pytest.mark.parametrize("wrong", [1, "yes", None])
def test_it_is_true_or_false(wrong):
    frame = pd.DataFrame({"x": ["a", "b"], "count": [1, 2]})
    with pytest.raises(ks.InputError, match="quote_formulas= must be True or False"):
        ks.Table.from_frame(frame, quote_formulas=wrong)
    with pytest.raises(ks.InputError, match="quote_formulas= must be True or False"):
        ks.tabulate(frame, by="x", domain={"x": ["a", "b"]}, quote_formulas=wrong)
