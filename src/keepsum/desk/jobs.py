"""Work that takes long, in the background: one piece at a time, with its progress, and a way to stop it.

Work is stopped where it reports: at each stage, and within stages that take long at each part of them. Nobody waits
for that: the next piece begins at once. A release that is being charged and drawn is never stopped.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

from keepsum._memory import ran_out
from keepsum._progress import failed, watched_by
from keepsum.errors import KeepsumError, KeepsumWarning

UNKNOWN = "Something failed that should not have. Nothing was released or written. Please report this as a bug."


class StoppedError(BaseException):
    """The work was stopped; no ``except Exception`` may keep it going."""


class _Quiet:
    """No warnings of ours while any job runs, because the page shows what they are about."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._caught = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._caught = warnings.catch_warnings()
                self._caught.__enter__()
            warnings.simplefilter("ignore", KeepsumWarning)  # each time: filters may have been changed meanwhile

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._caught.__exit__(None, None, None)


_QUIET = _Quiet()


class BackgroundJob:
    """A piece of work, and how far it is; this is also who its work reports to (``_progress.Watcher``)."""

    def __init__(self, work: Callable[[BackgroundJob], Any], stoppable: bool = True) -> None:
        self._work = work
        self.stoppable = stoppable
        self.stage, self.fraction = "starting", 0.0
        self.is_stopped = False
        self.problem: str | None = None
        self.unknown = UNKNOWN  # what is said of a failure that nobody expected
        self.failed: str | None = None  # what is to be said before the problem
        self.note: str | None = None  # what is to be said besides the problem
        self.result: Any = None
        self._done = threading.Event()

    @property
    def is_done(self) -> bool:
        """Whether it has ended, in whatever way; work that was stopped has, though it may take a moment to notice."""
        return self._done.is_set()

    def wait(self, seconds: float | None) -> bool:
        """Wait until it has ended, but no longer than so; whether it has."""
        return self._done.wait(seconds)

    def stop(self) -> None:
        """Ask it to end; ``Worker.stop`` also goes on with the next."""
        if self.stoppable:
            self.is_stopped = True
            self._done.set()

    def doing(self, stage: str) -> None:
        """A new stage has begun."""
        self.check()
        self.stage, self.fraction = stage, 0.0

    def done(self, fraction: float) -> None:
        """So much of the present stage is done."""
        self.check()
        self.fraction = fraction

    def pairs(self, done: int, total: int) -> None:
        """So many pairs of coupled chains have been run."""
        self.check()
        self.stage = f"running coupled chains: {done:,} of {total:,} pairs"
        self.fraction = done / max(1, total)

    def check(self) -> None:
        """End here if somebody asked for it."""
        if self.is_stopped:
            raise StoppedError

    def run(self) -> None:
        """Do the work; whatever fails becomes a sentence, in which there is no traceback and so no data."""
        try:
            with _QUIET, watched_by(self):
                self.check()
                self.result = self._work(self)
        except StoppedError:
            pass
        except KeepsumError as error:
            self.problem = str(error)
        except MemoryError:
            self.problem = ran_out()
        except BaseException as error:
            failed(error)
            self.problem = self.unknown
        finally:
            self._done.set()


class Worker:
    """Does jobs in order, one at a time; one that was stopped but has not noticed yet keeps no other waiting.

    There is a second thread for that, and not a third: whoever stops one large piece of work after the other waits.
    """

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._waiting: list[BackgroundJob] = []
        self._running: list[BackgroundJob] = []
        for _ in range(2):
            threading.Thread(target=self._run, name="keepsum-desk", daemon=True).start()

    def start(self, job: BackgroundJob) -> BackgroundJob:
        """Do a job as soon as those before it have ended."""
        with self._lock:
            self._waiting.append(job)
            self._lock.notify_all()
        return job

    def stop(self, job: BackgroundJob) -> None:
        """Stop a job, and go on with the next."""
        job.stop()
        with self._lock:
            self._lock.notify_all()

    def finish(self) -> None:
        """Wait for a job that must not be stopped, and stop any other."""
        with self._lock:
            jobs = [*self._waiting, *self._running]
        for job in jobs:
            self.stop(job)
        for job in jobs:
            if not job.stoppable:
                job.wait(None)

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._waiting or not all(job.is_stopped for job in self._running):
                    self._lock.wait()
                job = self._waiting.pop(0)
                self._running.append(job)
            job.run()
            with self._lock:
                self._running.remove(job)
                self._lock.notify_all()
