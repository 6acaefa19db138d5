"""The mechanism's privacy loss at a distance as numbers, rounded up: a loss is never stated smaller than it is."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction

from keepsum.privacy.mechanisms import Distance, Gaussian, Mechanism

WORKING = Context(prec=50)
DIGITS = 12  # of a loss that has no short exact form
POSITIONAL = range(-7, 16)  # powers of ten of the first digit that are written without an exponent
CERTAIN = 1000  # an epsilon from which on delta counts as 1


@dataclass(frozen=True)
class Loss:
    """Epsilon, delta and rho at a distance, to fifty digits; None where the mechanism has none."""

    epsilon: Decimal | None
    delta: Decimal | None
    rho: Decimal | None


def loss_at(mechanism: Mechanism, distance: Distance) -> Loss:
    """The loss of a mechanism at a distance, sampling apart.

    Examples
    --------
    >>> import keepsum as ks
    >>> loss = loss_at(ks.Gaussian(epsilon=0.5, delta="1e-6"), Distance("l2", 2))
    >>> rounded_up(loss.epsilon), rounded_up(loss.delta), loss.rho
    ('0.707106781187', '0.00000158483316038', None)
    >>> rounded_up(loss_at(ks.Gaussian(rho="1/3"), Distance("l2", 4)).rho)
    '1.33333333334'
    """
    gaussian = mechanism if isinstance(mechanism, Gaussian) else None
    if mechanism.epsilon is None:
        return Loss(None, None, _decimal(gaussian.unit_rho * distance.length) if gaussian else None)
    epsilon = _times(mechanism.epsilon, distance)
    delta = gaussian.delta if gaussian else None
    return Loss(epsilon, None if delta is None else _delta_at(mechanism.epsilon, delta, epsilon), None)


def rounded_up(number: Decimal) -> str:
    """A number as text, to twelve digits."""
    short = number.normalize(Context(prec=DIGITS, rounding=ROUND_CEILING))
    if not short or short.adjusted() in POSITIONAL:
        return f"{short:f}"
    return f"{short:e}".replace("e+", "e")


def _times(epsilon: Fraction, distance: Distance) -> Decimal:
    """Epsilon times a distance: exact where it is rational and short."""
    if isinstance(distance.value, int):
        return _decimal(epsilon * distance.value)
    with localcontext(WORKING):
        return _decimal(epsilon) * Decimal(distance.length).sqrt()


def _delta_at(unit: Fraction, delta: Fraction, epsilon: Decimal) -> Decimal:
    """(e^(eps r) - 1) / (e^eps - 1) * delta: the delta of the definition at distance r, at most 1."""
    if epsilon > CERTAIN:
        return Decimal(1)
    with localcontext(WORKING):
        return min(Decimal(1), (epsilon.exp() - 1) / (_decimal(unit).exp() - 1) * _decimal(delta))


def _decimal(number: Fraction) -> Decimal:
    with localcontext(WORKING):
        return Decimal(number.numerator) / Decimal(number.denominator)
