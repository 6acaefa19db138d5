"""The nearest table without negative counts, against a plain program of HiGHS."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import keepsum as ks
from benchmarks.measuring import Timing, Work, by_turns, ratio
from benchmarks.peers import nearest_by_highs
from benchmarks.registry import Bench, at_least, at_most, case
from benchmarks.systems import groups, margins
from keepsum._arrays import IntArray
from keepsum.lattice.structure import decompose
from keepsum.projection.nearest import nearest

OURS, HIGHS = "nearest", "HiGHS"


@case("no negative counts")
def no_negative_counts(bench: Bench) -> None:
    counties, small, large = groups(3_143, 51), margins(20, 20), margins(100, 100)
    for name, keep, least in (("3,143 cells under 51 totals", counties, 5), ("20 × 20", small, 2)):
        counts = sparse(keep)
        times = by_turns({OURS: ours(keep, counts), HIGHS: nearest_by_highs(keep, counts)}, bench.pick(7, 3))
        bench.figure(f"{name}: times faster than HiGHS", ratio(times[HIGHS], times[OURS]), "×", at_least(least), times)
        if keep is counties:
            seconds(bench, name, times[OURS], 1)
        record(bench, name, times)
    times = by_turns({OURS: ours(large, sparse(large))}, bench.pick(5, 2))
    seconds(bench, "100 × 100", times[OURS], 30)
    record(bench, "100 × 100", times)


def record(bench: Bench, name: str, times: Mapping[str, Timing]) -> None:
    """What pages show."""
    for method, timing in times.items():
        bench.record(f"nonnegative/{name.replace(' × ', 'x')}/{method}", timing.best, "s")


def sparse(keep: ks.Invariants) -> IntArray:
    """A released table most of whose counts were 0."""
    random = np.random.default_rng(1)
    confidential = np.where(random.random(keep.size) < 0.05, random.integers(1, 20, keep.size), 0)
    return np.asarray(confidential + ks.plan(keep=keep, mechanism=ks.Gaussian(sigma=4)).sample(rng=ks.rng(seed=1)))


def ours(keep: ks.Invariants, counts: IntArray) -> Work:
    structure = decompose(keep.coefficients)
    return Work(lambda: nearest(structure, counts))


def seconds(bench: Bench, name: str, timing: Timing, limit: float) -> None:
    bench.figure(f"{name}: CPU time", timing.spread(), "s", at_most(limit), {OURS: timing})
