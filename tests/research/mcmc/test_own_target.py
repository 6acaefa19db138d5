"""A target given as a log-density: its chain has the law of that density, and a wrong one is told apart."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import keepsum as ks

LATTICE = ks.Lattice([[1, 1]])  # vectors (k, -k)
STEPS, CHAINS = 40, 1000


def heavy(z):
    """q(k, -k) in proportion to 1 / (1 + k^2)^2."""
    return -2 * float(np.log1p(float(z[0]) ** 2))


def ends(log_density):
    """Where chains are after some steps, from a seed."""
    kernel = ks.mcmc.LatticeMetropolis(LATTICE, log_density, 0.5)
    rng = ks.mcmc.Draws(ks.rng(seed=5).stream())
    found = []
    for _ in range(CHAINS):
        state = kernel.start(rng)
        for _ in range(STEPS):
            state, _ = kernel.step(rng, state)
        found.append(int(state.z[0]))
    return np.array(found)


def chi_square(found):
    """Pearson's statistic against the enumerated law, of -1, 0, 1, and what lies below and above."""
    law = (1.0 + np.arange(-100_000, 100_001) ** 2.0) ** -2
    middle = law[99_999:100_002]
    parts = np.array([law[:99_999].sum(), *middle, law[100_002:].sum()])
    expected = CHAINS * parts / law.sum()
    return float(((np.bincount(np.clip(found, -2, 2) + 2, minlength=5) - expected) ** 2 / expected).sum())


def test_the_law_is_that_of_the_density():
    assert chi_square(ends(heavy)) < 18.5  # 0.999 of chi-square with 4 degrees of freedom


def test_another_density_is_told_apart():
    assert chi_square(ends(lambda z: heavy(z) / 2)) > 18.5


def test_a_density_of_zero_is_never_entered():
    kernel = ks.mcmc.LatticeMetropolis(LATTICE, lambda z: -np.inf if abs(z[0]) > 1 else 0, 0.5)
    rng = ks.mcmc.Draws(ks.rng(seed=2).stream())
    state = kernel.start(rng)
    inside = False
    for _ in range(500):
        state, _ = kernel.step(rng, state)
        assert not inside or abs(state.z[0]) <= 1
        inside = inside or abs(state.z[0]) <= 1
    assert inside


@pytest.mark.parametrize("wrong", [lambda z: "much", lambda z: np.nan, lambda z: np.inf, lambda z: None])
def test_what_is_no_logarithm_is_refused(wrong):
    kernel = ks.mcmc.LatticeMetropolis(LATTICE, wrong, 0.5)
    rng = ks.mcmc.Draws(ks.rng(seed=1).stream())
    with pytest.raises(ks.InputError, match="A log-density must give a number"):
        kernel.step(rng, kernel.start(rng))


def test_the_example_runs():
    path = Path(__file__).parents[3] / "examples" / "own_target.py"
    spec = importlib.util.spec_from_file_location("own_target", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    noise, distance = example.main()
    assert noise.sum() == 0
    assert 0 <= distance < 0.5
