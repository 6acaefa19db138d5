"""Bins: their categories, their edges, and values that belong to none."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import keepsum as ks
from keepsum.sources.records.declaring import DATE_TEXT, Bins
from support import mostly_audit

from .conftest import connect


@pytest.mark.parametrize(
    ("edges", "labels"),
    [
        ([0, 18, 65, 120], ["0-17", "18-64", "65-119"]),
        (["", "18", "65", ""], ["under 18", "18-64", "65+"]),
        ([-10, -5, 0, 1], ["-10 to -6", "-5 to -1", "0"]),
        ([0, 0.5, 1], ["[0, 0.5)", "[0.5, 1)"]),
        ([None, Decimal("0.50"), None], ["under 0.5", "0.5 or more"]),
        (
            ["2020-01-01", "2020-07-01", "2020-07-02", None],
            ["2020-01-01 to 2020-06-30", "2020-07-01", "from 2020-07-02"],
        ),
        ([None, date(2020, 2, 29), None], ["before 2020-02-29", "from 2020-02-29"]),
    ],
)
def test_categories(edges, labels):
    assert list(Bins.of("x", edges).labels) == labels


@pytest.mark.parametrize(
    "edges",
    [
        [],
        [1],
        [None, None],
        [1, None, 2],
        [1, 1],
        [2, 1],
        [1, "2020-01-01"],
        [1, float("nan")],
        [1, float("inf")],
        ["2020-02-30", "2020-03-01"],
        [0, 2**53],
        [True, 2],
        ["a", "b"],
        [1, [2]],
    ],
)
def test_edges_that_are_refused(edges):
    with pytest.raises(ks.InputError):
        Bins.of("x", edges)


def counts(values, edges, missing=None) -> list[int]:
    frame = pa.table({"x": values})
    bins = {"x": edges}
    return ks.tabulate(frame, by="x", bins=bins, missing=missing).counts.tolist()


def test_edges_belong_to_the_bin_above():
    assert counts([0, 17, 18, 64, 65, 119], [0, 18, 65, 120]) == [2, 2, 2]
    assert counts(pa.array([0.0, 0.1, np.nextafter(0.1, 0)]), [0.0, 0.1, 1.0]) == [2, 1]
    assert counts(pa.array([Decimal("0.10"), Decimal("0.09")]), [0, 0.1, 1]) == [1, 1]
    assert counts([-0.0, 0.0], [None, 0.0, None]) == [0, 2]
    assert counts(["7", "007", "+7", " 7 "], [0, 7, 8]) == [0, 4]
    assert counts([date(2020, 6, 30), date(2020, 7, 1)], ["2020-01-01", "2020-07-01", None]) == [1, 1]
    times = pa.array([pd.Timestamp("2020-06-30 23:59:59.999"), pd.Timestamp("2020-07-01")])
    assert counts(times, ["2020-01-01", "2020-07-01", None]) == [1, 1]
    assert counts(["2020-06-30T23:59", "2020-07-01"], ["2020-01-01", "2020-07-01", None]) == [1, 1]


NO_DATES = [
    "2020-02-30",
    "2021-02-29",
    "1900-02-29",
    "2020-04-31",
    "0000-01-01",
    "2020-02-01 99:99",
    "2020-02-01 24:00",
    "2020-02-01 12:60",
    "2020-02-01 12:00:60",
    "2020-02-01\n",
]


def every_day(year: int) -> list[str]:
    """The dates of a year, and what else months of 31 days would have."""
    return [f"{year:04}-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 32)]


def is_day(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


@pytest.mark.parametrize("year", [1, 4, 100, 400, 1900, 1996, 2000, 2019, 2020, 2100, 9999])
def test_text_is_a_date_where_the_calendar_has_it(year):
    for text in every_day(year):
        assert (re.fullmatch(DATE_TEXT, text) is not None) == is_day(text)
    days = [text for text in every_day(year) if is_day(text)]
    assert counts(days, [None, f"{year:04}-03-01", None]) == [len(days) - 306, 306]


@mostly_audit(
    ("values", "edges"),
    [
        (pa.array([1.5]), [0, None]),
        (pa.array([float("inf")]), [0.0, None]),
        (pa.array([float("-inf")]), [None, 0.0]),
        (pa.array([2.0**60]), [0, None]),
        (["1.5"], [0, None]),
        (["nan"], [0.0, None]),
        (["inf"], [0.0, None]),
        (["1e999"], [0.0, None]),
        (["99999999999999999999"], [0, None]),
        (["abc"], [0, None]),
        (["2020-13-01"], ["2020-01-01", None]),
        (["2020-01-01T00:00:00+02:00"], ["2020-01-01", None]),
        *(([text], [None, "2020-01-01", None]) for text in NO_DATES),
        *(([text], [0, None]) for text in ("12\n", "12\n13", "\n12")),
        *(([text], [0.0, None]) for text in ("12.5\n", "12.5\n13")),
        ([-1], [0, None]),
        ([120], [0, 120]),
        (["x" * 100_000], [0, None]),
    ],
)
def test_values_in_no_bin(values, edges):
    with pytest.raises(ks.DataError, match="column 'x'"):
        counts(values, edges)


def test_time_zones_are_refused():
    times = pa.array([pd.Timestamp("2020-07-01", tz="UTC")])
    with pytest.raises(ks.DataError, match="time zone"):
        counts(times, ["2020-01-01", None])


@pytest.mark.parametrize("values", [[1, None], [1.0, float("nan")], ["1", ""], ["1", None]])
def test_missing_values(values):
    with pytest.raises(ks.DataError, match="missing"):
        counts(values, [0, 18, None])
    assert counts(values, [0, 18, None], {"x": "unknown"}) == [1, 0, 1]


def test_missing_labels():
    frame = pd.DataFrame({"x": [7.0, float("nan"), 8.0], "y": ["a", "", None]})
    with pytest.raises(ks.DataError, match="column 'x' must not be missing"):
        ks.tabulate(frame, by="x", domain={"x": [7, 8]})
    with pytest.raises(ks.DomainError, match="missing values of 'x'"):
        ks.tabulate(frame, by="x", domain={"x": [7, 8]}, missing={"x": 9})
    table = ks.tabulate(frame, by=["x", "y"], domain={"x": [7, 8, 9], "y": ["a", "?"]}, missing={"x": 9, "y": "?"})
    assert table.counts.tolist() == [1, 0, 0, 1, 0, 1]
    with pytest.raises(ks.DataError, match="whole numbers"):
        ks.tabulate(pd.DataFrame({"x": [7.5]}), by="x", domain={"x": [7, 8]})


def test_infinite_and_missing_numbers_of_postgres(postgres):
    with connect(postgres) as server:
        server.execute(
            "DROP TABLE IF EXISTS strange; CREATE TABLE strange (n NUMERIC, d DATE, t TIMESTAMPTZ, c CHAR(4));"
            "INSERT INTO strange VALUES ('NaN', 'infinity', now(), 'ab')"
        )
    call = {"source": postgres, "table": "strange"}
    with pytest.raises(ks.DataError, match="missing"):
        ks.tabulate(**call, by="n", bins={"n": [0.0, None]})
    with pytest.raises(ks.DataError, match="column 'd'"):
        ks.tabulate(**call, by="d", bins={"d": ["2020-01-01", None]})
    with pytest.raises(ks.DataError, match="time zone"):
        ks.tabulate(**call, by="t", bins={"t": ["2020-01-01", None]})
    assert ks.tabulate(**call, by="c", domain={"c": ["ab"]}).counts.tolist() == [1]


def test_columns_of_any_type_in_sqlite(tmp_path):
    import sqlite3

    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE people (n INTEGER, r REAL)")
        connection.executemany("INSERT INTO people VALUES (?, ?)", [("abc", 9e999), (1.5, 1.0)])
    for column, edges in (("n", [0, None]), ("r", [0.0, None])):
        with pytest.raises(ks.DataError, match="like the edges"):
            ks.tabulate(tmp_path / "x.db", by=column, bins={column: edges}, table="people")
