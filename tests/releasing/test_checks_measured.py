"""Every fact of a certificate that was measured, changed in turn: another value passes, nonsense fails.

A fact was *measured* if it came from a pilot, from coupled chains or from a simulation: another version may state
another value.
"""

import json
import math

import numpy as np
import pytest

import keepsum as ks
from keepsum.accuracy import other_draws
from keepsum.accuracy.other_draws import possible_range, simulated_range
from keepsum.accuracy.simulation import estimated_margin
from keepsum.privacy.numbers import three_digits_up
from keepsum.releasing import checks
from keepsum.releasing.checks import least_margin
from releasing.changed_facts import (
    BLOCK,
    FIRST,
    PARAMETERS,
    PERSON,
    SHOWN,
    at,
    nothing,
    release_of,
    scaled,
    small_table,
    wrong,
)
from support import mostly_audit


def looser(document):
    """A larger limit, with all that follows from it: another way to bound the same meeting times."""
    block = document["guarantee"]["blocks"][0]
    block["convergence"]["upper"] *= 2
    block["total_variation"] *= 2
    sampling = document["guarantee"]["sampling"]
    sampling["total_variation"] *= 2
    sampling["delta"] = three_digits_up(sampling["total_variation"] * (1 + math.e))  # epsilon is 1 per unit


def bounds_of_distances(document):
    """Another version may not know a distance exactly, and then state a larger one."""
    person = document["guarantee"]["person"]
    for attribute in person["attributes"]:
        attribute["any_value"] = attribute["other_value"] = {"length": 6, "exact": False, "rule": "table"}
    person["distance"] = {"length": 6, "exact": False, "rule": "table"}
    person["epsilon"] = "1.5"


def another_sampler(document):
    """A better sampler of a later version."""
    block = document["guarantee"]["blocks"][0]
    block["sampler"] |= {"method": "split_columns", "acceptance": 0.9, "steps": None, "proposals_per_step": None}
    block |= {"exactness": "exact", "total_variation": 0, "convergence": None}
    document["guarantee"]["sampling"] |= {
        "exactness": "exact",
        "total_variation": 0,
        "extrapolated": None,
        "confidence": None,
        "delta": "0",
    }


def as_regions(document):
    """A table that an earlier version did not recognise, and drew by its sampler for any totals."""
    block = document["guarantee"]["blocks"][0]
    block["form"] |= {"kind": "regions", "shape": []}
    block["sampler"]["method"] = "solved_regions"


BOUND = {"level": 0.95, "typical_margin": 9, "simulated_draws": 0, "simulated_error": 0, "conservative": True}
FEW_DRAWS = {"simulated_draws": 172, "simulated_error": 0}
MEASURED = [
    ("simulated", at(*BLOCK, "sampler", "acceptance")(0.9)),
    ("holes", as_regions),
    ("simulated", at("accuracy")(lambda old: old | {"simulated_draws": 2_000, "simulated_error": 0.0015})),
    ("simulated", at("accuracy", "typical_margin")(7)),
    ("simulated", at("accuracy")(BOUND)),
    ("tight", at("accuracy", "typical_margin")(lambda old: old + 1)),
    ("simulated", at(*PERSON, "epsilon")("1.0000000001")),
    ("simulated", at(*PERSON, "asked")({"attributes": ["a"], "to": "some other value"})),
    ("simulated", at("released")("2027-01-01T00:00:00Z")),
    ("simulated", at("software")({"keepsum": "9.9"})),
    ("simulated", bounds_of_distances),
    ("tight", at(*PARAMETERS, "sigma")(lambda old: scaled(old, "1.0001"))),  # it knew less of the lattice
    ("chains", at(*BLOCK, "sampler", "proposals_per_step")(17.5)),
    ("chains", at(*SHOWN, "predicted")(1e-12)),
    ("chains", at(*SHOWN, "rounding")(0)),
    ("chains", at(*SHOWN, "give_up")(lambda old: old + 1)),
    ("chains", looser),
    ("rounded", at(*BLOCK, "sampler", "acceptance")(0.5)),
]


@mostly_audit(("name", "change"), MEASURED)
def test_what_was_measured_may_change(name, change):
    assert wrong(name, change) == []


