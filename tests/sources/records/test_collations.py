"""Labels and units are compared by their bytes, whatever the collation of a column, a view or a database."""

from __future__ import annotations

import sqlite3

import duckdb
import ibis
import pyarrow as pa
import pytest

import keepsum as ks

from .conftest import connect

ROWS = "('p', 'a'), ('P', 'A'), ('p', 'A'), ('q', 'é'), ('q', 'e'), ('r', U&'\\0301')"
LABELS = ["a", "A", "é", "e", "\u0301"]
BY_LABEL = {"by": "x", "domain": {"x": LABELS}}
BOUNDED = {**BY_LABEL, "unit": "person", "max_rows_per_unit": 1}


def check(**source) -> None:
    assert ks.tabulate(**source, **BY_LABEL).counts.tolist() == [1, 2, 1, 1, 1]
    # The first of p's is A, that of q is e, by their bytes; P is somebody else.
    assert ks.tabulate(**source, **BOUNDED).counts.tolist() == [0, 2, 0, 1, 1]


def filled(kind: str) -> str:
    rows = ROWS.replace("U&'\\0301'", "'\u0301'")
    return f"CREATE TABLE people (person {kind}, x {kind}); INSERT INTO people VALUES {rows};"  # noqa: S608


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NOCASE.NOACCENT"])
def test_columns_and_views_of_duckdb(collation, tmp_path):
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(filled(f"VARCHAR COLLATE {collation}"))
        connection.execute(
            f"CREATE VIEW seen AS SELECT * REPLACE (x COLLATE {collation} AS x) FROM people"  # noqa: S608
        )
    for table in ("people", "seen"):
        check(source=path, table=table)


@pytest.mark.filterwarnings("ignore")  # of ibis, about its own use of DuckDB
def test_a_session_of_duckdb_with_a_collation():
    backend = ibis.duckdb.connect()
    backend.raw_sql("PRAGMA default_collation = 'NOCASE.NOACCENT'")
    backend.raw_sql(filled("VARCHAR"))
    check(source=backend.table("people"))
    backend.raw_sql("CREATE VIEW dates AS SELECT '2020-01-0' || x AS born FROM range(1, 4) AS t(x)")
    bins = {"born": ["2020-01-01", "2020-01-03", None]}
    assert ks.tabulate(backend.table("dates"), by="born", bins=bins).counts.tolist() == [2, 1]


def test_columns_and_views_of_sqlite(tmp_path):
    path = tmp_path / "people.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(filled("TEXT COLLATE NOCASE"))
        connection.execute("CREATE VIEW seen AS SELECT person, x COLLATE NOCASE AS x FROM people")
    for table in ("people", "seen"):
        check(source=path, table=table)
    check(source=ibis.sqlite.connect(path).table("people"))


def test_columns_of_postgres(postgres):
    with connect(postgres) as server:
        server.execute(
            "DROP TABLE IF EXISTS folded; DROP COLLATION IF EXISTS folded;"
            "CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level1', deterministic = false);"
            "CREATE TABLE folded (person TEXT COLLATE folded, x TEXT COLLATE folded, born TEXT COLLATE folded,"
            " age TEXT COLLATE folded);"
        )
        server.execute(f"INSERT INTO folded (person, x) VALUES {ROWS}")  # noqa: S608
        server.execute("UPDATE folded SET born = '2020-01-31', age = '7'")
    check(source=postgres, table="folded")
    for bins in ({"born": ["2020-01-01", None]}, {"age": [0, None]}, {"age": [0.0, None]}):
        assert ks.tabulate(postgres, by=list(bins), bins=bins, table="folded").counts.tolist() == [6]


def test_other_backends_of_ibis_are_not_asked_to_compare():
    """Whatever their collation is: the columns are fetched, and counted here."""
    backend = ibis.polars.connect()
    backend.create_table("people", pa.table({"person": ["p", "P"], "x": ["a", "A"]}))
    table = ks.tabulate(backend.table("people"), by="x", domain={"x": ["a", "A"]}, unit="person", max_rows_per_unit=1)
    assert table.counts.tolist() == [1, 1]
    with pytest.raises(ks.DataError, match="must have a column 'nowhere'"):
        ks.tabulate(backend.table("people"), by=["x", "nowhere"], domain={"x": ["a"], "nowhere": ["b"]})
    with pytest.raises(ks.DataError, match="must have the columns"):
        ks.tabulate(backend.table("people"), by="nowhere", domain={"nowhere": ["b"]})
