"""The paper's Algorithms 1 and 2, compiled, against Algorithm 1 in plain NumPy; research only."""

from __future__ import annotations

import math

import numpy as np

import keepsum as ks
from benchmarks.measuring import Work, by_turns, ratio
from benchmarks.registry import Bench, Point, at_least, at_most, case
from benchmarks.systems import margins

EPSILON, A = 0.25, math.exp(-1)


def compiled(lattice: ks.Lattice, steps: int, a: float = A) -> Work:
    """One chain by the library; the unit is one step."""
    laplace = ks.Laplace.per_unit(epsilon=EPSILON)
    return Work(
        lambda: ks.mcmc.metropolis(lattice, laplace, steps, a, thin=steps, rng=ks.rng(seed=1), threads=1), steps
    )


def plain_numpy(lattice: ks.Lattice, steps: int) -> Work:
    """The same algorithm, one step at a time: a call each for the draws, the product, the norm and the uniform."""
    basis, rng = lattice.basis, np.random.default_rng(1)
    dimension = basis.shape[1]

    def work() -> object:
        z = np.zeros(len(basis), dtype=np.int64)
        norm = 0
        for _ in range(steps):
            first, second = rng.geometric(1 - A, (2, dimension))
            proposal = z + basis @ (first - second)
            proposed = np.abs(proposal).sum()
            if rng.random() <= np.exp(EPSILON * (norm - proposed)):
                z, norm = proposal, proposed
        return z

    return Work(work, steps)


def coupled(lattice: ks.Lattice, pairs: int) -> Work:
    """Pairs until they meet, by Algorithm 2; the unit is one coupled step."""
    laplace = ks.Laplace.per_unit(epsilon=EPSILON)

    def work() -> ks.mcmc.MeetingTimes:
        return ks.mcmc.meeting_times(lattice, laplace, A, lag=1, pairs=pairs, rng=ks.rng(seed=1), threads=1)

    return Work(work, float(work().excess.sum()))


@case("Algorithms 1 and 2")
def steps(bench: Bench) -> None:
    table = ks.Lattice(margins(4, 4).coefficients)
    works = {
        "ours": compiled(table, 200_000),
        "NumPy": plain_numpy(table, 2_000),
        "coupled": coupled(table, bench.pick(100, 30)),
    }
    times = by_turns(works, bench.pick(11, 3))
    faster, cost = ratio(times["NumPy"], times["ours"]), ratio(times["coupled"], times["ours"])
    bench.figure("4 × 4 margins, Algorithm 1: times faster than plain NumPy", faster, "×", at_least(100), times)
    bench.figure("4 × 4 margins, a coupled step of Algorithm 2 / a step", cost, "×", at_most(20), times)


@case("Algorithm 1, growth")
def growth(bench: Bench) -> None:
    points = []
    for cells in (100, 1_000, 10_000):
        work = compiled(ks.Lattice(np.ones((1, cells), dtype=np.int64)), bench.pick(10**7, 10**6) // cells, 0.3)
        points.append(Point(cells, by_turns({"ours": work}, 3)["ours"]))
    power = bench.curve("steps", "a step of Algorithm 1", points, (100, 10_000))
    bench.figure(
        "one total, Algorithm 1: time per step grows with this power of the cells", power or 0.0, "", at_most(1.25)
    )
