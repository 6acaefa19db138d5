"""Margins of all totals of a margin at once: those of each total asked alone, and by coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import keepsum as ks
from keepsum.accuracy import queries, simulation, sums
from keepsum.accuracy.queries import canonical_piece
from keepsum.accuracy.sums import sum_accuracy
from support import BY_MIXTURE

DOMAIN = ks.Domain(
    {"state": ["a", "b"], "county": {"a": ["x", "y", "z"], "b": ["x"]}, "sex": ["f", "m"]}, within={"county": "state"}
)
KEPT = {
    "nothing": [],
    "total": [[]],
    "states": [["state"]],
    "counties and sexes": [["county"], ["sex"]],
    "states and sexes": [["state"], ["sex"]],
}
AXES = [["sex"], ["county"], ["state"], ["state", "sex"], []]
MECHANISMS = [ks.Laplace.per_unit(epsilon="0.3"), ks.Gaussian(sigma=4), ks.Laplace.per_unit(epsilon="0.3", norm="l2")]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT.keys())
def test_each_total_as_if_asked_alone(kept, mechanism):
    plan = ks.plan(DOMAIN, keep=kept, mechanism=mechanism)
    for axes in AXES:
        index = DOMAIN.marginal_index(axes)
        count = int(index.max()) + 1
        found = sum_accuracy(plan._record.blocks, index, count, 0.9, False)
        alone = [plan.noise.interval((index == k).astype(int), 0.9)[1] for k in range(count)]
        assert found.margins.tolist() == alone
        assert (found.basis == "exact") == (found.draws == 0)
        if not any(alone):
            assert str(found).startswith("typical 90% margin of error ±0 per total")


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("kept", [[["state"]], [["county"], ["sex"]], [["state"], ["sex"]]], ids=str)
def test_simultaneous_margins_cover_all_totals(kept, mechanism):
    """95% of 4,000 draws at an error rate of 1e-6, which margins of single totals do not."""
    plan = ks.plan(DOMAIN, keep=kept, mechanism=mechanism)
    index = DOMAIN.marginal_index(["county", "sex"])
    noise = plan.sample(4_000, rng=ks.rng(seed=2))
    drawn = np.stack([noise[:, index == k].sum(axis=1) for k in range(8)], axis=1)
    both, each = (sum_accuracy(plan._record.blocks, index, 8, 0.95, simultaneous) for simultaneous in (True, False))
    assert stats.binom.cdf(int((np.abs(drawn) <= both.margins).all(axis=1).sum()), 4_000, 0.95) > 1e-6
    if kept != [["county"], ["sex"]]:  # there the totals are the cells of a table of 4 x 2, and few of them independent
        assert stats.binom.cdf(int((np.abs(drawn) <= each.margins).all(axis=1).sum()), 4_000, 0.95) < 1e-6
    assert both.simultaneous
    assert both.basis in ("conservative", "estimated")


@pytest.mark.parametrize("focus", [{}, {"focus": {"a": "0.5"}}], ids=["no focus", "focus"])
def test_high_levels_may_be_divided_among_many_totals(focus):
    """Only the level itself must be one that a computed law is precise enough for, not its part for each total."""
    domain = ks.Domain({"a": list(map(str, range(200))), "b": ["x", "y"]})
    plan = ks.plan(domain, keep=[], mechanism=ks.Laplace.per_unit(epsilon="1", **focus))
    index = np.arange(400)
    lower, higher = (sum_accuracy(plan._record.blocks, index, 400, level, True) for level in (1 - 1e-5, 1 - 1e-8))
    assert higher.basis == "conservative"
    assert lower.margins.max() < higher.margins.min() < 2 * lower.margins.min()
    if not focus:
        ratio = np.exp(-1.0)
        assert (2 * ratio ** (higher.margins + 1.0) / (1 + ratio)).sum() <= 1e-8
    with pytest.raises(ks.InputError, match=r"Level must be at most 0\.999999996 for a computed law"):
        sum_accuracy(plan._record.blocks, index, 400, 1 - 1e-9, True)


def test_bounds_where_simulating_takes_long(monkeypatch):
    plan = ks.plan(keep=BY_MIXTURE[0], mechanism=BY_MIXTURE[1])
    index = np.arange(plan.size) % 3
    estimated = sum_accuracy(plan._record.blocks, index, 3, 0.9, False)
    monkeypatch.setattr(simulation, "MOST_EFFORT", 1)
    bounded = sum_accuracy(plan._record.blocks, index, 3, 0.9, False)
    assert (estimated.basis, bounded.basis, bounded.draws) == ("estimated", "conservative", 0)
    assert (bounded.margins >= estimated.margins).all()
    together = sum_accuracy(plan._record.blocks, np.zeros(plan.size, dtype=np.int64), 1, 0.9, False)
    assert together.margins.tolist() == [0]  # every margin keeps the grand total
    jointly = sum_accuracy(plan._record.blocks, index, 3, 0.9, True)
    assert (jointly.margins >= bounded.margins).all()


def test_a_release_with_intervals_of_its_margins(children):
    release = ks.release(children, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=1), rng=ks.rng(seed=3))
    margin = release.marginal(["education"])
    found = margin.accuracy(0.9)
    assert margin.accuracy(0.9) is found  # worked out once
    assert margin.intervals(0.9).tolist() == [
        list(release.interval({"education": name}, 0.9)) for name in ("Low", "Medium", "High", "Very High")
    ]
    frame = margin.to_frame("pandas", level=0.9)
    assert list(frame.columns) == ["education", "count", "count_low", "count_high"]
    assert frame[["count_low", "count_high"]].to_numpy().tolist() == margin.intervals(0.9).tolist()
    kept = release.marginal(["county"])
    assert kept.intervals().tolist() == [[n, n] for n in kept.table.counts.tolist()]
    assert margin.intervals(0.9, simultaneous=True)[0, 1] >= margin.intervals(0.9)[0, 1]
    with pytest.raises(ks.InputError, match="simultaneous"):
        margin.intervals(simultaneous="yes")


@pytest.mark.parametrize(("kept", "epsilon"), [([["a"], ["b"]], 2), ([["a"]], 3)], ids=["overlapping", "forced"])
def test_totals_that_hardly_ever_have_noise_cover_together(kept, epsilon):
    """Each has a margin of 0, and stays within it; all at once stay within 0 in fewer than 90% of 4,000 draws."""
    domain = ks.Domain({"a": range(8), "b": range(8)})
    plan = ks.plan(domain, keep=kept, mechanism=ks.Laplace.per_unit(epsilon=epsilon))
    noise = plan.sample(4_000, rng=ks.rng(seed=3))
    each, both = (
        sum_accuracy(plan._record.blocks, np.arange(64), 64, 0.9, simultaneous) for simultaneous in (False, True)
    )
    assert not each.margins.any()
    covered = [int((np.abs(noise) <= found.margins).all(axis=1).sum()) for found in (each, both)]
    assert stats.binom.cdf(covered[0], 4_000, 0.9) < 1e-6 < stats.binom.cdf(covered[1], 4_000, 0.9)


def test_simultaneous_margins_of_kept_totals_are_zero_and_exact():
    plan = ks.plan(DOMAIN, keep=[["state"], ["sex"]], mechanism=ks.Laplace.per_unit(epsilon=1))
    found = sum_accuracy(plan._record.blocks, DOMAIN.marginal_index(["sex"]), 2, 0.9, True)
    assert found.margins.tolist() == [0, 0]
    forced = ks.plan(DOMAIN, keep=[["state"]], mechanism=ks.Laplace.per_unit(epsilon=1))
    kept = sum_accuracy(forced._record.blocks, DOMAIN.marginal_index(["state"]), 2, 0.9, True)
    assert (kept.margins.tolist(), kept.basis) == ([0, 0], "exact")


def test_what_is_alike_is_worked_out_once(monkeypatch):
    """Ten thousand sums over a thousand regions of two sizes: a piece is made for each shape, not for each sum."""
    made = []

    def counted(size, classes):
        made.append((size, *classes))
        return canonical_piece(size, classes)

    for module in (queries, sums):
        monkeypatch.setattr(module, "canonical_piece", counted)
    counties = {"a": list(range(600)), "b": list(range(400))}
    domain = ks.Domain({"state": ["a", "b"], "county": counties, "age": range(10)}, within={"county": "state"})
    plan = ks.plan(domain, keep=[["county"]], mechanism=ks.Laplace.per_unit(epsilon=1))
    ages, cells = domain.marginal_index(["age"]), np.arange(domain.size)
    assert len(set(sum_accuracy(plan._record.blocks, cells, len(cells), 0.9, True).margins.tolist())) == 1
    assert len(set(sum_accuracy(plan._record.blocks, ages, 10, 0.9, False).margins.tolist())) == 1
    assert plan.noise.interval({"age": [0, 1]}, 0.9) == plan.noise.interval({"age": [2, 3]}, 0.9)
    assert len(made) == 4


@pytest.mark.parametrize("epsilon", [20, 60, 200])
def test_noise_that_is_hardly_ever_there_has_margins_of_0(epsilon):
    """Its log moments are so small that they may be rounded to a number below 0."""
    domain = ks.Domain(
        {"state": ["a", "b"], "county": {"a": ["c", "d", "e"], "b": ["f", "g"]}, "sex": ["f", "m"]},
        within={"county": "state"},
    )
    mechanism = ks.Laplace(epsilon, focus={"county": 1})
    (level,) = ks.plan(domain, keep=["state"], mechanism=mechanism).accuracy().levels
    assert not level.accuracy.margins.any()
