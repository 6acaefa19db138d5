"""Gaussian noise with a focus, nested or crossing, against its law by enumeration from its definition."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from laws import as_tuples, assert_drawn_from, assert_not_drawn_from, boxed

import keepsum as ks
from keepsum.planning.selection import gaussian
from keepsum.sampling.core.rng import rng
from keepsum.sampling.gaussian.blocks import BlockGaussian
from keepsum.sampling.gaussian.parts import Variances
from keepsum.sampling.gaussian.sums import LatticeGaussian
from support import mostly_audit

COUNT = 100_000
PLACES = ks.Domain({"state": ["A", "B"], "county": {"A": ["a", "b"], "B": ["c", "d"]}}, within={"county": "state"})
PAIRS = ks.Domain({"county": ["a", "b"], "sex": ["f", "m"]})
WIDE = ks.Domain({"county": ["a", "b"], "age": ["0", "18", "65"]})
CUBE = ks.Domain({"county": ["a", "b"], "sex": ["f", "m"], "age": ["0", "18"]})
# What is kept, the focus, how far the weight of all vectors is added up, and how far points are told apart.
PLANS = {
    "states": (PLACES, [], {"state": "1/3"}, 8, 3),
    "states and the total": (PLACES, [], {"state": "1/4", (): "1/6"}, 8, 3),
    "kept total": (PLACES, [[]], {"state": "1/3"}, 8, 4),
    "every cell twice": (PAIRS, [], {("county", "sex"): "1/6", "county": "1/3"}, 8, 3),
    "both margins": (PAIRS, [], {"county": "1/3", "sex": "1/6"}, 8, 3),
    "kept rows, focused columns": (PAIRS, [["county"]], {"sex": "1/3"}, 8, 5),
    "regions of kept rows": (CUBE, [["county"]], {"sex": "1/3"}, 4, 2),
    "a wider crossing": (WIDE, [["county"]], {"age": "1/4"}, 6, 3),
    "kept margins that overlap": (CUBE, [["county"], ["sex"]], {"age": "1/3"}, 4, 2),
    "narrow": (PAIRS, [], {"county": "4", "sex": "4"}, 6, 2),
    "narrow under kept rows": (PAIRS, [["county"]], {"sex": "1"}, 8, 4),
    "a focus on pairs across kept margins": (CUBE, [["county"], ["age"]], {("county", "sex"): "1/4"}, 4, 2),
}  # fmt: skip
RHO = Fraction(1, 4)


def rows_of(domain, axes):
    return ks.Invariants.margins(domain, [(axes,) if isinstance(axes, str) else axes]).coefficients.toarray()


def weights(domain, keep, focus, points):
    """The weight of each vector; 0 if it does not keep what is kept."""
    logs, kept = -float(RHO) * (points**2).sum(axis=1), np.ones(len(points), dtype=bool)
    for axes in keep:
        kept &= (points @ rows_of(domain, axes).T == 0).all(axis=1)
    for axes, weight in focus.items():
        logs = logs - float(Fraction(weight)) * ((points @ rows_of(domain, axes).T) ** 2).sum(axis=1)
    return np.exp(logs) * kept


def law_of(name):
    domain, keep, focus, box, reach = PLANS[name]
    whole = 0.0
    for first in range(-box, box + 1):  # in parts, as there are many
        points = np.column_stack([np.full((2 * box + 1) ** (domain.size - 1), first), boxed(box, domain.size - 1)])
        whole += weights(domain, keep, focus, points).sum()
    points = boxed(reach, domain.size)
    near = weights(domain, keep, focus, points)
    return as_tuples(points[near > 0]), near[near > 0] / whole


def drawn(name, factor=1):
    domain, keep, focus, *_ = PLANS[name]
    wrong = {axes: Fraction(weight) * factor for axes, weight in focus.items()} if factor else None
    plan = ks.plan(domain, keep=keep, mechanism=ks.Gaussian.per_unit(rho=RHO, focus=wrong))
    assert plan.guarantee.sampling == "exact"
    return plan.sample(COUNT, ks.rng(seed=20))


SMALL = [name for name, (domain, *_) in PLANS.items() if domain.size < 8]


@mostly_audit("name", SMALL)
def test_plans_draw_from_their_law(name):
    law = law_of(name)
    assert_drawn_from(drawn(name), law)
    assert_not_drawn_from(drawn(name, factor=2), law)  # a weight applied twice
    assert_not_drawn_from(drawn(name, factor=0), law)  # and one forgotten


@mostly_audit("name", sorted(set(PLANS) - set(SMALL)))
def test_regions_and_overlapping_totals_draw_from_their_law(name):
    """Eight cells: the noise of seven linear functions would be too many bins, so that two totals are looked at."""
    domain, keep, focus, *_ = PLANS[name]
    seen = np.vstack([rows_of(domain, axes) for axes in focus])[:2]
    seen = np.vstack([seen, np.eye(domain.size, dtype=int)[:2]])
    points = sums_law(domain, keep, focus, seen)
    for factor, check in [(1, assert_drawn_from), (2, assert_not_drawn_from), (0, assert_not_drawn_from)]:
        check(drawn(name, factor) @ seen.T, points)


def sums_law(domain, keep, focus, seen, box=5):
    """The law of some sums, over all vectors of a basis of the lattice within a box."""
    basis = np.array(kernel_of(domain, keep))
    chances: dict[tuple[int, ...], float] = {}
    for first in range(-box, box + 1):
        coefficients = boxed(box, len(basis) - 1)
        points = np.column_stack([np.full(len(coefficients), first), coefficients]) @ basis
        weight = weights(domain, [], focus, points)
        values, place = np.unique(points @ seen.T, axis=0, return_inverse=True)
        for value, chance in zip(as_tuples(values), np.bincount(place.ravel(), weights=weight), strict=True):
            chances[value] = chances.get(value, 0.0) + float(chance)
    whole = sum(chances.values())
    return list(chances), np.array(list(chances.values())) / whole


def kernel_of(domain, keep):
    from keepsum.lattice.elimination import kernel
    from keepsum.lattice.matrix import matrix_rows

    matrix = ks.Invariants.margins(domain, keep).coefficients
    return [[vector.get(cell, 0) for cell in range(domain.size)] for vector in kernel(matrix_rows(matrix), domain.size)]


@pytest.mark.audit
@pytest.mark.parametrize("name", ["narrow", "narrow under kept rows"])
def test_narrow_noise_has_its_law_and_without_acceptance_it_does_not(name):
    domain, keep, focus, *_ = PLANS[name]
    plan = ks.plan(domain, keep=keep, mechanism=ks.Gaussian.per_unit(rho=RHO, focus=focus))
    (choice,) = plan.samplers
    assert choice.acceptance < 0.99
    law = law_of(name)
    assert_drawn_from(plan.sample(COUNT, ks.rng(seed=3)), law)
    count = 8 * COUNT
    out, draws = np.empty((2, count, domain.size), dtype=np.int64)
    choice.sampler._part.fill(out, Variances.constant(plan.mechanism.sigma**2, count), False, rng(seed=1), 1)
    draws[:, choice.cells] = out
    assert_not_drawn_from(draws, law)


@pytest.mark.parametrize("name", ["narrow", "narrow under kept rows", "kept total"])
def test_ties_are_settled_rightly(name, monkeypatch):
    """Words of 8 bits leave most decisions to ball arithmetic."""
    made = []

    def coarse(*arguments, **named):
        made.append(BlockGaussian(*arguments, **named, word_bits=8))
        return made[-1]

    monkeypatch.setattr(gaussian, "BlockGaussian", coarse)
    domain, keep, focus, *_ = PLANS[name]
    plan = ks.plan(domain, keep=keep, mechanism=ks.Gaussian.per_unit(rho=RHO, focus=focus))
    assert plan.samplers
    assert made
    assert all(isinstance(choice.sampler, LatticeGaussian) for choice in plan.samplers)
    assert_drawn_from(plan.sample(3000, ks.rng(seed=5)), law_of(name))
