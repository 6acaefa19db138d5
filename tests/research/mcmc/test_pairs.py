"""Kernels of users: random-walk Metropolis on N(0, 1), against figures from outside."""

import numpy as np
import pytest
from scipy.special import ndtr

import keepsum as ks

SCALE, START, LAG = 0.5, 10.0, 150
STEPS = np.array([33, 40, 50, 60, 80, 100])
BOUNDS = np.array([0.948, 0.840, 0.595, 0.349, 0.083, 0.016])
DISTANCES = np.array([0.870, 0.731, 0.488, 0.277, 0.065, 0.012])


def accept(state, proposal, uniform):
    return np.where(np.log(uniform) < (state**2 - proposal**2) / 2, proposal, state)


def step(rng, state):
    return accept(state, rng.normal(state, SCALE, len(state)), rng.random(len(state))), None


def coupled_step(rng, pair, scale=SCALE):
    """Maximal coupling of two normal proposals (the residual by rejection), one uniform number for both."""
    x, y = pair
    n = len(x)
    first = rng.normal(x, scale, n)
    second = first.copy()
    log_ratio = ((first - x) ** 2 - (first - y) ** 2) / (2 * SCALE**2)
    left = np.flatnonzero(np.log(rng.random(n)) > log_ratio)
    while left.size:
        trial = rng.normal(y[left], scale, left.size)
        log_ratio = ((trial - y[left]) ** 2 - (trial - x[left]) ** 2) / (2 * SCALE**2)
        good = np.log(rng.random(left.size)) > log_ratio
        second[left[good]] = trial[good]
        left = left[~good]
    common = rng.random(n)
    return (accept(x, first, common), accept(y, second, common)), None


def kernel(**options):
    return ks.mcmc.ManyAtOnce(
        lambda rng, n: np.full(n, START), step, lambda rng, pair: coupled_step(rng, pair, **options)
    )


def exact_distances():
    """By powers of the transition operator on a fine grid."""
    grid, width = np.linspace(-6, 11, 1701, retstep=True)
    density = np.exp(-(grid**2) / 2)
    density /= density.sum()
    P = np.exp(-((grid[:, None] - grid) ** 2) / (2 * SCALE**2)) * width / (SCALE * np.sqrt(2 * np.pi))
    P *= np.minimum(1, np.exp((grid[:, None] ** 2 - grid**2) / 2))
    P[np.diag_indices_from(P)] += 1 - P.sum(axis=1)
    law, found = np.zeros(len(grid)), []
    law[np.argmin(np.abs(grid - START))] = 1
    for t in range(1, STEPS[-1] + 1):
        law = law @ P
        if t in STEPS:
            found.append(np.abs(law - density).sum() / 2)
    assert ndtr(-6) < 1e-8  # what the grid leaves out
    return np.array(found)


@pytest.mark.audit
def test_random_walk_on_a_normal_law():
    """Tolerances of 0.005 and 0.3 at error rate 1e-6 need 250,000 pairs: 4.9 standard errors lie within them."""
    times = ks.mcmc.meeting_times_of(kernel(), lag=LAG, pairs=250_000, max_steps=2000, rng=ks.rng(seed=1))
    bound = ks.mcmc.tv_upper_bound(times, t=STEPS)
    assert np.all(4.9 * bound.standard_error < 0.005)
    assert np.all(np.abs(bound.estimate - BOUNDS) < 0.005)
    assert times.excess.mean() == pytest.approx(56.3, abs=0.3)
    exact = exact_distances()
    assert np.all(np.abs(exact - DISTANCES) < 0.001)
    assert np.all(exact < bound.estimate)


@pytest.mark.audit
def test_a_coupling_with_the_wrong_proposal_is_rejected():
    """The same figures must tell a coupling whose chains make other proposals than the kernel's."""
    times = ks.mcmc.meeting_times_of(kernel(scale=0.55), lag=LAG, pairs=20_000, max_steps=2000, rng=ks.rng(seed=1))
    bound = ks.mcmc.tv_upper_bound(times, t=STEPS)
    assert np.any(np.abs(bound.estimate - BOUNDS) > 0.005 + 4.9 * bound.standard_error)


class OneAtATime:
    """The same chain, one pair at a time: a state is a float."""

    def start(self, rng):
        return START

    def step(self, rng, state):
        moved, info = step(rng, np.array([state]))
        return moved[0], info

    def coupled_step(self, rng, pair):
        (x, y), info = coupled_step(rng, tuple(np.array([state]) for state in pair))
        return (x[0], y[0]), info


@pytest.mark.audit
def test_one_at_a_time_is_the_same():
    times = ks.mcmc.meeting_times_of(OneAtATime(), lag=LAG, pairs=200, max_steps=2000, rng=ks.rng(seed=1))
    assert abs(times.excess.mean() - 56.3) < 4.9 * times.excess.std() / np.sqrt(200)


@pytest.mark.parametrize("which", [kernel(), OneAtATime()])
def test_seeds_censoring_and_threads(which):
    def run(seed, threads):
        return ks.mcmc.meeting_times_of(which, lag=5, pairs=70, max_steps=70, rng=ks.rng(seed=seed), threads=threads)

    one, two = run(1, 1), run(1, 2)
    assert np.array_equal(one.times, two.times)
    assert 0 < one.censored.sum() < 70
    assert (one.times[one.censored] == 70).all()
    assert np.array_equal(one.censored, two.censored)
    assert not np.array_equal(one.times, run(2, 1).times)


def test_draws():
    rng = ks.mcmc.Draws(ks.rng(seed=1).stream())
    normal = rng.normal(3, 2, (200, 500))
    assert normal.shape == (200, 500)
    assert abs(normal.mean() - 3) < 4.9 * 2 / np.sqrt(1e5)
    assert abs(normal.var() / 4 - 1) < 4.9 * np.sqrt(2 / 1e5)
    assert abs(rng.exponential(2.0, 10_000).mean() - 2) < 4.9 * 2 / 100
    uniform = rng.random(100_000)
    assert uniform.min() > 0
    assert uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 4.9 / np.sqrt(12e5)
