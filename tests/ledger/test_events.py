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
    release = ks.plan(FREE, ks.Laplace("1/2")).release(TABLE)
    event = release.dp_event(distance)
    assert epsilon_of(event, 0.0) == pytest.approx(distance / 2, rel=1e-3)
    gaussian = ks.plan(FREE, ks.Gaussian(rho="1/8")).release(TABLE).dp_event(distance)
    assert gaussian.rho == distance**2 / 8
    plain = dp_event.GaussianDpEvent(math.sqrt(4) / distance)  # sigma 2: rho = 1 / (2 sigma^2) = 1/8
    found, exact = epsilon_of(gaussian, 1e-6, RdpAccountant), epsilon_of(plain, 1e-6, RdpAccountant)
    assert found == pytest.approx(exact, rel=0.02)


def test_a_ledger_of_two_releases(tmp_path):
    ledger = ks.Ledger(tmp_path / "ledger.db", budget=ks.Budget(2))
    with pytest.raises(ks.InputError, match="must have a release to be an event"):
        ledger.dp_event()
    for epsilon in ("1/2", "3/4"):
        laplace(epsilon).release(TABLE, ledger=ledger)
    event = ledger.dp_event()
    assert isinstance(event, dp_event.ComposedDpEvent)
    assert epsilon_of(event, 0.0) == pytest.approx(1.25, rel=1e-3)
    assert epsilon_of(event, 0.0) >= float(ledger.standing().spent.epsilon) * (1 - 1e-3)
    assert ledger.standing().spent.epsilon == Fraction(5, 4)


@pytest.mark.parametrize("distance", [0, -1, "2", 1.5, None])
def test_wrong_distances(distance, tmp_path):
    release = laplace("1/2").release(TABLE)
    with pytest.raises(ks.InputError, match="The distance must be a whole number"):
        release.dp_event(distance)
