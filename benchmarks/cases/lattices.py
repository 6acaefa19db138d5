"""Exact integer algebra: Smith forms against sympy, and plans of large tables with their memory."""

from __future__ import annotations

from typing import Any

import keepsum as ks
from benchmarks.children import in_child, timing_of
from benchmarks.measuring import Work, by_turns, ratio
from benchmarks.peers import CALIBRATION, sympy_smith
from benchmarks.registry import Bench, Point, at_least, at_most, case
from benchmarks.systems import margins

SIDES, QUICK_SIDES = (4, 6, 8, 12, 16), (4, 8, 12)
THAN_SYMPY = {12: 30, 16: 100}


def smith(side: int) -> Work:
    """Smith form with transforms of the margins of a square table, from the matrix on."""
    coefficients = margins(side, side).coefficients
    return Work(lambda: ks.Lattice(coefficients).smith)


@case("Smith forms")
def smith_forms(bench: Bench) -> None:
    points: dict[str, list[Point]] = {"ours": [], "sympy": []}
    for side in QUICK_SIDES if bench.quick else SIDES:
        times = by_turns({"ours": smith(side), "sympy": sympy_smith(side)}, 3)
        for name, timing in times.items():
            points[name].append(Point(side**2, timing))
        if side in THAN_SYMPY:
            faster, wanted = ratio(times["sympy"], times["ours"]), at_least(THAN_SYMPY[side])
            bench.figure(f"Smith form of {side} × {side} margins: times faster than sympy", faster, "×", wanted, times)
    for name, measured in points.items():
        power = bench.curve("lattices", name, measured, (64, 10**4))
        if power is not None and name == "ours":
            bench.figure("Smith form: time grows with this power of the cells", power, "", at_most(1.5))


# What runs in a process of its own: the job, how many calibration loops its CPU time may be, gigabytes, quick or not.
LARGE: dict[str, tuple[tuple[object, ...], float, float, bool]] = {
    "plan of a 3-level hierarchy, 10^6 cells": (("plan_hierarchy", 10**6), 1, 0.6, True),
    "plan of a 3-level hierarchy, 10^7 cells": (("plan_hierarchy", 10**7), 8, 3, False),
    "plan of 10^6 cells under 3 overlapping totals": (("plan_three_totals", 10**6), 4, 0.6, True),
    "kernel basis of 50 × 50 margins": (("kernel_basis", 50, 50), 0.3, 0.4, False),
    "kernel basis of 10 × 10 × 10, two-way margins": (("kernel_basis", 10, 10, 10), 0.3, 0.4, False),
}


@case("large plans, time and memory")
def large_plans(bench: Bench) -> None:
    medians = {}
    for name, (job, loops, gigabytes, quick) in LARGE.items():
        if bench.quick and not quick:
            continue
        rounds = bench.pick(2, 1)
        results: list[dict[str, Any]] = []
        run = Work(lambda job=job, results=results: results.append(in_child(str(job[0]), *job[1:])))
        loop = by_turns({"ours": run, "loop": CALIBRATION}, rounds, warm=False)["loop"]
        times = {"ours": timing_of(results), "loop": loop}
        medians[name] = times["ours"].spread().median
        bench.figure(f"{name} / calibration loop", ratio(times["ours"], loop), "×", at_most(loops), times)
        bench.figure(f"{name}: peak memory", max(one["gigabytes"] for one in results), "GB", at_most(gigabytes))
    if not bench.quick:
        million, ten = list(medians.values())[:2]
        bench.figure("plan of a hierarchy of 10^7 cells against 10^6", ten / million, "×", at_most(12))
