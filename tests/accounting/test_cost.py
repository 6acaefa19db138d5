"""The cost of a release, from its guarantee."""

from dataclasses import replace
from fractions import Fraction

import pytest

import keepsum as ks
from keepsum.accounting.composition import compose, compose_parallel
from keepsum.accounting.total import Cost
from keepsum.errors import InputError, PlanError
from keepsum.ledger.entries import CostRecord
from keepsum.privacy.distance import Distance
from keepsum.privacy.guarantee import SamplingError

KEEP = ks.Invariants.subsets(3, [[0, 1, 2]]).over(ks.Domain({"a": [0, 1, 2]}))
ONE = Fraction(1)


def guarantee(mechanism):
    return ks.plan(keep=KEEP, mechanism=mechanism).guarantee


def test_laplace_costs_its_epsilon():
    assert Cost.of(guarantee(ks.Laplace.per_unit("1/3"))) == Cost("l1", Fraction(1, 3))
    assert Cost.of(guarantee(ks.Laplace.per_unit("1/3", norm="l2"))) == Cost("l2", Fraction(1, 3))


def test_gaussian_costs_rho_and_what_it_states():
    assert Cost.of(guarantee(ks.Gaussian.per_unit(rho="1/7"))) == Cost("l2", rho=Fraction(1, 7))
    cost = Cost.of(guarantee(ks.Gaussian(sigma=3)))
    assert (cost.stated, cost.rho) == (None, Fraction("0.0555555555556"))  # 1/18, rounded up to twelve digits
    plan = ks.plan(keep=KEEP, mechanism=ks.Gaussian.per_unit("1/2", "1e-6"))
    cost = Cost.of(plan.guarantee)
    assert cost.stated == (Fraction(1, 2), Fraction(1, 10**6))
    assert 0 <= cost.rho - plan.mechanism.unit_rho < cost.rho / 10**11


@pytest.mark.parametrize(
    "mechanism", [ks.Laplace.per_unit("0.3"), ks.Laplace.per_unit("0.3", norm="l2"), ks.Gaussian.per_unit(rho="0.1")]
)
def test_one_release_costs_what_it_guarantees(mechanism):
    plan = ks.plan(keep=KEEP, mechanism=mechanism)
    assert compose([Cost.of(plan.guarantee)]).at(plan.person) == plan.mechanism.loss(plan.person)


def test_a_stated_guarantee_is_kept_at_its_delta():
    """Or what follows from rho, where that is less: for the tail bound it is."""
    plan = ks.plan(keep=KEEP, mechanism=ks.Gaussian.per_unit("1/2", "1e-6", calibration="zcdp"))
    stated = plan.mechanism.loss(plan.person)
    total = compose([Cost.of(plan.guarantee)])
    loss = total.at(plan.person, stated.delta)
    assert loss.epsilon < stated.epsilon
    assert (stated.epsilon, stated.delta) in total._candidates(plan.person, plan.person.length, stated.delta)


def test_sampling_errors_are_rounded_up():
    rounded = replace(guarantee(ks.Laplace.per_unit(1)), sampling="rounded", error=SamplingError(1.2345e-9))
    cost = Cost.of(rounded)
    assert (cost.error, cost.sampling) == (Fraction("1.24e-9"), "rounded")
    loss = compose([cost]).at(Distance("l1", 2))
    assert loss.delta >= rounded.sampling_delta(Distance("l1", 2)) * Fraction(99, 100)
    assert loss.delta >= Fraction("1.2345e-9") * (1 + Fraction("7.389056"))


