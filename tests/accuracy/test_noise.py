"""The law of any linear query, against enumerated laws, against draws, and at the limits of what is computed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse, stats

import keepsum as ks
from keepsum.accuracy.query_laws import BoundLaw, EstimatedLaw, ExactLaw
from support import mostly_audit
from test_arguments import check_message

TOTALS = {
    "a total and two free cells": [[1, 1, 1, 0, 0]],
    "two totals": [[1, 1, 0, 0, 0], [0, 0, 1, 1, 1]],
    "one total": [[1, 1, 1, 1, 1]],
    "a pinned cell and free ones": [[0, 0, 0, 0, 1]],
}
QUERIES = [
    [1, 0, 0, 0, 0],
    [1, 1, 0, 0, 0],
    [1, -1, 0, 0, 0],
    [0, 0, 1, 0, 2],
    [1, 2, 3, 0, 1],
    [3, 0, 0, 1, 1],
    [5, 1, -2, 0, 0],
    [2, 2, 2, 4, 4],
    [0, 0, 0, 0, 7],
]


def enumerated(totals: list[list[int]], weight, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Every vector that keeps the totals, within reach, and its probability."""
    grid = np.array(list(itertools.product(range(-reach, reach + 1), repeat=5)))
    kept = grid[~(grid @ np.array(totals).T).any(axis=1)]
    weights = weight(kept)
    return kept, weights / weights.sum()


def agrees(law: ExactLaw, values: np.ndarray, chances: np.ndarray, error: float) -> bool:
    """Whether probabilities and variance are those of the enumerated law, up to what lies beyond its reach."""
    low, high = int(values.min()), int(values.max())
    found = [(law.pmf(x), law.cdf(x)) for x in range(max(low, -12), min(high, 12) + 1)]
    wanted = [(chances[values == x].sum(), chances[values <= x].sum()) for x in range(max(low, -12), min(high, 12) + 1)]
    variance, squares = float((chances * values**2).sum()), float(values.max() + 12) ** 2  # of what lies beyond
    close = np.abs(np.array(found) - wanted).max() < error
    return bool(close and abs(law.variance - variance) < error * squares)


@mostly_audit("name", TOTALS)
@pytest.mark.parametrize(
    "mechanism", [ks.Laplace.per_unit(2), ks.Laplace.per_unit(3), ks.Gaussian(sigma="0.8")], ids=repr
)
def test_against_enumeration(name, mechanism):
    plan = ks.plan(keep=np.array(TOTALS[name]), mechanism=mechanism)
    if isinstance(mechanism, ks.Laplace):
        points, chances = enumerated(
            TOTALS[name], lambda z: np.exp(-float(mechanism.epsilon) * np.abs(z).sum(axis=1)), 5
        )
        error = 40 * np.exp(-6 * float(mechanism.epsilon))  # what lies beyond the reach
    else:
        points, chances = enumerated(TOTALS[name], lambda z: np.exp(-(z**2).sum(axis=1) / (2 * 0.64)), 5)
        error = 1e-9
    for query in QUERIES:
        law = plan.noise.law(query)
        assert isinstance(law, ExactLaw)
        values = points @ np.array(query)
        assert agrees(law, values, chances, error), query
        assert not agrees(ExactLaw(law.unit, law.masses**1.1, law.variance), values, chances, error) or not law.variance
        for level in (0.5, 0.9, 0.99):
            reach = law.reach(level)
            assert chances[np.abs(values) <= reach].sum() >= level - error
            assert reach == 0 or chances[np.abs(values) < reach].sum() < level + error  # the shortest
        for p in (0.03, 0.3, 0.5, 0.7, 0.97):
            quantile = law.quantile(p)
            assert chances[values <= quantile].sum() >= p - error
            assert chances[values < quantile].sum() < p + error


def test_kept_totals_have_no_noise_and_shifts_by_them_change_nothing():
    plan = ks.plan(keep=ks.Invariants.subsets(6, [[0, 1, 2], [3, 4, 5]]), mechanism=ks.Laplace.per_unit(epsilon=1))
    assert plan.noise.interval([2, 2, 2, -7, -7, -7]) == (0, 0)
    assert plan.noise.variance([1, 1, 1, 1, 1, 1]) == 0
    assert plan.noise.variance([3, 2, 2, 5, 5, 5]) == pytest.approx(plan.noise.variance(0))
    margins = ks.plan(
        ks.Domain({"a": list("xyz"), "b": list("pqr")}),
        keep=[["a"], ["b"]],
        mechanism=ks.Laplace.per_unit(epsilon=1),
    )
    assert margins.noise.interval({"a": "x"}) == (0, 0)
    assert margins.noise.interval({"a": ["x", "y"], "b": ["p", "q", "r"]}) == (0, 0)


def test_covariances():
    plan = ks.plan(keep=ks.Invariants.subsets(7, [range(5)]), mechanism=ks.Laplace.per_unit(epsilon=1))
    one = plan.noise.variance(0)
    assert plan.noise.covariance(0, 1) == pytest.approx(-one / 4)
    assert plan.noise.covariance(0, 0) == pytest.approx(one)
    assert plan.noise.covariance(0, 5) == pytest.approx(0, abs=1e-9)
    assert plan.noise.covariance([1, 2, 0, 0, 0, 0, 0], 0) == pytest.approx(one - 2 * one / 4)


