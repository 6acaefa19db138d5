"""The plot of a curve of margins of error against the privacy loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keepsum._text import percent
from keepsum.accuracy.candidates import Point
from keepsum.convergence.plot import BLUE, GREY, ORANGE, new_figure, set_title
from keepsum.privacy.families import Family
from keepsum.privacy.numbers import shown_briefly

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT = 4.6  # inches
TICKS = 9  # values below the axis, at most
TOO_NEAR = 1.5  # a point within this factor of the curve's own has no name, which would be hidden


@dataclass(frozen=True)
class Picture:
    """What is drawn of a curve; see ``AccuracyCurve``."""

    family: Family
    points: tuple[Point, ...]
    level: float
    subject: str
    heading: str
    draws: int


def plot_curve(curve: Picture) -> Figure:
    """Plot the typical margin, and the largest where it differs, against the parameter, on log axes."""
    figure = new_figure(HEIGHT)
    axes = figure.add_subplot()
    values = [float(point.value) for point in curve.points]
    typical, largest = [point.typical for point in curve.points], [point.largest for point in curve.points]
    # A margin of 0 has no place on a log scale: such points are drawn at the bottom and labelled.
    bottom = 0.5
    axes.set_xscale("log")
    axes.set_yscale("log")
    lines: list[tuple[list[int], str, str, Any]] = [(typical, "typical", BLUE, "-")]
    if largest != typical:
        lines.insert(0, (largest, "largest", ORANGE, (0, (5, 2))))
    for margins, name, colour, style in lines:
        heights = [max(bottom, margin) for margin in margins]
        axes.plot(values, heights, color=colour, linestyle=style, linewidth=2, marker="o", markersize=4, label=name)
    _name_points(axes, curve, bottom)
    _frame(axes, curve, values, [*typical, *largest], bottom)
    if len(lines) > 1:
        axes.legend(frameon=False, loc="lower right" if curve.family.power > 0 else "lower left")
    _set_heading(axes, curve)
    return figure


def _name_points(axes: Axes, curve: Picture, bottom: float) -> None:
    """Each typical margin above its point, where a falling line leaves room; the curve's own with its parameter."""
    rises = curve.family.power > 0
    has_own = any(point.value == curve.family.value for point in curve.points)
    for point in curve.points:
        x, y, name = float(point.value), max(bottom, point.typical), f"±{point.typical:,}"
        is_own = point.value == curve.family.value
        if (
            not is_own
            and max(point.value / curve.family.value, curve.family.value / point.value) < TOO_NEAR
            and has_own
        ):
            continue
        if is_own:
            name = f"{curve.family.parameter} {shown_briefly(point.value)}: {name}"
            axes.plot([x], [y], "o", color=BLUE, markersize=9, zorder=4)
        axes.annotate(
            name, (x, y), xytext=(-6 if rises else 6, 7), textcoords="offset points", ha="right" if rises else "left",
            color=BLUE, fontsize=10 if is_own else 9, fontweight="bold" if is_own else "normal", zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.8},
        )  # fmt: skip


def _frame(axes: Any, curve: Picture, values: list[float], margins: list[int], bottom: float) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

    others = [point.value for point in curve.points if point.value != curve.family.value]  # its own is on the curve
    ticks = (others or [curve.family.value])[:: max(1, -(-len(others) // TICKS))]
    axes.set_xticks([float(tick) for tick in ticks], [shown_briefly(tick) for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(values[0] / 1.6, values[-1] * 1.6)
    axes.set_ylim(0.7 * min(max(bottom, margin) for margin in margins), 1.6 * max(bottom, *margins))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"±{value:,.0f}" if value >= 1 else "±0"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True, which="major", color="#DDDDDD", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    source = f"\nmargins from {curve.draws:,} simulated draws or more" if curve.draws else ""
    axes.set_xlabel(f"{curve.heading} (log scale){source}")
    axes.set_ylabel(f"{percent(curve.level)} margin of error of a count\n(log scale)")
    _shade(axes, curve)


def _shade(axes: Any, curve: Picture) -> None:
    """Where the loss is so large that it protects little."""
    little = [float(point.value) for point in curve.points if point.person.excess is not None]
    if not little:
        return
    left, right = axes.get_xlim()
    start, end = (left, max(little)) if curve.family.power > 0 else (min(little), right)
    axes.axvspan(start, end, color="#EEEEEE", zorder=0)
    axes.annotate(
        "little protection", (start, 0.97), xycoords=("data", "axes fraction"), xytext=(4, 0),
        textcoords="offset points", va="top", ha="left", rotation=90, color=GREY, fontsize=9,
    )  # fmt: skip


def _set_heading(axes: Axes, curve: Picture) -> None:
    own = next((point for point in curve.points if point.value == curve.family.value), None)
    title = "Margins of error against the privacy loss"
    if own is not None:
        whose = f"{shown_briefly(own.value)} {curve.family.whose(curve.subject)}".rstrip()
        title = f"{curve.family.parameter.capitalize()} {whose} gives a typical margin of "
        title += f"±{own.typical:,}"
    set_title(axes, title, fontsize=12)
