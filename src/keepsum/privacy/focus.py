"""A focus: totals with a weight of their own in the law of the noise, which makes theirs smaller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from keepsum._arguments import plain_text
from keepsum._saying import arg
from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.privacy.numbers import Number, exact_in_range, shown
from keepsum.tables.invariants import Invariants, Rows, describe_rows

MOST_LEVELS = 8
MOST_CELLS = 100_000  # of subsets, which a certificate lists
Axes: TypeAlias = str | tuple[str, ...]
Focus: TypeAlias = (
    Mapping[str, Number]
    | Mapping[tuple[str, ...], Number]
    | Mapping[Axes, Number]
    | Mapping[Invariants, Number]
    | Mapping[Axes | Invariants, Number]
)


@dataclass(frozen=True)
class Subsets:
    """Named sets of cells that have no cell in common.

    Attributes
    ----------
    size
        The number of cells of the table.
    names, cells
        The name of each set, and its cells in increasing order.
    """

    size: int
    names: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, key: Invariants, argument: str) -> Subsets:
        """Those that a user declares as totals of subsets."""
        parts = [part for part in key.parts if isinstance(part, Rows) and part.kind == "subsets" and part.height]
        if not parts or len(parts) < len(key.parts):
            raise InputError(
                f"Keys of {argument} that are Invariants must be totals of subsets, got {key!r}. Name axes instead, or "
                f"use Invariants.subsets."
            )
        rows = [row for part in parts for row in np.split(part.rows.indices, part.rows.indptr[1:-1])]
        cells = tuple(tuple(sorted(row.tolist())) for row in rows)
        members = [cell for row in cells for cell in row]
        if len(set(members)) < len(members):
            raise InputError(
                f"Subsets of one key of {argument} must have no cell in common. Give each a key of its own."
            )
        if not all(cells) or len(members) > MOST_CELLS:
            raise InputError(f"Subsets in {argument} must have a cell each, and at most {MOST_CELLS:,} together.")
        return cls(key.size, key.names, cells)

    @property
    def key(self) -> Invariants:
        """The sets as a user declares them."""
        return Invariants.subsets(self.size, self.cells, self.names)


@dataclass(frozen=True)
class Level:
    """The totals of a margin, or of some subsets, and their weight.

    Attributes
    ----------
    axes
        The axes of the margin as they were given; none for the grand total, and for subsets.
    weight
        The epsilon of these totals, their rho in Gaussian noise, or their share of a budget.
    subsets
        The sets of cells whose totals they are; None for a margin.

    Examples
    --------
    >>> level = Level(("state", "sex"), Fraction(1, 10))
    >>> level.totals, level.argument
    ('totals of state × sex', "('state', 'sex'): 0.1")
    >>> Level((), Fraction(1), Subsets(4, ("coast",), ((0, 1),))).totals
    "total 'coast'"
    """

    axes: tuple[str, ...]
    weight: Fraction
    subsets: Subsets | None = None

    @property
    def totals(self) -> str:
        """The totals in words."""
        if self.subsets is not None:
            return describe_rows(self.subsets.names, "subsets")
        return f"totals of {' × '.join(self.axes)}" if self.axes else "the grand total"

    @property
    def each(self) -> str:
        """One of the totals, in words."""
        if self.subsets is not None:
            return self.totals if len(self.subsets.names) == 1 else "named total"
        return f"total of {' × '.join(self.axes)}" if self.axes else "grand total"

    @property
    def _noise(self) -> str:
        """The totals of noise z."""
        return f"z by {' × '.join(self.axes)}" if self.subsets is None else f"z in {', '.join(self.subsets.names)}"

    @property
    def symbol(self) -> str:
        """The l1 length of the totals of noise z."""
        return f"|{self._noise}|₁" if self.axes or self.subsets else "|sum of z|"

    @property
    def square(self) -> str:
        """The squared l2 length of the totals of noise z."""
        return f"|{self._noise}|₂²" if self.axes or self.subsets else "(sum of z)²"

    @property
    def key(self) -> tuple[str, ...] | Invariants:
        """What a user names the totals by."""
        return self.axes if self.subsets is None else self.subsets.key

    @property
    def argument(self) -> str:
        """The level as in a call."""
        if self.subsets is not None:
            return f"{self.subsets.key!r}: {shown(self.weight)}"
        key = self.axes[0] if len(self.axes) == 1 else self.axes
        return f"{key!r}: {shown(self.weight)}"


def levels_of(focus: Any, argument: str) -> tuple[Level, ...]:
    """The levels that a user gives as a mapping from axes, or subsets, to exact numbers."""
    if focus is None:
        return ()
    if not isinstance(focus, Mapping):
        raise InputError(f"{argument} must be a mapping such as {{'county': 0.1}}, got {type_of(focus)}.")
    if len(focus) > MOST_LEVELS:
        raise InputError(f"{argument} must have at most {MOST_LEVELS} totals, got {len(focus):,}.")
    levels: list[Level] = []
    for key, weight in focus.items():
        level = _level(key, argument)
        if any(set(level.axes) == set(other.axes) and level.subsets == other.subsets for other in levels):
            raise InputError(f"Keys of {argument} must be different totals, got {level.totals!r} twice.")
        exactly = exact_in_range(weight, f"The weight of {level.totals!r} in {argument}")
        levels.append(replace(level, weight=exactly))
    return tuple(levels)


def levels_and_share(focus: Any, cell_share: Number) -> tuple[tuple[Level, ...], Fraction]:
    """The levels that a user gives with shares of a loss, and the share of cells."""
    levels, share = levels_of(focus, f"{arg.focus}"), exact_in_range(cell_share, f"{arg.cell_share}")
    if share != 1 and not levels:
        raise InputError(
            f"{arg.cell_share} requires {arg.focus}, of which cells have a part. "
            f"{arg.cell_share.called('Leave it out')}."
        )
    return levels, share


def _level(key: Any, argument: str) -> Level:
    """The totals of a key, with the weight 1."""
    if isinstance(key, Invariants):
        return Level((), Fraction(1), Subsets.of(key, argument))
    axes = (key,) if isinstance(key, str) else key
    if not isinstance(axes, tuple) or not all(isinstance(axis, str) for axis in axes):
        raise InputError(f"Keys of {argument} must be axes, tuples of axes, or Invariants.subsets, got {type_of(key)}.")
    if len(set(axes)) < len(axes):
        raise InputError(f"Keys of {argument} must name each axis once, got {key!r}.")
    return Level(tuple(map(plain_text, axes)), Fraction(1))


def arguments_of(levels: Sequence[Level]) -> str:
    """The levels as in a call: ``{'county': 0.1}``."""
    return f"{{{', '.join(level.argument for level in levels)}}}"


def focus_by_key(levels: Sequence[Level], factor: Fraction = Fraction(1)) -> dict[Any, Fraction]:
    """The levels as a user gives them, with all weights times a factor."""
    return {level.key: level.weight * factor for level in levels}


def focus_in(facts: Sequence[Level]) -> dict[Any, Fraction] | None:
    """The focus that a certificate states, as a user gives it; None without one."""
    focus = focus_by_key(facts)
    if len(focus) < len(facts):
        raise InputError("A focus in a certificate must be stated once.")
    return focus or None
