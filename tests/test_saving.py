import itertools
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import keepsum as ks
from keepsum.certificate import Certificate
from keepsum.declaring import read_released
from keepsum.recording import domain_of
from keepsum.releasing import Destination
from keepsum.writing import table_hash

LAPLACE = ks.Laplace(epsilon=0.25)


def test_a_file_and_its_certificate(released, tmp_path):
    path = released.save(tmp_path / "out.csv")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.certificate.json", "out.csv"]
    assert path == tmp_path / "out.csv"
    assert ks.verify(path)
    with pytest.raises(ks.InputError, match="must not exist yet"):
        released.save(path)
    released.save(path, force=True)
    assert ks.verify(path)


def test_a_folder(released, tmp_path):
    released.save(f"{tmp_path}/out/")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["certificate.json", "table.csv"]
    assert ks.verify(tmp_path / "out")
    with pytest.raises(ks.InputError, match="must not exist yet"):
        released.save(f"{tmp_path}/out/")
    released.save(tmp_path / "out", force=True)
    (tmp_path / "out" / "thesis.docx").touch()
    with pytest.raises(ks.InputError, match=r"nothing but a release, it holds 'thesis.docx'"):
        released.save(tmp_path / "out", force=True)
    (tmp_path / "empty").mkdir()
    released.save(tmp_path / "empty")
    assert ks.verify(tmp_path / "empty")


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow", "out.tsv"])
def test_other_kinds_of_files(released, tmp_path, name):
    assert ks.verify(released.save(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no/where.csv", "must exist"),
        ("out.xlsx", "must end in"),
        ("out", "a folder such as"),
        ("no/folder/", "must exist"),
    ],
)
def test_bad_outputs(released, tmp_path, name, words):
    with pytest.raises(ks.InputError, match=words):
        released.save(f"{tmp_path}/{name}")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_when_the_disk_is_full(released, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("keepsum.saving.os.fsync", full)
    with pytest.raises(ks.InputError, match="No space left"):
        released.save(tmp_path / "out.csv")
    with pytest.raises(ks.InputError, match="No space left"):
        released.save(f"{tmp_path}/folder/")
    assert list(tmp_path.iterdir()) == []


def test_subsets_go_to_a_file_of_their_own(children, tmp_path):
    keep = ks.Invariants.subsets(16, [range(8), range(4, 12)])
    out = ks.plan(keep, LAPLACE).release(children)
    path = out.save(tmp_path / "out.csv")
    assert ks.verify(path)
    (tmp_path / "out.invariants.json").rename(tmp_path / "gone.json")
    failed = ks.verify(path)
    assert not failed
    assert "not beside it" in repr(failed)
    plain = ks.release(children, keep=["county"], mechanism=LAPLACE)
    (tmp_path / "gone.json").rename(tmp_path / "out.invariants.json")
    plain.save(path, force=True)
    assert not (tmp_path / "out.invariants.json").exists()


def complete(folder: Path) -> str:
    """What stands in a folder after a crash: nothing, a certificate alone, or a table with its own certificate."""
    table = folder / "out.csv"
    certificate = folder / "out.certificate.json"
    if (folder / "out").exists():
        table, certificate = folder / "out" / "table.csv", folder / "out" / "certificate.json"
    if not table.exists():
        return "certificate" if certificate.exists() else "nothing"
    record = Certificate.from_json(certificate.read_bytes())
    assert table_hash(read_released(table, domain_of(record.domain), record.table.count)) == record.table.sha256
    return "release"


def killed_at_call(moment: int, work: Callable[[], object]) -> None:
    """Do the work in a process of its own, which is killed at its so many-th call or return of any function.

    Calls, and not seconds: how busy the machine is does not matter. The process has imported everything.
    """
    child = os.fork()
    if child == 0:
        calls = itertools.count(1)

        def look(*_: object) -> None:
            if next(calls) == moment:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.setprofile(look)
            work()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def calls_of(work: Callable[[], object]) -> int:
    """How many calls and returns the work has."""
    calls = itertools.count()
    before = sys.getprofile()
    sys.setprofile(lambda *_: next(calls))
    try:
        work()
    finally:
        sys.setprofile(before)
    return next(calls)


@pytest.mark.parametrize("target", ["out.csv", "out/"])
@pytest.mark.parametrize("force", [False, True])
def test_a_killed_process_leaves_a_table_only_with_its_certificate(children, tmp_path, target, force):
    """50 kills at random moments for each way of writing, 200 in all, and once none."""
    plan = ks.plan(children.keep("county", "education"), LAPLACE)
    releases = [plan.release(children) for _ in range(2)]
    moments = random.Random(f"{target} {force}")

    def write(folder: Path) -> None:
        for release in releases if force else releases[:1]:
            release.save(f"{folder}/{target}", force=force)

    for name in ("warm", "counted"):
        (tmp_path / name).mkdir()
        calls = calls_of(lambda: write(tmp_path / name))  # noqa: B023
    seen = []
    for attempt in range(51):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        killed_at_call(moments.randint(1, calls) if attempt < 50 else 0, lambda: write(folder))  # noqa: B023
        seen.append(complete(folder))
        releases[0].save(f"{folder}/{target}", force=force or seen[-1] == "release")  # and it can go on from there
        assert complete(folder) == "release"
        assert not any(file.name.endswith(".part") for file in folder.iterdir())
    assert "release" in seen
    assert len(set(seen)) > 1 or force


def test_a_writer_in_the_wrong_order_would_be_caught(children, tmp_path):
    """The check of the test above fails for a table with the certificate of another."""
    plan = ks.plan(children.keep("county"), LAPLACE)
    plan.release(children).save(tmp_path / "out.csv")
    other = tmp_path / "other"
    other.mkdir()
    plan.release(children).save(other / "out.csv")
    (other / "out.csv").replace(tmp_path / "out.csv")
    with pytest.raises(AssertionError):
        complete(tmp_path)


def test_another_tables_certificate_is_no_orphan(released, tmp_path):
    released.save(tmp_path / "out.csv")
    with pytest.raises(ks.InputError, match="must not exist yet"):
        released.save(tmp_path / "out.parquet")
    assert ks.verify(tmp_path / "out.csv")


def test_of_two_savers_at_once_one_is_refused(released, tmp_path, monkeypatch):
    """The other one appears between the check and the writing."""
    real = Destination.check

    def check_and_be_late(self, force):
        found = real(self, force)
        monkeypatch.setattr(Destination, "check", real)
        released.save(tmp_path / "out.csv")
        return found

    monkeypatch.setattr(Destination, "check", check_and_be_late)
    with pytest.raises(ks.InputError, match="it does by now"):
        released.save(tmp_path / "out.csv")
    assert complete(tmp_path) == "release"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.certificate.json", "out.csv"]


def test_symbolic_links(released, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    released.save(tmp_path / "link")
    released.save(tmp_path / "link", force=True)
    assert (tmp_path / "link").is_symlink()
    assert ks.verify(tmp_path / "real")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link", "real"]
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nowhere.csv")
    with pytest.raises(ks.InputError, match="must not exist yet"):
        released.save(tmp_path / "gone.csv")


def test_long_names(released, tmp_path):
    """As long as a file system allows for all that is written."""
    assert ks.verify(released.save(tmp_path / f"{'a' * 230}.csv"))


@pytest.mark.parametrize("output", ["", 5, None])
def test_outputs_that_are_no_names(released, output):
    with pytest.raises(ks.InputError, match="Output must be"):
        released.save(output)