NONSENSE = [
    ("simulated", at(*BLOCK, "sampler", "acceptance")(nothing)),
    ("simulated", at(*BLOCK, "sampler", "steps")(1)),
    ("simulated", at(*BLOCK, "sampler", "proposals_per_step")(2.5)),
    ("simulated", at(*BLOCK, "sampler", "moves")(3)),
    ("computed", at(*BLOCK, "sampler", "acceptance")(0.5)),
    ("chains", at(*BLOCK, "sampler", "steps")(nothing)),
    ("chains", at(*BLOCK, "sampler", "proposals_per_step")(nothing)),
    ("chains", at(*BLOCK, "sampler", "proposals_per_step")(0.5)),
    ("chains", at(*BLOCK, "sampler", "proposals_per_step")(1e300)),
    ("simulated", at("accuracy", "simulated_draws")(100_000)),  # nobody simulates that many
    ("simulated", at("accuracy", "simulated_error")(0.02)),  # margins allow for three of them
    ("simulated", at("accuracy", "simulated_error")(1e-9)),  # less than that of independent cells
    ("simulated", at("accuracy", "level")(0.951)),
    ("simulated", at("accuracy")(BOUND | {"typical_margin": 100})),
    ("simulated", at("accuracy")(BOUND | {"simulated_draws": 4000})),
    ("crossed", at("accuracy", "focused_margins", 0)(2**53 - 1)),
    ("crossed", at("accuracy", "focused_margins", 1)(lambda old: old + 4)),
    ("crossed", at("accuracy", "focused_margins", 1)(lambda old: old - 3)),
    ("divided", at("accuracy", "focused_margins", 0)(2**53 - 1)),
    ("conservative", at("accuracy", "typical_margin")(lambda old: 4 * old)),
    ("conservative", at("accuracy", "focused_margins", 0)(lambda old: 4 * old)),
    ("conservative", at("accuracy", "focused_margins", 0)(1)),
    ("conservative", at("accuracy", "conservative")(False)),
    ("chains", at("accuracy", "typical_margin")(2**53 - 1)),
    ("crossed", at("accuracy")(lambda old: old | FEW_DRAWS | {"focused_margins": [2**53 - 1, 7]})),
    ("simulated", at("accuracy")(lambda old: old | FEW_DRAWS | {"typical_margin": 2**53 - 1})),
    ("spherical", at("accuracy")(lambda old: old | FEW_DRAWS | {"typical_margin": 2**53 - 1})),
    ("chains", at("exposure", "not_checked")(1000)),
    ("simulated", at("exposure", "bounded")(lambda old: old + 3)),
    ("simulated", at("exposure", "not_checked")(1)),
    ("simulated", at(*BLOCK, "sampler", "acceptance")(0)),
    ("simulated", at(*BLOCK, "sampler", "acceptance")(1.5)),
    ("simulated", at(*BLOCK, "sampler", "steps")(0)),
    ("simulated", at(*BLOCK, "sampler", "moves")(0)),
    ("simulated", at(*BLOCK, "sampler", "proposals_per_step")(-1)),
    ("simulated", at(*BLOCK, "sampler", "method")("mixture_chain")),
    ("simulated", at(*BLOCK, "sampler", "method")("layer_splitting")),
    ("simulated", at(*BLOCK, "sampler", "method")("By hand.")),
    ("simulated", at(*BLOCK, "form", "totals")(-1)),
    ("simulated", at("accuracy", "level")(1)),
    ("simulated", at("accuracy", "level")(0)),
    ("simulated", at("accuracy", "typical_margin")(-1)),
    ("simulated", at("accuracy", "simulated_draws")(-1)),
    ("simulated", at("accuracy", "simulated_draws")(1)),
    ("simulated", at("accuracy", "typical_margin")(0)),
    ("simulated", at("accuracy", "typical_margin")(1)),
    ("simulated", at("accuracy", "typical_margin")(5)),  # other draws can have given 6 or 7, as here
    ("simulated", at("accuracy", "typical_margin")(8)),
    ("simulated", at("accuracy", "level")(0.9)),
    ("simulated", at("accuracy", "level")(0.99)),
    ("simulated", at("accuracy")(BOUND | {"typical_margin": 5})),
    ("holes", at("accuracy", "typical_margin")(3)),
    ("gaussian", at("accuracy", "typical_margin")(15)),
    ("gaussian", at("accuracy", "typical_margin")(18)),
    ("tight", at("accuracy", "typical_margin")(20)),
    ("gaussian", at("accuracy", "typical_margin")(0)),
    ("rounded", at("accuracy", "typical_margin")(0)),
    ("simulated", at("exposure", "bounded")(-1)),
    ("simulated", at("exposure", "bounded")(17)),
    ("simulated", at("exposure", "not_checked")(17)),
    ("simulated", at(*FIRST, "other_value", "length")(0)),
    ("rounded", at(*BLOCK, "total_variation")(-1e-9)),
    ("rounded", at(*BLOCK, "total_variation")(2)),
    ("chains", at(*BLOCK, "sampler", "method")("two_rows")),
    ("chains", at(*BLOCK, "sampler", "steps")(lambda old: old + 1)),
    ("chains", at(*SHOWN, "upper")(1e-9)),
    ("chains", at(*SHOWN, "upper")(0)),
    ("chains", at(*SHOWN, "upper")(1.5)),
    ("chains", at(*SHOWN, "extrapolated")(0)),
    ("chains", at(*SHOWN, "extrapolated")(-1)),
    ("chains", at(*SHOWN, "lag")(0)),
    ("chains", at(*SHOWN, "give_up")(1)),
    ("chains", at(*SHOWN, "give_up")(2**50)),
    ("chains", at(*SHOWN, "unmet")(3)),
    ("chains", at(*SHOWN, "unmet")(-1)),
    ("chains", at(*SHOWN, "meetings")([])),
    ("chains", at(*SHOWN, "meetings")([[1, -5]])),
    ("chains", at(*SHOWN, "meetings")([[1, 10**11]])),
    ("chains", at(*SHOWN, "meetings")(lambda old: [[old[0][0] + 2000, 500]])),  # so late that the limit is too small
    ("chains", at(*SHOWN, "confidence")(0)),
    ("chains", at(*SHOWN, "confidence")(1)),
    ("chains", at(*SHOWN, "predicted")(2)),
    ("chains", at(*SHOWN, "predicted")(0.5)),
    ("chains", at(*SHOWN, "rounding")(-1e-9)),
    ("chains", at(*SHOWN, "rounding")(0.5)),
]


