"""What goes wrong is said in our own words: no value, no password and no driver's error is passed on."""

from __future__ import annotations

import gzip
import os
import sqlite3
from pathlib import Path

import ibis
import pandas as pd
import pyarrow as pa
import pytest

import keepsum as ks
from keepsum.sources.records.connecting import attempt, tables_at
from support import mostly_audit

from .conftest import PLACES, SOURCES, connect, csv, fill, sqlite_file

SECRET = "Alice8675309"  # noqa: S105
DOMAIN = {"place": PLACES}
RECORDS = b"place\n" + b"01\n" * 80_000  # more than is unpacked for the header, so that only the end is missing
PACKED = {"gzip": gzip.compress(RECORDS, mtime=0), "zstd": pa.compress(RECORDS, codec="zstd", asbytes=True)}


def refused(**call) -> str:
    with pytest.raises(ks.KeepsumError) as caught:
        ks.tabulate(**{"by": "place", "domain": DOMAIN, **call})
    error = caught.value
    assert isinstance(error.__context__, (type(None), OSError))
    assert error.__cause__ is None
    assert SECRET not in str(error)
    return str(error)


@mostly_audit("records", [*SOURCES, "postgres"], indirect=True)
def test_values_outside_the_domain_are_not_named(records, tmp_path):
    text = refused(**records, domain={"place": ["01"]})
    assert "column 'place' must be declared categories" in text
    assert not any(place in text for place in PLACES[1:4])


def test_many_values_outside_the_domain():
    """They are not all fetched."""
    frame = pd.DataFrame({"place": [f"{SECRET} {k}" for k in range(10_000)]})
    assert "declared categories" in refused(source=frame)


def test_structural_zeros():
    domain = ks.Domain({"x": ["a", "b"], "y": ["c", "d"]}).without({"x": "a", "y": "c"})
    assert "structural zeros" in refused(source=pd.DataFrame({"x": ["a"], "y": ["c"]}), by=["x", "y"], domain=domain)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"place,age\n01,2,Alice8675309\n", "well-formed CSV"),
        (b'place,age\n"01,Alice8675309\n', "well-formed CSV"),
        (b"place,age\n\xff\xfeAlice8675309,1\n", "UTF-8"),
        (b"\xff\xfe", "UTF-8"),
        (b"", "header"),
        (b"place,place\n01,02\n", "different names"),
        (b"PAR1Alice8675309", "Parquet"),
        (b"SQLite format 3\0Alice8675309", "database"),
        (b"12345678DUCKAlice8675309", "database"),
        (b"PK\3\4Alice8675309", "spreadsheet"),
        (b"place,\n01,\n", "must have a name"),
        (b"\x1f\x8bAlice8675309", "complete gzip file"),
        (PACKED["gzip"][:-5], "complete gzip file"),
        (PACKED["gzip"][:-8] + b"four" + PACKED["gzip"][-4:], "complete gzip file"),  # another checksum
        (PACKED["gzip"] + PACKED["gzip"][:-5], "complete gzip file"),
        pytest.param(PACKED["zstd"][:-5], "complete zstd file", id="zstd cut off"),
        pytest.param(PACKED["zstd"] + PACKED["zstd"][:-5], "complete zstd file", id="second frame cut off"),
    ],
)
def test_files_that_are_broken(content, words, tmp_path):
    path = tmp_path / "people.bin"
    path.write_bytes(content)
    assert words in refused(source=path, table="people" if words == "database" else None)


@pytest.mark.parametrize("name", ["nothing.csv", "nothing*.parquet", "people.db/x"])
def test_files_that_are_not_there(name, tmp_path):
    assert name.split("*")[0] in refused(source=str(tmp_path / name))


def test_a_column_that_is_not_there(records):
    assert "must have a column 'nowhere'" in refused(
        **records, by=["nowhere", "place"], domain={**DOMAIN, "nowhere": ["x"]}
    )


