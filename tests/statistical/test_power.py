"""The chance that a wrong sampler is rejected, which tests state when they choose how many draws they need."""

import numpy as np
import pytest
from laws import ALPHA, LEAST, binned, chi_square, power

COIN = [(0,), (1,)], np.array([0.5, 0.5])
WRONG = np.repeat([[0], [1]], [53_000, 47_000], axis=0)


def test_power_is_the_share_of_samples_that_are_rejected():
    """400 samples of 5,000 throws of a coin that is off by 0.03: within 5 standard errors."""
    heads = np.random.default_rng(1).binomial(5_000, 0.47, 400)
    rejected = np.mean([np.greater(*chi_square(np.repeat([[0], [1]], [5_000 - n, n], axis=0), *COIN)) for n in heads])
    assert 0.05 < rejected < 0.95
    assert abs(rejected - power(WRONG, COIN, 5_000)) < 5 * np.sqrt(rejected * (1 - rejected) / 400)


def test_more_draws_have_more_power_and_the_right_sampler_is_hardly_rejected():
    assert power(WRONG, COIN, 2_000) < power(WRONG, COIN, 5_000) < power(WRONG, COIN, 20_000)
    right = np.repeat([[0], [1]], 50_000, axis=0)
    assert power(right, COIN, 5_000) == pytest.approx(ALPHA, rel=1e-6)


def test_bins_are_those_of_the_test_that_is_planned():
    """Three outcomes, the last with chance 0.01: it has a bin of its own only where 100 are expected in it."""
    law = [(0,), (1,), (2,)], np.array([0.49, 0.5, 0.01])
    draws = np.repeat([[0], [1], [2]], [49, 50, 1], axis=0)
    for count, bins in ((100 * LEAST, 3), (100 * LEAST - 1, 2)):
        observed, wanted = binned(draws, *law, count)
        assert len(observed) == len(wanted) == bins
        assert observed == pytest.approx(wanted)