def test_what_is_not_measured_has_no_cost():
    unmeasured = replace(guarantee(ks.Laplace.per_unit(1)), sampling="estimated")
    with pytest.raises(PlanError, match=r"must include their sampling error\. Use plan\.certify\(\)\."):
        Cost.of(unmeasured)
    with pytest.raises(PlanError, match="without a sampler has no cost"):
        Cost.of(replace(unmeasured, sampling="no sampler"))
    measured = replace(unmeasured, error=SamplingError(0.01, 0.001, 0.95, 4000))
    assert Cost.of(measured) == Cost("l1", ONE, error=Fraction(1, 100) + Fraction(1, 10**4), sampling="estimated")


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"epsilon": ONE, "rho": ONE},
        {"epsilon": 0.5},
        {"epsilon": Fraction(0)},
        {"rho": ONE, "norm": "l1", "stated": (ONE, Fraction(1, 2))},
        {"epsilon": ONE, "norm": "l3"},
        {"epsilon": ONE, "stated": (ONE, Fraction(1, 2))},
        {"rho": ONE, "stated": (ONE, ONE)},
        {"rho": ONE, "stated": (ONE, 1e-6)},
        {"epsilon": ONE, "error": Fraction(2)},
        {"epsilon": ONE, "error": 1e-9},
        {"epsilon": ONE, "sampling": "no sampler"},
    ],
)
def test_a_cost_must_make_sense(wrong):
    with pytest.raises(InputError) as error:
        Cost(**{"norm": "l2"} | wrong)
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("costs", [[], None, 3, [None], ["l1"], [Fraction(1)], Cost("l1", ONE)])
@pytest.mark.parametrize("rule", [compose, compose_parallel])
def test_costs_must_be_a_list_of_costs(rule, costs):
    with pytest.raises(InputError, match=r"^Costs must be "):
        rule(costs)


def test_same_table_must_be_a_flag():
    with pytest.raises(InputError, match="Argument same_table= must be True or False"):
        compose([Cost("l1", ONE)], same_table="no")


def test_distances_must_be_in_the_norm_of_the_total():
    total = compose([Cost("l1", ONE)])
    with pytest.raises(InputError, match="The distance must be in the l1 norm"):
        total.at(Distance("l2", 2))
    with pytest.raises(InputError, match="The distance must be of type Distance"):
        total.at(2)
    with pytest.raises(InputError, match="Delta must be a fraction"):
        total.at(Distance("l1", 2), 0.1)
    assert compose([Cost("l2", ONE)]).at(Distance("l1", 2)).epsilon == 2  # never smaller than the l2 distance


def test_a_thousand_calibrated_releases_have_a_short_total():
    """Fractions of twelve digits: their sum has no endless denominator."""
    plain = guarantee(ks.Laplace.per_unit(1))
    sigmas = [Fraction(n, 7) for n in range(10, 1010)]
    costs = [Cost.of(replace(plain, mechanism=ks.Gaussian(sigma=sigma).resolve())) for sigma in sigmas]
    assert len(str(compose(costs).rho.denominator)) < 30


def test_the_levels_of_a_focus_are_a_part_of_the_loss():
    plan = ks.plan(
        keep=ks.Invariants.margins(ks.Domain({"a": [0, 1], "b": [0, 1]}), [[]]), mechanism=ks.Laplace(1, focus={"a": 2})
    )
    cost = Cost.of(plan.guarantee)
    assert (cost.epsilon, cost.levels) == (Fraction(1, 2), (Fraction(1, 3),))
    assert cost.scaled(Fraction(1, 2)) == Cost("l1", Fraction(1, 4), levels=(Fraction(1, 6),))
    for norm, levels in [("l1", (ONE,)), ("l1", (ONE / 2, ONE / 2)), ("l2", (ONE / 2,))]:
        with pytest.raises(ks.InputError, match="levels of a cost must be a part of its loss"):
            Cost(norm, ONE, levels=levels)


def test_long_quotients_are_rounded_up_in_cells_and_in_levels_alike():
    long = Fraction(10**18 + 1, 3 * 10**18)
    cost = Cost("l1", rho=2 * long, levels=(long,))
    kept = CostRecord.of(cost).cost()
    assert kept.levels[0] > long
    assert kept.loss - kept.levels[0] > long
    assert kept.loss < 2 * long * (1 + Fraction(1, 10**11))
