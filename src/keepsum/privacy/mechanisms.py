"""What noise to draw: frozen, validated specs with exact parameters, and what they promise.

``epsilon`` is per unit of distance between two tables with the same kept totals. What that means for one person
depends on the totals and on the attribute that is to be hidden; the plan works it out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from keepsum._arguments import check_choice
from keepsum._text import given as as_given
from keepsum.errors import InputError
from keepsum.privacy.calibration import of_rho, paper, tight, zcdp

if TYPE_CHECKING:
    from keepsum.planning.geometry import Geometry

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


TO = ("any value", "some other value")


@dataclass(frozen=True)
class Promise:
    """For which changes of one person a loss is asked: of these attributes, all if None, to any value or the nearest.

    Examples
    --------
    >>> str(Promise(("age", "sex"))), str(Promise(None, "some other value"))
    ('age, sex to any value', 'any attribute to some other value')
    """

    attributes: tuple[str, ...] | None = None
    to: Literal["any value", "some other value"] = "any value"

    @classmethod
    def of(cls, attributes: Iterable[str] | None, to: str) -> Promise:
        """A promise as a user gives it."""
        if to not in TO:
            raise InputError(f"A promise must be to 'any value' or to 'some other value', got {_kind(to)}.")
        if attributes is None:
            return cls(None, "any value" if to == TO[0] else "some other value")
        named = (attributes,) if isinstance(attributes, str) else attributes
        if not isinstance(named, Iterable):
            raise InputError(f"Attributes must be a list of axes, got {_kind(attributes)}.")
        names = tuple(named)
        if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise InputError("Attributes must be a list of different axes, at least one. Leave it out for all of them.")
        return cls(names, "any value" if to == TO[0] else "some other value")

    def __str__(self) -> str:
        return f"{'any attribute' if self.attributes is None else ', '.join(self.attributes)} to {self.to}"

    def arguments(self) -> str:
        """As they stand in a call, with a comma before; nothing for what is so by default."""
        named = "" if self.attributes is None else f", attributes={list(self.attributes)!r}"
        return named + ("" if self.to == TO[0] else f", to={self.to!r}")


def _kind(value: object) -> str:
    """What was given, without showing what may be data."""
    return repr(value) if isinstance(value, str) and len(value) <= 40 else f"a {type(value).__name__}"


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
    asked: Promise | None  # if not None, epsilon is the loss of one person, not per unit of distance

    def __init__(self, epsilon: Number, norm: str = "l1") -> None:
        self._fill(epsilon, norm, None)

    @classmethod
    def per_person(
        cls, epsilon: Number, norm: str = "l1", *, attributes: Iterable[str] | None = None, to: str = "any value"
    ) -> Laplace:
        """Ask for a privacy loss of at most epsilon for one person; the plan sets the loss per unit of distance.

        Parameters
        ----------
        epsilon, norm
            The loss of one person, and how distance is measured.
        attributes
            Promise it for changes of these attributes only; by default for each attribute of the table.
        to
            ``"any value"``, or ``"some other value"`` to promise it only for a change to the nearest other value.
        """
        mechanism = object.__new__(cls)
        mechanism._fill(epsilon, norm, Promise.of(attributes, to))
        return mechanism

    def _fill(self, epsilon: Number, norm: str, promise: Promise | None) -> None:
        check_choice(norm, "Norm", ("l1", "l2"))
        object.__setattr__(self, "epsilon", _in_range(exact(epsilon, "Epsilon"), "Epsilon"))
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "asked", promise)

    def resolve(self, person: Distance, lattice: Callable[[], Geometry] | None = None) -> Laplace:
        """The loss per unit that gives one person at most the loss asked for, rounded to the safe side."""
        if self.asked is None:
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
        if self.asked is None:
            return f"Laplace(epsilon={shown(self.epsilon)}, norm={self.norm!r})"
        return f"Laplace.per_person(epsilon={shown(self.epsilon)}, norm={self.norm!r}{self.asked.arguments()})"


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
    asked: Promise | None  # if not None, the loss is that of one person, and sigma is not known yet

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        rho: Number | None = None,
        sigma: Number | None = None,
        calibration: str = "zcdp",
    ) -> None:
        self._fill({"epsilon": epsilon, "delta": delta, "rho": rho, "sigma": sigma}, calibration, None)

    @classmethod
    def per_person(
        cls,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        rho: Number | None = None,
        calibration: str = "zcdp",
        attributes: Iterable[str] | None = None,
        to: str = "any value",
    ) -> Gaussian:
        """Ask for a loss of at most (epsilon, delta), or rho, for one person; the plan sets the loss per unit.

        Parameters
        ----------
        epsilon, delta, rho, calibration
            The loss of one person, and how sigma follows from it. Give epsilon and delta, or rho.
        attributes, to
            To promise less, as in :meth:`Laplace.per_person`.

        Examples
        --------
        >>> import keepsum as ks
        >>> domain = ks.Domain({"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
        >>> keep = ks.Invariants.margins(domain, [["county"], ["sex"]])
        >>> ks.plan(keep, ks.Gaussian.per_person(rho=1)).mechanism
        Gaussian(rho=0.25)
        """
        mechanism = object.__new__(cls)
        given: dict[str, Number | None] = {"epsilon": epsilon, "delta": delta, "rho": rho, "sigma": None}
        mechanism._fill(given, calibration, Promise.of(attributes, to))
        return mechanism

    def _fill(self, given: dict[str, Number | None], calibration: str, promise: Promise | None) -> None:
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
            raise InputError(f"Delta must be below 1 and at least 1e-300, got {shown(self.delta)}.")
        object.__setattr__(self, "calibration", calibration)
        object.__setattr__(self, "asked", promise)
        if self.sigma is None and promise is None:
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
        """The loss per unit of distance, if that of one person was asked, with its sigma worked out for a lattice."""
        if self.asked is not None:
            return self._per_unit(person).resolve(person, lattice)
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

    def _per_unit(self, person: Distance) -> Gaussian:
        """At distance r delta grows by (e^(eps r) - 1)/(e^eps - 1), and rho by r^2; rounded to the safe side."""
        if self.epsilon is None or self.delta is None:
            return Gaussian(rho=None if self.rho is None else self.rho / person.length)
        epsilon = _divided(self.epsilon, person)
        return Gaussian(epsilon, _unit_delta(epsilon, self.delta, person), calibration=self.calibration)

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
        return f"rho {_small(self.unit_rho * person.length)} (zCDP)"

    @property
    def unit_rho(self) -> Fraction:
        """The zCDP loss at l2 distance 1."""
        return self.rho if self.rho is not None else 1 / (2 * self._sigma**2)

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
        if self.asked is not None:
            return f"Gaussian.per_person({', '.join(parts)}{self.asked.arguments()})"
        return f"Gaussian({', '.join(parts)})"


def replace_sigma(mechanism: Gaussian, sigma: Fraction) -> Gaussian:
    """The same guarantee with that sigma."""
    changed = object.__new__(Gaussian)
    for name in ("epsilon", "delta", "rho", "calibration", "asked"):
        object.__setattr__(changed, name, getattr(mechanism, name))
    object.__setattr__(changed, "sigma", sigma)
    return changed


Mechanism: TypeAlias = Laplace | Gaussian


LARGE_EPSILON, LARGE_DELTA = 10, Fraction(1, 100)  # the loss of one person above which little is protected
_LOG_MILLION = Fraction(13816, 1000)  # ln(10^6), rounded up


def large_loss(mechanism: Mechanism, person: Distance) -> str | None:
    """What is too large in the loss of one person, in words; None if nothing is. Decided in exact arithmetic.

    A loss in rho counts as the epsilon that it gives at delta 1e-6, rho + 2 sqrt(rho ln(1/delta)).

    >>> large_loss(Laplace(epsilon=2.5), Distance("l1", 4)), large_loss(Laplace(epsilon=2.6), Distance("l1", 4))
    (None, 'epsilon 10.4, above 10')
    >>> large_loss(Gaussian(sigma="0.01"), Distance("l2", 2))
    'rho 10000 (zCDP), above epsilon 10 at delta 1e-6'
    """
    loss = mechanism.promise_at(person)
    if mechanism.epsilon is not None:
        square = mechanism.epsilon**2 * (person.length**2 if person.norm == "l1" else person.length)
        if square > LARGE_EPSILON**2:
            return f"{loss}, above {LARGE_EPSILON}"
        if isinstance(mechanism, Gaussian) and mechanism.delta is not None:
            delta = Fraction(_delta_at(mechanism.epsilon, mechanism.delta, person))
            return f"{loss}, above delta {shown(LARGE_DELTA)}" if delta > LARGE_DELTA else None
        return None
    rho = mechanism.unit_rho * person.length
    room = LARGE_EPSILON - rho
    if room < 0 or 4 * rho * _LOG_MILLION > room**2:
        return f"{loss}, above epsilon {LARGE_EPSILON} at delta 1e-6"
    return None


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


def _unit_delta(epsilon: Fraction, delta: Fraction, person: Distance) -> Fraction:
    """The delta per unit that is at most the given one at a distance, rounded down to twelve digits."""
    with localcontext(prec=60):
        loss = _decimal(epsilon)
        if loss * Decimal(person.length).sqrt() > 600:
            raise InputError("Epsilon for one person must be at most 600 under Gaussian noise. Choose a smaller one.")
        growth = ((loss * Decimal(person.length).sqrt()).exp() - 1) / (loss.exp() - 1)
        unit = (_decimal(delta) / growth).normalize(Context(prec=12, rounding=ROUND_FLOOR))
    return Fraction(unit)


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
