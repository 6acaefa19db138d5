"""Algorithm 1 against enumerated laws, error rate 1e-6 a test (laws.py); thinned draws are as good as independent."""

import numpy as np
import pytest
from laws import assert_drawn_from, assert_not_drawn_from, lattice_law, solved_law, sum_law

import keepsum as ks
from keepsum.research.mcmc.kernel_arguments import WALK_STATE
from keepsum.research.mcmc.metropolis import ChainProblem, advance, begin, pose
from keepsum.sampling.core.kernel_arguments import new_state
from support import mostly_audit

SUM, OVERLAP, COINS = [[1, 1, 1]], [[1, 1, 1, 0], [0, 1, 1, 1]], [[2, 3, 5]]


def draws(A, mechanism, a, seed=1, **options):
    runs = ks.mcmc.metropolis(
        ks.Lattice(A), mechanism, 2_000_000, a, burn_in=500, thin=80, chains=4, rng=ks.rng(seed=seed), **options
    )
    return runs.draws.reshape(-1, len(A[0]))


LAWS = {
    "l1, sum": (SUM, ks.Laplace.per_unit(epsilon=1), 0.4, lambda: sum_law(3, 1.0)),
    "l1, 2 3 5": (COINS, ks.Laplace.per_unit(epsilon=0.5), 0.3, lambda: solved_law(COINS, [0, 1], 0.5, 14, 80)),
    "l2, sum": (
        SUM,
        ks.Laplace.per_unit(epsilon=1, norm="l2"),
        0.5,
        lambda: lattice_law(SUM, lambda s: np.exp(-np.sqrt(s)), 50, 40),
    ),
    "l2, overlap": (
        OVERLAP,
        ks.Laplace.per_unit(epsilon=1.5, norm="l2"),
        0.3,
        lambda: lattice_law(OVERLAP, lambda s: np.exp(-1.5 * np.sqrt(s)), 40, 30),
    ),
    "Gaussian, sum": (SUM, ks.Gaussian(sigma=2), 0.5, lambda: lattice_law(SUM, lambda s: np.exp(-s / 8), 30, 60)),
    "Gaussian, 2 3 5": (
        COINS,
        ks.Gaussian(sigma=3),
        0.3,
        lambda: lattice_law(COINS, lambda s: np.exp(-s / 18), 30, 90),
    ),
}


@mostly_audit("name", LAWS)
def test_law(name):
    A, mechanism, a, law = LAWS[name]
    assert_drawn_from(draws(A, mechanism, a), law())


def test_law_with_a_basis_and_parameters_of_ones_own():
    """A skew basis, one parameter a coordinate, and the other way of following the norm (few cells touched)."""
    basis = np.array([[1, 3], [-1, -2], [0, -1]])
    assert_drawn_from(draws(SUM, ks.Laplace.per_unit(epsilon=1), [0.5, 0.2], basis=basis), sum_law(3, 1.0))


@pytest.mark.parametrize(
    "mechanism", [ks.Laplace.per_unit(epsilon=1), ks.Laplace.per_unit(epsilon=1, norm="l2"), ks.Gaussian(sigma=2)]
)
def test_both_ways_of_following_the_norm_give_the_same_chain(mechanism, monkeypatch):
    def run():
        return ks.mcmc.metropolis(ks.Lattice(OVERLAP), mechanism, 3000, 0.4, rng=ks.rng(seed=3)).draws

    found = run()
    for most in (True, False):
        monkeypatch.setattr(ChainProblem, "touches_most", most)
        assert np.array_equal(run(), found)


@pytest.mark.audit
def test_wrong_chains_are_rejected():
    """A chain that stays put, one with another epsilon, and one that has not burnt in."""
    law = sum_law(3, 1.0)
    assert_not_drawn_from(draws(SUM, ks.Laplace.per_unit(epsilon=1), 1e-12), law)
    assert_not_drawn_from(draws(SUM, ks.Laplace.per_unit(epsilon="1.03"), 0.4), law)
    short = ks.mcmc.metropolis(
        ks.Lattice(SUM), ks.Laplace.per_unit(epsilon=1), 2, 0.9, chains=10_000, thin=2, rng=ks.rng(seed=1)
    )
    assert_not_drawn_from(short.draws.reshape(-1, 3), law)


@pytest.mark.audit
def test_the_start_has_the_law_g():
    """One pre-jump from 0: every coordinate double geometric, in an independent chain each."""
    lattice, problem = ks.Lattice(SUM), pose(ks.Lattice(SUM), ks.Laplace.per_unit(epsilon=1), 0.6)
    stream = ks.rng(seed=2).stream()
    found = np.zeros((60_000, 2), dtype=np.int64)
    for coordinates in found:
        begin(problem, z := np.zeros(3, dtype=np.int64), True, stream, coordinates)
        assert np.array_equal(lattice.basis @ coordinates, z)
    reach = np.arange(-12, 13)
    eta = 0.4 / 1.6 * 0.6 ** np.abs(reach)
    law = [(i, j) for i in reach.tolist() for j in reach.tolist()], np.outer(eta, eta).reshape(-1)
    assert_drawn_from(found, law)
    assert_not_drawn_from(found + np.array([1, 0]), law)


