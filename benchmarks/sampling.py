"""Speed and memory of exact noise, against stated limits and against OpenDP in the same run. Run by `make bench`.

CPU time, the best of some runs, alternating where two are compared; memory in a separate process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from measuring import Report, by_turns, cpu

import keepsum as ks

EPSILON = "0.25"


def totals(cells: int, groups: int) -> ks.Invariants:
    """That many groups of cells, nearly equal, each with its total kept."""
    domain = ks.Domain({"group": list(range(groups)), "cell": list(range(-(-cells // groups)))})
    return ks.Invariants.margins(domain, [["group"]])


def table(rows: int, columns: int) -> ks.Invariants:
    domain = ks.Domain({"row": list(range(rows)), "column": list(range(columns))})
    return ks.Invariants.margins(domain, [["row"], ["column"]])


def draws_a_second(keep: ks.Invariants, draws: int, mechanism: ks.Laplace | ks.Gaussian | None = None) -> float:
    plan = ks.plan(keep, mechanism or ks.Laplace(epsilon=EPSILON))
    plan.sample(2)
    return draws / cpu(lambda: plan.sample(draws))


def opendp_laplace(count: int) -> Callable[[], object]:
    """That many draws of OpenDP's exact discrete Laplace, without kept totals, as a vector."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    laplace = dp.m.make_laplace(*space, scale=1 / float(EPSILON))
    return lambda: laplace([0] * count)


def opendp_gaussian(sigma: int, count: int) -> Callable[[], object]:
    """That many draws of OpenDP's exact discrete Gaussian, without kept totals, as a vector."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    gaussian = dp.m.make_gaussian(*space, scale=float(sigma))
    return lambda: gaussian([0] * count)


def cube(n: int) -> ks.Invariants:
    """N x n x n under all two-way margins."""
    domain = ks.Domain({axis: list(range(n)) for axis in "abc"})
    return ks.Invariants.margins(domain, [["a", "b"], ["a", "c"], ["b", "c"]])


def gaussian_lines(report: Report) -> None:
    """Gaussian and l2 Laplace noise."""
    million = ks.plan(totals(10**6, 51), ks.Gaussian(sigma=10))
    million.sample()
    few = 5_000
    one, peer = by_turns(million.sample, opendp_gaussian(10, few))
    faster = (peer / few) / (one / million.size)
    report.line(
        "51 totals over 10^6 cells, Gaussian, sigma 10", 1e9 * one / million.size, "ns/cell", 150, at_least=False
    )
    report.line("  times faster per cell than OpenDP without totals", faster, "times", 100, at_least=True)
    laplace = ks.Laplace(epsilon=EPSILON, norm="l2")
    report.line(
        "4 x 4 margins, l2 Laplace", draws_a_second(table(4, 4), 20_000, laplace), "draws/s", 20_000, at_least=True
    )
    gaussian = ks.Gaussian(sigma=10)
    report.line("50 x 50 margins, Gaussian", draws_a_second(table(50, 50), 50, gaussian), "draws/s", 10, at_least=True)
    report.line("10 x 10 x 10, Gaussian", draws_a_second(cube(10), 50, gaussian), "draws/s", 1, at_least=True)


def extra_bytes_a_cell(cells: int) -> float:
    """Peak memory beyond the output while drawing, in a separate process."""
    return float(json.loads(subprocess.check_output([sys.executable, __file__, "memory", str(cells)])))


def measure_memory(cells: int) -> float:
    plan = ks.plan(totals(cells, 51), ks.Laplace(epsilon=EPSILON))
    ks.plan(totals(5100, 51), ks.Laplace(epsilon=EPSILON)).sample()  # kernels compiled, tables made
    _ = plan.samplers
    tracemalloc.start()  # numpy's arrays are counted
    noise = plan.sample(threads=2)
    _, peak = tracemalloc.get_traced_memory()
    return (peak - noise.nbytes) / cells


def wall(work: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> int:
    report = Report()
    million, ten = (ks.plan(totals(n, 51), ks.Laplace(epsilon=EPSILON)) for n in (10**6, 10**7))
    million.sample()
    few = 20_000
    one, peer = by_turns(million.sample, opendp_laplace(few))
    faster = (peer / few) / (one / million.size)
    many = cpu(ten.sample, 4)
    report.line("51 totals over 10^6 cells", 1e9 * one / million.size, "ns/cell", 40, at_least=False)
    report.line("  times faster per cell than OpenDP without totals", faster, "times", 300, at_least=True)
    report.line("  10^7 cells against 10^6", many / one, "times", 11, at_least=False)
    report.line("  memory beyond the output, 10^7 cells", extra_bytes_a_cell(10**7), "bytes/cell", 24, at_least=False)
    two = wall(lambda: ten.sample(threads=2))
    report.line(
        "  wall time of one thread over that of two, 10^7 cells", wall(ten.sample) / two, "times", 1.3, at_least=True
    )
    report.line("102 cells under one total", draws_a_second(totals(102, 1), 20_000), "draws/s", 50_000, at_least=True)
    report.line("4 x 4 margins", draws_a_second(table(4, 4), 20_000), "draws/s", 20_000, at_least=True)
    gaussian_lines(report)
    return report.status


if __name__ == "__main__":
    if sys.argv[1:2] == ["memory"]:
        print(json.dumps(measure_memory(int(sys.argv[2]))))
    else:
        np.set_printoptions(suppress=True)
        sys.exit(main())
