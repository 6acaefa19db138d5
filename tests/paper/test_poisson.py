"""Poisson regression on released counts: its coverage, and what the page states."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats

import keepsum as ks
from experiments import poisson_coverage
from experiments.poisson_coverage import FITS, SLOPE, Counties, Coverage, coverages
from keepsum.accuracy.regression import Fit, likelihood_fit, poisson_fit

REPO = Path(__file__).parents[2]


def test_the_usual_fit_solves_its_equations():
    counties = Counties.under(ks.Laplace.per_unit(epsilon="0.25"))
    ((counts, released),) = counties.data_sets(1)
    for data in (counts, released):
        fit = poisson_fit(data, counties.covariates, counties.offset, robust=False)
        rates = np.exp(counties.offset + counties.covariates @ fit.coefficients)
        assert np.abs(counties.covariates.T @ (data - rates)).max() < 1e-6
    assert released.min() < 0

    def loss(b):
        return np.exp(counties.offset + counties.covariates @ b).sum() - counts @ (counties.covariates @ b)

    usual = poisson_fit(counts, counties.covariates, counties.offset, robust=False)
    assert usual.coefficients == pytest.approx(optimize.minimize(loss, np.zeros(2), tol=1e-8).x, abs=1e-5)


def test_without_noise_the_likelihood_is_the_usual_one():
    """At an epsilon of 20 there is none, so both fits and their standard errors agree."""
    counties = Counties.under(ks.Laplace.per_unit(epsilon=20))
    ((counts, released),) = counties.data_sets(1)
    assert (counts == released).all()
    *_, exact = counties.fits(counts, released)
    usual = poisson_fit(counts, counties.covariates, counties.offset, robust=False)
    assert exact.coefficients == pytest.approx(usual.coefficients, abs=1e-4)
    assert exact.errors == pytest.approx(usual.errors, rel=1e-3)


# Of 500 intervals of a right method at least 442 hold the slope, of a wrong one fewer, whatever the draws are. Over
# 3,000 data sets of 30 other seeds a right method's interval held it in more than 94%, a wrong one's in less than 80%.
TRIED, ENOUGH = 500, 442
RIGHT, WRONG = 0.94, 0.80


def test_so_many_data_sets_tell_right_from_wrong_for_nearly_any_draws():
    assert stats.binom.cdf(ENOUGH - 1, TRIED, RIGHT) < 2e-6  # a right method fails
    assert stats.binom.sf(ENOUGH - 1, TRIED, WRONG) < 1e-6  # a wrong one passes


def fit_or_none(released, x, offset, plan):
    """The fit by likelihood; one that covers nothing where there is none."""
    try:
        return likelihood_fit(released, x, offset, plan.noise.log_likelihood)
    except ks.InputError:
        return Fit(np.full(x.shape[1], np.nan), np.full((x.shape[1], x.shape[1]), np.nan), "none")


@pytest.mark.audit
def test_the_likelihood_covers_and_what_ignores_the_noise_does_not():
    """Nominal 95% intervals hold the slope; the same fit with the wrong noise is rejected, too."""
    counties, small = (
        Counties.under(ks.Laplace.per_unit(epsilon="0.25")),
        Counties.under(ks.Laplace.per_unit(epsilon=2)),
    )
    data = counties.data_sets(TRIED)
    fits = dict(zip(FITS, zip(*(counties.fits(*counts) for counts in data), strict=True), strict=True))
    x, offset = small.covariates, small.offset
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # some counts are impossible with that noise
        fits["wrong noise"] = [fit_or_none(released, x, offset, small.plan) for _, released in data]
    covered = {name: Coverage.of("0.25", name, each).covered for name, each in fits.items()}
    for name in ("released, negative ones set to 0", "wrong noise"):
        assert covered[name] < ENOUGH
    for name in ("confidential counts", "released as they are, robust errors", "likelihood with the noise"):
        assert covered[name] >= ENOUGH


def published() -> list[dict[str, str]]:
    with (REPO / "experiments" / "out" / "poisson.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.audit
def test_the_published_figures_are_those_of_the_script():
    """Up to the error of the simulation: the last digits of an optimum, and so of intervals, vary with the machine."""
    rows = [row for row in published() if row["epsilon"] == "1"]
    for row, found in zip(rows, coverages("1", poisson_coverage.DATA_SETS), strict=True):
        assert row["fit"] == found.name
        root, spread = math.sqrt(poisson_coverage.DATA_SETS), found.estimates.std(ddof=1)
        for column, value, error in (
            ("coverage", found.share, math.sqrt(found.share * (1 - found.share)) / root),
            ("bias", found.estimates.mean() - SLOPE, spread / root),
            ("standard deviation", spread, spread / (math.sqrt(2) * root)),
            ("mean length", found.lengths.mean(), found.lengths.std(ddof=1) / root),
        ):
            shown = float(row[column].rstrip("%")) / (100 if row[column].endswith("%") else 1)
            assert abs(shown - value) < 0.0005 + error, (found.name, column)


def test_the_page_shows_the_published_figures():
    page = (REPO / "docs" / "analysis.md").read_text(encoding="utf-8")
    rows = published()
    assert len(rows) == len(FITS) * len(poisson_coverage.EPSILONS)
    assert "\n".join(f"| {' | '.join(row.values())} |" for row in rows) in page
    words = " ".join(page.split())
    by_name = {row["fit"]: row for row in rows if row["epsilon"] == "0.25"}
    naive, whole, ours = (list(by_name)[k] for k in (1, 3, 4))
    assert f"At ε = 0.25 it holds the slope in {by_name[naive]['coverage']} of all data sets" in words
    times = float(by_name[whole]["mean length"]) / float(by_name[ours]["mean length"])
    assert f"{times:.1f} times as long as those of the likelihood at ε = 0.25" in words
    counties = Counties.under(ks.Laplace.per_unit(epsilon=1))
    rates = np.exp(counties.offset + counties.covariates @ [0, SLOPE])
    low, middle, high = rates.min(), np.median(rates), rates.max()
    assert f"expected counts from {low:.1f} to {high:.0f} with a median of {middle:.1f}, true slope {SLOPE}" in words
    assert f"{poisson_coverage.DATA_SETS} simulated data sets for each ε, 6 states of 15 counties" in words


def test_a_quick_run_writes_the_table_and_the_figure(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OUT", str(tmp_path))
    monkeypatch.setenv("QUICK", "1")
    monkeypatch.setattr(poisson_coverage, "QUICK_DATA_SETS", 3)
    assert poisson_coverage.main() == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["poisson.csv", "poisson.png", "poisson.svg"]
    assert capsys.readouterr().out.count("\n") == 2 + len(published())
