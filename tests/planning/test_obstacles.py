"""Kept margins that stand in the way of exact noise, and what is nearest, against exact algebra and brute force."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest

import keepsum as ks
from keepsum.lattice.families import collapses_of
from keepsum.lattice.structure import identical_columns
from keepsum.planning.describe import describe_obstacle, obstacle_of
from keepsum.planning.distances import KeptMargins
from keepsum.planning.selection import general, l1

FOUR = ks.Domain({"A": [1, 2, 3], "B": [1, 2, 3], "C": [1, 2], "D": [1, 2]})
CASES = {
    "a triangle": ["AB", "BC", "AC"],
    "a triangle and one more": ["AB", "BC", "AC", "D"],
    "a triangle with a leaf": ["AB", "BC", "AC", "AD"],
    "a cycle of four": ["AB", "BC", "CD", "AD"],
    "all pairs": ["AB", "AC", "AD", "BC", "BD", "CD"],
    "all three-way": ["ABC", "ABD", "ACD", "BCD"],
}


def kept(margins, domain=FOUR):
    return KeptMargins.of(ks.Invariants.margins(domain, [list(margin) for margin in margins]))


def can_be_summed_out(margins, domain=FOUR):
    matrix = ks.Invariants.margins(domain, [list(margin) for margin in margins]).coefficients.tocsc()
    return collapses_of(matrix[:, identical_columns(matrix)[1]].tocsr()) is not None


@pytest.mark.parametrize("name", CASES)
def test_what_is_named_is_decomposable_and_what_stands_in_the_way_is_not(name):
    found = obstacle_of(kept(CASES[name]))
    assert not can_be_summed_out(CASES[name])
    assert not can_be_summed_out(found.margins)
    assert set(found.margins) <= {tuple(margin) for margin in CASES[name]}
    if "all" not in name:
        for k in range(len(found.margins)):
            assert can_be_summed_out(found.margins[:k] + found.margins[k + 1 :])
    for named in (*found.fewer, *([found.joined] if found.joined else [])):
        assert can_be_summed_out(named)
        assert len(named) > 0
        assert all(len(margin) < 4 for margin in named)


def test_a_leaf_is_not_in_the_way():
    assert obstacle_of(kept(CASES["a triangle with a leaf"])).margins == (("A", "B"), ("A", "C"), ("B", "C"))


@pytest.mark.parametrize("name", ["a triangle", "a triangle and one more", "a cycle of four"])
def test_fewer_are_the_largest_subsets_that_are_decomposable(name):
    margins = CASES[name]
    subsets = list(chain.from_iterable(combinations(margins, n) for n in range(1, len(margins))))
    good = [set(one) for one in subsets if can_be_summed_out(one)]
    largest = [one for one in good if not any(one < other for other in good)]
    named = [{"".join(margin) for margin in one} for one in obstacle_of(kept(margins)).fewer]
    assert named
    assert all(one in largest for one in named)


def test_decomposable_margins_have_nothing_in_the_way():
    for margins in (["A", "B", "C", "D"], ["AB", "BC", "CD"], ["AB", "AC", "AD"], ["AB", "CD"], ["ABC", "BCD"]):
        assert obstacle_of(kept(margins)) is None
        assert can_be_summed_out(margins)


def test_counties_are_in_states():
    counties = {"N": list("abc"), "E": list("def")}
    axes = {"state": ["N", "E"], "county": counties, "sex": ["F", "M"], "age": [1, 2, 3]}
    table = ks.Domain(axes, within={"county": "state"})
    found = obstacle_of(kept([["county", "sex"], ["state", "age"], ["sex", "age"]], table))
    assert found.margins == (("state", "age"), ("county", "sex"), ("sex", "age"))
    assert found.fewer == (
        (("county", "sex"), ("sex", "age")),
        (("state", "age"), ("county",), ("sex", "age")),
    )
    assert all(can_be_summed_out(one, table) for one in found.fewer)
    assert obstacle_of(kept([["county", "sex"], ["state", "age"]], table)) is None


def test_a_plan_says_what_to_keep_instead(monkeypatch):
    monkeypatch.setattr(general, "COORDINATES", 5)
    monkeypatch.setattr(l1, "BUDGET", 10**3)
    domain = ks.Domain({"A": list(range(3)), "B": list(range(3)), "C": list(range(2)), "D": list(range(2))})
    table = ks.Table(domain, np.ones(36, dtype=int))
    keep = [["A", "B"], ["B", "C"], ["A", "C"], "D"]
    plan = ks.plan(table, keep=keep, mechanism=ks.Laplace.per_unit(epsilon="0.2"))
    words = "A × B, A × C and B × C together stand in the way of exact l1 Laplace noise. Keep A × B, A × C and D, or "
    assert plan.guarantee.sampling != "exact"
    assert words in " ".join(plan.explain().split())
    with pytest.raises(ks.NoSamplerError) as refused:
        ks.release(table, keep=keep, mechanism=ks.Laplace.per_unit(epsilon="0.2"))
    assert words in str(refused.value)
    gaussian = ks.plan(table, keep=keep, mechanism=ks.Gaussian.per_unit(rho=1))
    assert "stand in the way" not in gaussian.explain()


def test_margins_are_in_words():
    found = obstacle_of(kept(CASES["a triangle and one more"]))
    assert describe_obstacle(found) == (
        "A × B, A × C and B × C together stand in the way of exact l1 Laplace noise. Keep A × B, A × C and D, or "
        "A × B, B × C and D, or A × B × C and D (which keeps more) instead."
    )


@pytest.mark.parametrize("lengths", [(10, 6, 5, 4, 2), (3, 3, 3, 3, 3, 3)])
def test_all_pairs_of_five_axes_and_six_name_a_tree(lengths):
    """So many changes away that not all sets are tried: what is named cannot be added to, and keeps most totals."""
    domain = ks.Domain({axis: range(n) for axis, n in zip("ABCDEF", lengths, strict=False)})
    pairs = ["".join(pair) for pair in combinations("ABCDEF"[: len(lengths)], 2)]
    found = obstacle_of(kept(pairs, domain))
    assert len(found.margins) == len(pairs)
    assert found.joined is None  # of all pairs only the whole table
    (tree,) = found.fewer
    named = ["".join(margin) for margin in tree]
    assert len(named) == len(lengths) - 1
    assert can_be_summed_out(named, domain)
    assert not any(can_be_summed_out([*named, pair], domain) for pair in set(pairs) - set(named))
    assert named == ["A" + axis for axis in "BCDEF"[: len(lengths) - 1]]  # the longest axis with every other one


def test_nested_axes_that_cross():
    """{county x sex, state x age, sex x age} looks as if county could be summed out; closed under nesting it cannot."""
    counties = {state: [f"{state}{county}" for county in range(3)] for state in "st"}
    domain = ks.Domain({"S": list("st"), "C": counties, "X": [1, 2], "A": [1, 2, 3]}, within={"C": "S"})
    found = obstacle_of(kept(["CX", "SA", "XA"], domain))
    assert found.margins == (("S", "A"), ("C", "X"), ("X", "A"))
    for named in found.fewer:
        assert can_be_summed_out(["".join(margin) for margin in named], domain)
    assert can_be_summed_out(["".join(margin) for margin in found.joined], domain)
