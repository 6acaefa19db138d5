"""One release accurate at several levels, beside noise level by level that is mended from the top down.

Both have the same epsilon for cells, counties and states. `make paper` runs this with everything else. Alone, in less
than a minute: `python -m experiments.levels`; FULL=1 for all draws; OUT=folder for another folder.
"""

from __future__ import annotations

import csv
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter
from scipy import sparse

import keepsum as ks
from experiments.cache import Cache
from experiments.census import races
from experiments.drawing import BLUE, PINK, new, note, save, zero_line
from experiments.setting import Section, Setting
from experiments.small import RATE, unbiased

EPSILON = 1  # of one person who moves from any cell to any other
STATES, COUNTIES, CELLS = 12, 25, 8  # of the generated hierarchy
SMALL = 4  # a quarter of the totals of a level are its small ones, and a quarter its large ones
BINS = 12  # of the figure
OURS, THEIRS = (
    "exact noise (keepsum)",
    "level by level, non-negative from the top down (ours, after TopDown, simplified)",
)

MARKS = {OURS: (BLUE, "s"), THEIRS: (PINK, "o")}


@dataclass(frozen=True)
class Hierarchy:
    """Counts by state, county and cell; the grand total is kept."""

    name: str
    domain: ks.Domain
    counts: np.ndarray

    @property
    def levels(self) -> dict[str, np.ndarray]:
        """The total of each level that each cell is in."""
        index = self.domain.marginal_index
        return {
            "states": index(["state"]),
            "counties": index(["state", "county"]),
            "cells": np.arange(len(self.counts)),
        }


