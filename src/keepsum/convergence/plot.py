"""The curve of a certification: what pairs of chains showed, its limit, and its extrapolation, told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from keepsum.convergence.curve import set_title
from keepsum.convergence.observe import FARTHEST, Certification, Convergence
from keepsum.errors import InputError
from keepsum.privacy.guarantee import significant
from keepsum.sampling.general.weights import GeometricTail

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by colour-blind readers too.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#595959"
PANEL = 3.6  # inches

IntArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def plot_certification(found: Certification) -> Figure:
    """Draw the bound of the distance against the steps of a chain, one panel for each form of blocks.

    Returns
    -------
    matplotlib.figure.Figure
        ``.savefig("curve.svg")`` writes it. Needs matplotlib, from ``pip install 'keepsum[report]'``.
    """
    if not found.chains:
        raise InputError("A curve needs a block that is drawn by a chain, this plan has none.")
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise InputError(
            "A plot needs matplotlib, which is not installed. Install it with: pip install 'keepsum[report]'"
        ) from None
    figure = Figure(figsize=(7.5, PANEL * len(found.chains) + 0.8), layout="constrained")
    for axes, group in zip(figure.subplots(len(found.chains), squeeze=False)[:, 0], found.chains, strict=True):
        _panel(axes, group)
    return figure


def _panel(axes: Axes, group: Convergence) -> None:
    steps = np.unique(np.linspace(0, max(2.0, 1.25 * group.steps), 600).astype(np.int64))
    estimate, upper = _bounds(group, steps)
    axes.set_yscale("log")
    axes.set_xlim(0, steps[-1])
    axes.set_ylim(FARTHEST / 10, 2)
    seen = estimate > 0
    axes.step(steps[seen], estimate[seen], where="post", color=BLUE, linewidth=2.2)
    axes.step(steps, np.minimum(upper, 1), where="post", color=BLUE, linewidth=1.2, linestyle=(0, (4, 2)))
    axes.axvline(group.steps, color=GREY, linewidth=0.9)
    axes.annotate(
        f"a draw: {group.steps:,} steps", (group.steps, 1e-5), xytext=(4, 0), textcoords="offset points", va="center",
        rotation=90, color=GREY, fontsize=10,
    )  # fmt: skip
    _name(axes, f"limit at {100 * group.confidence:.4g}%: {significant(group.upper)}", group.steps, group.upper, BLUE,
          left=True)  # fmt: skip
    # All pairs may have met at once: then there is only the limit to draw.
    below = steps[(estimate < 0.05) & seen]
    place = int(below[0]) if len(below) else int(steps[seen].max(initial=0))
    high = not len(below) and bool(seen.any())  # pairs that have not met: the curve never falls, its name is below it
    _name(axes, f"bound from {group.pairs:,} pairs", place / 3 if high else place, 0.05, BLUE)
    if not group.unmet:
        _extrapolation(axes, group, steps)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("steps of the chain")
    axes.set_ylabel("total variation distance,\nat most (log scale)")
    axes.spines[["top", "right"]].set_visible(False)
    set_title(axes, _finding(group), fontsize=11.5)


def _name(axes: Axes, words: str, x: float, y: float, colour: str, left: bool = False) -> None:
    """A line's name beside it, in the place of a legend."""
    side, offset = ("right", (-7, 6)) if left else ("left", (9, 4))
    axes.annotate(
        words, (x, max(y, FARTHEST)), xytext=offset, textcoords="offset points", ha=side, color=colour, fontsize=10
    )


def _bounds(group: Convergence, steps: IntArray) -> tuple[Floats, Floats]:
    from keepsum.convergence.bounds import tv_upper_bound

    found = tv_upper_bound(group.times, t=steps, confidence=group.confidence)
    return np.asarray(found.estimate), np.asarray(found.upper) + group.rounding


def _extrapolation(axes: Axes, group: Convergence, steps: IntArray) -> None:
    tail = GeometricTail.of(group.times.excess)
    beyond = steps[steps >= tail.start]
    values = np.array([tail.distance(int(t), group.lag) for t in beyond]) + group.rounding
    axes.plot(beyond, values, color=ORANGE, linewidth=1.8, linestyle=":")
    low = np.flatnonzero(values < 1e-6)
    place = low[0] if len(low) else len(beyond) - 1
    x, y = int(beyond[place]), float(values[place])
    _name(axes, "extrapolated from pairs, and rounding", x, y, ORANGE, left=x > steps[-1] / 2)
    # What is stated is not below what weights foretell, so it may lie above the line.
    axes.plot([group.steps], [group.extrapolated], marker="o", markersize=5, color=ORANGE)
    source = "extrapolated from weights" if group.extrapolated == group.foretold + group.rounding else "extrapolated"
    _name(axes, f"{source}: {significant(group.extrapolated)}", group.steps, group.extrapolated, ORANGE, left=True)


def _finding(group: Convergence) -> str:
    if group.unmet:
        return f"{group.form}: nothing is shown, {group.unmet:,} of {group.pairs:,} pairs had not met"
    return f"{group.form}: at most {significant(group.upper)} from its law"
