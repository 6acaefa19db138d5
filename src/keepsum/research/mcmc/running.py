"""Between Python and the loops of this folder: feeding words, sharing work between threads, showing progress."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from keepsum._arguments import check_flag, check_whole
from keepsum.research.mcmc.kernel_arguments import IntArray
from keepsum.research.mcmc.kernels import MORE, POSITION, STATE_SIZE
from keepsum.sampling.core.driving import announce, in_parallel
from keepsum.sampling.core.rng import Rng, Stream, checked_rng

Result = TypeVar("Result")

TASKS = 64  # work is cut into so many tasks whatever the number of threads, so that a seed gives the same result


def fresh_state() -> IntArray:
    """The state of a loop that has done nothing."""
    return np.zeros(STATE_SIZE, dtype=np.int64)


def feed(kernel: Callable[..., int], stream: Stream, state: IntArray, *arguments: Any) -> None:
    """Run a loop to its end, with as many words as it takes."""
    announce(kernel)
    stream.renew()
    state[POSITION] = stream.position
    while kernel(stream.words, state, *arguments) == MORE:
        stream.position = int(state[POSITION])
        stream.more()
        state[POSITION] = 0
    stream.position = int(state[POSITION])


def cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def shares(count: int) -> list[range]:
    """So many jobs cut into tasks: nearly equal runs that depend on the count alone.

    >>> [len(jobs) for jobs in shares(3)], len(shares(1000))
    ([1, 1, 1], 63)
    """
    size = -(-count // TASKS)
    return [range(first, min(first + size, count)) for first in range(0, count, size)]


def spread(
    work: Callable[[range, Stream], Sequence[Result]],
    count: int,
    rng: Rng | None,
    threads: int | None,
    advance: Callable[[int], None] = lambda _: None,
) -> list[Result]:
    """Do ``count`` jobs, each task of them on a stream of its own; the results in the order of the jobs."""
    source = checked_rng(rng)
    workers = cores() if threads is None else check_whole(threads, "The number of threads", 1)

    def task(jobs: range, stream: Stream) -> Sequence[Result]:
        results = work(jobs, stream)
        advance(len(jobs))
        return results

    tasks = [lambda stream, jobs=jobs: task(jobs, stream) for jobs in shares(count)]
    return [one for some in in_parallel(tasks, source, workers) for one in some]


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
