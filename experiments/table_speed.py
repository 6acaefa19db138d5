"""Two-way tables: draws per second, exact, by our general chain, and by the paper's."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from typing import Any

import numpy as np

import keepsum as ks
from experiments.drawing import BLUE, GREEN, ORANGE, new, note, save
from experiments.setting import Section, Setting
from experiments.small import EPSILON
from keepsum.convergence.bounds import first_step_below
from keepsum.lattice.structure import decompose
from keepsum.planning.selection.general import CANDIDATE_TV, Problem, mixture_chain, slabs_of
from keepsum.sampling.general.mixture import Mixture
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting

TV = 0.01  # the total variation that the paper's chain is run to
Shape = tuple[int, int]
# Each shape with the exact draws that are timed, those of the general sampler, and for the paper's chain the lag, the
# pairs and the steps after which pairs are given up; 0 for what takes too long or does not fit into memory.
SPEED: dict[Shape, tuple[int, int, tuple[int, int, int]]] = {
    (4, 4): (20_000, 200, (10_000, 200, 10**6)),
    (5, 5): (20_000, 200, (400_000, 64, 4 * 10**6)),
    (6, 6): (10_000, 100, (1, 2, 10**7)),
    (8, 8): (10_000, 100, (1, 4, 10**6)),
    (16, 16): (5_000, 20, (1, 4, 2 * 10**5)),
    (32, 32): (1_000, 4, (1, 4, 5 * 10**4)),
    (64, 64): (500, 1, (1, 4, 10**4)),
    (128, 128): (200, 0, (0, 0, 0)),
    (1000, 4): (500, 1, (1, 4, 10**4)),
}
QUICK_SHAPES = ((4, 4), (8, 8), (16, 16), (32, 32), (1000, 4))


def margins(rows: int, columns: int) -> ks.Invariants:
    """Both margins of a table."""
    domain = ks.Domain({"row": range(rows), "column": range(columns)})
    return ks.Invariants.margins(domain, [["row"], ["column"]])


def exact_draws(rows: int, columns: int, epsilon: str, draws: int) -> dict[str, Any]:
    """CPU seconds of planning and of drawing, on one core."""
    ks.plan(margins(3, 3), ks.Laplace(epsilon=1)).sample(1)  # compiled
    start = time.process_time()
    plan = ks.plan(margins(rows, columns), ks.Laplace(epsilon=epsilon))
    if {choice.method for choice in plan.samplers} != {"column_splitting"}:
        raise AssertionError("the table is not drawn by splitting its columns")
    prepared = time.process_time()
    out = plan.sample(draws, rng=ks.rng(seed=f"speed {rows} {columns}"))
    seconds = time.process_time() - prepared
    tables = out.reshape(draws, rows, columns)
    if tables.sum(axis=1).any() or tables.sum(axis=2).any():
        raise AssertionError("a margin is not 0")
    return {"planning": prepared - start, "seconds": seconds, "rate": draws / seconds}


def general_draws(rows: int, columns: int, epsilon: str, draws: int) -> dict[str, Any]:
    """The same for the general sampler's chain, which is estimated."""
    start = time.process_time()
    structure = decompose(margins(rows, columns).coefficients)
    (block,) = structure.blocks
    sizes = structure.sizes[block.regions]
    mixture = Mixture.of(float(Fraction(epsilon)), slabs_of(block.system), block.system.matrix, sizes, tau=0.1)
    chain, _ = mixture_chain(Problem(block.system, sizes, 1, Fraction(epsilon)), mixture, CANDIDATE_TV)
    planning = time.process_time() - start
    out = np.empty((draws, rows * columns), dtype=np.int64)
    if draws > 1:
        chain.draw_into(out[:1], ks.rng(seed=0))  # compiled
    prepared = time.process_time()
    chain.draw_into(out, ks.rng(seed=f"general {rows} {columns}"))
    seconds = time.process_time() - prepared
    return {"planning": planning, "seconds": seconds, "rate": draws / seconds}


def chain_scale(rows: int, columns: int) -> float:
    """The parameter a of the proposals: the best of eight for small tables, else one that moves few coordinates."""
    dimension = (rows - 1) * (columns - 1)
    return math.exp(-0.5) if dimension <= 25 else 4 / dimension


def paper_chain(
    rows: int, columns: int, epsilon: str, lag: int, pairs: int, max_steps: int, timed: int
) -> dict[str, Any]:
    """Steps of Algorithm 1 to that TV by coupled pairs, or at least; and its steps per second on one core."""
    target, laplace = ks.Lattice(margins(rows, columns).coefficients), ks.Laplace(epsilon=epsilon)
    a = chain_scale(rows, columns)
    times = ks.mcmc.meeting_times(
        target, laplace, a, lag=lag, pairs=pairs, max_steps=max_steps, rng=ks.rng(seed=f"pairs {rows} {columns}")
    )
    steps = first_step_below(times, TV)
    ks.mcmc.metropolis(target, laplace, 10, a, threads=1)  # compiled
    start = time.process_time()
    ks.mcmc.metropolis(target, laplace, timed, a, thin=timed, rng=ks.rng(seed="speed"), threads=1)
    rate = timed / (time.process_time() - start)
    least = steps or max(max_steps - lag, steps_to_length(target, laplace, a, rows, columns))
    return {"steps": least, "met": steps is not None, "rate": rate}


