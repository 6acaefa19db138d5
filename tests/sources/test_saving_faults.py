"""Releases that are saved while something goes wrong: killed, interrupted, a failing disk, several at once."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import keepsum as ks
from faults import Fork, Outcome, changes_of, fail, interrupt, kill, operations_of
from keepsum import Certificate
from keepsum.ledger import importing as ledger
from keepsum.releasing import destination
from keepsum.releasing.canonical import make_keys, public_hex, read_private_key, read_public_key
from keepsum.releasing.codec import domain_of
from keepsum.releasing.destination import Destination, read_statement
from keepsum.sources import atomic
from keepsum.sources.atomic import claimed, put_back
from keepsum.sources.declarations import read_released
from keepsum.sources.writing import table_bytes, table_hash

LAPLACE = ks.Laplace.per_unit(epsilon=0.25)


def complete(folder: Path) -> str:
    """What stands in a folder after a crash: nothing, a certificate alone, or a table with its own certificate."""
    table = folder / "out.csv"
    certificate = folder / "out.certificate.json"
    if (folder / "out").exists():
        table, certificate = folder / "out" / "table.csv", folder / "out" / "certificate.json"
    if not table.exists():
        return "certificate" if certificate.exists() else "nothing"
    record = Certificate.from_json(certificate.read_bytes())
    hashes = {table: record.table.sha256}
    if record.postprocessing:
        hashes = {table.with_suffix(".unbiased.csv"): record.table.sha256, table: record.postprocessing[0].sha256}
    for file, sha256 in hashes.items():
        assert table_hash(read_released(file, domain_of(record.domain), record.table.count)) == sha256
    return "release"


@pytest.fixture(scope="module")
def pair():
    """Two releases of one table: the first has a file of invariants and an unbiased table, the second has neither."""
    table = ks.Table.from_array([[5, 6, 7], [8, 9, 10]], axes={"county": ["A", "B"], "age": ["0", "1", "2"]})
    subsets = ks.Invariants.subsets(6, [[0, 1, 3]])
    first, second = (
        ks.plan(keep=subsets, mechanism=LAPLACE).release(table),
        ks.plan(table, keep=["county"], mechanism=LAPLACE).release(table),
    )
    return ks.postprocess.nonnegative(first), second


def contents(folder: Path) -> dict[str, bytes]:
    """Everything in a folder and below, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def saved(tmp_path):
    """What a folder holds after a release was saved there, and nothing else was."""

    def look(release, target):
        folder = tmp_path / "look"
        folder.mkdir(exist_ok=True)
        release.save(f"{folder}/{target}", force=True)
        held = contents(folder)
        shutil.rmtree(folder)
        return held

    return look


def without_exchange(monkeypatch):
    monkeypatch.setattr(atomic, "_exchanged", lambda a, b: False)


@pytest.mark.audit
@pytest.mark.parametrize(
    ("target", "turn"),
    [("out.csv", 1), pytest.param("out.csv", -1, marks=pytest.mark.audit), ("out/", 1), ("out/ by renames", 1)],
)
def test_a_killed_process_leaves_the_old_release_or_the_new_one(pair, saved, tmp_path, monkeypatch, target, turn):
    """Killed before each operation on disk: what stands is no mix, and the next look at it finds one of them whole."""
    if target.endswith("renames"):
        without_exchange(monkeypatch)
    target = target.split()[0]
    old, new = pair[::turn]
    wholes = [saved(old, target), saved(new, target)]
    folder = tmp_path / "place"

    def afresh() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        old.save(f"{folder}/{target}")

    afresh()
    seen = []
    for moment in changes_of(lambda: new.save(f"{folder}/{target}", force=True), folder):
        afresh()
        killed = Fork(lambda: new.save(f"{folder}/{target}", force=True), folder, moment, kill).wait()
        assert (killed.result, killed.error) == (None, None)
        complete(folder)
        assert ks.verify(f"{folder}/{target}".rstrip("/"))
        held = {name: data for name, data in contents(folder).items() if not name.startswith(".keepsum-")}
        seen.append(wholes.index(held))
        with pytest.raises(ks.InputError, match="already exists"):
            new.save(f"{folder}/{target}")
        new.save(f"{folder}/{target}", force=True)  # and it can go on from there, with nothing left over
        assert contents(folder) == wholes[1]
    assert seen == sorted(seen)
    assert set(seen) == {0, 1}


