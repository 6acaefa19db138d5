"""What releases of one dataset cost, as data: one of them, several together, at a distance, and in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from keepsum._arguments import check_choice
from keepsum._saying import the
from keepsum._text import type_of
from keepsum.errors import InputError, PlanError
from keepsum.privacy.calibration import SMALLEST_DELTA, ceiling, check_delta, epsilon_of, rounded_up
from keepsum.privacy.distance import Distance, Norm, delta_at, epsilon_at
from keepsum.privacy.gaussian import GaussianMechanism
from keepsum.privacy.guarantee import Exactness, Guarantee
from keepsum.privacy.numbers import Loss, shown_briefly, three_digits_up
from keepsum.sampling.core.balls import ball

EXACTNESS: tuple[Exactness, ...] = ("exact", "rounded", "estimated")  # the weakest last


@dataclass(frozen=True)
class Cost:
    """What one release costs per unit of distance, between tables that agree on its kept totals.

    Examples
    --------
    >>> import keepsum as ks
    >>> keep = ks.Invariants.subsets(3, [[0, 1, 2]])
    >>> Cost.of(ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=0.25)).guarantee)
    Cost(norm='l1', epsilon=Fraction(1, 4), rho=None, stated=None, error=Fraction(0, 1), sampling='exact', levels=())
    >>> Cost.of(ks.plan(keep=keep, mechanism=ks.Gaussian.per_unit(rho="1/8")).guarantee).rho
    Fraction(1, 8)
    """

    norm: Norm  # how distance is measured
    epsilon: Fraction | None = None  # pure: epsilon per unit of distance. None under Gaussian noise
    # Gaussian: the zCDP loss at distance 1, which grows with the square of the distance. None under Laplace noise.
    # Under a focus distance is in l1, as totals may change by more than the l2 distance of cells: a change is no longer
    # than its entries together, each times the length of a change of that cell by 1.
    rho: Fraction | None = None
    # Gaussian: the epsilon and delta per unit of distance that its certificate states, if it does.
    stated: tuple[Fraction, Fraction] | None = None
    # The total variation between the noise and its target, rounded up: 0 if sampling is exact.
    error: Fraction = Fraction(0)
    sampling: Exactness = "exact"  # whether that is exact, proved (rounded) or a confidence limit (estimated)
    # Of a focus: how much of epsilon or rho counts for each of its totals alone, by how much these change, in the order
    # of the mechanism; rho by the square of their l2 distance, as that of cells. Nothing where it is not known: then
    # all of it counts at the l1 distance of cells, which is never less.
    levels: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        check_choice(self.norm, "Norm", ("l1", "l2"))
        check_choice(self.sampling, "Sampling", EXACTNESS)
        numbers = [self.epsilon, self.rho, *(self.stated or ()), *self.levels]
        if any(number is not None and not (isinstance(number, Fraction) and number > 0) for number in numbers):
            raise InputError("Losses of a cost must be positive fractions.")
        if (self.epsilon is None) == (self.rho is None):
            raise InputError("A cost must have an epsilon or a rho, and not both.")
        if self.levels and (self.norm != "l1" or not sum(self.levels) < self.loss):
            raise InputError("The levels of a cost must be a part of its loss, at a distance in the l1 norm.")
        if self.stated is not None and (self.rho is None or self.norm != "l2" or self.stated[1] >= 1):
            raise InputError("A stated epsilon and delta must be those of Gaussian noise, with a delta below 1.")
        if not isinstance(self.error, Fraction) or not 0 <= self.error <= 1:
            raise InputError("The sampling error of a cost must be a fraction from 0 to 1.")

    @property
    def loss(self) -> Fraction:
        """Its epsilon or its rho."""
        return (self.epsilon if self.epsilon is not None else self.rho) or Fraction(0)

    def scaled(self, factor: Fraction) -> Cost:
        """The same noise with so many times the epsilon or rho; Gaussian noise then states its rho alone."""
        levels = tuple(weight * factor for weight in self.levels)
        if self.epsilon is not None:
            return replace(self, epsilon=self.epsilon * factor, levels=levels)
        return replace(self, rho=self.loss * factor, stated=None, levels=levels)

    @classmethod
    def of(cls, guarantee: Guarantee) -> Cost:
        """The cost of a release with this guarantee."""
        if not isinstance(guarantee, Guarantee):
            raise InputError(
                f"A cost must be that of a guarantee, got {type_of(guarantee)}. Use {the.call('plan.guarantee')}."
            )
        if guarantee.sampling == "no sampler":
            raise PlanError("A plan without a sampler has no cost: no release by it is possible.")
        if guarantee.sampling == "estimated" and guarantee.error is None:
            raise PlanError(
                f"The cost of a plan with chains must include their sampling error. Use {the.call('plan.certify()')}."
            )
        error = Fraction(0)
        if guarantee.error is not None:  # a sum of floats, rounded up past their error
            error = Fraction(three_digits_up(guarantee.error.distance * (1 + 1e-12)))
        mechanism = guarantee.mechanism
        if mechanism.kind == "own":  # one claim would make a claim of every total that it is added to
            raise InputError(
                "The loss of noise of your own is your claim, and is added to no proved loss: it has no cost, and no "
                "ledger takes it. Release without a ledger, and account for it yourself."
            )
        levels = tuple(level.weight for level in mechanism.focus)
        if not isinstance(mechanism, GaussianMechanism):
            return cls(mechanism.norm, mechanism.epsilon, error=error, sampling=guarantee.sampling, levels=levels)
        # Twelve digits instead of 1/(2 sigma^2): sums of many such fractions would have endless denominators.
        rho = mechanism.unit_rho if mechanism.rho is not None else ceiling(mechanism.unit_rho)
        if mechanism.focus:
            return cls("l1", rho=rho, error=error, sampling=guarantee.sampling, levels=levels)
        if mechanism.epsilon is None or mechanism.delta is None:
            return cls("l2", rho=rho, error=error, sampling=guarantee.sampling)
        return cls("l2", None, rho, (mechanism.epsilon, mechanism.delta), error, guarantee.sampling)


@dataclass(frozen=True)
class Approximate:
    """The losses as epsilons and deltas that add up, where Gaussian releases state theirs."""

    epsilon: Fraction = Fraction(0)  # of the pure releases and of the stated guarantees together, per unit of distance
    # (growth, delta): a delta at distance 1 that at distance r is (e^(growth r) - 1)/(e^growth - 1) times as large.
    deltas: tuple[tuple[Fraction, Fraction], ...] = ()
    rho: Fraction = Fraction(0)  # of the Gaussian releases that state no epsilon and delta, at distance 1

    def delta_at(self, distance: Distance) -> Fraction:
        """The deltas at a distance, together."""
        return sum((delta_at(growth, delta, distance) for growth, delta in self.deltas), Fraction(0))


@dataclass(frozen=True)
class Total:
    """What releases of one dataset cost together, between datasets that agree on the kept totals of all of them."""

    norm: Norm  # how the distance between two datasets is measured
    epsilon: Fraction  # of the releases with Laplace noise together, per unit of distance
    # Of the releases with Gaussian noise together, at distance 1; it grows with the square of the distance.
    rho: Fraction
    zcdp: Fraction  # all of them as zCDP, at distance 1: pure epsilon counts as epsilon^2 / 2
    approximate: Approximate  # all of them as epsilons and deltas
    # The total variation of sampling, added up, and the weakest exactness.
    error: Fraction = Fraction(0)
    sampling: Exactness = "exact"
    releases: int = 1  # how many they are
    mixed: bool = False  # whether distance is measured in l1 although noise of the l2 norm is among them

    @classmethod
    def of(cls, cost: Cost) -> Total:
        """The total of one release."""
        if not isinstance(cost, Cost):
            raise InputError(
                f"Costs must be of type Cost or Total, got {type_of(cost)}. Use {the.call('Cost.of(guarantee)')}."
            )
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
