"""Positions of cells, tasks, and the noise of tasks: nothing here needs Spark."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from laws import assert_drawn_from, assert_not_drawn_from, solved_law

import keepsum as ks
from keepsum.planning.plan import compile_plan
from keepsum.planning.quotient import Quotient
from keepsum.sampling.core.rng import rng
from keepsum.spark.layout import Layout
from keepsum.spark.preparing import check_distributable, draw_sums, is_free
from keepsum.spark.workers import Encoder, TaskNoise

COUNTIES = {"a": ["x", "y"], "b": ["x"], "c": ["u", "v", "w"]}
DOMAIN = ks.Domain(
    {"sex": ["f", "m"], "state": list(COUNTIES), "county": COUNTIES, "age": [0, 1, 2]}, within={"county": "state"}
)
KEPT = [[], [[]], [["age"]], [["state"]], [["county"], ["age"]], [["sex", "age"]], [["sex", "county", "age"]]]


@pytest.mark.parametrize("task_cells", [1, 4, 7, 10**6])
@pytest.mark.parametrize("keep", KEPT)
def test_positions_go_through_all_cells_group_by_group(keep, task_cells):
    quotient = Quotient.of(ks.Invariants.margins(DOMAIN, keep))
    layout = Layout.of(quotient, task_cells)
    cells = layout.cells(0, layout.size)
    assert sorted(cells.tolist()) == list(range(DOMAIN.size))
    assert layout.positions(cells).tolist() == list(range(DOMAIN.size))
    place = DOMAIN.marginal_index(quotient.axes) if quotient.axes else np.zeros(DOMAIN.size, dtype=int)
    assert layout.group(np.arange(DOMAIN.size)).tolist() == place[cells].tolist() == sorted(place.tolist())
    for first, last in pairwise(np.flatnonzero(np.diff(place[cells], prepend=-1, append=-1)).tolist()):
        assert (np.diff(cells[first:last]) > 0).all()  # in label order
    codes = layout.codes(layout.rows(0, layout.size))
    assert all((codes[axis] == DOMAIN.codes(axis)[cells]).all() for axis in DOMAIN.axes)


@pytest.mark.parametrize("task_cells", [1, 4, 7, 10**6])
@pytest.mark.parametrize("keep", KEPT)
def test_tasks_are_whole_groups_or_parts_of_one(keep, task_cells):
    layout = Layout.of(Quotient.of(ks.Invariants.margins(DOMAIN, keep)), task_cells)
    sizes = np.diff(layout.starts)
    assert sizes.min() >= 1
    assert sizes.max() <= task_cells
    assert layout.task(np.arange(layout.size)).tolist() == np.repeat(np.arange(layout.tasks), sizes).tolist()
    groups = np.diff(np.concatenate([[0], layout.ends]))
    for task in range(layout.tasks):
        pieces, of_pieces = layout.pieces_of(task)
        assert of_pieces.sum() == sizes[task]
        assert (np.diff(layout.pieces)[pieces] == of_pieces).all()
    whole = groups[layout.group(layout.pieces[:-1])] <= task_cells
    assert (np.diff(layout.pieces)[whole] == groups[groups <= task_cells]).all()


def noise_of(keep, mechanism, task_cells, seed=1):
    """The noise of all cells in the order of the domain, as workers draw it task by task."""
    plan = compile_plan(ks.Invariants.margins(DOMAIN, keep), mechanism, in_groups=True)
    layout, source = Layout.of(check_distributable(plan), task_cells), rng(seed=seed)
    how = TaskNoise(
        source.secret(), plan.mechanism.kind, plan.mechanism.scale, draw_sums(plan, layout, source), is_free(plan)
    )
    noise = np.empty(DOMAIN.size, dtype=np.int64)
    for task in reversed(range(layout.tasks)):
        noise[layout.cells(*layout.starts[task : task + 2].tolist())] = how.draw(layout, task)
    return noise


@pytest.mark.parametrize("task_cells", [5, 10**6])
@pytest.mark.parametrize(
    ("keep", "mechanism"),
    [
        *((keep, ks.Laplace.per_unit(epsilon=Fraction(1, 5))) for keep in KEPT[:-1]),
        ([["county"], ["age"]], ks.Gaussian(sigma=5)),
        ([["state"], []], ks.Laplace.per_unit(epsilon=0.2, focus={"county": 0.2})),
        ([], ks.Laplace.per_unit(epsilon=0.2, focus={"state": 0.2, "county": 0.1, (): 0.1})),
    ],
)
def test_noise_of_tasks_keeps_totals(keep, mechanism, task_cells):
    noise = noise_of(keep, mechanism, task_cells)
    assert not ks.Invariants.margins(DOMAIN, keep).totals(noise).any()
    assert np.count_nonzero(noise) > DOMAIN.size // 2
    assert (noise == noise_of(keep, mechanism, task_cells)).all()
    assert (noise != noise_of(keep, mechanism, task_cells, seed=2)).any()


def test_two_tasks_share_no_noise():
    """Groups of the same size in different tasks: the same noise twice would be seen by anybody who subtracts."""
    plan = compile_plan(ks.Invariants.margins(DOMAIN, [["county"]]), ks.Laplace.per_unit(epsilon=0.01), in_groups=True)
    layout = Layout.of(check_distributable(plan), 6)
    how = TaskNoise(bytes(32), "laplace-l1", plan.mechanism.scale)
    drawn = [tuple(how.draw(layout, task).tolist()) for task in range(layout.tasks)]
    assert len(drawn) == 6
    assert len(set(drawn)) == 6


def test_the_secret_is_not_shown():
    assert "00" not in repr(TaskNoise(bytes(32), "laplace-l1", Fraction(1)))


@pytest.mark.parametrize(
    ("keep", "mechanism", "match"),
    [
        ([["state"]], ks.Laplace.per_unit(epsilon=1, norm="l2"), "l1 Laplace or Gaussian"),
        ([["state"], ["age"]], ks.Laplace.per_unit(epsilon=1), "at most 10 cells in Spark"),
        ([[]], ks.Gaussian(sigma=1), "at most 30 cells of its own"),
    ],
)
def test_what_cannot_be_distributed_says_so(monkeypatch, keep, mechanism, match):
    monkeypatch.setattr("keepsum.spark.preparing.BLOCK_CELLS", 10)
    monkeypatch.setattr("keepsum.spark.preparing.TASK_CELLS", 30)
    plan = compile_plan(ks.Invariants.margins(DOMAIN, keep), mechanism, in_groups=True)
    with pytest.raises(ks.PlanError, match=match):
        check_distributable(plan)


def test_labels_are_found_as_a_table_finds_them():
    import pyarrow as pa

    columns = {
        "sex": ["m", "f", None, "m", "m"],
        "state": ["c", "b", "a", "", "b"],
        "county": ["w", "x", "x", "x", "y"],
        "age": [2, 0, 1, 1, 1],
    }
    cells, good, problems = Encoder(DOMAIN).cells(pa.RecordBatch.from_pydict(columns))
    assert good.tolist() == [True, True, False, False, False]
    labels = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert cells[:2].tolist() == [DOMAIN.index(labels[0]), DOMAIN.index(labels[1])]
    assert len(problems) == 3  # a missing sex, a missing state, and a county that is not of its state


# -- what the driver draws ---------------------------------------------------------------------------

TABLES = 4_000  # small tables side by side: as many draws


def drawn_by_the_driver(margins, seed):
    """The sums of all groups, which are cells here, a row for each of many tables of 2 x 2 x 2."""
    domain = ks.Domain({"g": range(TABLES), "a": [0, 1], "b": [0, 1], "c": [0, 1]})
    kept = ks.Invariants.margins(domain, [["g", *margin] for margin in margins])
    plan = compile_plan(kept, ks.Laplace.per_unit(epsilon=1), in_groups=True)
    layout = Layout.of(check_distributable(plan))
    sums = draw_sums(plan, layout, rng(seed=seed))
    return {choice.method for choice in plan.samplers}, sums[np.argsort(layout.cells(0, layout.size))].reshape(
        TABLES, 8
    )


def test_a_total_kept_for_each_axis_is_drawn_exactly_on_the_driver():
    """One-way margins of three axes, by axis elimination, against the enumerated distribution; a chain is another."""
    by_axis = np.array([[1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1], [1, 1, 0, 0] * 2, [1, 0] * 4])
    law = solved_law(by_axis, [3, 5, 6, 7], 1.0, 12, 9)
    methods, noise = drawn_by_the_driver(["a", "b", "c"], seed=3)
    assert methods == {"axis_elimination"}
    assert not (noise @ by_axis.T).any()
    assert_drawn_from(noise, law)
    assert_not_drawn_from(drawn_by_the_driver(["ab", "bc"], seed=3)[1], law)


@pytest.mark.parametrize("shape", [(20, 8, 2), (10, 5, 4, 3), (8, 5, 3, 2, 2)])
def test_tables_of_up_to_five_axes_keep_every_total(shape):
    """Groups are single cells here, and regions where an axis is in no total."""
    names = "abcde"[: len(shape)]
    domain = ks.Domain({name: range(n) for name, n in zip(names, shape, strict=True)})
    for axes in (names, names[:-1]):
        kept = ks.Invariants.margins(domain, [[name] for name in axes])
        plan = compile_plan(kept, ks.Laplace(epsilon=1), in_groups=True)
        assert plan.guarantee.sampling == "exact"
        layout = Layout.of(check_distributable(plan))
        sums = draw_sums(plan, layout, rng(seed=1))
        assert np.abs(sums).sum() > 0
        assert not plan.quotient.totals.totals(sums).any()
