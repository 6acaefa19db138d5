"""Releases and ledgers as events of dp_accounting, against its accountants."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from dp_accounting import dp_event, privacy_accountant
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

import keepsum as ks
from ledger.making import TABLE, laplace

RELATION = privacy_accountant.NeighboringRelation.REPLACE_ONE
FREE = ks.Invariants.subsets(4, [])


def epsilon_of(event: dp_event.DpEvent, delta: float, accountant=PLDAccountant) -> float:
    return accountant(neighboring_relation=RELATION).compose(event).get_epsilon(delta)


@pytest.mark.parametrize("distance", [1, 2])
def test_a_release_without_invariants(distance):
    release = ks.plan(keep=FREE, mechanism=ks.Laplace.per_unit("1/2")).release(TABLE)
    event = release.dp_event(distance)
    assert epsilon_of(event, 0.0) == pytest.approx(distance / 2, rel=1e-3)
    gaussian = ks.plan(keep=FREE, mechanism=ks.Gaussian.per_unit(rho="1/8")).release(TABLE).dp_event(distance)
    assert gaussian.rho == distance**2 / 8
    plain = dp_event.GaussianDpEvent(math.sqrt(4) / distance)  # sigma 2: rho = 1 / (2 sigma^2) = 1/8
    found, exact = epsilon_of(gaussian, 1e-6, RdpAccountant), epsilon_of(plain, 1e-6, RdpAccountant)
    assert found == pytest.approx(exact, rel=0.02)


def test_a_ledger_of_two_releases(tmp_path):
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(2))
    with pytest.raises(ks.InputError, match="must have a release to be an event"):
        ledger.dp_event()
    for epsilon in ("1/2", "3/4"):
        laplace(epsilon).release(TABLE, ledger=ledger)
    event = ledger.dp_event(distance=1)
    assert isinstance(event, dp_event.ComposedDpEvent)
    assert epsilon_of(event, 0.0) == pytest.approx(1.25, rel=1e-3)
    assert epsilon_of(event, 0.0) >= float(ledger.standing().spent.epsilon) * (1 - 1e-3)
    assert ledger.standing().spent.epsilon == Fraction(5, 4)


COUNTIES = ks.Domain({"county": ["Alpha", "Beta"], "sex": ["f", "m"], "age": ["old", "young"]})
COUNTS = ks.Table.from_array(range(8), axes=COUNTIES)


TYPED = [ks.Laplace(1), ks.Laplace(1, "l2"), ks.Laplace(1, attributes=["sex"]), ks.Laplace(1, focus={"age": 1})]


@pytest.mark.parametrize(
    ("keep", "typed"),
    [(keep, typed) for keep in ([], ["county"], ["county", "sex"]) for typed in TYPED[: 3 if len(keep) > 1 else 4]],
)
def test_an_event_is_of_one_person(keep, typed, tmp_path):
    """Without a distance it is what the certificate and the ledger say of one person."""
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=100)
    plan = ks.plan(COUNTS, keep=keep, mechanism=typed)
    release = plan.release(COUNTS, ledger=ledger)
    for event in (release.dp_event(), ledger.dp_event()):
        assert epsilon_of(event, 0.0) == pytest.approx(float(plan.guarantee.person_epsilon), rel=1e-3)
    assert epsilon_of(ledger.dp_event(), 0.0) == pytest.approx(float(ledger.standing().spent.epsilon), rel=1e-3)
    least = typed.epsilon / plan.person_distance
    assert epsilon_of(release.dp_event(1), 0.0) >= float(least) * (1 - 1e-3)


def test_a_gaussian_event_is_of_one_person(tmp_path):
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget(rho=10))
    for typed in (ks.Gaussian(rho="1/8"), ks.Gaussian(rho="1/8", focus={"sex": 1})):
        release = ks.release(COUNTS, keep=["county"], mechanism=typed, ledger=ledger)
        assert release.dp_event().rho == pytest.approx(1 / 8)
    assert [event.rho for event in ledger.dp_event().events] == pytest.approx([1 / 8, 1 / 8])


def test_a_ledger_counts_one_person_under_all_kept_totals(tmp_path):
    """Two tables: a release by itself changes by 4, and with the totals of both kept by 6."""
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(10))
    first = ks.release(COUNTS, keep=["county"], mechanism=ks.Laplace.per_unit(1), ledger=ledger)
    ks.release(COUNTS, keep=["sex"], mechanism=ks.Laplace.per_unit(1), ledger=ledger)
    assert epsilon_of(first.dp_event(), 0.0) == pytest.approx(4, rel=1e-3)
    together = ledger.dp_event()
    joint = ks.plan(COUNTS, keep=["county", "sex"], mechanism=ks.Laplace(1)).person_distance
    assert epsilon_of(together, 0.0) == pytest.approx(2 * joint, rel=1e-3)


def test_without_one_person_an_event_is_refused(tmp_path):
    """Nobody can change in a single cell, and two tables that cannot be put together have no distance."""
    cell = ks.Table.from_array([[9]], axes={"county": ["Alpha"], "sex": ["f"]})
    release = ks.release(cell, keep=[], mechanism=ks.Laplace.per_unit("1/2"))
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(2))
    other = ks.Table.from_array([[4, 5], [6, 7], [8, 9]], axes={"county": list("abc"), "sex": ["f", "m"]})
    for cells in (other, TABLE):  # which cannot be put together
        ks.release(cells, keep=["county"], mechanism=ks.Laplace(1), ledger=ledger)
    for event_of in (release.dp_event, ledger.dp_event):
        with pytest.raises(ks.InputError, match="as that of one person is not known") as caught:
            event_of()
        assert caught.value.__context__ is None
    assert epsilon_of(ledger.dp_event(distance=4), 0.0) == pytest.approx(2, rel=1e-3)
    assert epsilon_of(release.dp_event(distance=1), 0.0) == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("distance", [0, -1, "2", 1.5])
def test_wrong_distances(distance, tmp_path):
    release = laplace("1/2").release(TABLE)
    with pytest.raises(ks.InputError, match="The distance must be a whole number"):
        release.dp_event(distance)
