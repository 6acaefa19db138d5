"""Algorithms 2 and 3: the coupling's marginals, its maximality, and the bound against exact distances.

Error rate 1e-6 a test: chi-square (laws.py), exact binomial limits, or 4.9 standard errors.
"""

from itertools import product

import numpy as np
import pytest
from laws import ALPHA, assert_drawn_from, assert_not_drawn_from
from scipy import stats

import keepsum as ks
from keepsum.research.mcmc.coupling import couple_walks, same
from keepsum.research.mcmc.kernel_arguments import WALK_STATE, Pair
from keepsum.research.mcmc.metropolis import pose
from keepsum.research.mcmc.reference import LatticeState
from keepsum.sampling.core.driving import run
from keepsum.sampling.core.kernel_arguments import new_state

A = np.array([[1, 1, 1]])
A_PAIR = np.array([[1, 1]])
LAPLACE = ks.Laplace.per_unit(epsilon=1)
V, W = np.array([1, -1]), np.array([-1, 0])  # coordinates of the two chains


def coupled(problem, basis, v, w, count, seed=1, buffer_words=65536):
    """Cells of both chains after one coupled step from v and w, many times."""
    stream = ks.rng(seed=seed).stream(buffer_words)
    ends = np.empty((2, count, len(basis)), dtype=np.int64)
    moves = np.zeros((2, len(v)), dtype=np.int64)
    for i in range(count):
        x, y, gaps = basis @ v, basis @ w, w - v
        states = new_state(WALK_STATE, norm=problem.norm(x), second_norm=problem.norm(y))
        state = run(couple_walks, stream, problem.tables, Pair(x, y, gaps, *moves, 1), states=states)
        assert state.met == np.array_equal(x, y) == (not gaps.any())
        assert (state.norm, state.second_norm) == (problem.norm(x), problem.norm(y))
        ends[:, i] = x, y
    return ends


def one_step_law(kernel, basis, v, a, reach=14):
    """Algorithm 1 from v, enumerated: each pre-jump times its acceptance, and the rest stays."""
    law = {}
    eta = (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1))
    here = kernel._problem.log_density(basis @ v)
    for jump in product(range(-reach, reach + 1), repeat=len(v)):
        chance = np.prod([eta[e + reach] for e in jump])
        z = basis @ (v + np.array(jump))
        accepted = chance * min(1.0, np.exp(kernel._problem.log_density(z) - here))
        law[tuple(z.tolist())] = law.get(tuple(z.tolist()), 0) + accepted
    stay = tuple((basis @ v).tolist())
    law[stay] += 1 - sum(law.values())
    return list(law), np.array(list(law.values()))


@pytest.mark.audit
@pytest.mark.parametrize("mechanism", [LAPLACE, ks.Laplace.per_unit(epsilon=1, norm="l2"), ks.Gaussian(sigma=2)])
def test_each_coupled_chain_moves_as_algorithm_1(mechanism):
    lattice, a = ks.Lattice(A), 0.5
    ends = coupled(pose(lattice, mechanism, a), lattice.basis, V, W, 40_000)
    kernel = ks.mcmc.LatticeMetropolis(lattice, mechanism, a)
    for end, v in zip(ends, (V, W), strict=True):
        assert_drawn_from(end, one_step_law(kernel, lattice.basis, v, a))


@pytest.mark.audit
def test_a_coupling_with_another_target_is_rejected():
    lattice, a = ks.Lattice(A), 0.5
    ends = coupled(pose(lattice, ks.Laplace.per_unit(epsilon="0.9"), a), lattice.basis, V, W, 40_000)
    kernel = ks.mcmc.LatticeMetropolis(lattice, LAPLACE, a)
    assert_not_drawn_from(ends[0], one_step_law(kernel, lattice.basis, V, a))
    assert_not_drawn_from(ends[1], one_step_law(kernel, lattice.basis, W, a))
    assert_not_drawn_from(np.broadcast_to(lattice.basis @ V, (40_000, 3)), one_step_law(kernel, lattice.basis, V, a))


@pytest.mark.audit
def test_the_reference_moves_as_algorithm_1_alone_and_coupled():
    lattice, a = ks.Lattice(A), 0.5
    kernel = ks.mcmc.LatticeMetropolis(lattice, LAPLACE, a)
    rng = ks.mcmc.Draws(ks.rng(seed=4).stream())
    first, second = (LatticeState(v, lattice.basis @ v) for v in (V, W))
    alone = [kernel.step(rng, first)[0].z for _ in range(15_000)]
    both = [kernel.coupled_step(rng, (first, second))[0] for _ in range(15_000)]
    for end, v in ((alone, V), ([x.z for x, _ in both], V), ([y.z for _, y in both], W)):
        assert_drawn_from(np.array(end), one_step_law(kernel, lattice.basis, v, a))


