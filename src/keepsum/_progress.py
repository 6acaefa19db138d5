"""What is being done and how far it is, told to whoever shows it: the shell, ``plan.sample`` on a terminal, or nobody.

Work says what it does with :func:`doing`, and which part of the whole it is with :func:`portion`; the tasks within
report to :func:`reporter`. All of it is local to a thread, so that two plans drawn at once do not mix.

Every step is also a line of ``logging.getLogger("keepsum")``, at the level INFO: what is done, and never a count or a
label. ``keepsum --verbose`` shows these lines.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import PurePath
from typing import Protocol


class Watcher(Protocol):
    """Who shows progress; it may be called from any thread, often."""

    def doing(self, stage: str) -> None:
        """A new stage has begun."""

    def done(self, fraction: float) -> None:
        """So much of the present stage is done."""

    def check(self) -> None:
        """Raise an error if the work is to be stopped."""


LOG = logging.getLogger("keepsum")
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
    LOG.info(stage)
    watcher = _watcher.get()
    if watcher is not None:
        watcher.doing(stage)


def failed(error: BaseException) -> None:
    """Log a failure that nobody expected: its type and its place in the code, without its text, which may show data.

    >>> try:
    ...     [][0]
    ... except IndexError as error:
    ...     place_of(error)[0]
    'IndexError'
    """
    LOG.error("unexpected failure: %s at %s", *place_of(error))


def place_of(error: BaseException) -> tuple[str, str]:
    """The type of an error, and the files and lines of the last code of Keepsum, and of all code, that it came from."""
    frames = [(_in_package(frame.f_code.co_filename), line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [f"{file}, line {line}" for file, line in frames if file.startswith("keepsum/")]
    last = [f"{file}, line {line}" for file, line in frames]
    places = dict.fromkeys([*own[-1:], *last[-1:]])
    return type(error).__name__, " in ".join(reversed(places)) or "no line"


def _in_package(file: str) -> str:
    """A file of code from the name of its package on, as in ``keepsum/desk/jobs.py``; else its own name."""
    parts = PurePath(file).parts
    for root in ("site-packages", "src"):
        if root in parts:
            return "/".join(parts[len(parts) - parts[::-1].index(root) :])
    return parts[-1] if parts else "?"


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