def steps_to_length(target: ks.Lattice, laplace: ks.Laplace, a: float, rows: int, columns: int) -> int:
    """Steps until a chain's noise, from its start near 0, is as long in l1 as the shortest of twenty exact draws."""
    exact = np.empty((20, rows * columns), dtype=np.int64)
    ColumnSplitting(laplace.epsilon, np.ones((rows, columns))).draw_into(exact, ks.rng(seed="length"))
    shortest, rng = np.abs(exact).sum(axis=1).min(), ks.rng(seed="grow")
    state, steps = np.zeros(rows * columns, dtype=np.int64), 0
    while np.abs(state).sum() < shortest:
        state = ks.mcmc.metropolis(target, laplace, 1_000, a, thin=1_000, start=state, rng=rng, threads=1).state[0]
        steps += 1_000
    return steps


def add(setting: Setting, section: Section) -> None:
    """Add the table and the figure of draws per second."""
    shapes = [shape for shape in SPEED if not setting.quick or shape in QUICK_SHAPES]
    ours, general, chain = {}, {}, {}
    for shape in shapes:
        (rows, columns), (draws, general_count, (lag, pairs, most)) = shape, SPEED[shape]
        size = {"rows": rows, "columns": columns, "epsilon": EPSILON}
        fraction = setting.scaled(1, 10)
        ours[shape] = setting.cache.step(exact_draws, **size, draws=max(1, draws // fraction))
        if general_count and (not setting.quick or rows <= 16):
            general[shape] = setting.cache.step(general_draws, **size, draws=max(1, general_count // fraction))
        if pairs:
            timed = max(10**5, 10**8 // (rows * columns)) // fraction
            chain[shape] = setting.cache.step(
                paper_chain, **size, lag=lag, pairs=pairs, max_steps=most // fraction**2 + lag, timed=timed
            )
    section.say(
        f"**Draws per second**, ε = {EPSILON}, CPU seconds of one core. *Column splitting* is exact. *General* is our "
        f"chain for any totals, whose total variation is estimated. *Algorithm 1* is the paper's chain, compiled, run "
        f"until coupled pairs bound its total variation by {TV:g}; where pairs had not met when given up, its steps "
        f"are a lower limit and its draws per second an upper limit: it ran at least until then, and until its "
        f"noise was as long as the shortest of twenty exact draws."
    )
    section.table(
        "table_speed",
        ["table", "column splitting, draws per second", "seconds to prepare", "general, draws per second",
         "Algorithm 1, draws per second", "its steps per draw"],
        [_speed_row(shape, ours[shape], general.get(shape), chain.get(shape)) for shape in shapes],
    )  # fmt: skip
    _draw_speed(setting, section, ours, general, chain)


def _speed_row(shape: Shape, ours: Any, general: Any, chain: Any) -> list[str]:
    row = [name_of(shape), two_digits(float(ours["rate"])), two_digits(float(ours["planning"]))]
    row.append("-" if general is None else two_digits(float(general["rate"])))
    if chain is None:
        return [*row, "-", "-"]
    rate = two_digits(float(chain["rate"]) / int(chain["steps"]))
    met = bool(chain["met"])
    return [*row, rate if met else f"< {rate}", f"{'' if met else '> '}{int(chain['steps']):,}"]


def _draw_speed(setting: Setting, section: Section, ours: Any, general: Any, chain: Any) -> None:
    figure, panels = new(10, 4.9)
    axes = panels[0, 0]
    place = {shape: k for k, shape in enumerate(ours)}
    for shape, x in place.items():
        rate = float(ours[shape]["rate"])
        axes.plot(x, rate, "s", color=BLUE, markersize=9)
        axes.annotate(two_digits(rate), (x, rate), (0, 8), textcoords="offset points", ha="center", color=BLUE)
    _join(axes, place, {shape: float(one["rate"]) for shape, one in ours.items()}, BLUE)
    axes.plot([place[s] for s in general], [float(one["rate"]) for one in general.values()], "^", color=GREEN, ms=8)
    for shape, one in chain.items():
        rate = float(one["rate"]) / int(one["steps"])
        axes.plot(place[shape], rate, "o", color=ORANGE, markersize=9, mfc=ORANGE if one["met"] else "white", mew=1.8)
        if not one["met"]:
            arrow = {"arrowstyle": "-|>", "color": ORANGE, "linewidth": 1.8}
            axes.annotate("", (place[shape], rate / 12), (place[shape], rate / 1.4), arrowprops=arrow)
    axes.set_yscale("log")
    axes.set_xticks(range(len(place)), [name_of(shape) for shape in place])
    axes.set_xlabel("table with both margins kept")
    axes.set_ylabel("draws per second, one core")
    low, high = axes.get_ylim()
    axes.set_ylim(low / 10, high * 60)
    converged = [shape for shape, one in chain.items() if one["met"]]
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


def _join(axes: Any, place: dict[Shape, int], rates: dict[Shape, float], colour: str) -> None:
    """A line through the square tables."""
    square = [shape for shape in rates if shape[0] == shape[1]]
    axes.plot([place[s] for s in square], [rates[s] for s in square], color=colour, linewidth=1.2, zorder=0)


def two_digits(number: float) -> str:
    """A figure with two significant digits."""
    rounded = float(f"{number:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def name_of(shape: tuple[int, ...]) -> str:
    """A table by its sides."""
    return f"{shape[0]} × {shape[1]}"