@mostly_audit(("name", "change"), NONSENSE)
def test_nonsense_fails(name, change):
    assert wrong(name, change)


@pytest.mark.audit
@pytest.mark.parametrize(
    ("name", "change"), [("simulated", at(*BLOCK, "sampler", "method")("three_rows")), ("chains", another_sampler)]
)
def test_a_method_of_a_later_version_is_not_checked(name, change, tmp_path):
    """Nothing contradicts it, but an exact method that nobody knows is no guarantee."""
    assert wrong(name, change) == []
    path = release_of(name).save(tmp_path / "out.csv")
    certificate = tmp_path / "out.certificate.json"
    document = json.loads(certificate.read_bytes())
    change(document)
    certificate.write_text(json.dumps(document))
    failed = [check for check in ks.verify(path).checks if not check.passed]
    method = document["guarantee"]["blocks"][0]["sampler"]["method"]
    assert [check.name for check in failed] == ["statement"]
    assert failed[0].words.startswith(f"not checked: this version does not know the method '{method}'")


@pytest.mark.parametrize(
    "mechanism",
    [
        ks.Laplace.per_unit(epsilon=1),
        ks.Laplace.per_unit(epsilon="1/8"),
        ks.Laplace.per_unit(epsilon=1, norm="l2"),
        ks.Gaussian(sigma=1),
    ],
)
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_no_margin_is_below_the_least_one(mechanism, level):
    """In a 2 x 2 table under both margins the noise is k (1, -1, -1, 1): the least margin of Laplace noise is exact."""
    plan = ks.plan(small_table((2, 2)), keep=["a", "b"], mechanism=mechanism)
    longest = {"l1": 4, "l2": 2}[plan.mechanism.norm]
    weight = math.exp(-2 / 1) if isinstance(mechanism, ks.Gaussian) else math.exp(-longest * float(mechanism.epsilon))
    weights = [weight ** (k * k if isinstance(mechanism, ks.Gaussian) else k) for k in range(200)]
    total = 2 * sum(weights) - 1
    margin = next(m for m in range(200) if (2 * sum(weights[: m + 1]) - 1) / total >= level - 1e-9)
    least = least_margin(plan._record, level)
    assert least == min(1, margin) if isinstance(mechanism, ks.Gaussian) else least == margin


