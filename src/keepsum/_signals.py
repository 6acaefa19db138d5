"""Deferred signals: work that must not be interrupted finishes before Ctrl-C, SIGTERM or SIGHUP take effect.

``held_back`` defers them, and ``let_through`` delivers them again for a while inside it. Handlers are replaced rather
than signals blocked, because a signal blocked in one thread is delivered to another thread of the process. Python runs
handlers in its main thread only, so in any other thread there is nothing to defer.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

_Handler = Callable[..., Any] | int | None
_STACK: list[tuple[dict[int, _Handler], list[int]]] = []  # per block: the original handlers, the signals received


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Defer signals to the end of the block, where they are raised again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    handlers = {number: handler for number, handler in handlers.items() if handler not in (None, signal.SIG_IGN)}
    received: list[int] = []
    _STACK.append((handlers, received))
    _defer(handlers, received)
    try:
        yield
    finally:
        _STACK.pop()
        _restore(handlers, received)


@contextlib.contextmanager
def let_through() -> Iterator[None]:
    """Inside ``held_back``: deliver signals again, those already received first."""
    if not _STACK or threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers, received = _STACK[-1]
    try:
        _restore(handlers, received)
        yield
    finally:
        _defer(handlers, received)


def _defer(handlers: dict[int, _Handler], received: list[int]) -> None:
    for number in handlers:
        signal.signal(number, lambda which, _: received.append(which))


def _restore(handlers: dict[int, _Handler], received: list[int]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)
    while received:
        signal.raise_signal(received.pop(0))
