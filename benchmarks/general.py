"""Independent draws a second of the general sampler, against the paper's Algorithm 1 at the same distance, in one run.

Run by `make bench`. Both are brought to a bound of 0.01 on the total variation distance by coupled pairs: ours by the
first step at which their bound is at most that, Algorithm 1 likewise; where pairs of it had not met, the step at which
they were given up stands in, which is in its favour.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from systems import general_chain, margins

import keepsum as ks
from keepsum.mcmc.bounds import first_step_below

EPSILON, DISTANCE = "0.25", 0.01


def cpu(work: Callable[[], object], repeats: int = 5) -> float:
    """The best CPU time of some runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def ours(keep: ks.Invariants, draws: int) -> tuple[int, float]:
    """Steps to the distance, and seconds for a draw."""
    chain, _ = general_chain(keep, EPSILON)
    times = chain.meeting_times(5_000, chain.lag, 10**5, ks.rng(seed=1), threads=2)
    found = first_step_below(ks.mcmc.MeetingTimes(times, chain.lag), DISTANCE)
    assert found is not None
    chain.steps = found
    out = np.empty((draws, chain.width), dtype=np.int64)
    chain.draw_into(out[:2], ks.rng(seed=2))
    return found, cpu(lambda: chain.draw_into(out, ks.rng(seed=3))) / draws


def algorithm_1(keep: ks.Invariants, lag: int, pairs: int, most: int) -> tuple[int, float]:
    """Steps to the distance, at least, and seconds for a draw."""
    lattice, laplace, a = ks.Lattice(keep.coefficients), ks.Laplace(epsilon=EPSILON), float(np.exp(-1))
    times = ks.mcmc.meeting_times(lattice, laplace, a, lag=lag, pairs=pairs, max_steps=most, rng=ks.rng(seed=1))
    steps = first_step_below(times, DISTANCE) or most - lag
    few = min(steps, 10**6)
    work = cpu(lambda: ks.mcmc.metropolis(lattice, laplace, few, a, thin=few, rng=ks.rng(seed=2)))
    return steps, work * steps / few


def main() -> int:
    print("general sampler, l1 Laplace, epsilon 0.25, at a total variation distance of at most 0.01")
    failures = 0
    for shape, least, arguments in (((4, 4), 40, (5_000, 600, 10**6)), ((5, 5), 5_000, (500_000, 48, 4 * 10**6))):
        steps, seconds = ours(margins(*shape), 2_000)
        theirs, slow = algorithm_1(margins(*shape), *arguments)
        ratio = slow / seconds
        failures += report(
            f"{shape[0]} x {shape[1]}: {steps} steps, {1 / seconds:,.0f} draws/s; Algorithm 1 {theirs:,} steps, "
            f"{1 / slow:,.2f} draws/s; times faster",
            ratio,
            least,
        )
    steps, seconds = ours(margins(10, 10), 500)
    failures += report(f"10 x 10: {steps} steps, draws a second", 1 / seconds, 50)
    for shape in ((20, 20), (102, 5)):
        steps, seconds = ours(margins(*shape), 10)
        failures += report(f"{shape[0]} x {shape[1]}: {steps} steps, draws a second", 1 / seconds, 0.5)
    return failures


def report(words: str, found: float, least: float) -> int:
    print(f"  {'ok  ' if found >= least else 'MISS'} {words}: {found:,.4g} (at least {least:,})", flush=True)
    return int(found < least)


if __name__ == "__main__":
    sys.exit(main())
