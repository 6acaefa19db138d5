"""Shared by the first two experiments: TV curves at several lags, boxplots of chain and exact draws, claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

import keepsum as ks
from benchmarks.results import value as measured
from experiments import steps
from experiments.cache import Values
from experiments.claims import NOT_IN_PAPER, Claim, at_most, not_rejected, within_factor
from experiments.drawing import BLUE, GREY, ORANGE, boxes, new, note, save, zero_line
from experiments.setting import Setting
from keepsum.convergence.bounds import first_step_below

EPSILON = "0.25"
TV_LEVEL = 0.1
SAME = {f"children/l1/{EPSILON}": f"two-way/4x4/{EPSILON}"}  # a table whose speed has another name
RATE = 1e-3  # the error rate of every statistical verdict: how often a true claim is rejected
THIN = 10_000  # "thinned at 0.01%"


@dataclass(frozen=True)
class Target:
    """One target distribution of an experiment and what the paper says about it."""

    norm: str
    log_a: float
    paper_steps: int
    where: str
    lags: tuple[int, ...]


@dataclass(frozen=True)
class Study:
    """The runs for one target."""

    target: Target
    times: list[ks.mcmc.MeetingTimes]
    chain: Values
    exact: Values

    @property
    def crossing(self) -> int | None:
        """The first step at which the bound of the longest lag is at most 0.1."""
        return first_step_below(self.times[-1], TV_LEVEL)


def study(setting: Setting, system: str, target: Target) -> Study:
    """Run the couplings, the chain and the sampler of the plan."""
    pairs, draws = setting.scaled(200, 40), 1_000
    common = {"system": system, "epsilon": EPSILON}
    runs = [
        setting.cache.step(
            steps.meetings,
            **common,
            norm=target.norm,
            log_a=target.log_a,
            lag=lag,
            pairs=pairs,
            max_steps=30 * target.paper_steps,
            seed=f"{system} {target.norm} {lag}",
        )
        for lag in (target.lags[:2] if setting.quick else target.lags)
    ]
    times = [ks.mcmc.MeetingTimes(one["times"], int(one["lag"]), one["censored"]) for one in runs]
    thin = setting.scaled(THIN, 1_000)
    chain = setting.cache.step(
        steps.chain,
        **common,
        norm=target.norm,
        log_a=target.log_a,
        draws=draws,
        thin=thin,
        burn_in=target.paper_steps,
        seed=f"{system} {target.norm} chain",
    )
    exact = setting.cache.step(
        steps.exact, **common, kind=target.norm, draws=draws, seed=f"{system} {target.norm} exact"
    )
    return Study(target, times, chain, exact)


def unbiased(draws: np.ndarray, chain: bool = False) -> float:
    """The p-value of the hypothesis that every cell has mean 0, by the largest z-score (Bonferroni).

    Draws of a chain count by their effective sample size.
    """
    count = ks.mcmc.effective_sample_size(draws[None], "mean").clip(1, len(draws)) if chain else len(draws)
    z = np.abs(draws.mean(axis=0)) / (draws.std(axis=0, ddof=1) / np.sqrt(count))
    return float(min(1.0, draws.shape[1] * 2 * stats.norm.sf(np.max(z))))


def same_law(one: np.ndarray, other: np.ndarray) -> float:
    """The p-value of the hypothesis that both have the same distribution in each cell (Kolmogorov-Smirnov)."""
    values = [stats.ks_2samp(a, b, method="asymp").pvalue for a, b in zip(one.T, other.T, strict=True)]
    return float(min(1.0, len(values) * min(values)))


def claims_of(result: Study, what: str, boxplot: str) -> list[Claim]:
    """The claims about one target; ``boxplot`` is the paper's figure of its boxplots."""
    target, times = result.target, result.times
    norm = f"{what}, {target.norm}"
    at_paper = ks.mcmc.tv_upper_bound(times[-1], t=target.paper_steps)
    return [
        Claim(
            f"{norm}: steps until the TV bound is {TV_LEVEL:g}",
            target.where,
            target.paper_steps,
            result.crossing,
            within_factor(10),
            "The paper's 'about' is read off a log scale; if some pairs have not met, the crossing is unknown.",
            "steps",
        ),
        Claim(
            f"{norm}: converged at the paper's number of steps (95% limit of the bound there)",
            target.where,
            TV_LEVEL,
            float(at_paper.upper),
            at_most(),
            "There are too few pairs to show it: the limit is the best that so few can give.",
        ),
        Claim(
            f"{norm}: meeting times are stable in the lag (τ - L has the same distribution at the two longest lags, "
            f"p-value)",
            f"{target.where}; appendix, choice of L",
            0,
            float(stats.ks_2samp(times[-2].excess, times[-1].excess, method="asymp").pvalue),
            not_rejected(RATE),
            "The shorter of the two lags is too short.",
            paper_text="stable",
        ),
        Claim(
            f"{norm}: the chain's noise is unbiased in every cell (p-value)",
            boxplot,
            0,
            unbiased(result.chain["draws"], chain=True),
            not_rejected(RATE),
            paper_text="unbiased",
        ),
        Claim(
            f"{norm}: our exact noise is unbiased in every cell (p-value)",
            boxplot,
            0,
            unbiased(result.exact["draws"]),
            not_rejected(RATE),
            paper_text="unbiased",
        ),
        Claim(
            f"{norm}: the chain's draws and the exact draws have the same distribution (p-value)",
            NOT_IN_PAPER,
            0,
            same_law(result.chain["draws"], result.exact["draws"]),
            not_rejected(RATE),
            "A quick run thins the chain ten times less, so its draws are not independent.",
            paper_text="same distribution",
        ),
    ]


