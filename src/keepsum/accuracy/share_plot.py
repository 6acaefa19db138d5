"""The plot of errors against the shares of a budget, a panel for each level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from keepsum.convergence.plot import COLOURS, GREY, STYLES, new_figure

if TYPE_CHECKING:
    from fractions import Fraction

    from matplotlib.figure import Figure

ACROSS = 3  # panels in a row
HEIGHT = 3.4  # inches of a row
TICKS = (0.25, 0.5, 0.75)


class Level(Protocol):
    """What is drawn of a level; see ``LevelShare``."""

    @property
    def name(self) -> str:
        """The level in words."""

    @property
    def share(self) -> Fraction:
        """Its share."""


class Point(Protocol):
    """What is drawn of a point of a curve; see ``SharePoint``."""

    @property
    def share(self) -> Fraction:
        """The share."""

    @property
    def rmse(self) -> tuple[float, ...]:
        """The error of each level."""

    @property
    def error(self) -> float:
        """The weighted error."""


def plot_shares(levels: Sequence[Level], curves: Sequence[Sequence[Point]], error: float, epsilon: str) -> Figure:
    """Plot the error of every level, and the weighted one, against the share of each."""
    rows = math.ceil(len(levels) / ACROSS)
    figure = new_figure(HEIGHT * rows + 0.7)
    panels: list[Any] = []
    for place, (level, curve) in enumerate(zip(levels, curves, strict=True)):
        axes: Any = figure.add_subplot(rows, min(ACROSS, len(levels)), place + 1, sharey=panels[0] if panels else None)
        panels.append(axes)
        axes.set_yscale("log")
        shares = [float(point.share) for point in curve]
        for k, other in enumerate(levels):
            errors = [point.rmse[k] for point in curve]
            axes.plot(shares, errors, color=COLOURS[k % len(COLOURS)], linestyle=STYLES[k % len(STYLES)], linewidth=1.6,
                      label=other.name)  # fmt: skip
        axes.plot(shares, [point.error for point in curve], color="black", linewidth=2.6, label="weighted")
        axes.plot([float(level.share)], [error], "o", color="black", markersize=7, zorder=5)
        axes.annotate(
            f"{float(level.share):.3f}", (float(level.share), error), xytext=(0, -14), textcoords="offset points",
            ha="center", fontsize=9, zorder=6,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85},
        )  # fmt: skip
        _frame(axes, level, first=place % ACROSS == 0)
    panels[0].legend(frameon=False, fontsize=8, loc="upper center")
    figure.suptitle(f"Shares of epsilon {epsilon} per person: the weighted error is least, {error:,.1f}, at the dots")
    return figure


def _frame(axes: Any, level: Level, first: bool) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_xlim(0, 1)
    axes.set_xticks([0, *TICKS, 1], ["0", *(f"{tick:g}" for tick in TICKS), "1"])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True, which="major", color="#DDDDDD", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(f"share of {level.name}", color=GREY)
    if first:
        axes.set_ylabel("root mean squared error\n(log scale)")
    else:
        axes.tick_params(labelleft=False)