@mostly_audit("name", ["simulated", "holes", "gaussian", "tight"])
def test_the_same_version_makes_the_same_draws(name, monkeypatch):
    """Of a released version; what is being developed has one number for many kinds of draws."""
    monkeypatch.setattr(checks, "version", lambda _: "1.0")
    same, other = (at("software")({"keepsum": number}) for number in ("1.0", "1.1"))

    def both(first, second):
        return lambda document: (first(document), second(document))

    assert wrong(name, same) == wrong(name, other) == []
    for where, change, passes in [
        (("accuracy", "typical_margin"), 1, True),
        (("accuracy", "simulated_draws"), -1, True),
        (("accuracy", "simulated_error"), 0.001, True),
        (("exposure", "bounded"), 1, False),
    ]:
        forged = at(*where)(lambda old, change=change: old + change)
        assert wrong(name, both(forged, same)), where
        assert (wrong(name, both(forged, other)) == []) == passes, where


@pytest.mark.parametrize("name", ["chains", "rounded", "simulated"])
def test_what_takes_long_is_not_simulated_to_verify(name, tmp_path, monkeypatch):
    """Chains are not even chosen again; and exact samplers not, where totals overlap in blocks of many forms."""
    release = release_of(name)
    path = release.save(tmp_path / "out.csv")

    def drawn(*_):
        raise AssertionError("verify drew noise")

    monkeypatch.setattr(other_draws, "MOST_GROUPS", 0)
    monkeypatch.setattr("keepsum.sampling.core.rng.rng", drawn)
    monkeypatch.setattr("keepsum.planning.samplers.BlockSamplers.choices", property(drawn))
    assert ks.verify(path)


def test_slow_draws_are_not_made_again(monkeypatch):
    monkeypatch.setattr(other_draws, "MOST_EFFORT", 0)
    monkeypatch.setattr(other_draws, "accuracy", None)
    assert wrong("simulated", at("accuracy", "typical_margin")(8)) == []


@pytest.mark.parametrize(("name", "typical", "passing"), [("chained", 1, [1, 2]), ("chained_wide", 6, [5, 6, 7])])
def test_how_far_a_margin_may_be_off(name, typical, passing):
    """Of the margins near the true one, those that six standard errors leave possible pass: one less and one more."""
    assert json.loads(release_of(name).certificate.to_json())["accuracy"]["typical_margin"] == typical
    near = range(max(0, typical - 3), typical + 2)
    assert [margin for margin in near if not wrong(name, at("accuracy", "typical_margin")(margin))] == passing


@pytest.mark.parametrize("draws", [200, pytest.param(4000, marks=pytest.mark.audit)])
def test_no_honest_simulation_is_refused(draws):
    """Margins from 300 other simulations of a table, of few draws and of many."""
    plan = release_of("simulated").plan
    noise = np.abs(plan.sample(300 * draws, rng=ks.rng(seed=21))).reshape(300, draws, -1)
    smallest, largest = simulated_range(plan._record.blocks, 0.9, draws).typical
    margins = [estimated_margin(each, 0.9)[0] for each in noise]
    assert smallest <= min(margins) <= max(margins) <= largest
    assert largest - smallest <= 2


@pytest.mark.parametrize(("draws", "times"), [(200, 20), pytest.param(2000, 2, marks=pytest.mark.audit)])
def test_no_honest_simulation_of_focused_totals_is_refused(draws, times):
    """Margins of the totals of each focus from 200 other simulations; the limit is so many times the smallest at most.

    From 200 draws a margin may be the largest noise of all of them.
    """
    blocks = release_of("crossed").plan._record.blocks
    noise = blocks.sample(200 * draws, ks.rng(seed=22)).reshape(200, draws, -1)
    for totals, (smallest, largest) in zip(blocks.margins, simulated_range(blocks, 0.9, draws).focused, strict=True):
        sums = [np.abs(noise[:, :, totals.labels == k].sum(axis=2)) for k in range(totals.height)]
        margins = [
            sorted(estimated_margin(each[run][:, None], 0.9)[0] for each in sums)[totals.height // 2]
            for run in range(200)
        ]
        assert smallest <= min(margins) <= max(margins) <= largest
        assert largest <= times * min(margins)


@pytest.mark.parametrize("name", ["crossed", "spherical", "divided"])
def test_no_draw_is_beyond_the_limits_without_draws(name):
    """Largest noise of 100,000 draws: below what is said to be reached by none of them, and not far below."""
    blocks = release_of(name).plan._record.blocks
    noise, limits = blocks.sample(100_000, ks.rng(seed=23)), possible_range(blocks, 0.95, 100_000)
    assert np.abs(noise).max() <= limits.typical[1] <= 10 * np.abs(noise).max()
    for totals, (_, most) in zip(blocks.margins, limits.focused, strict=True):
        largest = max(np.abs(noise[:, totals.labels == k].sum(axis=1)).max() for k in range(totals.height))
        assert largest <= most <= 10 * largest
