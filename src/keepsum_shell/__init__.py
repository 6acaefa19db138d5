"""The entry point of the command ``keepsum``, which runs before the library and its dependencies are loaded.

Loading takes a second or two. Meanwhile the command can be interrupted, may have been started with closed streams, or
may have so little memory that a dependency hangs. So this module lives outside the package and imports it late.
"""

from __future__ import annotations

import contextlib
import os
import sys

from keepsum_shell.dumping import forbid_core_dumps
from keepsum_shell.stopping import STOPPED, Stop
from keepsum_shell.streams import keep_standard_output

TOO_LITTLE_MEMORY = 7  # the exit status, as in keepsum.errors, which is not loaded yet
LEAST_MEMORY = 600 * 10**6  # bytes of address space; with less, the libraries for plots and compilation do not load
ONE_THREAD_BELOW = 8 * 10**9  # bytes; below this OpenBLAS, which allocates memory per thread, gets one thread


def main() -> None:
    """Run ``keepsum``; the command line needs typer and rich, which the library does not."""
    forbid_core_dumps()
    open_streams()
    keep_standard_output()
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
            f"The memory limit of this shell must be at least {LEAST_MEMORY // 10**6} MB, got {limit // 10**6} MB. "
            f"Raise it (ulimit -v)."
        )
        return TOO_LITTLE_MEMORY
    if limit is not None and limit < ONE_THREAD_BELOW:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from keepsum.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        from keepsum._extras import missing

        say(missing("The command line", "cli", error.name))
        return 2
    except (ImportError, OSError, MemoryError):
        if limit is None:
            raise
        say(f"Memory ran out while loading: this shell allows {limit // 10**6} MB. Raise its limit (ulimit -v).")
        return TOO_LITTLE_MEMORY
    return run(sys.argv[1:], stop)


def open_streams() -> None:
    """Point closed streams at the null device, so that no file opened later takes their place and is written into."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor, which is this one
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115


def say(message: str) -> None:
    """Print one sentence to standard error; if that fails, the exit status alone has to do."""
    with contextlib.suppress(OSError, ValueError):
        print(f"keepsum: {message}", file=sys.stderr, flush=True)


def memory_limit() -> int | None:
    """The limit on the address space of this process in bytes, if there is one."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit
