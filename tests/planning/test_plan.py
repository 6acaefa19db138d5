from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import keepsum as ks
from keepsum.planning.describe import describe_form
from keepsum.planning.groups import BlockForm
from keepsum.privacy.distance import Distance

L1, L2 = ks.Laplace.per_unit(epsilon=0.25), ks.Laplace.per_unit(epsilon=0.25, norm="l2")


def cube(n=3):
    domain = ks.Domain({axis: [f"{axis}{i}" for i in range(n)] for axis in "abc"})
    return ks.Invariants.margins(domain, [["a", "b"], ["a", "c"], ["b", "c"]])


def test_children(children):
    plan = ks.plan(children, keep=["county", "education", []], mechanism=L1)
    (group,) = plan._record.groups
    assert (group.cells, group.dimension, group.codimension) == (16, 9, 7)
    assert describe_form(group.form) == "4 × 4 table with both margins kept"
    assert plan.person_distance == 4
    assert plan.pinned.tolist() == []


def test_circles(circles):
    plan = ks.plan(keep=circles, mechanism=L1)
    (group,) = plan._record.groups
    assert (group.cells, group.dimension, group.codimension) == (14, 11, 3)
    assert plan.structure.sizes.tolist() == [2] * 7
    assert (plan.smallest_change.value, plan.person) == (2, None)  # cells without names are no attributes of people


@pytest.mark.parametrize(
    ("keep", "l1", "l2"),
    [
        (ks.Invariants.subsets(3, []), 1, 1),
        (ks.Invariants.subsets(3, [[0, 1, 2]]), 2, math.sqrt(2)),
        (ks.Invariants.subsets(4, [[0, 1]]), 2, math.sqrt(2)),
        (cube(), 8, math.sqrt(8)),
        (ks.Invariants.matrix([[2, 3, 5]]), 3, math.sqrt(3)),
        (ks.Invariants.matrix([[1, 2]]), 3, math.sqrt(5)),
        (ks.Invariants.subsets(5, [[0, 1, 2], [2, 3, 4]]), 3, math.sqrt(3)),
    ],
)
def test_smallest_change(keep, l1, l2):
    assert ks.plan(keep=keep, mechanism=L1).smallest_change.value == l1
    assert ks.plan(keep=keep, mechanism=L2).smallest_change.value == l2
    assert ks.plan(keep=keep, mechanism=ks.Gaussian.per_unit(rho=1)).smallest_change.value == l2


@pytest.mark.parametrize("mechanism", [L1, L2, ks.Gaussian.per_unit(rho=1)])
def test_no_person_is_spoken_of_where_cells_have_no_names(mechanism):
    """Distance 1 is what the loss is stated at."""
    plan = ks.plan(keep=ks.Invariants.subsets(4, [[0, 1]]), mechanism=mechanism)
    assert (plan.person, plan.person_distance, plan.attributes) == (None, None, ())
    assert plan._record.stated_loss == plan.mechanism.loss(Distance(mechanism.norm, 1))
    guarantee = plan.guarantee
    assert (guarantee.person_epsilon, guarantee.person_delta, guarantee.person_rho) == (None, None, None)
    assert guarantee.stated_loss == plan._record.mechanism.unit_loss
    assert "no per-person loss is stated: cells have no names" in " ".join(plan.explain(details=True).split())


def shortest_through(A, reach, norm):
    """The length (l2: squared) of the shortest vector through each cell, of all with entries up to ``reach``."""
    cells = A.shape[1]
    z = np.indices((2 * reach + 1,) * cells, dtype=np.int8).reshape(cells, -1).T - np.int8(reach)
    z = z[~(z @ A.T.astype(np.int16)).any(axis=1)].astype(int)
    lengths = np.abs(z).sum(axis=1) if norm == "l1" else (z**2).sum(axis=1)
    return {j: int(lengths[z[:, j] != 0].min()) for j in range(cells) if z[:, j].any()}


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("seed", range(30))
def test_smallest_change_against_brute_force(norm, seed):
    """The shortest vector through the cell where that is longest, on small random systems."""
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, size=(rng.integers(1, 4), 6))
    shortest = shortest_through(A, 3, norm)
    plan = ks.plan(keep=ks.Invariants.matrix(A), mechanism=ks.Laplace.per_unit(epsilon=1, norm=norm))
    assert set(plan.pinned.tolist()) == set(range(6)) - set(shortest)
    assert plan.smallest_change.exact
    assert plan.smallest_change.length == max(shortest.values())


