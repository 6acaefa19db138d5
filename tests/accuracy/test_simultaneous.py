"""Margins that hold for all cells at once: against enumeration, and by coverage."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import keepsum as ks
from keepsum.accuracy import simulation
from support import mostly_audit


@mostly_audit("mechanism", [ks.Laplace.per_unit(epsilon=2), ks.Gaussian(sigma=1)], ids=repr)
@pytest.mark.parametrize(
    "kept",
    [[[0, 1, 2]], pytest.param([[0, 1, 2, 3, 4]], marks=pytest.mark.audit), [[0, 1], [2, 3, 4]], []],
    ids=str,
)
def test_against_enumeration(mechanism, kept):
    plan = ks.plan(keep=ks.Invariants.subsets(5, kept), mechanism=mechanism)
    grid = np.array(list(itertools.product(range(-6, 7), repeat=5)))
    for cells in kept:
        grid = grid[grid[:, cells].sum(axis=1) == 0]
    logs = -2 * np.abs(grid).sum(axis=1) if isinstance(mechanism, ks.Laplace) else -(grid**2).sum(axis=1) / 2
    chances = np.exp(logs)
    chances /= chances.sum()
    largest = np.abs(grid).max(axis=1)
    for level in (0.5, 0.9, 0.99):
        found = plan.accuracy(level, simultaneous=True)
        reach = int(found.margins.max())
        assert (found.basis, found.draws, found.simultaneous) == ("exact", 0, True)
        assert set(found.margins.tolist()) == {reach}
        assert chances[largest <= reach].sum() >= level - 1e-5
        assert chances[largest < reach].sum() < level + 1e-5  # the smallest


COVERED = {
    "hierarchy": ks.Invariants.subsets(60, [range(20), range(20, 50)]),
    "two-way": ks.Invariants.margins(ks.Domain({"a": list(range(6)), "b": list(range(5))}), [["a"], ["b"]]),
}


@pytest.mark.parametrize("kept", COVERED.values(), ids=COVERED.keys())
@pytest.mark.parametrize(
    "mechanism", [ks.Laplace.per_unit("1/2"), ks.Laplace.per_unit("1/2", norm="l2"), ks.Gaussian(sigma=5)], ids=repr
)
def test_they_cover_their_level(kept, mechanism):
    """95% of 10,000 draws, at an error rate of 1e-6; the margin of a single cell does not."""
    plan = ks.plan(keep=kept, mechanism=mechanism)
    noise = np.abs(plan.sample(10_000, rng=ks.rng(seed=3)))
    found, each = plan.accuracy(simultaneous=True), plan.accuracy()
    assert stats.binom.cdf(int((noise <= found.margins).all(axis=1).sum()), len(noise), 0.95) > 1e-6
    assert stats.binom.cdf(int((noise <= each.margins).all(axis=1).sum()), len(noise), 0.95) < 1e-6
    shorter = found.margins * 3 // 4
    assert stats.binom.cdf(int((noise <= shorter).all(axis=1).sum()), len(noise), 0.95) < 1e-6
    assert f"for all {plan.size} cells at once" in str(found)


def test_wide_noise_and_blocks_that_take_long_are_divided(monkeypatch):
    plan = ks.plan(keep=ks.Invariants.subsets(50, [range(20)]), mechanism=ks.Gaussian(sigma=20_000))
    found = plan.accuracy(simultaneous=True)
    noise = np.abs(plan.sample(3_000, rng=ks.rng(seed=4)))
    assert found.basis == "conservative"
    assert stats.binom.cdf(int((noise <= found.margins).all(axis=1).sum()), len(noise), 0.95) > 1e-6
    assert found.margins.max() < 1.3 * np.quantile(noise.max(axis=1), 0.95)
    monkeypatch.setattr(simulation, "MOST_EFFORT", 1)
    plan = ks.plan(keep=COVERED["two-way"], mechanism=ks.Laplace.per_unit(epsilon="1/2"))
    bounded = plan.accuracy(simultaneous=True)
    assert (bounded.basis, bounded.draws) == ("conservative", 0)
    noise = np.abs(plan.sample(3_000, rng=ks.rng(seed=5)))
    assert (noise <= bounded.margins).all(axis=1).mean() >= 0.95
    assert plan.accuracy(simultaneous=True, patient=True).basis == "estimated"


def test_many_regions_are_fast_and_alike():
    sizes = np.arange(2, 120)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    kept = ks.Invariants.subsets(int(starts[-1]), [range(a, b) for a, b in itertools.pairwise(starts.tolist())])
    plan = ks.plan(keep=kept, mechanism=ks.Laplace.per_unit(epsilon="0.1"))
    found = plan.accuracy(simultaneous=True)
    noise = np.abs(plan.sample(2_000, rng=ks.rng(seed=6))).max(axis=1)
    assert stats.binom.cdf(int((noise <= found.margins[0]).sum()), len(noise), 0.95) > 1e-6
    assert stats.binom.sf(int((noise <= found.margins[0]).sum()) - 1, len(noise), 0.951) > 1e-6
