"""Faults at a chosen moment: the so many-th operation on disk of a piece of work fails, is interrupted, or is the last.

The moments are operations, and not seconds: how busy the machine is does not matter. The work runs in a process of its
own, forked from this one, so that everything is loaded and nothing is left behind.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keepsum.sampling.core import forking

# Python tells an audit hook of each of these before it happens.
CHANGES = {"os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir"}
DISK = CHANGES | {"open", "os.listdir", "os.scandir", "fcntl.flock"}


def kill() -> None:
    """The process is no more."""
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt() -> None:
    """Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


def terminate() -> None:
    """What an operating system sends before it shuts down."""
    signal.raise_signal(signal.SIGTERM)


def fail() -> None:
    """The operation is refused."""
    raise OSError(errno.EIO, "Input/output error")


@dataclass(frozen=True)
class Outcome:
    """How work in a process of its own ended: what it returned, or the error; None if it was killed.

    ``operations`` says of each operation on disk whether it may change something there.
    """

    result: Any
    error: str | None
    operations: list[bool]


class Fork:
    """Work in a process of its own, with something happening at one of its operations in a folder."""

    def __init__(
        self, work: Callable[[], Any], folder: Path, moment: int = 0, fault: Callable[[], None] = lambda: None
    ) -> None:
        read, write = os.pipe()
        self._child = _fork()
        if self._child == 0:
            gc.freeze()  # else a collection would go through all that the parent has, and copy it
            os.close(read)
            try:
                found = _worked(work, str(folder), moment, fault)
                with os.fdopen(write, "w") as answer:
                    json.dump(found, answer, default=str)
            finally:
                os._exit(0)
        os.close(write)
        self._answer = read

    def wait(self) -> Outcome:
        """Wait for the end of it."""
        with os.fdopen(self._answer) as answer:
            text = answer.read()
        os.waitpid(self._child, 0)
        return Outcome(*json.loads(text)) if text else Outcome(None, None, [])


def _fork() -> int:
    """Fork without freeing the locks of properties: no thread holds one here, and all classes would be looked at."""
    free, forking._free_properties = forking._free_properties, lambda: None
    try:
        return os.fork()
    finally:
        forking._free_properties = free


def _worked(
    work: Callable[[], Any], folder: str, moment: int, fault: Callable[[], None]
) -> tuple[Any, str | None, list[bool]]:
    seen: list[bool] = []
    watching = [True]

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if not watching[0] or event not in DISK:
            return
        if event != "fcntl.flock" and not _is_below(arguments[0], folder):
            return
        seen.append(event in CHANGES or (event == "open" and bool(arguments[2] & os.O_CREAT)))
        if len(seen) == moment:
            fault()

    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.addaudithook(look)
    try:
        result, error = work(), None
    except BaseException as problem:
        result, error = None, f"{type(problem).__name__}: {problem}"
    watching[0] = False
    return result, error, seen


def _is_below(path: Any, folder: str) -> bool:
    """Names without a folder are those of entries of a folder that is being removed."""
    return isinstance(path, (str, os.PathLike)) and (os.fspath(path).startswith(folder) or not Path(path).is_absolute())


def operations_of(work: Callable[[], Any], folder: Path) -> list[bool]:
    """The operations of work that comes to its end."""
    found = Fork(work, folder).wait()
    assert found.error is None, found.error
    return found.operations


def changes_of(work: Callable[[], Any], folder: Path) -> list[int]:
    """Its moments before something changes on disk, and the moment after the last of them if there is one."""
    operations = operations_of(work, folder)
    return [k + 1 for k, changes in enumerate(operations) if changes or (k and operations[k - 1])]


def in_shell(
    arguments: list[str], folder: Path, stdout: str | None = None, start: Callable[[list[str]], int] | None = None
) -> Callable[[], tuple[int, str, str]]:
    """The command, to be forked: its status, what it printed, and what it complained of.

    ``stdout`` is a file that it prints to instead, "closed", or "broken" for a pipe that nobody reads.
    """

    def work() -> tuple[int, str, str]:
        os.chdir(folder.parent)
        said, complaints = folder.parent / "said.txt", folder.parent / "complaints.txt"
        _onto(2, complaints)
        if stdout == "closed":
            os.close(1)
        elif stdout == "broken":
            read, write = os.pipe()
            os.close(read)
            os.dup2(write, 1)
        else:
            _onto(1, said if stdout is None else Path(stdout))
        sys.stdout = sys.__stdout__ = None if stdout == "closed" else _stream(1)
        sys.stderr = sys.__stderr__ = _stream(2)
        try:
            status = (start or _run)(arguments)
        except SystemExit as end:
            status = end.code
        except BaseException:
            traceback.print_exc()
            status = 1
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        shown = said.read_text() if said.exists() else ""
        return status, shown, complaints.read_text()

    return work


def _stream(number: int) -> io.TextIOWrapper:
    """A stream as Python makes it: it does not close its descriptor."""
    return io.TextIOWrapper(io.FileIO(number, "w", closefd=False))


def _run(arguments: list[str]) -> int:
    from keepsum.cli.app import run

    return run(arguments)


def _onto(number: int, path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | (0 if str(path).startswith("/dev") else os.O_TRUNC), 0o644)
    os.dup2(descriptor, number)
    os.close(descriptor)
