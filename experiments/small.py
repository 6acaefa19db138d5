"""What the first two experiments share: TV curves at several lags, boxplots of chain and exact draws, their claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

import keepsum as ks
from experiments import steps
from experiments.cache import Values
from experiments.claims import Claim, at_most, not_rejected, within_factor
from experiments.drawing import BLUE, GREY, ORANGE, boxes, new, note, save, zero_line
from experiments.setting import Setting
from keepsum.convergence.bounds import first_step_below

EPSILON = "0.25"
LEVEL = 0.1
RATE = 1e-3  # of every statistical verdict: how often a true claim is called false
THIN = 10_000  # "thinned at 0.01%"


@dataclass(frozen=True)
class Target:
    """One target law of an experiment and what the paper says of it."""

    norm: str
    log_a: float
    paper_steps: int
    where: str
    lags: tuple[int, ...]


@dataclass(frozen=True)
class Study:
    """What was run for one target."""

    target: Target
    times: list[ks.mcmc.MeetingTimes]
    chain: Values
    exact: Values

    @property
    def crossing(self) -> int | None:
        """The first step at which the bound of the longest lag is at most 0.1."""
        return first_step_below(self.times[-1], LEVEL)


def study(setting: Setting, system: str, target: Target) -> Study:
    """Run the couplings, the chain and the plan's own sampler."""
    pairs, draws = setting.scaled(200, 40), 1_000
    common = {"system": system, "epsilon": EPSILON}
    found = [
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
    times = [ks.mcmc.MeetingTimes(one["times"], int(one["lag"]), one["censored"]) for one in found]
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
    """The p-value of "every cell has mean 0": the largest z-score, times the number of cells (Bonferroni).

    Draws of a chain count as many as their effective number.
    """
    count = ks.mcmc.effective_sample_size(draws[None], "mean").clip(1, len(draws)) if chain else len(draws)
    z = np.abs(draws.mean(axis=0)) / (draws.std(axis=0, ddof=1) / np.sqrt(count))
    return float(min(1.0, draws.shape[1] * 2 * stats.norm.sf(np.max(z))))


def same_law(one: np.ndarray, other: np.ndarray) -> float:
    """The p-value of "every cell has the same law in both": Kolmogorov and Smirnov, times the number of cells."""
    values = [stats.ks_2samp(a, b, method="asymp").pvalue for a, b in zip(one.T, other.T, strict=True)]
    return float(min(1.0, len(values) * min(values)))


def claims_of(found: Study, what: str, boxplot: str) -> list[Claim]:
    """The claims about one target; ``boxplot`` is the paper's figure of it."""
    target, times = found.target, found.times
    norm = f"{what}, {target.norm}"
    at_paper = ks.mcmc.tv_upper_bound(times[-1], t=target.paper_steps)
    return [
        Claim(
            f"{norm}: steps until the TV bound is {LEVEL:g}",
            target.where,
            target.paper_steps,
            found.crossing,
            within_factor(10),
            "The paper reads 'about' off a log scale; pairs that had not met leave the crossing unknown.",
            "steps",
        ),
        Claim(
            f"{norm}: converged at the paper's number of steps (95% limit of the bound there)",
            target.where,
            LEVEL,
            float(at_paper.upper),
            at_most(),
            "The number of pairs does not show it: the limit is what so few pairs can promise.",
        ),
        Claim(
            f"{norm}: meeting times are stable in the lag (τ - L at the two longest lags has one law, p-value)",
            f"{target.where}; appendix, choice of L",
            0,
            float(stats.ks_2samp(times[-2].excess, times[-1].excess, method="asymp").pvalue),
            not_rejected(RATE),
            "The shorter of the two lags is too short.",
            said="stable",
        ),
        Claim(
            f"{norm}: the chain's noise is unbiased in every cell (p-value)",
            boxplot,
            0,
            unbiased(found.chain["draws"], chain=True),
            not_rejected(RATE),
            said="unbiased",
        ),
        Claim(
            f"{norm}: our exact noise is unbiased in every cell (p-value)",
            boxplot,
            0,
            unbiased(found.exact["draws"]),
            not_rejected(RATE),
            said="unbiased",
        ),
        Claim(
            f"{norm}: the chain's draws and the exact ones have one law (p-value)",
            "not in the paper",
            0,
            same_law(found.chain["draws"], found.exact["draws"]),
            not_rejected(RATE),
            "Quick runs thin the chain ten times less, so its draws are not independent.",
            said="one law",
        ),
    ]


def draw_bound(setting: Setting, found: Study, name: str, what: str) -> str:
    """The curves of the bound at every lag, with the paper's number of steps marked."""
    new(1, 1)  # the house style
    crossing = found.crossing
    words = f"crosses {LEVEL:g} after {crossing:,} steps" if crossing else "is not known to converge"
    title = f"{what}, {found.target.norm} target: the bound {words}"
    figure = ks.mcmc.plot_bound(found.times, level=LEVEL, title=title)
    axes = figure.axes[0]
    steps_said = found.target.paper_steps
    axes.axvline(steps_said, color=GREY, linestyle="--", linewidth=1.2)
    axes.set_xlim(max(1, steps_said // 1_000), max(2 * steps_said, axes.get_xlim()[1]))
    power = len(str(steps_said)) - 1
    axes.annotate(
        f"the paper:  \nabout $10^{power}$  ",
        (steps_said, 1.14),
        ha="right",
        va="center",
        color=GREY,
        fontsize=10,
    )
    for text in axes.texts:  # notes that plot_bound puts at step 1
        if text.xy[0] == 1.1:
            text.xy = (axes.get_xlim()[0] * 1.05, text.xy[1])
        if text.get_text().startswith("above 1"):  # where no curve is
            text.xy = (0.95 * steps_said, 1)
            text.set_horizontalalignment("right")
    return save(figure, setting.out, name)


def draw_boxes(setting: Setting, studies: Sequence[Study], labels: Sequence[str], name: str, what: str) -> str:
    """Boxplots entry by entry, the paper's chain beside the exact sampler, one panel a target."""
    figure, panels = new(10, 3.4 * len(studies), len(studies), sharex=True)
    at = np.arange(len(labels))
    for axes, found in zip(panels[:, 0], studies, strict=True):
        boxes(axes, found.chain["draws"], at - 0.2, ORANGE, 0.32)
        boxes(axes, found.exact["draws"], at + 0.2, BLUE, 0.32)
        zero_line(axes)
        spread = [np.abs(draws).mean() for draws in (found.chain["draws"], found.exact["draws"])]
        alike = same_law(found.chain["draws"], found.exact["draws"]) >= RATE
        words = "the same noise from both" if alike else "the noise of the two differs"
        axes.set_title(f"{what}, {found.target.norm}: {words}, mean size {spread[0]:.1f} and {spread[1]:.1f}")
        axes.set_xlim(-0.6, len(labels) - 0.4)
        axes.set_ylabel("noise (records)")
        _legend(axes, found)
    panels[-1, 0].set_xticks(at, labels, fontsize=9)
    note(figure, f"1,000 draws each, ε = {EPSILON}; box: quartiles; whiskers: 1.5 × interquartile range")
    return save(figure, setting.out, name)


def _legend(axes: Any, found: Study) -> None:
    """Who is who, in their own colours, above the boxes."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.16 * (high - low))
    first = "■ left box of each pair: Algorithm 1"
    second = f"■ right box of each pair: plan.sample ({found.exact['level']})"
    axes.text(0.01, 0.97, first, color="#8A5F00", va="top", transform=axes.transAxes)
    axes.text(0.5, 0.97, second, color=BLUE, va="top", transform=axes.transAxes)


def timing_rows(found: Study, what: str) -> list[str]:
    """One row of the table of costs: steps and seconds of the chain to the same distance, and of the exact sampler."""
    rate, crossing = float(found.chain["rate"]), found.crossing
    each = float(found.exact["seconds"]) / len(found.exact["draws"])
    chain = crossing / rate if crossing else float("nan")
    return [
        what,
        found.target.norm,
        f"{crossing:,}" if crossing else "not known",
        f"{rate / 1e6:.2g} million",
        f"{chain:.2g}",
        str(found.exact["level"]),
        f"{each:.2g}",
        f"{chain / each:,.0f}",
    ]


def lag_rows(found: Study) -> list[list[str]]:
    """One row a lag: when pairs met, and when the bound falls; short lags give loose bounds."""
    rows = []
    for times in found.times:
        steps_to = [first_step_below(times, level) for level in (LEVEL, LEVEL / 10)]
        met = "all" if not times.censored.any() else f"all but {int(times.censored.sum())}"
        bound = ks.mcmc.tv_upper_bound(times, t=0).estimate
        cells = [f"{step:,}" if step is not None else "not known" for step in steps_to]
        pairs, median = f"{len(times):,}, {met} met", f"{np.median(times.excess):,.0f}"
        rows.append([found.target.norm, f"{times.lag:,}", pairs, median, f"{bound:.2f}", *cells])
    return rows


LAG_HEAD = (
    "norm", "lag L", "pairs", "median τ - L", "bound at step 0", f"steps to {LEVEL:g}", f"steps to {LEVEL / 10:g}",
)  # fmt: skip
TIMING_HEAD = (
    "system", "norm", f"steps to TV {LEVEL:g}", "steps a second", "seconds a draw, chain (TV 0.1)",
    "plan.sample is", "seconds a draw, plan.sample", "times faster",
)  # fmt: skip
