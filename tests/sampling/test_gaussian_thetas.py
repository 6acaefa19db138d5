"""The factors of coordinates of Gaussian noise, against ball arithmetic."""

import numpy as np
import pytest
from flint import arb

from keepsum._arrays import Floats
from keepsum.sampling.core.balls import precision
from keepsum.sampling.core.kernel_arguments import OutFloats
from keepsum.sampling.gaussian.kernel_arguments import THETA_ERROR, WIDE_VARIANCE
from keepsum.sampling.gaussian.parts import log_theta
from sampling.probes import Probe

count_thetas = Probe(("probe_gaussian",), "count_thetas", Floats, Floats, OutFloats, OutFloats)
TELLING = 200.0  # a larger loss is settled by the first word of a block, whatever its last digits


def thetas(variances, phis):
    there, centred = np.empty(len(phis)), np.empty(len(phis))
    count_thetas(variances, phis, there, centred)
    return there, centred


@pytest.mark.parametrize(("least", "most"), [(0.16, WIDE_VARIANCE), (0.02, 0.16), (0.0007, 0.02)])
def test_factors_are_right_to_their_error(least, most):
    random = np.random.default_rng(1)
    variances = np.append(np.exp(random.uniform(np.log(least), np.log(most), 1000)), [least, np.nextafter(most, 0)])
    phis = random.uniform(-0.5, 0.5, len(variances))
    phis[:40] = np.repeat([0.0, 0.5, -0.5, 2.0**-60], 10)
    there, centred = thetas(variances, phis)
    with precision(160):
        for variance, phi, found, top in zip(variances.tolist(), phis.tolist(), there, centred, strict=True):
            assert abs(arb(float(found)) - log_theta(arb(variance), arb(phi))) < THETA_ERROR
            assert abs(arb(float(top)) - log_theta(arb(variance), arb(0))) < THETA_ERROR


def test_very_narrow_coordinates_lose_what_they_must():
    """Far below what floats hold the terms of: a loss beyond any word, and a number all the same."""
    variances = 10.0 ** -np.arange(4.0, 17.0)
    there, centred = thetas(variances, np.full(len(variances), 0.4))
    assert np.isfinite(there).all()
    assert (centred - there >= TELLING).all()
    assert there == pytest.approx(centred - 0.08 / variances, rel=1e-12)


def test_wide_coordinates_have_no_factor_that_tells():
    there, centred = thetas(np.array([WIDE_VARIANCE, 1e6]), np.array([0.5, 0.1]))
    assert not there.any()
    assert not centred.any()
