"""The picture of a table whose columns are taken off one at a time, with one bridge."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import FancyBboxPatch
from matplotlib.ticker import MaxNLocator

import keepsum as ks
from experiments.drawing import BLUE, GREY, ORANGE, RED, new, note
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROWS, COLUMNS, EPSILON, SEED = 6, 5, Fraction(1, 2), 11
STEP, LEVEL, HALF = 0.5, 4.9, 0.36  # of a number, of a level of the tree, of the width of a box
SPLIT = 1  # the node whose bridge is shown


@dataclass(frozen=True)
class Tree:
    """Node k stands for the columns from the k-th on; the leaves, the columns, come after all inner nodes."""

    columns: int

    @property
    def inner(self) -> int:
        """The number of inner nodes: 0, 1, ... with the root first."""
        return self.columns - 1

    def children(self, node: int) -> tuple[int, int]:
        """The column that is taken off, and the others."""
        return self.inner + node, node + 1 if node + 1 < self.inner else 2 * self.inner


def sums_of(table: np.ndarray) -> np.ndarray:
    """The sums of each row below each node: nodes x rows."""
    return np.concatenate([np.cumsum(table[:, ::-1], axis=1)[:, :0:-1].T, table.T])


def places(tree: Tree) -> np.ndarray:
    """Where nodes stand: leaves side by side, inner nodes in the middle of their children and above them."""
    at = np.zeros((2 * tree.inner + 1, 2))
    at[tree.inner :, 0] = np.arange(tree.columns)
    for node in reversed(range(tree.inner)):
        left, right = tree.children(node)
        at[left, 1] = at[right, 1]
        at[node] = (at[left, 0] + at[right, 0]) / 2, at[right, 1] + LEVEL
    return at


def draw_tree() -> Figure:
    """A drawn table as the leaves of its tree, and the bridge at one node."""
    table = np.empty((1, ROWS * COLUMNS), dtype=np.int64)
    ColumnSplitting(EPSILON, np.ones((ROWS, COLUMNS), dtype=np.int64)).draw_into(table, ks.rng(seed=SEED))
    tree = Tree(COLUMNS)
    sums = sums_of(table.reshape(ROWS, COLUMNS))
    figure, panels = new(10.5, 8.6, 1, 2, width_ratios=[1.55, 1])
    _draw_nodes(panels[0, 0], tree, sums, places(tree))
    _draw_bridge(panels[0, 1], sums[SPLIT], sums[tree.children(SPLIT)[0]])
    note(figure, f"a {ROWS} × {COLUMNS} table drawn at ε = {EPSILON}; blue numbers are positive, red ones negative")
    return figure


def _draw_nodes(axes: Axes, tree: Tree, sums: np.ndarray, at: np.ndarray) -> None:
    height = STEP * (ROWS - 1)
    for node in range(tree.inner):
        for child in tree.children(node):
            colour = ORANGE if node == SPLIT else "#BBBBBB"
            top = at[child, 1] + height + (0.85 if child < tree.inner else 0.35)
            ends = [at[node, 0], at[child, 0]], [at[node, 1] - 0.85, top]
            axes.plot(*ends, color=colour, linewidth=2.2 if node == SPLIT else 1.2, zorder=0)
    for node, (x, y) in enumerate(at):
        edge = ORANGE if node == SPLIT else "#BBBBBB"
        box = FancyBboxPatch((x - HALF, y - 0.32), 2 * HALF, height + 0.64, boxstyle="round,pad=0,rounding_size=0.12",
                             facecolor="white", edgecolor=edge, linewidth=1.3, mutation_aspect=3)  # fmt: skip
        axes.add_patch(box)
        for row, number in enumerate(sums[node]):
            colour = GREY if number == 0 else (BLUE if number > 0 else RED)
            axes.text(x, y + height - STEP * row, f"{number}".replace("-", "−"), ha="center", va="center", color=colour)
        axes.text(x, y - 0.6, "sum 0", ha="center", va="center", color=GREY, fontsize=8.5)
        name = f"column {node - tree.inner + 1}" if node >= tree.inner else _columns(tree, node)
        below = -1.1 if node >= tree.inner else height + 0.6
        axes.text(x, y + below, name, ha="center", va="center", fontsize=9, fontweight="bold")
    axes.set_title("Every node: the sums of each row over its columns")
    axes.set_xlim(-0.6, COLUMNS - 0.4)
    axes.set_ylim(-1.5, at[0, 1] + height + 1.0)
    axes.axis("off")


def _columns(tree: Tree, node: int) -> str:
    """The columns below an inner node."""
    return f"columns {node + 1} to {tree.columns}" if node else "all columns"


def _draw_bridge(axes: Axes, whole: np.ndarray, left: np.ndarray) -> None:
    """The running sum of the parts; the row that is solved for has the flattest law, that of the largest sum."""
    path, solved = np.concatenate([[0], np.cumsum(left)]), int(np.argmax(np.abs(whole)))
    foot = path.min() - 0.25 * np.ptp(path)
    axes.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    for row, (y, u) in enumerate(zip(whole, left, strict=True)):
        ends = [row, row + 1], path[row : row + 2]
        axes.plot(*ends, color=ORANGE, linewidth=2.2, linestyle=":" if row == solved else "-")
        colour = BLUE if u > 0 else (RED if u < 0 else GREY)
        axes.annotate(f"{u}".replace("-", "−"), (row + 0.5, path[row : row + 2].mean()), (-10, 7 if u >= 0 else -9),
                      textcoords="offset points", ha="center", va="center", color=colour)  # fmt: skip
        axes.text(row + 0.5, foot, f"{y}".replace("-", "−"), ha="center", color=GREY)
    axes.plot(range(ROWS + 1), path, "o", color=ORANGE, markersize=6)
    axes.text(-0.05, foot, "y", ha="right", color=GREY)
    axes.annotate("solved for", (solved + 0.5, path[solved : solved + 2].mean()), (42, -24 if solved < 3 else 24),
                  textcoords="offset points", ha="center", color="#8A5F00")  # fmt: skip
    axes.set_xticks(np.arange(ROWS) + 0.5, [str(row + 1) for row in range(ROWS)])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.3, ROWS + 0.2)
    axes.set_ylim(foot - 0.08 * np.ptp(path), path.max() + 0.12 * np.ptp(path))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("row")
    axes.set_ylabel("running sum of u")
    axes.set_title(
        f"The bridge: y splits into u, in column {SPLIT + 1},\nand y − u, over columns {SPLIT + 2} to {COLUMNS}"
    )
