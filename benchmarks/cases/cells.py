"""Growth with the number of cells, 10^3 to 10^8, the last streamed to disk."""

from __future__ import annotations

import keepsum as ks
from benchmarks.cases.noise import drawing
from benchmarks.children import in_child, timing_of
from benchmarks.measuring import Timing, Work, by_turns
from benchmarks.peers import numpy_noise, opendp_laplace
from benchmarks.registry import Bench, Point, at_most, case
from benchmarks.systems import groups

STREAMED_CELLS = 10**8
OPENDP_CELLS = 10**4  # more takes seconds
TOTALS, PLAIN = "under 51 totals", "under no total"


@case("cells from 10^3 to 10^8")
def growth(bench: Bench) -> None:
    largest = bench.pick(7, 6)
    points: dict[str, list[Point]] = {}
    for power in range(3, largest + 1):
        size = 10**power
        rounds = 3 if power == 7 else bench.pick(7, 3)
        for name, timing in by_turns(works(size), rounds).items():
            whole = Timing(timing.cpu * size, timing.wall * size)
            points.setdefault(name, []).append(Point(size, whole))
    if not bench.quick:
        for name, timing in streamed(bench).items():
            points[name].append(Point(STREAMED_CELLS, timing))
    for name, measured in points.items():
        power = bench.curve("cells", name, measured, (10**4, 10**8))
        if name in (TOTALS, PLAIN) and power is not None:
            bench.figure(f"cells {name}: time grows with this power of the cells", power, "", at_most(1.1))


def works(size: int) -> dict[str, Work]:
    draws = max(1, 10**5 // size)
    ours = {
        TOTALS: drawing(groups(size, 51), draws=draws),
        PLAIN: drawing(ks.Invariants.subsets(size, []), draws=draws),
        "NumPy": numpy_noise(size),
    }
    return ours if size > OPENDP_CELLS else {**ours, "OpenDP": opendp_laplace(size)}


def streamed(bench: Bench) -> dict[str, Timing]:
    """10^8 cells written to disk, each in a process of its own."""
    jobs = {TOTALS: "totals", PLAIN: "plain", "NumPy": "NumPy"}
    results: dict[str, list[dict[str, float]]] = {name: [] for name in jobs}
    gigabytes = 0.0
    for _ in range(2):
        for name, what in jobs.items():
            done = in_child("stream", what, STREAMED_CELLS)
            results[name].append(done["value"])
            gigabytes = max(gigabytes, done["gigabytes"] if what != "NumPy" else 0)
    bench.figure("10^8 cells streamed to disk: peak memory", gigabytes, "GB", at_most(4))
    return {name: timing_of(of_name) for name, of_name in results.items()}
