"""The factor of nested totals in closed form: on the safe side, close to the lattice's form, and linear in its size."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import keepsum as ks
from keepsum.planning.selection import gaussian
from keepsum.sampling.gaussian import factors
from keepsum.sampling.gaussian.factors import tree_factor

# The parents of regions and totals, the sizes of regions, and the weights of totals.
TREES = {
    "one total": ([0, -1], [5], ["1/3"]),
    "kept root": ([1, 2, 0, -1, 0, 0], [3, 1, 2], [None, "2", "1/5"]),
    "three levels": ([1, 2, 2, 3, 3, 0, -1, 0, 1, 0], [1, 7, 2, 2, 9, 4], ["1/7", "3", "1/2", "5"]),
    "a total of one total": ([1, 1, -1, 0], [2, 3], ["1", "4"]),
}


def forms(factor, sizes, weights, x):
    """The form of the draws and that of the lattice at a vector of coordinates, exactly."""
    sums = factor._basis @ x
    of_columns = [Fraction(1, n) for n in sizes] + [Fraction(w) for w in weights if w is not None]
    wanted = sum(int(s) ** 2 * form for s, form in zip(sums, of_columns, strict=True))
    steps = zip(x.tolist(), factor.centres(x).tolist(), factor.shares.tolist(), strict=True)
    return sum((v - Fraction(c)) ** 2 / Fraction(share) for v, c, share in steps), wanted


@pytest.mark.parametrize("name", TREES)
def test_the_form_of_draws_is_at_most_that_of_the_lattice_and_close_to_it(name):
    parents, sizes, weights = TREES[name]
    exact = [None if weight is None else Fraction(weight) for weight in weights]
    factor = tree_factor(parents, np.array(sizes), exact)
    generator = np.random.default_rng(1)
    for size in (3, 1000, 10**6):
        for _ in range(30):
            x = generator.integers(-size, size + 1, len(factor.shares))
            drawn, wanted = forms(factor, sizes, weights, x)
            assert drawn <= wanted
            assert wanted - drawn <= wanted * Fraction(1, 10**7)


def test_a_share_that_is_too_small_is_not_on_the_safe_side():
    parents, sizes, weights = TREES["kept root"]
    factor = tree_factor(parents, np.array(sizes), [None, Fraction(2), Fraction(1, 5)])
    factor.tables.shares[:] *= 1 - 1e-6
    x = np.array([3] * len(factor.shares))
    drawn, wanted = forms(factor, sizes, weights, x)
    assert drawn > wanted


@pytest.mark.audit
def test_a_country_of_counties_is_planned_in_closed_form_and_a_large_crossing_is_refused(monkeypatch):
    for module in (factors, gaussian):
        monkeypatch.setattr(module, "LARGEST_DIMENSION", 30)
    counties = {f"state {s}": [f"{s}-{k}" for k in range(20)] for s in range(10)}
    domain = ks.Domain({"state": list(counties), "county": counties, "sex": ["f", "m"]}, within={"county": "state"})
    keep = ks.Invariants.margins(domain, [[]])
    plan = ks.plan(keep=keep, mechanism=ks.Gaussian.per_unit(rho="0.03", focus={"state": "0.01", "county": "0.02"}))
    (choice,) = plan.samplers
    tables = choice.sampler._part._factor.tables
    assert len(tables.shares) == 199
    assert len(tables.factors) <= 3 * 199
    noise = plan.sample(3000, ks.rng(seed=1))
    assert not noise.sum(axis=1).any()
    form = 0.06 * np.eye(400)
    for axes, rho in (["state"], 0.01), (["county"], 0.02):
        rows = ks.Invariants.margins(domain, [axes]).coefficients.toarray()
        form += 2 * rho * rows.T @ rows
    free = np.linalg.inv(form)
    ones = np.ones(400)
    covariance = free - np.outer(free @ ones, free @ ones) / (ones @ free @ ones)
    for cells in (slice(0, 40), slice(0, 2), slice(0, 1)):  # a state, a county, a cell
        seen = np.zeros(400)
        seen[cells] = 1
        assert (noise @ seen).var() == pytest.approx(seen @ covariance @ seen, rel=0.12)
    crossed = ks.plan(keep=keep, mechanism=ks.Gaussian.per_unit(rho="0.03", focus={"county": "0.01", "sex": "0.02"}))
    with pytest.raises(ks.PlanError, match="totals tie regions of more than 30 dimensions together; leave out totals"):
        crossed._record.check_samplers()
