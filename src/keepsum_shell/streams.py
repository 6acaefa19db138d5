"""Standard output of a program: for what the program prints, not for what compiled libraries do."""

from __future__ import annotations

import io
import os
import sys


def keep_standard_output() -> None:
    """Reserve standard output for ``sys.stdout``: what compiled code prints goes to the null device.

    HiGHS, the solver in SciPy, prints a line now and then whatever it is told, which would stand in the middle of a
    table or of JSON; in a pipe it waits in a buffer of the C library until the process ends. So descriptor 1 becomes
    the null device for good, and ``sys.stdout`` writes to another one. That is for programs, at their start, before
    there are threads: the library changes no stream of the process that it is used in. Started processes inherit the
    null device.
    """
    stream = sys.stdout
    if not isinstance(stream, io.TextIOWrapper) or _descriptor(stream) != 1:  # closed, or replaced by a caller
        return
    stream.flush()
    raw = os.dup(1)  # not inherited
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    buffering = 0 if isinstance(stream.buffer, io.RawIOBase) else -1  # 0 with python -u
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(  # type: ignore[misc]
        open(raw, "wb", buffering, closefd=False),  # noqa: SIM115
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _descriptor(stream: io.TextIOWrapper) -> int | None:
    try:
        return stream.fileno()
    except OSError:
        return None
