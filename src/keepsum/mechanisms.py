"""What noise to draw: frozen, validated specs with exact parameters, and what they promise.

``epsilon`` is per unit of distance between two tables with the same kept totals. What that means for one person
depends on the totals; the plan works it out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from keepsum.arguments import check_choice
from keepsum.calibration import of_rho, paper, tight, zcdp
from keepsum.errors import InputError
from keepsum.showing import given as as_given

if TYPE_CHECKING:
    from keepsum.geometry import Geometry

Norm: TypeAlias = Literal["l1", "l2"]
Number: TypeAlias = int | float | str | Decimal | Fraction | np.integer


SMALLEST, LARGEST = Fraction(1, 10**12), Fraction(10**12)


def exact(value: Number, what: str) -> Fraction:
    """A positive number as an exact fraction; a float means its shortest decimal.

    >>> exact(0.1, "Epsilon"), exact("1/3", "Epsilon")
    (Fraction(1, 10), Fraction(1, 3))
    """
    problem = f"{what} must be a positive number, got {as_given(value)}."
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal, Fraction, np.integer)):
        raise InputError(problem)
    if isinstance(value, str) and (len(value) > 1000 or re.search(r"[eE][+-]?0*[1-9][0-9]{3}", value)):
        raise InputError(problem)  # a number of a million digits
    number = _as_fraction(value)
    if number is None or number <= 0:
        raise InputError(problem)
    return number


def _as_fraction(value: Number) -> Fraction | None:
    """The exact value; None if it is not a number, infinite, or has a zero denominator."""
    try:
        if isinstance(value, float):
            return Fraction(repr(float(value)))
        return Fraction(int(value)) if isinstance(value, np.integer) else Fraction(value)
    except (ValueError, ArithmeticError):
        return None


def _in_range(number: Fraction, what: str) -> Fraction:
    if not SMALLEST <= number <= LARGEST:
        raise InputError(f"{what} must be from 1e-12 to 1e12, got {shown(number)}.")
    return number


def shown(number: Fraction) -> str:
    """A fraction for people: as a decimal where that is exact and short, else as a quotient.

    >>> shown(Fraction(1, 4)), shown(Fraction(1, 3)), shown(Fraction(1, 10**6))
    ('0.25', '1/3', '1e-6')
    """
    text = _plain(_decimal(number))
    if Fraction(text) == number and len(text) <= 20:
        return text
    return f"{number.numerator}/{number.denominator}"


def _plain(number: Decimal) -> str:
    """A decimal in plain digits, or with an exponent where it would start with many zeros."""
    if number and -4 <= number.adjusted() < 16:
        return f"{number.normalize(Context(prec=50)):f}"
    return f"{number.normalize(Context(prec=50)):e}".replace("e+", "e")


@dataclass(frozen=True)
class Distance:
    """How far apart two tables are: an l1 length, or an l2 length known by its square."""

    norm: Norm
    length: int  # the l1 length, or the *squared* l2 length: both are whole numbers
    exact: bool = True  # if not, an upper bound

    @property
    def value(self) -> int | float:
        """The length itself."""
        root = math.isqrt(self.length)
        if self.norm == "l1" or root * root == self.length:
            return self.length if self.norm == "l1" else root
        return math.sqrt(self.length)

    def __str__(self) -> str:
        value = self.value
        text = f"{value}" if isinstance(value, int) else f"√{self.length}"
        return text if self.exact else f"at most {text}"


@dataclass(frozen=True, init=False)
class Laplace:
    """Noise with probability proportional to exp(-epsilon |z|), in the l1 or the l2 norm: pure privacy.

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
    unit: Literal["distance", "person"]

    def __init__(self, epsilon: Number, norm: str = "l1") -> None:
        self._fill(epsilon, norm, "distance")

    @classmethod
    def per_person(cls, epsilon: Number, norm: str = "l1") -> Laplace:
        """Ask for a privacy loss of at most epsilon for any one person; the plan sets the loss per unit."""
        mechanism = object.__new__(cls)
        mechanism._fill(epsilon, norm, "person")
        return mechanism

    def _fill(self, epsilon: Number, norm: str, unit: str) -> None:
        check_choice(norm, "Norm", ("l1", "l2"))
        object.__setattr__(self, "epsilon", _in_range(exact(epsilon, "Epsilon"), "Epsilon"))
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "unit", unit)

    def resolve(self, person: Distance, lattice: Callable[[], Geometry] | None = None) -> Laplace:
        """The loss per unit that gives one person at most the loss asked for, rounded to the safe side."""
        if self.unit == "distance":
            return self
        return Laplace(_divided(self.epsilon, person), self.norm)

    def law(self) -> str:
        """The noise law in symbols."""
        return f"exp(-{shown(self.epsilon)} |z|{'₁' if self.norm == 'l1' else '₂'})"

    def promise(self) -> str:
        """The privacy loss per unit of distance, in words."""
        return f"epsilon {shown(self.epsilon)} per unit of {self.norm} distance"

    def promise_at(self, person: Distance) -> str:
        """The privacy loss at a distance, in words."""
        return f"epsilon {_times(self.epsilon, person)}"

    def __repr__(self) -> str:
        name = "Laplace" if self.unit == "distance" else "Laplace.per_person"
        return f"{name}(epsilon={shown(self.epsilon)}, norm={self.norm!r})"


