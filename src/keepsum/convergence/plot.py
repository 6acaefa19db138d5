"""Plots of convergence: the bound of a research run, and what coupled chains showed for a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from keepsum._arguments import check_number, check_text
from keepsum._arrays import Floats, IntArray
from keepsum._extras import missing
from keepsum._saying import the
from keepsum._text import percent
from keepsum.convergence.bounds import first_step_below, tv_upper_bound
from keepsum.convergence.times import MeetingTimes
from keepsum.errors import InputError
from keepsum.privacy.numbers import three_digits_up
from keepsum.sampling.general.weights import GeometricTail

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart too.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#595959"
COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLES = ("-", (0, (6, 2)), (0, (2, 2)), (0, (6, 2, 1, 2)))
PANEL_HEIGHT = 3.6  # inches
LOWEST_NAMED = 1e-9  # names of lines are at this height or above


def plot_bound(
    times: MeetingTimes | Sequence[MeetingTimes],
    *,
    level: float = 0.1,
    confidence: float = 0.95,
    title: str | None = None,
) -> Figure:
    """Plot the estimated bound on the total variation from the target against the number of steps.

    Parameters
    ----------
    times
        Meeting times, or several with different lags to compare.
    level
        The total variation that the title refers to.
    confidence
        The confidence level of the shaded limit, at each step.
    title
        A title in place of the default.

    Returns
    -------
    matplotlib.figure.Figure
        ``.savefig("bound.svg")`` writes it. Needs matplotlib, from the extra ``report``.

    Examples
    --------
    >>> import keepsum as ks
    >>> times = ks.mcmc.meeting_times(ks.Lattice([[1, 1]]), ks.Laplace.per_unit(1), 0.4, lag=20, rng=ks.rng(seed=1))
    >>> ks.mcmc.plot_bound(times).axes[0].get_xlabel()
    'steps of the chain (log scale)'
    """
    curves = [times] if isinstance(times, MeetingTimes) else list(times) if isinstance(times, Sequence) else []
    if not curves or not all(isinstance(curve, MeetingTimes) for curve in curves):
        raise InputError(f"Times must be MeetingTimes, or several of them. Use {the.call('ks.mcmc.meeting_times')}.")
    level, confidence = check_number(level, "The level", 0, 1), check_number(confidence, "The confidence", 0, 1)
    if title is not None:
        check_text(title, "The title")
    figure = new_figure(4.4)
    axes = figure.add_subplot()
    _frame(axes, curves, level, confidence)
    for i, curve in enumerate(curves):
        _curve(axes, curve, COLOURS[i % len(COLOURS)], STYLES[i % len(STYLES)], confidence, level)
    _labels(axes, curves)
    set_title(axes, title or _bound_title(curves, level), fontsize=12)
    return figure


def _bound_title(curves: Sequence[MeetingTimes], level: float) -> str:
    """What the curves show, in one line; with censored pairs, that convergence is not known."""
    unmet = sum(int(curve.censored.sum()) for curve in curves)
    if unmet:
        pairs = sum(len(curve) for curve in curves)
        return f"Not known to converge: {unmet:,} of {pairs:,} pairs of chains had not met"
    best = max(curves, key=lambda curve: curve.lag)
    return f"The bound falls to {level:g} after about {_rounded_up(first_step_below(best, level) or 0):,} steps"


def _rounded_up(steps: int) -> int:
    """To two digits: more would claim too much."""
    unit: int = 10 ** max(0, len(str(steps)) - 2)
    return -(-steps // unit) * unit


def _steps(curve: MeetingTimes) -> Any:
    """Integers, evenly spaced on a log scale, to beyond the last meeting or to where pairs were given up."""
    given_up = curve.excess[curve.censored]
    last = int(given_up.min()) - 1 if given_up.size else 1.5 * curve.excess.max() + 1
    return np.unique(np.geomspace(1, max(2, last), 300).astype(np.int64))


def _curve(axes: Axes, curve: MeetingTimes, colour: str, style: Any, confidence: float, level: float) -> None:
    bound = tv_upper_bound(curve, t=_steps(curve), confidence=confidence)
    axes.plot(bound.t, bound.estimate, color=colour, linestyle=style, linewidth=2, zorder=3)
    if not bound.censored:
        axes.fill_between(bound.t, bound.estimate, bound.upper, color=colour, alpha=0.15, linewidth=0)
        crossing = first_step_below(curve, level)
        axes.plot([max(1, crossing or 1)], [level], "o", color=colour, markersize=5, zorder=4)


def _labels(axes: Axes, curves: Sequence[MeetingTimes]) -> None:
    """Each curve's lag on the curve itself, at different heights so that the labels do not overlap."""
    for i, (curve, height) in enumerate(zip(curves, np.linspace(0.8, 0.3, len(curves)), strict=True)):
        bound = tv_upper_bound(curve, t=_steps(curve))
        place = int(np.argmax(bound.estimate <= max(height, bound.estimate.min())))
        axes.annotate(
            f"lag {curve.lag:,}" + ("\nat least this" if curve.censored.any() else ""),
            (bound.t[place], bound.estimate[place]),
            ha="center",
            va="center",
            color=COLOURS[i % len(COLOURS)],
            fontweight="bold",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            zorder=5,
        )


