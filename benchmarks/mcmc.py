"""Speed of the paper's Algorithm 1 against the same algorithm in plain NumPy, in one run. Run by `make bench`.

CPU time, the best of some runs; limits are ratios, which depend little on the machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from measuring import Report, cpu, seconds

import keepsum as ks

EPSILON, A = 0.25, float(np.exp(-1))


def margins(rows: int, columns: int) -> ks.Lattice:
    domain = ks.Domain({"row": list(range(rows)), "column": list(range(columns))})
    return ks.Lattice(ks.Invariants.margins(domain, [["row"], ["column"]]).coefficients)


def compiled(lattice: ks.Lattice, steps: int, a: float = A) -> Callable[[], object]:
    """One chain by the library."""
    laplace = ks.Laplace(epsilon=EPSILON)
    ks.mcmc.metropolis(lattice, laplace, 10, a)  # compiled
    return lambda: ks.mcmc.metropolis(lattice, laplace, steps, a, thin=steps, rng=ks.rng(seed=1))


def plain_numpy(lattice: ks.Lattice, steps: int) -> Callable[[], object]:
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

    return work


def steps_a_second(lattice: ks.Lattice, rounds: int = 15) -> tuple[float, float]:
    """Those of the library, and the median ratio to NumPy's; alternating, so that other load affects both."""
    ours, plain = compiled(lattice, 500_000), plain_numpy(lattice, 5_000)
    times = np.array([(seconds(ours) / 500_000, seconds(plain) / 5_000) for _ in range(rounds)])
    ratio = float(np.median(times[:, 1] / times[:, 0]))
    return 1 / float(times[:, 0].min()), ratio


def coupled_steps(lattice: ks.Lattice, pairs: int) -> float:
    """Coupled steps per second."""
    laplace = ks.Laplace(epsilon=EPSILON)
    runs = []

    def work() -> None:
        runs.append(ks.mcmc.meeting_times(lattice, laplace, A, lag=1, pairs=pairs, rng=ks.rng(seed=1), threads=1))

    work()
    return float(runs[0].excess.sum()) / cpu(work)


def growth(cells: int) -> float:
    """Nanoseconds per step and nonzero of the basis, for one total over that many cells."""
    lattice = ks.Lattice(np.ones((1, cells), dtype=np.int64))
    steps = 20_000_000 // cells
    return 1e9 * cpu(compiled(lattice, steps, 0.3)) / steps / (2 * cells - 2)


def main() -> int:
    report = Report()
    table = margins(4, 4)
    speed, ratio = steps_a_second(table)
    report.line("4 x 4 margins, Algorithm 1", speed, "steps/s", 2_000_000, at_least=True)
    report.line("  times the steps of plain NumPy", ratio, "times", 100, at_least=True)
    report.line("4 x 4 margins, Algorithm 2", coupled_steps(table, 100), "steps/s", 200_000, at_least=True)
    small, large = growth(100), growth(10_000)
    report.line("one total over 100 cells, per nonzero of the basis", small, "ns", 50, at_least=False)
    report.line("  10,000 cells against 100, per nonzero", large / small, "times", 3, at_least=False)
    return report.status


if __name__ == "__main__":
    sys.exit(main())
