"""Two-way tables: draws per second, exact, by our general chain, and by the paper's, as `make bench` measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.results import load, shown, two_digits
from experiments.drawing import BLUE, GREEN, ORANGE, new, note, save
from experiments.setting import Section, Setting
from experiments.small import EPSILON

TV = 0.01  # the total variation that `make bench` runs the paper's chain to
Shape = tuple[int, int]
SHAPES: tuple[Shape, ...] = (
    *((4, 4), (5, 5), (6, 6), (8, 8), (16, 16), (32, 32), (64, 64), (128, 128)),
    (1000, 4),
)


@dataclass(frozen=True)
class Speeds:
    """Draws per second of a table; None where a chain was not run.

    Attributes
    ----------
    exact, general, chain
        By splitting columns, by our general chain, and by the paper's.
    steps
        The steps of the paper's chain per draw.
    met
        Whether coupled pairs of the paper's chain had met; if not, its steps are a lower limit.
    """

    exact: float
    general: float | None = None
    chain: float | None = None
    steps: int = 0
    met: bool = True

    @classmethod
    def of(cls, shape: Shape, figures: Mapping[str, Any]) -> Speeds:
        """What was measured of a table."""
        name = f"two-way/{shape[0]}x{shape[1]}/{EPSILON}"
        exact, general, chain = (
            figures.get(f"{name}{which}/draws_per_second", {}).get("value")
            for which in ("", "/general", "/algorithm_1")
        )
        if chain is None:
            return cls(exact)
        steps, met = (figures[f"{name}/algorithm_1/{what}"]["value"] for what in ("steps", "met"))
        return cls(exact, general, chain, steps, met == "yes")

    @property
    def row(self) -> list[str]:
        """As cells of a table."""
        general = "-" if self.general is None else two_digits(self.general)
        if self.chain is None:
            return [two_digits(self.exact), general, "-", "-"]
        below, above = ("", "") if self.met else ("< ", "> ")
        steps = shown({"value": self.steps, "unit": "steps"})
        return [two_digits(self.exact), general, f"{below}{two_digits(self.chain)}", f"{above}{steps}"]


def add(setting: Setting, section: Section) -> None:
    """Add the table and the figure of draws per second."""
    figures = load()["figures"]
    speeds = {shape: Speeds.of(shape, figures) for shape in SHAPES}
    ours, others = (figures[f"two-way/4x4/{EPSILON}/{name}draws_per_second"] for name in ("", "algorithm_1/"))
    section.say(
        f"**Draws per second**, ε = {EPSILON}, CPU seconds of one core (columns: {ours['machine']}, {ours['date']}; "
        f"others: {others['machine']}, {others['date']}). *Column splitting* is exact. *General* is our chain for any "
        f"totals, whose total variation is estimated. "
        f"*Algorithm 1* is the paper's chain, compiled, run until coupled pairs bound its total variation by {TV:g}; "
        f"where pairs had not met when given up, its steps are a lower limit and its draws per second an upper limit."
    )
    section.table(
        "table_speed",
        ["table", "column splitting, draws per second", "general, draws per second",
         "Algorithm 1, draws per second", "its steps per draw"],
        [[name_of(shape), *one.row] for shape, one in speeds.items()],
    )  # fmt: skip
    _draw_speed(setting, section, speeds)


def _draw_speed(setting: Setting, section: Section, speeds: dict[Shape, Speeds]) -> None:
    figure, panels = new(10, 4.9)
    axes = panels[0, 0]
    place = {shape: k for k, shape in enumerate(speeds)}
    for shape, one in speeds.items():
        x, rate = place[shape], one.exact
        axes.plot(x, rate, "s", color=BLUE, markersize=9)
        axes.annotate(two_digits(rate), (x, rate), (0, 8), textcoords="offset points", ha="center", color=BLUE)
        if one.general is not None:
            axes.plot(x - 0.13, one.general, "^", color=GREEN, ms=8)  # beside the paper's
        if one.chain is not None:
            _chain(axes, x, one.chain, one.met)
    _join(axes, place, {shape: one.exact for shape, one in speeds.items()}, BLUE)
    axes.set_yscale("log")
    axes.set_xticks(range(len(place)), [name_of(shape) for shape in place])
    axes.set_xlabel("table with both margins kept")
    axes.set_ylabel("draws per second, one core")
    low, high = axes.get_ylim()
    axes.set_ylim(low / 10, high * 60)
    converged = [shape for shape, one in speeds.items() if one.chain is not None and one.met]
    axes.set_title(
        f"Exact draws for every shape; the paper's chain was seen to converge up to {name_of(max(converged))}"
    )
    lines = [
        ("■ column splitting: exact", BLUE),
        ("▲ our general chain: estimated", GREEN),
        (f"● the paper's chain, to TV {TV:g}", "#8A5F00"),
        ("○ at most: its coupled chains had not met", "#8A5F00"),
    ]
    for k, (line, colour) in enumerate(lines):
        axes.text(0.99, 0.97 - 0.065 * k, line, color=colour, ha="right", va="top", transform=axes.transAxes)
    note(figure, f"l1 Laplace noise, ε = {EPSILON}; CPU seconds")
    section.figure(
        save(figure, setting.out, "table_speed"), "Draws per second: exact, our general chain, and the paper's chain"
    )


def _chain(axes: Any, x: int, rate: float, met: bool) -> None:
    """The paper's chain; where its pairs had not met, an open circle with an arrow down."""
    axes.plot(x, rate, "o", color=ORANGE, markersize=9, mfc=ORANGE if met else "white", mew=1.8)
    if not met:
        arrow = {"arrowstyle": "-|>", "color": ORANGE, "linewidth": 1.8}
        axes.annotate("", (x, rate / 12), (x, rate / 1.4), arrowprops=arrow)


def _join(axes: Any, place: dict[Shape, int], rates: dict[Shape, float], colour: str) -> None:
    """A line through the square tables."""
    square = [shape for shape in rates if shape[0] == shape[1]]
    axes.plot([place[s] for s in square], [rates[s] for s in square], color=colour, linewidth=1.2, zorder=0)


def name_of(shape: tuple[int, ...]) -> str:
    """A table by its sides."""
    return f"{shape[0]} × {shape[1]}"
