"""Files that are no ledger, that cannot be used, or that are damaged: one sentence, and nothing is drawn or written."""

import os
import random
import shutil
import sqlite3
import stat
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

import keepsum as ks
from faults import Fork
from keepsum.ledger.store import APPLICATION
from ledger.making import TABLE, TENTH, Undrawn, charge, links_of, made, tampered
from test_arguments import check_message

NOBODY = 65534


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "ledger.db"
    made(path, releases=8)
    return path


@pytest.fixture
def path(original, tmp_path):
    return shutil.copy(original, tmp_path / "ledger.db")


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def refused(path, problem: str) -> None:
    """No way of using the file works, no noise is drawn, and nothing on disk changes."""
    before = contents(path.parent) if path.parent.is_dir() else {}
    ways = [lambda: ks.Ledger.open(path), lambda: TENTH.release(TABLE, ledger=path, rng=Undrawn())]
    for way in ways:
        with pytest.raises(ks.LedgerError, match=problem) as caught:
            way()
        check_message(caught.value)
    assert not path.parent.is_dir() or contents(path.parent) == before


def test_a_missing_file(tmp_path):
    refused(tmp_path / "none.db", r"'.*/none.db' does not exist. Create it")
    refused(tmp_path / "none" / "ledger.db", "does not exist")
    with pytest.raises(ks.LedgerError, match="must be in an existing folder") as caught:
        ks.Ledger.create(tmp_path / "none" / "ledger.db", budget=ks.Budget.per_unit(1))
    check_message(caught.value)
    refused(tmp_path / ("a" * 5000), "does not exist")
    with pytest.raises(ks.LedgerError, match="name too long"):
        ks.Ledger.create(tmp_path / ("a" * 5000), budget=ks.Budget.per_unit(1))
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_leads_nowhere(tmp_path):
    (tmp_path / "ledger.db").symlink_to(tmp_path / "nowhere")
    refused(tmp_path / "ledger.db", "must be readable and writable, with its folder, but it is not")


def test_a_new_ledger_replaces_nothing(original, path, tmp_path):
    with pytest.raises(ks.LedgerError, match=r"must be new, but there is such a file\. Open it with ks\.Ledger\.open"):
        ks.Ledger.create(path, budget=1)
    assert path.read_bytes() == original.read_bytes()
    (tmp_path / "folder").mkdir()
    with pytest.raises(ks.LedgerError, match="must be a file, but it is a folder"):
        ks.Ledger.create(tmp_path / "folder", budget=1)
    for wrong in (str(path), path, None):
        with pytest.raises(
            ks.InputError, match=r"ks\.Ledger\.create\(path, budget=\.\.\.\) or ks\.Ledger\.open\(path\)"
        ):
            type(ks.Ledger.open(path))(wrong)


def test_a_folder(tmp_path):
    (tmp_path / "ledger.db").mkdir()
    refused(tmp_path / "ledger.db", "must be a file, but it is a folder")
    file = tmp_path / "file"
    file.write_bytes(b"")
    with pytest.raises(ks.LedgerError):
        ks.Ledger.create(file / "ledger.db", budget=ks.Budget.per_unit(1))


FOREIGN = {
    "empty": b"",
    "short": b"SQLite",
    "text": b"county,sex,n\nAlpha,f,15\n" * 200,
    "zeros": bytes(8192),
    "only a header": b"SQLite format 3\0",
}


@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN)
def test_a_file_of_something_else(tmp_path, data):
    (tmp_path / "ledger.db").write_bytes(data)
    refused(tmp_path / "ledger.db", "must be a ledger of Keepsum, but it is something else")


def altered(path, *statements: str) -> Path:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def test_another_sqlite_file(tmp_path):
    table = "CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT)"
    refused(altered(tmp_path / "ledger.db", table), "must be a ledger of Keepsum, but it is something else")
    named = f"PRAGMA application_id = {APPLICATION}"
    refused(altered(tmp_path / "ledger.db", named, "PRAGMA user_version = 1"), "its table is not as Keepsum makes it")


DAMAGES = {
    "later": (["PRAGMA user_version = 2"], "was written by a later version of Keepsum. Update Keepsum"),
    "earlier": (["PRAGMA user_version = 0"], "its table is not as Keepsum makes it"),
    "foreign": (["PRAGMA application_id = 7"], "it is something else"),
    "table": (["CREATE TABLE more (x)"], "its table is not as Keepsum makes it"),
    "index": (["CREATE INDEX more ON entries (time)"], "its table is not as Keepsum makes it"),
    "view": (["CREATE VIEW more AS SELECT 1"], "its table is not as Keepsum makes it"),
    "trigger": (
        ["CREATE TRIGGER more AFTER INSERT ON entries BEGIN SELECT 1; END"],
        "its table is not as Keepsum makes it",
    ),
    "no trigger": (["DROP TRIGGER no_update"], "its table is not as Keepsum makes it"),
    "no table": (["DROP TABLE entries"], "its table is not as Keepsum makes it"),
    "column": (["ALTER TABLE entries ADD COLUMN more TEXT"], "its table is not as Keepsum makes it"),
    "bytes": (
        ["DROP TRIGGER no_update", "UPDATE entries SET time = CAST(x'ff' AS TEXT) WHERE number = 3"],
        "its table is not as Keepsum makes it",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_schema_that_is_not_ours(path, damage):
    statements, problem = DAMAGES[damage]
    refused(altered(path, *statements), problem)


def test_text_that_is_none(path):
    with tampered(path) as connection:
        connection.execute("UPDATE entries SET time = CAST(x'ff' AS TEXT) WHERE number = 3")
    refused(path, "is damaged: SQLite cannot read it")


@pytest.mark.parametrize("length", [1, 100, 512, 4095, 4096, 4097, 8192, 12287])
def test_a_file_cut_short(path, length):
    data = path.read_bytes()
    assert len(data) > 12287
    path.write_bytes(data[:length])
    refused(path, "is damaged|must be a ledger of Keepsum")


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.audit)])
def test_bytes_changed_at_random(path, original, seed):
    """What can still be read is what was written; everything else is a sentence, and nothing is drawn."""
    random_bytes, good = random.Random(seed), original.read_bytes()
    entries = links_of(original)
    found = 0
    for _ in range(100):
        data = bytearray(good)
        start = random_bytes.choice([random_bytes.randrange(len(data)), random_bytes.randrange(120)])
        length = random_bytes.choice([1, 1, 4, 100, 4096])
        data[start : start + length] = random_bytes.randbytes(len(data[start : start + length]))
        path.write_bytes(data)
        try:
            ledger = ks.Ledger.open(path)
            assert [tuple(row.values()) for row in ledger.export()] == [
                (link.number, link.time, link.content, link.previous, link.hash) for link in entries
            ]
            charge(ledger)
            assert ks.Ledger.open(path).check().passed
        except ks.LedgerError as error:
            check_message(error)
            found += 1
        for ending in ("-journal", "-wal", "-shm"):
            Path(f"{path}{ending}").unlink(missing_ok=True)
    assert found > 30


