"""Reading comes to an end: where somebody stops it, where it takes too much memory, and after so many records.

The views here take many seconds, or gigabytes. Nothing waits for that.
"""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pytest

import keepsum as ks
from keepsum import _signals
from keepsum.desk.jobs import BackgroundJob
from keepsum.sources.records import connecting
from keepsum.sources.records import counting as grouping
from support import HANG

from .conftest import connect

COUNTED = {"by": "place", "domain": {"place": ["a"]}}
BOUNDED = {**COUNTED, "unit": "person", "max_rows_per_unit": 1}
LONG = {
    "duckdb": "SELECT 'a' AS place, range AS person, 'p' || range AS name FROM range(1000000000)",
    "sqlite": "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 20000000) "
    "SELECT 'a' AS place, x AS person FROM r",
    "postgres": "SELECT 'a' AS place, generate_series(1, 200000000) AS person",
}


@pytest.fixture(params=LONG)
def long(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """A view that takes long, as arguments of ``ks.tabulate``."""
    kind = request.param
    view = f"CREATE VIEW view AS {LONG[kind]}"
    if kind == "postgres":
        address = request.getfixturevalue("postgres")
        with connect(address) as server:
            server.execute(f"DROP VIEW IF EXISTS view; {view}")
        return {"source": address, "table": "view"}
    database = {"duckdb": duckdb.connect, "sqlite": sqlite3.connect}[kind](tmp_path / f"long.{kind}")
    database.execute(view)
    database.close()
    return {"source": tmp_path / f"long.{kind}", "table": "view"}


@pytest.fixture
def while_counting(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Something that happens while the records are being counted."""

    def set_up(event: Callable[[], None]) -> None:
        monkeypatch.setattr(connecting, "check", event)

    return set_up


def test_a_signal_ends_it(long, while_counting):
    while_counting(lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        ks.tabulate(**long, **COUNTED)
    with pytest.raises(KeyboardInterrupt):
        ks.tabulate(**long, **BOUNDED)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_ends_the_counting_of_a_file(tmp_path, while_counting, monkeypatch):
    (tmp_path / "people.csv").write_text("place\n" + "a\n" * 300_000)
    monkeypatch.setattr(_signals, "WAIT", 0)
    while_counting(lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        ks.tabulate(tmp_path / "people.csv", **COUNTED)


@pytest.mark.filterwarnings("ignore:fetch_arrow_table")  # ibis's own
@pytest.mark.parametrize("connection", ["duckdb", "sqlite"])
def test_a_connection_of_the_users_own_can_be_used_afterwards(connection, while_counting):
    backend = {"duckdb": ibis.duckdb, "sqlite": ibis.sqlite}[connection].connect()
    backend.raw_sql(f"CREATE VIEW view AS {LONG[connection]}")
    while_counting(lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        ks.tabulate(backend.table("view"), **COUNTED)
    assert backend.raw_sql("SELECT 7").fetchone() == (7,)


def test_a_command_is_stopped_from_outside(long):
    """It says that it looks, so that the signal comes while the records are being counted."""
    code = """
import keepsum.sources.records.connecting as running
running.check = lambda: print("looked", flush=True)
from keepsum_shell import main; main()
"""
    options = ["--by", "place", "--categories", "place=a", "--keep-total", "--epsilon", "1", "--yes", "-o", "out.csv"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, "release", str(long["source"]), "--table", long["table"], *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "looked\n"
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=HANG)
    assert (process.returncode, complaint) == (130, "keepsum: Stopped; nothing was released or written.\n")


def test_the_page_ends_it(long, while_counting):
    def stop():
        job.stop()
        job.check()

    while_counting(stop)
    job = BackgroundJob(lambda _: ks.tabulate(**long, **COUNTED))
    job.run()
    assert (job.problem, job.result) == (None, None)


def test_whoever_watches_is_asked(long):
    """As the page asks for it, without anything between."""
    job = BackgroundJob(lambda _: ks.tabulate(**long, **COUNTED))
    asked: list[None] = []

    def check():
        asked.append(None)
        if len(asked) > 1:  # the first is before the work
            raise KeyboardInterrupt

    job.check = check
    job.run()
    assert len(asked) == 2


def test_memory_that_it_may_take(long, monkeypatch):
    """What is said is the limit, not what was taken."""
    monkeypatch.setattr(connecting, "most_memory", lambda: 7 * 10**6)
    monkeypatch.setattr(connecting, "memory_setting", dict)
    sizes = iter(range(0, 10**9, 5 * 10**6))
    monkeypatch.setattr(connecting, "resident", lambda: next(sizes))
    with pytest.raises(ks.TooMuchWorkError) as caught:
        ks.tabulate(**long, **COUNTED)
    sentence = "must be countable with 7 MB of memory, but needs more, and nothing is written to disk. Count fewer"
    assert sentence in str(caught.value)


@pytest.mark.parametrize("long", ["duckdb"], indirect=True)
def test_memory_that_duckdb_may_take(long, monkeypatch):
    monkeypatch.setattr(connecting, "memory_setting", lambda: {"memory_limit": "64 MiB", "threads": "1"})
    with pytest.raises(
        ks.TooMuchWorkError, match=r"'long.duckdb' must be countable with 64\.0 MiB of memory, but needs more"
    ):
        ks.tabulate(**long, by="name", domain={"name": ["p1"]})


def test_duckdb_has_a_limit_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(connecting, "available", lambda: 4 * 2**30)
    assert connecting.memory_setting() == {"memory_limit": "3072 MiB"}
    monkeypatch.setattr(connecting, "available", lambda: None)
    assert connecting.memory_setting() == {}


@pytest.mark.parametrize("counted", [COUNTED, BOUNDED], ids=["records", "persons"])
def test_records_that_a_database_may_have(long, counted, monkeypatch):
    """One more is refused, however many there are."""
    monkeypatch.setattr(grouping, "MOST_RECORDS", 1000)
    with pytest.raises(ks.DataError, match="must have at most 1,000 records, but has more"):
        ks.tabulate(**long, **counted)


@pytest.mark.parametrize("counted", [COUNTED, BOUNDED], ids=["records", "persons"])
def test_as_many_records_as_it_may_have(counted, tmp_path, monkeypatch):
    """With a bound, more are read than are counted."""
    people = sqlite3.connect(tmp_path / "people.db")
    people.execute("CREATE TABLE people (place TEXT, person INTEGER)")
    people.executemany("INSERT INTO people VALUES ('a', ?)", [(k // 2,) for k in range(10)])
    people.commit()
    people.close()
    counting = {"source": tmp_path / "people.db", "table": "people", **counted}
    monkeypatch.setattr(grouping, "MOST_RECORDS", 10)
    assert ks.tabulate(**counting).counts.tolist() == [5 if "unit" in counted else 10]
    monkeypatch.setattr(grouping, "MOST_RECORDS", 9)
    with pytest.raises(ks.DataError, match="must have at most 9 records"):
        ks.tabulate(**counting)