def draw_bound(setting: Setting, result: Study, name: str, what: str) -> str:
    """The curves of the bound at every lag, with the paper's number of steps marked."""
    new(1, 1)  # the house style
    crossing = result.crossing
    outcome = f"crosses {TV_LEVEL:g} after {crossing:,} steps" if crossing else "is not known to converge"
    title = f"{what}, {result.target.norm} target: the bound {outcome}"
    figure = ks.mcmc.plot_bound(result.times, level=TV_LEVEL, title=title)
    axes = figure.axes[0]
    paper_steps = result.target.paper_steps
    axes.axvline(paper_steps, color=GREY, linestyle="--", linewidth=1.2)
    axes.set_xlim(max(1, paper_steps // 1_000), max(2 * paper_steps, axes.get_xlim()[1]))
    power = len(str(paper_steps)) - 1
    axes.annotate(
        f"the paper:  \nabout $10^{power}$  ",
        (paper_steps, 1.14),
        ha="right",
        va="center",
        color=GREY,
        fontsize=10,
    )
    for text in axes.texts:  # notes that plot_bound puts at step 1
        if text.xy[0] == 1.1:
            text.xy = (axes.get_xlim()[0] * 1.05, text.xy[1])
        if text.get_text().startswith("above 1"):  # where no curve is
            text.xy = (0.95 * paper_steps, 1)
            text.set_horizontalalignment("right")
    return save(figure, setting.out, name)


def draw_boxes(setting: Setting, studies: Sequence[Study], labels: Sequence[str], name: str, what: str) -> str:
    """Boxplots per cell, the paper's chain beside the exact sampler, one panel per target."""
    figure, panels = new(10, 3.4 * len(studies), len(studies), sharex=True)
    at = np.arange(len(labels))
    for axes, result in zip(panels[:, 0], studies, strict=True):
        boxes(axes, result.chain["draws"], at - 0.2, ORANGE, 0.32)
        boxes(axes, result.exact["draws"], at + 0.2, BLUE, 0.32)
        zero_line(axes)
        spread = [np.abs(draws).mean() for draws in (result.chain["draws"], result.exact["draws"])]
        alike = same_law(result.chain["draws"], result.exact["draws"]) >= RATE
        comparison = "the same noise from both" if alike else "the noise of the two differs"
        axes.set_title(f"{what}, {result.target.norm}: {comparison}, mean size {spread[0]:.1f} and {spread[1]:.1f}")
        axes.set_xlim(-0.6, len(labels) - 0.4)
        axes.set_ylabel("noise (records)")
        _legend(axes, result)
    panels[-1, 0].set_xticks(at, labels, fontsize=9)
    note(figure, f"1,000 draws each, ε = {EPSILON}; box: quartiles; whiskers: 1.5 × interquartile range")
    return save(figure, setting.out, name)


def _legend(axes: Any, result: Study) -> None:
    """A legend in the colours of the boxes, above them."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.16 * (high - low))
    first = "■ left box of each pair: Algorithm 1"
    second = f"■ right box of each pair: plan.sample ({result.exact['level']})"
    axes.text(0.01, 0.97, first, color="#8A5F00", va="top", transform=axes.transAxes)
    axes.text(0.5, 0.97, second, color=BLUE, va="top", transform=axes.transAxes)


def chain_rate(result: Study, system: str) -> float:
    """Steps of the paper's chain per second, as `make bench` measured."""
    return float(measured(f"{system}/{result.target.norm}/{EPSILON}/algorithm_1/steps_per_second"))


def draw_seconds(result: Study, system: str) -> tuple[float, float]:
    """CPU seconds of an exact draw, and of the chain until its TV bound is low, as `make bench` measured."""
    name = f"{system}/{result.target.norm}/{EPSILON}"
    chain = result.crossing / chain_rate(result, system) if result.crossing else float("nan")
    return 1 / float(measured(f"{SAME.get(name, name)}/draws_per_second")), chain


def timing_rows(result: Study, what: str) -> list[str]:
    """One row of the table of costs: steps and seconds of the chain to the same distance, and of the exact sampler."""
    crossing = result.crossing
    each, chain = draw_seconds(result, what)
    return [
        what,
        result.target.norm,
        f"{crossing:,}" if crossing else "not known",
        f"{chain_rate(result, what) / 1e6:.2g} million",
        f"{chain:.2g}",
        str(result.exact["level"]),
        f"{each:.2g}",
        f"{chain / each:,.0f}",
    ]


def lag_rows(result: Study) -> list[list[str]]:
    """One row per lag: when pairs met, and when the bound falls; short lags give loose bounds."""
    rows = []
    for times in result.times:
        steps_to = [first_step_below(times, level) for level in (TV_LEVEL, TV_LEVEL / 10)]
        met = "all" if not times.censored.any() else f"all but {int(times.censored.sum())}"
        bound = ks.mcmc.tv_upper_bound(times, t=0).estimate
        cells = [f"{step:,}" if step is not None else "not known" for step in steps_to]
        pairs, median = f"{len(times):,}, {met} met", f"{np.median(times.excess):,.0f}"
        rows.append([result.target.norm, f"{times.lag:,}", pairs, median, f"{bound:.2f}", *cells])
    return rows


LAG_HEAD = (
    "norm", "lag L", "pairs", "median τ - L", "bound at step 0",
    f"steps to {TV_LEVEL:g}", f"steps to {TV_LEVEL / 10:g}",
)  # fmt: skip
TIMING_HEAD = (
    "system", "norm", f"steps to TV {TV_LEVEL:g}", "steps per second", "seconds per draw, chain (TV 0.1)",
    "plan.sample is", "seconds per draw, plan.sample", "times faster",
)  # fmt: skip