def test_where_buffers_end_changes_nothing():
    """Words come one at a time, or thousands at once: the same chain."""
    problem = pose(
        ks.Lattice(OVERLAP), ks.Laplace.per_unit(epsilon=0.5), 0.9
    )  # wide: many coordinates take a second word
    ends = []
    for buffer_words in (1, 7, 65536):
        stream = ks.rng(seed=1).stream(buffer_words)
        z, out = np.zeros(4, dtype=np.int64), np.empty((2000, 4), dtype=np.int64)
        state = begin(problem, z, True, stream)
        advance(problem, stream, state, z, 2000, None, out)
        ends.append((out, stream.word()))
    assert all(np.array_equal(out, ends[0][0]) and word == ends[0][1] for out, word in ends)
    assert new_state(WALK_STATE)[0].tolist() == (0, -1, *[0] * 9)  # a state that has done nothing


def test_seeds_repeat_for_any_number_of_threads():
    def run(seed, threads):
        return ks.mcmc.metropolis(
            ks.Lattice(SUM), ks.Laplace.per_unit(epsilon=1), 500, 0.4, chains=70, rng=ks.rng(seed=seed), threads=threads
        ).draws

    first = run(1, 1)
    assert np.array_equal(first, run(1, 2))
    assert np.array_equal(first, run(1, None))
    assert not np.array_equal(first, run(2, 1))
    assert len(np.unique(first[:, -1], axis=0)) > 10  # the chains differ


def test_going_on_burn_in_and_thinning():
    lattice, laplace = ks.Lattice(SUM), ks.Laplace.per_unit(epsilon=1)
    whole = ks.mcmc.metropolis(lattice, laplace, 100, 0.4, rng=ks.rng(seed=1))
    part = ks.mcmc.metropolis(lattice, laplace, 70, 0.4, burn_in=30, thin=7, rng=ks.rng(seed=1))
    assert np.array_equal(part.draws[0], whole.draws[0, 36::7])
    assert np.array_equal(part.state, whole.state)
    assert np.array_equal(whole.draws[:, -1], whole.state)
    moved = np.any(np.diff(whole.draws[0, 29:], axis=0), axis=1).sum()
    assert moved <= part.info.accepted[0] <= 70  # a pre-jump of 0 is accepted and does not move
    further = ks.mcmc.metropolis(lattice, laplace, 1, 1e-12, start=whole.state, rng=ks.rng(seed=1))
    assert np.array_equal(further.state, whole.state)
    assert part.info.acceptance_rate == part.info.accepted / 70


def test_cost_grows_with_the_nonzeros_of_the_basis():
    """Counted, not timed: entries of the basis added to cells. d * m would grow by 100 where this grows by 10."""
    counts = {}
    for d in (100, 1000):
        lattice = ks.Lattice(np.ones((1, d), dtype=int))
        problem = pose(lattice, ks.Laplace.per_unit(epsilon=1), 0.05)
        runs = ks.mcmc.metropolis(lattice, ks.Laplace.per_unit(epsilon=1), 2000, 0.05, rng=ks.rng(seed=1))
        counts[d] = runs.info.cell_updates[0] / 2000
        nonzeros = len(problem.columns.entries)
        expected = nonzeros * 2 * 0.05 / 1.05  # a coordinate is not 0 with chance 2a / (1 + a)
        spread = 5 * 2 * np.sqrt(nonzeros / 2 / 2000)
        assert abs(counts[d] - expected) < spread
        assert problem.updates_per_step == pytest.approx(expected)
        assert nonzeros == 2 * (d - 1)
    assert 9 < counts[1000] / counts[100] < 11.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"a": 1.0}, "strictly between 0 and 1"),
        ({"a": [0.5, 0.5, 0.5]}, "one number or 2"),
        ({"a": "x"}, "a number between 0 and 1"),
        ({"steps": 0}, "number of steps must be a whole number of at least 1"),
        ({"thin": 11}, "Thinning must be at most"),
        ({"chains": 1.5}, "number of chains"),
        ({"threads": 0}, "number of threads"),
        ({"start": [1, 0, 0]}, "must lie in the lattice"),
        ({"start": [0.5, -0.5, 0]}, "whole numbers of shape"),
        ({"start": [2**21, -(2**21), 0]}, "at most 1,048,576"),
        ({"basis": [[1, 0], [-1, 2], [0, -2]]}, "generate the whole lattice"),
        ({"basis": [[1, 0], [-1, 1], [0, 0]]}, "must lie in the lattice"),
        ({"basis": [[1], [-1], [0]]}, "must be 3 x 2"),
        ({"mechanism": ks.Laplace(epsilon=1)}, "or plan.mechanism"),
        ({"mechanism": ks.Gaussian.per_unit(epsilon=0.3, delta=0.1, calibration="tight")}, "known sigma"),
        ({"mechanism": 1}, "must be Laplace or Gaussian"),
        ({"lattice": SUM}, "must be a ks.Lattice"),
        ({"lattice": ks.Lattice([[1, 0], [0, 1]])}, "dimension of at least 1"),
    ],
)
def test_bad_input_gets_a_sentence(change, words):
    good = {"lattice": ks.Lattice(SUM), "mechanism": ks.Laplace.per_unit(epsilon=1), "steps": 10, "a": 0.4}
    with pytest.raises(ks.InputError, match=words):
        ks.mcmc.metropolis(**good | change)
