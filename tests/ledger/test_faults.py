"""A full disk, and writers that are killed in the middle: nothing is half written, and the ledger goes on."""

import resource
import shutil
import sqlite3
import warnings
from pathlib import Path

import pytest

import keepsum as ks
from faults import Fork, changes_of, fail, kill, operations_of
from keepsum.ledger.store import Store
from ledger.making import TABLE, TENTH, Undrawn, links_of, made
from test_arguments import check_message


def until_full(path: Path) -> tuple[int, str]:
    """Release until that fails: how often it went well, and the sentence. Nothing is drawn by the last one."""
    ledger = ks.Ledger.open(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ks.LedgerWarning)  # the first that finds no room may be an outcome
        for count in range(200):
            spent = len(ledger.spends())
            try:
                TENTH.release(TABLE, ledger=ledger)
            except ks.LedgerError as error:
                check_message(error)
                assert len(ledger.spends()) == spent
                return count, str(error)
    raise AssertionError("the disk is never full")


def same(path: Path, entries: list, data: bytes) -> None:
    """Nothing was written by those that were refused, and the file goes on once there is room."""
    assert path.read_bytes() == data
    assert [p.name for p in path.parent.iterdir()] == ["ledger.db"]
    TENTH.release(TABLE, ledger=path)
    assert links_of(path)[: len(entries)] == entries
    assert ks.Ledger.open(path).check().passed


def test_a_full_disk(tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    made(path, releases=2, budget=1000)
    opened = sqlite3.connect

    def connect(*arguments, **options):
        """SQLite says that the disk is full where the file would need a fifth page."""
        connection = opened(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 4")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        count, problem = until_full(path)
        assert count > 3
        assert problem == f"Ledger '{path}' cannot be written: the disk is full. Nothing was charged."
        entries, data = links_of(path), path.read_bytes()
        for way in (
            lambda: TENTH.release(TABLE, ledger=path, rng=Undrawn()),
            lambda: ks.Ledger.open(path).add_dataset(
                "a" * 200, ks.Budget.per_unit(1), ks.Domain({"a": [f"{k:0100}" for k in range(50)]})
            ),
        ):
            with pytest.raises(ks.LedgerError, match="the disk is full"):
                way()
    same(path, entries, data)


def limited(work, size: int):
    """In a process of its own, whose files cannot grow beyond so many bytes."""

    def limit() -> object:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return work()

    return limit


def test_a_file_that_cannot_grow(tmp_path):
    path = tmp_path / "ledger.db"
    made(path, releases=2, budget=1000)
    outcome = Fork(limited(lambda: until_full(path), 16384), tmp_path).wait()
    assert outcome.error is None, outcome.error
    count, problem = outcome.result
    assert count > 3
    assert problem.startswith(f"Ledger '{path}' cannot be read or written: the disk reports an error")
    entries, data = links_of(path), path.read_bytes()
    refused = Fork(limited(lambda: TENTH.release(TABLE, ledger=path, rng=Undrawn()), 16384), tmp_path).wait()
    assert refused.error is not None
    assert refused.error.startswith("LedgerUnreachableError: ")
    same(path, entries, data)


def test_a_ledger_that_cannot_be_created(tmp_path):
    path = tmp_path / "ledger.db"
    outcome = Fork(limited(lambda: ks.Ledger.create(path, budget=ks.Budget.per_unit(1)), 5000), tmp_path).wait()
    assert outcome.error is not None
    assert outcome.error.startswith("LedgerUnreachableError: Output")
    assert list(tmp_path.iterdir()) == []
    ks.Ledger.create(path, budget=ks.Budget.per_unit(1))


def test_a_creator_that_is_killed_leaves_a_whole_ledger_or_none(tmp_path):
    path = tmp_path / "ledger.db"
    seen = []

    def work() -> None:
        ks.Ledger.create(path, budget=ks.Budget.per_unit(1))

    for moment in changes_of(work, tmp_path):
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        Fork(work, tmp_path, moment, kill).wait()
        seen.append(path.exists())
        made = ks.Ledger.open(path) if seen[-1] else ks.Ledger.create(path, budget=1)  # beside whatever the other left
        assert made.check().entries == 2
    assert seen == sorted(seen)
    assert len(set(seen)) == 2


def test_a_disk_that_fails_once_while_a_ledger_is_created(tmp_path):
    path = tmp_path / "ledger.db"

    def work() -> None:
        ks.Ledger.create(path, budget=ks.Budget.per_unit(1))

    for moment in range(1, len(operations_of(work, tmp_path)) + 1):
        path.unlink(missing_ok=True)
        outcome = Fork(work, tmp_path, moment, fail).wait()
        assert outcome.error is None or outcome.error.startswith("LedgerUnreachableError: "), outcome.error
        assert outcome.error is not None or path.exists()
        made = ks.Ledger.open(path) if path.exists() else ks.Ledger.create(path, budget=1)
        assert made.check().entries == 2


def half_written(path: Path, entries: int) -> bytes:
    """A writer that is killed after SQLite has written pages of its entries into the file, before it commits."""
    last = links_of(path)[-1]

    def work() -> None:
        with Store(path).writing(last) as transaction:
            transaction.connection.execute("PRAGMA cache_size = 1")
            for _ in range(entries):
                transaction.append('{"entry":"outcome","spend":4,"outcome":"failed"}' + " " * 3000)
            kill()

    assert Fork(work, path.parent).wait().error is None
    return path.read_bytes()


@pytest.mark.parametrize("entries", [20, 200])
def test_what_a_killed_writer_left_is_rolled_back(tmp_path, entries):
    path, journal = tmp_path / "ledger.db", tmp_path / "ledger.db-journal"
    ledger = made(path)
    before, data = links_of(path), path.read_bytes()
    assert half_written(path, entries) != data
    assert journal.stat().st_size > 0
    assert ledger.standing().spent.epsilon * 10 == 3  # whoever looks next puts it right
    assert path.read_bytes() == data
    assert not journal.exists()
    assert half_written(path, entries) != data
    TENTH.release(TABLE, ledger=path)
    assert links_of(path)[: len(before)] == before
    assert ks.Ledger.open(path).check().passed
    assert len(ledger.spends()) == 4


def test_a_ledger_in_use_is_waited_for_and_then_given_up(tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    ledger = made(path)
    monkeypatch.setattr("keepsum.ledger.store.PATIENCE", 0.01)
    with Store(path).writing(links_of(path)[-1]):
        assert ledger.standing().spent.epsilon * 10 == 3  # who only reads waits for nobody
        with pytest.raises(ks.LedgerError, match=r"in use by another process. Try again") as caught:
            TENTH.release(TABLE, ledger=ks.Ledger.open(path), rng=Undrawn())
        check_message(caught.value)
    assert len(ledger.spends()) == 3
