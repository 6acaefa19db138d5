"""Exact l1 noise in two-way tables with both margins kept, against what else there is for them."""

from __future__ import annotations

import keepsum as ks
from benchmarks.measuring import Timing, Work, by_turns, ratio
from benchmarks.peers import (
    CALIBRATION,
    EPSILON,
    TOTAL_VARIATION,
    algorithm_1,
    algorithm_1_steps,
    numpy_noise,
    projection,
)
from benchmarks.registry import Bench, Point, at_least, at_most, case
from benchmarks.systems import margins

EXACT, CHAIN, PROJECTED = "exact, by splitting columns", f"Algorithm 1, to TV {TOTAL_VARIATION:g}", "projected by HiGHS"
SIDES, QUICK_SIDES = (4, 5, 6, 8, 12, 16, 32, 64, 128), (4, 8, 16, 32)
PROJECTED_UP_TO, QUICK_PROJECTED_UP_TO = 12, 8  # 16 × 16 took HiGHS more than 100 s
# Times faster that exact draws must be, by side.
THAN_CHAIN, THAN_PROJECTED = {4: 80, 5: 2_500}, {4: 1_000, 8: 500}


def exact(keep: ks.Invariants, draws: int, epsilon: str = EPSILON) -> Work:
    """Draws from a table's plan, which must be exact; the unit is one draw."""
    plan = ks.plan(keep, ks.Laplace(epsilon=epsilon))
    assert plan.guarantee.sampling == "exact", plan.explain()
    return Work(lambda: plan.sample(draws), draws)


@case("square tables, peers")
def squares(bench: Bench) -> None:
    points: dict[str, list[Point]] = {EXACT: [], CHAIN: [], PROJECTED: []}
    for side in QUICK_SIDES if bench.quick else SIDES:
        works = {EXACT: exact(margins(side, side), max(1, 2_000 // side**2))}
        least = False
        if side in chain_sides(bench):
            works[CHAIN] = algorithm_1(side)
            least = not algorithm_1_steps(side)[1]
        if side <= (QUICK_PROJECTED_UP_TO if bench.quick else PROJECTED_UP_TO):
            works[PROJECTED] = projection(side)
        times = by_turns(works, bench.pick(7, 3))
        for name, timing in times.items():
            points[name].append(Point(side**2, timing, least=least and name == CHAIN))
        compare(bench, side, times, least)
    for name, measured in points.items():
        power = bench.curve("tables", name, measured, (64, 128**2) if name == EXACT else ())
        if power is not None:
            bench.figure("square tables, exact: time grows with this power of the cells", power, "", at_most(1.5))


def chain_sides(bench: Bench) -> tuple[int, ...]:
    """The tables that Algorithm 1 is run on."""
    return (4,) if bench.quick else (4, 5, 6, 8, 16)


def compare(bench: Bench, side: int, times: dict[str, Timing], least: bool) -> None:
    """How many times faster an exact draw is; of Algorithm 1 at least so many where its pairs had not met."""
    for name, peer, targets in ((CHAIN, "Algorithm 1", THAN_CHAIN), (PROJECTED, "projection by HiGHS", THAN_PROJECTED)):
        if name in times:
            wanted = at_least(targets[side]) if side in targets else None
            pair = {"ours": times[EXACT], peer: times[name]}
            more = "at least so many times" if least and name == CHAIN else "times"
            bench.figure(
                f"{side} × {side}: {more} faster than {peer}", ratio(times[name], times[EXACT]), "×", wanted, pair
            )


def regions(counties: int = 20) -> ks.Invariants:
    """County by sex, and age, of 20 counties, 2 sexes, 4 ages, 3 educations: 40 × 4 entries, each of three cells."""
    domain = ks.Domain({"county": range(counties), "sex": range(2), "age": range(4), "education": range(3)})
    return ks.Invariants.margins(domain, [["county", "sex"], ["age"]])


# The totals; epsilons; draws at a time; the time per draw that is allowed, as a multiple of that of NumPy's noise in as
# many cells without totals; whether a quick run includes it. A plan may take twice the calibration loop.
SHAPES = {
    "20 × 20": (lambda: margins(20, 20), ("0.25", "1"), 50, 15, True),
    "32 × 32": (lambda: margins(32, 32), ("0.25", "1", "3"), 20, 18, False),
    "64 × 64": (lambda: margins(64, 64), ("0.25", "1", "3"), 5, 25, False),
    "128 × 128": (lambda: margins(128, 128), ("0.25", "1"), 1, 30, False),
    "102 × 5": (lambda: margins(102, 5), ("0.25", "1"), 50, 12, True),
    "1000 × 4": (lambda: margins(1000, 4), ("0.25", "1"), 10, 25, True),
    "3,143 × 8": (lambda: margins(3143, 8), ("0.25", "1"), 2, 35, False),
    "40 × 4 regions of three cells": (regions, ("0.25", "1"), 100, 12, True),
}
PLAN_LIMIT = 2


@case("tables of many shapes")
def shapes(bench: Bench) -> None:
    """Plans are timed once, as a user waits for them, with kernels that are compiled."""
    for keep in (margins(5, 5), margins(12, 3), regions(3)):
        ks.plan(keep, ks.Laplace(epsilon=EPSILON)).sample(2)
    for name, (totals, epsilons, draws, allowed, quick) in SHAPES.items():
        if bench.quick and not quick:
            continue
        keep = totals()
        for epsilon in epsilons[: bench.pick(3, 1)]:
            mechanism = ks.Laplace(epsilon=epsilon)
            plans = {"ours": Work(lambda k=keep, m=mechanism: ks.plan(k, m).samplers), "loop": CALIBRATION}
            planning = by_turns(plans, 1, warm=False)
            works = {"ours": exact(keep, draws, epsilon), "NumPy": numpy_noise(keep.size)}
            times = by_turns({**works, "NumPy": Work(works["NumPy"].run)}, bench.pick(7, 5))
            what = f"{name}, ε = {epsilon}"
            share = ratio(times["ours"], times["NumPy"])
            bench.figure(f"{what}: time per draw / NumPy's noise", share, "×", at_most(allowed), times)
            share = ratio(planning["ours"], planning["loop"])
            bench.figure(f"{what}: plan / calibration loop", share, "×", at_most(PLAN_LIMIT), planning)