def _frame(axes: Axes, curves: Sequence[MeetingTimes], level: float, confidence: float) -> None:
    axes.set_xscale("log")
    axes.set_xlim(1, max(_steps(curve)[-1] for curve in curves))
    axes.set_ylim(0, 1.25)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
    axes.annotate(
        "above 1 the bound says nothing", (1.1, 1), xytext=(0, 4), textcoords="offset points", color=GREY, fontsize=9
    )
    axes.axhline(level, color=GREY, linewidth=0.8)
    axes.annotate(f"{level:g}", (1.1, level), xytext=(0, 4), textcoords="offset points", color=GREY, fontsize=9)
    axes.set_xlabel("steps of the chain (log scale)")
    axes.set_ylabel("upper bound on total variation")
    axes.spines[["top", "right"]].set_visible(False)
    pairs = " and ".join(sorted({f"{len(curve):,}" for curve in curves}))
    shade = "" if any(curve.censored.any() for curve in curves) else f"; shaded to the {confidence:.0%} limit"
    axes.annotate(
        f"estimated from {pairs} coupled pairs{' per lag' if len(curves) > 1 else ''}{shade}",
        (1, 0),
        xycoords="axes fraction",
        xytext=(0, -46),
        textcoords="offset points",
        ha="right",
        color=GREY,
        fontsize=9,
    )


@dataclass(frozen=True)
class Panel:
    """What is drawn of one form of blocks; see ``BlockConvergence``."""

    name: str
    times: MeetingTimes
    steps: int
    confidence: float
    upper: float
    extrapolated: float
    predicted: float
    rounding: float

    @property
    def unmet(self) -> int:
        """How many pairs were given up."""
        return int(self.times.censored.sum())


def plot_convergence(panels: Sequence[Panel]) -> Figure:
    """Plot the bound on the total variation against the steps of a chain, one panel per form of blocks.

    Returns
    -------
    matplotlib.figure.Figure
        ``.savefig("curve.svg")`` writes it. Needs matplotlib, from the extra ``report``.
    """
    if not panels:
        raise InputError("A curve needs a block that is drawn by a chain, and this plan has none.")
    figure = new_figure(PANEL_HEIGHT * len(panels) + 0.8)
    for axes, panel in zip(figure.subplots(len(panels), squeeze=False)[:, 0], panels, strict=True):
        _panel(axes, panel)
    return figure


