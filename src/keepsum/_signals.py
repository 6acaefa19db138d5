"""Signals that wait: what must not be left half done is finished before Ctrl-C, SIGTERM or SIGHUP are heard.

``held_back`` makes them wait, ``let_through`` lets them in for a while inside of it. Handlers are exchanged instead of
signals blocked, because a signal that one thread blocks is taken by another thread of the process. Python runs handlers
in its main thread alone, so that in another thread there is nothing to hold back.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

_Handler = Callable[..., Any] | int | None
_STACK: list[tuple[dict[int, _Handler], list[int]]] = []  # who would have been called, and what came


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Let signals wait until the end of the block; then they come as if they had been sent there."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in before.items() if handler not in (None, signal.SIG_IGN)}
    came: list[int] = []
    _STACK.append((before, came))
    _hold(before, came)
    try:
        yield
    finally:
        _STACK.pop()
        _give_back(before, came)


@contextlib.contextmanager
def let_through() -> Iterator[None]:
    """Inside ``held_back``: hear signals again, first those that wait."""
    if not _STACK or threading.current_thread() is not threading.main_thread():
        yield
        return
    before, came = _STACK[-1]
    try:
        _give_back(before, came)
        yield
    finally:
        _hold(before, came)


def _hold(before: dict[int, _Handler], came: list[int]) -> None:
    for number in before:
        signal.signal(number, lambda which, _: came.append(which))


def _give_back(before: dict[int, _Handler], came: list[int]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)
    while came:
        signal.raise_signal(came.pop(0))