@pytest.mark.parametrize("seed", range(12))
def test_the_smallest_l2_change_spreads_over_regions(seed):
    """With repeated columns a sum of 2 over two cells is two entries of 1, not one of 2."""
    rng = np.random.default_rng(100 + seed)
    A = rng.integers(0, 3, size=(2, 3))[:, [0, 0, 1, 2, 2]]
    shortest = shortest_through(A, 4, "l2")
    plan = ks.plan(keep=ks.Invariants.matrix(A), mechanism=L2)
    if plan.smallest_change.exact and max(shortest.values()) <= 25:
        assert plan.smallest_change.length == max(shortest.values())


def test_the_order_and_scale_of_totals_do_not_matter():
    """A cube's two-way margins, shuffled, negated and doubled, are the same totals."""
    A = cube(4).coefficients.toarray()
    rng = np.random.default_rng(3)
    for B in (rng.permutation(A), rng.permutation(A)[:, rng.permutation(64)], -A, 2 * A):
        plan = ks.plan(keep=ks.Invariants.matrix(B), mechanism=L1)
        assert describe_form(plan._record.groups[0].form) == "4 × 4 × 4 table with all 2-way margins kept"
        assert plan.smallest_change.value == 8


@pytest.mark.parametrize("n", [4, *(pytest.param(n, marks=pytest.mark.audit) for n in (8, 12))])
def test_large_blocks_without_a_grid_have_short_changes(n):
    """One-way margins of a cube, and a table without its diagonal: four cells suffice, and fewer never do."""
    domain = ks.Domain({axis: list(range(n)) for axis in "abc"})
    ways = ks.plan(domain, keep=[["a"], ["b"], ["c"]], mechanism=L1)
    square = ks.Domain({axis: list(range(2 * n)) for axis in "ab"})
    hollow = square.without(*({"a": i, "b": i} for i in range(2 * n)))
    holes = ks.plan(hollow, keep=[["a"], ["b"]], mechanism=L1)
    assert (ways.person_distance, ways.person.exact) == (4, True)
    assert (str(holes.smallest_change), holes.smallest_change.exact) == ("4", True)
    # Cycles of six entries may be needed, where a hole is in the way; no longer ones, with one hole in each line.
    assert {str(attribute.any_value) for attribute in holes.attributes} == {"at most 6"}
    assert {str(attribute.other_value) for attribute in holes.attributes} == {"at most 6"}


def test_tables_with_zeros_and_with_entries_of_several_cells_are_tables():
    domain = ks.Domain({"county": list(range(5)), "sex": ["f", "m"], "age": list(range(4)), "education": [1, 2, 3]})
    keep = [["county", "sex"], ["age"]]
    form = ks.plan(domain, keep=keep, mechanism=L2)._record.groups[0].form
    assert form == BlockForm("table", 40, 14, 3, 3, (10, 4))
    without = domain.without({"county": 0, "age": 0}, {"county": 3, "sex": "f", "age": 2, "education": 1})
    (group,) = ks.plan(without, keep=keep, mechanism=L2)._record.groups
    assert group.form == BlockForm("table", 38, 14, 2, 3, (10, 4))
    assert (group.form.zeros, group.codimension, group.distance.length) == (2, 13, 2)


@pytest.mark.parametrize("shape", [(60, 5), (5, 60), (2, 5, 4), (5, 4, 2), (4, 2, 5)])
def test_a_table_has_the_shape_that_was_declared(shape):
    """However its margins are ordered."""
    domain = ks.Domain({f"axis {k}": list(range(length)) for k, length in enumerate(shape)})
    margins = [[axis for axis in domain.axes if axis != left_out] for left_out in domain.axes]
    for keep in (margins, margins[::-1], margins[1:] + margins[:1]):
        (group,) = ks.plan(domain, keep=keep, mechanism=L2)._record.groups
        assert group.form.shape == shape


def test_a_redundant_total_leaves_equal_tables_in_one_group():
    domain = ks.Domain({"county": list(range(5)), "sex": ["f", "m"], "age": list(range(4))})
    keep = [["county", "sex"], ["age", "sex"], []]
    (group,) = ks.plan(domain, keep=keep, mechanism=L2)._record.groups
    assert (group.blocks, group.form) == (2, BlockForm("table", 20, 9, shape=(5, 4)))


def test_per_person_is_resolved_by_the_largest_distance():
    """Two cells with a kept sum need 2 and those of a table 4; to change from one to the other both: 6 in all."""
    A = np.zeros((4, 6), dtype=int)
    A[0, :2] = A[1, 2:4] = A[2, [0, 2]] = A[3, [1, 3]] = 1
    keep, request = ks.Invariants.matrix(A), ks.Laplace(epsilon=1)
    plan = ks.plan(keep=keep.over(ks.Domain({"a": list(range(6))})), mechanism=request)
    assert (plan.person_distance, plan.person.rule) == (6, "table")
    assert plan.mechanism == ks.Laplace.per_unit(epsilon="1/6").resolve()
    with pytest.raises(ks.PlanError, match=r"^A loss for one person needs named attributes"):
        ks.plan(keep=keep, mechanism=request)


