"""Time and memory of compiling plans and lattices, against their stated limits. Run by `make bench`.

Each measurement runs in its own process, for its own memory; time is CPU time, the best of three.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from measuring import Report

import keepsum as ks

STATES, COUNTIES = 51, 3143


def hierarchy(cells: int) -> ks.Domain:
    """States, counties within them, and enough cells in each county."""
    states = [f"state {s}" for s in range(STATES)]
    counties = [(states[c % STATES], f"county {c}") for c in range(COUNTIES)]
    kinds = [f"kind {k}" for k in range(-(-cells // COUNTIES))]
    return ks.Domain({"state": states, "county": counties, "kind": kinds}, within={"county": "state"})


def compile_hierarchy(cells: int) -> None:
    domain = hierarchy(cells)
    keep = ks.Invariants.margins(domain, [["county"], ["state"], []])
    plan = ks.plan(keep, ks.Laplace(epsilon=0.25))
    assert len(plan.structure.sizes) == COUNTIES
    assert not plan.structure.blocks


def compile_three_totals() -> None:
    rng = np.random.default_rng(1)
    chosen = [np.flatnonzero(rng.random(10**6) < 0.5) for _ in range(3)]
    plan = ks.plan(ks.Invariants.subsets(10**6, chosen), ks.Laplace(epsilon=0.25))
    assert len(plan.structure.sizes) <= 8


def table_lattice(shape: tuple[int, ...]) -> ks.Lattice:
    """A table under all its margins of one way less."""
    axes = [f"axis {a}" for a in range(len(shape))]
    domain = ks.Domain({axis: list(range(n)) for axis, n in zip(axes, shape, strict=True)})
    margins = [[other for other in axes if other != axis] for axis in axes]
    return ks.Lattice(ks.Invariants.margins(domain, margins).coefficients)


# What is measured: name, the work, CPU seconds and gigabytes allowed.
JOBS: dict[str, tuple[Callable[[], object], float, float]] = {
    "compile 3-level hierarchy, 10^6 cells": (lambda: compile_hierarchy(10**6), 5, 1.5),
    "compile 3-level hierarchy, 10^7 cells": (lambda: compile_hierarchy(10**7), 60, 18),
    "compile 10^6 cells under 3 overlapping totals": (compile_three_totals, 5, 1.5),
    "kernel basis of 50 x 50 margins": (lambda: table_lattice((50, 50)).basis, 1, 1),
    "kernel basis of 10 x 10 x 10, 2-way margins": (lambda: table_lattice((10, 10, 10)).basis, 2, 1),
    "smith form of 20 x 20 margins": (lambda: table_lattice((20, 20)).smith, 10, 1),
}


def measure(name: str) -> tuple[float, float]:
    """CPU seconds (best of three) and peak gigabytes, in a fresh process."""
    runs = [json.loads(subprocess.check_output([sys.executable, __file__, name])) for _ in range(3)]
    return min(run["seconds"] for run in runs), max(run["gigabytes"] for run in runs)


def main() -> int:
    report = Report()
    seconds: dict[str, float] = {}
    for name, (_, time_limit, memory_limit) in JOBS.items():
        seconds[name], gigabytes = measure(name)
        report.line(name, seconds[name], "seconds", time_limit, at_least=False)
        report.line(f"  its memory ({name})", gigabytes, "GB", memory_limit, at_least=False)
    million, ten = list(seconds.values())[:2]
    report.line("hierarchy of 10^7 cells against 10^6", ten / million, "times", 12, at_least=False)
    return report.status


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(main())
    start = time.process_time()
    JOBS[sys.argv[1]][0]()
    spent = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": spent, "gigabytes": peak}))
