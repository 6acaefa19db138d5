"""A bar on the terminal while ``plan.sample`` draws, if that takes longer than a few seconds and rich is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Timer
from typing import Any

from keepsum._progress import is_watched, watched_by

PATIENCE = 2.0  # seconds before anything is shown
WORTH_WATCHING = 0.5  # estimated seconds from which a draw may take longer than that


@contextmanager
def drawing_shown(seconds: float | None) -> Iterator[None]:
    """Show how much is drawn, if it takes long: ``seconds`` is an estimate. Nothing where output is piped."""
    if seconds is None or seconds < WORTH_WATCHING or is_watched() or not _is_terminal(sys.stderr):
        yield
        return
    bar = Bar(sys.stderr)
    timer = Timer(PATIENCE, bar.show)
    timer.daemon = True
    timer.start()
    try:
        with watched_by(bar):
            yield
    finally:
        timer.cancel()
        bar.close()


def _is_terminal(stream: Any) -> bool:
    """Whether a stream, if it is one and open, is a terminal."""
    with suppress(AttributeError, ValueError):
        return bool(stream.isatty())
    return False


class Bar:
    """How much of the noise is drawn; nothing without rich."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._lock = stream, Lock()
        self._fraction, self._closed = 0.0, False
        self._progress: Any = None

    def show(self) -> None:
        """Begin to show it."""
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
        except ImportError:
            return
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with self._lock, suppress(OSError, ValueError):  # a terminal that was closed meanwhile
            if not self._closed:
                self._progress = Progress(*columns, console=Console(file=self._stream), transient=True)
                self._progress.add_task("keepsum: drawing the noise", total=1.0, completed=self._fraction)
                self._progress.start()

    def doing(self, stage: str) -> None:
        """Stages of a draw are not told apart."""

    def done(self, fraction: float) -> None:
        """Show that so much is drawn."""
        self._fraction = fraction
        with self._lock:
            if self._progress is not None:
                self._progress.update(self._progress.task_ids[0], completed=fraction)

    def check(self) -> None:
        """Nobody stops a draw but by a signal."""

    def close(self) -> None:
        """Take it off the screen, for good."""
        with self._lock, suppress(OSError, ValueError):
            self._closed = True
            if self._progress is not None:
                self._progress.stop()
