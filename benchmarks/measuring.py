"""CPU and wall time of several pieces of work by turns, and what is computed from the times."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Clock = Literal["cpu", "wall"]
SHORTEST = 0.02  # seconds: shorter work is repeated within a round until it takes this long


@dataclass(frozen=True)
class Spread:
    """A median with its quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float] | Floats) -> Spread:
        """The quartiles of some values.

        >>> Spread.of([1, 2, 3, 4, 100])
        Spread(median=3.0, low=2.0, high=4.0)
        """
        low, median, high = np.percentile(np.asarray(values, dtype=np.float64), [25, 50, 75]).tolist()
        return cls(median, low, high)


@dataclass(frozen=True)
class Work:
    """Something to time: ``run`` does ``count`` units of it (cells, draws, steps)."""

    run: Callable[[], object]
    count: float = 1


@dataclass(frozen=True)
class Timing:
    """Seconds per unit of work, one entry per round."""

    cpu: Floats
    wall: Floats

    def spread(self, clock: Clock = "cpu") -> Spread:
        """Median and quartiles of the seconds per unit."""
        return Spread.of(getattr(self, clock))

    @property
    def best(self) -> float:
        """The fewest CPU seconds per unit of any round: what other programs on the machine disturb least."""
        return float(self.cpu.min())

    def __add__(self, other: Timing) -> Timing:
        return Timing(self.cpu + other.cpu, self.wall + other.wall)


Times = Mapping[str, Timing]


def cpu_clock() -> float:
    """CPU seconds of this process, all its threads, and the child processes that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def once(run: Callable[[], object], repeats: int = 1) -> tuple[float, float]:
    """CPU and wall seconds of some repetitions, each."""
    cpu, wall = cpu_clock(), time.perf_counter()
    for _ in range(repeats):
        run()
    return (cpu_clock() - cpu) / repeats, (time.perf_counter() - wall) / repeats


def by_turns(works: Mapping[str, Work], rounds: int, warm: bool = True) -> dict[str, Timing]:
    """Time every piece of work once per round, one after the other, so that other load affects all alike.

    Without ``warm`` nothing is run before the first round and nothing is repeated within one.
    """
    repeats = {name: _repeats(work) if warm else 1 for name, work in works.items()}
    seconds = {name: np.empty((rounds, 2)) for name in works}
    for k in range(rounds):
        for name, work in works.items():
            seconds[name][k] = once(work.run, repeats[name])
    return {name: Timing(*(seconds[name].T / work.count)) for name, work in works.items()}


def _repeats(work: Work) -> int:
    """How often a piece of work fits into the shortest time that is measured; it is warm afterwards."""
    _, wall = once(work.run)
    if wall < 50 * SHORTEST:
        _, wall = once(work.run)
    return max(1, round(SHORTEST / max(wall, 1e-7)))


def ratio(above: Timing, below: Timing, clock: Clock = "cpu") -> Spread:
    """The spread over rounds of one time divided by the other of the same round."""
    return Spread.of(getattr(above, clock) / getattr(below, clock))


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The power of the size that time grows with: least squares on a log-log scale.

    >>> round(exponent([10, 100, 1000], [5.0, 500.0, 50_000.0]), 6)
    2.0
    """
    slope, _ = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return float(slope)
