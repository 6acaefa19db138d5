"""Bounds from meeting times: closed forms on geometric times, coverage of the limit, censoring, the choice of a lag."""

import numpy as np
import pytest
from scipy import stats

import keepsum as ks
from keepsum.convergence.bounds import clopper_pearson, first_step_below
from support import mostly_audit

ALPHA = 1e-6


def geometric_bound(q, lag, t):
    """E J_t where P(tau - lag > u) = q^u."""
    return q**t / (1 - q**lag)


def geometric_times(q, lag, size, seed):
    return lag + np.random.default_rng(seed).geometric(1 - q, size)


def test_estimate_is_the_mean_of_the_formula():
    times, lag = np.array([12, 13, 15, 21, 40]), 10
    for t in range(40):
        counts = [max(0, int(np.ceil((tau - lag - t) / lag))) for tau in times]
        bound = ks.mcmc.tv_upper_bound(times, lag, t)
        assert bound.estimate == np.mean(counts)
        assert bound.standard_error == pytest.approx(np.std(counts, ddof=1) / np.sqrt(5))
    curve = ks.mcmc.tv_upper_bound(times, lag, np.arange(40))
    assert curve.estimate.shape == curve.upper.shape == (40,)
    assert curve.estimate[39] == 0


def test_estimate_of_geometric_times():
    for lag in (1, 3, 20):
        times = geometric_times(0.9, lag, 200_000, seed=lag)
        bound = ks.mcmc.tv_upper_bound(times, lag, [0, 5, 20])
        exact = geometric_bound(0.9, lag, np.array([0, 5, 20]))
        assert np.all(np.abs(bound.estimate - exact) <= 4.9 * bound.standard_error + 1e-12)


def failures(limit, q, lag, t, pairs, repeats):
    """How often a limit lies below the bound."""
    times = geometric_times(q, lag, (repeats, pairs), seed=7)
    return sum(limit(row, lag, t) < geometric_bound(q, lag, t) for row in times)


def stated(row, lag, t):
    return ks.mcmc.tv_upper_bound(row, lag, t, confidence=0.9).upper


def naive(row, lag, t):
    bound = ks.mcmc.tv_upper_bound(row, lag, t)
    return bound.estimate + 1.2816 * bound.standard_error


@mostly_audit(("q", "lag", "t"), [(0.9, 20, 0), (0.9, 20, 10), (0.9, 20, 60), (0.8, 2, 5), (0.8, 2, 30), (0.5, 1, 4)])
def test_the_limit_holds_as_often_as_it_says(q, lag, t):
    """At the edge of its assumption; at t = 60 and 30 hardly any of 40 pairs exceeds t."""
    repeats = 1000
    assert failures(stated, q, lag, t, 40, repeats) <= stats.binom.isf(ALPHA, repeats, 0.1)


def meeting_at_once(share, q, size):
    """P(tau - lag > u) = share q^u."""
    rng = np.random.default_rng(8)
    return rng.geometric(1 - q, size) * (rng.random(size) < share)


@pytest.mark.parametrize(
    ("share", "q", "lag", "pairs", "t"),
    [(0.05, 0.7, 4, 400, 0), (0.02, 0.8, 4, 1000, 5), (0.05, 0.9, 6, 600, 10), (0.02, 0.9, 6, 300, 5)],
)
def test_the_limit_holds_where_most_pairs_meet_at_once(share, q, lag, pairs, t):
    repeats, bound = 600, share * geometric_bound(q, lag, t)
    rows = lag + meeting_at_once(share, q, (repeats, pairs))
    assert sum(stated(row, lag, t) < bound for row in rows) <= stats.binom.isf(ALPHA, repeats, 0.1)


def test_pairs_that_meet_at_once_tell_nothing_of_the_others():
    """The rate taken from all pairs is far too good, and its limit is rejected."""
    share, q, lag, pairs, t, repeats = 0.02, 0.9, 6, 300, 5, 600
    excess = meeting_at_once(share, q, (repeats, pairs))
    wrong = [
        clopper_pearson((row > t).sum(), pairs, 0.05) / (1 - clopper_pearson((row >= lag).sum(), pairs, 0.05))
        for row in excess
    ]
    missed = sum(limit < share * geometric_bound(q, lag, t) for limit in wrong)
    assert missed > stats.binom.isf(ALPHA, repeats, 0.1)


def test_a_naive_limit_is_rejected():
    """A standard error of zeros is zero, and a mean plus its error is no limit then."""
    assert failures(naive, 0.9, 20, 60, 40, 1000) > stats.binom.isf(ALPHA, 1000, 0.1)


def test_zero_observed_is_not_zero():
    bound = ks.mcmc.tv_upper_bound([101] * 200, 100, 50)
    assert bound.estimate == bound.standard_error == 0
    assert bound.upper == pytest.approx((1 - 0.025 ** (1 / 200)) / (0.0125 ** (1 / 200)), rel=1e-6)
    assert ks.mcmc.tv_upper_bound([101], 100, 50).upper > 0.9  # one pair tells next to nothing


