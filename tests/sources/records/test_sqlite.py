"""SQLite: values of any type in any column, and nothing written beside the database."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import ibis
import pytest

import keepsum as ks
from support import mostly_audit

TYPES = ["", "INTEGER", "TEXT", "REAL", "NUMERIC", "BLOB", "BOOLEAN", "DATE", "DECIMAL(3, 1)", "SOMETHING"]
NAMES = ["true", "false", "0", "1", "2", "t"]


def database(folder: Path, kind: str, values: list) -> Path:
    path = folder / "people.db"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE people (x {kind})")
    connection.executemany("INSERT INTO people VALUES (?)", [(value,) for value in values])
    connection.commit()
    connection.close()
    return path


def labels(path: Path, domain: list = NAMES) -> list:
    counts = ks.tabulate(path, by="x", domain={"x": domain}, table="people").counts.tolist()
    return [label for label, n in zip(domain, counts, strict=True) for _ in range(n)]


def test_labels_are_what_is_stored(tmp_path):
    for kind in TYPES:
        assert labels(database(tmp_path, kind, ["t", "true"])) == ["true", "t"]
        if kind not in ("BOOLEAN", "TEXT"):
            assert labels(database(tmp_path, kind, [2, 1, 1.0, 0])) == ["0", "1", "1", "2"]
    assert labels(database(tmp_path, "BOOLEAN", [1, 0, "true", 1.0])) == ["true", "true", "true", "false"]
    assert labels(database(tmp_path, "", ["t", 1, "1"])) == ["1", "1", "t"]  # the first row decides nothing
    assert labels(database(tmp_path, "", [])) == []
    backend = ibis.sqlite.connect(database(tmp_path, "BOOLEAN", ["t", 1, 0]))
    table = ks.tabulate(backend.table("people"), by="x", domain={"x": NAMES})
    assert table.counts.tolist() == [1, 1, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("BOOLEAN", 7, "declared categories"),
        ("BOOLEAN", 1.5, "whole numbers"),
        ("BOOLEAN", "yes", "declared categories"),
        ("INTEGER", 1.5, "whole numbers"),
        ("INTEGER", "x", "declared categories"),
        ("INTEGER", b"1", "binary"),
        ("TEXT", b"t", "binary"),
        ("", b"t", "binary"),
        ("REAL", 0.5, "whole numbers"),
        ("REAL", 9e999, "whole numbers"),
        ("TEXT", "", "missing"),
        ("INTEGER", "", "missing"),
        ("", None, "missing"),
    ],
)
def test_values_that_are_no_labels(kind, value, words, tmp_path):
    with pytest.raises(ks.DataError, match=words):
        labels(database(tmp_path, kind, [1 if kind != "TEXT" else "1", value]))


@pytest.mark.parametrize(
    ("kind", "values", "edges", "counts"),
    [
        ("", [1, "1", 2.0, " 17 ", "18"], [0, 2, 18, None], [2, 2, 1]),
        ("TEXT", [0.5, "0.25"], [0.0, 0.5, 1.0], [1, 1]),
        ("DATE", ["2020-01-31", "2020-02-01 12:00"], ["2020-01-01", "2020-02-01", None], [1, 1]),
    ],
)
def test_bins_of_what_is_stored(kind, values, edges, counts, tmp_path):
    path = database(tmp_path, kind, values)
    assert ks.tabulate(path, by="x", bins={"x": edges}, table="people").counts.tolist() == counts


@pytest.mark.parametrize(
    ("kind", "value", "edges"),
    [
        ("INTEGER", "abc", [0, None]),
        ("INTEGER", 1.5, [0, None]),
        ("INTEGER", b"7", [0, None]),
        ("REAL", 9e999, [0.0, None]),
        ("DATE", b"2020-01-31", ["2020-01-01", None]),
        ("DATE", 20200131, ["2020-01-01", None]),
        ("TEXT", "12\n", [0, None]),
        ("TEXT", "12.5\n", [0.0, None]),
        ("TEXT", "2020-01-31\n", ["2020-01-01", None]),
        ("TEXT", "2020-02-30", ["2020-01-01", None]),
        ("TEXT", "2020-02-01 99:99", ["2020-01-01", None]),
        ("TEXT", "0000-01-01", [None, "2020-01-01"]),
    ],
)
def test_values_that_are_in_no_bin(kind, value, edges, tmp_path):
    with pytest.raises(ks.DataError, match="like the edges"):
        ks.tabulate(database(tmp_path, kind, [value]), by="x", bins={"x": edges}, table="people")


# -- units ------------------------------------------------------------------------------------------


def units(folder: Path, kind: str, who: list) -> int:
    path = database(folder, kind, who)
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE people ADD COLUMN y TEXT DEFAULT 'a'")
    table = ks.tabulate(path, by="y", domain={"y": ["a"]}, unit="x", max_rows_per_unit=1, table="people")
    return int(table.counts.sum())


@mostly_audit("kind", TYPES)
def test_units_that_are_not_exact_are_refused(kind, tmp_path):
    for missing in ("", None):
        with pytest.raises(ks.DataError, match="missing in some"):
            units(tmp_path, kind, ["p", missing])
    for other in (b"p", 1.5, 7):
        if kind == "TEXT" and not isinstance(other, bytes):
            assert units(tmp_path, kind, ["p", other]) == 2  # then both are text
            continue
        with pytest.raises(ks.DataError, match="either text or whole numbers"):
            units(tmp_path, kind, ["p", other])


def test_units_that_are_exact(tmp_path):
    assert units(tmp_path, "INTEGER", [2**53, 2**53 + 1, 2**53]) == 2
    assert units(tmp_path, "TEXT", ["p", "P", "p ", "p\0a", "p\0b", "p"]) == 5


def test_units_of_text_that_is_not_sorted_by_its_bytes_in_utf8(tmp_path):
    """In UTF-8 b (62) comes before Ā (C4 80), but Ā (00 01) before b (62 00) in UTF-16 of most machines."""
    expected = {"UTF-8": [0, 1], "UTF-16le": None, "UTF-16be": None}
    for encoding, counts in expected.items():
        path = tmp_path / f"{encoding}.db"
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA encoding = '{encoding}'")
        connection.execute("CREATE TABLE people (who TEXT, x TEXT)")
        connection.executemany("INSERT INTO people VALUES ('p', ?)", [("Ā",), ("b",)])
        connection.commit()
        connection.close()
        asked = {"by": "x", "domain": {"x": ["Ā", "b"]}}
        bound = {"unit": "who", "max_rows_per_unit": 1}
        assert ks.tabulate(path, **asked, table="people").counts.tolist() == [1, 1]
        for source in ({"source": path, "table": "people"}, {"source": ibis.sqlite.connect(path).table("people")}):
            if counts is not None:
                assert ks.tabulate(**source, **asked, **bound).counts.tolist() == counts
                continue
            with pytest.raises(ks.DataError, match=f"must store text in UTF-8 .*, but stores it in {encoding}"):
                ks.tabulate(**source, **asked, **bound)


# -- files ------------------------------------------------------------------------------------------


def test_a_write_ahead_log_is_not_created_to_read(tmp_path):
    path = database(tmp_path, "TEXT", ["t"])
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("INSERT INTO people VALUES ('1')")
    connection.close()
    assert [file.name for file in tmp_path.iterdir()] == ["people.db"]
    assert labels(path) == ["1", "t"]
    assert [file.name for file in tmp_path.iterdir()] == ["people.db"]


def test_what_a_program_has_written_so_far_is_read(tmp_path):
    path = database(tmp_path, "TEXT", ["t"])
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("INSERT INTO people VALUES ('1')")
    writer.commit()
    writer.execute("INSERT INTO people VALUES ('2')")
    assert labels(path) == ["1", "t"]
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(path)
    assert labels(link) == ["1", "t"]  # the log is beside the database, not beside the link
    assert [file.name for file in link.parent.iterdir()] == ["link.db"]
    (tmp_path / "copy").mkdir()
    for ending in ("", "-wal"):  # as if the program had been killed, and its index of the log were lost
        shutil.copy(f"{path}{ending}", tmp_path / "copy")
    writer.close()
    with pytest.raises(ks.DataError, match="closed by the program"):
        labels(tmp_path / "copy" / "people.db")
    assert len(list((tmp_path / "copy").iterdir())) == 2


@pytest.mark.filterwarnings("ignore")  # of ibis, about its own use of pandas
def test_a_change_while_it_is_read_is_noticed(tmp_path):
    from keepsum.sources.records.opening import open_records

    path = database(tmp_path, "TEXT", ["t"])
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    with open_records(path, "people", ["x"]) as records:
        writer = sqlite3.connect(path)
        writer.execute("INSERT INTO people VALUES ('1')")
        writer.commit()
        with pytest.raises(ks.DataError, match="must not change while it is read"):
            records.run(records.table.count())
        writer.close()
