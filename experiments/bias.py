"""Errors against population: no trend in ours, a trend in those of the DAS, and how non-negativity causes one."""

from __future__ import annotations

import numpy as np
from scipy import stats

import keepsum as ks
from experiments.census import State, races
from experiments.claims import Claim, not_rejected, rejected
from experiments.drawing import BLUE, PINK, new, note, save, zero_line
from experiments.setting import Section, Setting
from experiments.small import RATE

DAS_EPSILON = "0.192"  # 4 (total) x 0.16 (county level) x 0.3 (population query), the paper's reading of the DAS
COUNTY_DRAWS = 1_000
BIASED = 0.01  # the level at which the paper calls a state's errors biased


def bias_test(error: np.ndarray, population: np.ndarray) -> tuple[float, float]:
    """The slope of the error on the logarithm of the population (base 10), and its two-sided p-value."""
    fit = stats.linregress(np.log10(population), error)
    return float(fit.slope), float(fit.pvalue)


def falls(error: np.ndarray, population: np.ndarray) -> float:
    """The one-sided p-value of the hypothesis that the error does not fall with population."""
    slope, p = bias_test(error, population)
    return p / 2 if slope < 0 else 1 - p / 2


def report(setting: Setting, section: Section, drawn: list[tuple[State, np.ndarray]]) -> None:
    """The test on our draws, on DAS errors if there is a file, and on our simplified TopDown."""
    populated = [(state, draws) for state, draws in drawn if (state.population > 0).all() and len(state.counties) > 2]
    _ours(section, populated)
    _das(section, [(state, draws) for state, draws in populated if state.das is not None])
    _topdown(setting, section)


def _ours(section: Section, drawn: list[tuple[State, np.ndarray]]) -> None:
    biased = np.concatenate([[bias_test(one, state.population)[1] < BIASED for one in draws] for state, draws in drawn])
    chance = stats.binomtest(int(biased.sum()), len(biased), BIASED, alternative="greater").pvalue
    section.say(
        f"**Bias against population.** Each error is regressed on log10 of the population. Of our {len(biased):,} "
        f"draws {biased.mean():.2%} give p < {BIASED:g}; without bias about {BIASED:.0%} should."
    )
    section.claims.append(
        Claim(
            f"Counties: our errors show a trend in population no more often than chance, {BIASED:g} (p-value)",
            "Figure illinois",
            0,
            float(chance),
            not_rejected(RATE),
            "The regression assumes normal errors; with few counties and Laplace noise its p-value is approximate.",
            paper_text="no trend",
        )
    )


def _das(section: Section, drawn: list[tuple[State, np.ndarray]]) -> None:
    values = [falls(state.das - state.population, state.population) for state, _ in drawn if state.das is not None]
    smallest = min(1.0, len(values) * min(values)) if values else None
    why = (
        "Neither the vintages nor the states are the paper's (November 2020)."
        if values
        else "The November 2020 demonstration data are not available, and DAS=path names no other file."
    )
    section.claims.append(
        Claim(
            "Counties: DAS errors fall with population (smallest p-value of any state, times the number of states)",
            "Figure illinois",
            0,
            smallest,
            rejected(BIASED),
            why,
            paper_text="biased",
        )
    )
    rows = []
    for state, draws in drawn:
        if state.das is not None:
            figures = [
                *bias_test(state.das - state.population, state.population), *bias_test(draws[0], state.population)
            ]  # fmt: skip
            rows.append([state.name, state.vintage, *(f"{value:.3g}" for value in figures)])
    if rows:
        head = ["state", "DAS vintage", "DAS: people per tenfold population", "p", "one draw of ours: the same", "p"]
        section.table("das_bias", head, rows)


def _topdown(setting: Setting, section: Section) -> None:
    """County by race, state totals kept: non-negativity in small cells biases counties, as the paper explains."""
    table = races()[1]["IL"]
    population, cells = table.sum(axis=1), table.size
    keep = ks.Invariants.subsets(cells, [range(cells)])
    rng = ks.rng(seed="topdown")
    released = ks.baselines.topdown_like(table.reshape(-1), keep, DAS_EPSILON, COUNTY_DRAWS, rng=rng)
    error = released.reshape(COUNTY_DRAWS, -1, 5).sum(axis=2) - population
    ours = (
        ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=DAS_EPSILON))
        .sample(COUNTY_DRAWS, rng=rng)
        .reshape(COUNTY_DRAWS, -1, 5)
        .sum(axis=2)
    )
    slope, _ = bias_test(error.mean(axis=0), population)
    single = np.mean([falls(one, population) < BIASED for one in error])
    section.say(
        f"**Why DAS errors fall with population**, shown without DAS data: Illinois by county and race, the state's "
        f"total kept, non-negative least squares and rounding (ours, after TopDown, much simplified). Mean errors fall "
        f"by {-slope:.2f} people per tenfold population; a single release shows it at {BIASED:g} in {single:.1%} of "
        f"runs."
    )
    section.claims.append(
        Claim(
            "Non-negativity in small cells makes errors fall with population (our simplified TopDown, Illinois by "
            "race; p-value of the mean errors)",
            "appendix, comparison with TopDown",
            0,
            falls(error.mean(axis=0), population),
            rejected(BIASED),
            "No trend was detected.",
            paper_text="biased",
        )
    )
    section.figure(
        _draw(setting, population, error.mean(axis=0), ours.mean(axis=0), slope),
        "Mean error of Illinois counties against their population",
    )


def _draw(setting: Setting, population: np.ndarray, theirs: np.ndarray, ours: np.ndarray, slope: float) -> str:
    figure, panels = new(10, 4.4)
    axes = panels[0, 0]
    axes.plot(population, theirs, "o", color=PINK, markersize=5)
    axes.plot(population, ours, "s", color=BLUE, markersize=4)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    zero_line(axes)
    axes.set_xlabel("county population (log scale)")
    axes.set_ylabel("mean error (people)")
    axes.set_title(f"Forbidding negative cells shifts {-slope:.1f} people per tenfold population to small counties")
    legend = {
        "■ exact noise (keepsum)": BLUE,
        "● non-negative least squares, rounded (ours, after TopDown, simplified)": "#9C4F7C",
    }
    for place, (line, colour) in enumerate(legend.items()):
        axes.text(0.99, 0.94 - 0.08 * place, line, color=colour, ha="right", transform=axes.transAxes)
    note(
        figure,
        f"Illinois of plotnine's midwest, 102 counties × 5 races, state total kept, "
        f"{COUNTY_DRAWS:,} draws, ε = {DAS_EPSILON}",
    )
    return save(figure, setting.out, "bias")
