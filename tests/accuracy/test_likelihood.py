"""Probabilities of whole vectors of noise, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import keepsum as ks

TOTALS = {
    "one total": [[0, 1, 2, 3]],
    "two": [[0, 1], [2, 3]],
    "a total and free": [[0, 1, 2]],
    "free": [],
    "pinned": [[3]],
}


@pytest.mark.parametrize("kept", TOTALS.values(), ids=TOTALS.keys())
@pytest.mark.parametrize("mechanism", [ks.Laplace.per_unit(epsilon=2), ks.Gaussian(sigma="0.9")], ids=repr)
def test_probabilities_add_up_to_one(kept, mechanism):
    plan = ks.plan(keep=ks.Invariants.subsets(4, kept), mechanism=mechanism)
    grid = np.array(list(itertools.product(range(-8, 9), repeat=4)))
    logs = plan.noise.log_pmf(grid)
    assert np.exp(logs).sum() == pytest.approx(1, abs=1e-5)
    off = np.zeros(len(grid), dtype=bool)
    for cells in kept:
        off |= grid[:, cells].sum(axis=1) != 0
    assert np.isneginf(logs[off]).all()
    assert np.isfinite(logs[~off]).all()
    some = grid[~off][7]
    assert plan.noise.log_pmf(some) == pytest.approx(logs[~off][7])
    assert np.exp(logs[(grid[:, 0] == 1)]).sum() == pytest.approx(plan.noise.pmf(0, 1), abs=1e-6)


@pytest.mark.parametrize(
    ("mechanism", "length"),
    [
        (ks.Laplace.per_unit(epsilon=2), 4.0),
        (ks.Laplace.per_unit(epsilon=2, norm="l2"), 2.0),
        (ks.Gaussian(sigma=2), 4.0),
    ],
    ids=repr,
)
def test_up_to_the_constant_where_totals_overlap(children, mechanism, length):
    plan = ks.plan(children, keep=["county", "education"], mechanism=mechanism)
    swap = np.zeros((4, 4), dtype=int)
    swap[:2, :2] = [[1, -1], [-1, 1]]
    weight = {"laplace-l1": -2 * 4, "laplace-l2": -2 * 2, "gaussian": -4 / 8}[plan.mechanism.kind]
    assert plan.noise.log_pmf(swap.ravel(), constant=False) == pytest.approx(weight)
    assert plan.noise.log_pmf(np.zeros(16, dtype=int), constant=False) == 0
    with pytest.raises(ks.InputError, match="constant=False"):
        plan.noise.log_pmf(swap.ravel())


@pytest.mark.parametrize("noise", [[1, 2], [0.5, 0, 0, 0], "text", None, np.zeros((2, 2, 4), dtype=int)], ids=repr)
def test_wrong_noise(noise):
    plan = ks.plan(keep=ks.Invariants.subsets(4, [range(4)]), mechanism=ks.Laplace.per_unit(epsilon=1))
    with pytest.raises(ks.InputError, match="Noise must"):
        plan.noise.log_pmf(noise)
