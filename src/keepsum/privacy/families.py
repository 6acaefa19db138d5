"""Mechanisms that differ in one parameter only: what is left to choose once the kind of noise is known."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from keepsum.errors import InputError
from keepsum.privacy import as_request
from keepsum.privacy.gaussian import Gaussian
from keepsum.privacy.laplace import Laplace
from keepsum.privacy.mechanism import Mechanism, Request

Parameter: TypeAlias = Literal["epsilon", "rho", "sigma"]
# The width of the noise grows about as this power of the parameter.
POWERS: dict[Parameter, float] = {"epsilon": -1.0, "rho": -0.5, "sigma": 1.0}


@dataclass(frozen=True)
class MechanismFamily:
    """All mechanisms that differ from one in its epsilon, or rho, or sigma.

    Attributes
    ----------
    member
        One of them, as a request.

    Examples
    --------
    >>> family = MechanismFamily(Gaussian(epsilon=1, delta="1e-6"))
    >>> family.parameter, family.value, family.at(Fraction(1, 2))
    ('epsilon', Fraction(1, 1), Gaussian(epsilon=0.5, delta=1e-6))
    """

    member: Laplace | Gaussian

    @classmethod
    def of(cls, mechanism: Request | Mechanism) -> MechanismFamily:
        """The family of a request, or of the mechanism of a plan."""
        request = as_request(mechanism)
        if not isinstance(request, (Laplace, Gaussian)):
            raise InputError("Noise of your own must be given with its parameters: none can be looked for.")
        return cls(request)

    @property
    def parameter(self) -> Parameter:
        """What its members differ in."""
        if self.member.epsilon is not None:
            return "epsilon"
        return "rho" if isinstance(self.member, Gaussian) and self.member.rho is not None else "sigma"

    @property
    def value(self) -> Fraction:
        """The parameter of the given member."""
        value = getattr(self.member, self.parameter)
        if not isinstance(value, Fraction):
            raise AssertionError("a request has its parameter")
        return value

    @property
    def power(self) -> float:
        """The power of the parameter that the width of the noise grows with: negative, unless it is sigma."""
        return POWERS[self.parameter]

    @property
    def per_person(self) -> bool:
        """Whether the parameter is a per-person loss."""
        return self.member.neighbours is not None

    def whose(self, subject: str) -> str:
        """Whose loss the parameter is: ``"per person"``, or ``"for a change of sex"``; empty where it is nobody's."""
        neighbours = self.member.neighbours
        if neighbours is None:
            return ""
        of_record = " of one record" if subject == "record" else ""
        return f"{neighbours.changes}{of_record}" if neighbours.changes else f"per {subject}"

    def at(self, value: Fraction) -> Laplace | Gaussian:
        """The member with this parameter."""
        member = self.member
        if isinstance(member, Laplace):
            return member.scaled(value)
        return member.scaled(**{self.parameter: value})
