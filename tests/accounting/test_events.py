"""Events for ``dp_accounting``: its accountants agree with our totals on plain cases and state no less than is true."""

import math
from fractions import Fraction

import pytest

from accounting.divergences import gaussian, hockey_stick, l1_laplace, outputs, together
from keepsum.accounting.composition import compose
from keepsum.accounting.events import composed_event, event_of
from keepsum.accounting.total import Cost
from keepsum.errors import InputError
from keepsum.privacy.calibration import epsilon_of
from keepsum.privacy.distance import Distance
from keepsum.sampling.core.balls import ball, precision

dp_accounting = pytest.importorskip("dp_accounting")
from dp_accounting.dp_event import DiscreteLaplaceDpEvent  # noqa: E402
from dp_accounting.pld import PLDAccountant  # noqa: E402
from dp_accounting.rdp import RdpAccountant  # noqa: E402

REPLACED = dp_accounting.NeighboringRelation.REPLACE_ONE
ORDERS = [1 + 1.05**k for k in range(-80, 160)]
UNIT = Distance("l1", 1)


def rdp_epsilon(event, delta: float) -> float:
    return RdpAccountant(ORDERS, REPLACED).compose(event).get_epsilon(delta)


def pld_epsilon(event, delta: float) -> float:
    return PLDAccountant(REPLACED).compose(event).get_epsilon(delta)


@pytest.mark.parametrize("distance", [UNIT, Distance("l1", 3)])
def test_pure_losses_add_up_as_in_its_accountant(distance):
    costs = [Cost("l1", Fraction(1)), Cost("l1", Fraction(1, 4))]
    ours = float(compose(costs).at(distance).epsilon)
    theirs = pld_epsilon(composed_event(costs, distance), 0)
    assert ours <= theirs < ours + 3e-4  # its grid has steps of 1e-4, rounded up


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_rho_is_converted_as_in_its_accountant(delta):
    """Ours is the best of all orders, theirs of some; theirs has the same formula."""
    costs = [Cost("l2", rho=Fraction(1, 8)), Cost("l2", rho=Fraction(1, 18))]
    distance = Distance("l2", 2)
    loss = compose(costs).at(distance, Fraction(str(delta)))
    theirs = rdp_epsilon(composed_event(costs, distance), delta)
    assert float(loss.epsilon) <= theirs * (1 + 1e-12)
    assert theirs == pytest.approx(float(loss.epsilon), rel=1e-3)


@pytest.mark.parametrize("sigma", [1, 3])
def test_gaussian_noise_in_plain_cells_is_theirs(sigma):
    """One unconstrained cell: the event of the Gaussian mechanism has the same Renyi divergences as ours."""
    ours = event_of(Cost("l2", rho=Fraction(1, 2 * sigma**2)), Distance("l2", 1))
    theirs = dp_accounting.GaussianDpEvent(sigma)
    assert rdp_epsilon(ours, 1e-6) == pytest.approx(rdp_epsilon(theirs, 1e-6), rel=1e-12)
    assert float(epsilon_of(Fraction(1, 2 * sigma**2), Fraction(1, 10**6))) <= rdp_epsilon(theirs, 1e-6) * (1 + 1e-12)


def test_laplace_noise_in_plain_cells_loses_no_more_than_its_event():
    """The discrete Laplace event of one cell is dominated by ours, and both lose the same epsilon in the end."""
    ours, theirs = event_of(Cost("l1", Fraction(1)), UNIT), DiscreteLaplaceDpEvent(1.0, 1)
    added = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    plain = added.compose(theirs)
    assert plain.get_epsilon(0) == pytest.approx(pld_epsilon(ours, 0), abs=3e-4)
    for delta in (1e-6, 1e-2, 0.1):
        assert plain.get_epsilon(delta) <= pld_epsilon(ours, delta) + 1e-4


@pytest.mark.parametrize("delta", [1e-6, 1e-3])
def test_what_its_accountant_says_of_both_holds_under_kept_totals(delta):
    costs = [Cost("l1", Fraction(1)), Cost("l2", rho=Fraction(1, 8))]
    distance = Distance("l1", 2)
    theirs = rdp_epsilon(composed_event(costs, distance), delta)
    pair = together(outputs([[1, -1]], l1_laplace(1), [1, -1], 22), outputs([[1, -1]], gaussian(2), [1, -1], 24))
    assert hockey_stick(pair, theirs) <= delta


def test_no_event_says_less_than_its_cost():
    for epsilon in (*(Fraction(k, 7) for k in range(1, 60)), Fraction(1, 10**9), Fraction(40), Fraction(600)):
        noise = Fraction(event_of(Cost("l1", epsilon), UNIT).noise_parameter)
        with precision(200):
            assert ball(noise) < 2 / (1 + ball(epsilon).exp())
        assert float(noise) == pytest.approx(2 / (1 + math.exp(epsilon)), rel=1e-12)
    assert Fraction(event_of(Cost("l2", rho=Fraction(1, 3)), UNIT).rho) > Fraction(1, 3)
    assert isinstance(event_of(Cost("l1", Fraction(800)), UNIT), dp_accounting.NonPrivateDpEvent)


def test_what_has_no_event_is_refused(monkeypatch):
    with pytest.raises(InputError, match="must be that of exact sampling to be an event"):
        event_of(Cost("l1", Fraction(1), error=Fraction(1, 10**9), sampling="rounded"), UNIT)
    with pytest.raises(InputError, match="must be in the l1 norm"):
        composed_event([Cost("l2", Fraction(1))] * 2, Distance("l2", 2), same_table=False)
    monkeypatch.setattr("keepsum._extras.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"An event needs dp_accounting, .*: pip install '\.\[accounting\]'"):
        event_of(Cost("l1", Fraction(1)), UNIT)
