"""What a release promises: the mechanism's guarantee, what it means for one person, and what sampling takes off it.

A sampler whose draws are within total variation d of their law adds (1 + e^(eps r)) d to delta at distance r: the two
sides of the comparison are off by d each, one of them under the factor. In the form of the definition, where delta at
distance r is multiplied by (e^(eps r) - 1)/(e^eps - 1), (1 + e^eps) d per unit of distance covers every r >= 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_UP, Context
from fractions import Fraction
from typing import Literal, TypeAlias

from keepsum.privacy.mechanisms import Distance, Mechanism

Level: TypeAlias = Literal["exact", "rounded", "estimated", "no sampler"]


@dataclass(frozen=True)
class SamplingError:
    """How far the noise may be from its law, in total variation, over all blocks.

    Attributes
    ----------
    distance
        The upper limit: proved where the sampling is rounded, observed where it is estimated.
    extrapolated
        What an extrapolation of the observed pairs of chains gives; None where there is none.
    confidence, pairs
        The level of the observed limit, and the fewest pairs of chains behind it.
    """

    distance: float
    extrapolated: float | None = None
    confidence: float | None = None
    pairs: int | None = None


@dataclass(frozen=True)
class Guarantee:
    """What a release by this plan promises: the mechanism, the distance of one person, how exactly it is sampled.

    Attributes
    ----------
    sampling
        The weakest of the blocks: ``"exact"``, ``"rounded"``, ``"estimated"``, or ``"no sampler"``.
    error
        What sampling takes off the guarantee; None if nothing, or if it has not been measured yet.
    """

    mechanism: Mechanism
    person: Distance
    sampling: Level
    error: SamplingError | None = None

    @property
    def words(self) -> str:
        """The guarantee per unit of distance."""
        return self.mechanism.promise() + self._addition(1.0)

    @property
    def person_words(self) -> str:
        """The guarantee of one person."""
        return self.at(self.person)

    def at(self, distance: Distance) -> str:
        """The guarantee at a distance."""
        return self.mechanism.promise_at(distance) + self._addition(float(distance.value))

    def sampling_delta(self, distance: Distance) -> Fraction:
        """What sampling adds to delta at a distance, as far as it was proved or observed."""
        if self.error is None:
            return Fraction(0)
        return added_delta(self.error.distance, self.mechanism, float(distance.value))

    @property
    def delta(self) -> Fraction:
        """What sampling adds to delta per unit of distance, rounded up; without an epsilon, its total variation."""
        return Fraction(0) if self.error is None else added_delta(self.error.distance, self.mechanism, 1.0)

    @property
    def sampling_words(self) -> str:
        """How the noise is drawn."""
        if self.sampling == "exact":
            return "The noise is drawn exactly from this law: no rounding, no approximation."
        if self.sampling == "no sampler":
            return "No release: a block has no sampler."
        if self.error is None:
            return (
                "The noise is drawn by chains whose distance from this law is not measured yet: plan.certify() does "
                "it, and a release does it first. It needs no data and no budget."
            )
        distance = f"The noise is within total variation {significant(self.error.distance)} of this law"
        if self.sampling == "rounded":
            return f"{distance}: an exact method, in floating-point numbers."
        return (
            f"{distance}, at {100 * (self.error.confidence or 0):.4g}% confidence, as {self.error.pairs or 0:,} pairs "
            f"of chains showed (if those that are slowest to meet were among them or like them); extrapolated beyond "
            f"what was seen, within {significant(self.error.extrapolated or 0)}. Epsilon is proved for the law itself; "
            f"the first of these numbers is a confidence limit, the second an extrapolation, and neither is proved."
        )

    def _addition(self, distance: float) -> str:
        if self.error is None:
            return ""
        if self.mechanism.epsilon is None:
            return f", up to total variation {significant(self.error.distance)} from sampling"
        observed = added_delta(self.error.distance, self.mechanism, distance)
        words = f" and delta {_shown(observed)} from sampling"
        if self.error.extrapolated is None:
            return words
        beyond = added_delta(self.error.extrapolated, self.mechanism, distance)
        return f"{words} (observed; extrapolated {_shown(beyond)})"

    def __str__(self) -> str:
        return f"{self.words}; for one person {self.person_words}; {self.sampling}"


def added_delta(total_variation: float, mechanism: Mechanism, distance: float) -> Fraction:
    """(1 + e^(eps r)) times the total variation, rounded up to three digits; the bare one if there is no epsilon."""
    if mechanism.epsilon is None:
        return Fraction(significant(total_variation))
    exponent = float(mechanism.epsilon) * distance
    factor = math.inf if exponent > 700 else 1 + math.exp(exponent)
    value = total_variation * factor * (1 + 1e-12)
    return Fraction(1) if value >= 1 else Fraction(significant(value))


def _shown(delta: Fraction) -> str:
    return "1 (nothing is shown for it)" if delta >= 1 else significant(float(delta))


def significant(number: float) -> str:
    """Three digits, rounded up.

    >>> significant(0.00098761), significant(2e-9), significant(0.0)
    ('0.000988', '2e-9', '0')
    """
    if number <= 0:
        return "0"
    short = Context(prec=3, rounding=ROUND_UP).create_decimal(repr(float(number)))
    return str(min(short.normalize(), 1)).lower()
