"""What a release guarantees: the mechanism's loss, what it means for one person, and what sampling adds to it.

A sampler whose draws are within total variation d of their target adds (1 + e^(eps r)) d to delta at distance r: the
two sides of the comparison are off by d each, one of them under the factor. In the form of the definition, where delta
at distance r is multiplied by (e^(eps r) - 1)/(e^eps - 1), (1 + e^eps) d per unit of distance covers every r >= 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from keepsum.privacy.distance import Distance
from keepsum.privacy.loss import Loss
from keepsum.privacy.mechanism import Mechanism
from keepsum.privacy.numbers import three_digits_up

Exactness: TypeAlias = Literal["exact", "rounded", "estimated", "no sampler"]


@dataclass(frozen=True)
class SamplingError:
    """How far the noise may be from its target, in total variation, over all blocks.

    Attributes
    ----------
    distance
        The upper limit: proved where the sampling is rounded, observed where it is estimated.
    extrapolated
        What an extrapolation of the observed meeting times gives; None where there is none.
    confidence, pairs
        The level of the observed limit, and the fewest pairs of chains behind it.
    """

    distance: float
    extrapolated: float | None = None
    confidence: float | None = None
    pairs: int | None = None


@dataclass(frozen=True)
class Guarantee:
    """What a release by this plan guarantees, in numbers and in words.

    Attributes
    ----------
    mechanism, person
        The noise, and the distance of one person.
    sampling
        The weakest of the blocks: ``"exact"``, ``"rounded"``, ``"estimated"``, or ``"no sampler"``.
    error
        How far the noise may be from its target; None if it is exact, or if it has not been measured yet.

    Examples
    --------
    >>> import keepsum as ks
    >>> domain = ks.Domain({"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
    >>> keep = ks.Invariants.margins(domain, [["county"], ["sex"]])
    >>> guarantee = ks.plan(keep, ks.Laplace(epsilon=0.25)).guarantee
    >>> guarantee.epsilon, guarantee.delta, guarantee.person_epsilon
    (Fraction(1, 4), Fraction(0, 1), Fraction(1, 1))
    """

    mechanism: Mechanism
    person: Distance
    sampling: Exactness
    error: SamplingError | None = None

    # -- numbers: per unit of distance, and for one person ------------------------------------------

    @property
    def epsilon(self) -> Fraction | None:
        """Epsilon per unit of distance; None where the loss is stated as rho."""
        return self._unit.epsilon

    @property
    def delta(self) -> Fraction:
        """Delta per unit of distance, that of sampling included."""
        return self._delta(self._unit_distance)

    @property
    def rho(self) -> Fraction | None:
        """The zCDP loss at distance 1; None where the loss is stated as epsilon."""
        return self._unit.rho

    @property
    def person_epsilon(self) -> Fraction | None:
        """Epsilon for one person, rounded up; None where the loss is stated as rho."""
        return self.mechanism.loss(self.person).epsilon

    @property
    def person_delta(self) -> Fraction:
        """Delta for one person, that of sampling included, rounded up."""
        return self._delta(self.person)

    @property
    def person_rho(self) -> Fraction | None:
        """The zCDP loss of one person; None where the loss is stated as epsilon."""
        return self.mechanism.loss(self.person).rho

    def sampling_delta(self, distance: Distance | None = None) -> Fraction:
        """What sampling adds to delta at a distance, by default 1, as far as it was proved or observed."""
        if self.error is None:
            return Fraction(0)
        return added_delta(self.error.distance, self.mechanism, 1.0 if distance is None else float(distance.value))

    def _delta(self, distance: Distance) -> Fraction:
        return min(Fraction(1), (self.mechanism.loss(distance).delta or Fraction(0)) + self.sampling_delta(distance))

    @property
    def _unit_distance(self) -> Distance:
        return Distance(self.mechanism.norm, 1)

    @property
    def _unit(self) -> Loss:
        return self.mechanism.loss(self._unit_distance)

    # -- words ----------------------------------------------------------------------------------------

    @property
    def words(self) -> str:
        """The guarantee per unit of distance."""
        return self.mechanism.statement() + self._addition(1.0)

    @property
    def person_words(self) -> str:
        """The guarantee of one person."""
        return self.at(self.person)

    def at(self, distance: Distance) -> str:
        """The guarantee at a distance."""
        return str(self.mechanism.loss(distance)) + self._addition(float(distance.value))

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
        distance = f"The noise is within total variation {three_digits_up(self.error.distance)} of this law"
        if self.sampling == "rounded":
            return f"{distance}: an exact method, in floating-point numbers."
        return (
            f"{distance}, at {100 * (self.error.confidence or 0):.4g}% confidence, as {self.error.pairs or 0:,} pairs "
            f"of chains showed (if those that are slowest to meet were among them or like them); extrapolated beyond "
            f"what was seen, within {three_digits_up(self.error.extrapolated or 0)}. Epsilon is proved for the law "
            f"itself; the first of these numbers is a confidence limit, the second an extrapolation, and neither is "
            f"proved."
        )

    def _addition(self, distance: float) -> str:
        if self.error is None:
            return ""
        if self.mechanism.epsilon is None:
            return f", up to total variation {three_digits_up(self.error.distance)} from sampling"
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
        return Fraction(three_digits_up(total_variation))
    exponent = float(mechanism.epsilon) * distance
    factor = math.inf if exponent > 700 else 1 + math.exp(exponent)
    value = total_variation * factor * (1 + 1e-12)
    return Fraction(1) if value >= 1 else Fraction(three_digits_up(value))


def _shown(delta: Fraction) -> str:
    return "1 (no guarantee)" if delta >= 1 else three_digits_up(float(delta))
