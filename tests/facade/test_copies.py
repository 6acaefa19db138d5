"""Plans and releases that have been used are copied and pickled: what they worked out is worked out again."""

import copy
import pickle

import numpy as np
import pytest

import keepsum as ks
from support import mostly_audit

DOMAIN = ks.Domain(
    {"state": ["A", "B"], "county": {"A": ["p", "q"], "B": ["r", "s", "t"]}, "sex": ["f", "m"]}, {"county": "state"}
)
NOISE = {
    "nested": ([["county"]], ks.Laplace.per_unit(1)),
    "two-way": ([["county"], ["sex"]], ks.Laplace.per_unit(1)),
    "Gaussian": ([["county"], ["sex"]], ks.Gaussian.per_unit(rho=1)),
    "l2 Laplace": ([["state"]], ks.Laplace.per_unit(1, "l2")),
    "focus": ([[]], ks.Laplace.per_unit(1, focus={"county": 1})),
}
WAYS = {"pickle": lambda it: pickle.loads(pickle.dumps(it)), "deepcopy": copy.deepcopy, "copy": copy.copy}  # noqa: S301


@mostly_audit("way", WAYS)
@pytest.mark.parametrize("kind", NOISE)
def test_a_used_plan(kind, way):
    kept, mechanism = NOISE[kind]
    plan = ks.plan(DOMAIN, keep=kept, mechanism=mechanism)
    margins, variance = plan.accuracy().margins, plan.noise.variance({"sex": "f"})
    drawn = plan.sample(3, ks.rng(seed=19))
    other = WAYS[way](plan)
    assert (type(other), repr(other), other.guarantee) == (ks.Plan, repr(plan), plan.guarantee)
    assert other.explain(details=True) == plan.explain(details=True)
    np.testing.assert_array_equal(other.sample(3, ks.rng(seed=19)), drawn)
    np.testing.assert_array_equal(other.accuracy().margins, margins)
    assert other.noise.variance({"sex": "f"}) == variance
    assert WAYS[way](plan.noise).variance({"sex": "f"}) == variance


@pytest.mark.parametrize("way", WAYS)
def test_a_used_release(way):
    table = ks.Table.from_array(range(10), axes=DOMAIN)
    release = ks.release(table, keep=["state"], mechanism=ks.Laplace.per_unit(1), rng=ks.rng(seed=19))
    interval = release.interval({"sex": "f"})
    other = WAYS[way](release)
    assert other.certificate == release.certificate
    assert other.table.counts.tolist() == release.table.counts.tolist()
    assert other.interval({"sex": "f"}) == interval


def test_the_law_of_the_noise_says_what_it_is():
    plan = ks.plan(DOMAIN, keep=[["state"]], mechanism=ks.Gaussian.per_unit(rho="0.5"))
    assert repr(plan.noise) == f"Noise(10 cells, {plan.mechanism!r})"