@pytest.mark.audit
@pytest.mark.parametrize("target", ["out.csv", "out/"])
def test_a_killed_process_leaves_a_new_release_or_none(pair, saved, tmp_path, target):
    whole = saved(pair[0], target)
    folder = tmp_path / "place"
    folder.mkdir()
    seen = []
    for moment in changes_of(lambda: pair[0].save(f"{folder}/{target}"), folder):
        shutil.rmtree(folder)
        folder.mkdir()
        Fork(lambda: pair[0].save(f"{folder}/{target}"), folder, moment, kill).wait()
        seen.append(complete(folder))
        if seen[-1] == "release":
            assert whole.items() <= contents(folder).items()
        pair[0].save(f"{folder}/{target}", force=seen[-1] == "release")
        assert contents(folder) == whole
    assert seen[-1] == "release"
    assert seen[0] == "nothing"


@pytest.mark.audit
@pytest.mark.parametrize("target", ["out.csv", "out/", "out/ by renames"])
@pytest.mark.parametrize("force", [False, True])
def test_a_disk_that_fails_once_leaves_what_it_was_or_what_was_meant(pair, saved, tmp_path, monkeypatch, target, force):
    """Each operation fails in turn. An error says that nothing was saved, and so it is; without one, all was."""
    if target.endswith("renames"):
        without_exchange(monkeypatch)
    target = target.split()[0]
    old, new = pair
    before = saved(old, target) if force else {}
    after = saved(new, target)
    folder = tmp_path / "place"

    def afresh() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if force:
            old.save(f"{folder}/{target}")

    def work() -> None:
        new.save(f"{folder}/{target}", force=force)

    afresh()
    failures = 0
    for moment, _ in enumerate(operations_of(work, folder), 1):
        afresh()
        outcome = Fork(work, folder, moment, fail).wait()
        failures += outcome.error is not None
        assert outcome.error is None or outcome.error.startswith("UnreachableError: ")
        if outcome.error is not None:
            put_back(Destination.at(f"{folder}/{target}").key)
        held = {name: data for name, data in contents(folder).items() if not name.startswith(".keepsum-")}
        assert held == (after if outcome.error is None else before)
    assert failures


@pytest.mark.audit
@pytest.mark.parametrize("target", ["out.csv", "out/"])
def test_an_interrupt_waits_until_a_release_is_saved(pair, saved, tmp_path, target):
    """KeyboardInterrupt comes out of ``save`` before anything is there or when all of it is."""
    wholes = {"old": saved(pair[0], target), "new": saved(pair[1], target)}
    folder = tmp_path / "place"

    def afresh() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        pair[0].save(f"{folder}/{target}")

    def work() -> None:
        pair[1].save(f"{folder}/{target}", force=True)

    afresh()
    seen = []
    for moment in changes_of(work, folder):
        afresh()
        outcome = Fork(work, folder, moment, interrupt).wait()
        assert outcome.error == "KeyboardInterrupt: "
        (state,) = [name for name, held in wholes.items() if held == contents(folder)]
        seen.append(state)
    assert seen[-1] == "new"
    assert seen == sorted(seen, reverse=True)


def test_a_writer_in_the_wrong_order_would_be_caught(children, tmp_path):
    """The check of the test above fails for a table with the certificate of another."""
    plan = ks.plan(children, keep=["county"], mechanism=LAPLACE)
    plan.release(children).save(tmp_path / "out.csv")
    other = tmp_path / "other"
    other.mkdir()
    plan.release(children).save(other / "out.csv")
    (other / "out.csv").replace(tmp_path / "out.csv")
    with pytest.raises(AssertionError):
        complete(tmp_path)


