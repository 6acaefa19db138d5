"""The plots of a run, in the style of the paper's figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.drawing import BLUE, GREEN, GREY, ORANGE, PINK, RED, new, note, save

Data = dict[str, Any]
CAPTIONS = {
    "cells": "Nanoseconds per cell over the number of cells: ours, NumPy, OpenDP",
    "tables": "Seconds per draw over the size of a two-way table: exact, Algorithm 1, projection by HiGHS",
    "lattices": "Seconds for a Smith form over the size of a table: ours and sympy",
    "targets": "Every figure as a multiple of its target, with quartiles",
}
COLOURS = (BLUE, GREEN, ORANGE, PINK)


def drawn(data: Data) -> list[str]:
    """The names of the plots that there are figures for."""
    curves = [
        name for name in ("cells", "tables", "lattices") if any(curve["plot"] == name for curve in data["curves"])
    ]
    return curves + ["targets"] * any(figure["target"] for figure in data["figures"])


def draw_all(data: Data, out: Path) -> None:
    """Draw what was measured."""
    for name in drawn(data):
        DRAWN[name](data, out)


def cells(data: Data, out: Path) -> None:
    """Time per cell."""
    figure, panels = new(9, 4.6)
    axes = panels[0, 0]
    for curve, colour in _curves(data, "cells"):
        _line(axes, curve, colour, [1e9 / p["size"] for p in curve["points"]])
    _finish(axes, "number of cells", "CPU time per cell, ns", "Time per cell of exact noise")
    note(
        figure, "l1 Laplace noise, ε = 0.25, one thread; NumPy and OpenDP keep no totals; 10⁸ cells are written to disk"
    )
    save(figure, out, "cells")


def tables(data: Data, out: Path) -> None:
    """Time per draw of square tables."""
    figure, panels = new(9, 4.6)
    axes = panels[0, 0]
    for curve, colour in _curves(data, "tables"):
        _line(axes, curve, colour)
    _finish(
        axes, "cells of a square table with both margins kept", "CPU seconds per draw", "Exact draws of square tables"
    )
    note(figure, "l1 Laplace noise, ε = 0.25; open circles: at least so long, the coupled chains had not met")
    save(figure, out, "tables")


def lattices(data: Data, out: Path) -> None:
    """Time of Smith forms."""
    figure, panels = new(9, 4.2)
    axes = panels[0, 0]
    for curve, colour in _curves(data, "lattices"):
        _line(axes, curve, colour)
    _finish(axes, "cells of a square table with both margins kept", "CPU seconds", "Smith form with both transforms")
    save(figure, out, "lattices")


def targets(data: Data, out: Path) -> None:
    """Each figure relative to its target, so that the left side of the line is within it."""
    judged = [figure for figure in data["figures"] if figure["target"]][::-1]
    figure, panels = new(10, 1.2 + 0.27 * len(judged))
    axes = panels[0, 0]
    for y, one in enumerate(judged):
        limit, more = one["limit"]
        middle, *ends = (limit / v if more else v / limit for v in (one["median"], one["low"], one["high"]))
        axes.plot(ends, [y, y], color=RED if one["missed"] else BLUE, linewidth=3, alpha=0.5, solid_capstyle="butt")
        axes.plot(middle, y, "o", color=RED if one["missed"] else BLUE, markersize=6)
    axes.axvline(1, color=GREY, linewidth=1)
    axes.set_xscale("log")
    axes.set_ylim(-1, len(judged))
    axes.set_yticks(range(len(judged)), [one["what"] for one in judged], fontsize=8.5)
    axes.set_xlabel("cost relative to the target: left of the line is within it")
    save(figure, out, "targets")


DRAWN = {"cells": cells, "tables": tables, "lattices": lattices, "targets": targets}


def _curves(data: Data, plot: str) -> list[tuple[Data, str]]:
    chosen = [curve for curve in data["curves"] if curve["plot"] == plot and curve["points"]]
    return list(zip(chosen, COLOURS, strict=False))


def _line(axes: Any, curve: Data, colour: str, factors: list[float] | None = None) -> None:
    """The best rounds joined, with bars to the quartiles; a lower limit is an open circle with an arrow."""
    scale = factors or [1.0] * len(curve["points"])
    growth = "" if curve["exponent"] is None else f", growth exponent {curve['exponent']:.2f}"
    known = [(p, f) for p, f in zip(curve["points"], scale, strict=True) if not p["least"]]
    sizes = [p["size"] for p, _ in known]
    best, low, high = ([p[end] * f for p, f in known] for end in ("best", "low", "high"))
    axes.plot(sizes, best, "o-", color=colour, linewidth=1.4, markersize=6, label=f"{curve['label']}{growth}")
    axes.vlines(sizes, low, high, color=colour, linewidth=3, alpha=0.5)
    for p, f in zip(curve["points"], scale, strict=True):
        if p["least"]:
            y = p["best"] * f
            arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4}
            axes.annotate("", (p["size"], 4 * y), (p["size"], y), arrowprops=arrow)
            axes.plot(p["size"], y, "o", color=colour, mfc="white", markersize=6)


def _finish(axes: Any, x: str, y: str, title: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    low, high = axes.get_ylim()
    axes.set_ylim(low / 1.5, high * 30)
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="upper left")