@pytest.mark.audit
def test_compiled_and_reference_meet_alike():
    """The same law of meeting times by two programs: a two-sample chi-square over ten bins."""
    lattice = ks.Lattice(A)
    compiled = ks.mcmc.meeting_times(lattice, LAPLACE, 0.4, lag=3, pairs=20_000, rng=ks.rng(seed=1)).excess
    kernel = ks.mcmc.LatticeMetropolis(lattice, LAPLACE, 0.4)
    slow = ks.mcmc.meeting_times_of(kernel, lag=3, pairs=2000, rng=ks.rng(seed=2)).excess

    def statistic(one, other):
        edges = np.unique(np.quantile(compiled, np.linspace(0.1, 0.9, 9)))
        counts = [np.bincount(np.searchsorted(edges, sample), minlength=len(edges) + 1) for sample in (one, other)]
        return stats.chi2_contingency(counts).pvalue

    assert statistic(compiled, slow) > ALPHA
    assert statistic(compiled, slow + 2) < ALPHA


def overlap(gap, a):
    """The largest chance that two double geometrics at this distance can be equal: the sum of their minima."""
    k, odd = divmod(abs(gap), 2)
    return 2 * a ** (k + 1) / (1 + a) + (0 if odd else (1 - a) / (1 + a) * a**k)


def test_overlap_is_one_less_the_distance():
    reach = np.arange(-400, 401)
    for gap in range(6):
        for a in (0.2, 0.7):
            one, other = (1 - a) / (1 + a) * a ** np.abs(reach), (1 - a) / (1 + a) * a ** np.abs(reach - gap)
            assert overlap(gap, a) == pytest.approx(1 - np.abs(one - other).sum() / 2)


@pytest.mark.audit
@pytest.mark.parametrize(
    ("gap", "a"),
    [(1, 0.4), *(pytest.param(*case, marks=pytest.mark.audit) for case in ((-2, 0.4), (3, 0.7), (5, 0.85)))],
)
def test_the_coupling_is_maximal(gap, a):
    """With a target so flat that all is accepted, chains meet exactly when their proposals are equal."""
    lattice, count = ks.Lattice(A_PAIR), 20_000
    flat = pose(lattice, ks.Laplace.per_unit(epsilon="1e-12"), a)
    x, y = coupled(flat, lattice.basis, np.array([0]), np.array([gap]), count)
    met = int((x == y).all(axis=1).sum())

    def fits(chance):
        return stats.binom.ppf(ALPHA / 2, count, chance) <= met <= stats.binom.isf(ALPHA / 2, count, chance)

    assert fits(overlap(gap, a))
    eta = (1 - a) / (1 + a)
    independent = sum(eta**2 * a ** (abs(e) + abs(e - gap)) for e in range(-300, 300))
    assert not fits(independent)  # a coupling that is none
    assert not fits(overlap(abs(gap) + 2, a))


def test_chains_that_are_equal_stay_equal():
    lattice = ks.Lattice(A)
    x, y = coupled(pose(lattice, LAPLACE, 0.6), lattice.basis, V, V, 3000)
    assert np.array_equal(x, y)
    kernel = ks.mcmc.LatticeMetropolis(lattice, LAPLACE, 0.6)
    rng = ks.mcmc.Draws(ks.rng(seed=5).stream())
    pair = (kernel.start(rng),) * 2
    for _ in range(500):
        pair, infos = kernel.coupled_step(rng, pair)
        assert same(*pair)
        assert infos[0] == infos[1]


def test_where_buffers_end_changes_nothing():
    lattice = ks.Lattice(A)
    problem = pose(lattice, LAPLACE, 0.8)
    ends = [coupled(problem, lattice.basis, V, 4 * W, 300, buffer_words=n) for n in (1, 2, 5, 65536)]
    assert all(np.array_equal(end, ends[0]) for end in ends)