@pytest.mark.parametrize(
    ("target", "force"),
    [
        ("./link/out.csv", True),
        ("out/", False),
        *(
            pytest.param(*case, marks=pytest.mark.audit)
            for case in (("out.csv", False), ("out.parquet", False), ("out/", True))
        ),
    ],
)
def test_of_two_savers_at_once_one_is_refused(pair, tmp_path, target, force):
    """While one waits before each of its operations the other comes: one release stands, whole, and the other is told.

    The other calls the same place by another name, or writes a table of another kind beside the same certificate.
    """
    folder = tmp_path / "place"
    name = target.split("/")[-1] or "out/"
    first_name = name if name == "out/" else "out.csv"

    def afresh() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "link").symlink_to(folder)

    def first() -> None:
        pair[0].save(f"{folder}/{first_name}", force=force)

    def second() -> None:
        pair[1].save(f"{folder}/{target}", force=force)

    afresh()
    refused = 0
    for moment in changes_of(first, folder):
        afresh()
        (here, there), (again, back) = os.pipe(), os.pipe()

        def wait_for_the_other() -> None:
            os.write(there, b"x")  # noqa: B023
            os.read(again, 1)  # noqa: B023

        one = Fork(first, folder, moment, wait_for_the_other)
        os.read(here, 1)
        two = Fork(second, folder).wait()
        os.write(back, b"x")
        outcome = one.wait()
        for end in (here, there, again, back):
            os.close(end)
        assert None in (outcome.error, two.error)
        if two.error is not None and "another process is writing it" in two.error:
            refused += 1
            assert "still in memory" in two.error
        elif not force:
            assert len([error for error in (outcome.error, two.error) if error is not None]) == 1
        remaining = {path.name for path in folder.iterdir()} - {"link"}
        last = (
            first_name
            if two.error is not None or name == first_name
            else ("out.csv" if outcome.error is None else name)
        )
        extra = remaining & {"out.invariants.json", "out.unbiased.csv"}
        assert len(extra) in (0, 2)  # those of the first, or none
        assert remaining == ({"out"} if first_name == "out/" else {last, "out.certificate.json"} | extra)
        assert ks.verify(folder / last.rstrip("/"))
    assert refused > 5


@pytest.mark.audit
def test_many_savers_at_once(pair, tmp_path):
    """Twenty rounds of three processes, as they come: one release, its own certificate, and two that are told."""
    for turn in range(20):
        folder = tmp_path / str(turn)
        folder.mkdir()
        target = f"{folder}/out.csv" if turn % 2 else f"{folder}/out/"
        gate, opened = os.pipe()

        def work() -> None:
            os.read(gate, 1)  # noqa: B023
            pair[turn % 2].save(target)  # noqa: B023

        savers = [Fork(work, folder) for _ in range(3)]
        os.write(opened, b"xxx")
        errors = [saver.wait().error for saver in savers]
        os.close(gate)
        os.close(opened)
        assert errors.count(None) == 1
        assert all(error is None or "must be free" in error or "already exists" in error for error in errors)
        assert complete(folder) == "release"
        assert not any(path.name.startswith(".") for path in folder.iterdir())


@contextlib.contextmanager
def paused(work: Callable[[], Any], folder: Path, moment: int) -> Iterator[Callable[[], Outcome]]:
    """Work that waits before an operation on disk; what is yielded lets it come to its end, as the end of the block."""
    (here, there), (again, back) = os.pipe(), os.pipe()

    def wait() -> None:
        os.write(there, b"x")
        os.read(again, 1)

    fork, outcomes = Fork(work, folder, moment, wait), []

    def end() -> Outcome:
        if not outcomes:
            os.write(back, b"x")
            outcomes.append(fork.wait())
        return outcomes[0]

    try:
        os.read(here, 1)
        yield end
    finally:
        end()
        for descriptor in (here, there, again, back):
            os.close(descriptor)


@pytest.mark.parametrize("target", ["out.csv", "out/", pytest.param("out/ by renames", marks=pytest.mark.audit)])
def test_a_release_that_is_replaced_while_it_is_read_is_read_again(pair, tmp_path, monkeypatch, target):
    """Whenever the other comes, before any operation of a reader: what is verified is one release, old or new."""
    if target == "out/ by renames":
        without_exchange(monkeypatch)
    place = f"{tmp_path}/{target.split()[0]}"

    def verified() -> str:
        assert ks.verify(place)
        assert ledger.published(place, None)[2]
        return str(read_statement(place)[0].table.sha256)

    pair[0].save(place)
    operations = len(operations_of(verified, tmp_path))
    assert operations >= 10  # each of three readers opens the table, the certificate, and what is beside them
    for moment in range(1, operations + 1):
        pair[0].save(place, force=True)
        with paused(verified, tmp_path, moment) as end:
            pair[1].save(place, force=True)
        outcome = end()
        assert outcome.error is None, outcome.error
        assert outcome.result in [release.certificate.table.sha256 for release in pair]


