"""How a command ends: stopped, unheard, or beside another one. It says what is on disk, and nothing is left over."""

import os
import random
import signal
import sys
from pathlib import Path

import pytest

import keepsum as ks
import keepsum_shell
from faults import Fork, changes_of, in_shell, interrupt, terminate
from keepsum.cli import app
from keepsum.releasing.release import Prepared
from keepsum.sources.atomic import claimed

COUNTS = "county,age,n\nA,0-17,5\nA,18-64,6\nA,65+,7\nB,0-17,8\nB,18-64,9\nB,65+,10\n"


@pytest.fixture(scope="module", autouse=True)
def loaded(tmp_path_factory):
    """A release in this process, so that those that are forked from it have everything loaded."""
    folder = tmp_path_factory.mktemp("loaded")
    (folder / "counts.csv").write_text(COUNTS)
    (folder / "place").mkdir()
    assert app.run(release(folder / "place")) == 0
    assert app.run(["verify", f"{folder}/place/out.csv"]) == 0


@pytest.fixture
def folder(tmp_path):
    """An empty folder for the output, with the table beside it."""
    (tmp_path / "counts.csv").write_text(COUNTS)
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def release(folder: Path, *more: str, output: str = "out.csv") -> list[str]:
    table = str(folder.parent / "counts.csv")
    options = ["--count", "n", "--keep", "county", "--epsilon", "0.5", "--output", f"{folder}/{output}", "--yes"]
    return ["release", table, *options, *more]


def forked(arguments: list[str], folder: Path, **options):
    """Status, output and complaints of a command."""
    found = Fork(in_shell(arguments, folder, **options), folder).wait()
    assert found.error is None, found.error
    status, said, complaints = found.result
    assert "Traceback" not in complaints
    return status, said, complaints


def is_whole(folder: Path) -> bool:
    """Whether the release is there, with nothing else; otherwise there is nothing at all."""
    names = sorted(path.name for path in folder.iterdir())
    assert names in ([], ["out.certificate.json", "out.csv"])
    assert not names or ks.verify(folder / "out.csv")
    return bool(names)


# What was said after the release was there used to be "nothing was released".


@pytest.mark.parametrize(
    ("stdout", "options", "status", "reason"),
    [
        ("broken", ["--json"], 3, "standard output was closed"),
        ("/dev/full", ["--json"], 3, "No space left on device"),
    ],
)
def test_a_release_that_cannot_be_reported_is_told_elsewhere(folder, stdout, options, status, reason):
    found, _, complaints = forked(release(folder, *options), folder, stdout=stdout)
    assert found == status
    assert is_whole(folder)
    assert f"The release is written: '{folder}/out.csv' with its certificate" in complaints
    assert reason in complaints
    assert "othing was released" not in complaints


@pytest.mark.parametrize("stdout", ["broken", "/dev/full"])
def test_nothing_is_released_if_what_must_be_known_before_cannot_be_shown(folder, stdout):
    status, _, complaints = forked(release(folder), folder, stdout=stdout)
    assert status == 5
    assert not is_whole(folder)
    assert complaints.count("keepsum: ") == 1


def test_a_reader_who_had_enough_is_no_failure(folder, monkeypatch):
    """The pipe breaks at the very end, as it does for ``| head -1``."""
    monkeypatch.setattr(app.typer, "echo", _broken_from("Released"))
    status, _, complaints = forked(release(folder), folder)
    assert status == 0
    assert is_whole(folder)
    assert f"The release is written: '{folder}/out.csv'" in complaints


def _broken_from(word):
    real = app.typer.echo

    def echo(message=None, **options):
        if str(message).startswith(word):
            raise BrokenPipeError(32, "Broken pipe")
        real(message, **options)

    return echo


@pytest.mark.parametrize("stdout", ["broken", "/dev/full"])
def test_keys_that_cannot_be_reported_are_told_elsewhere(folder, stdout):
    status, _, complaints = forked(["keygen", f"{folder}/key.pem"], folder, stdout=stdout)
    assert status == 3
    assert sorted(path.name for path in folder.iterdir()) == ["key.pem", "key.pub.pem"]
    assert f"The keys are written: private '{folder}/key.pem'" in complaints


def test_a_verdict_that_cannot_be_shown_is_told_elsewhere(folder):
    forked(release(folder), folder)
    status, _, complaints = forked(["verify", f"{folder}/out.csv"], folder, stdout="/dev/full")
    assert status == 3
    assert "The release verifies" in complaints
    lines = (folder / "out.csv").read_text().splitlines()
    (folder / "out.csv").write_text("\n".join([*lines[:-1], "B,65+,999"]) + "\n")
    status, _, complaints = forked(["verify", f"{folder}/out.csv"], folder, stdout="broken")
    assert status == 1
    assert "The release does not verify: hash, kept totals." in complaints


def test_a_plan_that_cannot_be_shown(folder):
    for stdout in ("broken", "/dev/full"):
        arguments = ["plan", *release(folder)[1:8]]
        status, _, complaints = forked(arguments, folder, stdout=stdout)
        assert status == 5
        assert complaints.count("keepsum: ") == 1


# Streams that are closed from the start gave tracebacks.


def _start(arguments):
    sys.argv = ["keepsum", *arguments]
    keepsum_shell.main()


@pytest.mark.parametrize("closed", [[1], [2], [0, 1, 2]])
def test_closed_streams_go_nowhere(folder, closed):
    """No traceback, and no file is opened in their place, which would then be printed into."""

    def start(arguments):
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            if number in closed:
                os.close(number)
                setattr(sys, name, None)
        return _start(arguments)

    status, _, complaints = forked(release(folder), folder, start=start)
    assert status == 0
    assert is_whole(folder)
    if closed == [1]:
        assert f"The release is written: '{folder}/out.csv'" in complaints


