"""What the command ``keepsum`` runs first, before the library and all that it needs are loaded.

Loading takes a second or two, and a command can be stopped in it, started with its streams closed, or given so little
memory that a library below never comes back. So this stands outside the package and imports nothing of it until then.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

STOPPED = "Stopped, and nothing was released or written."
LEAST_MEMORY = 600 * 10**6  # bytes of addresses: with less, libraries that draw and compile cannot be loaded
FEW_THREADS = 8 * 10**9  # below this a library that takes memory for each processor is told to take it for one


class Stop:
    """The first of SIGINT, SIGTERM and SIGHUP ends the command by an exception; those after it change nothing.

    So whatever the command puts in order on its way out it does undisturbed. Ignored signals stay ignored (nohup).
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self.closed = False
        self._before: dict[int, Any] = {}
        if threading.current_thread() is not threading.main_thread():  # where no signal is heard
            return
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) not in (None, signal.SIG_IGN):
                self._before[number] = signal.signal(number, self._heard)

    def restore(self) -> None:
        """Let signals do again what they did before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _heard(self, number: int, _: FrameType | None) -> None:
        if self.number is None and not self.closed:
            self.number = number
            raise KeyboardInterrupt

    @property
    def status(self) -> int:
        """What the shell is told of a command that was stopped."""
        return 128 + (self.number or signal.SIGINT)


def main() -> None:
    """Run ``keepsum``; the shell needs typer and rich, which the library does not."""
    open_streams()
    stop = Stop()
    try:
        status = _run(stop)
    except KeyboardInterrupt:
        say(STOPPED)
        status = stop.status
    sys.exit(status)


def _run(stop: Stop) -> int:
    limit = memory_limit()
    if limit is not None and limit < LEAST_MEMORY:
        say(
            f"Memory must be at least {LEAST_MEMORY // 10**6} MB to run at all, and this shell allows "
            f"{limit // 10**6} MB. Raise its limit (ulimit -v)."
        )
        return 2
    if limit is not None and limit < FEW_THREADS:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from keepsum.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        say(f"The command line needs {error.name}, which is not installed. Install it with: pip install 'keepsum[cli]'")
        return 2
    except (ImportError, OSError, MemoryError):
        if limit is None:
            raise
        say(f"Memory ran out while loading: this shell allows {limit // 10**6} MB. Raise its limit (ulimit -v).")
        return 2
    return run(sys.argv[1:], stop)


def open_streams() -> None:
    """Let closed streams go nowhere, and no file be opened in their place, which would then be written into."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115


def say(words: str) -> None:
    """One sentence for people; where nobody can read it the status has to do."""
    with contextlib.suppress(OSError, ValueError):
        print(f"keepsum: {words}", file=sys.stderr, flush=True)


def memory_limit() -> int | None:
    """How many bytes of addresses this process may have, if that is limited."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit
