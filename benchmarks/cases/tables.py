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
from keepsum.planning.plan import compile_plan
from keepsum.spark.layout import Layout
from keepsum.spark.preparing import check_distributable, draw_sums

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
    "10x5x4x3/0.25": ((10, 5, 4, 3), "AB,BC,CD", 200, 800),
    "1000x4/0.25": ((1000, 4), "A,B", 20, 2000),
    "51x20x2x5/0.25": ((51, 20, 2, 5), "A,B,C,D", 10, None),
    "50x20x10x5x2/0.25": ((50, 20, 10, 5, 2), "A,B,C,D,E", 1, None),
    "20x8x2/0.05": ((20, 8, 2), "A,B,C", 500, None),
    "51x20x2/0.05": ((51, 20, 2), "A,B,C", 100, None),
    "10x10x10/0.05": ((10, 10, 10), "A,B,C", 100, None),
    "20x8x2/4": ((20, 8, 2), "A,B,C", 500, None),
    "51x20x2/4": ((51, 20, 2), "A,B,C", 100, None),
    "10x10x10/4": ((10, 10, 10), "A,B,C", 100, None),
    "20x20x20/4": ((20, 20, 20), "A,B,C", 20, None),
    "6x6x6x6/4": ((6, 6, 6, 6), "A,B,C,D", 100, None),
    "51x20x2x5/5": ((51, 20, 2, 5), "A,B,C,D", 10, None),
}
PLAN_LIMIT = 2
FAMILY_PLAN_LIMIT = {"20x8x2/0.25": 1, "20x8x2/1": 1}  # a second, which is about what the loop takes
# What is refused, and how: its totals, and the calibration loops that may take.
REFUSED = {
    "51x20x5, two-way margins": ((51, 20, 5), "AB,AC,BC"),
    "20x20x20, two-way margins": ((20, 20, 20), "AB,AC,BC"),
    "10x6x5x4x2, two-way margins": ((10, 6, 5, 4, 2), "AB,AC,AD,AE,BC,BD,BE,CD,CE,DE"),
    "2^14, one-way margins": ((2,) * 14, "A,B,C,D,E,F,G,H,I,J,K,L,M,N"),
}


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
    """Tables with a total kept for each axis or a chain of margins, against NumPy's noise; plans as a user waits."""
    for name, (shape, kept, draws, rate) in FAMILIES.items():
        axes = {chr(65 + k): range(length) for k, length in enumerate(shape)}
        keep = ks.Invariants.margins(ks.Domain(axes), [list(margin) for margin in kept.split(",")])
        epsilon = name.partition("/")[2]
        mechanism = ks.Laplace.per_unit(epsilon=epsilon)
        plans = {"ours": Work(lambda k=keep, m=mechanism: ks.plan(keep=k, mechanism=m).samplers), "loop": CALIBRATION}
        planning = by_turns(plans, 1, warm=False)
        works = {"ours": exact(keep, draws, epsilon), "NumPy": numpy_noise(keep.size)}
        times = by_turns(works, 5)
        shown = name.replace("x", " × ").replace("/", ", ε = ")
        bench.figure(f"{shown}: time per draw / NumPy's noise", ratio(times["ours"], times["NumPy"]), "×", None, times)
        bench.record_rate(f"families/{name}", times["ours"])
        limit = at_most(FAMILY_PLAN_LIMIT[name]) if name in FAMILY_PLAN_LIMIT else None
        share = ratio(planning["ours"], planning["loop"])
        bench.figure(f"{shown}: plan / calibration loop", share, "×", limit, planning)
        if rate is not None:
            bench.figure(f"{shown}: draws per second", 1 / times["ours"].best, "draws/s", at_least(rate))


@case("decomposable margins: targets and refusals")
def waiting(bench: Bench) -> None:
    """The loss for a margin of error of 20 x 8 x 2, and what cannot be drawn: a new plan in every round."""
    ks.plan(keep=margins(5, 5), mechanism=ks.Laplace.per_unit(epsilon=EPSILON)).sample(2)
    domain = ks.Domain({"county": range(20), "age": range(8), "sex": range(2)})
    keep = [["county"], ["age"], ["sex"]]
    search = Work(lambda: ks.mechanism_for(domain, keep=keep, mechanism=ks.Laplace(epsilon=1), margin=10))
    times = by_turns({"ours": search, "loop": CALIBRATION}, bench.pick(3, 1), warm=False)
    share = ratio(times["ours"], times["loop"])
    bench.figure("20 × 8 × 2: a loss for a margin of ±10 / calibration loop", share, "×", at_most(5), times)
    for name, (shape, kept) in REFUSED.items():
        axes = {chr(65 + k): range(length) for k, length in enumerate(shape)}
        totals = ks.Invariants.margins(ks.Domain(axes), [list(margin) for margin in kept.split(",")])
        mechanism = ks.Laplace.per_unit(epsilon=EPSILON)
        refusal = Work(lambda totals=totals, m=mechanism: ks.plan(keep=totals, mechanism=m).samplers)
        times = by_turns({"ours": refusal, "loop": CALIBRATION}, bench.pick(3, 1), warm=False)
        share = ratio(times["ours"], times["loop"])
        bench.figure(f"{name}: no sampler / calibration loop", share, "×", at_most(PLAN_LIMIT), times)


@case("what Spark's driver draws", quick=False)
def spark_driver(bench: Bench) -> None:
    """A table with a total kept for each axis, planned in groups, and the sums that workers fill; without Spark."""
    for shape in ((20, 8, 2), (10, 5, 4, 3, 2), (51, 20, 2, 5)):
        domain = ks.Domain({chr(65 + k): range(length) for k, length in enumerate(shape)})
        keep = ks.Invariants.margins(domain, [[axis] for axis in domain.axes])

        def driver(keep: ks.Invariants = keep) -> object:
            plan = compile_plan(keep, ks.Laplace(epsilon=1), in_groups=True)
            return draw_sums(plan, Layout.of(check_distributable(plan)), ks.rng(seed=1))

        times = by_turns({"ours": Work(driver), "loop": CALIBRATION}, 3)
        name = "x".join(map(str, shape))
        bench.record(f"spark/overlapping/{name}/seconds", times["ours"].best, "s")
        share = ratio(times["ours"], times["loop"])
        bench.figure(f"{' × '.join(map(str, shape))}: the driver / calibration loop", share, "×", None, times)
