"""Figures: one style, colours that colour-blind readers can distinguish, small files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from PIL import Image

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito (2008).
BLUE, RED, GREEN, PINK, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
GREY = "#595959"
DPI = 110
STYLE = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "keepsum",  # reproducible files
    "savefig.dpi": DPI,
}


def new(width: float, height: float, rows: int = 1, columns: int = 1, **shared: Any) -> tuple[Figure, Any]:
    """A figure in the house style, and its axes as an array of (rows, columns)."""
    mpl.rcParams.update(STYLE)
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def save(figure: Figure, folder: Path, name: str) -> str:
    """Write PNG and SVG files without a date, so that a second run writes the same bytes; check that titles fit."""
    figure.draw_without_rendering()
    extents = [axes._left_title.get_window_extent() for axes in figure.axes if axes.get_title(loc="left")]
    for k, extent in enumerate(extents):
        if extent.x1 > figure.bbox.x1 or any(extent.overlaps(other) for other in extents[:k]):
            raise AssertionError(f"a title of {name} does not fit the figure")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", dpi=DPI, metadata={"Software": None})
    _with_few_colours(folder / f"{name}.png")
    figure.savefig(folder / f"{name}.svg", dpi=DPI, metadata={"Date": None, "Creator": None})
    return name


def _with_few_colours(file: Path) -> None:
    """Keep the 256 commonest colours of a PNG file: a third of the size, and nothing that an eye can see."""
    with Image.open(file) as picture:
        few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(file, optimize=True)


def boxes(axes: Axes, draws: np.ndarray, at: Sequence[float] | np.ndarray, colour: str, width: float = 0.6) -> None:
    """Boxplots of columns: quartiles, whiskers to 1.5 times the interquartile range, crosses beyond.

    Drawn as a few collections, rasterised, because a thousand separate lines make a huge SVG.
    """
    at, half = np.asarray(at, dtype=float), width / 2
    low, middle, high = np.percentile(draws, [25, 50, 75], axis=0)
    reach = 1.5 * (high - low)
    inside = (draws >= low - reach) & (draws <= high + reach)
    bottom = np.where(inside, draws, np.inf).min(axis=0)
    top = np.where(inside, draws, -np.inf).max(axis=0)
    axes.vlines(np.r_[at, at], np.r_[bottom, high], np.r_[low, top], color=colour, linewidth=0.9, rasterized=True)
    corners = [
        [(x - half, a), (x + half, a), (x + half, b), (x - half, b)] for x, a, b in zip(at, low, high, strict=True)
    ]
    axes.add_collection(
        PolyCollection(corners, facecolor=colour + "33", edgecolor=colour, linewidth=0.9, rasterized=True)
    )
    axes.hlines(middle, at - half, at + half, color=colour, linewidth=2, rasterized=True)
    rows, columns = np.nonzero(~inside)
    outliers = np.unique(np.c_[at[columns], draws[rows, columns]], axis=0)
    axes.plot(
        outliers[:, 0], outliers[:, 1], "x", color=colour, markersize=3, alpha=0.5, markeredgewidth=0.6, rasterized=True
    )


def note(figure: Figure, text: str) -> None:
    """Add a line below the figure that says where the numbers come from."""
    figure.supxlabel(text, fontsize=9, color=GREY, x=0.99, ha="right")


def zero_line(axes: Axes) -> None:
    """Add a line at zero, the mean of unbiased noise."""
    axes.axhline(0, color=GREY, linewidth=0.8, zorder=0)
