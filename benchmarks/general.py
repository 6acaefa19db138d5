"""Independent draws per second of the general sampler, against the paper's Algorithm 1 at the same TV, in one run.

Run by `make bench`. Both run until coupled pairs bound the total variation from the target by 0.01: ours to the
first step at which the bound is at most that, with a cap chosen for this level, Algorithm 1 likewise; where pairs of it
had not met, the step at which they were given up is taken, which is in its favour. The tables that both are compared
on are those of the paper, though plans sample them exactly.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from measuring import Report, by_turns, cpu
from systems import SYSTEMS, general_chain, margins

import keepsum as ks
from keepsum.convergence.bounds import first_step_below

EPSILON, TOTAL_VARIATION = "0.25", 0.01
LAG = 20  # long enough for nearly all pairs to meet within it, as for Algorithm 1


def ours(keep: ks.Invariants, draws: int) -> tuple[int, Callable[[], object]]:
    """The steps to that TV, and work that makes this many draws."""
    chain, _ = general_chain(keep, EPSILON, 0.8 * TOTAL_VARIATION)  # a margin for what the pilot did not see
    lag = max(LAG, chain.lag)
    times = chain.meeting_times(5_000, lag, 10**5, ks.rng(seed=1), threads=2)
    steps = first_step_below(ks.mcmc.MeetingTimes(times, lag), TOTAL_VARIATION)
    assert steps is not None
    chain.steps = steps
    out = np.empty((draws, chain.width), dtype=np.int64)
    chain.draw_into(out[:2], ks.rng(seed=2))
    return steps, lambda: chain.draw_into(out, ks.rng(seed=3))


def algorithm_1(keep: ks.Invariants, lag: int, pairs: int, most: int) -> tuple[int, Callable[[], object], float]:
    """The steps to that TV, at least, and work that makes a fraction of a draw."""
    lattice, laplace, a = ks.Lattice(keep.coefficients), ks.Laplace(epsilon=EPSILON), float(np.exp(-1))
    times = ks.mcmc.meeting_times(lattice, laplace, a, lag=lag, pairs=pairs, max_steps=most, rng=ks.rng(seed=1))
    steps = first_step_below(times, TOTAL_VARIATION) or most - lag
    few = 500_000
    return steps, lambda: ks.mcmc.metropolis(lattice, laplace, few, a, thin=few, rng=ks.rng(seed=2)), few / steps


def main() -> int:
    print("general sampler, l1 Laplace, epsilon 0.25, at a total variation of at most 0.01")
    report = Report()
    for shape, least, arguments in (((4, 4), 40, (5_000, 600, 10**6)), ((5, 5), 5_000, (500_000, 48, 4 * 10**6))):
        draws = 10_000
        steps, work = ours(margins(*shape), draws)
        theirs, peer, share = algorithm_1(margins(*shape), *arguments)
        mine, slow = by_turns(work, peer)
        size = f"{shape[0]} x {shape[1]}"
        print(f"{size}: {steps} steps, {draws / mine:,.0f} draws/s; Algorithm 1 {theirs:,} steps, {share / slow:,.2f}")
        faster = (slow / share) / (mine / draws)
        report.line(f"{size}, times faster than Algorithm 1", faster, "times", least, at_least=True)
    for name, count, wanted in (("3 × 3 × 3 × 3, cycle", 500, 50.0), ("4 × 4 × 4 × 4, cycle", 20, 0.5)):
        steps, work = ours(SYSTEMS[name], count)
        report.line(f"{name}, {steps} steps", count / cpu(work), "draws/s", wanted, at_least=True)
    return report.status


if __name__ == "__main__":
    sys.exit(main())
