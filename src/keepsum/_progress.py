"""What is being done and how far it is, told to whoever shows it: the shell, ``plan.sample`` on a terminal, or nobody.

Work says what it does with :func:`doing`, and which part of the whole it is with :func:`portion`; the tasks within
report to :func:`reporter`. All of it is local to a thread, so that two plans drawn at once do not mix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Watcher(Protocol):
    """Who shows progress; it may be called from any thread, often."""

    def doing(self, stage: str) -> None:
        """A new stage has begun."""

    def done(self, fraction: float) -> None:
        """So much of the present stage is done."""

    def check(self) -> None:
        """Raise an error if the work is to be stopped."""


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
_reporter: ContextVar[Callable[[float], None] | None] = ContextVar("reporter", default=None)


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Tell this watcher what is done meanwhile."""
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


def is_watched() -> bool:
    """Whether somebody shows what is being done."""
    return _watcher.get() is not None


def doing(stage: str) -> None:
    """Say what is being done now."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.doing(stage)


def check() -> None:
    """End here if whoever watches wants that."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.check()


@contextmanager
def portion(start: float, end: float) -> Iterator[None]:
    """What is done meanwhile takes a stage, or the portion that this one is part of, from one fraction to another."""
    watcher = _watcher.get()
    if watcher is None:
        yield
        return
    whole = _reporter.get() or watcher.done

    def report(fraction: float) -> None:
        whole(start + (end - start) * fraction)

    before = _reporter.set(report)
    try:
        yield
        report(1.0)
    finally:
        _reporter.reset(before)


def reporter() -> Callable[[float], None] | None:
    """Where to report how much of a portion is done; None outside of portions, or if nobody watches."""
    return _reporter.get()
