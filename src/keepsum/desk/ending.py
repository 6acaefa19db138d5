"""The end of the page by a signal (Ctrl-C, SIGTERM, SIGHUP), which loses no release without a word.

A release that is being made is finished first. While there is one that nobody has taken away, the first signal only
says so, and the page goes on; the next one ends it. That is so for each release. A terminal that was closed (SIGHUP)
cannot show what is said: the page goes on all the same, for the browser that has it open.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from keepsum.desk.desk import Desk

BEING_MADE = (
    "A release is being made, and is finished first. The page goes on, so that you can take it away. Interrupt again "
    "to end as soon as it is finished; it is lost then, and stays charged if there is a ledger."
)
NOT_TAKEN = (
    "A release was made that nobody has downloaded or saved. It is here: {link}. The next interrupt (Ctrl-C) ends the "
    "page, and the release is lost then."
)
LOST = "The page has ended. A release was made that nobody has downloaded or saved: it is lost."


class Ending:
    """What signals do."""

    def __init__(self, desk: Desk, note: Callable[[str], None], new_link: Callable[[], str]) -> None:
        self._desk, self._note, self._new_link = desk, note, new_link
        self._lock = threading.RLock()
        self._told: object = None  # the last release of which it was said, or the work on it
        self._is_over = False

    def is_warned(self) -> bool:
        """Say what the end would lose, unless that was said; whether something was said now."""
        with self._lock:
            work = self._desk.releasing
            if work is not None and not work.is_done:
                if self._told is work:
                    return False
                self._told = work
                self._note(BEING_MADE)
                threading.Thread(target=self._when_made, args=(work.wait,), daemon=True).start()
                return True
            done = self._desk.finished
            if done is None or done.is_taken or self._told is done:
                return False
            self._told = done
            self._note(NOT_TAKEN.format(link=self._new_link()))
            return True

    def _when_made(self, wait: Callable[[None], bool]) -> None:
        wait(None)
        with self._lock:
            if not self._is_over:
                self.is_warned()

    def told_at_last(self) -> None:
        """Say at the very end that a release is lost, if that was not to be expected."""
        with self._lock:
            done = self._desk.finished
            if done is not None and not done.is_taken and self._told is not done:
                self._note(LOST)

    @contextmanager
    def on_signals(self, end: Callable[[], None]) -> Iterator[None]:
        """Meanwhile, a signal ends the page by ``end``, unless there is something to be said first."""

        def handle(_: int, __: FrameType | None) -> None:
            with self._lock:
                if not self.is_warned():
                    self._is_over = True
                    end()

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
        numbers = [number for name in names if signal.getsignal(number := getattr(signal, name)) != signal.SIG_IGN]
        before = {number: signal.signal(number, handle) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