def test_tables_of_databases(tmp_path, postgres):
    for source in (sqlite_file(tmp_path), postgres):
        assert "Name it with table=" in refused(source=source)
        assert "no such table" in refused(source=source, table="nowhere")
    assert "no such table" in refused(source=postgres, table="nowhere.people")
    assert "Leave it out" in refused(source=csv(tmp_path), table="people")


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_a_table_is_opened_by_the_name_that_it_is_listed_by(tmp_path, request, kind):
    """Names of tables and schemas may contain dots; of two with one name the one in a schema is meant, as in SQL."""
    import duckdb

    tables = ['"x.y"', 'census."p.q"', '"s.t".w', '"s.t"."u.v"', "two.z", '"two.z"']
    drop = 'DROP TABLE IF EXISTS "x.y"; DROP TABLE IF EXISTS "two.z"; '
    drop += "".join(f"DROP SCHEMA IF EXISTS {schema} CASCADE; " for schema in ("census", '"s.t"', "two"))
    make = 'CREATE SCHEMA census; CREATE SCHEMA "s.t"; CREATE SCHEMA two; '
    for k, table in enumerate(tables):
        make += f"CREATE TABLE {table} AS SELECT 'a' AS place FROM generate_series(0, {k}); "  # noqa: S608
    source = str(tmp_path / "few.duckdb") if kind == "duckdb" else request.getfixturevalue("postgres")
    with duckdb.connect(source) if kind == "duckdb" else connect(source) as database:
        database.execute(drop + make)
    try:
        names = ["x.y", "census.p.q", "s.t.w", "s.t.u.v", "two.z"]
        assert set(names) <= set(tables_at(source))
        for k, name in enumerate([*names, "main.two.z" if kind == "duckdb" else "public.two.z"]):
            counted = ks.tabulate(source, by="place", domain={"place": ["a", "b"]}, table=name)
            assert counted.counts.tolist() == [k + 1, 0]
    finally:
        with duckdb.connect(source) if kind == "duckdb" else connect(source) as database:
            database.execute(drop)


def test_the_tables_that_there_are(tmp_path, postgres):
    import duckdb

    lite, duck = tmp_path / "many.db", tmp_path / "few.duckdb"
    with sqlite3.connect(lite) as database:
        for k in range(22):
            database.execute(f"CREATE TABLE t{k:02} (place TEXT)")
    with duckdb.connect(duck) as database:
        database.execute("CREATE TABLE people (place TEXT); CREATE SCHEMA census; CREATE VIEW census.v AS FROM people")
    with connect(postgres) as server:
        server.execute("DROP TABLE IF EXISTS listed; CREATE TABLE listed (place TEXT)")
    first = ", ".join(f"'t{k:02}'" for k in range(20))
    for name in (None, "nowhere"):
        begin = "Name it with table=" if name is None else "Check table="
        assert f"{begin}, one of {first} and 2 others." in refused(source=lite, table=name)
        assert f"{begin}, one of 'census.v', 'people'." in refused(source=duck, table=name)
        listed = refused(source=postgres, table=name)
        assert f"{begin}, one of " in listed
        assert "'listed'" in listed
        assert "pg_" not in listed
    with sqlite3.connect(tmp_path / "empty.db") as database:
        database.execute("CREATE TABLE t (place TEXT)")
        database.execute("DROP TABLE t")
    assert "it has none" in refused(source=tmp_path / "empty.db")


def test_a_csv_file_with_ducks_is_no_database(tmp_path):
    (tmp_path / "birds.csv").write_text("species,DUCK,place\nx,1,01\n")
    assert ks.tabulate(tmp_path / "birds.csv", "place", {"place": ["01"]}).counts.tolist() == [1]


