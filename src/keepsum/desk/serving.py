"""The server: on this machine alone, on a free port, without a word in any log, until it is interrupted."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from keepsum.desk.desk import Desk
from keepsum.desk.ending import Ending
from keepsum.desk.guards import Guard
from keepsum.errors import InputError

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
    raise InputError(f"Port {port} must be free to serve the page on, but: {reason}. Choose another, or --port 0.")


def serve(desk: Desk, listening: socket.socket, ready: Callable[[str], None], note: Callable[[str], None]) -> None:
    """Serve the page until it is interrupted; ``ready`` gets its link, ``note`` what must be said."""
    guard = Guard(listening.getsockname()[1])
    listening.listen()
    ready(guard.new_link())  # a browser that is faster than what follows waits for it
    server = server_of(desk, guard, note)
    threading.Thread(target=_warm, daemon=True).start()
    server.run(sockets=[listening])
    desk.close()
    server.ending.told_at_last()


def server_of(desk: Desk, guard: Guard, note: Callable[[str], None]) -> Any:
    """The server of a page; it ends once ``should_exit`` is true."""
    import uvicorn

    from keepsum.desk.connections import Connection
    from keepsum.desk.server import make_app

    for name in ("uvicorn", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # what they would say may hold parts of a request
    config = uvicorn.Config(
        make_app(desk, guard), log_config=None, access_log=False, server_header=False, lifespan="off",
        timeout_graceful_shutdown=1, ws="none", http=Connection,
    )  # fmt: skip

    class Server(uvicorn.Server):
        ending = Ending(desk, note, guard.new_link)

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            def end() -> None:
                self.should_exit = True

            with self.ending.on_signals(end):
                yield

    return Server(config)


def _warm() -> None:
    """Import what the first table needs, while its curator still looks for it."""
    import keepsum.accuracy.levels
    import keepsum.planning.plan
    import keepsum.releasing.release
    import keepsum.specs.building  # noqa: F401
