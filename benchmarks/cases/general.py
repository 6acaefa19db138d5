"""The general sampler: against Algorithm 1 at the same total variation, draws under hard totals, and its plans."""

from __future__ import annotations

import tempfile

import numpy as np

import keepsum as ks
from benchmarks.children import in_child
from benchmarks.measuring import Timing, Work, by_turns, ratio
from benchmarks.peers import CALIBRATION, EPSILON, TOTAL_VARIATION, algorithm_1, algorithm_1_steps
from benchmarks.registry import Bench, at_least, at_most, case
from benchmarks.systems import SYSTEMS, general_chain, margins
from keepsum.convergence.bounds import first_step_below

# The totals, draws at a time, coupled pairs, and the draws that are wanted in the time of the calibration loop.
HARD = (("3 × 3 × 3 × 3, cycle", 100, 2_000, 500.0), ("4 × 4 × 4 × 4, cycle", 2, 100, 0.5))
LAG = 20  # long enough for nearly all pairs to meet within it, as for Algorithm 1


def chain(keep: ks.Invariants, draws: int, pairs: int) -> tuple[int, Work]:
    """The steps to that total variation by coupled pairs, and work whose unit is one draw of so many steps."""
    sampler, _ = general_chain(keep, EPSILON, 0.8 * TOTAL_VARIATION)  # a margin for what the pilot did not see
    lag = max(LAG, sampler.lag)
    times = sampler.meeting_times(pairs, lag, 10**5, ks.rng(seed=1), threads=2)
    steps = first_step_below(ks.mcmc.MeetingTimes(times, lag), TOTAL_VARIATION)
    assert steps is not None
    sampler.steps = steps
    noise = np.empty((draws, sampler.width), dtype=np.int64)
    return steps, Work(lambda: sampler.draw_into(noise, ks.rng(seed=3)), draws)


@case("general sampler against Algorithm 1")
def same_total_variation(bench: Bench) -> None:
    """On tables that plans sample exactly, because there Algorithm 1 was seen to converge."""
    for side, wanted in ((4, 40), (5, 2_500))[: bench.pick(2, 1)]:
        steps, work = chain(margins(side, side), bench.pick(2_000, 500), 2_000)
        times = by_turns({"ours": work, "Algorithm 1": algorithm_1(side)}, bench.pick(7, 3))
        what = f"{side} × {side}, {steps} steps: times faster than Algorithm 1 of {algorithm_1_steps(side)[0]:,} steps"
        bench.figure(what, ratio(times["Algorithm 1"], times["ours"]), "×", at_least(wanted), times)


@case("general sampler under hard totals", quick=False)
def hard_totals(bench: Bench) -> None:
    for name, draws, pairs, wanted in HARD:
        steps, work = chain(SYSTEMS[name], draws, pairs)
        times = by_turns({"ours": work, "loop": CALIBRATION}, 3)
        what = f"{name}, {steps} steps: draws in the time of the calibration loop"
        bench.figure(what, ratio(times["loop"], times["ours"]), "draws", at_least(wanted), times)


@case("plan of a block for the general sampler")
def plans(bench: Bench) -> None:
    """With an empty cache of plans, then again with what the first left there; kernels are compiled before."""
    with tempfile.TemporaryDirectory() as cache:
        in_child("plan_general", 4, 4, 4, KEEPSUM_CACHE=cache)
    for shape in ((5, 5, 5), (6, 6, 6))[: bench.pick(2, 1)]:
        size = " × ".join(map(str, shape))
        with tempfile.TemporaryDirectory() as cache:
            spent = [float(in_child("plan_general", *shape, KEEPSUM_CACHE=cache)["value"]) for _ in range(2)]
        loop = by_turns({"loop": CALIBRATION}, 1, warm=False)["loop"]
        first, second = (Timing(np.array([s]), np.array([s])) for s in spent)
        what = f"plan of {size} under all two-way margins"
        bench.figure(f"{what} / calibration loop", ratio(first, loop), "×", at_most(1), {"ours": first, "loop": loop})
        again = {"ours": second, "loop": loop}
        bench.figure(f"{what}, the second time / calibration loop", ratio(second, loop), "×", None, again)
