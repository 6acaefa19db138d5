"""Which focused totals form trees with kept ones, and what is said of those that do not."""

import re

import numpy as np
import pytest

import keepsum as ks
from keepsum.planning.crossing import KEPT as KEPT_TOTAL
from keepsum.planning.focus import KEPT
from keepsum.planning.selection import l1_focus

PLACES = ks.Domain(
    {"state": ["A", "B"], "county": {"A": ["a1", "a2"], "B": ["b1"]}, "sex": ["f", "m"]}, within={"county": "state"}
)
TABLE = ks.Domain({"a": [0, 1, 2], "b": [0, 1, 2], "c": [0, 1]})


def plan_of(domain, keep, focus, epsilon="1/2"):
    return ks.plan(domain, keep=keep, mechanism=ks.Laplace.per_unit(epsilon, focus=focus))


def test_trees_of_kept_and_focused_totals():
    nested = plan_of(PLACES, [["state"]], {"county": 1})._record.blocks.nested
    assert nested.levels.tolist() == [KEPT, 0, 0]  # the county of B is its state, which is kept
    assert nested.parents.tolist() == [-1, 0, 0]
    assert nested.home.tolist() == [1, 1, 2, 2, -1, -1]
    nested = plan_of(PLACES, [], {"county": 1, (): 2})._record.blocks.nested
    assert nested.levels.tolist() == [1, 0, 0, 0]
    assert nested.parents.tolist() == [-1, 0, 0, 0]


def test_totals_around_kept_ones_count_what_is_left_of_them():
    """The total of a state with one county kept has the noise of its other counties."""
    kept = ks.Invariants.subsets(6, [[0, 1]], ["a1"]).over(PLACES)
    plan = ks.plan(keep=kept, mechanism=ks.Laplace.per_unit("1/2", focus={"state": 1}))
    assert plan._record.blocks.nested.home.tolist() == [-1, -1, 0, 0, 1, 1]
    assert plan.noise.variance({"state": "A"}) == pytest.approx(plan.noise.variance({"county": "a2"}))
    noise = plan.sample(500, ks.rng(seed=1))
    assert not noise[:, :2].sum(axis=1).any()


def test_a_focus_on_cells_apart_from_overlapping_totals():
    """Two of three categories are a table under both margins, which contain what a focus on the third cuts off."""
    cells = TABLE.codes("c")
    rows = [np.flatnonzero((TABLE.codes(axis) == k) & (cells == 0)) for axis in "ab" for k in range(3)]
    kept = ks.Invariants.subsets(18, rows).over(TABLE)
    plan = ks.plan(keep=kept, mechanism=ks.Laplace.per_unit("1/2", focus={"c": 1}))
    assert [group.form.kind for group in plan._record.groups] == ["table", "nested"]
    assert not plan.person.exact
    noise = plan.sample(200, ks.rng(seed=2))
    assert not (plan.invariants.coefficients @ noise.T).any()
    across = ks.plan(keep=kept, mechanism=ks.Laplace.per_unit("1/2", focus={("a", "b"): 1}))  # not a tree, nor a table
    assert across._record.blocks.nested is None
    assert [group.form.kind for group in across._record.groups] == ["focused"]
    assert across.person.focused == (across.person.length,)


def of_table(table):
    return table.entries.tolist(), table.rows, table.columns, table.whole


def test_totals_that_cross_form_tables():
    """Rows and columns that are kept, focused, or both; cells of a third axis in one entry."""
    nested = plan_of(TABLE, [], {"a": 1, "b": 1})._record.blocks.nested
    (table,) = nested.tables
    assert of_table(table) == ([[2] * 3] * 3, ((0,),) * 3, ((1,),) * 3, ())
    assert (nested.home == -1).all()
    assert nested.crossed.all()
    (table,) = plan_of(TABLE, [["a"]], {"b": 1})._record.blocks.nested.tables
    assert of_table(table) == ([[2] * 3] * 3, (KEPT_TOTAL,) * 3, ((0,),) * 3, ())
    (table,) = plan_of(TABLE, [[]], {"a": 1, "b": 1})._record.blocks.nested.tables
    assert table.whole is KEPT_TOTAL
    (table,) = plan_of(TABLE, [], {"a": 1, "b": 1, (): 2})._record.blocks.nested.tables
    assert table.whole == (2,)
    assert table.cells.tolist() == list(range(18))
    assert table.row.tolist() == np.repeat([0, 1, 2], 6).tolist()


def test_tables_beside_trees_and_kept_sums():
    """In a state of two counties they cross; one of a single county has only those of sexes."""
    plan = plan_of(PLACES, [["state"]], {"county": 1, ("state", "sex"): 1})
    assert [group.form.kind for group in plan._record.groups] == ["nested", "crossed"]
    nested = plan._record.blocks.nested
    assert nested.home.tolist() == [-1] * 4 + [1, 2]
    assert nested.crossed.tolist() == [True] * 4 + [False] * 2
    noise = plan.sample(300, ks.rng(seed=3))
    assert not (plan.invariants.coefficients @ noise.T).any()
    assert noise.any(axis=0).all()
    assert plan.accuracy().margins.min() > 0


