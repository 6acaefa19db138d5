"""Questions to a database that can be stopped, and that take no more memory than they may.

A view may never come to an end, and a driver takes no notice of signals. So a question runs in a thread of its own, and
whoever waits for it looks again and again: a signal, the page's button or too much memory ends it. A connection to
SQLite belongs to its thread; it lets us look from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keepsum._memory import available, readable, resident
from keepsum._progress import check
from keepsum._signals import held_back, interruptible, let_through
from keepsum.errors import DataError

STEPS = 10**6  # of SQLite's virtual machine between two looks: some hundredths of a second


def most_memory() -> int | None:
    """The bytes that counting may take: three quarters of those that are free now; None if the system does not say."""
    free = available()
    return None if free is None else free // 4 * 3


def memory_setting() -> dict[str, str]:
    """The same limit as a setting of DuckDB, which otherwise takes four fifths of the machine."""
    most = most_memory()
    return {} if most is None else {"memory_limit": f"{max(1, most // 2**20)} MiB"}


def run_on(backend: Any, name: str) -> Callable[[Any], Any]:
    """Evaluate expressions on a connection of ibis, as Arrow tables."""

    def run(expression: Any) -> Any:
        look = _look(name)
        if backend.name == "sqlite":
            return _in_sqlite(backend, expression, look)
        try:
            return interruptible(lambda: backend.to_pyarrow(expression), look, _cancel(backend))
        except Exception as error:
            if type(error).__name__ != "OutOfMemoryException":
                raise
        raise _too_large(name, backend.con.execute("SELECT current_setting('memory_limit')").fetchone()[0])

    return run


def _cancel(backend: Any) -> Callable[[], None] | None:
    """How a question is cancelled from another thread; None where only its own driver knows."""
    cancelled_by = {"duckdb": "interrupt", "postgres": "cancel"}.get(backend.name)
    return None if cancelled_by is None else getattr(backend.con, cancelled_by)


def _look(name: str) -> Callable[[], None]:
    """What is done now and then: it raises an error where somebody stops the work, or it takes too much memory."""
    before, most = resident(), most_memory()

    def look() -> None:
        check()
        now = resident()
        if most is not None and before is not None and now is not None and now - before > most:
            raise _too_large(name, readable(most))

    return look


def _too_large(name: str, limit: str) -> DataError:
    return DataError(
        f"{name} must be countable with {limit} of memory, but needs more, and nothing is written to disk. Count fewer "
        f"columns, or use a larger machine."
    )


def _in_sqlite(backend: Any, expression: Any, look: Callable[[], None]) -> Any:
    """In this thread. SQLite swallows what is raised inside of it, so signals are let through where we look."""
    raised: list[BaseException] = []

    def looked() -> int:
        try:
            with let_through():
                look()
        except BaseException as reason:  # raised again below
            raised.append(reason)
        return len(raised)  # anything but 0 ends the question

    backend.con.set_progress_handler(looked, STEPS)
    try:
        with held_back():
            return backend.to_pyarrow(expression)
    except Exception:
        if not raised:
            raise
    finally:
        backend.con.set_progress_handler(None, 0)
    raise raised[0]
