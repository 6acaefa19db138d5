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
from typing import Any, TypeVar

WAIT = 0.1  # seconds between two chances to take notice of a signal
CHANCES = 50  # to take notice of being cancelled
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

T = TypeVar("T")
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


def interruptible(
    step: Callable[[], T], look: Callable[[], None] | None = None, cancel: Callable[[], None] | None = None
) -> T:
    """The result of a step in foreign code that takes no notice of signals but lets other threads run.

    It runs in a thread of its own, so that a signal ends the wait at once, and so does whatever ``look`` raises, which
    is called now and then. The step is then told to end by ``cancel``; without that, or if it does not listen, its
    thread ends with the process.
    """
    results: list[T] = []
    failures: list[BaseException] = []
    ended = threading.Event()  # a signal during Thread.join makes Python 3.11 take the thread for ended

    def run() -> None:
        try:
            results.append(step())
        except BaseException as failure:  # raised where the result is waited for
            failures.append(failure)
        finally:
            ended.set()

    thread = threading.Thread(target=run, daemon=True)
    try:
        thread.start()
        while not ended.wait(WAIT):
            if look is not None:
                look()
    except BaseException:
        if cancel is not None and _cancelled(ended, cancel):
            thread.join()
            failures.clear()  # what was cancelled holds on to the library that it was cancelled in
        raise
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


def _cancelled(ended: threading.Event, cancel: Callable[[], None]) -> bool:
    """Cancel a step, more than once: the first time may be before it has begun. Whether it has ended."""
    for _ in range(CHANCES):
        if ended.is_set():
            break
        with contextlib.suppress(Exception):
            cancel()
        ended.wait(WAIT)
    return ended.is_set()


def _defer(handlers: dict[int, _Handler], received: list[int]) -> None:
    for number in handlers:
        signal.signal(number, lambda which, _: received.append(which))


def _restore(handlers: dict[int, _Handler], received: list[int]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)
    while received:
        signal.raise_signal(received.pop(0))
