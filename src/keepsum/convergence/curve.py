"""The curve of a bound, made for reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keepsum._arguments import check_number, check_text
from keepsum.convergence.bounds import first_step_below, tv_upper_bound
from keepsum.convergence.times import MeetingTimes
from keepsum.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by colour-blind readers too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLES = ("-", (0, (6, 2)), (0, (2, 2)), (0, (6, 2, 1, 2)))
GREY = "#595959"


def plot_bound(
    times: MeetingTimes | Sequence[MeetingTimes],
    *,
    level: float = 0.1,
    confidence: float = 0.95,
    title: str | None = None,
) -> Figure:
    """Draw the estimated bound on the distance to the target against the number of steps.

    Parameters
    ----------
    times
        Meeting times, or several with different lags to compare.
    level
        The distance that the title speaks of.
    confidence
        The level of the shaded limit, step by step.
    title
        Other words than those about the level.

    Returns
    -------
    matplotlib.figure.Figure
        ``.savefig("bound.svg")`` writes it. Needs matplotlib, from ``pip install 'keepsum[report]'``.

    Examples
    --------
    >>> import keepsum as ks
    >>> times = ks.mcmc.meeting_times(ks.Lattice([[1, 1]]), ks.Laplace(epsilon=1), 0.4, lag=20, rng=ks.rng(seed=1))
    >>> ks.mcmc.plot_bound(times).axes[0].get_xlabel()
    'steps of the chain (log scale)'
    """
    curves = [times] if isinstance(times, MeetingTimes) else list(times) if isinstance(times, Sequence) else []
    if not curves or not all(isinstance(curve, MeetingTimes) for curve in curves):
        raise InputError("Times must be MeetingTimes, or several of them. Use ks.mcmc.meeting_times.")
    level, confidence = check_number(level, "The level", 0, 1), check_number(confidence, "The confidence", 0, 1)
    if title is not None:
        check_text(title, "The title")
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise InputError(
            "A plot needs matplotlib, which is not installed. Install it with: pip install 'keepsum[report]'"
        ) from None
    figure = Figure(figsize=(7.5, 4.4), layout="constrained")
    axes = figure.add_subplot()
    _frame(axes, curves, level, confidence)
    for i, curve in enumerate(curves):
        _curve(axes, curve, COLOURS[i % len(COLOURS)], STYLES[i % len(STYLES)], confidence, level)
    _labels(axes, curves)
    set_title(axes, title or finding(curves, level), fontsize=12)
    return figure


def set_title(axes: Axes, words: str, fontsize: float) -> None:
    """A bold title from the left edge of the axes, its lines broken where the figure ends.

    Where its longest word alone is wider than the figure the letters are made smaller: no title is cut.
    """
    figure: Any = axes.get_figure(root=True)
    figure.draw_without_rendering()  # what stands left of the axes is only known once it is laid out
    title = axes.set_title(words, loc="left", fontsize=fontsize, fontweight="bold")
    room = 0.98 * figure.bbox.x1 - axes.get_window_extent().x0
    lines: list[str] = []
    for line in words.splitlines():
        lines.append("")
        for word in line.split():
            title.set_text(f"{lines[-1]} {word}".strip())
            if not lines[-1] or title.get_window_extent().width <= room:
                lines[-1] = title.get_text()
            else:
                lines.append(word)
    title.set_text("\n".join(lines))
    title.set_fontsize(fontsize * min(1, room / max(1, title.get_window_extent().width)))


def finding(curves: Sequence[MeetingTimes], level: float) -> str:
    """What the curves show, in one line; with censored pairs that it is not known."""
    open_ = sum(int(curve.censored.sum()) for curve in curves)
    if open_:
        pairs = sum(len(curve) for curve in curves)
        return f"Not known to converge: {open_:,} of {pairs:,} pairs of chains had not met"
    best = max(curves, key=lambda curve: curve.lag)
    return f"The bound falls to {level:g} after about {_rounded_up(first_step_below(best, level) or 0):,} steps"


def _rounded_up(steps: int) -> int:
    """To two digits: more would claim too much."""
    unit: int = 10 ** max(0, len(str(steps)) - 2)
    return -(-steps // unit) * unit


def _steps(curve: MeetingTimes) -> Any:
    """Whole numbers, evenly spaced on a log scale, past the last meeting or to where pairs were given up."""
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
    """Each curve's lag on the curve itself, at heights of their own so that the labels do not meet."""
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
    axes.set_ylabel("upper bound on total variation distance")
    axes.spines[["top", "right"]].set_visible(False)
    pairs = " and ".join(sorted({f"{len(curve):,}" for curve in curves}))
    shade = "" if any(curve.censored.any() for curve in curves) else f"; shaded to the {confidence:.0%} limit"
    axes.annotate(
        f"estimated from {pairs} coupled pairs{' a lag' if len(curves) > 1 else ''}{shade}",
        (1, 0),
        xycoords="axes fraction",
        xytext=(0, -46),
        textcoords="offset points",
        ha="right",
        color=GREY,
        fontsize=9,
    )
