"""A focus of Gaussian noise through the public face: the loss by enumeration, releases that verify, what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import keepsum as ks
from facade.real_changes import dearest_change
from keepsum.accounting.total import Cost
from keepsum.privacy.profile import largest_rho
from support import mostly_audit

PLACES = ks.Domain({"state": ["A", "B"], "county": {"A": ["a", "b"], "B": ["c"]}}, within={"county": "state"})
PAIRS = ks.Domain({"county": ["a", "b"], "sex": ["f", "m"]})
COUNTIES = ks.Domain(
    {"state": ["A", "B"], "county": {"A": ["a", "b", "c"], "B": ["d", "e"]}, "sex": ["f", "m"]},
    within={"county": "state"},
)
THREE_LEVELS = ks.Gaussian.per_unit(rho="0.03", focus={"state": "0.01", "county": "0.02"})
CASES = [
    (PLACES, [], {"state": "1/3"}, True),
    (PLACES, [[]], {"state": "1/3"}, True),
    (PAIRS, [], {"county": "1/4", "sex": "1/5"}, True),
    (PAIRS, [["county"]], {"sex": "1/5"}, False),
    (PAIRS, [], {"county": "1/4", (): "1/5"}, True),
]


def rho_at(plan, change):
    """Half of the quadratic form of a change, from its definition."""
    mechanism, domain = plan.mechanism, plan.invariants.domain
    total = mechanism.rho * int((change**2).sum())
    for level in mechanism.focus:
        rows = ks.Invariants.margins(domain, [level.axes]).coefficients
        total += level.weight * int(((rows @ change) ** 2).sum())
    return total


def dearest(plan, axis):
    """The rho of the nearest table in which one person has another value on an axis, where it is largest."""
    return dearest_change(plan, axis, lambda change: rho_at(plan, change))


@pytest.mark.parametrize(("domain", "keep", "focus", "exact"), CASES)
def test_the_stated_loss_is_that_of_the_dearest_change(domain, keep, focus, exact):
    plan = ks.plan(domain, keep=keep, mechanism=ks.Gaussian.per_unit(rho="1/2", focus=focus))
    for attribute in plan.attributes:
        stated, true = plan.mechanism.loss(attribute.any_value).rho, dearest(plan, attribute.axis)
        assert stated == true
        assert attribute.any_value.exact or not exact
    unit = max(rho_at(plan, change) for change in np.eye(domain.size, dtype=int))
    assert plan.guarantee.unit_rho == unit


@mostly_audit(("domain", "keep", "focus", "exact"), CASES)
def test_the_density_has_the_form_of_the_loss(domain, keep, focus, exact):
    """The law is that of the quadratic form, so that its divergence at a change is at most its rho times the order."""
    plan = ks.plan(domain, keep=keep, mechanism=ks.Gaussian.per_unit(rho="1/2", focus=focus))
    box = np.indices((7,) * domain.size).reshape(domain.size, -1).T - 3
    logs = plan.noise.log_pmf(box, constant=False)
    kept = np.isfinite(logs)
    assert np.allclose(logs[kept], [-float(rho_at(plan, z)) for z in box[kept]])
    assert kept.sum() == 7**domain.size if not keep else kept.sum() < 7**domain.size


def test_bounds_of_crossing_totals_are_never_below_the_truth():
    """Three counties and two sexes, with what is kept crossing what is focused on."""
    domain = ks.Domain({"county": ["a", "b", "c"], "sex": ["f", "m"]})
    for keep, focus in [([["county"]], {"sex": 1}), ([["sex"]], {"county": 1}), ([[]], {"county": 1, "sex": 1})]:
        plan = ks.plan(domain, keep=keep, mechanism=ks.Gaussian.per_unit(rho="1/2", focus=focus))
        for attribute in plan.attributes:
            stated, true = plan.mechanism.loss(attribute.any_value).rho, dearest(plan, attribute.axis)
            assert stated == true if attribute.any_value.exact else stated >= true


@pytest.mark.parametrize("keep", [[], [[]], [["sex"]], [["state"], ["sex"]]])
def test_a_release_is_saved_verified_and_read_again(tmp_path, keep):
    table = ks.Table(COUNTIES, np.arange(10))
    release = ks.release(table, keep=keep, mechanism=ks.Gaussian(rho=1, focus={"county": 2}, cell_share=3))
    release.save(f"{tmp_path}/out/")
    verified = ks.verify(f"{tmp_path}/out/")
    assert verified, verified
    read = ks.read_release(f"{tmp_path}/out/")
    assert read.plan.mechanism == release.plan.mechanism
    assert read.plan.guarantee.person_rho == 1
    focus = read.certificate.mechanism.focus[0]
    assert (focus.axes, focus.epsilon, Fraction(focus.rho)) == (
        ["county"],
        None,
        release.plan.mechanism.focus[0].weight,
    )
    assert len(read.accuracy().levels) == 1


def test_epsilon_and_delta_stand_for_a_rho_that_is_divided():
    rho = largest_rho(Fraction(1), Fraction(1, 10**6))
    asked = ks.Gaussian(1, "1e-6", focus={"county": 1}, cell_share=3)
    person = ks.plan(COUNTIES, keep=[["state"]], mechanism=asked)
    assert (person.guarantee.person_epsilon, person.guarantee.person_delta) == (1, Fraction(1, 10**6))
    assert rho * (1 - Fraction(1, 10**9)) <= person.mechanism.rho_at(person.person) <= rho
    assert person.mechanism.calibrated.rho == person.mechanism.rho_at(person.person)
    assert float(person.mechanism.rho / person.mechanism.focus[0].weight) == pytest.approx(3)


def test_the_variance_of_wide_noise_is_that_of_the_form():
    """Simulated margins and variances, against the inverse of the form."""
    plan = ks.plan(COUNTIES, keep=[], mechanism=THREE_LEVELS)
    form = 2 * float(plan.mechanism.rho) * np.eye(10)
    for level in plan.mechanism.focus:
        rows = ks.Invariants.margins(COUNTIES, [level.axes]).coefficients.toarray()
        form += 2 * float(level.weight) * rows.T @ rows
    covariance = np.linalg.inv(form)
    ones = np.arange(10) < 6
    law = plan.noise.law({"state": "A"})
    assert law.basis == "estimated"
    assert law.variance == pytest.approx(ones @ covariance @ ones, rel=0.08)
    assert plan.noise.variance(0) == pytest.approx(covariance[0, 0], rel=0.05)
    shown = " ".join(plan.explain(details=True).split())
    assert "within one total of county: rho 0.06" in shown
    assert "Gaussian with this focus" in shown


def test_what_a_ledger_is_charged_covers_every_change(tmp_path):
    """Per unit of l1 distance: a change of several cells of one total may do more to it than its l2 length says."""
    plan = ks.plan(COUNTIES, keep=[], mechanism=THREE_LEVELS)
    cost = Cost.of(plan.guarantee)
    assert (cost.norm, cost.rho) == ("l1", Fraction(6, 100))
    for change in (np.eye(10, dtype=int)[0], np.ones(10, dtype=int), np.array([3, 1] + [0] * 8)):
        assert rho_at(plan, change) <= cost.rho * int(np.abs(change).sum()) ** 2
    assert rho_at(plan, np.ones(10, dtype=int)) > cost.rho * 10  # which its l2 length would allow
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(rho="0.1"))
    release = ks.release(ks.Table(COUNTIES, np.arange(10)), keep=[], mechanism=THREE_LEVELS, ledger=ledger)
    assert ks.verify(release.save(tmp_path / "out.csv"))
    assert str(ledger.standing()).startswith("rho 0.06 of 0.1 at l1 distance 1")


def test_curves_and_targets_keep_the_proportions():
    keep = ks.Invariants.margins(COUNTIES, [[]])
    curve = ks.accuracy_curve(keep=keep, mechanism=THREE_LEVELS, values=["0.03", "0.06"])
    assert (
        curve.points[1].mechanism
        == ks.Gaussian.per_unit(rho="0.06", focus={"state": "0.02", "county": "0.04"}).resolve()
    )
    shared = ks.Gaussian(rho=1, focus={"county": 1}, cell_share=2)
    chosen = ks.mechanism_for(keep=keep, mechanism=shared, margin=10)
    assert chosen.focus == shared.focus
    assert ks.plan(keep=keep, mechanism=chosen).accuracy().typical <= 10


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"sigma": 1, "focus": {"a": 1}}, "Argument focus= must be given with a loss"),
        ({"sigma": 1, "attributes": ["a"]}, "Arguments attributes= and to= must be given with a loss"),
        ({"sigma": 1, "to": "some other value"}, "Arguments attributes= and to= must be given with a loss"),
        ({"rho": 1, "cell_share": 2}, "Argument cell_share= requires focus="),
        ({"rho": 1, "focus": {"a": 0}}, "The weight of 'totals of a' in focus= must be a positive number, got 0."),
        (
            {"epsilon": "0.1", "delta": "1e-6", "focus": {"a": 1}, "calibration": "paper"},
            "Calibration must be 'lines' where there is a focus, got 'paper'.",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments, words):
    with pytest.raises(ks.InputError) as caught:
        ks.Gaussian(**arguments)
    assert words in str(caught.value)


def test_epsilon_and_delta_per_unit_of_distance_have_no_focus():
    with pytest.raises(ks.InputError, match="Argument focus= must be given with rho="):
        ks.Gaussian.per_unit(1, "1e-6", focus={"a": 1})


def test_l2_laplace_noise_and_tail_bounds_have_no_focus():
    with pytest.raises(ks.InputError, match="A focus must be in the l1 norm, or that of Gaussian noise"):
        ks.Laplace.per_unit(1, "l2", focus={"county": 1})
    with pytest.raises(ks.InputError, match="Tail bounds need noise without a focus"):
        ks.plan(COUNTIES, keep=[], mechanism=THREE_LEVELS).tail_bound(1000)


def test_kept_totals_and_the_same_totals_twice_are_refused():
    keep = ks.Invariants.margins(COUNTIES, [["county"]])
    with pytest.raises(ks.PlanError, match="the kept ones determine all totals of state"):
        ks.plan(keep=keep, mechanism=ks.Gaussian.per_unit(rho=1, focus={"state": 1}))
    with pytest.raises(ks.PlanError, match="A focus must be given once"):
        ks.plan(
            COUNTIES,
            keep=[],
            mechanism=ks.Gaussian.per_unit(rho=1, focus={"county": 1, ("state", "county"): 1}),
        )
