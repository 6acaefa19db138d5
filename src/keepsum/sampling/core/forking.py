"""What a forked child must not share with its parent: words that the parent reads too, and locks that nobody frees.

A child of ``os.fork`` is told by Python's hooks. One that was forked past them (by a library in C) is found out
wherever words are taken and wherever a lock is: by memory that Linux wipes in a child. Its process id would not do,
because a child in a new namespace may have that of its parent. What other libraries hold at a fork is theirs.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
from functools import cached_property
from types import ModuleType
from typing import Protocol

Marks = tuple[int | None, ...]
WIPE_ON_FORK = 18  # MADV_WIPEONFORK of Linux 4.14 and later, which Python does not name
STARTED = 19  # which of the entries after the name in /proc/self/stat says when a process was started


class ProcessLock:
    """A lock between the threads of one process: no child inherits it from a thread that it does not have."""

    def __init__(self) -> None:
        self._locks: dict[int, threading.RLock] = {}

    def here(self) -> threading.RLock:
        """The lock of this process."""
        now = generation()
        return self._locks.get(now) or self._locks.setdefault(now, threading.RLock())


class Sign(Protocol):
    """What tells a process from those that it was forked from."""

    def read(self) -> object:
        """The sign of this process; another one in a child that has not claimed its own."""

    def claim(self, depth: int) -> object:
        """The sign of this process from now on, so many forks away from the first."""


class WipedMemory:
    """A number in memory that Linux fills with zeros in every child, however it was forked."""

    def __init__(self) -> None:
        memory = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(WIPE_ON_FORK)
        self._number = memoryview(memory).cast("Q")

    def read(self) -> object:
        """The number."""
        return self._number[0]

    def claim(self, depth: int) -> object:
        """Write the number, which is not zero."""
        self._number[0] = depth + 1
        return depth + 1


class SystemRecord:
    """Process id, namespace and start time, where no memory is wiped; asking for them takes 30 microseconds."""

    def read(self) -> object:
        """What the system says about this process; the id alone where there is no /proc, and so no namespace."""
        try:
            with open("/proc/self/stat", "rb") as file:  # noqa: PTH123 - pathlib takes twice as long
                started = file.read().rpartition(b")")[2].split()[STARTED]
            namespace, outer_id = os.readlink("/proc/self/ns/pid"), os.readlink("/proc/self")  # noqa: PTH115
            return os.getpid(), namespace, outer_id, started
        except OSError:
            return os.getpid()

    def claim(self, depth: int) -> object:
        """The same: a child has another already."""
        return self.read()


def best_sign() -> Sign:
    """Wiped memory where the system has it."""
    if sys.platform == "linux":
        try:
            return WipedMemory()
        except OSError:  # an older kernel, or one that only looks like Linux
            pass
    return SystemRecord()


class _Lineage:
    """The forks that lead to this process: for each the number that the parent gave it, None if no hook was run.

    ``state`` is the sign of the process that was last seen and the marks, in one tuple, read before the sign and
    written after it: two threads that find out about a fork at once come to the same one.
    """

    def __init__(self) -> None:
        self.forks = 0
        self.sign = best_sign()
        self.state: tuple[object, Marks] = (self.sign.claim(0), ())
        self.one_at_a_time = ProcessLock()  # or two children would get one number

    def marks(self) -> Marks:
        process, marks = self.state
        if self.sign.read() != process:
            marks = (*marks, None)
            self.state = (self.sign.claim(len(marks)), marks)
        return marks

    def before_fork(self) -> None:
        self.held = self.one_at_a_time.here()
        self.held.acquire()
        self.forks += 1

    def after_in_parent(self) -> None:
        self.held.release()

    def after_in_child(self) -> None:
        marks = (*self.state[1], self.forks)
        self.state = (self.sign.claim(len(marks)), marks)
        _free_properties()


_LINEAGE = _Lineage()

os.register_at_fork(
    before=_LINEAGE.before_fork, after_in_parent=_LINEAGE.after_in_parent, after_in_child=_LINEAGE.after_in_child
)


def generation() -> int:
    """How many forks lead to this process from the one that imported Keepsum. Costs a seventh of a microsecond."""
    return len(_LINEAGE.marks())


def forks_so_far() -> int:
    """How many children this process and those before it have made by ``os.fork``."""
    return _LINEAGE.forks


def marks_since(seen: int) -> Marks:
    """The marks of the forks after the first ``seen``."""
    return _LINEAGE.marks()[seen:]


def _free_properties() -> None:
    """Before Python 3.12 a ``cached_property`` has one lock for all objects, which a thread may have held."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "keepsum" and isinstance(module, ModuleType):
            for kind in list(vars(module).values()):
                for member in list(vars(kind).values()) if isinstance(kind, type) else ():
                    if isinstance(member, cached_property) and hasattr(member, "lock"):
                        member.lock = threading.RLock()