CALIBRATIONS = ("zcdp", "tight", "paper")


@dataclass(frozen=True, init=False)
class Gaussian:
    """Noise with probability proportional to exp(-|z|^2 / 2 sigma^2) in the l2 norm.

    Parameters
    ----------
    epsilon, delta
        Approximate privacy per unit of l2 distance; sigma is worked out from them.
    rho
        Zero-concentrated privacy at unit l2 distance.
    sigma
        The width of the noise itself. Give exactly one of these three.
    calibration
        How sigma follows from epsilon and delta: ``"zcdp"``, (2 ln(1/delta) + eps)/eps^2 for sigma^2 on any lattice;
        ``"tight"``, a little less where the lattice has no short vectors; ``"paper"``, with the paper's factor that
        grows with the dimension.

    Attributes
    ----------
    sigma
        The width, rounded up to twelve digits; None while it depends on a lattice that only a plan knows.

    Examples
    --------
    >>> import keepsum as ks
    >>> ks.Gaussian(epsilon=0.5, delta="1e-6")
    Gaussian(epsilon=0.5, delta=1e-6)
    >>> float(ks.Gaussian(epsilon=0.5, delta="1e-6").sigma)
    10.6077370096
    >>> ks.Gaussian(rho="1/2").sigma
    Fraction(1, 1)
    """

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    sigma: Fraction | None
    calibration: str

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        rho: Number | None = None,
        sigma: Number | None = None,
        calibration: str = "zcdp",
    ) -> None:
        given: dict[str, Number | None] = {"epsilon": epsilon, "delta": delta, "rho": rho, "sigma": sigma}
        names = {name for name, value in given.items() if value is not None}
        if names not in ({"epsilon", "delta"}, {"rho"}, {"sigma"}):
            raise InputError(
                f"A Gaussian must have epsilon and delta, or rho, or sigma, "
                f"got {' and '.join(sorted(names)) or 'none'}."
            )
        check_choice(calibration, "Calibration", CALIBRATIONS)
        for name, value in given.items():
            number = None if value is None else exact(value, name.capitalize())
            if number is not None and name != "delta":
                _in_range(number, name.capitalize())
            object.__setattr__(self, name, number)
        if self.delta is not None and not Fraction(1, 10**300) <= self.delta < 1:
            raise InputError(f"Delta must be below 1 and at least 1e-300, got {as_given(delta)}.")
        object.__setattr__(self, "calibration", calibration)
        if self.sigma is None:
            object.__setattr__(self, "sigma", self._own_sigma())

    def _own_sigma(self) -> Fraction | None:
        """Sigma where no lattice is needed for it."""
        if self.rho is not None:
            return of_rho(self.rho)
        if self.epsilon is not None and self.delta is not None and self.calibration == "zcdp":
            return zcdp(self.epsilon, self.delta)
        return None

    @property
    def norm(self) -> Norm:
        """Gaussian noise is measured in the l2 norm."""
        return "l2"

    def resolve(self, person: Distance, lattice: Callable[[], Geometry] | None = None) -> Gaussian:
        """The same with its sigma worked out for a lattice."""
        if self.sigma is not None or self.epsilon is None or self.delta is None or lattice is None:
            return self
        shape = lattice()
        if self.calibration == "tight":
            sigma = tight(self.epsilon, self.delta, shape.shortest)
        elif shape.log_volume is None:
            raise InputError("The paper's calibration needs the lattice's volume, and a block is too large for it.")
        else:
            sigma = paper(self.epsilon, self.delta, shape.dimension, shape.log_volume)
        return replace_sigma(self, sigma)

    def law(self) -> str:
        """The noise law in symbols."""
        return "exp(-|z|₂² / 2σ²)" if self.sigma is None else f"exp(-|z|₂² / (2·{shown(self.sigma)}²))"

    def promise(self) -> str:
        """The privacy loss per unit of distance, in words."""
        if self.epsilon is not None and self.delta is not None:
            return f"epsilon {shown(self.epsilon)}, delta {_small(self.delta)} per unit of l2 distance"
        if self.rho is not None:
            return f"rho {shown(self.rho)} (zCDP) at l2 distance 1, growing with its square"
        return f"sigma {shown(self._sigma)}: rho {_small(1 / (2 * self._sigma**2))} (zCDP) at l2 distance 1"

    def promise_at(self, person: Distance) -> str:
        """The privacy loss at a distance, in words."""
        if self.epsilon is not None and self.delta is not None:
            return f"epsilon {_times(self.epsilon, person)}, delta {_delta_at(self.epsilon, self.delta, person)}"
        rho = self.rho if self.rho is not None else 1 / (2 * self._sigma**2)
        return f"rho {_small(rho * person.length)} (zCDP)"

    @property
    def _sigma(self) -> Fraction:
        if self.sigma is None:
            raise AssertionError("sigma is not known")
        return self.sigma

    def __repr__(self) -> str:
        given = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        if not any(given.values()):
            given["sigma"] = self.sigma
        parts = [f"{name}={shown(value)}" for name, value in given.items() if value is not None]
        if self.epsilon is not None and self.calibration != "zcdp":
            parts.append(f"calibration={self.calibration!r}")
        return f"Gaussian({', '.join(parts)})"


