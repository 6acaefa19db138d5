"""Privacy losses as numbers, rounded up."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from keepsum.privacy.numbers import shown_briefly

LARGE_EPSILON, LARGE_DELTA = 10, Fraction(1, 100)  # per-person losses above these protect little
_LOG_MILLION = Fraction(13816, 1000)  # ln(10^6), rounded up


@dataclass(frozen=True)
class Loss:
    """The loss between two tables at some distance: epsilon, epsilon with delta, or rho (zCDP).

    Examples
    --------
    >>> str(Loss(epsilon=Fraction(1))), str(Loss(rho=Fraction(1, 8)))
    ('epsilon 1', 'rho 0.125 (zCDP)')
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None

    def __str__(self) -> str:
        if self.rho is not None:
            return f"rho {shown_briefly(self.rho)} (zCDP)"
        epsilon = "" if self.epsilon is None else f"epsilon {shown_briefly(self.epsilon, 8)}"
        return epsilon if self.delta is None else f"{epsilon}, delta {shown_briefly(self.delta)}"

    @property
    def excess(self) -> Literal["epsilon", "delta", "rho"] | None:
        """The parameter that is so large that the loss protects little, decided in exact arithmetic; None if none is.

        A loss in rho counts as the epsilon that it gives at delta 1e-6, rho + 2 sqrt(rho ln(1/delta)).

        >>> Loss(epsilon=Fraction(10)).excess, Loss(epsilon=Fraction("10.4")).excess, Loss(rho=Fraction(10**4)).excess
        (None, 'epsilon', 'rho')
        """
        if self.rho is not None:
            room = LARGE_EPSILON - self.rho
            return "rho" if room < 0 or 4 * self.rho * _LOG_MILLION > room**2 else None
        if self.epsilon is not None and self.epsilon > LARGE_EPSILON:
            return "epsilon"
        return "delta" if self.delta is not None and self.delta > LARGE_DELTA else None
