"""A focus: totals with a weight of their own in the law of the noise, which makes theirs smaller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.privacy.numbers import Number, exact_in_range, shown

MOST_LEVELS = 8
Focus: TypeAlias = Mapping[str, Number] | Mapping[tuple[str, ...], Number] | Mapping[str | tuple[str, ...], Number]


@dataclass(frozen=True)
class Level:
    """The totals of a margin, and their weight.

    Attributes
    ----------
    axes
        The axes of the margin as they were given; none for the grand total.
    weight
        The epsilon of these totals, their rho in Gaussian noise, or their share of a budget.

    Examples
    --------
    >>> level = Level(("state", "sex"), Fraction(1, 10))
    >>> level.totals, level.argument
    ('totals of state × sex', "('state', 'sex'): 0.1")
    """

    axes: tuple[str, ...]
    weight: Fraction

    @property
    def totals(self) -> str:
        """The totals in words."""
        return f"totals of {' × '.join(self.axes)}" if self.axes else "the grand total"

    @property
    def symbol(self) -> str:
        """The l1 length of the totals of noise z."""
        return f"|z by {' × '.join(self.axes)}|₁" if self.axes else "|sum of z|"

    @property
    def square(self) -> str:
        """The squared l2 length of the totals of noise z."""
        return f"|z by {' × '.join(self.axes)}|₂²" if self.axes else "(sum of z)²"

    @property
    def facts(self) -> tuple[tuple[str, ...], str]:
        """The level as a certificate states it."""
        return self.axes, str(self.weight)

    @property
    def argument(self) -> str:
        """The level as in a call."""
        key = self.axes[0] if len(self.axes) == 1 else self.axes
        return f"{key!r}: {shown(self.weight)}"


def levels_of(focus: Any, argument: str) -> tuple[Level, ...]:
    """The levels that a user gives as a mapping from axes to exact numbers."""
    if focus is None:
        return ()
    if not isinstance(focus, Mapping):
        raise InputError(f"Argument {argument} must be a mapping such as {{'county': 0.1}}, got {type_of(focus)}.")
    if len(focus) > MOST_LEVELS:
        raise InputError(f"Argument {argument} must have at most {MOST_LEVELS} totals, got {len(focus):,}.")
    levels: list[Level] = []
    for key, weight in focus.items():
        axes = (key,) if isinstance(key, str) else key
        if not isinstance(axes, tuple) or not all(isinstance(axis, str) for axis in axes):
            raise InputError(f"Keys of {argument} must be axes or tuples of axes, got {type_of(key)}.")
        totals = Level(axes, Fraction(1)).totals
        if any(set(axes) == set(other.axes) for other in levels):
            raise InputError(f"Keys of {argument} must be different totals, got {totals} twice.")
        levels.append(Level(axes, exact_in_range(weight, f"The weight of {totals} in {argument}")))
    return tuple(levels)


def arguments_of(levels: Sequence[Level]) -> str:
    """The levels as in a call: ``{'county': 0.1}``."""
    return f"{{{', '.join(level.argument for level in levels)}}}"


def focus_by_key(levels: Sequence[Level], factor: Fraction = Fraction(1)) -> dict[tuple[str, ...], Fraction]:
    """The levels as a user gives them, with all weights times a factor."""
    return {level.axes: level.weight * factor for level in levels}


def focus_in(facts: Sequence[tuple[tuple[str, ...], str]]) -> dict[tuple[str, ...], str] | None:
    """The focus that a certificate states, as a user gives it; None without one."""
    if len(dict(facts)) < len(facts):
        raise InputError("A focus in a certificate must be stated once.")
    return dict(facts) or None
