"""What the figures of two-way tables rest on: the computed acceptance rate, by enumeration, and the tree."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from experiments import acceptance
from experiments.table_acceptance import Rates, accepted
from experiments.table_speed import Speeds
from experiments.tree import Tree, draw_tree, places, sums_of
from keepsum.sampling.l1.splitting.bundles import bundled
from keepsum.sampling.l1.splitting.slices import two_way


def enumerated_weight(epsilon: float, rows: int, columns: int, reach: int) -> float:
    """The sum of exp(-eps |z|) over tables with zero margins whose free cells go up to the reach."""
    z = np.arange(-reach, reach + 1)
    free = np.array(list(itertools.product(z, repeat=(rows - 1) * (columns - 1)))).reshape(-1, rows - 1, columns - 1)
    wide = np.concatenate([free, -free.sum(axis=2, keepdims=True)], axis=2)
    whole = np.concatenate([wide, -wide.sum(axis=1, keepdims=True)], axis=1)
    return float(np.exp(-epsilon * np.abs(whole).sum(axis=(1, 2))).sum())


@pytest.mark.parametrize(("rows", "columns", "epsilon"), [(3, 3, "1.5"), (3, 3, "2"), (2, 4, "1.5"), (3, 3, "4")])
def test_the_weight_of_all_tables_by_enumeration(rows, columns, epsilon):
    weight = enumerated_weight(float(epsilon), rows, columns, 9)
    assert acceptance.summed_log_tables(epsilon, rows, columns) == pytest.approx(math.log(weight), abs=1e-6)


@pytest.mark.parametrize(("rows", "columns", "epsilon", "within"), [(100, 3, "1", 2e-4), (100, 4, "1", 2e-4)])
def test_the_approximation_by_the_sum(rows, columns, epsilon, within):
    summed = acceptance.summed_log_tables(epsilon, rows, columns)
    approximate = acceptance.approximate_log_tables(epsilon, rows, columns)
    assert approximate == pytest.approx(summed, abs=within)
    without = approximate - acceptance.kurtosis_term(epsilon, rows, columns)
    assert abs(without - summed) > 5 * within


@pytest.mark.parametrize(("rows", "columns", "epsilon"), [(5, 3, "1"), (8, 4, "1"), (16, 16, "1"), (20, 20, "0.5")])
def test_computed_and_measured_rates_agree(rows, columns, epsilon):
    """Within four standard errors, and 3% where the rate is approximate."""
    assert acceptance.is_computed(epsilon, rows, columns)
    rate = acceptance.acceptance(epsilon, rows, columns)
    measured = accepted(rows, columns, epsilon, 3 * 10**5)
    tables, proposals = measured["accepted"], measured["proposals"]
    slack = 0.0 if acceptance.summable(epsilon, rows, columns) else 0.03 * rate
    assert abs(tables / proposals - rate) < 4 * math.sqrt(rate * (1 - rate) / proposals) + slack


def test_where_the_approximation_is_not_good():
    assert not acceptance.is_computed("3", 16, 16)
    assert acceptance.is_computed("3", 16, 4)


def test_rates_as_text():
    assert Rates(0.5, 40, 100).texts == ["0.5", "0.4"]
    assert Rates(math.nan, 0, 100).texts == ["-", "< 0.03"]
    low, high = Rates(0.5, 40, 100).limits
    assert 0.3 < low < 0.4 < high < 0.51
    assert Rates(0.5, 5, 5).limits[1] == 1


@pytest.mark.parametrize("columns", [2, 3, 5, 8])
def test_sums_add_up_at_every_node(columns):
    free = np.random.default_rng(columns).integers(-9, 10, size=(3, columns - 1))
    table = np.block([[free, -free.sum(axis=1, keepdims=True)], [-free.sum(axis=0), free.sum()]])
    tree, sums = Tree(columns), sums_of(table)
    assert not sums.sum(axis=1).any()
    assert not sums[0].any()
    assert (sums[tree.inner :] == table.T).all()
    for node in range(tree.inner):
        left, right = tree.children(node)
        assert (sums[node] == sums[left] + sums[right]).all()
    assert len(np.unique(places(tree), axis=0)) == 2 * columns - 1


@pytest.mark.parametrize("columns", [2, 3, 5, 8])
def test_the_tree_is_that_of_the_sampler(columns):
    """The bundle of a node has its sums: the same table, where the sampler has them."""
    table, tree = np.random.default_rng(columns).integers(-9, 10, size=(4, columns)), Tree(columns)
    sums, bundles = sums_of(table), bundled(two_way(np.ones((4, columns), dtype=np.int64)))
    known = {int(place): value for place, value in zip(bundles.entry_at, table.reshape(-1), strict=True)}
    for node in reversed(range(tree.inner)):
        here = slice(4 * node, 4 * node + 4)
        children = tree.children(node)
        for places_, child in zip((bundles.left, bundles.right), children, strict=True):
            assert [known[place] for place in places_[here].tolist()] == sums[child].tolist()
        known |= dict(zip(bundles.at[here].tolist(), sums[node].tolist(), strict=True))
    assert bundles.count == tree.inner


def test_the_tree_shows_every_number():
    shown = [text.get_text() for text in draw_tree().axes[0].texts]
    assert shown.count("sum 0") == 9
    assert {"all columns", "columns 2 to 5", "columns 3 to 5", "columns 4 to 5", "column 5"} <= set(shown)


def test_speeds_are_those_of_the_results_file():
    names = {"": 3204.0, "/general": 4.31, "/algorithm_1": 6.2}
    figures = {f"two-way/6x6/0.25{which}/draws_per_second": {"value": rate} for which, rate in names.items()}
    figures |= {f"two-way/6x6/0.25/algorithm_1/{what}": {"value": of} for what, of in (("steps", 2_000), ("met", "no"))}
    assert Speeds.of((6, 6), figures).row == ["3,200", "4.3", "< 6.2", "> 2,000"]
    figures["two-way/6x6/0.25/algorithm_1/met"]["value"] = "yes"
    assert Speeds.of((6, 6), figures).row == ["3,200", "4.3", "6.2", "2,000"]
    assert Speeds.of((1000, 4), {"two-way/1000x4/0.25/draws_per_second": {"value": 512.0}}).row == [
        "510",
        "-",
        "-",
        "-",
    ]
