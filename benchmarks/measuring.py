"""CPU time, which what else the machine does changes least."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(work: Callable[[], object]) -> float:
    """CPU time of one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


def cpu(work: Callable[[], object], repeats: int = 5) -> float:
    """The best CPU time of some runs."""
    return min(seconds(work) for _ in range(repeats))


def by_turns(work: Callable[[], object], peer: Callable[[], object], rounds: int = 15) -> tuple[float, float]:
    """The best CPU times of two, run in turn so that what else the machine does meets both."""
    times = [(seconds(work), seconds(peer)) for _ in range(rounds)]
    return min(own for own, _ in times), min(other for _, other in times)
