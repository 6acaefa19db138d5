"""Noise in many cells, against NumPy and OpenDP, which keep no totals; two threads; memory; Gaussian noise."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import keepsum as ks
from benchmarks.children import in_child
from benchmarks.measuring import Spread, Work, by_turns, ratio
from benchmarks.peers import EPSILON, numpy_noise, opendp_gaussian, opendp_laplace
from benchmarks.registry import Bench, at_least, at_most, case
from benchmarks.systems import groups, margins

LAPLACE, SIGMA = ks.Laplace.per_unit(epsilon=EPSILON), 10
MILLION = 10**6
HASHED = bytes(2**24)
FREE = 1.7  # a machine on which two threads that hash are less than this many times faster is too busy to judge threads


def drawing(keep: ks.Invariants, mechanism: ks.Laplace | ks.Gaussian = LAPLACE, draws: int = 1) -> Work:
    """Drawing noise from a plan that is ready; the unit is one cell."""
    plan = ks.plan(keep=keep, mechanism=mechanism)
    return Work(lambda: plan.sample(draws), draws * plan.size)


@case("cells under no total")
def plain(bench: Bench) -> None:
    works = {"ours": drawing(ks.Invariants.subsets(MILLION, [])), "NumPy": numpy_noise(MILLION)}
    times = by_turns(works, bench.pick(21, 9))
    share = ratio(times["ours"], times["NumPy"])
    bench.figure("plain noise, 10^6 cells: time / NumPy's", share, "×", at_most(0.3), times)


@case("a hierarchy of totals")
def hierarchy(bench: Bench) -> None:
    few = bench.pick(20_000, 5_000)
    works = {"ours": drawing(groups(MILLION, 51)), "NumPy": numpy_noise(MILLION), "OpenDP": opendp_laplace(few)}
    times = by_turns(works, bench.pick(21, 9))
    share, faster = ratio(times["ours"], times["NumPy"]), ratio(times["OpenDP"], times["ours"])
    bench.figure("51 totals over 10^6 cells: time / NumPy's", share, "×", at_most(0.25), times)
    bench.figure("51 totals over 10^6 cells: times faster than OpenDP", faster, "×", at_least(600), times)


@case("two threads")
def two_threads(bench: Bench) -> None:
    """Wall time; hashing in two threads shows how much of two cores the machine has to give.

    Where that is little, because other programs run, the figure is shown and not judged.
    """
    if (os.cpu_count() or 1) < 2:
        return
    plan = ks.plan(keep=groups(bench.pick(10**7, 3 * 10**6), 51), mechanism=LAPLACE)
    works = {
        "one thread": Work(lambda: plan.sample(threads=1)),
        "two threads": Work(lambda: plan.sample(threads=2)),
        "hashing, one thread": Work(hashing(1)),
        "hashing, two threads": Work(hashing(2)),
    }
    times = by_turns(works, bench.pick(11, 7))
    faster = ratio(times["one thread"], times["two threads"], "wall")
    machine = times["hashing, one thread"].wall / times["hashing, two threads"].wall
    share = Spread.of(2 * times["one thread"].wall / times["two threads"].wall / machine)
    bench.figure("two threads: times faster (wall)", faster, "×", None, times, "wall")
    target = at_least(1.7) if np.median(machine) >= FREE else None
    bench.figure("two threads that hash: times faster (wall)", Spread.of(machine), "×")
    bench.figure("two threads: times faster, where two that hash are 2 times faster", share, "×", target)


def hashing(threads: int) -> Callable[[], object]:
    """SHA-256 of twice 16 MB."""

    def work() -> object:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda _: hashlib.sha256(HASHED).digest(), range(2)))

    return work


@case("memory of drawing")
def memory(bench: Bench) -> None:
    count = bench.pick(10**7, MILLION)
    extra = in_child("beyond_the_output", count)["value"]
    bench.figure(f"51 totals over {count:,} cells: memory beyond the noise", extra, "bytes/cell", at_most(24))


@case("small tables, many draws")
def small(bench: Bench) -> None:
    draws = 5_000
    works = {"ours": drawing(groups(102, 1), draws=draws), "NumPy": numpy_noise(102 * draws)}
    times = by_turns(works, bench.pick(11, 5))
    share = ratio(times["ours"], times["NumPy"])
    bench.figure("one total over 102 cells, 5,000 draws: time / NumPy's", share, "×", at_most(1.5), times)


@case("Gaussian and l2 Laplace noise")
def gaussian(bench: Bench) -> None:
    """Times faster per cell than OpenDP's Gaussian noise without totals."""
    noise, l2 = ks.Gaussian(sigma=SIGMA), ks.Laplace.per_unit(epsilon=EPSILON, norm="l2")
    works = {
        "51 totals over 10^6 cells, Gaussian": (drawing(groups(MILLION, 51), noise), 100),
        "4 × 4 margins, l2 Laplace": (drawing(margins(4, 4), l2, 2_000), 10),
        "50 × 50 margins, Gaussian": (drawing(margins(50, 50), noise, 10), 10),
        "10 × 10 × 10, all two-way margins, Gaussian": (drawing(margins(10, 10, 10), noise, 2), 0.5),
    }
    few = list(works)[: bench.pick(4, 2)]
    peer = opendp_gaussian(bench.pick(5_000, 2_000), SIGMA)
    times = by_turns({**{name: works[name][0] for name in few}, "OpenDP": peer}, bench.pick(11, 5))
    for name in few:
        faster = ratio(times["OpenDP"], times[name])
        pair = {"ours": times[name], "OpenDP": times["OpenDP"]}
        bench.figure(f"{name}: times faster than OpenDP", faster, "×", at_least(works[name][1]), pair)