def replace_sigma(mechanism: Gaussian, sigma: Fraction) -> Gaussian:
    """The same guarantee with that sigma."""
    changed = object.__new__(Gaussian)
    for name in ("epsilon", "delta", "rho", "calibration"):
        object.__setattr__(changed, name, getattr(mechanism, name))
    object.__setattr__(changed, "sigma", sigma)
    return changed


Mechanism: TypeAlias = Laplace | Gaussian


def loss_above(mechanism: Mechanism, person: Distance, limit: int) -> bool:
    """Whether the epsilon of one person is above a limit, decided exactly; a mechanism without one has none.

    >>> loss_above(Laplace(epsilon=2.5), Distance("l1", 4), 10), loss_above(Laplace(epsilon=2.6), Distance("l1", 4), 10)
    (False, True)
    """
    if mechanism.epsilon is None:
        return False
    if person.norm == "l1":
        return mechanism.epsilon * person.length > limit
    return mechanism.epsilon**2 * person.length > limit**2


def _divided(epsilon: Fraction, person: Distance) -> Fraction:
    """Epsilon / distance; an irrational quotient is rounded down, to twelve significant digits."""
    if person.norm == "l1":
        return epsilon / person.length
    root = math.isqrt(person.length)
    if root * root == person.length:
        return epsilon / root
    digits = 10 ** (12 + len(str(epsilon.denominator // epsilon.numerator)))
    square = epsilon * epsilon * digits * digits / person.length
    return Fraction(math.isqrt(math.floor(square)), digits)


def _times(epsilon: Fraction, person: Distance) -> str:
    """Epsilon times a distance, for people: exact where it can be, else rounded up."""
    if isinstance(person.value, int):
        return shown(epsilon * person.value)
    with localcontext(prec=50):
        return _ceil(_decimal(epsilon) * Decimal(person.length).sqrt())


def _delta_at(epsilon: Fraction, delta: Fraction, person: Distance) -> str:
    """(e^(eps r) - 1) / (e^eps - 1) * delta, the delta of the definition at distance r, rounded up."""
    with localcontext(prec=50):
        r = Decimal(person.length) if person.norm == "l1" else Decimal(person.length).sqrt()
        loss = _decimal(epsilon)
        if loss * r > 1000:
            return "1"
        return _ceil(min(Decimal(1), ((loss * r).exp() - 1) / (loss.exp() - 1) * _decimal(delta)))


def _decimal(number: Fraction) -> Decimal:
    """In fifty digits, whatever the caller's own context is."""
    with localcontext(Context(prec=50)):
        return Decimal(number.numerator) / Decimal(number.denominator)


def _ceil(number: Decimal) -> str:
    """Four significant digits, rounded up: a loss is never stated smaller than it is."""
    return _plain(number.normalize(Context(prec=4, rounding=ROUND_CEILING)))


def _small(number: Fraction) -> str:
    """A fraction for people, in four digits rounded up where its exact form is long."""
    text = shown(number)
    return text if len(text) <= 6 else _ceil(_decimal(number))
