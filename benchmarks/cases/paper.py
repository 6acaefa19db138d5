"""The paper's small systems: draws of their plans, and steps of the paper's chain."""

from __future__ import annotations

import math

import keepsum as ks
from benchmarks.measuring import Work, by_turns, ratio
from benchmarks.registry import Bench, case
from experiments import children, circles
from experiments.small import EPSILON, Target
from experiments.steps import invariants, lattice, mechanism

SYSTEMS: dict[str, tuple[Target, ...]] = {"circles": circles.CIRCLES_TARGETS, "children": children.CHILDREN_TARGETS}
SAME = f"children/l1/{EPSILON}"  # is two-way/4x4, and has its figure there
DRAWS, STEPS = 4_000, 200_000


@case("the paper's systems")
def paper(bench: Bench) -> None:
    """With the proposals that the paper's chain has in ``experiments``; a step is not a draw."""
    for system, targets in SYSTEMS.items():
        for target in targets:
            plan = ks.plan(keep=invariants(system), mechanism=mechanism(target.norm, EPSILON))
            arguments = lattice(system), mechanism(target.norm, EPSILON), STEPS, math.exp(target.log_a)
            works = {
                "ours": Work(lambda p=plan: p.sample(DRAWS), DRAWS),
                "a step of Algorithm 1": Work(
                    lambda a=arguments: ks.mcmc.metropolis(*a, thin=STEPS, rng=ks.rng(seed=1), threads=1), STEPS
                ),
            }
            times = by_turns(works, bench.pick(7, 3))
            steps = ratio(times["ours"], times["a step of Algorithm 1"])
            bench.figure(f"{system}, {target.norm}: a draw / a step of Algorithm 1", steps, "×", None, times)
            name = f"{system}/{target.norm}/{EPSILON}"
            if name != SAME:
                bench.record_rate(name, times["ours"])
            bench.record(f"{name}/algorithm_1/steps_per_second", 1 / times["a step of Algorithm 1"].best, "steps/s")
