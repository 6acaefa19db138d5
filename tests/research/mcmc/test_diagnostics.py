"""R-hat and effective sample sizes against arviz."""

import warnings

import numpy as np
import pytest

import keepsum as ks
from support import mostly_audit


@pytest.fixture(scope="module")
def arviz():
    with warnings.catch_warnings():  # its import warns of its own future
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz")


def chains(name):
    rng = np.random.default_rng(5)
    if name == "metropolis":
        lattice = ks.Lattice([[1, 1, 1]])
        return ks.mcmc.metropolis(
            lattice, ks.Laplace.per_unit(epsilon=0.5), 501, 0.4, chains=4, rng=ks.rng(seed=1)
        ).draws
    if name == "apart":
        return rng.normal(size=(4, 300, 2)) + np.arange(4)[:, None, None] * [0.3, 3]
    if name == "other scales":
        return rng.normal(size=(3, 200, 2)) * np.array([1, 1, 4])[:, None, None]
    if name == "antithetic":
        noise = rng.normal(size=(4, 401, 2))
        return noise[:, 1:] - 0.9 * noise[:, :-1]
    walk = rng.normal(size=(2, 1000, 1)).cumsum(axis=1)
    return np.concatenate([walk, rng.integers(-1, 2, size=(2, 1000, 1))], axis=2)


NAMES = ["metropolis", "apart", "other scales", "antithetic", "walk and ties"]


@mostly_audit("name", NAMES)
@pytest.mark.parametrize(("ours", "theirs"), [("rank", "rank"), ("split", "split"), ("plain", "identity")])
def test_r_hat(arviz, name, ours, theirs):
    draws = chains(name)
    found = ks.mcmc.r_hat(draws, ours)
    for j, figure in enumerate(found):
        cell = draws[:, :, j].astype(float)
        assert figure == pytest.approx(float(arviz.rhat(cell, method=theirs)), rel=1e-10)
        assert ks.mcmc.r_hat(cell, ours) == figure


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", ["bulk", "tail", "mean"])
def test_effective_sample_size(arviz, name, method):
    draws = chains(name)
    for j, figure in enumerate(ks.mcmc.effective_sample_size(draws, method)):
        assert figure == pytest.approx(float(arviz.ess(draws[:, :, j].astype(float), method=method)), rel=1e-8)


def test_the_third_experiment_in_small():
    """Starts from a wider target, burn-in with the right one: below 1.01 in every cell, and far above it without."""
    lattice = ks.Lattice(np.ones((1, 12), dtype=int))
    options = {"a": np.exp(-2.5), "chains": 4}
    wide = ks.mcmc.metropolis(
        lattice, ks.Laplace.per_unit(epsilon="0.1"), 20_000, **options, thin=20_000, rng=ks.rng(seed=1)
    )
    narrow = ks.Laplace.per_unit(epsilon="0.192")
    runs = ks.mcmc.metropolis(
        lattice, narrow, 400_000, **options, thin=100, burn_in=20_000, start=wide.state, rng=ks.rng(seed=2)
    )
    assert ks.mcmc.r_hat(runs).max() < 1.01
    assert ks.mcmc.r_hat(runs, "plain").max() < 1.01
    early = ks.mcmc.metropolis(lattice, narrow, 200, **options, start=wide.state, rng=ks.rng(seed=2))
    assert ks.mcmc.r_hat(early).max() > 1.2


def test_cells_that_never_move():
    draws = np.zeros((4, 100, 2))
    draws[:, :, 1] = np.random.default_rng(1).normal(size=(4, 100))
    for figures in (ks.mcmc.r_hat(draws), ks.mcmc.r_hat(draws, "plain"), ks.mcmc.effective_sample_size(draws)):
        assert np.isnan(figures[0])
        assert np.isfinite(figures[1])


def test_chains_that_stay_where_they_started_do_not_agree():
    stuck = np.repeat(np.arange(4.0)[:, None], 50, axis=1)
    assert ks.mcmc.r_hat(stuck) == np.inf


@pytest.mark.parametrize("shape", [(1, 100), (4, 3), (100,), (2, 2, 2, 2)])
def test_bad_shapes_get_a_sentence(shape):
    with pytest.raises(ks.InputError, match="Draws must be of shape"):
        ks.mcmc.r_hat(np.zeros(shape))


def test_bad_methods_get_a_sentence():
    with pytest.raises(ks.InputError, match="Method must be 'rank', 'split' or 'plain'"):
        ks.mcmc.r_hat(np.zeros((4, 100)), "median")
