"""Plans with a focus, from the declaration to the draw, against their law by enumeration from its definition."""

import numpy as np
import pytest
from laws import as_tuples, assert_drawn_from, assert_not_drawn_from, boxed

import keepsum as ks
from support import mostly_audit

COUNT = 100_000
PLACES = ks.Domain({"state": ["A", "B"], "county": {"A": ["a", "b"], "B": ["c", "d"]}}, within={"county": "state"})
PAIRS = ks.Domain({"county": ["a", "b"], "sex": ["f", "m"]})
PLANS = {
    "states": (PLACES, [], {"state": 1}),
    "states and the total": (PLACES, [], {"state": "1/2", (): "1/3"}),
    "kept total": (PLACES, [[]], {"state": 1}),
    "kept states, counties of several cells": (PAIRS, [["county"]], {("county", "sex"): "1/2"}),
    "every cell twice": (PAIRS, [], {("county", "sex"): "1/2", "county": 1}),
    "both margins": (PAIRS, [], {"county": "1/2", "sex": 1}),
    "both margins and the total": (PAIRS, [], {"county": "1/2", "sex": 1, (): "1/3"}),
    "both margins, kept total": (PAIRS, [[]], {"county": "1/2", "sex": 1}),
    "kept counties that cross": (PAIRS, [["county"]], {"sex": "1/2"}),
}


def weights(domain, keep, epsilon, focus, points):
    """The weight of each vector, and whether it keeps what is kept."""
    logs, kept = -epsilon * np.abs(points).sum(axis=1), np.ones(len(points), dtype=bool)
    for axes in keep:
        kept &= (ks.Invariants.margins(domain, [axes]).coefficients @ points.T == 0).all(axis=0)
    for axes, weight in focus.items():
        rows = ks.Invariants.margins(domain, [(axes,) if isinstance(axes, str) else axes]).coefficients
        logs = logs - float(ks.Laplace.per_unit(weight).epsilon) * np.abs(rows @ points.T).sum(axis=0)
    return np.exp(logs) * kept


def law_of(name, epsilon=1.0, reach=3):
    domain, keep, focus = PLANS[name]
    whole = weights(domain, keep, epsilon, focus, boxed(12, domain.size)).sum()
    points = boxed(reach, domain.size)
    near = weights(domain, keep, epsilon, focus, points)
    return as_tuples(points[near > 0]), near[near > 0] / whole


def drawn(name, epsilon=1, **changed):
    domain, keep, focus = PLANS[name]
    plan = ks.plan(domain, keep=keep, mechanism=ks.Laplace.per_unit(epsilon, focus=focus | changed))
    return plan.sample(COUNT, ks.rng(seed=20))


@mostly_audit("name", PLANS)
def test_plans_draw_from_their_law(name):
    assert_drawn_from(drawn(name), law_of(name))


@pytest.mark.parametrize("name", ["states", "states and the total", "kept total"])
def test_another_weight_is_rejected(name):
    assert_not_drawn_from(drawn(name, state="1/4"), law_of(name))


@pytest.mark.parametrize("name", ["both margins", "both margins and the total", "kept counties that cross"])
def test_another_weight_of_a_total_that_crosses_is_rejected(name):
    assert_not_drawn_from(drawn(name, sex="1/8"), law_of(name))


def test_a_forgotten_focus_is_rejected():
    plan = ks.plan(PLACES, keep=[[]], mechanism=ks.Laplace.per_unit(1))
    assert_not_drawn_from(plan.sample(COUNT, ks.rng(seed=20)), law_of("kept total"))


def test_cells_without_a_focus_are_drawn_beside_those_with_one():
    """A state of one county has no noise in its total, so its cells have that of a kept sum, and no focus."""
    domain = ks.Domain({"state": ["A", "B"], "county": {"A": ["a"], "B": ["b", "c"]}, "sex": ["f", "m"]},
                       within={"county": "state"})  # fmt: skip
    plan = ks.plan(domain, keep=[["state"]], mechanism=ks.Laplace.per_unit(1, focus={"county": "1/2"}))
    assert [group.form.kind for group in plan._record.groups] == ["sums", "nested"]
    noise = plan.sample(COUNT, ks.rng(seed=21))
    assert not noise[:, :2].sum(axis=1).any()
    assert not noise[:, 2:].sum(axis=1).any()
    points = boxed(4, 4)
    points = points[points.sum(axis=1) == 0]

    def chances(box):
        logs = -np.abs(box).sum(axis=1) - 0.5 * (np.abs(box[:, :2].sum(axis=1)) + np.abs(box[:, 2:].sum(axis=1)))
        return np.exp(logs)

    whole = boxed(14, 4)
    whole = chances(whole[whole.sum(axis=1) == 0]).sum()
    assert_drawn_from(noise[:, 2:], (as_tuples(points), chances(points) / whole))
    assert_drawn_from(
        noise[:, :1], ([(k,) for k in range(-9, 10)], np.tanh(1) * np.exp(-2 * np.abs(np.arange(-9, 10))))
    )
