"""Shares of a budget: expected errors are those of the noise, and no shares nearby have smaller ones."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import keepsum as ks
from keepsum.accuracy import shares as level_errors
from keepsum.accuracy import shares as person_loss
from keepsum.accuracy.shares import LevelErrors, SharedBudget, ShareSearch
from support import mostly_audit

NAMES = {"A": ["a", "b", "c"], "B": ["d"], "C": ["e", "f"]}
TREE = ks.Domain({"state": ["A", "B", "C"], "county": NAMES, "cell": range(4)}, within={"county": "state"})
GRID = ks.Domain({"county": range(6), "cell": range(5)})
CASES = {
    "nothing kept": (TREE, [], [("state",), ("county",)]),
    "the grand total kept": (TREE, [[]], [("state",), ("county",)]),
    "states kept": (TREE, [["state"]], [("county",)]),
    "counties kept": (TREE, [["county"]], [("county", "cell")]),
    "a focus on the grand total": (TREE, [], [(), ("county",)]),
    "cells missing": (TREE.without({"county": "e", "cell": [0, 1, 2]}), [], [("state",), ("county",)]),
    "a grid": (GRID, [], [("county",)]),
}


def search_of(case, weights=None, epsilon=1, records=None):
    domain, keep, axes = CASES[case]
    weights = weights or [1] * (1 + len(axes))
    kept = ks.Invariants.margins(domain, keep)
    return ShareSearch.of(SharedBudget(kept, records, tuple(axes), Fraction(epsilon), tuple(map(Fraction, weights))))


def measured(plan, axes):
    """The mean squared error of cells and of the totals of each level, query by query."""
    domain = plan.invariants.domain
    levels = [[plan.noise.variance(cell) for cell in range(domain.size)]]
    for level in axes:
        place = domain.marginal_index(domain.closure(level))
        levels.append([plan.noise.variance((place == k).astype(int)) for k in range(place.max() + 1)])
    return [np.mean(variances) for variances in levels]


@mostly_audit("case", CASES)
@pytest.mark.parametrize("parts", [(1, 1, 1), (5, 1, 2), (1, 6, 3)])
def test_errors_are_those_of_the_noise(case, parts):
    search = search_of(case)
    parts = parts[: len(search.budget.weights)]
    plan = ks.plan(
        keep=search.budget.invariants, mechanism=search.budget.mechanism(tuple(100 * part for part in parts))
    )
    assert search.errors(parts) == pytest.approx(measured(plan, search.budget.axes), rel=1e-8, abs=1e-12)


def test_errors_of_wide_noise_on_a_small_circle_would_be_wrong(monkeypatch):
    """The circle must be as wide as sums that matter are."""
    plan = ks.plan(TREE, keep=[], mechanism=ks.Laplace.per_unit(1, focus={"state": 1, "county": 1}))
    right = LevelErrors(plan._record.blocks.nested)([0.05, 0.1, 0.1])
    monkeypatch.setattr(level_errors, "BITS", 3)
    assert LevelErrors(plan._record.blocks.nested)([0.05, 0.1, 0.1]) != pytest.approx(right, rel=1e-6)


@mostly_audit("case", CASES)
@pytest.mark.parametrize("weights", [(1, 5, 2), (1, 1, 1), (20, 1, 1)])
def test_no_other_shares_have_a_smaller_error(case, weights):
    search = search_of(case, weights[: 1 + len(CASES[case][2])])
    best = search.best()
    least = search.error(best) * (1 - 1e-12)  # where a level is that of cells, all shares are as good
    assert sum(best) == 1000
    levels = len(best) - 1
    for others in product(range(0, 1000, 50), repeat=levels):
        if sum(others) < 1000:
            assert search.error((1000 - sum(others), *others)) >= least
    for moves in product((-1, 0, 1), repeat=levels):
        near = [part + move for part, move in zip(best[1:], moves, strict=True)]
        if min(near) >= 0 and 0 < sum(near) < 1000:
            assert search.error((1000 - sum(near), *near)) >= least


@mostly_audit("case", CASES)
@pytest.mark.parametrize("epsilon", [1, "1/3"])
def test_one_person_loses_exactly_what_was_asked_for(case, epsilon):
    domain, keep, axes = CASES[case]
    shared = ks.share_budget(domain, axes, epsilon, keep=keep)
    plan = ks.plan(domain, keep=keep, mechanism=shared.mechanism)
    assert plan.mechanism.loss(plan._record.asked_distance).epsilon == Fraction(epsilon)
    assert plan.mechanism.cell_epsilon == shared.levels[-1].epsilon
    assert sum(level.share for level in shared.levels) == 1
    cells, *totals = measured(plan, axes)
    assert shared.cell_rmse == pytest.approx(cells**0.5)
    assert list(shared.rmse.values()) == pytest.approx(np.sqrt(totals))
    weighted = (cells + sum(totals)) / (1 + len(totals))
    assert shared.error == pytest.approx(weighted**0.5)


def test_the_loss_of_a_person_is_that_of_a_plan_whatever_the_shares():
    for case, (domain, keep, axes) in CASES.items():
        search = search_of(case)
        for parts in product((1, 10, 300), repeat=1 + len(axes)):
            request = ks.Laplace(1, focus=dict(zip(axes, parts[1:], strict=True)), cell_share=parts[0])
            plan = ks.plan(domain, keep=keep, mechanism=request)
            assert search.epsilons(parts)[0] == plan.mechanism.cell_epsilon


def test_totals_that_are_no_margins_have_one_bound_for_all_shares():
    """State A is kept. What a change does to totals is bounded by its length, whatever the shares are."""
    kept = ks.Invariants.subsets(TREE.size, [np.flatnonzero(TREE.codes("state") == 0)]).over(TREE)
    axes = (("state",), ("county",))
    search = ShareSearch.of(SharedBudget(kept, None, axes, Fraction(1), (Fraction(1),) * 3))
    for parts in [(1, 1, 1), (1, 50, 1), (1, 1, 50), (50, 1, 1), (3, 0, 2), (3, 0, 0)]:
        mechanism = search.budget.mechanism(tuple(10 * part for part in parts))
        assert search.epsilons(parts)[0] == ks.plan(keep=kept, mechanism=mechanism).mechanism.cell_epsilon
    assert search._loss.complete


def test_changes_that_no_single_one_covers_are_looked_for_each_time():
    """Two changes of an attribute, each the most in one level: no sum of shares is the largest throughout."""
    assert not person_loss._complete([[(2, 2, 0)], [(2, 2, 0)], [(2, 0, 2)]])
    assert person_loss._complete([[(2, 2, 0)], [(4, 2, 2)], [(2, 0, 2)]])
    search = search_of("nothing kept")
    shares = [(1, 1, 1), (1, 50, 1), (1, 1, 50), (50, 1, 1), (3, 0, 2)]
    known = [search._loss(parts) for parts in shares]
    search._loss.complete = False
    assert [search._loss(parts) for parts in shares] == known


def test_weights_move_shares():
    equal = ks.share_budget(TREE, ["state", "county"], 1)
    heavy = ks.share_budget(TREE, ["state", "county"], 1, {"state": 10})
    cells = ks.share_budget(TREE, ["state", "county"], 1, cell_weight=10)
    assert heavy.shares["state"] > equal.shares["state"]
    assert heavy.rmse["state"] < equal.rmse["state"]
    assert cells.cell_share > equal.cell_share
    assert cells.cell_rmse < equal.cell_rmse
    assert equal.error < equal.without_focus


def test_a_level_that_is_not_worth_an_epsilon_gets_none():
    shared = ks.share_budget(TREE, ["state", "county"], 1, {"state": "1e-9", "county": 100}, cell_weight=100)
    assert shared.levels[0].share == 0
    assert shared.levels[0].rmse > 0
    assert list(shared.shares) == ["county"]
    assert [level.axes for level in shared.mechanism.focus] == [("county",)]
    alone = ks.share_budget(GRID, ["county"], 1, {"county": "1e-9"})
    assert alone.mechanism == ks.Laplace(1)
    assert alone.shares == {}
    assert alone.error == alone.without_focus


def test_several_records_per_person():
    one, three = (ks.share_budget(GRID, ["county"], 3, max_rows_per_unit=rows) for rows in (1, 3))
    assert three.levels[-1].epsilon < one.levels[-1].epsilon
    plan = ks.plan(keep=ks.Invariants.margins(GRID, []), mechanism=three.mechanism, max_rows_per_unit=3)
    assert plan.mechanism.cell_epsilon == three.levels[-1].epsilon


def test_the_same_shares_every_time_and_in_any_form():
    first = ks.share_budget(TREE, ["state", "county"], 1, {"county": 3}, keep=[[]])
    kept = ks.Invariants.margins(TREE, [[]])
    again = ks.share_budget(TREE, [("state",), ["county"]], "1", {("county",): 3}, keep=kept)
    assert repr(first) == repr(again)
    assert repr(first).splitlines()[1].split() == ["weight", "share", "epsilon", "per", "unit", "expected", "rmse"]
    assert "<pre>" in first._repr_html_()


@pytest.mark.parametrize(
    ("levels", "arguments", "words"),
    [
        ([], {}, "one or more, got none"),
        (["state", "state"], {}, "different, got one twice"),
        (["state"], {"weights": {"county": 1}}, "among the levels"),
        (["nowhere"], {}, "nowhere"),
        (["state"], {"keep": ["county"]}, "kept ones determine"),
        (["county", "cell"], {}, "nested .* these cross"),
        (["county"], {"keep": ["cell"]}, "nested .* these cross"),
        ([()], {"weights": {ks.Invariants.subsets(TREE.size, [[0]]): 5}}, "among the levels"),
        (["county"], {"keep": ["state", "cell"]}, "overlap"),
        (["state"], {"epsilon": "1e-5"}, "Choose another epsilon"),
        (["state"], {"epsilon": 0}, "positive"),
        (["state"], {"cell_weight": 0}, "positive"),
    ],
)
def test_what_cannot_be_shared_is_refused(levels, arguments, words):
    with pytest.raises(ks.KeepsumError, match=words):
        ks.share_budget(TREE, levels, **({"epsilon": 1} | arguments))


def test_the_curve_and_its_picture():
    shared = ks.share_budget(TREE, ["state", "county"], 1, {"county": 3})
    for number, level in enumerate(shared.levels):
        points = shared.curve(number)
        own = next(point for point in points if point.share == level.share)
        assert own.error == pytest.approx(shared.error)
        assert own.rmse == pytest.approx([level.rmse for level in shared.levels])
        assert all(point.error >= shared.error for point in points)
        assert [point.share for point in points] == sorted(point.share for point in points)
        falls = [point.rmse[number] for point in points]
        assert falls == sorted(falls, reverse=True)
    pytest.importorskip("matplotlib")
    figure = shared.plot()
    labels = [axes.get_xlabel() for axes in figure.axes]
    assert labels == ["share of totals of state", "share of totals of county", "share of cells"]
