"""Draws per second of exact l1 noise in two-way tables, and the seconds that a plan takes. Run by `make bench`.

Limits are those of a machine on which NumPy draws 3.7 * 10^7 geometric numbers per second; both are timed by turns, and
a limit is scaled by NumPy's speed in the same run.
"""

from __future__ import annotations

import sys

import numpy as np
from measuring import Report, by_turns, seconds
from systems import margins

import keepsum as ks

NUMPY_SPEED = 3.7e7  # geometric numbers per second
NUMBERS = 2 * 10**6
PLAN_SECONDS = 2
BOTH = ("0.25", "1")


def regions() -> ks.Invariants:
    """County by sex, and age, of 20 counties, 2 sexes, 4 ages, 3 educations: 40 x 4 entries, each of three cells."""
    domain = ks.Domain({"county": range(20), "sex": range(2), "age": range(4), "education": range(3)})
    return ks.Invariants.margins(domain, [["county", "sex"], ["age"]])


# The totals, epsilons, draws to time and how often, and draws per second that are wanted.
TABLES: dict[str, tuple[ks.Invariants, tuple[str, ...], tuple[int, int, float]]] = {
    "20 x 20": (margins(20, 20), BOTH, (1_000, 5, 1_000)),
    "32 x 32": (margins(32, 32), (*BOTH, "3"), (200, 5, 1_000)),
    "64 x 64": (margins(64, 64), (*BOTH, "3"), (50, 3, 100)),
    "128 x 128": (margins(128, 128), BOTH, (20, 3, 20)),
    "102 x 5": (margins(102, 5), BOTH, (1_000, 5, 1_000)),
    "1000 x 4": (margins(1000, 4), BOTH, (100, 5, 100)),
    "3,143 x 8": (margins(3143, 8), BOTH, (20, 3, 10)),
    "40 x 4 regions of three cells": (regions(), BOTH, (1_000, 5, 2_000)),
}


def measure(report: Report, what: str, keep: ks.Invariants, epsilon: str, timing: tuple[int, int, float]) -> None:
    """The draws per second of one table, and the seconds of its plan, each beside its limit."""
    draws, rounds, wanted = timing
    mechanism, numbers = ks.Laplace(epsilon=epsilon), np.random.default_rng(1)
    planning = seconds(lambda: ks.plan(keep, mechanism).samplers)
    plan = ks.plan(keep, mechanism)
    assert plan.guarantee.sampling == "exact", plan.explain()
    drawing, peer = by_turns(lambda: plan.sample(draws), lambda: numbers.geometric(0.2, NUMBERS), rounds)
    speed = NUMBERS / peer / NUMPY_SPEED
    report.line(what, draws / drawing, "draws/s", wanted * speed, at_least=True)
    report.line("  its plan", planning, "CPU s", PLAN_SECONDS / speed, at_least=False)


def main() -> int:
    report = Report()
    print(f"exact noise in two-way tables; limits scaled to a NumPy that draws {NUMPY_SPEED:,.0f} numbers/s")
    ks.plan(margins(5, 5), ks.Laplace(epsilon=1)).sample(2)  # kernels compiled
    for name, (keep, epsilons, timing) in TABLES.items():
        for epsilon in epsilons:
            measure(report, f"{name}, epsilon {epsilon}", keep, epsilon, timing)
    return report.status


if __name__ == "__main__":
    sys.exit(main())
