"""Standard deviations of sums of cells, against simulation and against known cases."""

import numpy as np
import pytest

import keepsum as ks
from keepsum.accuracy import sums as summing
from keepsum.accuracy.sums import sum_deviations
from support import BY_MIXTURE

DRAWS = 20_000
DOMAIN = ks.Domain(
    {"state": ["a", "b"], "county": {"a": ["x", "y", "z"], "b": ["x"]}, "sex": ["f", "m"]}, within={"county": "state"}
)
CASES = {
    "nothing kept": ([], ["sex"]),
    "states kept": ([["state"]], ["sex"]),
    "states kept, counties": ([["state"]], ["county"]),
    "counties and sexes kept": ([["county"], ["sex"]], ["state", "sex"]),
    "total kept": ([[]], ["state"]),
}


@pytest.mark.parametrize(("kept", "axes"), CASES.values(), ids=CASES)
@pytest.mark.parametrize(
    "mechanism", [ks.Laplace(epsilon=0.3), ks.Gaussian(sigma=4), ks.Laplace(epsilon=0.3, norm="l2")], ids=repr
)
def test_deviations_are_those_of_the_noise(kept, axes, mechanism):
    plan = ks.plan(ks.Invariants.margins(DOMAIN, kept), mechanism)
    index = DOMAIN.marginal_index(axes)
    count = int(index.max()) + 1
    stated = sum_deviations(plan.blocks, index, count)
    noise = plan.sample(DRAWS, rng=ks.rng(seed=1))
    drawn = np.stack([noise[:, index == k].sum(axis=1).std() for k in range(count)], axis=-1)
    simulated = any(group.members for group in plan.groups) or mechanism.norm == "l2"
    assert stated == pytest.approx(drawn, rel=0.15 if simulated else 0.05, abs=1e-9)
    cells = np.bincount(index)
    independent = np.sqrt(cells) * noise.std(axis=0).mean()  # what a wrong formula would say
    if kept == [["state"]]:
        assert stated != pytest.approx(independent, rel=0.15)


def test_a_sum_over_a_region_whose_sum_is_kept_has_no_noise():
    plan = ks.plan(ks.Invariants.margins(DOMAIN, [["state"]]), ks.Laplace(epsilon=1))
    assert sum_deviations(plan.blocks, DOMAIN.marginal_index(["state"]), 2).tolist() == [0, 0]


def test_what_takes_too_long_is_not_simulated(monkeypatch):
    plan = ks.plan(*BY_MIXTURE)
    index = np.zeros(plan.size, dtype=np.int64)
    assert sum_deviations(plan.blocks, index, 1) == pytest.approx([0], abs=1e-9)  # every margin keeps the grand total
    monkeypatch.setattr(summing, "MOST_EFFORT", 1)
    assert sum_deviations(plan.blocks, index, 1) is None


def test_without_a_sampler_nothing_is_known():
    keep = ks.Invariants.subsets(5, [[0, 1, 2], [2, 3, 4]])
    plan = ks.plan(keep, ks.Laplace(epsilon=100))
    assert sum_deviations(plan.blocks, np.zeros(5, dtype=np.int64), 1) is None
