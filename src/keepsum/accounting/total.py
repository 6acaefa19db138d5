"""What several releases of one dataset cost together, as data, at a distance, and in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from keepsum._text import type_of
from keepsum.accounting.cost import Cost
from keepsum.errors import InputError
from keepsum.privacy.calibration import rounded_up
from keepsum.privacy.conversion import SMALLEST_DELTA, check_delta, epsilon_of
from keepsum.privacy.distance import Distance, Norm, delta_at, epsilon_at
from keepsum.privacy.guarantee import Exactness
from keepsum.privacy.loss import Loss
from keepsum.privacy.numbers import shown_briefly, three_digits_up
from keepsum.sampling.core.balls import ball


@dataclass(frozen=True)
class Approximate:
    """The losses as epsilons and deltas that add up, where Gaussian releases state theirs.

    Attributes
    ----------
    epsilon
        Of the pure releases and of the stated guarantees together, per unit of distance.
    deltas
        (growth, delta): a delta at distance 1 that at distance r is (e^(growth r) - 1)/(e^growth - 1) times as large.
    rho
        Of the Gaussian releases that state no epsilon and delta, at distance 1.
    """

    epsilon: Fraction = Fraction(0)
    deltas: tuple[tuple[Fraction, Fraction], ...] = ()
    rho: Fraction = Fraction(0)

    def delta_at(self, distance: Distance) -> Fraction:
        """The deltas at a distance, together."""
        return sum((delta_at(growth, delta, distance) for growth, delta in self.deltas), Fraction(0))


@dataclass(frozen=True)
class Total:
    """What releases of one dataset cost together, between datasets that agree on the kept totals of all of them.

    Attributes
    ----------
    norm
        How the distance between two datasets is measured.
    epsilon
        Of the releases with Laplace noise together, per unit of distance.
    rho
        Of the releases with Gaussian noise together, at distance 1; it grows with the square of the distance.
    zcdp
        All of them as zCDP, at distance 1: pure epsilon counts as epsilon^2 / 2.
    approximate
        All of them as epsilons and deltas.
    error, sampling
        The total variation of sampling, added up, and the weakest exactness.
    releases
        How many they are.
    mixed
        Whether distance is measured in l1 although noise of the l2 norm is among them.
    """

    norm: Norm
    epsilon: Fraction
    rho: Fraction
    zcdp: Fraction
    approximate: Approximate
    error: Fraction = Fraction(0)
    sampling: Exactness = "exact"
    releases: int = 1
    mixed: bool = False

    @classmethod
    def of(cls, cost: Cost) -> Total:
        """The total of one release."""
        if not isinstance(cost, Cost):
            raise InputError(f"Costs must be of type Cost or Total, got {type_of(cost)}. Use Cost.of(guarantee).")
        if cost.epsilon is not None:
            pure, zero = cost.epsilon, Fraction(0)
            losses = (pure, zero, pure**2 / 2, Approximate(pure))
        else:
            rho = cost.rho or Fraction(0)
            stated = Approximate(rho=rho) if cost.stated is None else Approximate(cost.stated[0], (cost.stated,))
            losses = (Fraction(0), rho, rho, stated)
        return cls(cost.norm, *losses, cost.error, cost.sampling)

    def times(self, releases: int) -> Total:
        """The total of so many times these releases.

        >>> Total.of(Cost("l1", Fraction(1, 4))).times(3).epsilon
        Fraction(3, 4)
        """
        if releases == 1:
            return self
        approximate = Approximate(
            self.approximate.epsilon * releases,
            tuple((growth, delta * releases) for growth, delta in self.approximate.deltas),
            self.approximate.rho * releases,
        )
        return replace(
            self,
            epsilon=self.epsilon * releases,
            rho=self.rho * releases,
            zcdp=self.zcdp * releases,
            approximate=approximate,
            error=min(Fraction(1), self.error * releases),
            releases=self.releases * releases,
        )

    def at(self, distance: Distance, delta: Fraction | None = None) -> Loss:
        """The loss between datasets at a distance, rounded up.

        Parameters
        ----------
        distance
            The distance, in the norm of the total. An l1 distance also does for an l2 total: it is never smaller.
        delta
            State the loss as epsilon at this delta: the smallest that a rule gives. What sampling adds comes on top.
            Without delta the loss is epsilon if every release is pure, and rho otherwise; the total variation of
            sampling (``error``) then stands beside rho.

        Examples
        --------
        >>> gaussian = Total.of(Cost("l2", rho=Fraction(1, 8)))
        >>> print(gaussian.at(Distance("l2", 2)))
        rho 0.25 (zCDP)
        >>> print(gaussian.at(Distance("l2", 2), Fraction(1, 10**6)))
        epsilon 3.543, delta 1e-6
        """
        if not isinstance(distance, Distance):
            raise InputError(f"The distance must be of type Distance, got {type_of(distance)}.")
        if distance.norm == "l2" and self.norm == "l1":
            raise InputError("The distance must be in the l1 norm, as this total is per unit of l1 distance, got l2.")
        square = distance.length if distance.norm == "l2" else distance.length**2
        if delta is not None:
            candidates = self._candidates(distance, square, check_delta(delta))
            return self._with_sampling(*min(candidates))
        if self.rho:
            return Loss(rho=self.zcdp * square)
        return self._with_sampling(epsilon_at(self.epsilon, distance), Fraction(0))

    def _candidates(self, distance: Distance, square: int, delta: Fraction) -> list[tuple[Fraction, Fraction]]:
        """Every (epsilon, delta) that a rule gives, with at most this delta."""
        pure = epsilon_at(self.epsilon, distance)
        candidates = [
            (pure + epsilon_of(self.rho * square, delta), delta) if self.rho else (pure, Fraction(0)),
            (epsilon_of(self.zcdp * square, delta), delta),
        ]
        stated = self.approximate.delta_at(distance)
        epsilon, rest = epsilon_at(self.approximate.epsilon, distance), self.approximate.rho * square
        if stated and not rest and stated <= delta:
            candidates.append((epsilon, stated))
        elif stated and rest and delta - stated >= SMALLEST_DELTA:
            candidates.append((epsilon + epsilon_of(rest, delta - stated), delta))
        return candidates

    def _with_sampling(self, epsilon: Fraction, delta: Fraction) -> Loss:
        """Sampling within total variation d of its target adds (1 + e^epsilon) d to delta."""
        if self.error:
            large = epsilon > 1000
            added = Fraction(1) if large else rounded_up(lambda: ball(self.error) * (1 + ball(epsilon).exp()))
            delta = min(Fraction(1), delta + added)
        return Loss(epsilon, delta or None)

    @property
    def words(self) -> str:
        """The total in sentences: how much, per which unit, between which datasets, and how exact."""
        unit = f"per unit of {self.norm} distance"
        pure = f"epsilon {shown_briefly(self.epsilon, 8)} {unit}"
        square = f"growing with the square of the {self.norm} distance"
        gaussian = f"rho {shown_briefly(self.zcdp, 8)} (zCDP) at {self.norm} distance 1, {square}"
        several = f"{self.releases:,} releases together" if self.releases > 1 else "One release"
        whose = "all of these releases" if self.releases > 1 else "this release"
        sentences = [
            f"{several}: {gaussian if self.rho else pure}.",
            f"This holds between datasets that agree on the kept totals of {whose}; what follows from those totals is "
            f"not protected.",
        ]
        if self.mixed:
            sentences.append("Distance is measured in l1, as it bounds the l2 distances of every table released.")
        if self.error:
            limit = "a confidence limit" if self.sampling == "estimated" else "proved"
            sentences.append(
                f"Sampling is {self.sampling}: all noise together is within total variation "
                f"{three_digits_up(float(self.error))} of its target ({limit})."
            )
        return " ".join(sentences)
