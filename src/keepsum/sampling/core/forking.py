"""What a forked child must not share with its parent: words that the parent reads too, and locks that nobody frees.

A child of ``os.fork`` is told by Python's hooks. One that was forked past them (by a library in C) is found out by its
process id, which is compared wherever words are taken and wherever a lock is. What other libraries hold at a fork is
theirs: numba's lock while another thread compiles, for one.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import cached_property
from types import ModuleType

Marks = tuple[int | None, ...]


class ProcessLock:
    """A lock between the threads of one process: no child inherits it from a thread that it does not have."""

    def __init__(self) -> None:
        self._locks: dict[int, threading.RLock] = {}

    def here(self) -> threading.RLock:
        """The lock of this process."""
        now = generation()
        return self._locks.get(now) or self._locks.setdefault(now, threading.RLock())


class _Lineage:
    """The forks that lead to this process: for each the number that the parent gave it, None if no hook was run.

    ``state`` is the process id that was last seen and the marks, in one tuple: two threads that find out about a fork
    at once come to the same one.
    """

    def __init__(self) -> None:
        self.forks = 0
        self.state: tuple[int, Marks] = (os.getpid(), ())
        self.one_at_a_time = ProcessLock()  # or two children would get one number

    def marks(self) -> Marks:
        pid, marks = self.state
        if os.getpid() != pid:
            marks = (*marks, None)
            self.state = (os.getpid(), marks)
        return marks

    def before_fork(self) -> None:
        self.held = self.one_at_a_time.here()
        self.held.acquire()
        self.forks += 1

    def after_in_parent(self) -> None:
        self.held.release()

    def after_in_child(self) -> None:
        self.state = (os.getpid(), (*self.state[1], self.forks))
        _free_properties()


_LINEAGE = _Lineage()

os.register_at_fork(
    before=_LINEAGE.before_fork, after_in_parent=_LINEAGE.after_in_parent, after_in_child=_LINEAGE.after_in_child
)


def generation() -> int:
    """How many forks lead to this process from the one that imported Keepsum. Costs a fifth of a microsecond."""
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
