"""Three-way tables under all two-way margins: which are drawn exactly, how often proposals are accepted, how fast.

Alone, in some minutes: `python -m experiments.three_way`; OUT=folder for another folder.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from pathlib import Path

import keepsum as ks

SHAPES = ((3, 3, 3), (5, 4, 3), (100, 3, 3), (4, 4, 4), (20, 4, 4), (5, 5, 5), (6, 6, 6))
EPSILONS = ("0.25", "1")
SECONDS = 4.0  # of drawing, for each table
HEAD = ["table", "epsilon", "method", "exactness", "proposals accepted", "seconds to prepare", "draws per second"]


def margins(shape: tuple[int, int, int]) -> ks.Invariants:
    """All two-way margins of a table."""
    domain = ks.Domain({axis: range(n) for axis, n in zip("abc", shape, strict=True)})
    return ks.Invariants.margins(domain, [["a", "b"], ["a", "c"], ["b", "c"]])


def measured(shape: tuple[int, int, int], epsilon: str) -> list[str]:
    """A row of the table: how it is drawn, and CPU seconds of one core; chains are not timed."""
    start = time.process_time()
    plan = ks.plan(margins(shape), ks.Laplace(epsilon=epsilon))
    (choice,) = plan.samplers
    prepared = time.process_time()
    draws = 0
    while choice.exactness == "exact" and time.process_time() < prepared + SECONDS:
        step = 1 if choice.cost > 10**6 else 50
        plan.sample(step, rng=ks.rng(seed=f"three-way {draws}"))
        draws += step
    rate = f"{draws / (time.process_time() - prepared):.2g}" if draws else "-"
    accepted = "-" if choice.acceptance is None else f"{100 * choice.acceptance:.2g}%"
    name = " × ".join(map(str, shape))
    return [name, epsilon, str(choice.method), choice.exactness, accepted, f"{prepared - start:.2g}", rate]


def main() -> int:
    """Measure all tables, and write them."""
    out = Path(os.environ.get("OUT") or Path(__file__).parent / "out")
    out.mkdir(parents=True, exist_ok=True)
    rows = [measured(shape, epsilon) for shape in SHAPES for epsilon in EPSILONS]
    with (out / "three_way.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEAD, *rows])
    print("\n".join("  ".join(row) for row in [HEAD, *rows]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
