"""The pictures of docs/guide.md: `python -m docs.guide.pictures` draws them anew beside this file, in seconds.

Every figure that the page quotes from a picture comes from a function here, so that a test can check it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import keepsum as ks
from experiments.drawing import BLUE, DPI, GREEN, GREY, ORANGE, new

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
CHILDREN = HERE.parent.parent / "examples" / "children.csv"
CATEGORIES = {"county": ["Alpha", "Beta", "Gamma", "Delta"], "education": ["Low", "Medium", "High", "Very High"]}
SEED = 51  # of the release on the page; pictures and examples are drawn again from seeds, releases never
DRAWS = 200_000
RELEASES = 300
DISTRICTS = 200
WIDTH = 8.0  # inches
CLEAR = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}  # behind words, so that no line runs through them
EDGE = 16  # pixels around the part of the report


def children() -> ks.Table:
    """The table of the page."""
    return ks.read_table(CHILDREN, count="n", domain=CATEGORIES)


def release() -> ks.Release:
    """The release of the page: both margins kept, epsilon 1 for one person."""
    return ks.release(
        children(),
        keep=["county", "education"],
        mechanism=ks.Laplace(epsilon=1),
        rng=ks.rng(seed=SEED),
    )


# -- margin of error against epsilon ------------------------------------------------------------------


def curve(values: list[str] | None = None) -> Figure:
    """What each epsilon buys, as `keepsum accuracy --plot` draws it."""
    totals = children().keep("county", "education")
    return ks.accuracy_curve(keep=totals, mechanism=ks.Laplace(epsilon="0.592"), values=values).plot()


# -- the three kinds of noise -------------------------------------------------------------------------


def mechanisms() -> dict[str, Any]:
    """Each kind of noise, at the same loss for one person."""
    return {
        "l1 Laplace": ks.Laplace(epsilon=1),
        "l2 Laplace": ks.Laplace(epsilon=1, norm="l2"),
        "Gaussian (delta 0.000001)": ks.Gaussian(epsilon=1, delta="1e-6"),
    }


def noise(draws: int = DRAWS) -> Figure:
    """How often each kind moves a count, and how far."""
    figure, panels = new(WIDTH, 6.4, rows=3, sharex=True, sharey=True)
    reach = 25
    for axes, (name, mechanism), colour in zip(panels[:, 0], mechanisms().items(), (BLUE, ORANGE, GREEN), strict=True):
        plan = ks.plan(children(), keep=["county", "education"], mechanism=mechanism)
        values = plan.sample(draws, rng=ks.rng(seed=SEED))[:, 0]
        shares = [100 * float((values == z).mean()) for z in range(-reach, reach + 1)]
        margin = int(plan.accuracy().margins[0])
        axes.bar(range(-reach, reach + 1), shares, color=colour, width=0.8)
        axes.axvspan(-margin - 0.5, margin + 0.5, color="#EEEEEE", zorder=0)
        axes.set_title(f"{name}: at least 95% of the time within ±{margin}")
        axes.set_ylabel("percent of draws")
    panels[-1, 0].set_xlim(-reach - 0.5, reach + 0.5)
    panels[-1, 0].set_xlabel("noise added to one count of the example, at per-person epsilon 1")
    return figure


# -- what cutting off does to a sum -------------------------------------------------------------------


def districts() -> ks.Table:
    """A made-up table: causes of death by district, the rarest with one death in every fourth district."""
    counts = [[int(d % 4 == 0), 2 + d % 3, 8 + d % 9, 20 + d % 11] for d in range(DISTRICTS)]
    axes = {
        "district": [f"District {d + 1}" for d in range(DISTRICTS)],
        "cause": ["rare", "less rare", "common", "most"],
    }
    return ks.Table.from_array(counts, axes=axes)


def sums(releases: int = RELEASES) -> Mapping[str, np.ndarray]:
    """Deaths of the rare cause over all districts, in many releases that keep the total of each district."""
    table = districts()
    plan = ks.plan(table, keep=["district"], mechanism=ks.Laplace(epsilon=2))
    found: dict[str, list[int]] = {"as drawn": [], "cut off at 0": [], "--nonnegative": []}
    for seed in range(releases):
        drawn = plan.release(table, rng=ks.rng(seed=seed))
        without = ks.postprocess.nonnegative(drawn)
        tables = (drawn.table.counts, np.maximum(drawn.table.counts, 0), without.table.counts)
        for column, counts in zip(found.values(), tables, strict=True):
            column.append(int(counts.reshape(DISTRICTS, -1)[:, 0].sum()))
    return {name: np.array(column) for name, column in found.items()}


def true_sum() -> int:
    """The sum that all of them are about."""
    return sum(d % 4 == 0 for d in range(DISTRICTS))


def negative(releases: int = RELEASES) -> Figure:
    """The sums of many releases, as drawn and without negative counts."""
    figure, panels = new(WIDTH, 4.0)
    axes = panels[0, 0]
    spread = np.random.default_rng(SEED)
    drawn = sums(releases)
    for y, found, colour in zip((2, 1, 0), drawn.values(), (BLUE, ORANGE, GREEN), strict=True):
        heights = y + spread.uniform(-0.2, 0.2, size=len(found))
        axes.plot(found, heights, "o", color=colour, markersize=3, alpha=0.5, markeredgewidth=0)
        mean = float(found.mean())
        axes.plot([mean, mean], [y - 0.27, y + 0.27], color="black", linewidth=2)
        axes.annotate(
            f"mean {mean:.0f}", (mean, y + 0.1), xytext=(0, 28), textcoords="offset points", ha="center", bbox=CLEAR
        )
    true = true_sum()
    axes.axvline(true, color=GREY, linestyle=(0, (4, 3)), linewidth=1.2, zorder=0)
    axes.annotate(f"true sum {true}", (true, -0.42), xytext=(5, 0), textcoords="offset points", color=GREY, va="center")
    axes.set_yticks([2, 1, 0], list(drawn))
    axes.set_ylim(-0.6, 2.75)
    axes.set_xlabel(f"deaths of a rare cause, summed over {DISTRICTS} districts; each dot is one release")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure


# -- the report ---------------------------------------------------------------------------------------


def report(path: Path) -> None:
    """Take a picture of the table in the report, in Debian's Chromium."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page_file = Path(folder) / "report.html"
        release().report(page_file)
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 760, "height": 1000})
        page.goto(page_file.as_uri())
        box = page.locator("section", has=page.locator("#table")).bounding_box()
        if box is None:
            raise AssertionError("the report has no table")
        clip = {
            "x": box["x"] - EDGE,
            "y": box["y"] + 1,  # below the line between two parts
            "width": box["width"] + 2 * EDGE,
            "height": box["height"] + EDGE - 1,
        }
        page.screenshot(path=path, clip=clip, full_page=True)
        browser.close()


FIGURES = {"curve": curve, "noise": noise, "negative": negative}


def save(figure: Figure, path: Path) -> None:
    """Write a PNG file without a date, so that a second run writes the same."""
    figure.savefig(path, dpi=DPI, metadata={"Software": None})


def main(folder: Path) -> None:
    """Draw all pictures into a folder."""
    for name, draw in FIGURES.items():
        save(draw(), folder / f"{name}.png")
    report(folder / "report.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
