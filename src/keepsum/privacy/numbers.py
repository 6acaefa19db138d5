"""Exact numbers: how users give them, and how they and privacy losses are shown, never rounded down."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_UP, Context, Decimal, localcontext
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from keepsum._text import given as as_given
from keepsum.errors import InputError

Number: TypeAlias = int | float | str | Decimal | Fraction | np.integer

LONGEST = 10**1000  # denominators from this on are shown as decimals, rounded up
SMALLEST_PARAMETER, LARGEST_PARAMETER = Fraction(1, 10**12), Fraction(10**12)


def exact(value: Number, what: str) -> Fraction:
    """A positive number as an exact fraction; a float means its shortest decimal.

    >>> exact(0.1, "Epsilon"), exact("1/3", "Epsilon")
    (Fraction(1, 10), Fraction(1, 3))
    """
    problem = f"{what} must be a positive number, got {as_given(value)}."
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9]+,[0-9]+\s*", value):
        problem += " Write a decimal point, as in 0.5, and no comma."
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal, Fraction, np.integer)):
        raise InputError(problem)
    if isinstance(value, str) and (len(value) > 1000 or re.search(r"[eE][+-]?0*[1-9][0-9]{3}", value)):
        raise InputError(problem)  # a number of a million digits
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) > 1000:
        raise InputError(problem)
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


def exact_in_range(value: Number, what: str) -> Fraction:
    """A positive number from 1e-12 to 1e12."""
    number = exact(value, what)
    if not SMALLEST_PARAMETER <= number <= LARGEST_PARAMETER:
        raise InputError(f"{what} must be from 1e-12 to 1e12, got {shown(number)}.")
    return number


def shown(number: Fraction) -> str:
    """A fraction for display: a decimal where that is exact and short, else a quotient.

    >>> shown(Fraction(1, 4)), shown(Fraction(1, 3)), shown(Fraction(1, 10**6))
    ('0.25', '1/3', '1e-6')
    """
    text = plain(as_decimal(number))
    if Fraction(text) == number and len(text) <= 20:
        return text
    if number.denominator >= LONGEST:  # Python refuses to write integers of thousands of digits
        return plain(rounded_up(as_decimal(number), 40))
    return f"{number.numerator}/{number.denominator}"


def shown_briefly(number: Fraction, length: int = 6) -> str:
    """A fraction for display, rounded up to four digits where its exact form is long.

    >>> shown_briefly(Fraction(1, 8)), shown_briefly(Fraction(1, 3))
    ('0.125', '1/3')
    >>> shown_briefly(Fraction(10**6, 3 * 10**6 + 1))
    '0.3334'
    """
    text = shown(number)
    return text if len(text) <= length else plain(rounded_up(as_decimal(number), 4))


def shown_at_most(number: Fraction, length: int = 8) -> str:
    """What is left of a budget, or may be spent: rounded down to four digits where its exact form is long.

    >>> shown_at_most(Fraction(7, 20)), shown_at_most(Fraction(10**6, 3 * 10**6 + 1))
    ('0.35', '0.3333')
    """
    text = shown(number)
    if len(text) <= length:
        return text
    return plain(as_decimal(number).normalize(Context(prec=4, rounding=ROUND_FLOOR)))


def plain(number: Decimal) -> str:
    """A decimal in plain digits, or with an exponent where it would start with many zeros."""
    if not number:
        return "0"
    if -4 <= number.adjusted() < 16:
        return f"{number.normalize(Context(prec=50)):f}"
    return f"{number.normalize(Context(prec=50)):e}".replace("e+", "e")


def rounded_up(number: Decimal, digits: int = 12) -> Decimal:
    """Rounded up to that many significant digits: a loss is never understated."""
    return number.normalize(Context(prec=digits, rounding=ROUND_CEILING))


def decimal_text(number: Fraction) -> str:
    """A number as decimal text of at most twelve digits, rounded up.

    >>> decimal_text(Fraction(1, 4)), decimal_text(Fraction(1, 3)), decimal_text(Fraction(1, 10**9))
    ('0.25', '0.333333333334', '1e-9')
    """
    return plain(rounded_up(as_decimal(number)))


def as_decimal(number: Fraction) -> Decimal:
    """The decimal of fifty digits, whatever the caller's context."""
    with localcontext(Context(prec=50)):
        return Decimal(number.numerator) / Decimal(number.denominator)


def three_digits_up(number: float) -> str:
    """A probability in three digits, rounded up.

    >>> three_digits_up(0.00098761), three_digits_up(2e-9), three_digits_up(0.0)
    ('0.000988', '2e-9', '0')
    """
    if number <= 0:
        return "0"
    short = Context(prec=3, rounding=ROUND_UP).create_decimal(repr(float(number)))
    return str(min(short.normalize(), 1)).lower()


# Privacy losses as numbers, rounded up.


LARGE_EPSILON, LARGE_DELTA = 10, Fraction(1, 100)  # per-person losses above these protect little
_LOG_MILLION = Fraction(13816, 1000)  # ln(10^6), rounded up


@dataclass(frozen=True)
class Loss:
    """The loss between two tables at some distance: epsilon, epsilon with delta, or rho (zCDP).

    Examples
    --------
    >>> str(Loss(epsilon=Fraction(1))), str(Loss(rho=Fraction(1, 8)))
    ('epsilon 1', 'rho 0.125 (zCDP)')
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None

    def __str__(self) -> str:
        if self.rho is not None:
            return f"rho {shown_briefly(self.rho)} (zCDP)"
        epsilon = "" if self.epsilon is None else f"epsilon {shown_briefly(self.epsilon, 8)}"
        return epsilon if self.delta is None else f"{epsilon}, delta {shown_briefly(self.delta)}"

    @property
    def excess(self) -> Literal["epsilon", "delta", "rho"] | None:
        """The parameter that is so large that the loss protects little, decided in exact arithmetic; None if none is.

        A loss in rho counts as the epsilon that it gives at delta 1e-6, rho + 2 sqrt(rho ln(1/delta)).

        >>> Loss(epsilon=Fraction(10)).excess, Loss(epsilon=Fraction("10.4")).excess, Loss(rho=Fraction(10**4)).excess
        (None, 'epsilon', 'rho')
        """
        if self.rho is not None:
            room = LARGE_EPSILON - self.rho
            return "rho" if room < 0 or 4 * self.rho * _LOG_MILLION > room**2 else None
        if self.epsilon is not None and self.epsilon > LARGE_EPSILON:
            return "epsilon"
        return "delta" if self.delta is not None and self.delta > LARGE_DELTA else None