def test_a_complaint_that_nobody_can_read_leaves_the_status(folder):
    def start(arguments):
        os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
        return _start(arguments)

    status, _, _ = forked(release(folder, "--epsilon", "much"), folder, start=start)
    assert status == 2


# Signals.


@pytest.mark.audit
def test_a_signal_at_each_change_on_disk(folder):
    """Once anything changes on disk a signal waits: the release comes to its end and is told of, with nothing left."""
    seen = []
    for turn, moment in enumerate(changes_of(in_shell(release(folder), folder), folder)):
        for path in folder.iterdir():
            path.unlink()
        fault, stopped = ((interrupt, 130), (terminate, 143))[turn % 2]
        found = Fork(in_shell(release(folder), folder), folder, moment, fault).wait()
        status, _, complaints = found.result
        assert "Traceback" not in complaints
        seen.append(is_whole(folder))
        assert status == (3 if seen[-1] else stopped)
        words = f"The release is written: '{folder}/out.csv'" if seen[-1] else "nothing was released"
        assert words in complaints
    assert seen == sorted(seen)
    assert set(seen) == {False, True}


@pytest.mark.audit
def test_a_signal_at_any_call(folder):
    """At calls of functions anywhere from the first to the last: what is said is what is there."""

    def calls(moment, number):
        def start(arguments):
            count = 0

            def look(*_):
                nonlocal count
                count += 1
                if count == moment:
                    signal.raise_signal(number)

            sys.setprofile(look)
            try:
                status = app.run(arguments)
            finally:
                sys.setprofile(None)
            return status if moment else count

        return start

    total, _, _ = forked(release(folder), folder, start=calls(0, 0))
    chance = random.Random(13)
    seen = []
    for moment in [chance.randint(total // 50, total) for _ in range(8)] + [total - 300 * k for k in range(1, 5)]:
        for path in folder.iterdir():
            path.unlink()
        number = chance.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
        status, said, complaints = forked(release(folder), folder, start=calls(moment, number))
        seen.append(is_whole(folder))
        if not seen[-1]:
            assert status == 128 + number
            assert complaints == "keepsum: Stopped; nothing was released or written.\n"
        elif status == 3:
            assert f"The release is written: '{folder}/out.csv'" in complaints
        else:  # all was said before it came
            assert status == 0
            assert "Certificate " in said
    assert set(seen) == {False, True}


def test_signals_after_the_first_change_nothing(folder, monkeypatch):
    """While things are put in order on the way out, another Ctrl-C does not stop that."""
    order = []

    def draw(*_, **__):
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGTERM)
            order.append("in order")
        raise AssertionError

    monkeypatch.setattr(Prepared, "draw", draw)
    before = signal.getsignal(signal.SIGINT)
    assert app.run(release(folder)) == 130
    assert order == ["in order"]
    assert signal.getsignal(signal.SIGINT) is before
    assert not is_whole(folder)


def test_a_signal_while_the_library_is_loaded(monkeypatch, capsys):
    """It took a second or two in which Ctrl-C gave a traceback."""

    class Loading:
        def find_spec(self, name, *_):
            if name == "keepsum.cli.app":
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(keepsum_shell, "forbid_core_dumps", lambda: None)  # in the process of the tests
    monkeypatch.delitem(sys.modules, "keepsum.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Loading(), *sys.meta_path])
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with pytest.raises(SystemExit) as end:
            keepsum_shell.main()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert end.value.code == 130
    assert capsys.readouterr().err == "keepsum: Stopped; nothing was released or written.\n"


# Two runs of one output.


def test_the_second_of_two_runs_has_drawn_nothing(folder, monkeypatch, capsys):
    def draw(*_, **__):
        raise AssertionError

    monkeypatch.setattr(Prepared, "draw", draw)
    for more in ([], ["--force"]):
        with claimed(folder / "out.certificate.json"):
            assert app.run(release(folder, *more)) == 5
        assert "another process is writing it. Nothing was written." in capsys.readouterr().err
        assert not is_whole(folder)


def test_the_lock_is_taken_before_the_draw(folder, monkeypatch):
    """While one draws, another cannot claim the same place by another name."""
    refused = []
    real = Prepared.draw
    (folder.parent / "link").symlink_to(folder)

    def draw(*arguments, **options):
        with (
            pytest.raises(ks.InputError, match="another process"),
            claimed(folder.parent / "link/out.certificate.json"),
        ):
            pass
        refused.append(True)
        return real(*arguments, **options)

    monkeypatch.setattr(Prepared, "draw", draw)
    assert app.run(release(folder)) == 0
    assert refused == [True]
    assert is_whole(folder)


@pytest.mark.audit
def test_a_release_that_was_being_replaced_is_put_back_first(folder, capsys):
    assert app.run(release(folder)) == 0
    old = (folder / "out.csv").read_bytes()
    work = in_shell(release(folder, "--force"), folder)
    for moment in changes_of(work, folder):
        Fork(work, folder, moment, lambda: os.kill(os.getpid(), signal.SIGKILL)).wait()
        if not (folder / "out.csv").exists():
            break
        (folder / "out.csv").unlink()
        (folder / "out.certificate.json").unlink()
        assert app.run(release(folder)) == 0
        old = (folder / "out.csv").read_bytes()
    assert not (folder / "out.csv").exists()
    capsys.readouterr()
    assert app.run(release(folder)) == 6
    errors = capsys.readouterr().err
    assert "warning: A process was killed while it replaced a release; the old one was restored" in errors
    assert "already exists" in errors
    assert (folder / "out.csv").read_bytes() == old
