"""Two-way tables: the acceptance rate of column splitting, computed and measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

import keepsum as ks
from experiments.acceptance import acceptance, is_computed
from experiments.drawing import BLUE, GREEN, PINK, RED, new, note, save
from experiments.setting import Section, Setting
from experiments.small import EPSILON
from experiments.table_speed import name_of
from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting

Case = tuple[int, int, str, int]  # rows, columns, epsilon, blocks of frequencies (1: no labels)
GROUPS = {1: 1, 8: 8, 12: 16}
SQUARES = (4, 8, 16, 32, 64, 128)
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
EPSILONS = ("0.05", "0.1", "0.25", "0.5", "1", "1.5", "2", "2.5", "3", "4", "5")


@dataclass(frozen=True)
class Rates:
    """The acceptance rate of a table: computed (or nan), and what was measured."""

    computed: float
    accepted: int
    proposals: int

    @property
    def measured(self) -> float:
        """The fraction accepted, or if none was, a 95% upper limit."""
        return (self.accepted or 3) / self.proposals

    @property
    def limits(self) -> tuple[float, float]:
        """Clopper and Pearson's 95% limits."""
        k, n = self.accepted, self.proposals
        return float(stats.beta.ppf(0.025, k, n - k + 1)), float(stats.beta.ppf(0.975, k + 1, n - k)) if k < n else 1.0

    @property
    def texts(self) -> list[str]:
        """Both, as they stand in a table."""
        measured = f"{self.measured:.2g}" if self.accepted else f"< {self.measured:.1g}"
        return ["-" if math.isnan(self.computed) else f"{self.computed:.2g}", measured]


def accepted(rows: int, columns: int, epsilon: str, parts: int, blocks: int = 1) -> dict[str, Any]:
    """How many proposals were made and accepted, after at least so many parts of rows or 500 tables."""
    sampler = ColumnSplitting(Fraction(epsilon), np.ones((rows, columns)), labelling=Labelling(blocks, GROUPS[blocks]))
    rng = ks.rng(seed=f"accepted {rows} {columns} {epsilon}")
    tables = proposals = drawn = 0
    while drawn < parts and tables < 500:
        more_tables, more_proposals, more_parts = sampler.pilot(rng, parts - drawn)
        tables, proposals, drawn = tables + more_tables, proposals + more_proposals, drawn + more_parts
    return {"accepted": tables, "proposals": proposals}


def _cases(quick: bool) -> dict[str, dict[str, list[Case]]]:
    """The panels of the figure, and in each the cases of each line."""
    squares, lengths = (SQUARES[:3], LENGTHS[:2]) if quick else (SQUARES, LENGTHS)
    epsilons = EPSILONS[2:5] if quick else EPSILONS
    wide = [(16, 16, 1), (32, 32, 1), (32, 32, 12), (1000, 4, 1)]
    return {
        "n": {
            f"n × n, ε = {e}{_labels(blocks)}": [(n, n, e, blocks) for n in squares]
            for blocks in (1, 8)
            for e in (EPSILON, "1")
        },
        "rows r": {f"r × {c}, ε = {EPSILON}": [(n, c, EPSILON, 1) for n in lengths] for c in (4, 8, 16)},
        "ε": {f"{name_of((r, c))}{_labels(b)}": [(r, c, e, b) for e in epsilons] for r, c, b in wide},
    }


def _labels(blocks: int) -> str:
    return "" if blocks == 1 else ", labels"


def add(setting: Setting, section: Section) -> None:
    """Add the table and the figure of acceptance rates."""
    panels = _cases(setting.quick)
    cases = list(dict.fromkeys(case for lines in panels.values() for members in lines.values() for case in members))
    rates = {}
    for rows, columns, epsilon, blocks in cases:
        size = {"rows": rows, "columns": columns, "epsilon": epsilon, "blocks": blocks}
        measured = setting.cache.step(accepted, **size, parts=setting.scaled(2 * 10**7, 10**6))
        computed = float(setting.cache.step(computed_rate, **size)["rate"])
        rates[rows, columns, epsilon, blocks] = Rates(computed, int(measured["accepted"]), int(measured["proposals"]))
    section.say(
        "**Acceptance rate of column splitting**, computed from the normalising constants of the target and of the "
        "proposal (`experiments/acceptance.py`: nothing is simulated), and measured; without labels, with some (in 8 "
        "blocks and groups) or many (in 12 blocks and 16 groups). A dash stands where the approximation of the "
        "target's constant is not good."
    )
    section.table(
        "table_acceptance",
        ["table", "ε", "labels", "computed", "measured", "proposals"],
        [
            [name_of(case[:2]), case[2], {1: "none", 8: "some", 12: "many"}[case[3]], *one.texts, f"{one.proposals:,}"]
            for case, one in rates.items()
        ],
    )
    _draw_acceptance(setting, section, panels, rates)


def computed_rate(rows: int, columns: int, epsilon: str, blocks: int) -> dict[str, Any]:
    """The acceptance rate without any draw, or nan where the approximation is not good."""
    labelling = Labelling(blocks, GROUPS[blocks])
    good = is_computed(epsilon, rows, columns)
    return {"rate": acceptance(epsilon, rows, columns, labelling) if good else math.nan}


def _draw_acceptance(setting: Setting, section: Section, panels: Any, rates: dict[Case, Rates]) -> None:
    figure, grid = new(11.5, 4.4, 1, 3)
    for axes, (label, lines) in zip(grid[0], panels.items(), strict=True):
        styles = zip((BLUE, RED, GREEN, PINK), ("o", "s", "D", "^"), strict=True)
        for (name, cases), (colour, mark) in zip(lines.items(), styles, strict=False):
            x = [float(case[2 if label == "ε" else 0]) for case in cases]
            axes.plot(x, [rates[case].computed for case in cases], color=colour, linewidth=1.5)
            axes.plot([], [], mark, color=colour, markersize=5, label=name)
            for at, one in zip(x, (rates[case] for case in cases), strict=True):
                if one.accepted:
                    axes.plot([at, at], one.limits, color=colour, linewidth=1)
                axes.plot(at, one.measured, mark if one.accepted else "v", color=colour,
                          mfc=colour if one.accepted else "white", markersize=5)  # fmt: skip
        axes.set_xscale("log", base=10 if label == "ε" else 2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter("")
        axes.set_yscale("log" if label == "ε" else "linear")
        axes.set_xlabel(label)
        axes.grid(axis="y", color="#EEEEEE")
        axes.legend(frameon=False, loc="lower left")
    for axes in grid[0, :2]:
        axes.set_ylim(0, 1.02)
    grid[0, 0].set_ylabel("acceptance rate")
    grid[0, 0].set_title("Falls slowly with columns,")
    grid[0, 1].set_title("not with rows;")
    grid[0, 2].set_title("lowest at ε 2.5 to 3")
    note(
        figure,
        "lines computed, where the approximation is good; points measured; triangles: none accepted, upper limit",
    )
    caption = "Acceptance rate of column splitting over columns, rows and ε: computed, and measured"
    section.figure(save(figure, setting.out, "table_acceptance"), caption)
