"""The server: on this machine alone, on a free port, until it is ended without a release being lost."""

from __future__ import annotations

import asyncio
import html
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from keepsum._saying import arg
from keepsum.desk.desk import Desk
from keepsum.desk.guards import Guard
from keepsum.errors import UnreachableError

# Connections that say nothing, or little at a time, do not keep others out.
#
# Whoever connects has a few seconds to send the head of a request. If there are many who have not, the one that waits
# longest goes first, so that a browser always gets in.


class Connection(H11Protocol):
    """A connection of the server."""

    seconds: ClassVar[float] = 10.0  # to send the head of a request
    most: ClassVar[int] = 100  # that wait at once
    waiting: ClassVar[dict[Connection, asyncio.TimerHandle]] = {}  # those who wait longest first, and what ends it

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has connected."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Something has come, which may be the end of a head."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._go_on()

    def on_response_complete(self) -> None:
        """There may be another request."""
        super().on_response_complete()
        if not self.transport.is_closing() and self.cycle.response_complete:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed."""
        self._go_on()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._go_on()
        self.waiting[self] = self.loop.call_later(self.seconds, self.transport.close)
        if len(self.waiting) > self.most:
            longest = next(iter(self.waiting))
            longest._go_on()
            longest.transport.close()

    def _go_on(self) -> None:
        timer = self.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()


# The end of the page by a signal (Ctrl-C, SIGTERM, SIGHUP), which loses no release without a word.
#
# A release that is being made is finished first. While there is one that nobody has taken away, the first signal only
# says so, and the page goes on; the next one ends it. That is so for each release. A terminal that was closed
# (SIGHUP) cannot show what is said: the page goes on all the same, for the browser that has it open.

BEING_MADE = (
    "A release is being made, and is finished first. The page goes on, so that you can take it away. Interrupt again "
    "to end as soon as it is finished; it is lost then, and stays charged if there is a ledger."
)
NOT_TAKEN = (
    "A release was made that nobody has downloaded or saved. It is here: {link}. The next interrupt (Ctrl-C) ends the "
    "page, and the release is lost then."
)
LOST = "The page has ended. A release was made that nobody has downloaded or saved: it is lost."


class EndBySignal:
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


# The server: on this machine alone, on a free port, without a word in any log, until it is interrupted.

HOST = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """A socket on this machine alone; port 0 is any that is free."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        reason = error.strerror or str(error)
    else:
        return listening
    raise UnreachableError(
        f"Port {port} must be free to serve the page on, but: {reason}. Choose another, or {arg.port(0)}."
    )


def serve(desk: Desk, listening: socket.socket, ready: Callable[[str], None], note: Callable[[str], None]) -> None:
    """Serve the page until it is interrupted; ``ready`` gets its link, ``note`` what must be said."""
    guard = Guard(listening.getsockname()[1])
    listening.listen()
    ready(guard.new_link())  # a browser that is faster than what follows waits for it
    server = server_of(desk, guard, note)
    server.run(sockets=[listening])
    desk.close()
    server.ending.told_at_last()


def server_of(desk: Desk, guard: Guard, note: Callable[[str], None]) -> Any:
    """The server of a page; it ends once ``should_exit`` is true."""
    import uvicorn

    from keepsum.desk.server import make_app

    for name in ("uvicorn", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # what they would say may hold parts of a request
    config = uvicorn.Config(
        make_app(desk, guard), log_config=None, access_log=False, server_header=False, lifespan="off",
        timeout_graceful_shutdown=1, ws="none", http=Connection,
    )  # fmt: skip

    class Server(uvicorn.Server):
        ending = EndBySignal(desk, note, guard.new_link)

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            def end() -> None:
                self.should_exit = True

            with self.ending.on_signals(end):
                yield

    return Server(config)


# The page in the user's browser, whose command line every user of the machine can read: so the link is not on it.

PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={link}">'
    '<title>Keepsum</title><p><a href="{link}">Open the page</a></p></html>'
)


def has_screen() -> bool:
    """Whether there is a screen: without one, a browser may be a program that takes the terminal."""
    others = sys.platform in ("darwin", "win32")
    return others or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@contextmanager
def opened(link: str) -> Iterator[Path | None]:
    """Open a link in the browser, through a file that only its owner may read, for as long as the context lasts."""
    if not has_screen():
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="keepsum-") as folder:  # which only its owner may enter
        file = Path(folder) / "open.html"
        file.write_text(PAGE.format(link=html.escape(link)), encoding="utf-8")
        threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
        yield file
