"""A focus on named subsets of cells through the public face."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

import keepsum as ks

DOMAIN = ks.Domain({"county": ["a", "b", "c", "d"], "sex": ["f", "m"]})
COAST = ks.Invariants.subsets(8, [range(4)], names=["coast"])
BOTH = ks.Invariants.subsets(8, [range(4), [6, 7]], names=["coast", "hills"])
RELEASES = [
    ([], ks.Laplace.per_unit("0.3", focus={COAST: "0.1", "county": "0.2"})),
    ([[]], ks.Laplace(1, focus={BOTH: 2}, cell_share=3)),
    ([[]], ks.Gaussian.per_unit(rho="0.03", focus={BOTH: "0.1"})),
    ([["sex"]], ks.Gaussian(rho=1, focus={COAST: 1})),
]


@pytest.mark.parametrize(("keep", "mechanism"), RELEASES)
def test_a_release_is_saved_verified_and_read_again(tmp_path, keep, mechanism):
    release = ks.release(ks.Table(DOMAIN, np.arange(8)), keep=keep, mechanism=mechanism)
    release.save(f"{tmp_path}/out/")
    verified = ks.verify(f"{tmp_path}/out/")
    assert verified, verified
    read = ks.read_release(f"{tmp_path}/out/")
    assert read.plan.mechanism == release.plan.mechanism
    assert read.plan.explain(details=True) == release.plan.explain(details=True)
    stated = json.loads(release.certificate.to_json())["mechanism"]["focus"][0]
    assert stated["subsets"]["names"][0] == "coast"
    assert stated["subsets"]["cells"][0] == [0, 1, 2, 3]
    margins = release.certificate.accuracy.focused_margins
    assert [level.accuracy.typical for level in read.accuracy().levels] == margins
    shown = " ".join(read.plan.explain(details=True).split())
    assert "coast" in shown
    assert f"per {'total' if len(mechanism.focus[0].subsets.names) == 1 else 'named total'}" in str(read.accuracy())


def test_the_margin_of_a_subset_is_that_of_its_law():
    plan = ks.plan(DOMAIN, keep=[], mechanism=RELEASES[0][1])
    coast, counties = plan.accuracy().levels
    assert coast.accuracy.basis == "exact"
    assert coast.accuracy.margins.tolist() == [plan.noise.interval([1] * 4 + [0] * 4)[1]]
    assert counties.accuracy.margins[0] == plan.noise.interval({"county": "a"})[1]
    divided = ks.plan(DOMAIN, keep=[[]], mechanism=ks.Laplace.per_unit(1, focus={BOTH: 1}))
    joint = divided.accuracy(simultaneous=True).levels[0].accuracy
    assert joint.margins.tolist() == [divided.noise.interval([1] * 4 + [0] * 4, level=0.975)[1],
                                      divided.noise.interval([0] * 6 + [1] * 2, level=0.975)[1]]  # fmt: skip


def test_losses_are_those_of_moves_into_and_out_of_a_subset():
    plan = ks.plan(DOMAIN, keep=[], mechanism=ks.Laplace.per_unit("0.3", focus={COAST: "0.1"}))
    assert plan.guarantee.person_epsilon == Fraction(7, 10)  # from the coast to elsewhere
    assert plan.guarantee.unit_epsilon == Fraction(4, 10)
    two = ks.plan(DOMAIN, keep=[], mechanism=ks.Laplace.per_unit("0.3", focus={BOTH: "0.1"}))
    assert two.guarantee.person_epsilon == Fraction(8, 10)  # from the coast to the hills
    crossed = ks.plan(DOMAIN, keep=[["sex"]], mechanism=ks.Gaussian.per_unit(rho="0.3", focus={COAST: "0.1"}))
    county, sex = crossed.attributes
    assert (county.any_value.focused, sex.any_value.focused) == ((1,), (4,))  # one moves, or two into the coast
    assert crossed.mechanism.loss(sex.any_value).rho == Fraction(12, 10) + Fraction(4, 10)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (ks.Invariants.margins(DOMAIN, [["sex"]]), "that are Invariants must be totals of subsets"),
        (ks.Invariants.matrix([[1, 2, 0, 0, 0, 0, 0, 0]]), "that are Invariants must be totals of subsets"),
        (ks.Invariants.subsets(8, [[0, 1], [1, 2]]), "must have no cell in common. Give each a key of its own."),
        (ks.Invariants.subsets(8, [[0, 1], []]), "must have a cell each"),
        (8, "must be axes, tuples of axes, or Invariants.subsets, got"),
    ],
)
def test_other_keys_are_refused_in_a_sentence(key, words):
    for make in (
        lambda focus: ks.Laplace.per_unit(1, focus=focus),
        lambda focus: ks.Gaussian.per_unit(rho=1, focus=focus),
    ):
        with pytest.raises(ks.InputError) as caught:
            make({key: 1})
        assert words in str(caught.value)


def test_subsets_of_another_table_kept_ones_and_the_same_twice_are_refused():
    nothing = ks.Invariants.margins(DOMAIN, [])
    with pytest.raises(ks.PlanError, match="must be of the 8 cells of the table, got 4"):
        ks.plan(keep=nothing, mechanism=ks.Gaussian.per_unit(rho=1, focus={ks.Invariants.subsets(4, [[0]]): 1}))
    with pytest.raises(ks.PlanError, match="the kept ones determine total 'coast'"):
        ks.plan(DOMAIN, keep=[["county"]], mechanism=ks.Laplace.per_unit(1, focus={COAST: 1}))
    again = ks.Invariants.subsets(8, [range(4)], names=["coast"])
    with pytest.raises(ks.InputError, match="must be different totals, got \"total 'coast'\" twice"):
        ks.Laplace.per_unit(1, focus={COAST: 1, again.over(DOMAIN): 1})
