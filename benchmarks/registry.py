"""The list of cases, and what a case is given: room for its figures and curves.

A case is a small function of a ``Bench``. It measures by turns (``measuring.by_turns``) and records figures, with or
without a target, and curves for the plots. It never stops because a target is missed.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.measuring import Clock, Spread, Times, Timing, exponent


@dataclass(frozen=True)
class Target:
    """A limit for a figure.

    Missed only if the better quartile misses it: a target decides over the work, not over a few disturbed rounds.
    """

    limit: float
    at_least: bool = False

    def met(self, value: Spread) -> bool:
        """Whether at least a quarter of the rounds are within the limit."""
        return value.high >= self.limit if self.at_least else value.low <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:,g}"


def at_most(limit: float) -> Target:
    """A figure that must not be larger."""
    return Target(limit)


def at_least(limit: float) -> Target:
    """A figure that must not be smaller."""
    return Target(limit, at_least=True)


@dataclass(frozen=True)
class Figure:
    """One figure: a ratio, an exponent or a number of bytes, and the times that it was computed from."""

    case: str
    what: str
    value: Spread
    unit: str
    target: Target | None
    times: Times
    clock: Clock = "cpu"

    @property
    def missed(self) -> bool:
        """Whether it has a target and misses it."""
        return self.target is not None and not self.target.met(self.value)


@dataclass(frozen=True)
class Point:
    """The time of one unit of work at one size; ``least`` if the true time is at least that."""

    size: float
    timing: Timing
    least: bool = False


@dataclass(frozen=True)
class Curve:
    """Times over sizes, for one line of a plot, with the growth exponent that was fitted to some of them."""

    case: str
    plot: str
    label: str
    points: tuple[Point, ...]
    exponent: float | None


@dataclass
class Bench:
    """What a case is given: whether to be quick, and where to record what it measures."""

    quick: bool = False
    show: Callable[[Figure], None] = lambda _: None
    name: str = ""
    figures: list[Figure] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    took: dict[str, float] = field(default_factory=dict)  # wall seconds of each case
    records: dict[str, tuple[float | str, str]] = field(default_factory=dict)  # what pages show, by name, with its unit

    def pick(self, full: int, quick: int) -> int:
        """A number of rounds or a size for this run."""
        return quick if self.quick else full

    def figure(
        self,
        what: str,
        value: Spread | float,
        unit: str,
        target: Target | None = None,
        times: Times | None = None,
        clock: Clock = "cpu",
    ) -> None:
        """Record a figure and show it."""
        spread = value if isinstance(value, Spread) else Spread(value, value, value)
        self.figures.append(Figure(self.name, what, spread, unit, target, times or {}, clock))
        self.show(self.figures[-1])

    def record(self, name: str, value: float | str, unit: str) -> None:
        """A figure that pages show by this name, in this unit (``results.shown``)."""
        self.records[name] = (value, unit)

    def record_rate(self, name: str, timing: Timing) -> None:
        """How many draws are made per second, where nothing disturbs them."""
        self.record(f"{name}/draws_per_second", 1 / timing.best, "draws/s")

    def curve(self, plot: str, label: str, points: Iterable[Point], fit: Sequence[float] = ()) -> float | None:
        """Record a curve; its growth exponent over the sizes from ``fit[0]`` to ``fit[1]``."""
        kept = tuple(points)
        fitted = [p for p in kept if fit and fit[0] <= p.size <= fit[1]]
        power = None
        if len(fitted) > 1:
            power = exponent([p.size for p in fitted], [p.timing.spread().median for p in fitted])
        self.curves.append(Curve(self.name, plot, label, kept, power))
        return power

    @property
    def missed(self) -> list[Figure]:
        """The figures that miss their targets."""
        return [figure for figure in self.figures if figure.missed]

    def run(self, case: Case) -> None:
        """Run one case; if it fails, that is recorded and the others are still run."""
        self.name, start = case.name, time.perf_counter()
        try:
            case.run(self)
        except Exception as error:  # whatever it is, it must not end the others
            traceback.print_exc()
            self.failed.append(f"{case.name}: {type(error).__name__}: {error}")
        self.took[case.name] = time.perf_counter() - start


@dataclass(frozen=True)
class Case:
    """One entry of the list."""

    name: str
    run: Callable[[Bench], None]
    quick: bool = True


CASES: list[Case] = []


def case(name: str, quick: bool = True) -> Callable[[Callable[[Bench], None]], Callable[[Bench], None]]:
    """Put a function on the list; without ``quick`` only full runs include it."""

    def add(run: Callable[[Bench], None]) -> Callable[[Bench], None]:
        CASES.append(Case(name, run, quick))
        return run

    return add
