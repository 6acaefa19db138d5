"""Connections that say nothing, or little at a time, do not keep others out.

Whoever connects has a few seconds to send the head of a request. If there are many who have not, the one that waits
longest goes first, so that a browser always gets in.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol


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