def test_connections(postgres, tmp_path):
    folder = postgres.split("host=")[1]
    assert "no server answers" in refused(source=f"postgres://someone@/db?host={tmp_path}", table="people")
    assert "no such database" in refused(source=f"postgres://postgres@/nowhere?host={folder}", table="people")
    assert "no such user" in refused(source=f"postgres://{SECRET.lower()}@/postgres?host={folder}", table="people")
    with connect(postgres) as server:
        fill(server, "people")
        server.execute("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN")
    stranger = postgres.replace("//" + postgres.split("//")[1].split("@")[0], "//stranger")
    assert "may not read it" in refused(source=stranger, table="people")


@pytest.mark.parametrize(
    "address",
    [
        f"postgres://user:{SECRET}@host/db",
        f"postgresql://user@host/db?password={SECRET}",
        f"postgres://user@host:{SECRET}/db",
        f"postgres://user@host/db?{SECRET}=1",
        f"mysql://user:{SECRET}@host/db",
        f"https://host/{SECRET}.csv",
        f"s3://{SECRET}/people.parquet",
        f"sqlite://{SECRET}",
        f"POSTGRES://user:{SECRET}@host/db",
        f" postgres://user:{SECRET}@host/db",
        f"postgres:user:{SECRET}@host/db",
        f"postgres:/user:{SECRET}@host/db",
        f"postgresql+psycopg://user:{SECRET}@host/db",
        f"postgres%3A%2F%2Fuser%3A{SECRET}%40host%2Fdb",
        f"postgresql://user@host/db?pass%77ord={SECRET}",
        f"postgresql://user@host/db?sslpassword={SECRET}",
        f"host=here user=me password={SECRET}",
        f"HOST = here PASSWORD = {SECRET}",
        f"user:{SECRET}@host/db",
        f"{SECRET}@host/db",
        f"people.csv?password={SECRET}",
        f"duckdb:///{SECRET}.db",
        f"jdbc:postgresql://host/db?user=me&password={SECRET}",
    ],
)
def test_addresses_are_never_repeated(address):
    for source in (address, Path(address), [address], [address, address], f"{address}*"):
        text = refused(source=source, table="people")
        assert "host" not in text.replace("user@host", "").replace("?host=/run", "")


def test_files_whose_names_look_like_addresses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("user@host.csv", "host=a.csv", "postgres:a.csv"):
        csv(tmp_path, name)
        assert ks.tabulate(name, by="place", domain=DOMAIN).counts.sum() == 12


def test_a_wrong_password(postgres, monkeypatch):
    with connect(postgres) as server:
        server.execute("DROP ROLE IF EXISTS guarded; CREATE ROLE guarded LOGIN PASSWORD 'right'")
    address = postgres.replace("//" + postgres.split("//")[1].split("@")[0], "//guarded")
    for password in ("wrong", None):
        if password is None:
            monkeypatch.delenv("PGPASSWORD")
        else:
            monkeypatch.setitem(os.environ, "PGPASSWORD", password)
        assert "does not let this user in" in refused(source=address, table="people")
    monkeypatch.setitem(os.environ, "PGPASSWORD", "right")
    assert "no such table" in refused(source=address, table="nowhere")


def test_a_wrong_password_in_the_shell(postgres, monkeypatch, tmp_path, capfd):
    from keepsum.cli.app import run

    with connect(postgres) as server:
        server.execute("DROP ROLE IF EXISTS guarded; CREATE ROLE guarded LOGIN PASSWORD 'right'")
    address = postgres.replace("//" + postgres.split("//")[1].split("@")[0], "//guarded")
    monkeypatch.setitem(os.environ, "PGPASSWORD", SECRET)
    options = ["--by", "place", "--categories", "place=01", "--keep-total", "--epsilon", "1", "--yes"]
    assert run(["release", address, "--table", "people", *options, "-o", str(tmp_path / "out.csv")]) == 5
    shown = capfd.readouterr()
    assert "does not let this user in. Set PGPASSWORD" in " ".join(shown.err.split())
    assert SECRET not in shown.err + shown.out
    assert "Traceback" not in shown.err
    assert not list(tmp_path.iterdir())