def test_the_forms_of_a_query(children):
    plan = ks.plan(children, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=1))
    vector = np.zeros(16, dtype=int)
    vector[:4] = 1
    wanted = plan.noise.law(vector).reach(0.9)
    for query in ({"county": "Alpha"}, vector.tolist(), sparse.csr_array(vector[None, :]), {"county": ["Alpha"]}):
        assert plan.noise.law(query).reach(0.9) == wanted
    cell = {"county": "Alpha", "education": "Low"}
    assert plan.noise.variance(cell) == plan.noise.variance(0) == plan.noise.variance(np.int64(0))
    assert plan.noise.variance({}) == 0


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Alpha", "a number from 0 to 15"),
        (None, "a number from 0 to 15"),
        (True, "a number from 0 to 15"),
        (16, "a number from 0 to 15"),
        ([1, 2], "for each of the 16 cells, got 2"),
        ([0.5] * 16, "whole numbers"),
        ([2**40] + [0] * 15, "Scale it down"),
        ({"county": "Nowhere"}, "one of its categories"),
        ({"planet": "Mars"}, "must be one of"),
        ({"county": []}, "match at least one cell"),
    ],
)
def test_wrong_queries(children, query, words):
    plan = ks.plan(children, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=1))
    for ask in (plan.noise.variance, plan.noise.interval):
        with pytest.raises(ks.InputError, match=words) as caught:
            ask(query)
        check_message(caught.value)


COVERED = {
    "a cell": [1] + [0] * 19,
    "a sum": [1] * 7 + [0] * 13,
    "a difference": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1] + [0] * 9,
    "weights": [*range(20)],
    "larger weights": [11 * (k % 3) + k % 2 for k in range(20)],
}


@mostly_audit("mechanism", [ks.Laplace.per_unit("1/4"), ks.Gaussian(sigma=3)], ids=repr)
@pytest.mark.parametrize("query", COVERED.values(), ids=COVERED.keys())
def test_intervals_cover_their_level(mechanism, query):
    """95% of 20,000 draws: a binomial test at 1e-6, on both sides where the law is exact and the noise fine enough."""
    plan = ks.plan(keep=ks.Invariants.subsets(20, [range(8), range(8, 17)]), mechanism=mechanism)
    drawn = plan.sample(20_000, rng=ks.rng(seed=19)) @ np.array(query)
    law = plan.noise.law(query)
    low, high = plan.noise.interval(query, 0.95)
    inside = int(((low <= drawn) & (drawn <= high)).sum())
    assert stats.binom.cdf(inside, len(drawn), 0.95) > 1e-6
    narrow = int((np.abs(drawn) < high * 0.85).sum())
    assert isinstance(law, ExactLaw)
    assert stats.binom.cdf(narrow, len(drawn), 0.95) < 1e-6  # a margin 15% shorter does not
    assert abs(drawn.var() / law.variance - 1) < 0.08


def test_intervals_under_overlapping_totals_cover_their_level(children):
    """Estimated and conservative ones too, and they say what they are."""
    kept = children.keep("county", "education")
    query = {"county": ["Alpha", "Beta"], "education": ["Low", "High"]}
    cells = kept.domain.matching(query)
    for mechanism in (ks.Laplace.per_unit("1/2"), ks.Laplace.per_unit("1/2", norm="l2"), ks.Gaussian(sigma=3)):
        plan = ks.plan(keep=kept, mechanism=mechanism)
        law = plan.noise.law(query)
        drawn = plan.sample(8_000, rng=ks.rng(seed=2))[:, cells].sum(axis=1)
        low, high = plan.noise.interval(query, 0.9)
        inside = int(((low <= drawn) & (drawn <= high)).sum())
        assert stats.binom.cdf(inside, len(drawn), 0.9) > 1e-6
        if isinstance(law, EstimatedLaw):
            assert law.draws >= 200
            assert abs(law.variance - drawn.var()) < 6 * (law.variance_error + drawn.var() * np.sqrt(3 / len(drawn)))
        else:
            assert isinstance(law, BoundLaw)
            assert law.variance >= 0.95 * drawn.var()


def test_a_bound_holds_and_is_not_absurd():
    """Where weights are too large for a grid."""
    plan = ks.plan(keep=ks.Invariants.subsets(30, [range(30)]), mechanism=ks.Laplace.per_unit("1/2"))
    query = [1_000_003 * k + k**3 for k in range(30)]
    law = plan.noise.law(query)
    assert isinstance(law, BoundLaw)
    drawn = plan.sample(20_000, rng=ks.rng(seed=8)) @ np.array(query)
    reach = law.reach(0.95)
    assert (np.abs(drawn) <= reach).mean() >= 0.95
    assert reach < 3.2 * drawn.std()
    assert law.quantile(0.975) == -law.quantile(0.025) > 0
    assert law.variance == pytest.approx(drawn.var(), rel=0.1)


def test_intervals_of_a_release(children):
    release = ks.release(children, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=1), rng=ks.rng(seed=1))
    low, high = release.interval({"county": "Alpha"})
    value = int(release.table.counts.reshape(4, 4)[0].sum())
    reach = release.noise.interval({"county": "Alpha"})[1]
    assert (low, high) == (value - reach, value + reach)
    assert release.interval({}) == (135, 135)
    nearest = ks.postprocess.nonnegative(release)
    assert nearest.interval(0) == release.interval(0)  # that of the unbiased table
