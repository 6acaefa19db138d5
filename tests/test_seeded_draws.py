"""A seed gives the noise that it always gave: hashes of seeded draws from plans that cover every sampler.

A change of the code that is not meant to change the noise must leave every hash as it is; one that is meant to writes
them anew with ``KEEPSUM_GOLDEN=write``. The hashes of exact samplers hold on every processor: ``test_processors.py``
draws them with other libraries' last digits, and docs/seeds.md says why they do not matter. Rounded and estimated
samplers are tuned in floating-point numbers, by libraries that sum them as suits a processor: they are compared with
``KEEPSUM_GOLDEN=all`` only, on the machine that wrote them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import keepsum as ks
from keepsum.sampling.l1.splitting.bundles import SplitTable, in_runs
from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting, Splitting
from keepsum.sampling.l1.splitting.slices import two_way
from sampling.l1.decomposable import table_of
from support import margins

FILE = Path(__file__).parent / "golden" / "seeded_draws.json"
MODE = os.environ.get("KEEPSUM_GOLDEN", "")
FEW, MANY = 3, 40


def subsets(size: int, *totals: object) -> ks.Invariants:
    return ks.Invariants.subsets(size, [list(total) for total in totals])


def margins_of(shape: tuple[int, ...], *names: str) -> ks.Invariants:
    """A table of that shape under these margins, whose axes have a letter each."""
    domain = ks.Domain({axis: range(n) for axis, n in zip("ABCD", shape, strict=False)})
    return ks.Invariants.margins(domain, [list(name) for name in names])


HIERARCHY = subsets(40, range(40), range(10), range(10, 25), [30, 31])
CHAIN_OF_SUMS = subsets(9, [0, 1, 2, 3], [2, 3, 4, 5, 6], [6, 7, 8])
CIRCLES = subsets(14, [0, 1, 6, 7, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 12, 13], [4, 5, 8, 9, 10, 11, 12, 13])
WEIGHTS = ks.Invariants.matrix([[2, 3, 5, 0, 1], [0, 1, 1, 1, 0]])
MIXED = subsets(20, [0, 1, 2], [3, 4, 5, 6], [5, 6, 7, 8])
NESTED = ks.Invariants.margins(
    ks.Domain(
        {"state": ["a", "b"], "county": [("a", 1), ("a", 2), ("b", 1), ("b", 2)], "sex": ["f", "m"], "age": [1, 2, 3]},
        within={"county": "state"},
    ),
    [["county"], ["state", "sex"], ["age"]],
)
FREE = ks.Invariants.margins(ks.Domain({"x0": range(4), "x1": range(5)}), [])
STATES = ks.Invariants.margins(NESTED.domain, [])
THREE = ks.Invariants.margins(ks.Domain({"x0": range(4), "x1": range(3), "x2": range(2)}), [])

Laplace, Gaussian = ks.Laplace, ks.Gaussian
PLANS: dict[str, tuple[ks.Invariants, object]] = {
    "l1, nothing kept": (subsets(50), Laplace.per_unit(epsilon=0.25)),
    "l1, nothing kept, narrow": (subsets(50), Laplace.per_unit(epsilon=20)),
    "l1, nothing kept, third": (subsets(50), Laplace.per_unit(epsilon="1/3")),
    "l1, one sum": (subsets(50, range(50)), Laplace.per_unit(epsilon=0.25)),
    "l1, one sum of many": (subsets(3000, range(3000)), Laplace.per_unit(epsilon="1e-3")),
    "l1, hierarchy": (HIERARCHY, Laplace.per_unit(epsilon=1)),
    "l1, 2 x 2": (margins(2, 2), Laplace.per_unit(epsilon=0.5)),
    "l1, 2 x 2 x 5": (margins(2, 2, 5), Laplace.per_unit(epsilon=0.5)),
    "l1, 4 x 5": (margins(4, 5), Laplace.per_unit(epsilon=1)),
    "l1, 2 x 3 x 4": (margins(2, 3, 4), Laplace.per_unit(epsilon=1)),
    "l1, 60 x 3": (margins(60, 3), Laplace.per_unit(epsilon=0.5)),
    "l1, chain of sums": (CHAIN_OF_SUMS, Laplace.per_unit(epsilon=0.5)),
    "l1, circles": (CIRCLES, Laplace.per_unit(epsilon=0.25)),
    "l1, weights": (WEIGHTS, Laplace.per_unit(epsilon=1)),
    "l1, mixed": (MIXED, Laplace.per_unit(epsilon=2)),
    "l1, nested": (NESTED, Laplace.per_unit(epsilon=1)),
    "l1 per person, 4 x 5": (margins(4, 5), Laplace(epsilon=3)),
    "l1, 12 x 12": (margins(12, 12), Laplace.per_unit(epsilon=1)),
    "l1, 9 x 9, wide": (margins(9, 9), Laplace.per_unit(epsilon=0.25)),
    "l1, 3 x 3 x 3": (margins(3, 3, 3), Laplace.per_unit(epsilon=0.5)),
    "l1, 2 x 4 x 4 x 4": (margins(2, 4, 4, 4), Laplace.per_unit(epsilon=0.25)),
    "l1, 4 x 4 x 4, narrow": (margins(4, 4, 4), Laplace.per_unit(epsilon=6)),
    "l1, 3 x 3 x 4": (margins(3, 3, 4), Laplace.per_unit(epsilon=0.25)),
    "l1, 4 x 4 x 4": (margins(4, 4, 4), Laplace.per_unit(epsilon=1)),
    "l1, 4 x 4 x 4, wide": (margins(4, 4, 4), Laplace.per_unit(epsilon=0.25)),
    "l1, 5 x 5 x 5": (margins(5, 5, 5), Laplace.per_unit(epsilon=1)),
    "l1, 12 x 12 x 3, narrow": (margins(12, 12, 3), Laplace.per_unit(epsilon=3)),
    "l2, nothing kept": (subsets(30), Laplace.per_unit(epsilon=0.5, norm="l2")),
    "l2, hierarchy": (HIERARCHY, Laplace.per_unit(epsilon=1, norm="l2")),
    "l2, 6 x 7": (margins(6, 7), Laplace.per_unit(epsilon=1, norm="l2")),
    "l2, mixed": (MIXED, Laplace.per_unit(epsilon="1/3", norm="l2")),
    "l2, circles": (CIRCLES, Laplace.per_unit(epsilon=4, norm="l2")),
    "l2 per person, 3 x 4": (margins(3, 4), Laplace(epsilon=1, norm="l2")),
    "Gaussian, nothing kept": (subsets(50), Gaussian(sigma=3)),
    "Gaussian, nothing kept, wide": (subsets(50), Gaussian(sigma="12345.678")),
    "Gaussian, nothing kept, narrow": (subsets(50), Gaussian(sigma="0.3")),
    "Gaussian, one sum": (subsets(50, range(50)), Gaussian.per_unit(epsilon=0.5, delta="1e-6")),
    "Gaussian, hierarchy": (HIERARCHY, Gaussian.per_unit(rho="1/8")),
    "Gaussian, 6 x 7": (margins(6, 7), Gaussian(sigma=2)),
    "Gaussian, 3 x 4 x 5": (margins(3, 4, 5), Gaussian(sigma="1.5")),
    "Gaussian, mixed": (MIXED, Gaussian(sigma=5)),
    "Gaussian, weights": (WEIGHTS, Gaussian(sigma=4)),
    "Gaussian, nested": (NESTED, Gaussian.per_unit(epsilon=1, delta="1e-9", calibration="tight")),
    "Gaussian, the paper's": (margins(3, 3), Gaussian.per_unit(epsilon="0.3", delta="1e-6", calibration="paper")),
    "Gaussian per person, 3 x 4": (margins(3, 4), Gaussian(rho=1)),
    "Gaussian, 20 x 20, narrow": (margins(20, 20), Gaussian(sigma="0.4")),
    "l1, 20 x 20, labels": (margins(20, 20), Laplace.per_unit(epsilon=2)),
    "l1, focus, nested": (STATES, Laplace.per_unit(epsilon=0.5, focus={"state": "0.1", "county": "0.2"})),
    "l1, focus, crossed": (
        ks.Invariants.margins(FREE.domain, [["x0"]]),
        Laplace.per_unit(epsilon=0.5, focus={"x1": "0.1"}),
    ),
    "l1, focus on both margins": (FREE, Laplace.per_unit(epsilon=0.5, focus={"x0": "0.1", "x1": "0.2"})),
    "l1, focus on three axes": (THREE, Laplace.per_unit(epsilon=0.5, focus={"x0": "0.1", "x1": "0.2", "x2": "0.3"})),
    "l1, one-way, 5 x 4 x 3": (margins_of((5, 4, 3), "A", "B", "C"), Laplace.per_unit(epsilon=1)),
    "l1, one-way, 6 x 5 x 4, narrow": (margins_of((6, 5, 4), "A", "B", "C"), Laplace.per_unit(epsilon=4)),
    "l1, chain of margins": (margins_of((3, 3, 2, 3), "AB", "BC", "CD"), Laplace.per_unit(epsilon=0.5)),
    "Gaussian, focus, nested": (STATES, Gaussian.per_unit(rho="1/8", focus={"state": "1/20", "county": "1/50"})),
    "Gaussian, focus on both margins": (FREE, Gaussian.per_unit(rho="1/8", focus={"x0": "1/20", "x1": "1/50"})),
    "Gaussian, 20 x 20, less narrow": (margins(20, 20), Gaussian(sigma="0.5")),
}
LATTICE = ks.Lattice(CHAIN_OF_SUMS.coefficients)


def planned(name: str) -> tuple[str, bytes]:
    """How exactly a plan draws, and its draws from a seed, one after the other."""
    plan = ks.plan(keep=PLANS[name][0], mechanism=PLANS[name][1])
    source = ks.rng(seed=name)
    exact = plan.guarantee.sampling == "exact"
    draws = [plan.sample(MANY if exact else FEW, rng=source), plan.sample(rng=source)]
    return plan.guarantee.sampling, b"".join(noise.tobytes() for noise in draws)


def metropolis(mechanism: object) -> tuple[str, bytes]:
    chains = ks.mcmc.metropolis(LATTICE, mechanism, 200, 0.4, rng=ks.rng(seed="chains"))
    times = ks.mcmc.meeting_times(LATTICE, mechanism, 0.4, lag=20, pairs=20, rng=ks.rng(seed="pairs"))
    return "estimated", chains.draws.tobytes() + times.times.tobytes()


def split(sizes: object, epsilon: str, tables: int = 1, labelling: Labelling | None = None) -> tuple[str, bytes]:
    """Draws of the sampler that splits columns."""
    return drawn(ColumnSplitting(Fraction(epsilon), np.asarray(sizes), tables, labelling=labelling or Labelling()))


def eliminated(epsilon: str, table: SplitTable, labelling: Labelling) -> tuple[str, bytes]:
    """Draws of the sampler that sums out families."""
    return drawn(Splitting(Fraction(epsilon), table, labelling=labelling))


def drawn(sampler: Splitting) -> tuple[str, bytes]:
    noise = np.empty((MANY, sampler.width), dtype=np.int64)
    sampler.draw_into(noise, ks.rng(seed="columns"))
    return "exact", noise.tobytes()


DRAWS: dict[str, Callable[[], tuple[str, bytes]]] = {
    **{name: lambda name=name: planned(name) for name in PLANS},
    "columns split, 12 x 12": lambda: split(np.ones((12, 12)), "1/4"),
    "columns split, 60 x 3": lambda: split(np.ones((60, 3)), "1"),
    "columns split, regions": lambda: split([[1, 2, 3, 1, 1], [4, 1, 1, 30, 2], [1, 1, 5, 1, 2]], "1/2"),
    "columns split, structural zeros": lambda: split(1 - np.eye(7), "1/3"),
    "columns split, several tables": lambda: split(np.ones((4, 5)), "2", tables=3),
    "columns split, 100 x 3": lambda: split(np.ones((100, 3)), "1"),
    "columns split, labels in groups": lambda: split(np.ones((12, 7)), "2", labelling=Labelling(4, 2)),
    "columns in runs, labels": lambda: eliminated("1", in_runs(two_way(np.ones((7, 7), int))), Labelling(4, 2)),
    "one-way margins, tags": lambda: eliminated("4", table_of((4, 3, 2), ("A", "B", "C")), Labelling(4, 4, 4)),
    "the paper's chain, l1": lambda: metropolis(Laplace.per_unit(epsilon=1)),
    "the paper's chain, l2": lambda: metropolis(Laplace.per_unit(epsilon=1, norm="l2")),
    "the paper's chain, Gaussian": lambda: metropolis(Gaussian(sigma=2)),
}


def recorded() -> dict[str, list[str]]:
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_noise_that_it_always_gave(name):
    known = recorded()
    if MODE not in ("write", "all") and known[name][0] != "exact":
        pytest.skip("tuned in floating-point numbers, which differ between processors; see KEEPSUM_GOLDEN=all")
    exactness, data = DRAWS[name]()
    found = [exactness, hashlib.sha256(data).hexdigest()]
    if MODE == "write":
        known[name] = found
        FILE.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
    assert recorded()[name] == found


def test_every_kind_of_sampling_is_recorded():
    known = recorded()
    assert set(known) == set(DRAWS)
    assert {exactness for exactness, _ in known.values()} == {"exact", "rounded", "estimated"}
