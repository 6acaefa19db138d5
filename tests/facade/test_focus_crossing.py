"""A focus on totals that cross in any way, in l1 Laplace noise: plans, releases, and what is stated of them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import keepsum as ks
from keepsum.privacy.guarantee import SamplingError

CUBE = ks.Domain({axis: [f"{axis}{k}" for k in range(3)] for axis in "abc"})
NOISE = ks.Laplace.per_unit("1/4", focus={"a": "1/8", "b": "1/8", "c": "1/16"})


@pytest.fixture(scope="module")
def plan():
    return ks.plan(CUBE, keep=[[]], mechanism=NOISE)


def test_a_release_is_saved_and_verified(plan, tmp_path):
    assert [group.form.kind for group in plan._record.groups] == ["focused"]
    assert plan.guarantee.sampling == "exact"
    released = plan.release(ks.Table(CUBE, np.arange(27)))
    verified = ks.verify(released.save(f"{tmp_path}/out/"))
    assert verified.passed
    assert released.table.counts.sum() == np.arange(27).sum()


def test_losses_are_those_of_all_levels_and_sampling_adds_to_delta_at_that_loss(plan):
    """A person who moves along one axis changes two totals of that axis, and none of the others."""
    assert [attribute.any_value.focused for attribute in plan.attributes] == [(2, 0, 0), (0, 2, 0), (0, 0, 2)]
    assert plan.person in [attribute.any_value for attribute in plan.attributes[:2]]  # c weighs less
    assert (plan.person.length, plan.person.exact) == (2, True)
    guarantee = replace(plan.guarantee, error=SamplingError(1e-4))
    assert guarantee.unit_epsilon == Fraction(9, 16)
    assert guarantee.person_epsilon == 2 * (Fraction(1, 4) + Fraction(1, 8)) < 2 * guarantee.unit_epsilon
    for delta, loss in (
        (guarantee.unit_delta, guarantee.unit_epsilon),
        (guarantee.person_delta, guarantee.person_epsilon),
    ):
        added = (1 + np.exp(float(loss))) * 1e-4
        assert added <= delta <= added * 1.01


def test_a_change_of_fewer_totals_costs_less_delta_too(plan):
    guarantee = replace(plan.guarantee, error=SamplingError(1e-4))
    apart, within = (replace(plan.person, focused=totals) for totals in ((2, 2, 2), (0, 2, 2)))
    assert guarantee.sampling_delta(within) < guarantee.sampling_delta(apart)


@pytest.mark.parametrize(
    "noise", [NOISE, ks.Gaussian.per_unit(rho="1/100", focus={"a": "1/8", "b": "1/8", "c": "1/16"})]
)
def test_the_noise_of_totals_is_that_under_the_focus(noise):
    """Without the focus it would be larger by far."""
    plan = ks.plan(CUBE, keep=[[]], mechanism=noise)
    draws = plan.sample(4000, ks.rng(seed=1))
    for query, sums in (({"a": "a0"}, draws[:, :9].sum(axis=1)), (0, draws[:, 0])):
        assert plan.noise.variance(query) == pytest.approx(sums.var(), rel=0.25)
    assert plan.noise.variance([1] * 27) == 0
