"""How long a draw takes, by the costs that samplers state; nothing is drawn, and no clock is read."""

from typing import get_args

import pytest

import keepsum as ks
from keepsum.planning.selection import choice
from keepsum.planning.selection.choice import (
    NANOSECONDS_PER_CELL,
    SIMULATION_NANOSECONDS,
    Method,
    describe_duration,
    seconds_per_draw,
)
from support import BY_MIXTURE


def test_every_method_has_a_figure():
    ours = set(get_args(Method)) - {"own_sampler"}  # a user's own has none
    assert set(NANOSECONDS_PER_CELL) == set(SIMULATION_NANOSECONDS) == ours


def test_a_chain_takes_longer_than_an_exact_sampler():
    keep, mechanism = BY_MIXTURE
    chain = seconds_per_draw(ks.plan(keep=keep, mechanism=mechanism).samplers)
    exact = seconds_per_draw(ks.plan(keep=keep, mechanism=ks.Gaussian(sigma=2)).samplers)
    assert chain > 1000 * exact


def test_groups_that_are_drawn_together_are_counted_once():
    keep = ks.Invariants.subsets(8, [[0, 1, 2], [2, 3, 4], [5, 6]])
    plan = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=1, norm="l2"))
    assert len(plan.samplers) > 1
    assert seconds_per_draw(plan.samplers) == seconds_per_draw(plan.samplers[:1])


def test_a_plan_says_it_and_its_certificate_does_not(children, monkeypatch):
    plan = ks.plan(children, keep=["county", "education"], mechanism=ks.Laplace.per_unit(epsilon=0.25))
    assert "one draw takes about 5 µs (estimate, one core)" in plan.explain(details=True)
    before = plan.release(children, rng=ks.rng(seed=1)).certificate
    monkeypatch.setitem(choice.NANOSECONDS_PER_CELL, "column_splitting", 10**9)
    assert "one draw takes about 2 min" in plan.explain(details=True)
    after = plan.release(children, rng=ks.rng(seed=1)).certificate
    assert (before.guarantee, before.accuracy, before.software) == (after.guarantee, after.accuracy, after.software)


def test_without_a_sampler_nothing_is_said():
    plan = ks.plan(keep=ks.Invariants.subsets(4, [range(4)]), mechanism=ks.Laplace.per_unit(epsilon=100))
    assert seconds_per_draw(plan.samplers) is None
    assert "one draw" not in plan.explain(details=True)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1e-9, "less than 1 µs"),
        (1e-6, "about 1 µs"),
        (0.00099, "about 1 ms"),
        (0.36, "about 400 ms"),
        (1, "about 1 s"),
        (46, "about 50 s"),
        (60, "about 1 min"),
        (3599, "about 1 h"),
        (7200, "about 2 h"),
    ],
)
def test_durations_are_rounded(seconds, words):
    assert describe_duration(seconds) == words