def test_data_against_the_assumption_raise_the_limit():
    """Heavy tails: one pair that needs very long. The limit never lies below the mean and its error."""
    times = np.append(np.full(199, 101), 10**6)
    bound = ks.mcmc.tv_upper_bound(times, 100, 50)
    assert bound.upper >= bound.estimate + 1.6 * bound.standard_error > 100


def test_clopper_pearson_against_scipy():
    for k, n in ((0, 10), (3, 10), (9, 10), (10, 10), (17, 200)):
        exact = stats.binomtest(k, n).proportion_ci(0.98, method="exact").high
        assert clopper_pearson(k, n, 0.01) == pytest.approx(exact)


def test_censored_pairs_are_never_forgotten():
    times, censored = [12, 13, 40], [False, False, True]
    for t in (0, 5, 100):
        bound = ks.mcmc.tv_upper_bound(times, 10, t, censored=censored)
        assert bound.censored == 1
        assert bound.upper == np.inf
        assert ">=" in repr(bound)
        assert "NOT MET" in repr(bound)
        later = ks.mcmc.tv_upper_bound([12, 13, 41], 10, t)
        assert bound.estimate == later.estimate  # the least that it can be
        assert ks.mcmc.tv_upper_bound(times, 10, t, censored=censored, refined=True).upper == 1
    found = ks.mcmc.MeetingTimes(times, 10, censored, 40)
    assert (
        ks.mcmc.tv_upper_bound(found, t=5).estimate == ks.mcmc.tv_upper_bound(times, 10, 5, censored=censored).estimate
    )
    assert first_step_below(found, 0.1) is None


def test_first_step_below():
    times = ks.mcmc.MeetingTimes(geometric_times(0.95, 30, 500, seed=1), 30)
    for level in (0.9, 0.5, 0.1, 0.01, 0.0):
        step = first_step_below(times, level)
        curve = ks.mcmc.tv_upper_bound(times, t=np.arange(step + 1)).estimate
        assert curve[-1] <= level < curve[:-1].min(initial=np.inf)


def test_the_lag_is_raised_until_the_bound_is_about_one():
    def meet(lag):
        return ks.mcmc.MeetingTimes(geometric_times(0.9, lag, 2000, seed=lag), lag)

    choice = ks.mcmc.choose_lag(meet)
    assert [lag for lag, _ in choice.tried] == [1, 2, 4, 8, 16, 32, 64]
    assert choice.lag == choice.times.lag == 32  # 1 / (1 - 0.9^32) = 1.036, 1.23 at 16
    assert choice.tried[-1][1] < 1.1
    assert ks.mcmc.choose_lag(meet, tolerance=0.5).lag == 16
    with pytest.raises(ks.InputError, match="No lag up to 4 is long enough"):
        ks.mcmc.choose_lag(meet, most=4)
    with pytest.raises(ks.InputError, match="Raise max_steps"):
        ks.mcmc.choose_lag(lambda lag: ks.mcmc.MeetingTimes([lag + 1], lag, [True]))
    with pytest.raises(ks.InputError, match="factor must be a whole number of at least 2"):
        ks.mcmc.choose_lag(meet, factor=1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([12], None), "lag must be given"),
        (([12], 0), "lag must be a whole number"),
        (([12], 13), "at least the lag"),
        (([], 5), "one per pair"),
        (([1.5], 1), "whole numbers"),
        (([12], 5, -1), "t must be a whole number from 0"),
        (([12], 5, 0.5), "t must be a whole number from 0"),
        ((ks.mcmc.MeetingTimes([12], 5), 6), "must be that of the meeting times, 5"),
    ],
)
def test_bad_input_gets_a_sentence(arguments, words):
    with pytest.raises(ks.InputError, match=words):
        ks.mcmc.tv_upper_bound(*arguments)


def test_bad_options_get_a_sentence():
    with pytest.raises(ks.InputError, match="confidence must lie between 0 and 1"):
        ks.mcmc.tv_upper_bound([12], 5, confidence=1)
    with pytest.raises(ks.InputError, match="true or false for each of 1 pairs"):
        ks.mcmc.tv_upper_bound([12], 5, censored=[True, False])


def test_bounds_need_no_kernel():
    """Pure: another module may use bounds on times that come from elsewhere."""
    import ast
    from pathlib import Path

    import keepsum.convergence.bounds

    tree = ast.parse(Path(keepsum.convergence.bounds.__file__).read_text(encoding="utf-8"))
    ours = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module.startswith("keepsum")}
    assert ours == {f"keepsum.{name}" for name in ("_arguments", "_saying", "_text", "convergence.times", "errors")}
