"""Three-way tables under all two-way margins: how plans draw them, how often proposals are accepted, how fast."""

from __future__ import annotations

import keepsum as ks
from benchmarks.measuring import Work, by_turns, ratio
from benchmarks.peers import CALIBRATION
from benchmarks.registry import Bench, case
from benchmarks.systems import margins

# The shapes and, at an epsilon of 0.25 and of 1, the exact draws that are made at a time: about a tenth of a second.
SHAPES = {(3, 3, 3): (60, 500), (5, 4, 3): (30, 60), (100, 3, 3): (4, 8), (4, 4, 4): (0, 60), (20, 4, 4): (0, 10),
          (5, 5, 5): (0, 0), (6, 6, 6): (0, 0)}  # fmt: skip


@case("three-way tables", quick=False)
def three_way(bench: Bench) -> None:
    """Only exact draws are timed; the rounds are few, because a draw takes many tries or few."""
    for shape, counts in SHAPES.items():
        for epsilon, draws in zip(("0.25", "1"), counts, strict=True):
            plan, name = (
                ks.plan(keep=margins(*shape), mechanism=ks.Laplace.per_unit(epsilon=epsilon)),
                "x".join(map(str, shape)),
            )
            (choice,) = plan.samplers
            record = f"three-way/{name}/{epsilon}"
            bench.record(f"{record}/method", str(choice.method), "method")
            bench.record(f"{record}/exactness", choice.exactness, "exactness")
            if not draws:
                continue
            assert choice.exactness == "exact", plan.explain()
            times = by_turns({"ours": Work(lambda p=plan, n=draws: p.sample(n), draws), "loop": CALIBRATION}, 5)
            what = f"{' × '.join(map(str, shape))}, ε = {epsilon}: draws in the time of the calibration loop"
            bench.figure(what, ratio(times["loop"], times["ours"]), "draws", None, times)
            bench.record(f"{record}/accepted", choice.acceptance or 1.0, "share")
            bench.record_rate(record, times["ours"])
