"""Harmonic numbers, against exact sums and scipy's digamma function."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import digamma

from keepsum.planning.geometry import harmonic


def test_small_ones_are_the_sums():
    sums = np.cumsum([0, *(Fraction(1, k) for k in range(1, 100))]).astype(float)
    np.testing.assert_allclose(harmonic(np.arange(100.0)), sums, rtol=1e-15, atol=0)


def test_large_ones_are_those_of_scipy():
    n = np.concatenate([np.arange(1.0, 2000), 10.0 ** np.arange(4, 16)])
    assert harmonic(n) == pytest.approx(digamma(n + 1) + np.euler_gamma, rel=4e-15)
