"""CPU time, which depends least on other load, and figures against their limits."""

from __future__ import annotations

import time
from collections.abc import Callable

MISSED = "MISSED"  # at the end of the line of each figure that misses its limit: `run.py` looks for it


def seconds(work: Callable[[], object]) -> float:
    """CPU time of one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


def cpu(work: Callable[[], object], repeats: int = 5) -> float:
    """The best CPU time of some runs."""
    return min(seconds(work) for _ in range(repeats))


def by_turns(work: Callable[[], object], peer: Callable[[], object], rounds: int = 15) -> tuple[float, float]:
    """The best CPU times of two, alternating, so that other load affects both."""
    times = [(seconds(work), seconds(peer)) for _ in range(rounds)]
    return min(first for first, _ in times), min(second for _, second in times)


class Report:
    """Figures against limits, printed as they come; a miss does not end the run."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def line(self, what: str, figure: float, unit: str, limit: float, at_least: bool) -> None:
        """One figure and its limit."""
        good = figure >= limit if at_least else figure <= limit
        sign = "at least" if at_least else "at most"
        text = f"{what:<58} {figure:>12,.4g} {unit:<10} {sign} {limit:,g}"
        print(text if good else f"{text}  {MISSED}", flush=True)
        if not good:
            self.missed.append(text)

    @property
    def status(self) -> int:
        """The exit status of the benchmark: the number of misses, so that a crash after a miss can be told apart."""
        return len(self.missed)
