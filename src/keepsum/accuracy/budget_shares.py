"""A per-person budget divided between levels: the shares, and the errors to expect."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from keepsum._arguments import check_whole
from keepsum.accuracy.share_search import WHOLE, Budget, ShareSearch
from keepsum.privacy.focus import Level
from keepsum.privacy.laplace import Laplace
from keepsum.privacy.numbers import shown, shown_briefly

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Key: TypeAlias = str | tuple[str, ...]
CURVE = (10, 20, 40, 70, 100, 150, 200, 300, 400, 500, 600, 700, 800, 850, 900, 950, 980)  # thousandths
WIDEST = 30  # points of a curve with errors larger than so many times the least are left out


@dataclass(frozen=True)
class LevelShare:
    """What a level is given, and the error to expect.

    Attributes
    ----------
    key
        The totals as in ``focus``: an axis, several, or ``()``; None for cells.
    weight
        How much its mean squared error counts.
    share
        Its share of the per-person epsilon; 0 if an epsilon of its own would be worth less than it costs others.
    epsilon
        The epsilon per unit that follows.
    rmse
        The expected root mean squared error of its totals, those that are kept included.
    """

    key: Key | None
    weight: Fraction
    share: Fraction
    epsilon: Fraction
    rmse: float

    @property
    def name(self) -> str:
        """The level in words."""
        if self.key is None:
            return "cells"
        return Level((self.key,) if isinstance(self.key, str) else self.key, self.weight).totals


@dataclass(frozen=True)
class SharePoint:
    """The errors with one share changed and the others in proportion: of cells and of each level, and weighted."""

    share: Fraction
    rmse: tuple[float, ...]
    error: float


class BudgetShares:
    """The shares of a per-person epsilon with the least weighted mean squared error. Made by :func:`share_budget`.

    Attributes
    ----------
    levels
        The levels, cells last, each with its weight, share, epsilon and expected error.
    error
        The square root of the weighted mean of their mean squared errors.
    without_focus
        The same if cells had the whole epsilon, and no totals any of their own; None if there is no such noise.
    mechanism
        The noise with these shares.
    """

    def __init__(self, budget: Budget) -> None:
        self._search = ShareSearch.of(budget)
        self._parts = self._search.best()
        self.mechanism: Laplace = budget.mechanism(self._parts)
        errors, epsilons = self._rmse(self._parts), self._search.epsilons(self._parts)
        keys: list[Key | None] = [None, *(axes[0] if len(axes) == 1 else axes for axes in budget.axes)]
        shares = [Fraction(part, WHOLE) for part in self._parts]
        cells, *levels = map(LevelShare, keys, budget.weights, shares, epsilons, errors)
        self.levels: tuple[LevelShare, ...] = (*levels, cells)
        self.error = self._search.error(self._parts) ** 0.5
        alone = self._search.error((WHOLE, *(0 for _ in levels))) ** 0.5
        self.without_focus = None if alone == float("inf") else alone

    @property
    def shares(self) -> dict[Key, Fraction]:
        """The share of each level, as in ``ks.Laplace``; it has no levels with a share of 0."""
        return {level.key: level.share for level in self.levels if level.key is not None and level.share}

    @property
    def cell_share(self) -> Fraction:
        """The share of cells."""
        return self.levels[-1].share

    @property
    def rmse(self) -> dict[Key, float]:
        """The expected root mean squared error of the totals of each level."""
        return {level.key: level.rmse for level in self.levels if level.key is not None}

    @property
    def cell_rmse(self) -> float:
        """The expected root mean squared error of cells."""
        return self.levels[-1].rmse

    def curve(self, level: int) -> list[SharePoint]:
        """The errors with other shares of a level, by its place in ``levels``, the others in proportion.

        Shares so small or large that there is no such noise, or errors are very large, are left out.
        """
        number = check_whole(level, "The number of a level", 0, len(self.levels) - 1)
        place = (number + 1) % len(self.levels)  # of the search, in which cells come first
        points = []
        for share in sorted({*CURVE, self._parts[place]}):
            parts = self._with_share(place, share)
            if parts is not None and self._search.error(parts) ** 0.5 < WIDEST * self.error:
                cells, *others = self._rmse(parts)
                points.append(SharePoint(Fraction(share, WHOLE), (*others, cells), self._search.error(parts) ** 0.5))
        return points

    def plot(self) -> Figure:
        """Plot the errors against the share of each level, the others in proportion; needs the extra ``report``.

        Returns
        -------
        matplotlib.figure.Figure
            ``.savefig("shares.svg")`` writes it.
        """
        from keepsum.accuracy.share_plot import plot_shares

        curves = [self.curve(level) for level in range(len(self.levels))]
        return plot_shares(self.levels, curves, self.error, shown(self._search.budget.epsilon))

    def lines(self) -> list[str]:
        """The shares as a table in text."""
        heads = ["", "weight", "share", "epsilon per unit", "expected rmse"]
        rows = [
            [
                level.name,
                shown_briefly(level.weight),
                shown(level.share),
                shown_briefly(level.epsilon),
                f"{level.rmse:,.1f}",
            ]
            for level in self.levels
        ]
        widths = [max(len(row[k]) for row in [heads, *rows]) for k in range(len(heads))]
        return [
            "  ".join(f"{cell:{'<' if k == 0 else '>'}{widths[k]}}" for k, cell in enumerate(row)).rstrip()
            for row in [heads, *rows]
        ]

    def __repr__(self) -> str:
        return "\n".join([f"BudgetShares({self._title})", *(f"  {line}" for line in self.lines())])

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._title)}</p><pre>{html.escape(chr(10).join(self.lines()))}</pre>"

    @property
    def _title(self) -> str:
        other = "" if self.without_focus is None else f"; {self.without_focus:,.1f} without a focus"
        return f"epsilon {shown(self._search.budget.epsilon)} per person: weighted rmse {self.error:,.1f}{other}"

    def _rmse(self, parts: Sequence[Fraction | int]) -> list[float]:
        errors = self._search.errors(parts)
        if errors is None:
            raise AssertionError("there is noise with these shares")
        return [error**0.5 for error in errors.tolist()]

    def _with_share(self, place: int, share: int) -> tuple[Fraction | int, ...] | None:
        """Shares with that of one level changed; None if the others have none, or there is no such noise."""
        others = WHOLE - self._parts[place]
        if share == self._parts[place] or not others:
            return self._parts if share == self._parts[place] else None
        factor = Fraction(WHOLE - share, others)
        parts = tuple(Fraction(share) if k == place else part * factor for k, part in enumerate(self._parts))
        return None if self._search.errors(parts) is None else parts
