"""What plans say that a draw takes, against what it takes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import keepsum as ks
from benchmarks.cases.tables import regions
from benchmarks.measuring import Spread, Work, by_turns
from benchmarks.peers import CALIBRATION, EPSILON
from benchmarks.registry import Bench, at_most, case
from benchmarks.systems import SYSTEMS, circles, county_hierarchy, groups, margins
from keepsum.planning.selection.choice import seconds_per_draw

WITHIN = 2  # times as long, or as short, on the machine whose figures plans state
L1, L2, GAUSSIAN = (
    ks.Laplace.per_unit(epsilon=EPSILON),
    ks.Laplace.per_unit(epsilon=EPSILON, norm="l2"),
    ks.Gaussian(sigma=10),
)
MILLION = 10**6
Totals = Callable[[], ks.Invariants]


def focused() -> ks.Invariants:
    """3,143 counties of 20 cells with the grand total kept."""
    domain = county_hierarchy(3143 * 20).domain
    if domain is None:
        raise AssertionError("the counties have names")
    return ks.Invariants.margins(domain, [[]])


LEVELS = {"state": "1/10", "county": "1/10"}
# Totals and noise, one or more for each method; the draws at a time, many where a draw takes many tries or few.
STATED: dict[str, tuple[Totals, ks.Laplace | ks.Gaussian, int]] = {
    "no total, 10^6 cells": (lambda: ks.Invariants.subsets(MILLION, []), L1, 5),
    "no total, 10^6 cells, Gaussian": (lambda: ks.Invariants.subsets(MILLION, []), GAUSSIAN, 1),
    "51 totals over 10^6 cells": (lambda: groups(MILLION, 51), L1, 5),
    "one total over 102 cells": (lambda: groups(102, 1), L1, 20_000),
    "a hierarchy of 10^6 cells": (lambda: county_hierarchy(MILLION), L1, 5),
    "51 totals over 10^6 cells, Gaussian": (lambda: groups(MILLION, 51), GAUSSIAN, 1),
    "circles": (circles, L1, 20_000),
    "circles, l2 Laplace": (circles, L2, 20_000),
    "4 × 4": (lambda: margins(4, 4), L1, 4_000),
    "4 × 4, Gaussian": (lambda: margins(4, 4), GAUSSIAN, 20_000),
    "20 × 20": (lambda: margins(20, 20), L1, 200),
    "64 × 64": (lambda: margins(64, 64), L1, 20),
    "102 × 5": (lambda: margins(102, 5), L1, 100),
    "1000 × 4": (lambda: margins(1000, 4), L1, 20),
    "3,143 × 8": (lambda: margins(3143, 8), L1, 10),
    "40 × 4 regions of three cells": (regions, L1, 200),
    "50 × 50, Gaussian": (lambda: margins(50, 50), GAUSSIAN, 100),
    "5 × 4 × 3": (lambda: margins(5, 4, 3), L1, 30),
    "10 × 10 × 10, Gaussian": (lambda: margins(10, 10, 10), GAUSSIAN, 200),
    "focus on states and counties": (focused, ks.Laplace.per_unit("0.3", focus=LEVELS), 3),
    "focus on states and counties, Gaussian": (focused, ks.Gaussian.per_unit(rho="0.03", focus=LEVELS), 3),
    "five weighted totals of 40 cells": (lambda: SYSTEMS["random 5 × 40"], L1, 500),
    "3 × 3 × 3 × 3, cycle, ε = 1": (lambda: SYSTEMS["3 × 3 × 3 × 3, cycle"], ks.Laplace.per_unit(epsilon=1), 10),
    "5 × 5 × 5": (lambda: margins(5, 5, 5), L1, 1),
    "5 × 5 × 5, ε = 1": (lambda: margins(5, 5, 5), ks.Laplace.per_unit(epsilon=1), 1),
}


@case("what plans say that a draw takes", quick=False)
def stated(bench: Bench) -> None:
    """How many times longer or shorter; one calibration loop stands for a second of the machine that they name."""
    for name, (totals, noise, draws) in STATED.items():
        plan = ks.plan(keep=totals(), mechanism=noise)
        seconds = seconds_per_draw(plan.samplers)
        assert seconds is not None
        works = {"measured": Work(lambda p=plan, n=draws: p.sample(n), draws), "loop": CALIBRATION}
        times = by_turns(works, 3)
        off = times["measured"].cpu / times["loop"].cpu / seconds
        bench.figure(f"{name}: off by a factor of", Spread.of(np.maximum(off, 1 / off)), "×", at_most(WITHIN))
        bench.record(f"stated/{name}/seconds_per_draw", times["measured"].best, "s")
