"""Laplace noise: pure differential privacy, in the l1 or the l2 norm."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from keepsum._arguments import check_choice
from keepsum.errors import InputError
from keepsum.privacy.calibration import LatticeShape
from keepsum.privacy.distance import Distance, Norm, epsilon_at, epsilon_per_unit
from keepsum.privacy.loss import Loss
from keepsum.privacy.mechanism import Kind, MechanismFacts
from keepsum.privacy.neighbours import Neighbours
from keepsum.privacy.numbers import Number, exact_in_range, shown


@dataclass(frozen=True, init=False)
class Laplace:
    """Noise with probability proportional to exp(-epsilon |z|), in the l1 or the l2 norm: pure differential privacy.

    Parameters
    ----------
    epsilon
        The privacy loss per unit of distance, positive: an int, Fraction, Decimal, text such as ``"1/3"``, or a
        float, which means its shortest decimal.
    norm
        ``"l1"`` or ``"l2"``: how the distance between two tables is measured.

    Examples
    --------
    >>> import keepsum as ks
    >>> ks.Laplace(epsilon=0.25)
    Laplace(epsilon=0.25, norm='l1')
    >>> ks.Laplace(epsilon=0.1).epsilon
    Fraction(1, 10)
    >>> ks.Laplace.per_person(epsilon=1)
    Laplace.per_person(epsilon=1, norm='l1')
    """

    epsilon: Fraction
    norm: Norm
    neighbours: Neighbours | None  # if not None, epsilon is per person, not per unit of distance

    def __init__(self, epsilon: Number, norm: str = "l1") -> None:
        self._fill(epsilon, norm, None)

    @classmethod
    def per_person(
        cls, epsilon: Number, norm: str = "l1", *, attributes: Iterable[str] | None = None, to: str = "any value"
    ) -> Laplace:
        """Request a per-person epsilon; the plan derives epsilon per unit of distance.

        Parameters
        ----------
        epsilon, norm
            The per-person loss, and how distance is measured.
        attributes
            Protect changes of these attributes only; by default of each attribute of the table.
        to
            ``"any value"``, or ``"some other value"`` to protect only a change to the nearest other value.
        """
        request = object.__new__(cls)
        request._fill(epsilon, norm, Neighbours.of(attributes, to))
        return request

    def _fill(self, epsilon: Number, norm: str, neighbours: Neighbours | None) -> None:
        check_choice(norm, "Norm", ("l1", "l2"))
        object.__setattr__(self, "epsilon", exact_in_range(epsilon, "Epsilon"))
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "neighbours", neighbours)

    def resolve(
        self, distance: Distance | None = None, lattice: Callable[[], LatticeShape] | None = None
    ) -> LaplaceMechanism:
        """The mechanism that gives neighbours at most the requested loss, rounded to the safe side."""
        if self.neighbours is None:
            return LaplaceMechanism(self.epsilon, self.norm)
        if distance is None:
            raise InputError(
                f"The mechanism must state its loss per unit of distance, got {self!r}. Use plan.mechanism."
            )
        return LaplaceMechanism(exact_in_range(epsilon_per_unit(self.epsilon, distance), "Epsilon"), self.norm)

    def __repr__(self) -> str:
        arguments = f"epsilon={shown(self.epsilon)}, norm={self.norm!r}"
        if self.neighbours is None:
            return f"Laplace({arguments})"
        return f"Laplace.per_person({arguments}{self.neighbours.arguments()})"


@dataclass(frozen=True)
class LaplaceMechanism:
    """Noise with probability proportional to exp(-epsilon |z|), epsilon per unit of distance."""

    epsilon: Fraction
    norm: Norm

    @property
    def kind(self) -> Kind:
        """Which samplers and which closed-form law apply."""
        return "laplace-l1" if self.norm == "l1" else "laplace-l2"

    @property
    def scale(self) -> Fraction:
        """The width of the noise."""
        return 1 / self.epsilon

    def loss(self, distance: Distance) -> Loss:
        """The privacy loss at a distance."""
        return Loss(epsilon=epsilon_at(self.epsilon, distance))

    def law(self) -> str:
        """The weight of a noise vector z, in symbols."""
        rate = "" if self.epsilon == 1 else f"{shown(self.epsilon)} "
        return f"exp(-{rate}|z|{'₁' if self.norm == 'l1' else '₂'})"

    def statement(self) -> str:
        """The privacy loss per unit of distance, as a phrase."""
        return f"epsilon {shown(self.epsilon)} per unit of {self.norm} distance"

    def facts(self) -> MechanismFacts:
        """The mechanism as a certificate states it."""
        return MechanismFacts("laplace", self.norm, {"epsilon": str(self.epsilon)})

    @classmethod
    def from_facts(cls, facts: MechanismFacts) -> LaplaceMechanism:
        """The mechanism that a certificate states."""
        if set(facts.parameters) != {"epsilon"}:
            raise InputError("A Laplace mechanism in a certificate must have an epsilon and nothing else.")
        return Laplace(facts.parameters["epsilon"], facts.norm).resolve()

    def request(self) -> Laplace:
        """The request for it, per unit of distance."""
        return Laplace(self.epsilon, self.norm)

    def agrees(self, stated: object) -> bool:
        """Whether a certificate may state that mechanism where this one is recomputed."""
        return self == stated

    def __repr__(self) -> str:
        return f"Laplace(epsilon={shown(self.epsilon)}, norm={self.norm!r})"
