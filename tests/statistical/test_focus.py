"""Noise under nested totals with weights, against its law by enumeration; the test rejects wrong samplers."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from focus_laws import KEPT, TREES, drawn, enumerated, log_weights, totals, whole_weight
from laws import assert_drawn_from, assert_not_drawn_from, boxed, power

from keepsum.sampling.l1.focus import laws
from keepsum.sampling.l1.focus.sampler import NestedFocus
from support import mostly_audit

COUNT = 200_000
REACH = {1: 60, 2: 20, 3: 10, 4: 5, 5: 3}


def law_of(name):
    tree = TREES[name]
    return enumerated(tree, REACH[sum(tree.cells)])


@mostly_audit("name", TREES)
def test_law(name):
    noise = drawn(NestedFocus(TREES[name]), COUNT)
    assert log_weights(TREES[name], noise)[1].all()
    assert_drawn_from(noise, law_of(name))


@pytest.mark.parametrize("name", ["narrow noise", "two trees"])
def test_the_weight_of_all_vectors(name):
    """By convolutions of totals, and vector by vector."""
    tree = TREES[name]
    logs, kept = log_weights(tree, boxed(12, 4))
    assert np.exp(logs[kept]).sum() == pytest.approx(whole_weight(tree), rel=1e-4)


def changed(name, node, change):
    """The tree with the weight of one total changed."""
    weights = list(TREES[name].weights)
    weights[node] = change(weights[node])
    return replace(TREES[name], weights=weights)


# A total of each level, and the last child of a root that is kept.
WEIGHTS = [
    ("focused", 0),
    ("kept root", 1),
    ("kept root", 2),
    ("free root", 0),
    ("free root", 2),
    ("three levels", 0),
    ("three levels", 1),
    ("three levels", 2),
    ("three levels", 4),
    ("three levels kept", 4),
    ("kept in the middle", 3),
]


@mostly_audit(("name", "node"), WEIGHTS)
@pytest.mark.parametrize("times", [0, 2])
def test_a_weight_that_is_forgotten_or_counted_twice_fails(name, node, times):
    noise, law = drawn(NestedFocus(changed(name, node, lambda weight: times * weight)), COUNT, seed=7), law_of(name)
    assert_not_drawn_from(noise, law)
    assert power(noise, law, COUNT) > 1 - 1e-6


def a_kept_total_that_is_only_heavy(patch, name):
    """Weights of kept totals taken for 3 instead of infinite."""
    tree = TREES[name]
    return NestedFocus(replace(tree, weights=[Fraction(3) if w is KEPT else w for w in tree.weights]))


def sums_without_their_multiplicity(patch, name):
    """A sum of two parts weighed as if it were the first of them."""
    patch.setattr(laws, "convolved", lambda left, right, bits: left)
    return NestedFocus(TREES[name])


def with_tables(name, **changes):
    """The sampler with some of its tables changed."""
    sampler = NestedFocus(TREES[name])
    changed = {field: change(getattr(sampler._tables, field)) for field, change in changes.items()}
    sampler._tables = sampler._tables._replace(**changed)
    return sampler


def peaks_that_are_too_low(patch, name):
    """Parts are accepted with more than their share where that exceeds 1."""
    return with_tables(name, peak=lambda peak: peak * 0.7)


def blocks_that_are_too_short(patch, name):
    """What lies beyond the first block comes too seldom."""
    return with_tables(name, block=lambda block: np.maximum(1, block // 2))


def parts_without_acceptance(patch, name):
    """Every proposal is taken."""
    return with_tables(name, peak=lambda peak: peak * 1e-9)


WAYS = (sums_without_their_multiplicity, peaks_that_are_too_low, blocks_that_are_too_short, parts_without_acceptance)


@mostly_audit("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", ["unequal children", "focused", "three levels"])
def test_a_wrong_sampler_fails(monkeypatch, way, name):
    noise, law = drawn(way(monkeypatch, name), COUNT, seed=7), law_of(name)
    assert_not_drawn_from(noise, law)
    assert power(noise, law, COUNT) > 1 - 1e-6


@pytest.mark.parametrize("name", ["kept", "kept in the middle"])
def test_a_kept_total_that_is_only_heavy_fails(monkeypatch, name):
    noise, law = drawn(a_kept_total_that_is_only_heavy(monkeypatch, name), COUNT, seed=7), law_of(name)
    assert_not_drawn_from(noise, law)
    assert power(noise, law, COUNT) > 1 - 1e-6


def test_alike_totals_are_exchangeable_and_cells_go_to_their_places():
    """Children of three kinds in mixed order: each total has the variance of its own weight."""
    tree = totals("1/2", (-1, 1, "1/4"), (0, 4, "2"), (0, 2, "1/8"), (0, 4, "1/8"), (0, 4, "2"), (0, 2, "1/8"))
    noise = drawn(NestedFocus(tree), COUNT)
    sums = np.add.reduceat(noise, [0, 1, 5, 7, 11, 15], axis=1).astype(float)
    squares = (sums**2).mean(axis=0)
    errors = 6 * np.sqrt((sums**4).mean(axis=0) / COUNT)
    assert abs(squares[1] - squares[4]) < errors[1]
    assert abs(squares[2] - squares[5]) < errors[2]
    assert squares[1] < squares[0] < squares[2] < squares[3]
