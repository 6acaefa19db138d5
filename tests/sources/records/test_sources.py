"""Every kind of source gives the same table, and is only read."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keepsum as ks
from keepsum.sources.records.connecting import duckdb_settings
from keepsum.sources.records.opening import open_records
from support import mostly_audit

from .conftest import PEOPLE, PLACES, SOURCES, connect, csv, fill

BORN = ["2000-01-01", "2003-01-01", "2006-05-01", None]
ALL = {
    "by": ["place", "age", "code", "share", "born"],
    "domain": {"place": PLACES, "code": ["7", "8"]},
    "bins": {"age": [0, 18, 65, None], "share": [0.0, 0.1, 0.5, 1.0], "born": BORN},
}


def expected() -> np.ndarray:
    """The same by pandas, bin by bin."""
    counts = np.zeros((len(PLACES), 3, 2, 3, 3), dtype=np.int64)
    for row in PEOPLE.itertuples():
        age = (row.age >= 18) + (row.age >= 65)
        share = (row.share >= 0.1) + (row.share >= 0.5)
        born = (row.born >= BORN[1]) + (row.born >= BORN[2])
        counts[PLACES.index(row.place), age, row.code - 7, share, born] += 1
    return counts


@mostly_audit("records", [*SOURCES, "postgres"], indirect=True)
def test_every_source_gives_the_same_table(records):
    table = ks.tabulate(**records, **ALL)
    assert table.domain.shape == (6, 3, 2, 3, 3)
    np.testing.assert_array_equal(table.counts.reshape(table.domain.shape), expected())


@mostly_audit("records", [*SOURCES, "postgres"], indirect=True)
def test_every_source_bounds_the_same_records(records):
    table = ks.tabulate(**records, **ALL, unit="person", max_rows_per_unit=1)
    reference = ks.tabulate(PEOPLE, **ALL, unit="person", max_rows_per_unit=1)
    assert table.counts.sum() == PEOPLE["person"].nunique()
    np.testing.assert_array_equal(table.counts, reference.counts)


def test_dates_are_labels_too(records):
    days = sorted(PEOPLE["born"])
    if not isinstance(records["source"], pd.DataFrame) or PEOPLE["born"].dtype == records["source"]["born"].dtype:
        assert ks.tabulate(**records, by="born", domain={"born": days}).counts.tolist() == [1] * len(days)


def test_categories_of_a_domain_are_used_as_declared(tmp_path):
    domain = ks.Domain({"code": [8, 7], "place": PLACES})
    table = ks.tabulate(csv(tmp_path), by=["place", "code"], domain=domain)
    assert table.domain == domain
    assert table.counts.reshape(2, 6).sum(axis=1).tolist() == [(PEOPLE.code == 8).sum(), (PEOPLE.code == 7).sum()]


def test_nested_axes():
    frame = pd.DataFrame({"state": ["IL", "WI", "WI"], "county": ["Lake", "Lake", "Dane"]})
    domain = {"state": ["IL", "WI"], "county": {"IL": ["Cook", "Lake"], "WI": ["Dane", "Lake"]}}
    table = ks.tabulate(frame, by=["county", "state"], domain=domain, within={"county": "state"})
    assert table.counts.tolist() == [0, 1, 1, 1]
    with pytest.raises(ks.DataError, match="within its 'state'"):
        ks.tabulate(frame.replace("WI", "IL"), by=["county", "state"], domain=domain, within={"county": "state"})


def test_booleans_are_true_and_false():
    frame = pd.DataFrame({"yes": [True, False, True, None]}, dtype=object)
    table = ks.tabulate(frame, by="yes", domain={"yes": ["true", "false", "?"]}, missing={"yes": "?"})
    assert table.counts.tolist() == [2, 1, 1]


labels = st.sampled_from(["f", "m", "it's", 'say "x"', "a;b", "--", "é", "1"])


@settings(max_examples=20)  # of up to 60 records each
@given(st.lists(st.tuples(labels, st.integers(-5, 105)), min_size=1, max_size=60))
def test_counts_are_those_of_a_counter(rows):
    frame = pd.DataFrame(rows, columns=["label", "age"])
    domain = {"label": ["f", "m", "it's", 'say "x"', "a;b", "--", "é", "1"]}
    table = ks.tabulate(frame, by=["label", "age"], domain=domain, bins={"age": [None, 0, 10, 50, None]})
    edges = Counter((label, sum(age >= edge for edge in (0, 10, 50))) for label, age in rows)
    wanted = [edges[label, k] for label in domain["label"] for k in range(4)]
    assert table.counts.tolist() == wanted


@mostly_audit("name", ['a"b', "a'); DROP TABLE people; --", "select", "n", "unit", "k0", "Ünï ", "a,b"])
def test_hostile_names_of_columns(name, tmp_path, postgres):
    frame = pd.DataFrame({name: ["x'; --", 'y"', "x'; --"]})
    domain = {name: ["x'; --", 'y"']}
    frame.to_csv(tmp_path / "hostile.csv", index=False)
    with sqlite3.connect(tmp_path / "hostile.db") as connection:
        frame.to_sql(name, connection, index=False)
    with connect(postgres) as server:
        quoted = '"' + name.replace('"', '""') + '"'
        server.execute(f"DROP TABLE IF EXISTS hostile; CREATE TABLE hostile ({quoted} TEXT)")
        server.cursor().executemany("INSERT INTO hostile VALUES (%s)", [(value,) for value in frame[name]])
    for source, table in (
        (frame, None),
        (tmp_path / "hostile.csv", None),
        (tmp_path / "hostile.db", name),
        (postgres, "hostile"),
    ):
        assert ks.tabulate(source, by=name, domain=domain, table=table).counts.tolist() == [2, 1]


# -- what opening leaves behind ---------------------------------------------------------------------


def test_duckdb_downloads_and_writes_nothing(tmp_path):
    with open_records(csv(tmp_path), None, ["place"]) as opened:
        backend = opened.table._find_backend()
        for setting in duckdb_settings().keys() - {"memory_limit"}:
            (value,) = backend.raw_sql(f"SELECT current_setting('{setting}')").fetchone()
            assert value in (False, ""), setting
        with pytest.raises(Exception, match="extension"):
            backend.raw_sql("SELECT * FROM read_csv('https://localhost:1/people.csv')").fetchall()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv"]


def test_databases_are_opened_for_reading_only(tmp_path, postgres):
    from .conftest import duckdb_file, sqlite_file

    with connect(postgres) as server:
        fill(server, "people")
    for source in (duckdb_file(tmp_path), sqlite_file(tmp_path), postgres):
        with open_records(source, "people", ["place"]) as opened:
            backend = opened.table._find_backend()
            with pytest.raises(Exception, match=r"read.?only"):
                backend.raw_sql("DELETE FROM people")
            if source == postgres:
                backend.con.rollback()


def test_a_view_in_a_database_opens_no_other_file(tmp_path):
    import duckdb

    other = csv(tmp_path)
    with duckdb.connect(str(tmp_path / "views.duckdb")) as connection:
        connection.execute(f"CREATE VIEW people AS SELECT * FROM read_csv('{other}')")  # noqa: S608
    with pytest.raises(ks.DataError):
        ks.tabulate(tmp_path / "views.duckdb", by="place", domain={"place": PLACES}, table="people")


def test_files_of_a_folder_must_agree(tmp_path):
    Path(tmp_path / "a.csv").write_text("x,y\n1,2\n")
    Path(tmp_path / "b.csv").write_text("y,x\n1,2\n")
    with pytest.raises(ks.DataError, match="same header"):
        ks.tabulate(tmp_path, by="x", domain={"x": [1, 2]})
    PEOPLE.to_parquet(tmp_path / "c.parquet")
    with pytest.raises(ks.InputError, match="one format"):
        ks.tabulate(tmp_path, by="x", domain={"x": [1, 2]})
