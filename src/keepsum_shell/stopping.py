"""How a command is stopped by a signal: once, so that it cleans up without being interrupted."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

STOPPED = "Stopped; nothing was released or written."


class Stop:
    """The first SIGINT, SIGTERM or SIGHUP ends the command by an exception; later ones have no effect.

    So the command cleans up without being interrupted. Ignored signals stay ignored (nohup).
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self.closed = False
        self._before: dict[int, Any] = {}
        if threading.current_thread() is not threading.main_thread():  # only the main thread handles signals
            return
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) not in (None, signal.SIG_IGN):
                self._before[number] = signal.signal(number, self._handle)

    def restore(self) -> None:
        """Put the previous signal handlers back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.number is None and not self.closed:
            self.number = number
            raise KeyboardInterrupt

    @property
    def status(self) -> int:
        """The exit status of a command that was stopped by a signal."""
        return 128 + (self.number or signal.SIGINT)
