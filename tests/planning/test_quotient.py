"""Plans of tables in groups state what plans of their cells state, for every pair of margins of several domains."""

from itertools import combinations

import numpy as np
import pytest

import keepsum as ks
from keepsum.accuracy.disclosure import bounded_cells
from keepsum.accuracy.levels import accuracy_by_level
from keepsum.planning import quotient
from keepsum.planning.plan import compile_plan
from keepsum.planning.quotient import Quotient
from keepsum.releasing.codec import accuracy_record, exposure_record, guarantee_record
from keepsum.tables.axes import make_axes
from support import mostly_audit

COUNTIES = {"a": ["x", "y"], "b": ["x"], "c": ["u", "v", "w"]}
PLACES = {"state": list(COUNTIES), "county": COUNTIES}
DOMAINS = {
    "places and people": ks.Domain(PLACES | {"sex": ["f", "m"], "age": [0, 1, 2]}, within={"county": "state"}),
    "places": ks.Domain(PLACES, within={"county": "state"}),
    "three ways": ks.Domain({"a": list("abc"), "b": list("xyz"), "c": list("klmn")}),
    "one category": ks.Domain({"a": list("abc"), "one": ["1"]}),
}
MECHANISMS = {
    "laplace": ks.Laplace.per_unit(epsilon=0.5),
    "per person": ks.Laplace(epsilon=1),
    "gaussian": ks.Gaussian(sigma=3),
}


def margins(domain):
    return [[], *(list(axes) for size in (1, 2) for axes in combinations(domain.axes, size))]


def kept_by(domain):
    """Nothing, each margin, and each two of them."""
    return [[], *([margin] for margin in margins(domain)), *map(list, combinations(margins(domain), 2))]


def facts(domain, keep, mechanism, in_groups):
    """All that a certificate states of a plan, or the error."""
    kept, counts = ks.Invariants.margins(domain, keep), np.arange(domain.size) % 5
    try:
        plan = compile_plan(kept, mechanism, in_groups=in_groups)
        if plan.guarantee.sampling == "no sampler":
            return "no sampler"
        accuracy = accuracy_by_level(plan.blocks, 0.95)
        if in_groups:
            place = (
                domain.marginal_index(plan.quotient.axes) if plan.quotient.axes else np.zeros(domain.size, dtype=int)
            )
            counts = np.bincount(place, weights=counts).astype(np.int64)
        bounds = bounded_cells(plan.structure, counts, accuracy.margins)
        exposure = exposure_record(plan, plan.structure.number_of(bounds.cells), bounds.not_checked)
        return repr(plan), plan.mechanism, guarantee_record(plan), accuracy_record(accuracy), exposure
    except ks.KeepsumError as error:
        return str(error)


@mostly_audit("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", DOMAINS)
def test_groups_have_the_facts_of_their_cells(name, mechanism):
    domain = DOMAINS[name]
    for keep in kept_by(domain):
        both = [facts(domain, keep, MECHANISMS[mechanism], in_groups) for in_groups in (False, True)]
        assert both[0] == both[1], keep


@pytest.mark.audit
@pytest.mark.parametrize("per_person", [False, True])
@pytest.mark.parametrize("name", ["places and people", "places", "three ways"])
def test_the_same_with_a_focus_that_is_nested(name, per_person):
    domain, compared = DOMAINS[name], 0
    first, second = domain.axes[:2]
    for focus in ({first: 0.2}, {(first,): 0.2, (first, second): 0.1}, {second: 0.3}, {(): 0.1}):
        mechanism = ks.Laplace.per_unit(epsilon=0.5, focus=focus)
        if per_person:
            mechanism = ks.Laplace(epsilon=2, focus=dict.fromkeys(focus, 1), cell_share=2)
        for keep in [[], *([margin] for margin in margins(domain))]:
            alone, grouped = (facts(domain, keep, mechanism, in_groups) for in_groups in (False, True))
            if "Plan it cell by cell" not in grouped:
                assert alone == grouped, (focus, keep)
                compared += not isinstance(grouped, str)
    assert compared >= 4


@pytest.mark.parametrize("most", [1, 30])
def test_the_same_where_there_are_too_many_pairs_to_compare(monkeypatch, most):
    """Then a bound is stated on the smallest change; that of one person is as it was."""
    monkeypatch.setattr("keepsum.planning.focus_changes.MOST_WORK", most)
    domain, mechanism = DOMAINS["places and people"], ks.Laplace.per_unit(epsilon=0.5, focus={"county": 0.2})
    for keep in ([], [["state"]], [[]]):
        assert facts(domain, keep, mechanism, False) == facts(domain, keep, mechanism, True), keep


def test_the_comparison_can_fail(monkeypatch):
    """Groups taken for one cell too many have other facts."""
    monkeypatch.setattr(quotient, "_product", lambda factors, own=quotient._product: own(factors) + 1)
    domain = DOMAINS["places and people"]
    both = [facts(domain, [["state"]], MECHANISMS["laplace"], in_groups) for in_groups in (False, True)]
    assert both[0] != both[1]


def test_what_cannot_be_in_groups_is_refused(monkeypatch):
    domain = DOMAINS["three ways"]
    subsets = ks.Invariants.subsets(domain.size, [[0, 1]]).over(domain)
    with pytest.raises(ks.PlanError, match="must be margins"):
        Quotient.of(subsets)
    with pytest.raises(ks.PlanError, match="structural zeros"):
        Quotient.of(ks.Invariants.margins(domain.without({"a": "a", "b": "x"}), [["a"]]))
    with pytest.raises(ks.PlanError, match="names"):
        Quotient.of(ks.Invariants.subsets(3, [[0]]))
    with pytest.raises(ks.PlanError, match="nested with the kept ones"):
        compile_plan(
            ks.Invariants.margins(domain, [["a"]]), ks.Laplace.per_unit(epsilon=1, focus={"b": 1}), in_groups=True
        )
    monkeypatch.setattr(quotient, "MOST_GROUPS", 8)
    with pytest.raises(ks.PlanError, match="at most 8 groups, got 9"):
        Quotient.of(ks.Invariants.margins(domain, [["a", "b"]]))


def test_a_table_of_many_cells_is_planned_from_its_groups():
    """Ten billion cells in 3,000 groups: listing the cells would not fit in memory."""
    categories = {"place": list(range(3000)), "a": list(range(1850)), "b": list(range(1850))}
    with pytest.raises(ks.DomainError, match="at most 2,147,483,647 cells, got 10,267,500,000"):
        ks.Domain(categories)
    domain = ks.Domain.of(make_axes(categories, None), most=10**11)
    plan = compile_plan(ks.Invariants.margins(domain, [["place"]]), ks.Laplace.per_unit(epsilon=1), in_groups=True)
    assert plan.person_distance == 4
    assert plan.size == domain.size == 3000 * 1850**2
    assert accuracy_by_level(plan.blocks, 0.95).typical == 3
