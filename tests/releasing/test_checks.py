"""Every fact of a certificate changed in turn: what follows must not change, what was measured must make sense.

A fact *follows* if the declarations (domain, kept totals, mechanism) or other facts decide it: any change of it fails.
A fact was *measured* if it came from a pilot, from coupled chains or from a simulation: another version may state
another value, which passes, but nonsense fails.
"""

import copy
import json
from fractions import Fraction

import msgspec
import numpy as np
import pytest

import keepsum as ks
from keepsum.planning.selection import general as choosing_general
from keepsum.planning.selection import l1 as choosing
from keepsum.releasing.checks import contradictions
from keepsum.releasing.codec import kept_invariants
from support import ROUNDED, cycle, table_over


def small_table(shape, seed=1):
    counts = np.random.default_rng(seed).integers(20, 200, size=shape)
    axes = {name: [f"{name}{k}" for k in range(n)] for name, n in zip("abc", shape, strict=False)}
    return ks.Table.from_array(counts, axes=axes)


def simulated():
    """Both margins: rejection, with simulated margins of error."""
    return ks.release(small_table((4, 4)), keep=["a", "b"], mechanism=ks.Laplace(epsilon=0.25))


def computed():
    """Sums, cells under no total, a pinned and a bounded cell, a loss asked for one attribute; all is computed."""
    table = ks.Table.from_array(
        [[30, 40, 50], [1, 1, 0], [60, 70, 80]], axes={"a": ["x", "y", "z"], "b": ["p", "q", "r"]}
    )
    keep = ks.Invariants.subsets(9, [[0], [3, 4, 5]], names=["one", "three"]).over(table.domain)
    return ks.release(table, keep, ks.Laplace.per_person(epsilon=1, attributes=["b"]), accept_pinned="all")


def gaussian():
    return ks.release(
        small_table((3, 3, 3)), keep=[["a", "b"], ["c"]], mechanism=ks.Gaussian(epsilon=0.5, delta="1e-6")
    )


def tight():
    mechanism = ks.Gaussian(epsilon=0.3, delta="1e-6", calibration="tight")
    return ks.release(small_table((3, 4)), keep=["a", "b"], mechanism=mechanism)


