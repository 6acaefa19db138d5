"""Gaussian releases whose number and largest losses were fixed before the first of them: composition of profiles.

For a change of loss rho the delta of Gaussian noise on any lattice is at most S(epsilon, rho) (``privacy/profile.py``).
S is convex in e^epsilon, so it is the profile of a pair of distributions that dominates every such release, and the
product of these pairs dominates the series, also if each table is chosen after seeing the ones before (Zhu, Dong and
Wang 2022). Here each profile is bounded from above at some epsilons of both signs, joined by straight lines in
e^epsilon ("connect the dots", Doroshenko et al. 2022), and composed by the accountant of ``dp_accounting`` (the extra
``accounting``). What is assumed, and why it is no rule for a ledger, is in ``docs/accounting.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any

from keepsum._extras import check_installed
from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.privacy.numbers import Number, exact, exact_in_range, shown
from keepsum.privacy.profile import bounded, digits_up, log_delta_of

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

STEPS = 16  # of the grid of losses, in one standard deviation of a release's loss
LIFT = 1 + 1e-9  # for the rounding of a few floating-point operations
RESERVE = Fraction(1, 10**12)  # of delta, for each release: more than its share of the rounding errors of a convolution
ROOM = 100  # how often the reserve must fit into delta
LARGEST_RHO = 20


def series_epsilon(rhos: Iterable[Number], delta: Number) -> Fraction:
    """The epsilon of Gaussian releases whose number and losses were fixed before the first, rounded up.

    It holds whichever tables are released, and whichever totals each keeps, also if that is chosen after seeing earlier
    outputs, if

    - the **number** of releases was fixed in advance,
    - an **upper limit of rho** of each was, and no release exceeds its own, and
    - each rho is that of one person at the farthest change that keeps **every total that any release could keep**.

    Where losses depend on outputs, sum rho: a ledger does.

    Parameters
    ----------
    rhos
        The largest zCDP loss of one person in each release.
    delta
        At which epsilon is stated, at least 1e-10 for each release.

    Returns
    -------
    Fraction
        Epsilon, rounded up to six digits. Never less than the true one: ``tests/accounting/test_series.py``.

    Raises
    ------
    InputError
        If a number is out of range, or dp_accounting is not installed (the extra ``accounting``).

    Examples
    --------
    Twelve tables a year, each with epsilon 1 at delta 1e-6 by itself, which is rho 0.0279:

    >>> import keepsum as ks
    >>> float(ks.series_epsilon(["0.0279"] * 12, "1e-6"))  # a ledger, which allows for any choice of losses, has 4.17
    3.90831

    References
    ----------
    Y. Zhu, J. Dong, Y.-X. Wang (2022), *Optimal Accounting of Differential Privacy via Characteristic Function*;
    V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi (2022), *Connect the Dots*.
    """
    losses, chosen = _checked(rhos), exact(delta, "Delta")
    least = RESERVE * ROOM * len(losses)
    if not least <= chosen < 1:
        raise InputError(f"Delta must be below 1 and at least {shown(least)} here, got {shown(chosen)}.")
    check_installed("A series of releases", "accounting")
    target = float(chosen - RESERVE * len(losses)) / LIFT
    # The losses of all pairs together, on one grid
    mean = float(sum(losses, Fraction(0)) / len(losses))
    step = math.sqrt(2 * mean) / STEPS
    each = [
        dominating_losses(rho, step, target / (1000 * len(losses))).self_compose(count)
        for rho, count in sorted(Counter(losses).items())
    ]
    composed = reduce(lambda one, other: one.compose(other), each)
    epsilon = composed.get_epsilon_for_delta(target)
    if not epsilon < math.inf:
        raise InputError("The rhos of a series must be smaller for an epsilon at this delta. Sum them instead.")
    rounded = digits_up(Fraction(epsilon * LIFT)) if epsilon > 0 else Fraction(0)
    if not composed.get_delta_for_epsilon(float(rounded)) <= target:
        raise AssertionError("epsilon was rounded to the wrong side")
    return rounded


def _checked(rhos: Iterable[Number]) -> list[Fraction]:
    if isinstance(rhos, str) or not isinstance(rhos, Iterable):
        raise InputError(f"The rhos of a series must be a list of numbers, got {type_of(rhos)}.")
    losses = [exact_in_range(rho, "Each rho of a series") for rho in rhos]
    if not losses:
        raise InputError("The rhos of a series must be a list of one or more, got none.")
    if max(losses) > LARGEST_RHO:
        raise InputError(f"Each rho of a series must be at most {LARGEST_RHO}. Sum them instead.")
    return losses


def dominating_losses(rho: Fraction, step: float, tail: float) -> PrivacyLossDistribution:
    """The privacy losses of a pair that dominates every Gaussian release of this loss, on multiples of a step.

    Parameters
    ----------
    rho
        The zCDP loss.
    step
        Of the grid.
    tail
        How much S may be where the grid ends: the pair has that much probability of an infinite loss.
    """
    most, width = 1, math.sqrt(0.5 / float(rho))
    while log_delta_of(most * step, width) > math.log(tail):
        most += 1
    grid = Fraction(step)
    above = [min(1.0, bounded(j * grid, rho) * LIFT) for j in range(most + 1)]
    # The pair in the other order is that of the opposite change, which has the same bound.
    below = [1 - math.exp(-j * step) * (1 - above[j]) for j in range(most, 0, -1)]
    kept = _convex([math.exp(j * step) for j in range(-most, most + 1)], values := below + above)
    package: Any = import_module("dp_accounting.pld.pld_pmf")
    losses = package.create_pmf_pessimistic_connect_dots(step, [k - most for k in kept], [values[k] for k in kept])
    distribution: Any = import_module("dp_accounting.pld.privacy_loss_distribution")
    return distribution.PrivacyLossDistribution(losses)


def _convex(points: Sequence[float], values: Sequence[float]) -> list[int]:
    """The corners of the largest convex function that is at most these values, and 1 at 0.

    A convex function below all values is below it as well: so is S.
    """
    corners = [(0.0, 1.0, -1)]
    for k, (x, y) in enumerate(zip(points, values, strict=True)):
        while len(corners) > 1:
            (before, its_value, _), (last, last_value, _) = corners[-2:]
            if (last_value - its_value) * (x - last) < (y - last_value) * (last - before):
                break
            corners.pop()
        corners.append((x, y, k))
    return [k for _, _, k in corners[1:]]