@pytest.mark.parametrize("target", ["out.csv", "out/"])
def test_a_reader_waits_until_a_release_is_replaced(pair, tmp_path, monkeypatch, target):
    """Before each change that a saver makes a reader comes, and finds the old release or waits for the new one."""
    without_exchange(monkeypatch)
    place = f"{tmp_path}/{target}"
    pair[0].save(place)
    moments = changes_of(lambda: pair[1].save(place, force=True), tmp_path)
    waited = 0
    for moment in moments:
        pair[0].save(place, force=True)
        waits = []
        with paused(lambda: pair[1].save(place, force=True), tmp_path, moment) as end:

            def sleep(pause: float) -> None:
                waits.append(end() if pause else None)  # noqa: B023

            monkeypatch.setattr(destination, "time", SimpleNamespace(sleep=sleep))
            assert ks.verify(place)
        assert end().error is None
        waited += any(waits)
    assert waited > 1
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_reader_who_cannot_write_there_leaves_nothing_and_needs_no_lock(pair, tmp_path, monkeypatch):
    for target in ("out.csv", "out/"):
        pair[0].save(f"{tmp_path}/{target}")

    def refuse(*_: object) -> None:
        raise AssertionError("a reader takes no lock")

    monkeypatch.setattr(atomic, "_lock", refuse)
    for target in ("out.csv", "out/", "out.certificate.json"):
        assert True not in operations_of(lambda: bool(ks.read_release(f"{tmp_path}/{target}")), tmp_path)  # noqa: B023


def test_a_verification_does_not_judge_what_is_being_replaced(pair, tmp_path, monkeypatch):
    """A release whose replacement does not end is neither put back nor judged."""
    monkeypatch.setattr(destination, "PAUSES", (0.0,) * 3)
    path = pair[0].save(tmp_path / "out.csv")
    moments = changes_of(lambda: pair[1].save(path, force=True), tmp_path)
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    pair[0].save(path)
    for moment in moments:
        Fork(lambda: pair[1].save(path, force=True), tmp_path, moment, kill).wait()
        if not path.exists():
            break
    with claimed(tmp_path / "out.certificate.json"), pytest.raises(ks.InputError, match="Try again when"):
        ks.verify(path)
    assert ks.verify(path)
    assert path.read_bytes() == table_bytes(pair[0].table, "csv")


def test_a_release_that_links_lead_to_is_put_back_as_well(pair, tmp_path):
    """Links by other names in another folder: a moment without a table is none of a release that does not exist."""
    place, folder = tmp_path / "out.csv", tmp_path / "links"
    folder.mkdir()
    for ending in (".csv", ".certificate.json"):
        (folder / f"link{ending}").symlink_to(place.with_suffix(ending))
    pair[1].save(place)
    before = contents(tmp_path)
    with atomic.set_aside(place.with_suffix(".certificate.json"), place, []):
        backup = atomic.backup_path(place.with_suffix(".certificate.json"))
        shutil.copytree(backup, tmp_path / "killed")
    (tmp_path / "killed").rename(backup)  # as a process leaves it that is killed before it writes the new table
    assert not place.exists()
    assert ks.verify(folder / "link.csv")
    assert contents(tmp_path) == before


def test_keys_are_of_one_pair_whenever_their_maker_is_killed(tmp_path):
    private, public = tmp_path / "key.pem", tmp_path / "key.pub.pem"

    def work() -> None:
        make_keys(private, public, force=True)

    make_keys(private, public)
    for moment in changes_of(work, tmp_path):
        make_keys(private, public, force=True)
        Fork(work, tmp_path, moment, kill).wait()
        key = read_private_key(private)
        assert not public.exists() or public_hex(read_public_key(public)) == public_hex(key.public_key())
    make_keys(private, public, force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key.pem", "key.pub.pem"]
    with claimed(public), pytest.raises(ks.InputError, match="another process"):
        make_keys(private, public, force=True)