def test_a_password_file_that_others_may_read(postgres, tmp_path, monkeypatch, capfd):
    """Postgres's library would ignore it, and say so on standard error, with its path."""
    file = tmp_path / "passwords"
    file.write_text("*:*:*:*:right\n")
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setitem(os.environ, "PGPASSFILE", str(file))
    for mode in (0o640, 0o604):
        file.chmod(mode)
        assert "chmod 600" in refused(source=postgres, table="nowhere")
        assert "chmod 600" in refused(source=f"{postgres}&passfile={file}", table="nowhere")
    monkeypatch.setitem(os.environ, "PGPASSFILE", "/dev/null")
    assert "plain file" in refused(source=postgres, table="nowhere")
    monkeypatch.setitem(os.environ, "PGPASSFILE", str(file))
    file.chmod(0o600)
    assert "no such table" in refused(source=postgres, table="nowhere")
    assert capfd.readouterr().err == ""


def test_passwords_come_from_the_environment(monkeypatch):
    from keepsum.sources.records.files import postgres_address

    monkeypatch.setitem(os.environ, "PGPASSWORD", SECRET)
    address = postgres_address("postgres://me@/db?host=/run/postgresql&port=6543")
    assert (address.host, address.port, address.user, address.database) == ("/run/postgresql", 6543, "me", "db")
    assert SECRET not in repr(address)


def test_sources_that_are_none(tmp_path):
    for source in (None, 5, object(), [], [1], {"place": ["01"]}, b"x.csv"):
        assert "records" in refused(source=source)
    assert "bound to no database" in refused(source=ibis.table({"place": "string"}, name="people"))
    assert "contains none" in refused(source=Path(tmp_path))


@pytest.mark.parametrize(
    "wrong",
    [
        {"by": []},
        {"by": ["place", "place"]},
        {"by": ["place", "age"]},
        {"by": ["age"]},
        {"domain": None},
        {"domain": {"place": ["01"], "age": ["x"]}},
        {"bins": {"age": [0, 1]}},
        {"bins": {"place": [0, 1]}},
        {"missing": {"age": "x"}},
        {"missing": {"place": "nowhere"}},
        {"within": {"place": "state"}},
        {"count": "place"},
    ],
)
def test_declarations_that_do_not_fit(wrong, tmp_path):
    refused(source=csv(tmp_path), **wrong)


def test_types_that_are_no_labels():
    for values in ([pd.Timestamp("2020-01-01")], [[1, 2]], [b"01"]):
        assert "must hold text" in refused(source=pd.DataFrame({"place": values}))
    assert "decimal numbers" in refused(source=pd.DataFrame({"place": [1.5]}))
    assert "several types" in refused(source=pd.DataFrame({"place": [1, SECRET]}, dtype=object))


class IOException(Exception):  # noqa: N818
    """As DuckDB calls what a disk does."""


@pytest.mark.parametrize(
    ("problem", "error", "status"),
    [
        (RuntimeError("connection to server failed: Connection refused"), ks.UnreachableError, 5),
        (RuntimeError("database is locked"), ks.UnreachableError, 5),
        (IOException("Could not read all bytes: disk"), ks.UnreachableError, 5),
        (RuntimeError("no such table: people"), ks.DataError, 2),
        (RuntimeError("file is not a database"), ks.DataError, 2),
        (UnicodeError("invalid utf-8 sequence"), ks.DataError, 2),
        (RuntimeError("Could not convert 'Alice' to INT64"), ks.DataError, 2),
        (type("OutOfMemoryException", (Exception,), {})("too much"), ks.TooMuchWorkError, 7),
    ],
)
def test_only_what_may_be_otherwise_later_is_worth_another_try(problem, error, status):
    def fails():
        raise problem

    with pytest.raises(ks.KeepsumError) as caught:
        attempt(fails, "Database 'x.db'")
    assert type(caught.value) is error
    assert caught.value.status == status
    assert caught.value.__context__ is None
    assert "Alice" not in str(caught.value)
