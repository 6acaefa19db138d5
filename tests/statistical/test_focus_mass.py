"""The weight of all noise under nested totals, against convolutions of totals in the order of the tree."""

import math
from dataclasses import replace

import pytest
from focus_laws import TREES, whole_weight

from keepsum.sampling.l1.focus.laws import float_laws, log_mass
from keepsum.sampling.l1.focus.tree import SumKinds


def mass(tree):
    kinds = SumKinds(tree)
    return log_mass(kinds, float_laws(kinds))


@pytest.mark.parametrize("name", TREES)
def test_the_weight_of_all_noise(name):
    assert mass(TREES[name]) == pytest.approx(math.log(whole_weight(TREES[name])), abs=1e-9)


@pytest.mark.parametrize("name", ["focused", "free root", "three levels kept"])
def test_a_forgotten_weight_is_seen(name):
    tree = TREES[name]
    weights = [None if weight is None else 0 * weight for weight in tree.weights]
    assert mass(replace(tree, weights=weights)) > math.log(whole_weight(tree)) + 0.1
