"""Workers, executors and the driver killed in the middle of a release: one noise, one charge, and all or nothing."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import keepsum as ks
from keepsum import spark as kss
from keepsum.spark.places import Place
from spark.failing import DOMAIN, ROWS, release
from support import HANG, missing_service

SCRIPT = Path(__file__).parent / "failing.py"
ENDURED = ["killed worker", "killed executor", "failed attempts", "speculation"]


def run(folder, *more):
    """The driver in a process of its own."""
    return subprocess.run(
        [sys.executable, SCRIPT, folder, *more], capture_output=True, text=True, timeout=HANG, check=False
    )


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """What became of releases on one cluster that was broken in several ways."""
    verdict = missing_service("java", os.environ.get("KEEPSUM_REQUIRE", ""))
    if verdict is not None:
        (pytest.fail if verdict == "fail" else pytest.skip)("java is not installed.")
    folder = tmp_path_factory.mktemp("failures")
    ended = run(folder)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return folder, json.loads((folder / "results.json").read_text())


@pytest.mark.parametrize("name", ENDURED)
def test_what_fails_is_done_again_with_the_same_noise(broken, name):
    folder, results = broken
    found, undisturbed = results[name], results["undisturbed"]
    assert found["error"] is None
    assert found["rows"] == undisturbed["rows"]
    assert len(found["rows"]) == 24
    for state in DOMAIN["state"]:
        assert sum(row[-1] for row in found["rows"] if row[0] == state) == sum(r[-1] for r in ROWS if r[0] == state)
    assert found["attempts"]["0"] > 1  # else nothing failed
    assert ks.verify(folder / "saved" / name, allow_seeded=True)
    assert found["staged"] == []


def test_every_task_was_made_to_fail(broken):
    assert min(broken[1]["failed attempts"]["attempts"].values()) > 1


def test_attempts_of_a_task_draw_the_same(broken):
    """Both of a task and its speculative copy, of which one is published."""
    for found in broken[1].values():
        if found["error"] is None:
            for attempts in found["drawn"].values():
                assert all(attempt == attempts[0] for attempt in attempts)
    assert len(broken[1]["undisturbed"]["drawn"]) == 4


def test_each_release_is_charged_once(broken):
    for number, found in enumerate(broken[1].values(), 1):
        assert len(found["outcomes"]) == number
    assert Counter(broken[1]["changed input"]["outcomes"]) == {"released": 5, "failed": 1}


def test_a_release_of_changing_input_is_refused(broken):
    """All workers are killed, so that the counts are computed again: and they are others."""
    folder, results = broken
    found = results["changed input"]
    assert "a kept total was not kept" in found["error"]
    assert "What was charged stays charged" in found["error"]
    assert found["rows"] == found["staged"] == []
    assert found["outcomes"][-1] == "failed"
    assert not (folder / "saved" / "changed input").exists()


def test_no_disk_has_the_secret_under_encryption(broken):
    """Not even the folders of executors that were killed, which nobody has tidied up."""
    for found in broken[1].values():
        assert found["traces"] == []
        assert len(found["searched"]) == 3
        assert min(found["searched"]) > 0


def test_a_driver_that_died_leaves_a_charge_and_no_output(spark, tmp_path):
    ended = run(tmp_path, "die")
    assert ended.returncode == -9
    (spend,) = ks.Ledger.open(tmp_path / "ledger.db").spends()
    assert spend.outcome == "unknown"
    assert list((tmp_path / "saved").iterdir()) == []
    (behind,) = (tmp_path / "staging").iterdir()
    with pytest.warns(ks.KeepsumWarning, match=f"{behind.name}.*delete the folder, and release again.*charged again"):
        again = release(spark, tmp_path)
    again.save(tmp_path / "saved" / "again")
    assert kss.verify(tmp_path / "saved" / "again", spark, allow_seeded=True)
    assert not kss.verify(tmp_path / "saved" / "again", spark)  # which a seed is not for
    assert [spend.outcome for spend in ks.Ledger.open(tmp_path / "ledger.db").spends()] == ["unknown", "released"]


@pytest.fixture
def saving(spark, unsaved, tmp_path):
    """A release, a folder, and the name of that folder on another file system."""
    (tmp_path / "other").mkdir()
    number = hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]  # Hadoop remembers file systems by their names
    spark._jsc.hadoopConfiguration().set(f"fs.viewfs.mounttable.{number}.link./to", f"file://{tmp_path}/other")
    return unsaved(), tmp_path / "other", f"viewfs://{number}"


def test_a_release_is_saved_to_another_file_system(saving, spark, tmp_path):
    released, other, system = saving
    released.save(f"{system}/to/out")
    assert [path.name for path in other.iterdir()] == ["out"]
    assert list((tmp_path / "staging").iterdir()) == []
    assert ks.verify(other / "out")
    assert kss.verify(f"{system}/to/out", spark)


@pytest.mark.parametrize("there", ["file", "folder"])
def test_what_is_there_stays_on_another_file_system(saving, there):
    released, other, system = saving
    (other / "out").mkdir() if there == "folder" else (other / "out").write_text("mine")
    with pytest.raises(ks.InputError, match="must not exist yet"):
        released.save(f"{system}/to/out")
    assert [path.name for path in other.iterdir()] == ["out"]
    assert (other / "out").is_dir() if there == "folder" else (other / "out").read_text() == "mine"
    released.save(f"{system}/to/elsewhere")
    assert ks.verify(other / "elsewhere")


def test_a_save_that_is_interrupted_leaves_nothing_and_is_done_again(saving, monkeypatch):
    """Between the copy and its rename, which is the point of no return."""
    released, other, system = saving
    exists, copied = Place.exists, []

    def interrupted(place):
        if any(other.glob(".out.keepsum-*")):
            copied.append(place)
            raise KeyboardInterrupt
        return exists(place)

    monkeypatch.setattr(Place, "exists", interrupted)
    with pytest.raises(KeyboardInterrupt):
        released.save(f"{system}/to/out")
    assert copied
    assert list(other.iterdir()) == []
    monkeypatch.undo()
    released.save(f"{system}/to/out")
    assert ks.verify(other / "out")


def test_a_folder_that_comes_while_a_release_is_copied_stays(saving, monkeypatch):
    released, other, system = saving
    exists = Place.exists

    def overtaken(place):
        if any(other.glob(".out.keepsum-*")):
            (other / "out").mkdir()
        return exists(place)

    monkeypatch.setattr(Place, "exists", overtaken)
    with pytest.raises(ks.InputError, match="must not exist yet"):
        released.save(f"{system}/to/out")
    assert [path.name for path in other.iterdir()] == ["out"]
    assert list((other / "out").iterdir()) == []


def test_a_folder_that_comes_at_the_last_moment_stays_as_it_is(saving, monkeypatch):
    """Hadoop's rename would move the release into it, and say that all is well."""
    released, other, system = saving
    rename = Place._rename_by_hadoop

    def overtaken(place, to):
        (other / "out").mkdir()
        (other / "out" / "mine").touch()
        return rename(place, to)

    monkeypatch.setattr(Place, "_rename_by_hadoop", overtaken)
    with pytest.raises(ks.InputError, match="must not exist yet"):
        released.save(f"{system}/to/out")
    assert [path.name for path in other.iterdir()] == ["out"]
    assert [path.name for path in (other / "out").iterdir()] == ["mine"]
    monkeypatch.undo()
    released.save(f"{system}/to/elsewhere")
    assert ks.verify(other / "elsewhere")


