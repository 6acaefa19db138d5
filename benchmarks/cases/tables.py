"""Exact l1 noise in two-way tables with both margins kept, against what else there is for them."""

from __future__ import annotations

import numpy as np

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
from benchmarks.systems import general_chain, margins

EXACT, CHAIN, PROJECTED = "exact, by splitting columns", f"Algorithm 1, to TV {TOTAL_VARIATION:g}", "projected by HiGHS"
GENERAL = "general chain"
SIDES, QUICK_SIDES = (4, 5, 6, 8, 12, 16), (4, 8, 16)  # larger ones are among the shapes below
PROJECTED_UP_TO, QUICK_PROJECTED_UP_TO = 12, 8  # 16 × 16 took HiGHS more than 100 s
# Times faster that exact draws must be, by side.
THAN_CHAIN, THAN_PROJECTED = {4: 80, 5: 2_500}, {4: 1_000, 8: 500}


def exact(keep: ks.Invariants, draws: int, epsilon: str = EPSILON) -> Work:
    """Draws from a table's plan, which must be exact; the unit is one draw."""
    plan = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=epsilon))
    assert plan.guarantee.sampling == "exact", plan.explain()
    return Work(lambda: plan.sample(draws), draws)


def general(side: int, draws: int) -> Work:
    """Draws of the general sampler's chain, which is estimated; the unit is one draw."""
    chain, _ = general_chain(margins(side, side), EPSILON)
    noise = np.empty((draws, chain.width), dtype=np.int64)
    return Work(lambda: chain.draw_into(noise, ks.rng(seed=3)), draws)


@case("two-way tables")
def two_way(bench: Bench) -> None:
    """Square tables against peers, then tables of many shapes; the curve has the square ones of both."""
    points: dict[str, list[Point]] = {EXACT: [], CHAIN: [], PROJECTED: []}
    squares(bench, points)
    shapes(bench, points[EXACT])
    for name, measured in points.items():
        power = bench.curve("tables", name, measured, (64, 128**2) if name == EXACT else ())
        if power is not None:
            bench.figure("square tables, exact: time grows with this power of the cells", power, "", at_most(1.5))