@dataclass(frozen=True)
class Errors:
    """The errors of the totals of one level, one row per draw, and their true counts."""

    error: np.ndarray
    true: np.ndarray

    @property
    def rmse(self) -> float:
        """The root mean squared error of a total."""
        return float(np.sqrt((self.error.astype(float) ** 2).mean()))

    @property
    def negative(self) -> float:
        """The share of published totals below 0."""
        return float((self.error + self.true < 0).mean())

    def mean(self, chosen: np.ndarray) -> tuple[float, float]:
        """The mean error of some totals, and its standard error: draws are independent, totals need not be."""
        means = self.error[:, chosen].mean(axis=1)
        return float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means)))

    @property
    def by_size(self) -> tuple[np.ndarray, np.ndarray]:
        """The small totals of the level, and the large ones."""
        order, count = np.argsort(self.true, kind="stable"), max(1, len(self.true) // SMALL)
        return order[:count], order[-count:]


def midwest() -> Hierarchy:
    """The 437 counties of plotnine's `midwest`, with five races as cells."""
    names, tables = races()
    counties = {state: [f"{state} {k}" for k in range(len(table))] for state, table in tables.items()}
    domain = ks.Domain({"state": list(tables), "county": counties, "race": names}, within={"county": "state"})
    return Hierarchy("midwest", domain, np.concatenate([table.reshape(-1) for table in tables.values()]))


def generated() -> Hierarchy:
    """Counties of 20 to 20,000 people, half of whom are in the first cell, a quarter in the second, and so on."""
    number = STATES * COUNTIES
    people = np.geomspace(20, 20_000, number)[np.arange(number) * 7 % number]
    counts = np.floor(people[:, None] / 2.0 ** np.arange(1, CELLS + 1)).astype(np.int64)
    counties = {f"s{s}": [f"s{s} c{k}" for k in range(COUNTIES)] for s in range(STATES)}
    domain = ks.Domain({"state": list(counties), "county": counties, "cell": range(CELLS)}, within={"county": "state"})
    return Hierarchy("generated", domain, counts.reshape(-1))


def shared(hierarchy: Hierarchy) -> ks.BudgetShares:
    """The shares with the least mean squared error, all levels counting alike."""
    return ks.share_budget(hierarchy.domain, ["state", "county"], EPSILON, keep=[[]])


def errors(hierarchy: Hierarchy, draws: int) -> dict[str, dict[str, Errors]]:
    """The errors of both, level by level, with the same epsilons."""
    keep = ks.Invariants.margins(hierarchy.domain, [[]])
    plan = ks.plan(keep=keep, mechanism=shared(hierarchy).mechanism)
    mechanism, rng = plan.mechanism.request(), ks.rng(seed=f"levels {hierarchy.name}")
    focus = {level.axes: level.weight for level in mechanism.focus}
    noise = plan.sample(draws, rng=rng)
    mended = ks.baselines.topdown_like(hierarchy.counts, keep, mechanism.epsilon, draws, focus=focus, rng=rng)
    found: dict[str, dict[str, Errors]] = {}
    for level, place in hierarchy.levels.items():
        ones = np.ones(len(place), dtype=np.int64)
        sums = sparse.csr_array((ones, (np.arange(len(place)), place)))
        true = hierarchy.counts @ sums
        found[level] = {OURS: Errors(noise @ sums, true), THEIRS: Errors((mended - hierarchy.counts) @ sums, true)}
    return found


def run(setting: Setting) -> Section:
    """Both hierarchies: a table of errors, and a figure."""
    draws = setting.scaled(2_000, 100)
    section = Section("Several levels in one release, beside a budget for each level")
    section.say(
        f"States, counties and cells, the grand total kept, ε = {EPSILON} for one person, with the shares that "
        f"`ks.share_budget` finds for equal weights; {draws:,} draws. *Exact noise* is one draw whose levels add up "
        f"(a [focus](../../docs/focus.md)). Beside it each level is measured with the same epsilon and mended from the "
        f"top down: non-negative, whole, adding up. That is ours, after TopDown and much simplified; it is no "
        f"model of any published product. Mean errors have their standard errors. Small and large totals are the "
        f"lowest and the highest quarter of a level."
    )
    rows, panels = [], []
    for hierarchy in (midwest(), generated()):
        found = errors(hierarchy, draws)
        rows += [_row(hierarchy.name, level, name, of[name]) for level, of in found.items() for name in (OURS, THEIRS)]
        panels.append((hierarchy.name, found))
        section.say(_sentence(hierarchy, found))
    section.table(
        "levels",
        ["table", "level", "method", "root mean squared error", "mean error: small totals", "large totals",
         "negative"],
        rows,
    )  # fmt: skip
    section.figure(_draw(setting, panels, draws), "Mean error of totals against their true count, level by level")
    return section


def _row(name: str, level: str, method: str, of: Errors) -> list[str]:
    small, large = (of.mean(chosen) for chosen in of.by_size)
    means = [f"{mean:+.2f} ± {error:.2f}" for mean, error in (small, large)]
    return [name, level, method.split(" (")[0], f"{of.rmse:.2f}", *means, f"{of.negative:.1%}"]


def _sentence(hierarchy: Hierarchy, found: dict[str, dict[str, Errors]]) -> str:
    chance = min(1.0, len(found) * min(unbiased(of[OURS].error) for of in found.values()))
    verdict = "no mean error of any total is seen" if chance >= RATE else "**a mean error is seen**"
    cells, ratio = found["cells"], {level: of[THEIRS].rmse / of[OURS].rmse for level, of in found.items()}
    ratios = ", ".join(f"{value:.2f} in {level}" for level, value in ratio.items())
    return (
        f"**{hierarchy.name}** ({len(hierarchy.counts):,} cells): in exact noise {verdict} (p = {chance:.2g}), and "
        f"{cells[OURS].negative:.1%} of its cells are negative, none of the other's. The root mean squared error "
        f"of the other over that of exact noise is {ratios}."
    )


def _draw(setting: Setting, panels: list[tuple[str, dict[str, dict[str, Errors]]]], draws: int) -> str:
    figure, grid = new(11, 6.6, len(panels), 3)
    for row, (name, found) in zip(grid, panels, strict=True):
        for axes, (level, of) in zip(row, found.items(), strict=True):
            _panel(axes, of)
            axes.set_title(f"{name}: {level}")
        row[0].set_ylabel("mean error")
    for axes in grid[-1]:
        axes.set_xlabel("true count (log scale)")
    marks = [Line2D([], [], marker=marker, color=colour, linestyle="") for colour, marker in MARKS.values()]
    figure.legend(marks, MARKS.keys(), loc="outside upper left", ncols=2, frameon=False, fontsize=10)
    note(figure, f"bars: two standard errors; {draws:,} draws, ε = {EPSILON} for one person, grand total kept")
    return save(figure, setting.out, "levels")


def _panel(axes: Any, of: dict[str, Errors]) -> None:
    """Mean errors of groups of totals of about the same count."""
    true = of[OURS].true
    groups = [group for group in np.array_split(np.argsort(true, kind="stable"), min(BINS, len(true))) if len(group)]
    for (name, errors), shift in zip(of.items(), (0.97, 1.03), strict=True):
        colour, marker = MARKS[name]
        at = np.array([max(0.5, float(np.median(true[group]))) for group in groups]) * shift
        means, deviations = np.array([errors.mean(group) for group in groups]).T
        axes.errorbar(at, means, 2 * deviations, fmt=marker, color=colour, markersize=4.5, linewidth=1.2)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else "0")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(axes.get_xlim()[0] / 1.2, axes.get_xlim()[1] * 1.2)
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top + 0.15 * (top - bottom))
    words = "RMSE " + " and ".join(f"{errors.rmse:.1f}" for errors in of.values())
    axes.text(0.99, 0.97, words, ha="right", va="top", transform=axes.transAxes, fontsize=10)
    zero_line(axes)


def main() -> int:
    """Run this part alone, quick unless FULL=1: figure and table, and what it says on standard output."""
    out = Path(os.environ.get("OUT") or Path(__file__).parent / "out")
    out.mkdir(parents=True, exist_ok=True)
    section = run(Setting(out, os.environ.get("FULL", "") in ("", "0"), Cache(out / "cache", lambda line: None)))
    for name, rows in section.tables.items():
        with (out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    print("\n\n".join([f"## {section.title}", *section.text]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
