"""``--output -`` where the table cannot be written completely, or a process is stopped: what is said, what stays."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import keepsum as ks
from cli.to_stream import COUNTS, TO_STREAM, forked, names, release
from command import KEEPSUM
from faults import Fork, changes_of, in_shell, interrupt, kill, terminate
from keepsum.cli import app, screen
from support import HANG

PIPE_HOLDS = 2**16  # bytes
SPENT = "If anybody may have seen a part of the table, that was a release"


def large(folder: Path) -> None:
    """A table that does not fit into a pipe."""
    rows = [f"county {k},{age},{k}" for k in range(2_000) for age in ("0-17", "18-64", "65+")]
    (folder / "large.csv").write_text("\n".join(["county,age,n", *rows]) + "\n")
    assert (folder / "large.csv").stat().st_size > PIPE_HOLDS


# The table cannot be written completely.


def test_a_full_disk(folder):
    status, _, complaints = forked(release(*TO_STREAM), folder, stdout="/dev/full")
    assert status == 3
    assert "The table on standard output may be incomplete: No space left on device." in complaints
    assert "Its certificate is written: 'r.certificate.json'." in complaints
    assert SPENT in complaints
    assert "othing was released" not in complaints
    assert "Released " not in complaints
    assert ks.Certificate.from_json((folder / "r.certificate.json").read_bytes())
    assert names(folder) == {"r.certificate.json"}


@pytest.mark.audit
@pytest.mark.parametrize("unbuffered", ["", pytest.param("1", marks=pytest.mark.audit)])
def test_a_reader_who_leaves(folder, unbuffered):
    """As ``| head -1`` does."""
    large(folder)
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with (folder / "complaints.txt").open("wb") as complaints:
        arguments = release(*TO_STREAM, table="large.csv")
        process = subprocess.Popen([KEEPSUM, *arguments], stdout=subprocess.PIPE, stderr=complaints, env=environment)
        assert process.stdout.readline() == b"county,age,n\n"
        process.stdout.close()
        assert process.wait(timeout=HANG) == 3
    last = (folder / "complaints.txt").read_text().splitlines()[-1]
    assert last.startswith("keepsum: The table on standard output may be incomplete: standard output was closed.")
    assert SPENT in last
    assert names(folder) == {"large.csv", "r.certificate.json"}


@pytest.mark.audit
def test_stopped_while_the_reader_waits(folder):
    """A process that is told to end does so, although nobody reads on: nothing is left in a buffer."""
    large(folder)
    with (folder / "complaints.txt").open("wb") as complaints:
        arguments = release(*TO_STREAM, table="large.csv")
        process = subprocess.Popen([KEEPSUM, *arguments], stdout=subprocess.PIPE, stderr=complaints, bufsize=0)
        assert process.stdout.read(1) == b"c"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=HANG) == 3
        process.stdout.close()
    last = (folder / "complaints.txt").read_text().splitlines()[-1]
    assert "may be incomplete: the command was stopped. Its certificate is written" in last


def test_a_stream_that_takes_little_at_a_time(monkeypatch):
    class Slow(io.RawIOBase):
        taken = b""

        def writable(self):
            return True

        def write(self, data):
            self.taken += bytes(data[:3])
            return min(3, len(data))

    slow = Slow()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(slow)))
    with screen.reserved():
        screen.deliver(COUNTS.encode())
        assert slow.taken == COUNTS.encode()
        monkeypatch.setattr(Slow, "write", lambda *_: None)
        with pytest.raises(BlockingIOError, match="does not wait"):
            screen.deliver(b"more")


# Signals and processes that are killed.


def test_a_signal_at_each_change_on_disk(folder):
    """Stopped with nothing written, or a certificate and the sentence that the table may be incomplete."""
    place = folder / "place"
    place.mkdir()
    arguments = release("--output", "-", "--certificate", f"{place}/r.certificate.json")
    assert app.run(release("--output", "warm.csv")) == 0  # so that forks have everything loaded
    seen = []
    for turn, moment in enumerate(changes_of(in_shell(arguments, place), place)):
        for path in place.iterdir():
            path.unlink()
        fault, stopped = ((interrupt, 130), (terminate, 143))[turn % 2]
        status, said, complaints = Fork(in_shell(arguments, place), place, moment, fault).wait().result
        assert "Traceback" not in complaints
        assert said == ""
        seen.append((place / "r.certificate.json").exists())
        assert status == (3 if seen[-1] else stopped)
        assert ("may be incomplete: the command was stopped" if seen[-1] else "nothing was released") in complaints
        assert len(list(place.iterdir())) == seen[-1]
    assert set(seen) == {False, True}


@pytest.mark.audit
def test_killed_while_a_certificate_is_replaced(folder, capsys):
    place = folder / "place"
    place.mkdir()
    arguments = release("--output", "-", "--certificate", f"{place}/r.certificate.json")
    assert app.run([*arguments, "--nonnegative"]) == 0
    old = {path.name: path.read_bytes() for path in place.iterdir()}
    assert set(old) == {"r.certificate.json", "r.unbiased.csv"}
    work = in_shell([*arguments, "--force"], place)
    restored = 0
    for moment in changes_of(work, place):
        shutil.rmtree(place)
        place.mkdir()
        for name, data in old.items():
            (place / name).write_bytes(data)
        Fork(work, place, moment, kill).wait()
        capsys.readouterr()
        assert app.run(arguments) == 6  # puts back what has to be
        errors = capsys.readouterr().err
        restored += "the old one was restored" in errors
        assert "already exists" in errors
        now = {path.name: path.read_bytes() for path in place.iterdir() if not path.name.startswith(".")}
        if now != old:
            assert set(now) == {"r.certificate.json"}
            assert json.loads(now["r.certificate.json"])["postprocessing"] == []
    assert restored
