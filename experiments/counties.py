"""Experiment 3: counties with the population of each state kept, compared with the DAS and with projected noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments import bias, steps
from experiments.bias import COUNTY_DRAWS, DAS_EPSILON
from experiments.cache import Values
from experiments.census import State, midwest, read_counties, read_das
from experiments.claims import NOT_IN_PAPER, Claim, below, equal, not_rejected, within_factor
from experiments.drawing import BLUE, GREEN, ORANGE, RED, boxes, new, note, save, zero_line
from experiments.setting import Section, Setting
from experiments.small import RATE, THIN, same_law, unbiased

WIDE_EPSILON, LOG_A = "0.1", -2.5
FRAME = 8  # figures show noise up to this, divided by epsilon


@dataclass(frozen=True)
class Run:
    """A state and its draws."""

    state: State
    chain: Values
    exact: Values
    projected: Values


def run(setting: Setting) -> tuple[Section, list[Run]]:
    """Every state of the data: chains, exact draws, projection, bias tests, non-negativity."""
    states, source = _states(setting)
    section = Section("Experiment 3: counties, each state's population kept")
    section.say(
        f"Data: {source}. ε = {DAS_EPSILON}, l1, a = e^{LOG_A:g}; four chains from over-dispersed starts "
        f"(ε = {WIDE_EPSILON}). {sum(len(s.counties) for s in states):,} counties of {len(states)} states. "
        f"The paper names only Illinois of its 11 states; every state of the data is run here."
    )
    runs = [_run(setting, state) for state in states]
    section.claims += _claims(setting, runs)
    section.table(
        "counties",
        ["state", "counties", "largest R-hat", "rank-normalised", "mean abs. noise: exact", "chain", "projected"],
        [_row(one) for one in runs],
    )  # fmt: skip
    for one in runs:
        name = draw_state(setting, one)
        das = "" if one.state.das is None else f"; DAS errors of vintage {one.state.vintage} in red"
        section.figure(name, f"Noise of each county of {one.state.name}, by increasing population{das}")
    bias.report(setting, section, [(one.state, one.exact["draws"]) for one in runs])
    return section, runs


def _states(setting: Setting) -> tuple[list[State], str]:
    """The states to run, and where they come from. A state with a single county is left out: that county is pinned."""
    if setting.counties:
        states, source = read_counties(setting.counties), f"`{setting.counties.name}` (COUNTIES)"
    else:
        states, source = midwest(), "plotnine's `midwest` (437 counties, five states; no census file was given)"
    if setting.das:
        known = {state.name: state for state in read_das(setting.das)}
        states = [known.pop(state.name, state) for state in states] + list(known.values())
        vintages = "; ".join(f"{s.name}: {s.vintage}" for s in states if s.das is not None)
        source += f", DAS output of `{setting.das.name}`, vintages {vintages}"
    states = [state for state in states if len(state.counties) > 1]
    return (states[:2] if setting.quick and not setting.das else states), source


def _run(setting: Setting, state: State) -> Run:
    cells, seed = len(state.counties), f"county noise {state.name}"
    chain = setting.cache.step(
        steps.over_dispersed,
        cells=cells,
        epsilon=DAS_EPSILON,
        wide=WIDE_EPSILON,
        log_a=LOG_A,
        steps=setting.scaled(10**6, 10**5),
        draws=COUNTY_DRAWS,
        thin=setting.scaled(THIN, 500),
        seed=seed,
    )
    system = f"sum {cells}"
    exact = setting.cache.step(
        steps.exact, system=system, kind="l1", epsilon=DAS_EPSILON, draws=COUNTY_DRAWS, seed=seed
    )
    projected = setting.cache.step(steps.projected, system=system, epsilon=DAS_EPSILON, draws=COUNTY_DRAWS, seed=seed)
    return Run(state, chain, exact, projected)


def _size(draws: np.ndarray) -> float:
    return float(np.abs(draws).mean())


def _row(one: Run) -> list[str]:
    return [
        one.state.name,
        str(len(one.state.counties)),
        f"{one.chain['r_hat'].max():.4f}",
        f"{one.chain['r_hat_rank'].max():.4f}",
        f"{_size(one.exact['draws']):.2f}",
        f"{_size(one.chain['draws']):.2f}",
        f"{_size(one.projected['draws']):.2f}",
    ]


def _ratio(one: Run) -> float:
    """The ratio of projected noise to ours."""
    return _size(one.projected["draws"]) / _size(one.exact["draws"])


def _why_slow(setting: Setting, one: Run) -> str:
    if setting.quick:
        return "A quick run has a tenth of the steps."
    worth = f"{one.chain['effective'].min():,.0f}"
    return (
        f"It is {one.state.name}, with {len(one.state.counties)} counties: more dimensions mix more slowly, and the "
        f"four chains are worth only {worth} independent draws. R-hat is over all steps after the start; the paper "
        f"states neither its steps nor its states."
    )


def _smallest(values: list[float]) -> float:
    """The smallest of several p-values, times their number (Bonferroni)."""
    return min(1.0, len(values) * min(values))


def _claims(setting: Setting, runs: list[Run]) -> list[Claim]:
    exact = [one.exact["draws"] for one in runs]
    farthest = max(runs, key=lambda one: abs(np.log(_ratio(one))))
    slowest = max(runs, key=lambda one: one.chain["r_hat"].max())
    negative = sum(int((one.state.population + one.exact["draws"] < 0).sum()) for one in runs)
    inside = np.mean(np.concatenate([(np.abs(draws) <= 30).reshape(-1) for draws in exact]))
    small = min((one.state for one in runs), key=lambda state: state.population[0])
    where = "appendix, county-level data"
    return [
        Claim(
            "Counties: largest R-hat of any county of any state", where, 1.01,
            float(slowest.chain["r_hat"].max()), below(), _why_slow(setting, slowest),
        ),
        Claim(
            "Counties: the chain's noise is unbiased (p-value)", "Figure illinois", 0,
            _smallest([unbiased(one.chain["draws"], chain=True) for one in runs]), not_rejected(RATE),
            paper_text="unbiased",
        ),
        Claim(
            "Counties: our exact noise is unbiased (p-value)", "Figure illinois", 0,
            _smallest([unbiased(draws) for draws in exact]), not_rejected(RATE), paper_text="unbiased",
        ),
        Claim(
            "Counties: chain and exact draws have the same distribution (p-value)", NOT_IN_PAPER, 0,
            _smallest([same_law(one.chain["draws"], one.exact["draws"]) for one in runs]), not_rejected(RATE),
            "A quick run thins the chain too little for independent draws.", paper_text="same distribution",
        ),
        Claim(
            "Counties: projected noise over ours, mean absolute size (the state where they differ most)",
            "appendix, projected discrete Laplace", 1,
            _ratio(farthest), within_factor(1.25),
            f"It is {farthest.state.name}, with {len(farthest.state.counties)} counties. Keeping the sum of few cells "
            "narrows the exact noise more than projecting does; the states that the paper shows are larger.",
            paper_text="comparable",
        ),
        Claim(
            f"Counties: truncations of negative counts in {COUNTY_DRAWS:,} draws of every county (smallest county: "
            f"{small.population[0]:,} people)",
            "appendix, comparison with TopDown", 0, negative, equal(),
        ),
        Claim(
            "Counties: share of noise outside [-30, 30] ('the overwhelming majority' is inside: at most 0.05 outside)",
            "appendix, comparison with TopDown", 0.05, float(1 - inside), below(), paper_text="few",
        ),
    ]  # fmt: skip


def draw_state(setting: Setting, one: Run) -> str:
    """Boxplots by increasing population: exact noise with one draw (and DAS errors), the chain, projected noise."""
    state, at = one.state, np.arange(len(one.state.counties))
    figure, panels = new(10, 9, 3, sharex=True, sharey=True)
    reach = FRAME / float(DAS_EPSILON)
    top, middle, bottom = panels[:, 0]
    boxes(top, one.exact["draws"], at, BLUE)
    top.plot(at, one.exact["draws"][0], "s", color="black", markersize=3.5, rasterized=True)
    boxes(middle, one.chain["draws"], at, ORANGE)
    middle.plot(at, one.chain["draws"][-1], "s", color="black", markersize=3.5, rasterized=True)
    boxes(bottom, one.projected["draws"], at, GREEN)
    bottom.plot(at, one.projected["draws"][0], "s", color="black", markersize=3.5, rasterized=True)
    centred = "exact noise is centred at 0 in every county" if unbiased(one.exact["draws"]) >= RATE else "exact noise"
    sizes = {key: _size(getattr(one, key)["draws"]) for key in ("exact", "chain", "projected")}
    top.set_title(f"{state.name}: {centred}, mean size {sizes['exact']:.1f} people")
    middle.set_title(f"The paper's chain: mean size {sizes['chain']:.1f}")
    bottom.set_title(f"Projected discrete Laplace: mean size {sizes['projected']:.1f}, but no published law")
    if state.das is not None:
        _das(top, one, at)
    for axes in panels[:, 0]:
        zero_line(axes)
        axes.set_ylabel("noise (people)")
    top.set_ylim(-reach, reach)
    labelled = np.unique(np.linspace(0, len(at) - 1, 9).round().astype(int))
    bottom.set_xticks(
        labelled,
        [f"{state.counties[i].removesuffix(' County')}\n{state.population[i]:,}" for i in labelled],
        fontsize=8,
    )
    bottom.set_xlim(-1, len(at))
    beyond = sum(int((np.abs(getattr(one, key)["draws"]) > reach).sum()) for key in sizes)
    note(
        figure,
        f"counties by increasing population; squares: one draw; boxes: 1,000 draws each ({beyond:,} "
        f"values beyond the frame); ε = {DAS_EPSILON}, l1",
    )
    return save(figure, setting.out, f"counties_{state.name.lower().replace(' ', '_')}")


def _das(axes: Any, one: Run, at: np.ndarray) -> None:
    error = one.state.das - one.state.population
    reach = FRAME / float(DAS_EPSILON)
    clipped = np.clip(error, -0.98 * reach, 0.98 * reach)
    axes.plot(at, clipped, "o", color=RED, markersize=3.5, rasterized=True)
    beyond = int((np.abs(error) > reach).sum())
    cut = f"; {beyond} beyond the frame, at its edge" if beyond else ""
    legend = f"red: DAS errors, vintage {one.state.vintage}{cut}"
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5}
    axes.text(0.01, 0.9, legend, color=RED, va="top", transform=axes.transAxes, fontsize=9, bbox=box)
