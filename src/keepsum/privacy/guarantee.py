"""What a release guarantees: the mechanism's loss, the per-person loss, and what sampling adds to it.

A sampler whose draws are within total variation d of their target adds (1 + e^(eps r)) d to delta at distance r: the
two sides of the comparison are off by d each, one of them under the factor. In the form of the definition, where delta
at distance r is multiplied by (e^(eps r) - 1)/(e^eps - 1), (1 + e^eps) d per unit of distance covers every r >= 1.
Under a focus the loss at a distance takes the place of eps r, and per unit of distance eps is the sum of all epsilons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from keepsum._saying import Text, the
from keepsum._text import percent
from keepsum.privacy.calibration import epsilon_of
from keepsum.privacy.distance import Distance
from keepsum.privacy.mechanism import Mechanism
from keepsum.privacy.numbers import Loss, three_digits_up
from keepsum.privacy.profile import smallest_epsilon
from keepsum.tables.origins import Subject

USUAL_DELTA = Fraction(1, 10**6)  # at which an epsilon is stated where the loss is a rho
Exactness: TypeAlias = Literal["exact", "rounded", "estimated", "claimed", "no sampler"]
CLAIMED = "as its publisher claims"


@dataclass(frozen=True)
class SamplingError:
    """The total variation between the noise and its target, over all blocks.

    Attributes
    ----------
    distance
        The upper limit: proved where sampling is rounded, a confidence limit where it is estimated.
    extrapolated
        The extrapolation from the observed meeting times; None where there is none.
    confidence, pairs
        The confidence level of the limit, and the smallest number of pairs of chains behind it.
    """

    distance: float
    extrapolated: float | None = None
    confidence: float | None = None
    pairs: int | None = None


@dataclass(frozen=True)
class Guarantee:
    """What a release by this plan guarantees, in numbers and in sentences.

    Attributes
    ----------
    mechanism, person
        The noise, and the distance of one person; None where none is stated.
    sampling
        The weakest of the blocks: ``"exact"``, ``"rounded"``, ``"estimated"``, ``"claimed"`` where it is the
        user's own, or ``"no sampler"``.
    error
        The total variation from the target; None if sampling is exact, or it has not been measured yet.
    subject
        Whom it concerns: a person, or a record where a person may have any number of them.

    Examples
    --------
    >>> import keepsum as ks
    >>> domain = ks.Domain({"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
    >>> keep = ks.Invariants.margins(domain, [["county"], ["sex"]])
    >>> guarantee = ks.plan(keep=keep, mechanism=ks.Laplace(epsilon=1)).guarantee
    >>> guarantee.person_epsilon, guarantee.unit_epsilon, guarantee.unit_delta
    (Fraction(1, 1), Fraction(1, 4), Fraction(0, 1))
    """

    mechanism: Mechanism
    person: Distance | None
    sampling: Exactness
    error: SamplingError | None = None
    subject: Subject = "person"

    # -- numbers: per unit of distance, and per person ------------------------------------------

    @property
    def unit_epsilon(self) -> Fraction | None:
        """Epsilon per unit of distance; None where the loss is stated as rho."""
        return self._unit.epsilon

    @property
    def unit_delta(self) -> Fraction:
        """Delta per unit of distance, including that of sampling."""
        return self._delta(self._unit)

    @property
    def unit_rho(self) -> Fraction | None:
        """The zCDP loss at distance 1; None where the loss is stated as epsilon."""
        return self._unit.rho

    @property
    def stated_loss(self) -> Loss:
        """The loss of the mechanism for one person, or per unit of distance where none is stated for a person."""
        return self._unit if self.person is None else self.mechanism.loss(self.person)

    @property
    def usual_loss(self) -> Loss:
        """The stated loss as epsilon and delta, with what sampling adds; from a rho that at delta 1e-6."""
        loss, claim = self.stated_loss, self.mechanism.facts().claim
        if loss.rho is not None:
            # The lines are those of Gaussian noise: of any other distribution the claimed rho is all that is known.
            follows = smallest_epsilon if claim is None or claim.law is None else epsilon_of
            loss = Loss(follows(loss.rho, USUAL_DELTA), USUAL_DELTA)
        return Loss(loss.epsilon, self._delta(loss) or None)

    @property
    def person_loss(self) -> Loss | None:
        """The per-person loss of the mechanism; None where it is not stated."""
        return None if self.person is None else self.mechanism.loss(self.person)

    @property
    def person_epsilon(self) -> Fraction | None:
        """Per-person epsilon, rounded up; None where the loss is stated as rho, or not for one person."""
        return None if self.person_loss is None else self.person_loss.epsilon

    @property
    def person_delta(self) -> Fraction | None:
        """Per-person delta, including that of sampling, rounded up; None where no per-person loss is stated."""
        return None if self.person_loss is None else self._delta(self.person_loss)

    @property
    def person_rho(self) -> Fraction | None:
        """The per-person zCDP loss; None where the loss is stated as epsilon, or not for one person."""
        return None if self.person_loss is None else self.person_loss.rho

    @property
    def stated_delta(self) -> Fraction:
        """Delta at the distance at which the loss is stated, including that of sampling, rounded up."""
        return self._delta(self.stated_loss)

    def sampling_delta(self, distance: Distance | None = None) -> Fraction:
        """What sampling adds to delta at a distance, by default per unit: the proved bound, or the confidence limit."""
        return self._sampling(self._unit if distance is None else self.mechanism.loss(distance))

    def _delta(self, loss: Loss) -> Fraction:
        return min(Fraction(1), (loss.delta or Fraction(0)) + self._sampling(loss))

    def _sampling(self, loss: Loss) -> Fraction:
        return Fraction(0) if self.error is None else added_delta(self.error.distance, loss)

    @property
    def _unit(self) -> Loss:
        return self.mechanism.unit_loss

    # -- sentences ----------------------------------------------------------------------------------------

    @property
    def words(self) -> str:
        """The guarantee per unit of distance."""
        return self.mechanism.statement() + self._addition(self._unit)

    @property
    def person_words(self) -> str:
        """The guarantee for one person, or per unit of distance where none is stated for a person."""
        if self.person is None:
            return f"{self._unit}{self._addition(self._unit)} per unit of distance"
        return f"per-{self.subject} {self.at(self.person)}"

    def at(self, distance: Distance) -> str:
        """The guarantee at a distance."""
        loss = self.mechanism.loss(distance)
        return f"{loss}{self._addition(loss)}"

    @property
    def sampling_words(self) -> str:
        """The exactness of sampling, and what is known of it."""
        claim = self.mechanism.facts().claim
        if claim is not None:
            mine = "whose target is stated" if claim.law is None else "with a distribution of its own"
            return (
                f"The noise is the publisher's own, by the {claim.what} {claim.title!r}, {mine}. Its distribution and "
                "its loss are claims, which Keepsum neither proves nor checks."
            )
        if self.sampling == "exact":
            return "Sampling is exact: no rounding, no approximation."
        if self.sampling == "no sampler":
            return "No release is possible: a block has no sampler."
        if self.error is None:
            return Text(
                "Sampling is estimated: the noise is drawn by chains whose total variation from the target is not yet "
                f"measured. {the.call('plan.certify()')} measures it, without data or budget; a release that may add "
                "delta does so first."
            )
        limit = three_digits_up(self.error.distance)
        if self.sampling == "rounded":
            return f"Sampling is rounded: exact but for floating point, within total variation {limit} of the target."
        return (
            f"Sampling is estimated: total variation from the target at most {limit} with "
            f"{percent(self.error.confidence or 0)} confidence, from {self.error.pairs or 0:,} pairs of coupled "
            f"chains (assuming that the slowest to meet are among them), "
            f"{three_digits_up(self.error.extrapolated or 0)} extrapolated. The loss is proved for the target; the "
            f"confidence limit and the extrapolation are not."
        )

    def sampling_addition(self, distance: Distance) -> str:
        """What sampling adds to the loss at a distance, as a phrase to follow it; empty if nothing."""
        return self._addition(self.mechanism.loss(distance))

    def _addition(self, loss: Loss) -> str:
        if self.mechanism.kind == "own":
            return f", {CLAIMED}"
        if self.error is None:
            return ""
        if loss.epsilon is None:
            return f", up to total variation {three_digits_up(self.error.distance)} from sampling"
        observed = added_delta(self.error.distance, loss)
        addition = f", plus delta {_shown(observed)} from sampling"
        if self.error.extrapolated is None:
            return addition
        extrapolated = added_delta(self.error.extrapolated, loss)
        limit = f"{percent(self.error.confidence or 0)} confidence limit"
        return f"{addition} ({limit}; {_shown(extrapolated)} extrapolated)"

    def __str__(self) -> str:
        person = f"per-{self.subject} loss not stated" if self.person is None else self.person_words
        return f"{person}; {self.words}; {self.sampling}"


def added_delta(total_variation: float, loss: Loss) -> Fraction:
    """(1 + e^epsilon) times the total variation, rounded up to three digits; just that if there is no epsilon."""
    if loss.epsilon is None or total_variation == 0:
        return Fraction(three_digits_up(total_variation))
    exponent = float(loss.epsilon)
    factor = math.inf if exponent > 700 else 1 + math.exp(exponent)
    value = total_variation * factor * (1 + 1e-12)
    return Fraction(1) if value >= 1 else Fraction(three_digits_up(value))


def _shown(delta: Fraction) -> str:
    return "1 (no guarantee)" if delta >= 1 else three_digits_up(float(delta))
