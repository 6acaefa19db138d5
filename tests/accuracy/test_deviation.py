"""The standard deviation of a cell: simulated ones have the standard error that they say, and no digit beyond it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import keepsum as ks
from keepsum.accuracy import sizes
from keepsum.accuracy.sizes import Deviation, cell_deviation
from support import BY_MIXTURE, margins

REPEATED = 400  # a sample standard deviation of so many is within 20% of the true one but for a probability of 1e-7


def spread(estimates: list[Deviation], true: float) -> float:
    """The root mean square of errors in units of the standard errors that were stated."""
    return math.sqrt(np.mean([((one.value - true) / one.error) ** 2 for one in estimates]))


def test_the_standard_error_of_draws():
    random = np.random.default_rng(1)
    draws = [(random.normal(0, 3, size=(1000, 4)) ** 2).mean(axis=1) for _ in range(REPEATED)]
    estimates = [Deviation.of_squares(squares, chain=False) for squares in draws]
    assert spread(estimates, 3) == pytest.approx(1, abs=0.2)


def test_the_standard_error_of_weighted_proposals():
    """Proposals of width 4 for noise of width 3."""
    random = np.random.default_rng(2)
    estimates = []
    for _ in range(REPEATED):
        proposed = random.normal(0, 4, size=1000)
        estimates.append(Deviation.of_weighted(proposed**2, proposed**2 * (1 / 32 - 1 / 18)))
    assert spread(estimates, 3) == pytest.approx(1, abs=0.2)


def test_an_exact_sampler_against_the_enumerated_noise():
    """Noise that keeps both margins of 2 × 2 cells is k in each, with P(k) proportional to exp(-4 epsilon |k|)."""
    plan = ks.plan(keep=margins(2, 2), mechanism=ks.Laplace.per_unit(epsilon="0.25"))
    k = np.arange(-60, 61)
    true = math.sqrt(np.average(k**2, weights=np.exp(-abs(k))))
    found = cell_deviation(plan._record.blocks, 0)
    assert 0 < found.error < 0.05
    assert abs(found.value - true) < 3 * found.error


def test_the_figure_of_a_chain_is_shown_to_what_its_proposals_support(monkeypatch):
    """Other draws, as other processors have them, give another figure, but not other digits than the last one.

    Three standard errors are at most 1 in that digit, and rounding adds a half. Five of them are allowed here, which
    more are off by with a probability below 1e-6.
    """
    blocks = ks.plan(keep=BY_MIXTURE[0], mechanism=BY_MIXTURE[1])._record.blocks
    monkeypatch.setattr(sizes, "PROPOSING", 2 * 10**6)
    found = []
    for other in range(5):
        monkeypatch.setattr(sizes, "rng", lambda seed, other=other: ks.rng(seed=f"{seed} {other}"))
        found.append(cell_deviation(blocks, 0))
    mean = np.mean([one.value for one in found])
    assert len({one.value for one in found}) == len(found)
    for one in found:
        about, shown = str(one).split()
        assert about == "about"
        assert abs(one.value - mean) < 5 * one.error
        assert abs(float(shown) - mean) < (5 / 3 + 0.5) * 10.0 ** -len(shown.partition(".")[2])