def test_pinned_cells_are_found_and_named(children):
    keep = children.keep("county") + ks.Invariants.subsets(16, [[1], [8, 9, 10]])
    plan = ks.plan(keep=keep, mechanism=L1)
    assert plan.pinned.tolist() == [1, 11]
    assert "county=Alpha, education=Medium" in plan.explain(details=True)
    assert "county=Gamma, education=Very High" in plan.explain(details=True)


def test_every_cell_pinned_is_an_error(children):
    with pytest.raises(ks.PlanError, match="determine every cell"):
        ks.plan(children, keep=[["county", "education"]], mechanism=L1)


def test_samplers_that_are_not_there_are_refused_in_one_sentence(children):
    plan = ks.plan(children, keep=["county", "education"], mechanism=ks.Laplace.per_unit(epsilon="1e-6"))
    with pytest.raises(ks.NoSamplerError, match=r"^Epsilon per unit of distance must be from 0\.0001 to 50"):
        plan.sample(10)
    assert plan.guarantee.sampling == "no sampler"
    guarantee = ks.plan(children, keep=["county", "education"], mechanism=L2).guarantee
    assert str(guarantee) == "per-person epsilon 0.5; epsilon 0.25 per unit of l2 distance; exact"


def test_wrong_arguments(children):
    with pytest.raises(ks.InputError, match="must be Invariants, a Lattice or a matrix of whole numbers, got names"):
        ks.plan(keep=[["county"]], mechanism=L1)
    with pytest.raises(ks.InputError, match="Laplace or Gaussian, got a value of type 'float'"):
        ks.plan(children, keep=["county"], mechanism=0.25)


def test_alike_blocks_are_grouped():
    domain = ks.Domain({"state": list(range(50)), "age": list(range(4)), "sex": ["f", "m"]})
    plan = ks.plan(domain, keep=[["state", "age"], ["state", "sex"]], mechanism=L1)
    (group,) = plan._record.groups
    assert (group.blocks, group.cells, group.dimension, group.codimension) == (50, 400, 150, 250)


@pytest.mark.audit
def test_a_million_cells_under_three_totals_are_eight_regions():
    rng = np.random.default_rng(1)
    chosen = [np.flatnonzero(rng.random(10**6) < 0.5) for _ in range(3)]
    plan = ks.plan(keep=ks.Invariants.subsets(10**6, chosen), mechanism=L1)
    assert len(plan.structure.sizes) == 8
    assert plan.smallest_change.value == 2


def test_unlike_blocks_are_told_apart():
    """Three states: one with a table, one county alone, one without any kept total inside."""
    domain = ks.Domain({"state": ["a", "b"], "county": {"a": [1, 2], "b": [3]}, "sex": ["f", "m"]}, {"county": "state"})
    plan = ks.plan(domain, keep=[["county"], ["state", "sex"]], mechanism=L1)
    assert [describe_form(group.form) for group in plan._record.groups] == ["2 × 2 table with both margins kept"]
    assert plan.pinned.tolist() == [4, 5]


def test_plan_is_immutable_and_shared_between_threads(circles):
    plan = ks.plan(keep=circles, mechanism=L1)
    with pytest.raises(AttributeError):
        plan.mechanism = L2
    for array in (plan.pinned, plan.structure.region, plan.structure.sizes, plan.structure.part):
        assert not array.flags.writeable
    with ThreadPoolExecutor(8) as pool:
        texts = set(pool.map(lambda _: plan.explain(details=True), range(64)))
    assert len(texts) == 1


def test_plan_survives_pickling(circles):
    plan = ks.plan(keep=circles, mechanism=L1)
    assert pickle.loads(pickle.dumps(plan)).explain(details=True) == plan.explain(details=True)  # noqa: S301


def test_no_sampler_says_why():
    keep = ks.Invariants.subsets(4, [[0, 1, 2, 3]])
    plan = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=100))
    with pytest.raises(ks.NoSamplerError) as error:
        plan._record.check_samplers()
    assert str(error.value).startswith(
        "Epsilon per unit of distance must be from 0.0001 to 50 for l1 Laplace noise, got 100."
    )
    assert "no sampler: l1 Laplace noise needs an epsilon from 0.0001 to 50" in plan.explain(details=True)


def test_nothing_is_recommended_at_a_loss_that_protects_little():
    keep = ks.Invariants.subsets(4, [[0, 1, 2, 3]])
    assert "Exact at the same per-person epsilon" not in ks.plan(
        keep=keep, mechanism=ks.Laplace.per_unit(epsilon=1000)
    ).explain(details=True)
