"""What one release costs, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from keepsum._arguments import check_choice
from keepsum._text import type_of
from keepsum.errors import InputError, PlanError
from keepsum.privacy.calibration import ceiling
from keepsum.privacy.distance import Norm
from keepsum.privacy.gaussian import GaussianMechanism
from keepsum.privacy.guarantee import Exactness, Guarantee
from keepsum.privacy.numbers import three_digits_up

EXACTNESS: tuple[Exactness, ...] = ("exact", "rounded", "estimated")  # the weakest last


@dataclass(frozen=True)
class Cost:
    """What one release costs per unit of distance, between tables that agree on its kept totals.

    Attributes
    ----------
    norm
        How distance is measured.
    epsilon
        Pure: epsilon per unit of distance. None under Gaussian noise.
    rho
        Gaussian: the zCDP loss at distance 1, which grows with the square of the distance. None under Laplace noise.
        Under a focus distance is in l1, as totals may change by more than the l2 distance of cells: a change is no
        longer than its entries together, each times the length of a change of that cell by 1.
    levels
        Of a focus: how much of epsilon or rho counts for each of its totals alone, by how much these change, in the
        order of the mechanism; rho by the square of their l2 distance, as that of cells. Nothing where it is not known:
        then all of it counts at the l1 distance of cells, which is never less.
    stated
        Gaussian: the epsilon and delta per unit of distance that its certificate states, if it does.
    error
        The total variation between the noise and its target, rounded up: 0 if sampling is exact.
    sampling
        Whether that is exact, proved (rounded) or a confidence limit (estimated).

    Examples
    --------
    >>> import keepsum as ks
    >>> keep = ks.Invariants.subsets(3, [[0, 1, 2]])
    >>> Cost.of(ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=0.25)).guarantee)
    Cost(norm='l1', epsilon=Fraction(1, 4), rho=None, stated=None, error=Fraction(0, 1), sampling='exact', levels=())
    >>> Cost.of(ks.plan(keep=keep, mechanism=ks.Gaussian.per_unit(rho="1/8")).guarantee).rho
    Fraction(1, 8)
    """

    norm: Norm
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    stated: tuple[Fraction, Fraction] | None = None
    error: Fraction = Fraction(0)
    sampling: Exactness = "exact"
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
            raise InputError(f"A cost must be that of a guarantee, got {type_of(guarantee)}. Use plan.guarantee.")
        if guarantee.sampling == "no sampler":
            raise PlanError("A plan without a sampler has no cost: no release by it is possible.")
        if guarantee.sampling == "estimated" and guarantee.error is None:
            raise PlanError("The cost of a plan with chains must include their sampling error. Use plan.certify().")
        error = Fraction(0)
        if guarantee.error is not None:  # a sum of floats, rounded up past their error
            error = Fraction(three_digits_up(guarantee.error.distance * (1 + 1e-12)))
        mechanism = guarantee.mechanism
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
