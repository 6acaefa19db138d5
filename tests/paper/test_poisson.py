"""Poisson regression on released counts: its coverage, and what the page states."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats

import keepsum as ks
from experiments import poisson_coverage
from experiments.poisson import fit_with_noise, fit_without_noise
from experiments.poisson_coverage import FITS, SLOPE, Counties, Coverage, coverages

REPO = Path(__file__).parents[2]


def test_the_usual_fit_solves_its_equations():
    counties = Counties.under(ks.Laplace(epsilon="0.25"))
    ((counts, released),) = counties.data_sets(1)
    for data in (counts, released):
        fit = fit_without_noise(data, counties.covariates, counties.offset)
        rates = np.exp(counties.offset + counties.covariates @ fit.coefficients)
        assert np.abs(counties.covariates.T @ (data - rates)).max() < 1e-6
    assert released.min() < 0

    def loss(b):
        return np.exp(counties.offset + counties.covariates @ b).sum() - counts @ (counties.covariates @ b)

    usual = fit_without_noise(counts, counties.covariates, counties.offset)
    assert usual.coefficients == pytest.approx(optimize.minimize(loss, np.zeros(2), tol=1e-8).x, abs=1e-5)


def test_without_noise_the_likelihood_is_the_usual_one():
    """At an epsilon of 20 there is none, so both fits and their standard errors agree."""
    counties = Counties.under(ks.Laplace(epsilon=20))
    ((counts, released),) = counties.data_sets(1)
    assert (counts == released).all()
    *_, exact = counties.fits(counts, released)
    usual = fit_without_noise(counts, counties.covariates, counties.offset)
    assert exact.coefficients == pytest.approx(usual.coefficients, abs=1e-4)
    assert exact.errors == pytest.approx(usual.errors, rel=1e-3)


@pytest.mark.audit
def test_the_likelihood_covers_and_what_ignores_the_noise_does_not():
    """95% of 100 data sets, at an error rate of 1e-6; the same fit with the wrong noise is rejected too."""
    counties = Counties.under(ks.Laplace(epsilon="0.25"))
    data = counties.data_sets(100)
    fits = zip(*(counties.fits(counts, released) for counts, released in data), strict=True)
    covered = {name: Coverage.of("0.25", name, each).covered for name, each in zip(FITS, fits, strict=True)}
    chance = {name: stats.binom.cdf(number, 100, 0.95) for name, number in covered.items()}
    assert chance["released, negative ones set to 0"] < 1e-6
    for name in ("confidential counts", "released as they are, robust errors", "likelihood with the noise"):
        assert chance[name] > 1e-6
    small = Counties.under(ks.Laplace(epsilon=2))
    x, offset = small.covariates, small.offset
    wrong = [fit_with_noise(released, x, offset, small.plan) for _, released in data]
    assert stats.binom.cdf(Coverage.of("2", "wrong", wrong).covered, 100, 0.95) < 1e-6


def published() -> list[dict[str, str]]:
    with (REPO / "experiments" / "out" / "poisson.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.audit
def test_the_published_figures_are_those_of_the_script():
    rows = [list(row.values()) for row in published() if row["epsilon"] == "1"]
    assert [result.row() for result in coverages("1", poisson_coverage.DATA_SETS)] == rows


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
    counties = Counties.under(ks.Laplace(epsilon=1))
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
