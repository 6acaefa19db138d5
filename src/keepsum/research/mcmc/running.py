"""Jobs shared between threads, and their progress on a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from keepsum._arguments import check_flag
from keepsum._threads import threads_of
from keepsum.sampling.core.driving import TASKS, equal_ranges, in_parallel
from keepsum.sampling.core.rng import Rng, Stream, checked_rng

Result = TypeVar("Result")


def spread(
    work: Callable[[range, Stream], Sequence[Result]],
    count: int,
    rng: Rng | None,
    threads: int | None,
    advance: Callable[[int], None] = lambda _: None,
) -> list[Result]:
    """Do ``count`` jobs, each run of them on a stream of its own; the results in the order of the jobs."""
    source = checked_rng(rng)
    workers = threads_of(threads)

    def run(first: int, last: int, stream: Stream) -> Sequence[Result]:
        results = work(range(first, last), stream)
        advance(last - first)
        return results

    parts = in_parallel(run, equal_ranges(count, -(-count // TASKS)), source, workers)
    return [result for part in parts for result in part]


@contextmanager
def progress(label: str, total: int, show: bool | None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal that has rich, nothing when piped; yields what to call with the number of jobs done."""
    if show is not None:
        show = check_flag(show, "show_progress=")
    if show is False or (show is None and not sys.stderr.isatty()):
        yield lambda _: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ModuleNotFoundError:  # an extra that the library does without
        yield lambda _: None
        return
    lock = threading.Lock()
    with Progress(console=Console(stderr=True, force_terminal=show), transient=True) as bar:
        task = bar.add_task(label, total=total)

        def advance(count: int) -> None:
            with lock:
                bar.advance(task, count)

        yield advance
