"""What a change of one person costs under a focus: the definition by brute force, and bounds on it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import keepsum as ks
from keepsum.planning import focus_changes
from keepsum.planning.distances import AttributeDistance
from keepsum.planning.plan import CompiledPlan, compile_plan
from planning import brute_force
from support import mostly_audit

PLACES = ks.Domain(
    {"state": ["A", "B"], "county": {"A": ["a1", "a2"], "B": ["b1"]}, "sex": ["f", "m"]}, within={"county": "state"}
)
TOWNS = ks.Domain(
    {
        "region": ["N", "S"],
        "state": [("N", "n1"), ("N", "n2"), ("S", "s1")],
        "town": [("N", "n1", "x"), ("N", "n1", "y"), ("N", "n2", "z"), ("S", "s1", "w"), ("S", "s1", "v")],
    },
    within={"state": "region", "town": "state"},
)
CASES = [
    (PLACES, [], {"county": "1/10", "state": "1/7"}),
    (PLACES, [[]], {"county": "1/10", "state": "1/7"}),
    (PLACES, [["state"]], {"county": "1/10"}),
    (PLACES, [["state"]], {("state", "sex"): "2"}),
    (PLACES, [["sex"]], {("county", "sex"): "1/3", ("state", "sex"): "1/2"}),
    (PLACES, [], {("county", "sex"): "1", "state": "1/3"}),
    (PLACES, [], {(): "1"}),
    (TOWNS, [], {"region": "1/3", "state": "1/5"}),
    (TOWNS, [[]], {"state": "1/5", "region": "3"}),
    (TOWNS, [["region"]], {"state": "1/5"}),
]

TABLE = ks.Domain({"a": [0, 1], "b": [0, 1, 2]})
CROSSING = [
    (TABLE, [], {"a": "1/3", "b": "1/5"}),
    (TABLE, [], {"a": "1/3", "b": "1/5", (): "1/7"}),
    (TABLE, [[]], {"a": "1/3", "b": "1/5"}),
    (TABLE, [["a"]], {"b": "1/5"}),
    (TABLE, [["b"]], {"a": "1/3"}),
    (PLACES, [], {"county": "1/3", "sex": "1/5"}),
    (PLACES, [["county"]], {"sex": "1/3"}),
    (PLACES, [["sex"]], {"county": "1/3"}),
    (PLACES, [["state"]], {"county": "1/3", ("state", "sex"): "1/5"}),
]


def planned(keep: ks.Invariants, mechanism: ks.Laplace | ks.Gaussian) -> CompiledPlan:
    """A plan with the distances of keepsum.certificate/2: those of vectors, whatever real tables need."""
    return compile_plan(keep, mechanism, by_lattice=True)


def loss(plan: CompiledPlan, z: np.ndarray) -> Fraction:
    """epsilon |z|_1 + sum of epsilon_g |z(g)|, straight from the definition."""
    domain, total = plan.invariants.domain, plan.mechanism.cell_epsilon * int(np.abs(z).sum())
    for level in plan.mechanism.focus:
        sums = np.bincount(domain.marginal_index(level.axes), weights=z)
        total += level.weight * int(np.abs(sums).sum())
    return total


def short_vectors(plan: CompiledPlan) -> list[tuple[int, Fraction, np.ndarray]]:
    """All changes of at most four counts that keep every total, with their lengths and losses."""
    found = []
    for entries in product(range(-2, 3), repeat=plan.size):
        z = np.array(entries)
        if 0 < np.abs(z).sum() <= 4 and not np.asarray(plan.invariants.coefficients @ z).any():
            found.append((int(np.abs(z).sum()), loss(plan, z), z))
    return found


def dearest(vectors: list, takes: int, gives: set[int]) -> Fraction | None:
    """The largest loss of the shortest changes that take from a cell and give to one of others."""
    fitting = [(n, cost) for n, cost, z in vectors if z[takes] < 0 and any(z[j] > 0 for j in gives)]
    shortest = min((n for n, _ in fitting), default=0)
    return max((cost for n, cost in fitting if n == shortest), default=None)


def cost_of(plan: CompiledPlan) -> tuple[int, brute_force.Cost]:
    """The loss of changes in whole units, and how many of these are 1: epsilon |z|_1 + sum of epsilon_g |z(g)|."""
    weights = [plan.mechanism.cell_epsilon, *(level.weight for level in plan.mechanism.focus)]
    unit = math.lcm(*(weight.denominator for weight in weights))
    sums = [np.eye(plan.size, dtype=int)]
    for level in plan.mechanism.focus:
        index = plan.invariants.domain.marginal_index(level.axes)
        sums.append((index[:, None] == np.arange(index.max() + 1)).astype(int))

    def cost(changes: np.ndarray) -> np.ndarray:
        return sum(int(w * unit) * np.abs(changes @ total).sum(axis=-1) for w, total in zip(weights, sums, strict=True))

    return unit, cost


def as_stated(plan: CompiledPlan, attribute: AttributeDistance, people: int) -> int:
    """The stated losses against those of real tables: ``brute_force.check``."""
    unit, cost = cost_of(plan)
    return brute_force.check(
        plan.invariants, attribute, people, cost, lambda distance: plan.mechanism.loss(distance).epsilon * unit
    )


@mostly_audit(("domain", "keep", "focus"), CASES + CROSSING)
def test_losses_are_those_of_real_tables(domain, keep, focus):
    """Nobody needs more than is stated, in the strong reading, and some need it where it is exact."""
    plan = ks.plan(domain, keep=keep, mechanism=ks.Laplace.per_unit("1/2", focus=focus))
    for attribute in plan.attributes:
        exact = attribute.any_value.exact + attribute.other_value.exact
        assert as_stated(plan, attribute, 3) == exact
        assert {attribute.any_value.reading, attribute.other_value.reading} == {"strong"}
        # In towns of kept regions people differ in nothing else: whoever is in the other region moves. And what an
        # exchange does to the focused counties of kept states depends on how many they have.
        at_most = keep == [["region"]] or (keep == [["state"]] and "county" in focus and attribute.axis != "sex")
        assert exact == 2 or at_most
    single = [cost for n, cost, _ in short_vectors(plan) if n == 1]  # one person more or fewer
    covered = [plan.mechanism.loss(attribute.any_value).epsilon for attribute in plan.attributes]
    assert plan.guarantee.person_epsilon == max(covered + single)


@mostly_audit(("domain", "keep", "focus"), CASES + CROSSING)
def test_distances_are_those_of_vectors(domain, keep, focus):
    """As keepsum.certificate/2 defines them."""
    plan = planned(ks.Invariants.margins(domain, keep), ks.Laplace.per_unit("1/2", focus=focus))
    vectors = short_vectors(plan)
    for attribute in plan.attributes:
        codes = domain.codes(attribute.axis)
        costs = [
            [dearest(vectors, i, set(np.flatnonzero(codes == v))) for v in set(codes.tolist()) - {codes[i]}]
            for i in range(plan.size)
        ]
        assert plan.mechanism.loss(attribute.any_value).epsilon == max(max(row) for row in costs)
        assert plan.mechanism.loss(attribute.other_value).epsilon == max(min(row) for row in costs)
        assert attribute.any_value.exact
        assert attribute.other_value.exact
    through = []
    for i in np.flatnonzero([any(z[i] for _, _, z in vectors) for i in range(plan.size)]).tolist():
        shortest = min(n for n, _, z in vectors if z[i])
        through.append(max(cost for n, cost, z in vectors if z[i] and n == shortest))
    assert plan.mechanism.loss(plan.smallest_change).epsilon == max(through)
    single = [cost for n, cost, _ in vectors if n == 1]  # one person more or fewer
    covered = [plan.mechanism.loss(attribute.any_value).epsilon for attribute in plan.attributes]
    assert plan.guarantee.person_epsilon == max(covered + single)


@mostly_audit(("domain", "keep", "focus"), CASES + CROSSING)
def test_changes_within_a_total_are_those_of_the_definition(domain, keep, focus):
    """Of one attribute that no axis of the total is, or is nested in."""
    plan = ks.plan(domain, keep=keep, mechanism=ks.Laplace.per_unit("1/2", focus=focus))
    unit, cost = cost_of(plan)
    for level, found in zip(plan.mechanism.focus, plan._record.distances.within_levels, strict=True):
        within = set(domain.closure(level.axes))
        true = []
        for axis in domain.axes:
            inside = {(c.cell, c.value) for c in brute_force.changes_of(domain, axis) if not c.changed & within}
            costs = brute_force.largest(plan.invariants, axis, 3, cost, strong=True)
            true += [loss for change, loss in costs.items() if change in inside]
        assert (found is None) == (not true)
        stated = 0 if found is None else plan.mechanism.loss(found).epsilon * unit
        assert found is None or (stated == max(true) if found.exact else stated >= max(true))


@mostly_audit(("domain", "keep", "focus"), CASES + CROSSING)
def test_changes_within_a_total_are_those_of_vectors(domain, keep, focus):
    """As keepsum.certificate/2 defines them: exact where totals are nested."""
    plan = planned(ks.Invariants.margins(domain, keep), ks.Laplace.per_unit("1/2", focus=focus))
    vectors = short_vectors(plan)
    for level, found in zip(plan.mechanism.focus, plan.distances.within_levels, strict=True):
        total = domain.marginal_index(level.axes)
        pairs = [(i, j) for i in range(plan.size) for j in range(plan.size) if i != j and total[i] == total[j]]
        costs = [cost for cost in (dearest(vectors, i, {j}) for i, j in pairs) if cost is not None]
        stated = None if found is None else plan.mechanism.loss(found).epsilon
        assert (stated is None) == (not costs)
        exact = found is not None and (found.exact or (domain, keep, focus) in CASES)
        assert stated is None or (stated == max(costs) if exact else stated >= max(costs))


def test_bounds_of_totals_that_cross_are_attained_or_labelled():
    """Two rows of two columns: what one row's vector changes, the other's can only undo or repeat."""
    domain = ks.Domain({"a": [0, 1], "b": [0, 1]})
    keep, noise = ks.Invariants.margins(domain, [["a"]]), ks.Laplace.per_unit("1/2", focus={"b": "1/5"})
    plan = planned(keep, noise)
    vectors = short_vectors(plan)
    for attribute in plan.attributes:
        codes = domain.codes(attribute.axis)
        costs = [dearest(vectors, i, set(np.flatnonzero(codes != codes[i]).tolist())) for i in range(4)]
        stated = plan.mechanism.loss(attribute.any_value).epsilon
        assert stated == max(costs) if attribute.any_value.exact else stated >= max(costs)
    for attribute in ks.plan(keep=keep, mechanism=noise).attributes:
        as_stated(ks.plan(keep=keep, mechanism=noise), attribute, 4)


@mostly_audit(("domain", "keep", "focus"), CASES + CROSSING)
def test_bounds_are_stated_where_there_are_too_many_pairs(monkeypatch, domain, keep, focus):
    """Of vectors; in real tables distances under a focus on margins are known in closed form."""
    exact = planned(ks.Invariants.margins(domain, keep), ks.Laplace.per_unit("1/2", focus=focus))
    stated = exact.guarantee.person_epsilon
    monkeypatch.setattr(focus_changes, "MOST_WORK", 0)
    bound = planned(ks.Invariants.margins(domain, keep), ks.Laplace.per_unit("1/2", focus=focus))
    assert bound.guarantee.person_epsilon >= stated
    assert not bound.person.exact or bound.guarantee.person_epsilon == stated
    for one, other in zip(bound.attributes, exact.attributes, strict=True):
        for stated, true in ((one.any_value, other.any_value), (one.other_value, other.other_value)):
            losses = [bound.mechanism.loss(distance).epsilon for distance in (stated, true)]
            assert losses[0] == losses[1] if stated.exact else losses[0] >= losses[1]


def test_a_bound_that_is_attained_is_exact(monkeypatch):
    monkeypatch.setattr(focus_changes, "MOST_WORK", 0)
    plan = planned(ks.Invariants.margins(PLACES, [[]]), ks.Laplace.per_unit(1, focus={"county": 1, "state": 1}))
    assert [attribute.any_value.exact for attribute in plan.attributes] == [True, True, True]
    assert [attribute.other_value.exact for attribute in plan.attributes] == [True, True, True]
    assert plan.person.exact
    plan = planned(ks.Invariants.margins(PLACES, [["state"]]), ks.Laplace.per_unit(1, focus={"county": 1}))
    assert not plan.person.exact


def test_a_bound_that_is_attained_in_two_regions_is_exact(monkeypatch):
    domain = ks.Domain({"g": [0, 1, 2], "h": [0, 1], "x": [0, 1]})
    keep, noise = ks.Invariants.margins(domain, [["g"]]), ks.Laplace.per_unit(1, focus={("g", "h"): "1/3"})
    exact = planned(keep, noise).attributes
    monkeypatch.setattr(focus_changes, "MOST_WORK", 100)
    bounds = planned(keep, noise).attributes
    assert bounds[0] == exact[0]
    assert bounds[0].any_value.exact
    assert bounds[0].any_value.focused == (4,)


def test_a_budget_per_person_is_divided_and_used_up():
    keep = ks.Invariants.margins(PLACES, [])
    plan = ks.plan(keep=keep, mechanism=ks.Laplace(1, focus={"state": 1, "county": 1}, cell_share=3))
    assert plan.guarantee.person_epsilon == 1
    assert plan.mechanism.cell_epsilon == Fraction(3, 10)
    assert [level.weight for level in plan.mechanism.focus] == [Fraction(1, 10)] * 2
    assert [plan.mechanism.loss(d).epsilon for d in plan._record.distances.within_levels] == [
        Fraction(4, 5),
        Fraction(3, 5),
    ]
    part = ks.plan(keep=keep, mechanism=ks.Laplace(1, focus={"state": 1}, attributes=["sex"], to="some other value"))
    assert part.mechanism.loss(part._record.asked_distance).epsilon == 1


def test_a_person_of_several_records_counts_as_often():
    plan = ks.plan(
        keep=ks.Invariants.margins(PLACES, []),
        mechanism=ks.Laplace.per_unit("1/2", focus={"county": 1}),
        max_rows_per_unit=3,
    )
    assert plan.guarantee.person_epsilon == 9
    assert plan._record.distances.within_levels[0].length == 6


def test_the_nearest_value_is_not_exact_where_a_change_to_a_farther_one_may_cost_less():
    """A move in each of two rows that undo each other in both columns changes four counts, and no focused total."""
    domain = ks.Domain({"a": ["p", "q"], "b": [0, 1], "c": [0, 1, 2, 3]})
    cells = {("p", 0): 0, ("p", 1): 1, ("q", 0): 2, ("q", 1): 3}
    domain = domain.without(*({"a": a, "b": b, "c": c} for (a, b), own in cells.items() for c in range(4) if c != own))
    keep, noise = ks.Invariants.margins(domain, [["a"]]), ks.Laplace.per_unit("1/20", focus={"b": 1})
    plan = planned(keep, noise)
    vectors, (*_, attribute) = short_vectors(plan), plan.attributes
    nearest = max(min(dearest(vectors, i, {j}) for j in range(4) if j != i) for i in range(4))
    assert nearest == Fraction(1, 5)
    assert plan.mechanism.loss(attribute.other_value).epsilon > nearest
    assert not attribute.other_value.exact
    # A person with the same a and b has no other c: in real tables nobody is said to change.
    (*_, attribute) = ks.plan(keep=keep, mechanism=noise).attributes
    assert (attribute.any_value, attribute.other_value, attribute.stuck) == (None, None, 4)


def rho(plan: CompiledPlan, z: np.ndarray) -> Fraction:
    """rho |z|^2 + sum of rho_g z(g)^2, straight from the definition."""
    domain, total = plan.invariants.domain, plan.mechanism.rho * int((z**2).sum())
    for level in plan.mechanism.focus:
        sums = np.bincount(domain.marginal_index(level.axes), weights=z)
        total += level.weight * int((sums**2).sum())
    return total


def test_a_change_that_only_gives_changes_a_total_as_often():
    """Under a difference that is kept, both counts grow together, and their total by 2."""
    domain = ks.Domain({"a": [0, 1]})
    keep = ks.Invariants.matrix([[1, -1]]).over(domain)
    plan = ks.plan(keep=keep, mechanism=ks.Gaussian.per_unit(rho=1, focus={(): 10}))
    assert plan.mechanism.loss(plan.smallest_change).rho >= rho(plan, np.array([1, 1]))
    request = ks.Gaussian(rho=1, focus={(): 1})
    with pytest.raises(ks.PlanError, match="needs named attributes with several categories that can change"):
        ks.plan(keep=keep, mechanism=request)  # with the number of people kept neither count can change


COAST = ks.Invariants.subsets(6, [[0, 1]], names=["coast"])


@pytest.mark.parametrize(
    "noise", [ks.Laplace.per_unit("1/2", focus={COAST: "1/10"}), ks.Gaussian.per_unit(rho="1/2", focus={COAST: "1/10"})]
)
def test_the_smallest_change_beside_a_focus_changes_no_focused_total(noise):
    """Of the cells of a kept total two change, which costs 1; of those of the focused one a single count does."""
    domain = ks.Domain({"a": [0, 1, 2], "b": [0, 1]})
    plan = ks.plan(keep=ks.Invariants.subsets(6, [[2, 3, 4, 5]]).over(domain), mechanism=noise)
    loss = plan.mechanism.loss(plan.smallest_change)
    assert (loss.epsilon or loss.rho) == 1 if plan.smallest_change.exact else (loss.epsilon or loss.rho) > 1
    assert plan.smallest_change.exact == (noise.norm == "l1")