def test_what_was_published_before_an_interrupt_is_saved(saving, spark, monkeypatch):
    """The copy that is left in the staging folder is removed last, and nothing can be published from a part of it."""
    released, other, system = saving

    def interrupted(place):
        raise KeyboardInterrupt

    monkeypatch.setattr(Place, "delete", interrupted)
    with pytest.raises(KeyboardInterrupt):
        released.save(f"{system}/to/out")
    monkeypatch.undo()
    assert ks.verify(other / "out")
    with pytest.raises(ks.InputError, match="must be saved once"):
        released.save(f"{system}/to/again")


def test_nothing_is_saved_of_a_table_that_is_gone(saving, monkeypatch):
    """Because it was deleted, or because a save was interrupted right after its rename."""
    released, other, _ = saving
    rename = os.rename

    def interrupted(old, new):
        rename(old, new)
        raise KeyboardInterrupt

    monkeypatch.setattr("keepsum.spark.places.os.rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        released.save(other / "out")
    monkeypatch.undo()
    assert ks.verify(other / "out")
    with pytest.raises(ks.InputError, match="must be there to be saved, and is not"):
        released.save(other / "again")
    assert not (other / "again").exists()


def test_a_folder_that_comes_before_the_rename_stays(saving, monkeypatch):
    released, other, _ = saving
    made = Path.mkdir

    def overtaken(path, *more, **options):
        if path.name == "out":
            made(path)
        return made(path, *more, **options)

    monkeypatch.setattr(Path, "mkdir", overtaken)
    with pytest.raises(ks.InputError, match="must not exist yet"):
        released.save(other / "out")
    assert list((other / "out").iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_refused(saving, tmp_path):
    released, other, system = saving
    (tmp_path / "file").write_text("mine")
    for wrong in (tmp_path / "file" / "out", f"{system}/out", "/proc/out", "hdfs://127.0.0.1:1/out"):
        with pytest.raises(ks.InputError):
            released.save(wrong)
    assert (tmp_path / "file").read_text() == "mine"
    released.save(other / "out")
    assert ks.verify(other / "out")


def test_a_release_is_copied_to_another_disk_and_then_renamed(saving, monkeypatch):
    """Hadoop would copy it to where it is to be seen, piece by piece."""
    released, other, _ = saving
    rename, renamed = os.rename, []

    def of_disks(old, new):
        renamed.append(Path(old).name)
        if len(renamed) == 1:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(old, new)

    monkeypatch.setattr("keepsum.spark.places.os.rename", of_disks)
    released.save(other / "out")
    assert renamed[1].startswith(".out.keepsum-")
    assert [path.name for path in other.iterdir()] == ["out"]
    assert ks.verify(other / "out")
