"""Nested totals as kinds of sums, and how large their tables become."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.focus.laws import entries_of, float_laws
from keepsum.sampling.l1.focus.sampler import NestedFocus
from keepsum.sampling.l1.focus.tree import ABSENT, NestedTotals, SumKinds

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def hierarchy(states, cells, weights, epsilon):
    """So many counties in each state, all with as many cells."""
    parents, sizes, focus = [ABSENT], [0], [weights[0]]
    for counties in states:
        state = len(parents)
        parents += [0] + [state] * counties
        sizes += [0] + [cells] * counties
        focus += [weights[1]] + [weights[2]] * counties
    return NestedTotals(parents, sizes, focus, epsilon)


def test_alike_totals_share_their_kinds():
    few = SumKinds(hierarchy([4, 4], 5, (None, HALF, THIRD), HALF))
    many = SumKinds(hierarchy([64] * 32, 5, (None, HALF, THIRD), HALF))
    assert len(many.all) <= len(few.all) + 9
    assert len({few.of_total[node] for node, parent in enumerate(few.of_total) if parent > 0}) <= 3


def test_each_cell_is_drawn_once_and_parts_come_before_sums():
    kinds = SumKinds(
        NestedTotals([-1, 0, 0, 1, 1, -1], [2, 0, 3, 1, 4, 2], [HALF, None, THIRD, HALF, HALF, None], HALF)
    )
    assert sorted(np.concatenate([root.order for root in kinds.roots]).tolist()) == list(range(12))
    assert [len(root.order) for root in kinds.roots] == [5, 5, 2]
    for number, kind in enumerate(kinds.all):
        assert max(kind.left, kind.right) < number
        parts = [kinds.all[part].cells for part in (kind.left, kind.right) if part != ABSENT]
        assert kind.cells == (sum(parts) or 1)


def test_a_weight_of_one_cell_adds_to_its_rate():
    kinds = SumKinds(NestedTotals([-1, 0], [0, 1], [HALF, THIRD], HALF))
    assert kinds.all[kinds.of_total[0]].weight == HALF + THIRD + HALF
    assert kinds.all[kinds.of_total[0]].left == ABSENT


@pytest.mark.parametrize(
    "wrong",
    [
        ([0], [1], [HALF], HALF),
        ([-1, 2, 0], [1, 1, 1], [HALF] * 3, HALF),
        ([-1], [0], [HALF], HALF),
        ([-1, 0], [2, -1], [HALF] * 2, HALF),
        ([-1], [1], [HALF] * 2, HALF),
        ([-1], [1], [-HALF], HALF),
        ([-1], [1], [HALF], Fraction(0)),
    ],
)
def test_no_forest(wrong):
    with pytest.raises(AssertionError):
        NestedTotals(*wrong)


def test_totals_may_be_nested_deeply():
    """3,000 levels, a cell in each: no recursion follows them."""
    depth = 3_000
    weights = [HALF if node % 10 else None for node in range(depth)]
    sampler = NestedFocus(NestedTotals(range(-1, depth - 1), [1] * depth, weights, Fraction(2)))
    out = np.empty((5, depth), dtype=np.int64)
    sampler.draw_into(out, rng(seed=1))
    for node in range(0, depth, 10):
        assert not out[:, node:].sum(axis=1).any()
    assert out.any()


@pytest.mark.parametrize(
    ("weights", "epsilon"),
    [
        ((None, HALF, THIRD), "1/2"),
        ((HALF, Fraction(0), THIRD), "1/10"),
        ((HALF, Fraction(1), Fraction(1)), "1/20"),
        ((Fraction(2), Fraction(3), Fraction(2)), "2"),
    ],
)
def test_sizes_of_tables(weights, epsilon):
    """Before they are made they are known to a third."""
    kinds = SumKinds(hierarchy([5, 11, 11], 7, weights, Fraction(epsilon)))
    entries = sum(law.reach + 1 for law in float_laws(kinds))
    assert 2 / 3 < entries_of(kinds) / entries < 3 / 2
