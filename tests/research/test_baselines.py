"""The baselines: whole numbers, totals kept, nearest by brute force, mean zero or biased as they should be."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

import keepsum as ks
from keepsum.research.baselines import _nearest_on_lattice, non_negative, sum_zero

ALPHA = 1e-6


def box(width, reach):
    return np.array(list(product(range(-reach, reach + 1), repeat=width)))


def test_projection_finds_a_nearest_vector():
    """Against every vector of a box, in l1 and in l2."""
    stream = ks.rng(seed=1).stream()
    noise = np.array([[3, -1, 2], [0, 0, 1], [-5, 1, 0], [4, 4, 4], [0, 0, 0]])
    out = sum_zero(noise, stream)
    candidates = box(3, 8)
    candidates = candidates[candidates.sum(axis=1) == 0]
    for row, found in zip(noise, out, strict=True):
        target = row - row.mean()
        for norm in (1, 2):
            best = np.linalg.norm(candidates - target, norm, axis=1).min()
            assert np.linalg.norm(found - target, norm) == pytest.approx(best)


def test_overlapping_totals_find_a_nearest_vector():
    keep = ks.Invariants.subsets(5, [[0, 1, 2], [2, 3, 4]])
    matrix = keep.coefficients.toarray()
    noise = np.array([[3, -1, 2, 0, 1], [0, 0, 1, -2, 2], [-3, 1, 0, 2, 2]])
    out = _nearest_on_lattice(keep, noise, ks.rng(seed=1).stream())
    candidates = box(5, 5)
    candidates = candidates[(candidates @ matrix.T == 0).all(axis=1)]
    points = noise - noise @ np.linalg.pinv(matrix) @ matrix
    for point, found in zip(points, out, strict=True):
        assert (matrix @ found == 0).all()
        assert np.abs(found - point).sum() == pytest.approx(np.abs(candidates - point).sum(axis=1).min())


@pytest.mark.parametrize("total", [0, 1, 7])
def test_non_negative_finds_a_nearest_vector(total):
    """The rounded projection is as near as any non-negative whole vector with that total, in l2."""
    noisy = np.array([[3, -1, 2], [0, 0, 1], [-5, 1, 0], [4, 4, 4], [-3, -2, -2], [9, 0, -9]])
    out = non_negative(noisy, total, ks.rng(seed=1).stream())
    candidates = np.array([p for p in product(range(total + 1), repeat=3) if sum(p) == total])
    for row, found in zip(noisy, out, strict=True):
        assert found.min() >= 0
        assert found.sum() == total
        distances = ((candidates - row) ** 2).sum(axis=1)
        assert ((found - row) ** 2).sum() == distances.min()


@pytest.mark.parametrize(
    "keep",
    [
        ks.Invariants.subsets(7, [range(7)]),
        ks.Invariants.subsets(7, [[0, 1, 2], [3, 4]]),
        ks.Invariants.subsets(6, [[0, 1, 2], range(6)]),
    ],
    ids=["one sum", "two sums and free cells", "nested"],
)
def test_projected_noise_has_mean_zero_and_keeps_totals(keep):
    noise = ks.baselines.projected_laplace(keep, 0.5, 40_000, rng=ks.rng(seed=2))
    assert noise.dtype == np.int64
    assert not (noise @ keep.coefficients.toarray().T).any()
    z = noise.mean(axis=0) / (noise.std(axis=0) / np.sqrt(len(noise)))
    assert np.abs(z).max() < stats.norm.isf(ALPHA / 2 / keep.size)


def test_a_tie_broken_by_position_would_be_seen():
    """The wrong rule of the notes: always take the rest off the first cells."""
    noise = ks.plan(keep=ks.Invariants.subsets(7, []), mechanism=ks.Laplace.per_unit(epsilon=0.5)).sample(
        40_000, rng=ks.rng(seed=2)
    )
    share, rest = np.divmod(noise.sum(axis=1), 7)
    wrong = noise - share[:, None] - (np.arange(7) < rest[:, None])
    assert not wrong.sum(axis=1).any()
    z = wrong.mean(axis=0) / (wrong.std(axis=0) / np.sqrt(len(wrong)))
    assert np.abs(z).max() > stats.norm.isf(ALPHA / 14)


def test_projected_noise_of_overlapping_totals(circles):
    noise = ks.baselines.projected_laplace(circles, 0.25, 30, rng=ks.rng(seed=1))
    assert not (noise @ circles.coefficients.toarray().T).any()
    assert (noise == ks.baselines.projected_laplace(circles, 0.25, 30, rng=ks.rng(seed=1))).all()
    assert ks.baselines.projected_laplace(circles, 0.25).shape == (14,)


def test_topdown_like_is_biased_where_counts_are_small_and_not_elsewhere():
    keep = ks.Invariants.subsets(6, [range(6)])
    small = ks.baselines.topdown_like([0, 1, 0, 2, 1, 500], keep, 0.25, 20_000, rng=ks.rng(seed=3))
    assert small.min() >= 0
    assert set(small.sum(axis=1).tolist()) == {504}
    error = small - [0, 1, 0, 2, 1, 500]
    z = error.mean(axis=0) / (error.std(axis=0) / np.sqrt(len(error)))
    assert (z[[0, 2]] > stats.norm.isf(ALPHA)).all()
    assert z[5] < -stats.norm.isf(ALPHA)
    far = ks.baselines.topdown_like([900] * 6, keep, 0.25, 20_000, rng=ks.rng(seed=3)) - 900
    assert np.abs(far.mean(axis=0) / (far.std(axis=0) / np.sqrt(len(far)))).max() < stats.norm.isf(ALPHA / 12)


PLACES = ks.Domain(
    {"state": ["A", "B"], "county": {"A": ["a", "b", "c"], "B": ["d"]}, "sex": ["f", "m"]}, within={"county": "state"}
)
FOCUS = {"state": 2, "county": "1/2"}
SMALL = np.array([0, 3, 1, 0, 90, 40, 7, 2])


@pytest.mark.parametrize("keep", [[], [[]], [["state"]], [["county"]]], ids=repr)
def test_topdown_like_with_a_budget_per_level(keep):
    kept = ks.Invariants.margins(PLACES, keep)
    focus = {"county": "1/2"} if keep == [["state"]] else {("county", "sex"): 1} if keep == [["county"]] else FOCUS
    out = ks.baselines.topdown_like(SMALL, kept, 1, 500, focus=focus, rng=ks.rng(seed=4))
    assert out.min() >= 0
    assert all(kept.holds(row, SMALL) for row in out)
    assert len(np.unique(out, axis=0)) > 100
    again = ks.baselines.topdown_like(SMALL, kept, 1, 500, focus=focus, rng=ks.rng(seed=4))
    assert (out == again).all()


def test_an_empty_budget_of_levels_is_none():
    kept = ks.Invariants.margins(PLACES, [["state"]])
    one, other = (ks.baselines.topdown_like(SMALL, kept, 1, 9, focus=f, rng=ks.rng(seed=4)) for f in (None, {}))
    assert (one == other).all()


def test_every_level_is_measured_with_its_own_epsilon():
    """Far from 0, nothing is cut off: an outermost total has its own noise, and parts differ by theirs."""
    counts, kept, focus = np.full(8, 10**6), ks.Invariants.margins(PLACES, []), {"state": "1/2", "county": "1/5"}
    errors = ks.baselines.topdown_like(counts, kept, "1/4", 20_000, focus=focus, rng=ks.rng(seed=5)) - counts
    state, county = errors[:, :6].sum(axis=1), errors[:, :6].reshape(-1, 3, 2).sum(axis=2)
    assert state.var() == pytest.approx(free_variance(0.5), rel=0.05)
    assert (county[:, 0] - county[:, 1]).var() == pytest.approx(2 * free_variance(0.2), rel=0.05)
    assert (errors[:, 0] - errors[:, 1]).var() == pytest.approx(2 * free_variance(0.25), rel=0.05)
    assert np.abs(errors.mean(axis=0) / (errors.std(axis=0) / np.sqrt(20_000))).max() < stats.norm.isf(ALPHA / 16)


def free_variance(epsilon):
    return 0.5 / np.sinh(epsilon / 2) ** 2


def test_what_is_refused(circles):
    crossing = ks.Invariants.margins(PLACES, [["sex"]])
    with pytest.raises(ks.PlanError, match="cross"):
        ks.baselines.topdown_like(SMALL, crossing, 1, focus={"county": 1})
    with pytest.raises(ks.InputError, match="hierarchy"):
        ks.baselines.topdown_like(np.zeros(14, dtype=int), circles, 1)
    with pytest.raises(ks.InputError, match="5 whole numbers"):
        ks.baselines.topdown_like([1, 2], ks.Invariants.subsets(5, []), 1)
    with pytest.raises(ks.InputError, match="Invariants"):
        ks.baselines.projected_laplace([[1, 1]], 1)
