"""Margins of error: of all cells, of large queries and of all totals of a margin, against simulating them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import keepsum as ks
from benchmarks.measuring import Work, by_turns, ratio
from benchmarks.peers import CALIBRATION
from benchmarks.registry import Bench, at_least, at_most, case
from benchmarks.systems import county_hierarchy, groups, margins

PEER_DRAWS = 2_000  # from which a peer would tell a margin, with an error of 0.5 percentage points
SECONDS = {"3,143 cells under 51 totals": 1, "10^6 cells under 51 totals": 10}  # calibration loops, of about a second
QUERY_SECONDS = 0.1


@case("margins of error")
def margins_of_error(bench: Bench) -> None:
    """A plan works its margins out once: every round has a new one."""
    for name, cells in (("3,143 cells under 51 totals", 3_143), ("10^6 cells under 51 totals", 10**6)):
        plan = ks.plan(keep=groups(cells, 51), mechanism=ks.Laplace.per_unit(epsilon="1/4"))
        works = {"computed": Work(lambda plan=plan: again(plan).accuracy()), "loop": CALIBRATION}
        if cells < 10**5:
            works["simulated"] = Work(lambda plan=plan: simulated(plan))
        times = by_turns(works, bench.pick(7, 3))
        pair = {"computed": times["computed"], "loop": times["loop"]}
        limit = at_most(SECONDS[name])
        bench.figure(f"all cells of {name} / calibration loop", ratio(*pair.values()), "×", limit, pair)
        if "simulated" in times:
            pair = {"simulated": times["simulated"], "computed": times["computed"]}
            what = f"all cells of {name}: times faster than {PEER_DRAWS:,} draws"
            bench.figure(what, ratio(*pair.values()), "×", at_least(2), pair)
    queries(bench)
    overlapping(bench)


def queries(bench: Bench) -> None:
    """A sum over 10^5 of 10^6 cells, all counties, and all totals of a margin."""
    large = ks.plan(keep=groups(10**6, 51), mechanism=ks.Laplace.per_unit(epsilon="1/4"))
    some = np.zeros(large.size, dtype=np.int64)
    some[np.random.default_rng(1).choice(large.size, 10**5, replace=False)] = 1
    counties = ks.plan(keep=county_hierarchy(3143 * 4), mechanism=ks.Laplace.per_unit(epsilon="1/4"))
    kinds = counties.invariants.domain
    if kinds is None:
        raise AssertionError("the counties have names")
    works = {
        "10^5 of 10^6 cells": (Work(lambda: large.noise.interval(some)), QUERY_SECONDS),
        "cells of 3,143 counties": (Work(lambda: counties.noise.interval({"kind": "kind 0"})), QUERY_SECONDS),
    }
    for name, (work, limit) in works.items():
        times = by_turns({"ours": work, "loop": CALIBRATION}, bench.pick(7, 3))
        bench.figure(f"a sum of {name} / calibration loop", ratio(*times.values()), "×", at_most(limit), times)


def overlapping(bench: Bench) -> None:
    """Where totals overlap margins are simulated, once: with a release, not again for its reader."""
    for name, keep, limit in (("102 × 5", margins(102, 5), 1.0), ("50 × 50", margins(50, 50), 1.5)):
        plan = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon="1/4"))
        plan.sample(1, rng=ks.rng(seed=1))
        works = {"ours": Work(lambda plan=plan: again(plan).accuracy()), "loop": CALIBRATION}
        times = by_turns(works, bench.pick(5, 3))
        bench.figure(f"all cells of {name} / calibration loop", ratio(*times.values()), "×", at_most(limit), times)


def again(plan: ks.Plan) -> ks.Plan:
    """The same plan and samplers, without the margins that were worked out."""
    blocks = replace(plan._record.blocks)
    blocks.__dict__["choices"] = plan.samplers
    return ks.Plan(replace(plan._record, blocks=blocks))


def simulated(plan: ks.Plan) -> None:
    """The plain way: the quantile of many draws, cell by cell."""
    np.quantile(np.abs(plan.sample(PEER_DRAWS, rng=ks.rng(seed=1))), 0.95, axis=0)