def chains():
    """Small tables have exact samplers; without these, and without rejection, chains draw them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "BUDGET", 1)
        patch.setattr(choosing, "REJECTION_PILOT", 1)
        patch.setattr(choosing_general, "BOUNDED", 0)
        patch.setattr(choosing_general, "MIXTURE_PILOT", 2 * 10**7)
        keep = cycle(2, 3, 2, 3)
        table, plan = table_over(keep), ks.plan(keep, ks.Laplace(epsilon=1))
        plan = plan.certify(pairs=500)
        return plan.release(table, accept_delta="0.99")


def rounded():
    keep, mechanism = ROUNDED
    return ks.release(table_over(keep), keep, mechanism)


def holes():
    """Both margins of a 4 x 4 table with three structural zeros: 13 regions."""
    domain = ks.Domain({name: [f"{name}{k}" for k in range(4)] for name in "ab"})
    domain = domain.without(*({"a": f"a{k}", "b": f"b{k}"} for k in range(3)))
    return ks.release(ks.Table.from_array(np.arange(20, 33), domain), keep=["a", "b"], mechanism=ks.Laplace(epsilon=1))


RELEASES = {made.__name__: made for made in (simulated, computed, gaussian, tight, chains, rounded, holes)}


@pytest.fixture(scope="module")
def releases():
    """Releases as they are needed, each made once."""
    made = {}

    def get(name):
        if name not in made:
            made[name] = RELEASES[name]()
        return made[name]

    return get


def wrong(release, change):
    """What verify finds wrong after a change; the words of an error where it cannot go on."""
    document = json.loads(release.certificate.to_json())
    change(document)
    try:
        facts = ks.Certificate.from_json(msgspec.json.encode(document))
        return contradictions(facts, kept_invariants(facts, release.invariants), release.table)
    except (ks.KeepsumError, ArithmeticError) as error:
        return [str(error)]


@pytest.mark.parametrize("name", RELEASES)
def test_an_honest_release_passes(releases, name):
    assert wrong(releases(name), lambda _: None) == []


def at(*way):
    """A change of the value at that place: to a value, or by a function of the old one."""

    def to(value):
        def change(document):
            *above, last = way
            inner = document
            for key in above:
                inner = inner[key]
            inner[last] = value(copy.deepcopy(inner[last])) if callable(value) else value

        return change

    return to


def without(facts, name):
    return {key: value for key, value in facts.items() if key != name}


def exact_by(method, document):
    """The first block said to be drawn exactly by some method, and all that follows from that."""
    block = document["guarantee"]["blocks"][0]
    facts = dict.fromkeys(("acceptance", "steps", "proposals_per_step", "moves"))
    block.update(sampler={"method": method, **facts}, exactness="exact", total_variation=0.0, convergence=None)
    document["guarantee"]["sampling"] = {
        "exactness": "exact", "total_variation": 0.0, "extrapolated": None, "confidence": None, "delta": "0"
    }  # fmt: skip


def nothing(_):
    return None


def scaled(quotient, factor):
    return str(Fraction(quotient) * Fraction(factor))


PARAMETERS = ("mechanism", "parameters")
PERSON = ("guarantee", "person")
FIRST = (*PERSON, "attributes", 0)
SAMPLING = ("guarantee", "sampling")
BLOCK = ("guarantee", "blocks", 0)
SHOWN = (*BLOCK, "convergence")

FOLLOWS = [
    # What an attack found: a distance said to be unknown, or below ours; methods that cannot be; limits too good.
    ("simulated", at(*FIRST)(lambda old: old | {"any_value": None, "unknown_cells": 1}), "the distances"),
    ("simulated", at(*FIRST, "unknown_cells")(1), "the distances"),
    ("simulated", at(*PERSON, "distance", "length")(-5), "must follow the schema"),
    ("simulated", at(*BLOCK, "sampler", "method")("independent_cells"), "the blocks"),
    ("simulated", at(*BLOCK, "sampler", "method")("conditional_cells"), "the blocks"),
    ("simulated", at("accuracy", "level")(1e-300), "the accuracy"),
    ("simulated", at("accuracy", "simulated_draws")(0), "the accuracy"),
    ("computed", at("accuracy")({"level": 0.95, "typical_margin": 0, "simulated_draws": 40}), "the accuracy"),
    ("computed", at("exposure", "bounded")(2), "the exposed cells"),
    ("rounded", lambda document: exact_by("uniform_compositions", document), "the blocks"),
    ("rounded", at(*BLOCK, "total_variation")(1e-20), "the blocks"),
    ("chains", lambda document: exact_by("independent_cells", document), "the blocks"),
    ("chains", at(*SHOWN, "confidence")(1e-12), "the blocks"),
    (
        "chains",
        at(*SHOWN, "meetings")(lambda old: [[step, 1] for step, count in old for _ in range(count)]),
        "the blocks",
    ),
    ("simulated", at("mechanism", "name")("x" * 10**6), "must follow the schema"),
    ("simulated", at(*PARAMETERS, "epsilon")("1" * 5000), "must follow the schema"),
    ("simulated", at(*PARAMETERS, "epsilon")("1/8"), "the per-person loss"),
    ("simulated", at(*PARAMETERS, "epsilon")("2/8"), "the mechanism"),
    ("simulated", at("mechanism", "parameters")({}), "must have an epsilon"),
    ("simulated", at("mechanism", "name")("gaussian"), "must have a sigma"),
    ("simulated", at("mechanism", "name")("none"), "must be gaussian or laplace"),
    ("simulated", at("mechanism", "norm")("l2"), "the per-person loss"),
    ("simulated", at(*PARAMETERS)({"epsilon": "1/4", "delta": "1/2"}), "an epsilon and nothing else"),
    ("simulated", at(*PARAMETERS)({"epsilon": "1e4000"}), "must follow the schema"),
    ("gaussian", at(*PARAMETERS, "sigma")("10"), "the mechanism"),
    ("gaussian", at(*PARAMETERS, "sigma")(lambda old: f"1{old}"), "the mechanism"),
    ("gaussian", at(*PARAMETERS)(lambda old: without(old, "sigma")), "must have a sigma"),
    ("gaussian", at(*PARAMETERS, "delta")("1/2000000"), "the mechanism"),
    ("gaussian", at(*PARAMETERS)(lambda old: without(old, "calibration")), "the mechanism"),
    ("gaussian", at(*PARAMETERS)(lambda old: without(old, "epsilon")), "must have a sigma"),
    ("gaussian", at("mechanism", "norm")("l1"), "must have a sigma"),
    ("tight", at(*PARAMETERS, "sigma")(lambda old: scaled(old, "0.9999")), "the mechanism"),
    ("tight", at(*PARAMETERS, "sigma")(lambda old: scaled(old, "1.1")), "the mechanism"),
    ("tight", at(*PARAMETERS, "calibration")("zcdp"), "the mechanism"),
    ("tight", at(*PARAMETERS, "calibration")("paper"), "the mechanism"),
    ("simulated", at("table", "cells")(17), "the number of cells"),
    ("simulated", at(*PERSON, "distance", "length")(2), "the distances"),
    ("simulated", at(*PERSON, "distance", "length")(1000), "the distances"),
    ("simulated", at(*PERSON, "distance", "exact")(False), "the distances"),
    ("simulated", at(*PERSON, "epsilon")("0.5"), "the per-person loss"),
    ("simulated", at(*PERSON, "epsilon")("0.99999"), "the per-person loss"),
    ("simulated", at(*PERSON, "epsilon")("1.1"), "the per-person loss"),
    ("simulated", at(*PERSON, "epsilon")("1e999"), "the per-person loss"),
    ("simulated", at(*PERSON, "epsilon")("1e999999999"), "must follow the schema"),
    ("simulated", at(*PERSON, "epsilon")(nothing), "the per-person loss"),
    ("simulated", at(*PERSON, "delta")("0"), "the per-person loss"),
    ("simulated", at(*PERSON, "rho")("1"), "the per-person loss"),
    ("gaussian", at(*PERSON, "delta")("1e-6"), "the per-person loss"),
    ("gaussian", at(*PERSON, "delta")(nothing), "the per-person loss"),
    ("simulated", at(*PERSON, "attributes")([]), "the distances"),
    ("simulated", at(*PERSON, "attributes")(lambda old: old[::-1]), "the distances"),
    ("simulated", at(*FIRST, "axis")("b"), "the distances"),
    ("simulated", at(*FIRST, "any_value", "length")(2), "the distances"),
    ("simulated", at(*FIRST, "any_value", "length")(5), "the distances"),
    ("simulated", at(*FIRST, "any_value", "exact")(False), "the distances"),
    ("simulated", at(*FIRST, "any_value")(nothing), "the distances"),
    ("simulated", at(*FIRST, "other_value", "length")(3), "the distances"),
    ("simulated", at(*FIRST, "other_value")(nothing), "the distances"),
    ("simulated", at(*FIRST, "fixed_values")(1), "the distances"),
    ("simulated", at(*FIRST, "unprotected_cells")(1), "the distances"),
    ("simulated", at(*FIRST, "stuck_cells")(1), "the distances"),
    ("simulated", at(*FIRST, "unknown_cells")(-1), "the distances"),
    ("computed", at(*FIRST, "fixed_values")(5), "the distances"),
    ("computed", at(*FIRST, "unprotected_cells")(lambda old: old + 1), "the distances"),
    ("computed", at(*PERSON, "asked", "attributes")(["c"]), "must be axes with more than one category"),
    ("computed", at(*PERSON, "asked", "attributes")([]), "a list of one or more different axes"),
    ("simulated", at(*SAMPLING, "exactness")("rounded"), "the sampling"),
    ("simulated", at(*SAMPLING, "total_variation")(1e-9), "the sampling"),
    ("simulated", at(*SAMPLING, "delta")("1e-9"), "the sampling"),
    ("simulated", at(*SAMPLING, "confidence")(0.95), "the sampling"),
    ("simulated", at(*SAMPLING, "extrapolated")(0.5), "the sampling"),
    ("rounded", at(*SAMPLING, "exactness")("exact"), "the sampling"),
    ("rounded", at(*SAMPLING, "total_variation")(0), "the sampling"),
    ("rounded", at(*SAMPLING, "delta")("0"), "the sampling"),
    ("rounded", at(*BLOCK, "exactness")("exact"), "the blocks"),
    ("rounded", at(*BLOCK, "total_variation")(0), "the blocks"),
    ("chains", at(*SAMPLING, "exactness")("exact"), "the sampling"),
    ("chains", at(*SAMPLING, "total_variation")(lambda old: old / 2), "the sampling"),
    ("chains", at(*SAMPLING, "extrapolated")(lambda old: old / 2), "the sampling"),
    ("chains", at(*SAMPLING, "extrapolated")(nothing), "the sampling"),
    ("chains", at(*SAMPLING, "confidence")(0.99), "the sampling"),
    ("chains", at(*SAMPLING, "delta")("1e-9"), "the sampling"),
    ("chains", at(*SAMPLING, "delta")("0.9"), "the sampling"),
    ("chains", at(*BLOCK, "exactness")("exact"), "the blocks"),
    ("chains", at(*BLOCK, "total_variation")(lambda old: old / 2), "the blocks"),
    ("chains", at(*SHOWN)(nothing), "the blocks"),
    ("chains", at(*SHOWN, "pairs")(1000), "the blocks"),
    ("chains", at(*SHOWN, "steps")(lambda old: old + 1), "the blocks"),
    ("simulated", at("guarantee", "blocks")([]), "the blocks"),
    ("simulated", at(*BLOCK, "blocks")(2), "the blocks"),
    ("simulated", at(*BLOCK, "cells")(15), "the blocks"),
    ("simulated", at(*BLOCK, "form", "kind")("free"), "the blocks"),
    ("simulated", at(*BLOCK, "form", "kind")("sums"), "the blocks"),
    ("simulated", at(*BLOCK, "form", "regions")(15), "the blocks"),
    ("simulated", at(*BLOCK, "form", "shape")([4, 5]), "the blocks"),
    ("simulated", at(*BLOCK, "form", "shape")([]), "the blocks"),
    ("simulated", at(*BLOCK, "form", "shape")([8, 8]), "the blocks"),
    ("simulated", at(*BLOCK, "form", "smallest")(2), "the blocks"),
    ("holes", lambda document: exact_by("two_rows", document), "the blocks"),
    ("holes", lambda document: exact_by("uniform_compositions", document), "the blocks"),
    ("holes", at(*BLOCK, "form", "shape")([7, 7]), "the blocks"),  # so long that a row has a single entry
    ("holes", at(*BLOCK, "form", "shape")([4, 3]), "the blocks"),
    ("holes", at(*BLOCK, "form", "shape")([2, 2, 4]), "the blocks"),  # zeros in three ways
    ("computed", at(*BLOCK, "cells")(lambda old: old - 1), "the blocks"),
    ("computed", at("guarantee", "blocks")(lambda old: old[1:]), "the blocks"),
    ("simulated", at("exposure", "pinned")([["a0", "b0"]]), "the exposed cells"),
    ("computed", at("exposure", "pinned")([]), "the exposed cells"),
    ("computed", at("exposure", "pinned")([["x", "q"]]), "the exposed cells"),
    ("computed", at("exposure", "bounded")(lambda old: old - 1), "the exposed cells"),
    ("computed", at("exposure", "bounded")(lambda old: old + 1), "the exposed cells"),
    ("computed", at("exposure", "not_checked")(1), "the exposed cells"),
    ("computed", at("accuracy", "typical_margin")(lambda old: old - 1), "the accuracy"),
    ("computed", at("accuracy", "level")(0.99), "the accuracy"),
    ("simulated", at("accuracy", "simulated_draws")(0), "the accuracy"),
    ("simulated", at("postprocessing")(["rounded"]), "postprocessing and ledger"),
    ("simulated", at("ledger")("paid"), "postprocessing and ledger"),
]


@pytest.mark.parametrize(("name", "change", "finding"), FOLLOWS)
def test_what_follows_must_not_change(releases, name, change, finding):
    assert any(finding in found for found in wrong(releases(name), change))


def looser(document):
    """A larger limit, with all that follows from it: another way to bound the same meeting times."""
    block = document["guarantee"]["blocks"][0]
    block["convergence"]["upper"] *= 2
    block["total_variation"] *= 2
    document["guarantee"]["sampling"]["total_variation"] *= 2
    document["guarantee"]["sampling"]["delta"] = str(float(document["guarantee"]["sampling"]["delta"]) * 2)


def bounds_of_distances(document):
    """Another version may not know a distance exactly, and then state a larger one."""
    person = document["guarantee"]["person"]
    for attribute in person["attributes"]:
        attribute["any_value"] = attribute["other_value"] = {"length": 6, "exact": False}
    person["distance"] = {"length": 6, "exact": False}
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


MEASURED = [
    ("simulated", at(*BLOCK, "sampler", "acceptance")(0.9)),
    ("simulated", at(*BLOCK, "sampler", "acceptance")(nothing)),
    ("simulated", at(*BLOCK, "sampler", "method")("three_rows")),
    ("simulated", at(*BLOCK, "form", "totals")(7)),
    ("holes", as_regions),
    ("simulated", at("accuracy", "simulated_draws")(100_000)),
    ("simulated", at("accuracy", "typical_margin")(7)),
    ("simulated", at("accuracy", "level")(0.9)),
    ("simulated", at("exposure", "bounded")(3)),
    ("simulated", at("exposure", "not_checked")(16)),
    ("simulated", at(*PERSON, "epsilon")("1.0000001")),
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
    ("chains", another_sampler),
    ("rounded", at(*BLOCK, "sampler", "acceptance")(0.5)),
]


@pytest.mark.parametrize(("name", "change"), MEASURED)
def test_what_was_measured_may_change(releases, name, change):
    assert wrong(releases(name), change) == []


NONSENSE = [
    ("simulated", at(*BLOCK, "sampler", "acceptance")(0)),
    ("simulated", at(*BLOCK, "sampler", "acceptance")(1.5)),
    ("simulated", at(*BLOCK, "sampler", "steps")(0)),
    ("simulated", at(*BLOCK, "sampler", "moves")(0)),
    ("simulated", at(*BLOCK, "sampler", "proposals_per_step")(-1)),
    ("simulated", at(*BLOCK, "sampler", "method")("mixture_chain")),
    ("simulated", at(*BLOCK, "sampler", "method")("By hand.")),
    ("simulated", at(*BLOCK, "form", "totals")(-1)),
    ("simulated", at("accuracy", "level")(1)),
    ("simulated", at("accuracy", "level")(0)),
    ("simulated", at("accuracy", "typical_margin")(-1)),
    ("simulated", at("accuracy", "simulated_draws")(-1)),
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


@pytest.mark.parametrize(("name", "change"), NONSENSE)
def test_nonsense_fails(releases, name, change):
    assert wrong(releases(name), change)


def test_nothing_is_drawn_or_simulated_to_verify(releases, tmp_path, monkeypatch):
    path = releases("simulated").save(tmp_path / "out.csv")

    def drawn(*_):
        raise AssertionError("verify drew noise")

    monkeypatch.setattr("keepsum.sampling.core.rng.rng", drawn)
    monkeypatch.setattr("keepsum.planning.samplers.BlockSamplers.choices", property(drawn))
    assert ks.verify(path)
