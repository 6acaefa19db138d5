"""Costs as events of ``dp_accounting`` (the extra ``accounting``), for accountants that add them to others.

An event stands for the worst pair of outputs at a distance, so that it holds whatever totals are kept. Every pure loss
is dominated by randomised response (Kairouz, Oh and Viswanath 2015), and Gaussian noise on a lattice is known by its
zCDP. The accountants' *one record replaced* (``NeighboringRelation.REPLACE_ONE``) then means *tables at this distance*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from keepsum._extras import check_installed
from keepsum.accounting.composition import compose
from keepsum.accounting.total import Cost, Total
from keepsum.errors import InputError
from keepsum.privacy.calibration import SIGMA_BITS
from keepsum.privacy.distance import Distance
from keepsum.sampling.core.balls import ball, precision

if TYPE_CHECKING:
    from dp_accounting import DpEvent


def event_of(cost: Cost, distance: Distance) -> DpEvent:
    """One release as an event, between tables at a distance.

    Parameters
    ----------
    cost
        What the release costs; its sampling must be exact, as events have no total variation.
    distance
        The distance, in the norm of the cost; an l1 distance also does for l2 noise.

    Examples
    --------
    >>> event_of(Cost("l2", rho=Fraction(1, 8)), Distance("l2", 2))
    ZCDpEvent(rho=0.25, xi=0.0)
    """
    return _event(Total.of(cost), distance)


def event_of_several(totals: Iterable[tuple[Total, Distance]]) -> DpEvent:
    """Several releases as one event, each with the distance at which it counts."""
    return _dp_accounting().ComposedDpEvent([_event(total, distance) for total, distance in totals])


def _event(total: Total, distance: Distance) -> DpEvent:
    loss = total.at(distance)  # checks it
    if total.error:
        raise InputError("A cost must be that of exact sampling to be an event, got one with a sampling error.")
    dp_accounting = _dp_accounting()
    if loss.rho is not None:
        return dp_accounting.ZCDpEvent(rho=_float_up(loss.rho))
    epsilon = loss.epsilon or Fraction(0)
    if epsilon > 700:
        return dp_accounting.NonPrivateDpEvent()  # what is left has no float
    with precision(SIGMA_BITS):  # of two buckets the right one has odds e^epsilon, and less noise loses more
        noise = math.nextafter(float((2 / (1 + ball(epsilon).exp())).lower()), 0)
    return dp_accounting.RandomizedResponseDpEvent(noise_parameter=noise, num_buckets=2)


def composed_event(costs: Iterable[Cost], distance: Distance, same_table: bool = True) -> DpEvent:
    """Several releases as one event, between datasets that agree on the kept totals of all of them.

    Parameters
    ----------
    costs
        What the releases cost.
    distance
        The distance between the datasets, in the norm of their total.
    same_table
        As in ``compose``.
    """
    several = list(costs)
    compose(several, same_table).at(distance)  # checks that this norm is one in which they add up
    return event_of_several((Total.of(cost), distance) for cost in several)


def _dp_accounting() -> ModuleType:
    check_installed("An event", "accounting")
    return import_module("dp_accounting")


def _float_up(number: Fraction) -> float:
    value = float(number)
    return value if Fraction(value) >= number else math.nextafter(value, math.inf)