def _panel(axes: Axes, panel: Panel) -> None:
    steps = np.unique(np.linspace(0, max(2.0, 1.25 * panel.steps), 600).astype(np.int64))
    estimate, upper = _bounds(panel, steps)
    axes.set_yscale("log")
    axes.set_xlim(0, steps[-1])
    axes.set_ylim(LOWEST_NAMED / 10, 2)
    seen = estimate > 0
    axes.step(steps[seen], estimate[seen], where="post", color=BLUE, linewidth=2.2)
    axes.step(steps, np.minimum(upper, 1), where="post", color=BLUE, linewidth=1.2, linestyle=(0, (4, 2)))
    axes.axvline(panel.steps, color=GREY, linewidth=0.9)
    axes.annotate(
        f"{panel.steps:,} steps per draw", (panel.steps, 1e-5), xytext=(4, 0), textcoords="offset points", va="center",
        rotation=90, color=GREY, fontsize=10,
    )  # fmt: skip
    limit = f"{percent(panel.confidence)} limit: {three_digits_up(panel.upper)}"
    _name(axes, limit, panel.steps, panel.upper, BLUE, to_left=True)
    # All pairs may have met at once: then there is only the limit to draw.
    below = steps[(estimate < 0.05) & seen]
    place = int(below[0]) if len(below) else int(steps[seen].max(initial=0))
    high = not len(below) and bool(seen.any())  # pairs that have not met: the curve never falls, its name is below it
    _name(axes, f"bound from {len(panel.times):,} pairs", place / 3 if high else place, 0.05, BLUE)
    if not panel.unmet:
        _extrapolation(axes, panel, steps)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("steps of the chain")
    axes.set_ylabel("upper bound on total variation\n(log scale)")
    axes.spines[["top", "right"]].set_visible(False)
    set_title(axes, _panel_title(panel), fontsize=11.5)


def _name(axes: Axes, name: str, x: float, y: float, colour: str, to_left: bool = False) -> None:
    """A line's name beside it, instead of a legend."""
    side, offset = ("right", (-7, 6)) if to_left else ("left", (9, 4))
    axes.annotate(
        name, (x, max(y, LOWEST_NAMED)), xytext=offset, textcoords="offset points", ha=side, color=colour, fontsize=10
    )


def _bounds(panel: Panel, steps: IntArray) -> tuple[Floats, Floats]:
    bound = tv_upper_bound(panel.times, t=steps, confidence=panel.confidence)
    return np.asarray(bound.estimate), np.asarray(bound.upper) + panel.rounding


def _extrapolation(axes: Axes, panel: Panel, steps: IntArray) -> None:
    tail = GeometricTail.of(panel.times.excess)
    tail_steps = steps[steps >= tail.start]
    values = np.array([tail.distance(int(t), panel.times.lag) for t in tail_steps]) + panel.rounding
    axes.plot(tail_steps, values, color=ORANGE, linewidth=1.8, linestyle=":")
    low = np.flatnonzero(values < 1e-6)
    place = low[0] if len(low) else len(tail_steps) - 1
    x, y = int(tail_steps[place]), float(values[place])
    _name(axes, "extrapolated from pairs, plus rounding", x, y, ORANGE, to_left=x > steps[-1] / 2)
    # The stated figure is never below what the weights predict, so it may lie above the line.
    axes.plot([panel.steps], [panel.extrapolated], marker="o", markersize=5, color=ORANGE)
    source = "extrapolated from weights" if panel.extrapolated == panel.predicted + panel.rounding else "extrapolated"
    _name(
        axes, f"{source}: {three_digits_up(panel.extrapolated)}", panel.steps, panel.extrapolated, ORANGE, to_left=True
    )


def _panel_title(panel: Panel) -> str:
    if panel.unmet:
        return f"{panel.name}: no bound, {panel.unmet:,} of {len(panel.times):,} pairs had not met"
    return f"{panel.name}: total variation at most {three_digits_up(panel.upper)}"


def new_figure(height: float) -> Figure:
    """An empty figure of our width; needs matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise InputError(missing("A plot", "report", "matplotlib")) from None
    return Figure(figsize=(7.5, height), layout="constrained")


def set_title(axes: Axes, text: str, fontsize: float) -> None:
    """A bold title from the left edge of the axes, wrapped where the figure ends.

    If its longest word alone is wider than the figure, the font gets smaller: no title is cut off.
    """
    figure: Any = axes.get_figure(root=True)
    figure.draw_without_rendering()  # the space to the left of the axes is only known once it is laid out
    title = axes.set_title(text, loc="left", fontsize=fontsize, fontweight="bold")
    room = 0.98 * figure.bbox.x1 - axes.get_window_extent().x0
    lines: list[str] = []
    for line in text.splitlines():
        lines.append("")
        for word in line.split():
            title.set_text(f"{lines[-1]} {word}".strip())
            if not lines[-1] or title.get_window_extent().width <= room:
                lines[-1] = title.get_text()
            else:
                lines.append(word)
    title.set_text("\n".join(lines))
    title.set_fontsize(fontsize * min(1, room / max(1, title.get_window_extent().width)))
