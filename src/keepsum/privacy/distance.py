"""Distances between tables: which tables are neighbours, and the loss at a distance from the loss per unit of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from typing import Literal, TypeAlias

from keepsum._arguments import plain_text
from keepsum._saying import arg, the
from keepsum.errors import InputError
from keepsum.privacy.numbers import as_decimal, rounded_up

# Which tables are neighbours for a per-person loss.


To: TypeAlias = Literal["any value", "some other value"]
TO: tuple[To, To] = ("any value", "some other value")


@dataclass(frozen=True)
class Neighbours:
    """Tables that differ by a change of one person's attributes, each to any value or to some other value.

    Attributes
    ----------
    attributes
        The attributes whose changes are protected, one at a time; None for all of them.
    to
        ``"any value"``, or ``"some other value"``: one that the categories give, where the kept totals allow that one.

    Examples
    --------
    >>> str(Neighbours(("age", "sex"))), str(Neighbours(None, "some other value"))
    ('age, sex to any value', 'any attribute to some other value')
    >>> Neighbours(("age", "sex")).changes, Neighbours().changes
    ('for a change of age, sex', '')
    """

    attributes: tuple[str, ...] | None = None
    to: To = "any value"

    @classmethod
    def of(cls, attributes: Iterable[str] | None, to: str) -> Neighbours:
        """The neighbours that a user requests."""
        if to not in TO:
            raise InputError(f"{arg.to} must be 'any value' or 'some other value', got {_kind(to)}.")
        if attributes is None:
            return cls(None, TO[TO.index(to)])
        named = (attributes,) if isinstance(attributes, str) else attributes
        if not isinstance(named, Iterable):
            raise InputError(f"Attributes must be a list of axes, got {_kind(attributes)}.")
        names = tuple(named)
        if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise InputError("Attributes must be a list of one or more different axes. Leave it out for all of them.")
        return cls(tuple(map(plain_text, names)), TO[TO.index(to)])

    def __str__(self) -> str:
        return f"{'any attribute' if self.attributes is None else ', '.join(self.attributes)} to {self.to}"

    @property
    def changes(self) -> str:
        """Which changes of a person these are, if not all of any one attribute: ``"for a change of age, sex"``."""
        named = "any attribute" if self.attributes is None else ", ".join(self.attributes)
        if self.to == TO[0]:
            return "" if self.attributes is None else f"for a change of {named}"
        return f"for a change of {named} to {self.to}"

    def arguments(self) -> str:
        """The arguments as in a call, after a comma; defaults are left out."""
        named = "" if self.attributes is None else f", attributes={list(self.attributes)!r}"
        return named + ("" if self.to == TO[0] else f", to={self.to!r}")


def needs_distance(request: object) -> str:
    """Why a per-person loss is not enough where there is no plan."""
    return (
        f"The loss must be per unit of distance where there is no plan, got {the.noise(repr(request))}. "
        f"Use {the.call(f'ks.{type(request).__name__}.per_unit')}, or {the.call('plan.mechanism')}."
    )


def _kind(value: object) -> str:
    """The argument, unless it may be data."""
    return repr(value) if isinstance(value, str) and len(value) <= 40 else f"a {type(value).__name__}"


# Distances between tables, and the loss at a distance from the loss per unit of distance.


Norm: TypeAlias = Literal["l1", "l2"]
Rule: TypeAlias = Literal["move", "exchange", "junction tree", "sums", "table", "cycles", "unimodular", "graver"]
Reading: TypeAlias = Literal["strong", "weak"]
STRONG: tuple[Rule, ...] = ("move", "exchange")


@dataclass(frozen=True)
class Distance:
    """The distance between two tables: an l1 length, or an l2 length stored as its square.

    Under a focus it is that of one change, with what the change does to the focused totals, in the same norm.
    """

    norm: Norm
    length: int  # the l1 length, or the *squared* l2 length: both are integers
    exact: bool = True  # if not, an upper bound
    focused: tuple[int, ...] = field(default=(), repr=False)  # the length in the totals of each focus, alike
    rule: Rule | None = field(default=None, repr=False, compare=False)  # for one person: why it is no farther

    @property
    def reading(self) -> Reading | None:
        """For one person in real tables, what others keep: all attributes but the changed one, or nothing at all."""
        if self.rule is None:
            return None
        return "strong" if self.rule in STRONG else "weak"

    @property
    def not_against(self) -> str:
        """Against whom a loss at it does not hold, as the end of a sentence; empty in the strong reading."""
        return "; not against somebody who knows the attributes of others" if self.reading == "weak" else ""

    @property
    def value(self) -> int | float:
        """The length itself."""
        root = math.isqrt(self.length)
        if self.norm == "l1" or root * root == self.length:
            return self.length if self.norm == "l1" else root
        return math.sqrt(self.length)

    @property
    def decimal(self) -> Decimal:
        """The length itself, to the digits of the context."""
        return Decimal(self.length) if self.norm == "l1" else Decimal(self.length).sqrt()

    def times(self, changes: int) -> Distance:
        """An upper bound on the distance of several changes, each at this distance: lengths add at most.

        >>> Distance("l1", 4).times(3), Distance("l2", 2).times(3).length
        (Distance(norm='l1', length=12, exact=False), 18)
        """
        if changes == 1:
            return self
        times = changes if self.norm == "l1" else changes**2
        focused = tuple(times * total for total in self.focused)
        length = self.length
        if self.norm == "l2" and self.rule == "junction tree":
            # Changes of k margins may use the same other people twice: docs/one-person.md, several records.
            k = next(k for k in range(2, length) if (k - 1) ** 2 + k + 3 == length)
            length = (k + 1) * (k + 2)
        return Distance(self.norm, times * length, exact=False, focused=focused, rule=self.rule)

    def weighed(self, weights: Sequence[Fraction]) -> Fraction:
        """The length times the first weight, plus that in the totals of each focus times the others.

        A change of l1 length n changes the totals of a margin by at most n together: that counts where it is not known.
        If n is the square of the l2 length, the l1 length is at most n, and so is the l2 length in totals.

        >>> Distance("l1", 2, focused=(2, 0)).weighed([Fraction(3), Fraction(1), Fraction(1)])
        Fraction(8, 1)
        """
        focused = self.focused or (self.length if self.norm == "l1" else self.length**2,) * (len(weights) - 1)
        return sum((w * n for w, n in zip(weights, (self.length, *focused), strict=True)), Fraction(0))

    def __str__(self) -> str:
        value = self.value
        text = f"{value}" if isinstance(value, int) else f"√{self.length}"
        return text if self.exact else f"at most {text}"


def farthest(distances: Sequence[Distance], weights: Sequence[Fraction] = ()) -> Distance:
    """The largest distance, an upper bound if any of that length is.

    With weights it is that of the largest weighed length, exact if any of that length is.
    """
    lengths = [distance.weighed(weights) if weights else distance.length for distance in distances]
    largest = max(lengths)
    longest = [distance for distance, length in zip(distances, lengths, strict=True) if length == largest]
    chosen = max(longest, key=lambda distance: (distance.length, distance.focused))
    exact = [distance.exact for distance in longest]
    return replace(chosen, exact=any(exact) if weights else all(exact))


def epsilon_at(epsilon: Fraction, distance: Distance) -> Fraction:
    """Epsilon times a distance: exact where the distance is an integer, else rounded up to twelve digits."""
    if isinstance(distance.value, int):
        return epsilon * distance.value
    with localcontext(prec=50):
        return Fraction(rounded_up(as_decimal(epsilon) * distance.decimal))


def epsilon_per_unit(epsilon: Fraction, distance: Distance) -> Fraction:
    """Epsilon / distance; an irrational quotient is rounded down, to twelve significant digits."""
    if distance.norm == "l1":
        return epsilon / distance.length
    root = math.isqrt(distance.length)
    if root * root == distance.length:
        return epsilon / root
    digits = 10 ** (12 + len(str(epsilon.denominator // epsilon.numerator)))
    square = epsilon * epsilon * digits * digits / distance.length
    return Fraction(math.isqrt(math.floor(square)), digits)


def delta_at(epsilon: Fraction, delta: Fraction, distance: Distance) -> Fraction:
    """(e^(eps r) - 1) / (e^eps - 1) * delta, the delta of the definition at distance r, rounded up to twelve digits."""
    if distance.length == 1:
        return delta
    with localcontext(prec=50):
        loss, r = as_decimal(epsilon), distance.decimal
        if loss * r > 1000:
            return Fraction(1)
        grown = ((loss * r).exp() - 1) / (loss.exp() - 1) * as_decimal(delta)
        return Fraction(rounded_up(min(Decimal(1), grown)))


def delta_per_unit(epsilon: Fraction, delta: Fraction, distance: Distance) -> Fraction:
    """The delta per unit of distance that gives at most this delta at a distance, rounded down to twelve digits."""
    with localcontext(prec=60):
        loss, r = as_decimal(epsilon), Decimal(distance.length).sqrt()
        if loss * r > 600:
            raise InputError(
                "Epsilon per person, or per record, must be at most 600 under Gaussian noise. Choose a smaller one."
            )
        growth = ((loss * r).exp() - 1) / (loss.exp() - 1)
        return Fraction((as_decimal(delta) / growth).normalize(Context(prec=12, rounding=ROUND_FLOOR)))
