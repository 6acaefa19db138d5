"""How often the intervals of a Poisson regression on released counts hold the true slope.

``python -m experiments.poisson_coverage`` writes ``poisson.csv`` and the figure ``poisson`` into experiments/out, or
OUT, in some minutes; with QUICK=1 in less than one. ``docs/analysis.md`` shows both.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

import keepsum as ks
from experiments.drawing import BLUE, GREEN, GREY, ORANGE, RED, new, save
from keepsum.accuracy.regression import Fit, likelihood_fit, poisson_fit

STATES, COUNTIES = 6, 15  # counties per state
TYPICAL_COUNT, SPREAD = 8, 0.8  # the median of expected counts at covariate 0, and the standard deviation of their ln
INTERCEPT, SLOPE = 0.0, 0.5
LEVEL = 0.95
EPSILONS = ("1", "0.5", "0.25")  # per unit of l1 distance
DATA_SETS, QUICK_DATA_SETS = 300, 20
FITS = {
    "confidential counts": GREY,
    "released, negative ones set to 0": RED,
    "the same, robust errors": ORANGE,
    "released as they are, robust errors": GREEN,
    "likelihood with the noise": BLUE,
}


@dataclass(frozen=True)
class Counties:
    """The counties of all simulated data sets: their plan, covariates and log populations."""

    plan: ks.Plan
    covariates: np.ndarray
    offset: np.ndarray

    @classmethod
    def under(cls, mechanism: ks.Laplace | ks.Gaussian) -> Counties:
        """Counties in states whose totals are kept; the same ones for any noise."""
        within = {state: range(COUNTIES) for state in range(STATES)}
        domain = ks.Domain({"state": range(STATES), "county": within}, within={"county": "state"})
        random = np.random.default_rng(1)
        covariate, population = random.normal(size=(2, domain.size))
        return cls(
            ks.plan(domain, keep=[["state"]], mechanism=mechanism),
            np.column_stack([np.ones(domain.size), covariate]),
            np.log(TYPICAL_COUNT) + SPREAD * population,
        )

    def data_sets(self, number: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Simulated counts, and what is released of them."""
        rates = np.exp(self.offset + self.covariates @ [INTERCEPT, SLOPE])
        counts = np.random.default_rng(2).poisson(rates, size=(number, len(rates)))
        return list(zip(counts, counts + self.plan.sample(number, rng=ks.rng(seed="poisson")), strict=True))

    def fits(self, counts: np.ndarray, released: np.ndarray) -> list[Fit]:
        """The fits to one data set, in the order of ``FITS``."""
        x, offset, cut = self.covariates, self.offset, np.maximum(released, 0)
        return [
            poisson_fit(counts, x, offset, robust=False),
            poisson_fit(cut, x, offset, robust=False),
            poisson_fit(cut, x, offset, robust=True),
            poisson_fit(released, x, offset, robust=True),
            likelihood_fit(released, x, offset, self.plan.noise.log_likelihood),
        ]


@dataclass(frozen=True)
class Coverage:
    """How one kind of fit does over all data sets, for the slope."""

    epsilon: str
    name: str
    covered: int
    estimates: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, epsilon: str, name: str, fits: Sequence[Fit]) -> Coverage:
        """The coverage of some fits."""
        ends = np.array([fit.interval(1, LEVEL) for fit in fits])
        covered = int(((ends[:, 0] <= SLOPE) & (ends[:, 1] >= SLOPE)).sum())
        return cls(epsilon, name, covered, np.array([fit.coefficients[1] for fit in fits]), ends[:, 1] - ends[:, 0])

    @property
    def share(self) -> float:
        """The share of data sets whose interval holds the slope."""
        return self.covered / len(self.estimates)

    def row(self) -> list[str]:
        """The line of the table."""
        return [
            self.epsilon,
            self.name,
            f"{100 * self.share:.1f}%",
            f"{self.estimates.mean() - SLOPE:+.3f}",
            f"{self.estimates.std(ddof=1):.3f}",
            f"{self.lengths.mean():.3f}",
        ]


HEAD = ["epsilon", "fit", "coverage", "bias", "standard deviation", "mean length"]


def coverages(epsilon: str, number: int) -> list[Coverage]:
    """Every kind of fit at one epsilon."""
    counties = Counties.under(ks.Laplace.per_unit(epsilon=epsilon))
    fits = [counties.fits(counts, released) for counts, released in counties.data_sets(number)]
    return [Coverage.of(epsilon, name, each) for name, each in zip(FITS, zip(*fits, strict=True), strict=True)]


def draw(results: Sequence[Coverage]) -> Figure:
    """Coverage by epsilon, with 95% intervals for the number of data sets."""
    figure, ((axes,),) = new(8, 4)
    axes.axhline(100 * LEVEL, color=GREY, linewidth=0.8, linestyle="--")
    for place, (name, colour) in enumerate(FITS.items()):
        chosen = [result for result in results if result.name == name]
        bounds = [stats.binomtest(r.covered, len(r.estimates)).proportion_ci(0.95) for r in chosen]
        shares = np.array([result.share for result in chosen])
        reach = np.array([shares - [b.low for b in bounds], [b.high for b in bounds] - shares])
        at = np.arange(len(chosen)) + 0.12 * (place - (len(FITS) - 1) / 2)
        axes.errorbar(at, 100 * shares, 100 * reach, fmt="o", markersize=5, capsize=2, color=colour, label=name)
    axes.set_xticks(range(len(EPSILONS)), [f"ε = {epsilon}" for epsilon in EPSILONS])
    axes.set_ylabel("intervals that hold the slope (%)")
    axes.set_title("Coverage of nominal 95% intervals")
    axes.legend(loc="lower left", frameon=False, fontsize=9)
    return figure


def main() -> int:
    """Simulate, write the table and the figure, and print the table."""
    out = Path(os.environ.get("OUT") or Path(__file__).parent / "out")
    quick = os.environ.get("QUICK", "") not in ("", "0")
    number = QUICK_DATA_SETS if quick else DATA_SETS
    results = [result for epsilon in EPSILONS for result in coverages(epsilon, number)]
    rows = [HEAD, *(result.row() for result in results)]
    save(draw(results), out, "poisson")
    with (out / "poisson.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    print("\n".join(f"| {' | '.join(row)} |" for row in [HEAD, ["---"] * len(HEAD), *rows[1:]]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