def test_alike_tables_are_one_group():
    domain = ks.Domain({"place": [0, 1, 2], "a": [0, 1, 2], "b": [0, 1]})
    plan = plan_of(domain, [["place"]], {("place", "a"): 1, ("place", "b"): 1})
    (group,) = plan._record.groups
    assert (group.form.kind, group.form.shape, group.blocks, group.cells, group.codimension) == (
        "crossed", (3, 2), 3, 18, 3,
    )  # fmt: skip
    assert not plan.noise.variance({"place": 1})
    assert plan.noise.variance({"place": 1, "b": 0}) == pytest.approx(plan.noise.variance({"place": 1, "b": 1}))


def test_structural_zeros_are_entries_without_cells():
    domain = ks.Domain({"a": [0, 1, 2], "b": [0, 1, 2]}).without({"a": 0, "b": 0})
    (table,) = plan_of(domain, [], {"a": 1, "b": 1})._record.blocks.nested.tables
    assert table.entries.tolist() == [[0, 1, 1], [1, 1, 1], [1, 1, 1]]


ACROSS = [
    # A person more changes a total of each margin; 2 of the cells cost as much as 1 and all three.
    (TABLE, [], {"a": 1, "b": 1, "c": 1}, (1, (1, 1, 1))),
    # A change of b moves one person between totals of b, and of nothing else.
    (TABLE, [["a"]], {"b": 1, "c": 1}, (2, (2, 0))),
    # Two people exchange states; the other comes from another county than this person goes to.
    (PLACES, [["state"]], {"county": 1, "sex": 1}, (4, (2, 0))),
    # Three people may change under two margins, and all may leave one total for another.
    (TABLE, [["a", "b"], ["a", "c"]], {("b", "c"): 1}, (6, (6,))),
]


@pytest.mark.parametrize(("domain", "keep", "focus", "person"), ACROSS)
def test_totals_that_cross_in_other_ways_are_blocks_of_a_longer_lattice(domain, keep, focus, person):
    plan = plan_of(domain, keep, focus)
    assert plan._record.blocks.nested is None
    assert {group.form.kind for group in plan._record.groups} <= {"focused", "sums", "table", "regions"}
    assert any(group.form.kind == "focused" for group in plan._record.groups)
    assert (plan.person.length, plan.person.focused) == person
    noise = plan._record.blocks.sample(20, ks.rng(seed=3))
    assert not (plan.invariants.coefficients @ noise.T).any()
    assert noise.any()


REFUSED = [
    (PLACES, [["county"]], {"state": 1}, "the kept ones determine all totals of state"),
    (PLACES, [["county"]], {"county": 1}, "the kept ones determine all totals of county"),
    (PLACES, [[]], {(): 1}, "the kept ones determine the grand total"),
    (PLACES, [], {"county": 1, ("state", "county"): 2}, "totals of state × county and totals of county are the same"),
    (PLACES, [], {"town": 1}, "must be one of 'state', 'county', 'sex', got 'town'"),
]


@pytest.mark.parametrize(("domain", "keep", "focus", "words"), REFUSED)
def test_what_is_not_supported_is_refused_in_a_sentence(domain, keep, focus, words):
    with pytest.raises(ks.KeepsumError, match=re.escape(words)) as caught:
        plan_of(domain, keep, focus)
    assert "\n" not in str(caught.value)


def test_cells_without_names_have_no_focus():
    with pytest.raises(ks.PlanError, match="these cells have no names"):
        ks.plan(keep=ks.Invariants.subsets(4, [[0, 1]]), mechanism=ks.Laplace.per_unit(1, focus={"a": 1}))


def test_chains_of_the_paper_have_no_focus():
    with pytest.raises(ks.InputError, match="there is none here"):
        ks.mcmc.metropolis(ks.Lattice([[1, 1, 1]]), ks.Laplace.per_unit(1, focus={"a": 1}), steps=10, a=0.5)


def test_epsilons_without_a_sampler_are_refused_in_a_sentence(monkeypatch):
    plan = plan_of(PLACES, [], {"county": "1e-6"})
    with pytest.raises(ks.NoSamplerError, match=r"Epsilons of cells and of a focus must be from 0\.0001 to 50"):
        plan.sample(1)
    monkeypatch.setattr(l1_focus, "MOST_ENTRIES", 10)
    plan = plan_of(PLACES, [], {"county": "1/10"})
    with pytest.raises(ks.NoSamplerError, match="the focused totals are too wide for an exact sampler") as caught:
        plan.sample(1)
    assert "Gaussian" not in str(caught.value)
    with pytest.raises(ks.NoSamplerError, match="need a sampler for every block"):
        plan.accuracy()


@pytest.mark.parametrize("noise", [ks.Laplace.per_unit, ks.Gaussian.per_unit])
def test_a_focus_names_each_axis_once(noise):
    with pytest.raises(ks.InputError, match=r"must name each axis once, got \('state', 'state'\)"):
        noise(**{"epsilon" if noise == ks.Laplace.per_unit else "rho": 1}, focus={("state", "state"): 1})
