"""No core dump of a process that holds confidential counts.

The limit keeps the kernel from writing a file, but not from handing the memory to a program that collects crashes
(``systemd-coredump``); a process that is not dumpable gives it to neither, nor to a debugger of the same user. Only a
program of ours does this: a library must not change the process that it is loaded into.
"""

from __future__ import annotations

import contextlib
import sys

SET_DUMPABLE = 4  # PR_SET_DUMPABLE of Linux's prctl


def forbid_core_dumps() -> None:
    """Keep the memory of this process out of core dumps, as far as the system can."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # no such limits on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):  # a Python without ctypes, a C library without
            import ctypes

            ctypes.CDLL(None).prctl(SET_DUMPABLE, *(ctypes.c_ulong(0),) * 4)