def test_names_that_a_uri_would_take_apart(tmp_path):
    for name in ("a?mode=ro", "100%25#x", "ü b.db", "file:x", ":memory:"):
        charge(made(tmp_path / name, releases=1))
        assert len(ks.Ledger.open(tmp_path / name).spends()) == 2
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert len(list(tmp_path.iterdir())) == 5


def test_a_relative_name_and_a_link_are_the_same_file(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.db").symlink_to("ledger.db")
    charge(ks.Ledger.open("ledger.db"))
    charge(ks.Ledger.open("link.db"))
    assert len(ks.Ledger.open(path).spends()) == 10


# -- what the user may not do ----------------------------------------------------------------------------------------


@pytest.fixture
def place(original):
    """A folder with a ledger that other users can reach, other than the folders of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "place")
        place.mkdir()
        Path(folder).chmod(0o755)
        shutil.copy(original, place / "ledger.db")
        yield place
        place.chmod(0o755)


def as_nobody(work, folder: Path):
    """Root ignores modes: it becomes somebody else first."""

    def other() -> list[str]:
        os.chdir(folder)
        if os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return work()

    outcome = Fork(other, folder).wait()
    assert outcome.error is None, outcome.error
    return outcome.result


def given(path: Path, mode: int, owner: bool = True) -> None:
    if os.geteuid() == 0 and owner:
        os.chown(path, NOBODY, NOBODY)
    path.chmod(mode)


def tried(way) -> str:
    try:
        way()
    except ks.LedgerError as error:
        check_message(error)
        return str(error)
    return "done"


@pytest.mark.parametrize(("file", "folder"), [(0o444, 0o777), (0o666, 0o555), (0o444, 0o555)])
def test_read_only_files_and_folders(place, original, file, folder):
    """They can be read and checked, and nothing can be charged."""
    path = place / "ledger.db"
    given(path, file)
    given(place, folder)

    def work() -> list[str]:
        name = "ledger.db"
        ledger = ks.Ledger.open(name)
        assert ledger.check().passed
        return [
            tried(lambda: TENTH.release(TABLE, ledger=name, rng=Undrawn())),
            tried(lambda: charge(ledger)),
            tried(lambda: ledger.set_budget("data", ks.Budget.per_unit(2))),
            tried(lambda: ledger.add_dataset("more", ks.Budget.per_unit(2))),
        ]

    assert set(as_nobody(work, place)) == {"Ledger 'ledger.db' must be writable, with its folder, but it is read-only."}
    place.chmod(0o755)
    assert path.read_bytes() == original.read_bytes()
    assert [p.name for p in place.iterdir()] == ["ledger.db"]


def test_files_and_folders_that_cannot_be_read(place):
    given(place / "ledger.db", 0o000)
    given(place, 0o755)
    assert set(as_nobody(lambda: [tried(lambda: ks.Ledger.open("ledger.db"))], place)) == {
        "Ledger 'ledger.db' must be readable and writable, with its folder, but it is not."
    }
    inner = place / "inner"
    inner.mkdir()
    given(inner, 0o000, owner=False)
    ways = [
        lambda: ks.Ledger.open("inner/ledger.db"),
        lambda: ks.Ledger.create("inner/ledger.db", budget=ks.Budget.per_unit(1)),
    ]
    said = as_nobody(lambda: [tried(way) for way in ways], place)
    assert "done" not in said
    inner.chmod(0o555)
    (said,) = as_nobody(
        lambda: [tried(lambda: ks.Ledger.create("inner/ledger.db", budget=ks.Budget.per_unit(1)))], place
    )
    assert "must be writable" in said
    inner.chmod(0o755)
    assert list(inner.iterdir()) == []


def test_what_is_left_of_another_ledger_is_not_written_into_a_new_one(path):
    """SQLite would take the journal for that of the new file."""
    path.unlink()
    for ending in ("-journal", "-wal"):
        left = Path(f"{path}{ending}")
        left.write_bytes(b"left")
        with pytest.raises(ks.LedgerError, match=f"'ledger.db{ending}' is left of another") as caught:
            ks.Ledger.create(path, budget=ks.Budget.per_unit(1))
        check_message(caught.value)
        assert contents(path.parent) == {left.name: b"left"}
        left.unlink()
    ks.Ledger.create(path, budget=ks.Budget.per_unit(1))