def exact_distances(a, epsilon, steps, reach=60):
    """TV between the chain on z = (v, -v) and its target, by powers of the transition matrix on |v| <= reach."""
    points = np.arange(-reach, reach + 1)
    q = np.exp(-2 * epsilon * np.abs(points))
    eta = (1 - a) / (1 + a)
    P = eta * a ** np.abs(points[:, None] - points) * np.minimum(1, q / q[:, None])
    P[np.diag_indices_from(P)] += 1 - P.sum(axis=1)
    law, found = eta * a ** np.abs(points), []
    for t in range(max(steps) + 1):
        if t in steps:
            found.append(np.abs(law / law.sum() - q / q.sum()).sum() / 2)
        law = law @ P
    return np.array(found)


def above(bound, exact):
    """Whether a bound may be one: not below the distance by more than 4.9 standard errors."""
    return bool(np.all(bound.estimate + 4.9 * bound.standard_error >= exact))


@pytest.mark.audit
def test_the_bound_lies_above_the_exact_distance():
    a, epsilon, steps = 0.3, 0.15, [0, 1, 2, 4, 8, 16, 32]
    exact = exact_distances(a, epsilon, steps)
    assert exact[0] > 0.4
    lattice, laplace = ks.Lattice(A_PAIR), ks.Laplace.per_unit(epsilon="0.15")
    for lag in (1, 5, 60):
        times = ks.mcmc.meeting_times(lattice, laplace, a, lag=lag, pairs=8000, rng=ks.rng(seed=1))
        plain, refined = (ks.mcmc.tv_upper_bound(times, t=steps, refined=choice) for choice in (False, True))
        assert above(plain, exact)
        assert above(refined, exact)
        assert np.all(refined.estimate <= plain.estimate)
        assert np.all(plain.upper >= exact)
        assert (lag == 60) == (plain.estimate[0] < 1.5)  # short lags pay for it
    early = ks.mcmc.MeetingTimes(60 + (times.excess + 3) // 4, lag=60)  # chains that claim to meet too soon
    assert not above(ks.mcmc.tv_upper_bound(early, t=steps), exact)


def test_seeds_repeat_for_any_number_of_threads():
    def run(seed, threads):
        return ks.mcmc.meeting_times(
            ks.Lattice(A), LAPLACE, 0.4, lag=5, pairs=150, rng=ks.rng(seed=seed), threads=threads
        ).times

    assert np.array_equal(run(1, 1), run(1, 2))
    assert np.array_equal(run(1, 1), run(1, None))
    assert not np.array_equal(run(1, 1), run(2, 1))


def test_pairs_that_have_not_met_are_censored():
    def run(max_steps):
        return ks.mcmc.meeting_times(
            ks.Lattice(A), LAPLACE, 0.4, lag=5, pairs=300, max_steps=max_steps, rng=ks.rng(seed=1), threads=1
        )

    times = run(12)
    assert 0 < times.censored.sum() < 300
    assert (times.times[times.censored] == 12).all()
    assert times.times[~times.censored].max() <= 12
    assert "CENSORED" in repr(times)
    bound = ks.mcmc.tv_upper_bound(times, t=3)
    assert bound.upper == np.inf
    assert "NOT MET" in repr(bound)
    assert not run(10**6).censored.any()


def test_a_fixed_start():
    far = ks.mcmc.meeting_times(ks.Lattice(A), LAPLACE, 0.4, lag=40, pairs=200, start=[30, -30, 0], rng=ks.rng(seed=1))
    near = ks.mcmc.meeting_times(ks.Lattice(A), LAPLACE, 0.4, lag=40, pairs=200, rng=ks.rng(seed=1))
    assert far.excess.mean() > 2 * near.excess.mean()


def test_progress_is_shown_on_a_terminal_only(capsys, monkeypatch):
    def run(**options):
        ks.mcmc.meeting_times(ks.Lattice(A), LAPLACE, 0.4, lag=5, pairs=10, rng=ks.rng(seed=1), **options)
        return capsys.readouterr()

    assert run() == ("", "")
    out, error = run(show_progress=True)
    assert out == ""
    assert "coupled pairs" in error
    monkeypatch.setitem(__import__("sys").modules, "rich.progress", None)
    assert run(show_progress=True) == ("", "")  # rich is an extra


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lag": 0}, "The lag must be a whole number of at least 1"),
        ({"pairs": 0}, "number of pairs"),
        ({"max_steps": 5}, "max_steps must be larger than the lag"),
    ],
)
def test_bad_input_gets_a_sentence(change, words):
    with pytest.raises(ks.InputError, match=words):
        ks.mcmc.meeting_times(ks.Lattice(A), LAPLACE, 0.4, **{"lag": 5} | change)
