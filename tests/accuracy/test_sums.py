"""Standard deviations of sums of cells, against simulation and against known cases."""

import numpy as np
import pytest

import keepsum as ks
from keepsum.accuracy import simulation
from keepsum.accuracy import sums as summing
from keepsum.accuracy.sums import is_table, sum_deviations
from keepsum.planning.selection.choice import simulation_nanoseconds
from support import BY_MIXTURE, mostly_audit

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
    "mechanism",
    [ks.Laplace.per_unit(epsilon=0.3), ks.Gaussian(sigma=4), ks.Laplace.per_unit(epsilon=0.3, norm="l2")],
    ids=repr,
)
def test_deviations_are_those_of_the_noise(kept, axes, mechanism):
    plan = ks.plan(DOMAIN, keep=kept, mechanism=mechanism)
    index = DOMAIN.marginal_index(axes)
    count = int(index.max()) + 1
    stated = sum_deviations(plan._record.blocks, index, count)
    noise = plan.sample(DRAWS, rng=ks.rng(seed=1))
    drawn = np.stack([noise[:, index == k].sum(axis=1).std() for k in range(count)], axis=-1)
    simulated = any(group.members for group in plan._record.groups) or mechanism.norm == "l2"
    assert stated == pytest.approx(drawn, rel=0.15 if simulated else 0.05, abs=1e-9)
    cells = np.bincount(index)
    independent = np.sqrt(cells) * noise.std(axis=0).mean()  # what a wrong formula would say
    if kept == [["state"]]:
        assert stated != pytest.approx(independent, rel=0.15)


def test_a_sum_over_a_region_whose_sum_is_kept_has_no_noise():
    plan = ks.plan(DOMAIN, keep=[["state"]], mechanism=ks.Laplace.per_unit(epsilon=1))
    assert sum_deviations(plan._record.blocks, DOMAIN.marginal_index(["state"]), 2).tolist() == [0, 0]


def test_what_takes_too_long_is_not_simulated(monkeypatch):
    plan = ks.plan(keep=BY_MIXTURE[0], mechanism=BY_MIXTURE[1])
    index = np.zeros(plan.size, dtype=np.int64)
    assert sum_deviations(plan._record.blocks, index, 1) == pytest.approx(
        [0], abs=1e-9
    )  # every margin keeps the grand total
    monkeypatch.setattr(summing, "HARDEST_EFFORT", 1)
    assert sum_deviations(plan._record.blocks, index, 1) is None


def test_without_a_sampler_nothing_is_known():
    keep = ks.Invariants.subsets(5, [[0, 1, 2], [2, 3, 4]])
    plan = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=100))
    assert sum_deviations(plan._record.blocks, np.zeros(5, dtype=np.int64), 1) is None


@mostly_audit("shape", [(5, 4, 1), (4, 3, 2), (3, 3, 3)], ids=str)
@pytest.mark.parametrize(
    "mechanism",
    [ks.Laplace.per_unit(epsilon=0.5), ks.Gaussian(sigma=4), ks.Laplace.per_unit(epsilon=0.3, norm="l2")],
    ids=repr,
)
def test_sums_of_tables_follow_from_two_numbers(shape, mechanism):
    """Sums of any cells of tables with kept margins, whose entries are one, two or three cells, in two blocks."""
    domain = ks.Domain({axis: [f"{axis}{i}" for i in range(n)] for axis, n in zip("abcd", (*shape, 2), strict=True)})
    plan = ks.plan(domain, keep=[["a", "d"], ["b", "d"]], mechanism=mechanism)
    assert [group.form.kind for group in plan._record.groups] == ["table"]
    assert is_table(plan.structure, plan._record.groups[0])
    index = np.random.default_rng(3).integers(0, 4, plan.size)
    index[0] = 4  # a sum of one cell
    stated = sum_deviations(plan._record.blocks, index, 5)
    noise = plan.sample(DRAWS, rng=ks.rng(seed=1))
    drawn = np.stack([noise[:, index == k].sum(axis=1).std() for k in range(5)])
    assert stated == pytest.approx(drawn, rel=0.04)


def test_sums_of_a_three_way_table():
    domain = ks.Domain({axis: [f"{axis}{i}" for i in range(3)] for axis in "abc"})
    plan = ks.plan(domain, keep=[["a", "b"], ["a", "c"], ["b", "c"]], mechanism=ks.Gaussian(sigma=4))
    assert is_table(plan.structure, plan._record.groups[0])
    index = np.random.default_rng(3).integers(0, 3, plan.size)
    noise = plan.sample(DRAWS, rng=ks.rng(seed=1))
    drawn = np.stack([noise[:, index == k].sum(axis=1).std() for k in range(3)])
    assert sum_deviations(plan._record.blocks, index, 3) == pytest.approx(drawn, rel=0.05)


def test_few_draws_of_a_large_table_are_simulated(monkeypatch):
    """Forty draws of a large table took as long as two releases of it."""
    domain = ks.Domain({"a": list(map(str, range(8_000))), "b": list("xyz"), "c": list("pqrs")})
    plan = ks.plan(domain, keep=[["a"], ["b"]], mechanism=ks.Laplace.per_unit(epsilon=1))
    drawn = []
    monkeypatch.setattr(
        simulation, "simulate_into", lambda sampler, noise, rng: drawn.append(noise.size) or noise.fill(1)
    )
    sum_deviations(plan._record.blocks, domain.marginal_index(["c"]), 4)
    draws = sum(drawn) // plan.size
    assert 8 <= draws < 40
    assert draws * simulation_nanoseconds(plan.samplers[0]) <= simulation.EFFORT
