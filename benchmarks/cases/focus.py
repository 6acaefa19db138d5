"""Noise with a focus: plans and draws of nested totals, and of totals that cross, against a calibration loop."""

from __future__ import annotations

from itertools import product

import numpy as np

import keepsum as ks
from benchmarks.measuring import Work, by_turns, ratio
from benchmarks.peers import CALIBRATION
from benchmarks.registry import Bench, at_most, case
from benchmarks.systems import county_hierarchy

PLAN_SECONDS, DRAW_SECONDS, LARGE_SECONDS = 10, 0.05, 1  # in calibration loops, of about a second
LINEAR = 15  # times as long for ten times as many cells
CROSSED = {
    "20 × 20, both focused": (20, [], {"row": "1/10", "column": "1/10"}),
    "10 × 10, rows kept": (10, [["row"]], {"column": "1/10"}),
}


# The lengths of axes A, B and C, those that are focused (the others are kept), and draws at a time.
AXES = {
    "20x8x2": ((20, 8, 2), ("ABC", "A", "B", "C"), 300),
    "51x20x2": ((51, 20, 2), ("ABC", "A", "B", "C"), 60),
}


@case("focus")
def focus(bench: Bench) -> None:
    """States and counties of 3,143 × 20 cells, 10^6 cells in 10^4 groups, and two-way tables."""
    domain = county_hierarchy(3143 * 20).domain
    if domain is None:
        raise AssertionError("the counties have names")
    keep = ks.Invariants.margins(domain, [[]])
    levels = {"state": "1/10", "county": "1/10"}
    for name, mechanism in {
        "Laplace": ks.Laplace.per_unit("0.3", focus=levels),
        "Gaussian": ks.Gaussian.per_unit(rho="0.03", focus=levels),
    }.items():
        plan = made(keep, mechanism)
        works = {
            "plan": Work(lambda mechanism=mechanism: made(keep, mechanism)),
            "draw": Work(lambda plan=plan: plan.sample(1, rng=ks.rng(seed=1))),
            "loop": CALIBRATION,
        }
        times = by_turns(works, bench.pick(5, 2))
        for what, limit in (("plan", PLAN_SECONDS), ("draw", DRAW_SECONDS)):
            pair = {what: times[what], "loop": times["loop"]}
            words = f"{name}, a {what} of 3,143 × 20 cells / calibration loop"
            bench.figure(words, ratio(*pair.values()), "×", at_most(limit), pair)
    growth(bench)
    crossed(bench)


def growth(bench: Bench) -> None:
    """Groups of 100 cells with a weight of their own, under a kept total."""
    works = {"loop": CALIBRATION}
    for cells in (10**5, 10**6):
        domain = ks.Domain({"group": range(cells // 100), "cell": range(100)})
        plan = made(ks.Invariants.margins(domain, [[]]), ks.Laplace.per_unit("1/4", focus={"group": "1/10"}))
        works[f"{cells:,} cells"] = Work(lambda plan=plan: plan.sample(1, rng=ks.rng(seed=1)))
    times = by_turns(works, bench.pick(5, 2))
    large, small, loop = times["1,000,000 cells"], times["100,000 cells"], times["loop"]
    words = "a draw of 10^6 cells in 10^4 groups / calibration loop"
    bench.figure(words, ratio(large, loop), "×", at_most(LARGE_SECONDS), {"draw": large, "loop": loop})
    words = "a draw of 10^6 cells / one of 10^5"
    bench.figure(words, ratio(large, small), "×", at_most(LINEAR), {"10^6": large, "10^5": small})


def crossed(bench: Bench) -> None:
    """A focused margin is one more row or column of a table with kept margins."""
    for name, (side, margins, levels) in CROSSED.items():
        domain = ks.Domain({"row": range(side), "column": range(side)})
        plan = made(ks.Invariants.margins(domain, margins), ks.Laplace.per_unit("1/2", focus=levels))
        works = {"draw": Work(lambda plan=plan: plan.sample(100, rng=ks.rng(seed=1)), 100), "loop": CALIBRATION}
        times = by_turns(works, bench.pick(5, 2))
        bench.figure(f"a draw of {name} / calibration loop", ratio(*times.values()), "×", at_most(0.005), times)


@case("axes with a focus", quick=False)
def axes_with_a_focus(bench: Bench) -> None:
    """Tables of three axes with a total of each category kept or focused, with the epsilon of a cell."""
    for name, (shape, chosen, draws) in AXES.items():
        domain = ks.Domain({axis: range(length) for axis, length in zip("ABC", shape, strict=True)})
        for focused, epsilon in product(chosen, ("0.25", "1")):
            keep = ks.Invariants.margins(domain, [[axis] for axis in "ABC" if axis not in focused])
            plan = made(keep, ks.Laplace.per_unit(epsilon, focus=dict.fromkeys(focused, epsilon)))
            works = {"draw": Work(lambda plan=plan, draws=draws: plan.sample(draws, rng=ks.rng(seed=1)), draws)}
            times = by_turns({**works, "loop": CALIBRATION}, 5)
            shown = f"{name.replace('x', ' × ')}, focus on {focused}, ε = {epsilon}"
            bench.figure(f"a draw of {shown} / calibration loop", ratio(times["draw"], times["loop"]), "×", None, times)
            bench.record_rate(f"focus/{name}/{focused}/{epsilon}", times["draw"])
            bench.record(f"focus/{name}/{focused}/{epsilon}/accepted", plan.samplers[0].acceptance or 1.0, "share")


def made(keep: ks.Invariants, mechanism: ks.Laplace | ks.Gaussian) -> ks.Plan:
    """A plan with its samplers."""
    plan = ks.plan(keep=keep, mechanism=mechanism)
    if not np.any(plan.sample(1, rng=ks.rng(seed=1))):
        raise AssertionError("there is noise")
    return plan