def squares(bench: Bench, points: dict[str, list[Point]]) -> None:
    """Small square tables, so many draws at a time that a call takes no time."""
    for side in QUICK_SIDES if bench.quick else SIDES:
        works = {EXACT: exact(margins(side, side), 64_000 // side**2)}
        met = True
        if side in chain_sides(bench):
            works[CHAIN], works[GENERAL] = algorithm_1(side), general(side, max(5, 1_000 // side**2))
            met = algorithm_1_steps(side)[1]
        if side <= (QUICK_PROJECTED_UP_TO if bench.quick else PROJECTED_UP_TO):
            works[PROJECTED] = projection(side)
        times = by_turns(works, bench.pick(7, 3))
        for name in points.keys() & times.keys():
            points[name].append(Point(side**2, times[name], least=not met and name == CHAIN))
        compare(bench, side, times, not met)
        record(bench, side, times, met)


def record(bench: Bench, side: int, times: dict[str, Timing], met: bool) -> None:
    """What pages show of a square table; steps of Algorithm 1 are a lower limit where its pairs had not met."""
    name = f"two-way/{side}x{side}/{EPSILON}"
    bench.record_rate(name, times[EXACT])
    if CHAIN in times:
        bench.record_rate(f"{name}/general", times[GENERAL])
        bench.record_rate(f"{name}/algorithm_1", times[CHAIN])
        bench.record(f"{name}/algorithm_1/steps", algorithm_1_steps(side)[0], "steps")
        bench.record(f"{name}/algorithm_1/met", "yes" if met else "no", "coupled pairs")


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
    "20 × 20": (lambda: margins(20, 20), ("0.25", "1", "2", "3"), 200, 15, True),
    "32 × 32": (lambda: margins(32, 32), ("0.25", "1", "3"), 100, 18, False),
    "64 × 64": (lambda: margins(64, 64), ("0.25", "1", "3"), 25, 25, False),
    "128 × 128": (lambda: margins(128, 128), ("0.25", "1"), 10, 30, False),
    "102 × 5": (lambda: margins(102, 5), ("0.25", "1"), 100, 12, True),
    "1000 × 4": (lambda: margins(1000, 4), ("0.25", "1"), 20, 25, True),
    "3,143 × 8": (lambda: margins(3143, 8), ("0.25", "1"), 10, 35, False),
    "40 × 4 regions of three cells": (regions, ("0.25", "1"), 100, 12, True),
}
# Decomposable margins: the lengths of the axes, the margins, epsilon, draws at a time, and draws per second to reach.
FAMILIES = {
    "20x8x2/0.25": ((20, 8, 2), "A,B,C", 500, 3000),
    "20x8x2/1": ((20, 8, 2), "A,B,C", 500, 3000),
    "51x20x2/0.25": ((51, 20, 2), "A,B,C", 100, 400),
    "10x10x10/0.25": ((10, 10, 10), "A,B,C", 100, 800),
    "20x20x20/0.25": ((20, 20, 20), "A,B,C", 20, 100),
    "3143x8x2/0.25": ((3143, 8, 2), "A,B,C", 5, 60),
    "6x6x6x6/0.25": ((6, 6, 6, 6), "A,B,C,D", 100, 500),
    "10x5x4x3/1": ((10, 5, 4, 3), "AB,BC,CD", 200, 800),
    "51x20x2x5/0.25": ((51, 20, 2, 5), "A,B,C,D", 10, None),
    "50x20x10x5x2/0.25": ((50, 20, 10, 5, 2), "A,B,C,D,E", 1, None),
}
PLAN_LIMIT = 2


def shapes(bench: Bench, squares: list[Point]) -> None:
    """Plans are timed once, as a user waits for them, with kernels that are compiled."""
    for keep in (margins(5, 5), margins(12, 3), regions(3)):
        ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=EPSILON)).sample(2)
    for name, (totals, epsilons, draws, allowed, quick) in SHAPES.items():
        if bench.quick and not quick:
            continue
        keep = totals()
        for epsilon in epsilons[: bench.pick(4, 1)]:
            mechanism = ks.Laplace.per_unit(epsilon=epsilon)
            plans = {
                "ours": Work(lambda k=keep, m=mechanism: ks.plan(keep=k, mechanism=m).samplers),
                "loop": CALIBRATION,
            }
            planning = by_turns(plans, 1, warm=False)
            works = {"ours": exact(keep, draws, epsilon), "NumPy": numpy_noise(keep.size)}
            times = by_turns({**works, "NumPy": Work(works["NumPy"].run)}, bench.pick(7, 5))
            what = f"{name}, ε = {epsilon}"
            share = ratio(times["ours"], times["NumPy"])
            bench.figure(f"{what}: time per draw / NumPy's noise", share, "×", at_most(allowed), times)
            share = ratio(planning["ours"], planning["loop"])
            bench.figure(f"{what}: plan / calibration loop", share, "×", at_most(PLAN_LIMIT), planning)
            sides = name.replace(",", "").split(" × ")
            if len(sides) == 2 and all(map(str.isdigit, sides)):
                record_shape(bench, f"two-way/{'x'.join(sides)}/{epsilon}", keep, mechanism, times["ours"])
                if sides[0] == sides[1] and epsilon == EPSILON and int(sides[0]) > max(SIDES):
                    squares.append(Point(keep.size, times["ours"]))


def record_shape(bench: Bench, name: str, keep: ks.Invariants, mechanism: ks.Laplace, timing: Timing) -> None:
    """What pages show of a table: draws per second, and how many proposals a pilot accepts."""
    (choice,) = ks.plan(keep=keep, mechanism=mechanism).samplers
    bench.record_rate(name, timing)
    bench.record(f"{name}/accepted", choice.acceptance or 1.0, "share")


@case("decomposable margins", quick=False)
def families(bench: Bench) -> None:
    """Tables of three axes and more, with a total kept for each or a chain of margins, against NumPy's noise."""
    for name, (shape, kept, draws, rate) in FAMILIES.items():
        axes = {chr(65 + k): range(length) for k, length in enumerate(shape)}
        keep = ks.Invariants.margins(ks.Domain(axes), [list(margin) for margin in kept.split(",")])
        works = {"ours": exact(keep, draws, name.partition("/")[2]), "NumPy": numpy_noise(keep.size)}
        times = by_turns(works, 5)
        shown = name.replace("x", " × ").replace("/", ", ε = ")
        bench.figure(f"{shown}: time per draw / NumPy's noise", ratio(times["ours"], times["NumPy"]), "×", None, times)
        bench.record_rate(f"families/{name}", times["ours"])
        if rate is not None:
            bench.figure(f"{shown}: draws per second", 1 / times["ours"].best, "draws/s", at_least(rate))
