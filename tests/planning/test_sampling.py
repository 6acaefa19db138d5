"""plan.sample and plan.noise: what a user asks of a plan."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import keepsum as ks
from keepsum.planning.selection import l1, splitting
from keepsum.planning.selection.choice import Reason
from keepsum.planning.selection.splitting import _labellings
from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.splitting.bundles import bundled
from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.slices import two_way
from support import margins, mostly_audit

EXACT = {
    "nothing kept": ks.Invariants.subsets(5, []),
    "one total": ks.Invariants.subsets(5, [range(5)]),
    "a total and free cells": ks.Invariants.subsets(6, [[0, 2, 4]]),
    "hierarchy": ks.Invariants.subsets(7, [range(7), [0, 1, 2], [3, 4]]),
    "overlap": ks.Invariants.subsets(6, [[0, 1, 2, 3], [2, 3, 4, 5]]),
    "weights": ks.Invariants.matrix([[2, 3, 5, 0], [0, 0, 0, 0]]),
    "pinned": ks.Invariants.subsets(4, [[0], [1, 2, 3]]),
    "interleaved tables": ks.Invariants.margins(
        ks.Domain({"a": [1, 2, 3], "s": ["x", "y"], "b": [1, 2, 3, 4]}), [["a", "s"], ["s", "b"]]
    ),
    "three-way table": margins(4, 3, 3),
}


@pytest.mark.parametrize("name", EXACT)
def test_noise_keeps_every_total(name):
    keep = EXACT[name]
    plan = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=0.5))
    noise = plan.sample(200, rng=ks.rng(seed=1))
    assert noise.dtype == np.int64
    assert noise.shape == (200, keep.size)
    assert ks.Lattice(keep.coefficients).contains(noise).all()
    assert not noise[:, plan.pinned].any()
    moved = noise.any(axis=0)
    assert np.array_equal(np.flatnonzero(~moved), plan.pinned)
    assert plan.guarantee.sampling == "exact"


@pytest.mark.parametrize("name", EXACT)
def test_threads_do_not_change_the_noise(name):
    plan = ks.plan(keep=EXACT[name], mechanism=ks.Laplace.per_unit(epsilon=0.5))
    one, three = (plan.sample(50, rng=ks.rng(seed=2), threads=threads) for threads in (1, 3))
    assert np.array_equal(one, three)
    assert not np.array_equal(plan.sample(50), plan.sample(50))


def test_many_tasks_and_threads_agree():
    """Enough cells for several tasks, regions of many sizes among them."""
    sizes = [2, 3, 40, 70_000, 5, 90_000]
    starts = np.cumsum([0, *sizes])
    keep = ks.Invariants.subsets(int(starts[-1]), [range(a, b) for a, b in pairwise(starts)])
    plan = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=0.25))
    one, two = (plan.sample(2, rng=ks.rng(seed=3), threads=threads) for threads in (1, 2))
    assert np.array_equal(one, two)
    assert not (keep.coefficients @ one.T).any()


def test_one_draw_is_a_vector(children):
    plan = ks.plan(children, keep=["county", "education"], mechanism=ks.Laplace.per_unit(epsilon=0.25))
    assert plan.sample(rng=ks.rng(seed=1)).shape == (16,)
    assert plan.sample(0).shape == (0, 16)


def test_interleaved_tables_have_the_law_of_one_table():
    """Cells scattered over the domain: the two tables of the interleaved domain against a table by itself."""
    keep = EXACT["interleaved tables"]
    plan = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=1))
    noise = plan.sample(40_000, rng=ks.rng(seed=5)).reshape(-1, 3, 2, 4)
    alone = ks.plan(
        ks.Domain({"a": [1, 2, 3], "b": [1, 2, 3, 4]}),
        keep=[["a"], ["b"]],
        mechanism=ks.Laplace.per_unit(epsilon=1),
    ).sample(40_000, rng=ks.rng(seed=6))
    lengths = [np.abs(noise[:, :, s]).sum(axis=(1, 2)) for s in (0, 1)] + [np.abs(alone).sum(axis=1)]
    errors = [length.std() / np.sqrt(len(length)) for length in lengths]
    assert abs(lengths[0].mean() - lengths[2].mean()) < 5 * np.hypot(errors[0], errors[2])
    assert abs(lengths[1].mean() - lengths[2].mean()) < 5 * np.hypot(errors[1], errors[2])
    assert abs(np.corrcoef(lengths[0], lengths[1])[0, 1]) < 5 / np.sqrt(40_000)


@pytest.mark.parametrize(
    "mechanism",
    [
        ks.Laplace.per_unit(epsilon="1e-5"),
        ks.Laplace.per_unit(epsilon=51),
        ks.Gaussian(sigma="1e-3"),
        ks.Gaussian(sigma="1e9"),
    ],
)
def test_mechanisms_without_samplers_say_so(mechanism):
    plan = ks.plan(keep=EXACT["hierarchy"].over(ks.Domain({"a": list(range(7))})), mechanism=mechanism)
    with pytest.raises(ks.NoSamplerError, match=r"^(Epsilon per unit of distance|Sigma) must be from ") as error:
        plan.sample()
    assert "cells" not in str(error.value)  # their number is not what is wrong
    assert "no sampler: " in plan.explain(details=True)
    assert ("l2 Laplace or Gaussian noise" in str(error.value)) == isinstance(mechanism, ks.Laplace)
    # Narrow noise protects little anyway; so wide a Gaussian is told apart with a probability below 1e-6 at epsilon 0.
    wide = mechanism == ks.Laplace.per_unit(epsilon="1e-5")
    assert ("l2 Laplace with ks.Laplace(" in " ".join(plan.explain(details=True).split())) == wide


@pytest.mark.audit
@pytest.mark.parametrize(
    "mechanism",
    [
        ks.Laplace.per_unit(0.5),
        *(pytest.param(m, marks=pytest.mark.audit) for m in (ks.Laplace.per_unit(0.5, "l2"), ks.Gaussian(sigma=2))),
    ],
    ids=repr,
)
def test_totals_that_only_changes_beyond_64_bits_keep(mechanism):
    """Three totals with coefficients of 62 bits over five cells."""
    source = np.random.default_rng(1)
    keep = ks.Invariants.matrix(source.integers(2**61, 2**62, size=(3, 5)))
    with pytest.raises(ks.PlanError, match="leave only changes of a cell beyond 64-bit integers"):
        ks.plan(keep=keep, mechanism=mechanism).sample()


@pytest.mark.audit
@pytest.mark.parametrize(
    ("sigma", "words"), [("0.4", "sweeps of heat-bath moves"), ("0.5", "steps of a chain of lattice Gaussians")]
)
def test_noise_too_narrow_for_the_exact_sampler_is_drawn_by_a_chain(sigma, words):
    """How seldom a try would be accepted is found out first.

    At 0.4 log weights have a standard deviation of 6: no number of steps would do.
    """
    keep = margins(20, 20)
    plan = ks.plan(keep=keep, mechanism=ks.Gaussian(sigma=sigma))
    assert words in plan.explain(details=True)
    assert plan.guarantee.sampling == "estimated"
    assert keep.holds(np.zeros(400, dtype=int), plan.sample(rng=ks.rng(seed=1)))


def test_narrow_noise_beyond_the_budget_is_drawn_by_a_chain(monkeypatch):
    """The same on a small table, as if nothing could be spent on an exact draw."""
    keep = margins(5, 5)
    assert ks.plan(keep=keep, mechanism=ks.Gaussian(sigma="0.5")).guarantee.sampling == "exact"
    monkeypatch.setattr("keepsum.planning.selection.gaussian.BUDGET", 1)
    plan = ks.plan(keep=keep, mechanism=ks.Gaussian(sigma="0.5"))
    assert "steps of a chain of lattice Gaussians" in plan.explain(details=True)
    assert plan.guarantee.sampling == "estimated"
    assert keep.holds(np.zeros(25, dtype=int), plan.sample(rng=ks.rng(seed=1)))


@pytest.mark.parametrize(
    "mechanism",
    [ks.Laplace.per_unit(epsilon=45, norm="l2"), ks.Gaussian(sigma="0.2"), ks.Gaussian(sigma="0.7")],
    ids=repr,
)
def test_other_narrow_noise_is_drawn_exactly(mechanism):
    """l2 Laplace noise has no such trouble, and narrower or wider Gaussian noise none either."""
    plan = ks.plan(keep=margins(20, 20), mechanism=mechanism)
    assert plan.invariants.holds(np.zeros(400, dtype=int), plan.sample())
    assert plan.guarantee.sampling == "exact"


@mostly_audit("limit", ["LAYERS_SETTLED", "LAYERS_WEIGHTS", "LAYERS_PROPOSAL", "LAYERS_KEPT"])
def test_three_way_tables_that_take_too_long_are_left_to_others(monkeypatch, limit):
    monkeypatch.setattr(l1, limit, 100)
    (choice,) = ks.plan(keep=EXACT["three-way table"], mechanism=ks.Laplace.per_unit(0.5)).samplers
    assert choice.method != "layer_splitting"


@pytest.mark.parametrize(
    ("name", "mechanism", "methods"),
    [
        ("a total and free cells", ks.Laplace.per_unit(0.5), ["independent_cells", "part_by_part"]),
        ("a total and free cells", ks.Gaussian(sigma=2), ["independent_cells", "conditional_cells"]),
        ("a total and free cells", ks.Laplace.per_unit(0.5, "l2"), ["conditional_cells", "conditional_cells"]),
        ("overlap", ks.Laplace.per_unit(0.5), ["solved_regions"]),
        ("interleaved tables", ks.Laplace.per_unit(0.5), ["column_splitting"]),
        ("three-way table", ks.Laplace.per_unit(0.5), ["layer_splitting"]),
    ],
)
def test_a_choice_is_data(name, mechanism, methods):
    """What draws each group, and how often proposals are accepted, without a sentence."""
    choices = ks.plan(keep=EXACT[name], mechanism=mechanism).samplers
    assert [choice.method for choice in choices] == methods
    for choice in choices:
        assert (choice.exactness, choice.rounding, choice.reasons) == ("exact", 0.0, ())
        measured = choice.method not in ("independent_cells", "part_by_part")
        assert (choice.acceptance is not None) == measured
        assert choice.acceptance is None or 0 < choice.acceptance <= 1


@pytest.mark.parametrize(
    ("name", "mechanism", "reason"),
    [
        ("hierarchy", ks.Laplace.per_unit(51), Reason("epsilon_out_of_range", lowest="1/10000", highest="50")),
        ("hierarchy", ks.Gaussian(sigma="1e-3"), Reason("sigma_out_of_range", lowest="1/50", highest="100000000")),
    ],
)
def test_reasons_are_data(name, mechanism, reason):
    for choice in ks.plan(keep=EXACT[name], mechanism=mechanism).samplers:
        assert (choice.method, choice.sampler, choice.reasons) == (None, None, (reason,))


def test_a_block_without_a_sampler_leaves_none_for_the_others(monkeypatch):
    """l2 Laplace noise is drawn for all blocks together: the others say that it is not them."""
    monkeypatch.setattr("keepsum.planning.selection.common_scale.overlap_part", lambda *_: None)
    keep = ks.Invariants.subsets(7, [[0, 1, 2, 3], [2, 3, 4, 5]])
    choices = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(1, "l2")).samplers
    assert [choice.reasons for choice in choices] == [(Reason("another_block"),), (Reason("too_many_totals"),)]


@pytest.mark.parametrize(
    ("side", "epsilon", "blocks"),
    [(20, "1", [1, 4, 8, 12]), (64, "1", [1, 4, 8, 12]), (64, "1/20", [1]), (20, "1/50", [1]), (20, "1/100", [])],
)
def test_labels_are_tried_where_they_fit(side, epsilon, blocks):
    """None where the tables of labels are too large, and no sampler where all are."""
    labellings = _labellings(Fraction(epsilon), bundled(two_way(np.ones((side, side), dtype=np.int64))))
    assert [labelling.blocks for labelling in labellings] == blocks


@pytest.mark.parametrize("shape", [(8, 8), (9, 7)])
def test_columns_are_taken_in_runs_where_tables_would_be_too_large(shape, monkeypatch):
    """Exact all the same, with fewer forms than columns; no sampler if there are too many entries even so."""
    table, cells = two_way(np.ones(shape, dtype=np.int64)), np.arange(shape[0] * shape[1])
    monkeypatch.setattr(splitting, "PEELED_ENTRIES", 10**4)
    choice = splitting.by_splitting(Fraction(1), table, 1, cells)
    assert choice.exactness == "exact"
    assert len(choice.sampler._bundles.forms) < shape[1] - 1
    noise = np.empty((50, len(cells)), dtype=np.int64)
    choice.sampler.draw_into(noise, rng(seed=1))
    assert noise.any()
    assert not any(noise.reshape(50, *shape).sum(axis=axis).any() for axis in (1, 2))
    for limit in ("ENTRIES", "LABELLED_ENTRIES"):
        monkeypatch.setattr(splitting, limit, 0)
    refused = splitting.by_splitting(Fraction(1), table, 1, cells)
    assert (refused.sampler, [reason.kind for reason in refused.reasons]) == (None, ["table_too_large"])


@pytest.mark.audit
@pytest.mark.parametrize(
    ("shape", "epsilon", "words"),
    [
        ((14, 14, 14), "1", "too much time or memory at this epsilon, and the block is too large for a chain"),
    ],
)
def test_blocks_that_would_not_fit_are_left_alone(shape, epsilon, words, monkeypatch):
    """No sampler is made that would fill the memory or never end; the plan says why."""
    for name, value in (("LONGER_PILOTS", (10**6,)), ("LABELLINGS", (Labelling(),))):
        monkeypatch.setattr(f"keepsum.planning.selection.splitting.{name}", value)  # plain tables, and a short pilot
    plan = ks.plan(keep=margins(*shape), mechanism=ks.Laplace.per_unit(epsilon=epsilon))
    assert words in " ".join(plan.explain(details=True).split())
    assert plan.guarantee.sampling == "no sampler"
    with pytest.raises(ks.NoSamplerError, match=r"l2 Laplace and Gaussian noise are exact under nearly all totals\."):
        plan.sample()


@pytest.mark.parametrize(
    ("shape", "epsilon", "guarantee"),
    [
        ((4, 4), "1e-4", "rounded"),
        ((4, 4, 4), "0.25", "rounded"),
        pytest.param((5, 5, 5), "0.25", "estimated", marks=pytest.mark.audit),
        pytest.param((5, 6, 6, 2), "0.2", "estimated", marks=pytest.mark.audit),
    ],
)
def test_blocks_beyond_the_exact_samplers_go_to_the_general_ones(shape, epsilon, guarantee):
    keep = margins(*shape)
    plan = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=epsilon))
    assert plan.guarantee.sampling == guarantee
    (choice,) = plan.samplers
    assert [reason.kind for reason in choice.reasons] in (
        ["rarely_accepted"],
        ["table_too_large"],
        ["too_many_equations"],
    )
    if guarantee == "rounded":
        assert choice.method == "mixture_rejection"
        assert 0 < choice.acceptance <= 1
    else:
        assert choice.method in ("mixture_chain", "heat_bath_chain")
        assert choice.steps == choice.chain.steps
        assert (choice.moves is None) == (choice.method == "mixture_chain") == (choice.proposals_per_step is not None)
    noise = plan.sample(2, rng=ks.rng(seed=1))
    assert noise.any()
    assert not np.asarray(keep.coefficients @ noise.T).any()
    assert (noise == plan.sample(2, rng=ks.rng(seed=1), threads=2)).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"size": -1}, "number of draws"),
        ({"size": 1.5}, "number of draws"),
        ({"threads": 0}, "number of threads"),
        ({"rng": np.random.default_rng(1)}, "must come from ks.rng"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(ks.InputError, match=words):
        ks.plan(keep=EXACT["one total"], mechanism=ks.Laplace.per_unit(epsilon=1)).sample(**arguments)


def test_variance_and_interval():
    """By simulation: 200,000 draws of a cell of each kind."""
    plan = ks.plan(keep=EXACT["a total and free cells"], mechanism=ks.Laplace.per_unit(epsilon=0.5))
    noise = plan.sample(200_000, rng=ks.rng(seed=7))
    for cell in (0, 1):
        squares = noise[:, cell].astype(float) ** 2
        assert abs(squares.mean() - plan.noise.variance(cell)) < 5 * squares.std() / np.sqrt(len(squares))
        for level in (0.5, 0.9, 0.99):
            low, high = plan.noise.interval(cell, level)
            assert low == -high
            covered = ((noise[:, cell] >= low) & (noise[:, cell] <= high)).mean()
            shorter = ((noise[:, cell] > low) & (noise[:, cell] < high)).mean()
            slack = 5 * np.sqrt(level * (1 - level) / len(noise))
            assert covered > level - slack
            assert shorter < level + slack


def test_noise_by_name_and_of_pinned_cells():
    domain = ks.Domain({"state": ["a", "b"], "county": {"a": [1, 2, 3], "b": [4]}}, {"county": "state"})
    plan = ks.plan(domain, keep=[["state"]], mechanism=ks.Laplace.per_unit(epsilon=0.25))
    assert plan.noise.variance({"state": "a", "county": 2}) == plan.noise.variance(1) > 0
    assert plan.noise.variance({"state": "b", "county": 4}) == 0
    assert plan.noise.interval(3) == (0, 0)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (lambda n: n.variance(9), "number from 0 to 5"),
        (lambda n: n.variance({"a": 1}), "no names"),
        (lambda n: n.interval(0, level=1), "between 0 and 1"),
        (lambda n: n.interval(0, level="high"), "between 0 and 1"),
        (lambda n: n.interval(0, level=1 - 1e-12), "at most"),
    ],
)
def test_bad_questions_about_noise(question, words):
    with pytest.raises(ks.InputError, match=words):
        question(ks.plan(keep=EXACT["a total and free cells"], mechanism=ks.Laplace.per_unit(epsilon=1)).noise)


def test_noise_that_is_not_known_exactly(children):
    kept = children.keep("county", "education")
    for mechanism, basis in (
        (ks.Laplace.per_unit(epsilon=1), "estimated"),
        (ks.Laplace.per_unit(epsilon=1, norm="l2"), "estimated"),
        (ks.Gaussian(sigma=2), "estimated"),
    ):
        plan = ks.plan(keep=kept, mechanism=mechanism)
        assert plan.noise.law(0).basis == basis
        with pytest.raises(ks.InputError, match=f"this one is {basis}"):
            plan.noise.pmf(0, 0)


@mostly_audit(("size", "sigma"), [(1, "0.6"), (2, "0.5"), (5, "0.7"), (5, "3"), (40, "10"), (300, "30")])
def test_gaussian_laws_of_cells(size, sigma):
    """Variance and interval of a free cell and of a cell under a sum, against draws."""
    keep = ks.Invariants.subsets(size + 1, [range(1, size + 1)])
    plan = ks.plan(keep=keep, mechanism=ks.Gaussian(sigma=sigma))
    noise = plan.sample(100_000, rng=ks.rng(seed=5)).astype(float)
    for cell in (0, size):
        squares = noise[:, cell] ** 2
        assert abs(squares.mean() - plan.noise.variance(cell)) <= 5 * squares.std() / np.sqrt(len(squares))
        margin = plan.noise.interval(cell, 0.9)[1]
        share, error = (np.abs(noise[:, cell]) <= margin).mean(), 5 * np.sqrt(0.09 / len(noise))
        assert share >= 0.9 - error
        assert margin == 0 or (np.abs(noise[:, cell]) <= margin - 1).mean() <= 0.9 + error


@pytest.mark.parametrize("epsilon", [0.01, pytest.param(0.0001, marks=pytest.mark.audit)])
def test_wide_laws_of_large_regions(epsilon):
    """Where the characteristic function is too narrow for a grid, against the limit of many cells."""
    plan = ks.plan(
        keep=ks.Invariants.subsets(300_000, [range(300_000)]), mechanism=ks.Laplace.per_unit(epsilon=epsilon)
    )
    free = ks.plan(keep=ks.Invariants.subsets(1, []), mechanism=ks.Laplace.per_unit(epsilon=epsilon))
    assert plan.noise.variance(0) == pytest.approx(free.noise.variance(0), rel=1e-4)
    high, expected = plan.noise.interval(0)[1], free.noise.interval(0)[1]
    assert abs(high - expected) <= max(1, 1e-4 * expected)


RANDOM = ks.Invariants.matrix(np.random.default_rng(5).integers(0, 4, size=(5, 40)))
ANY = {
    "children": margins(4, 4),
    "circles": ks.Invariants.subsets(14, [[c for c in range(14) if (c // 2 + 1) >> k & 1] for k in range(3)]),
    "10 x 10": margins(10, 10),
    "64 x 64": margins(64, 64),
    "102 x 5": margins(102, 5),
    "4 x 4 x 4": margins(4, 4, 4),
    "10 x 10 x 10": margins(10, 10, 10),
    "random": RANDOM,
    "counties": ks.Invariants.margins(
        ks.Domain(
            {"state": list(range(5)), "county": {s: list(range(3 + 30 * s)) for s in range(5)}},
            within={"county": "state"},
        ),
        [["state"]],
    ),
}


MECHANISMS = [ks.Laplace.per_unit(0.25), ks.Laplace.per_unit(0.25, "l2"), ks.Gaussian.per_unit(0.25, "1e-6")]


@pytest.mark.audit
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("name", ANY)
def test_all_mechanisms_on_all_of_these(name, mechanism):
    """A draw, its totals, and what explain says: the guarantee, and the mechanism with the smallest noise."""
    keep = ANY[name]
    plan = ks.plan(keep=keep, mechanism=mechanism)
    if name == "10 x 10 x 10" and mechanism == ks.Laplace.per_unit(0.25):  # log weights have a standard deviation of 3
        with pytest.raises(ks.NoSamplerError, match="a chain would take too long to come near its target"):
            plan.sample(rng=ks.rng(seed=1))
        return
    noise = plan.sample(rng=ks.rng(seed=1))
    assert noise.any()
    assert not np.asarray(keep.coefficients @ noise).any()
    assert plan.guarantee.sampling in ("exact", "rounded", "estimated")
    if name != "10 x 10 x 10":  # plans the others too, in half a minute
        text = " ".join(plan.explain(details=True).split())
        assert "epsilon 0.25" in text
        if plan.person is None:
            assert "Other noise not compared, as no per-person loss is stated" in text
            return
        assert all(f"{other} " in text for other in ("l1 Laplace", "l2 Laplace", "Gaussian"))
        assert "smallest with" in text
