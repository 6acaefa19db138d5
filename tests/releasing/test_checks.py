"""Every fact of a certificate that follows, changed in turn: any change fails.

A fact *follows* if the declarations (domain, kept totals, mechanism) or other facts decide it.
"""

from fractions import Fraction
from functools import partial

from keepsum.privacy.calibration import of_rho
from releasing.changed_facts import (
    BLOCK,
    CALIBRATED,
    FIRST,
    PARAMETERS,
    PERSON,
    RELEASES,
    SAMPLING,
    SHOWN,
    at,
    nothing,
    scaled,
    without,
    wrong,
)
from support import mostly_audit


def with_person(length, rule, document):
    """A distance of one person where none is known, with all that follows from it."""
    person, stated = document["guarantee"]["person"], {"length": length, "exact": False, "focused": [], "rule": rule}
    for attribute in person["attributes"]:
        attribute.update(any_value=stated, other_value=stated, unknown_cells=0)
    epsilon = document["mechanism"]["parameters"]["epsilon"]
    person.update(distance=stated, epsilon=str(length * Fraction(epsilon)))


def by_rule(length, rule, document):
    """Another upper bound for the middle of a chain, by another rule, with all that follows from it."""
    person, stated = document["guarantee"]["person"], {"length": length, "exact": False, "focused": [], "rule": rule}
    for attribute in person["attributes"]:
        if attribute["axis"] in ("b", "c"):
            attribute.update(any_value=stated, other_value=stated)
    person.update(distance=stated, epsilon=str(length))


NONNEGATIVE = {
    "kind": "nonnegative", "norm": "l1", "unique": True, "sha256": "0" * 64,
    "cells_changed": 0, "l1_distance": 0, "largest_change": 0,
}  # fmt: skip


@mostly_audit("name", RELEASES)
def test_an_honest_release_passes(name):
    assert wrong(name, lambda _: None) == []


def exact_by(method, document, acceptance=None):
    """The first block said to be drawn exactly by some method, and all that follows from that."""
    block = document["guarantee"]["blocks"][0]
    facts = dict.fromkeys(("steps", "proposals_per_step", "moves"))
    block.update(
        sampler={"method": method, "acceptance": acceptance, **facts},
        exactness="exact",
        total_variation=0.0,
        convergence=None,
    )
    document["guarantee"]["sampling"] = {
        "exactness": "exact", "total_variation": 0.0, "extrapolated": None, "confidence": None, "delta": "0"
    }  # fmt: skip


def as_table(document):
    """A block of 15 independent totals said to be a two-way table with as many, which has an exact sampler."""
    exact_by("column_splitting", document)
    document["guarantee"]["blocks"][0]["form"].update(kind="table", shape=[8, 8])


def as_eliminated(document):
    """A table under all two-way margins said to be drawn by eliminating axes, which it has no families for."""
    exact_by("axis_elimination", document, acceptance=0.9)
    document["guarantee"]["blocks"][0]["form"].update(kind="regions", shape=[])


def wider(mechanism):
    """Noise with a focus that loses less by 1/1,000 throughout, and is said to be calibrated to the same epsilon."""
    parameters, (focus,) = mechanism["parameters"], mechanism["focus"]
    rho = scaled(parameters["rho"], "0.999")
    calibrated = mechanism["calibrated"] | {"rho": scaled(mechanism["calibrated"]["rho"], "0.999")}
    return mechanism | {
        "parameters": parameters | {"rho": rho, "sigma": str(of_rho(Fraction(rho)))},
        "focus": [focus | {"rho": scaled(focus["rho"], "0.999")}],
        "calibrated": calibrated,
    }


FOLLOWS = [
    # What an attack found: a distance said to be unknown, or below ours; methods that cannot be; limits too good.
    ("simulated", at(*FIRST)(lambda old: old | {"any_value": None, "unknown_cells": 1}), "the distances"),
    ("simulated", at(*FIRST, "unknown_cells")(1), "the distances"),
    # A distance where none is known, in either reading; other cells without one, or more that are not protected.
    ("rounded", partial(with_person, 8, "graver"), "the distances"),
    ("rounded", partial(with_person, 4, "exchange"), "the distances"),
    (
        "rounded",
        at(*FIRST, "any_value")({"length": 8, "exact": False, "focused": [], "rule": "graver"}),
        "the distances",
    ),
    ("rounded", at(*FIRST, "unknown_cells")(1), "the distances"),
    # An upper bound by a rule that is not ours where the bound is, or that no part of these totals has.
    ("chained", partial(by_rule, 6, "table"), "the distances"),
    ("chained", partial(by_rule, 6, "graver"), "the distances"),
    ("chained", partial(by_rule, 8, "unimodular"), "the distances"),
    ("chained", partial(by_rule, 8, "cycles"), "the distances"),
    ("rounded", at(*FIRST, "stuck_cells")(1), "the distances"),
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
    ("chains", lambda document: as_table(document), "the blocks"),
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
    ("gaussian", at(*PARAMETERS, "sigma")(lambda old: scaled(old, "1.0025")), "the mechanism"),
    ("gaussian", at(*PARAMETERS, "sigma")(lambda old: f"1{old}"), "the mechanism"),
    ("gaussian", at(*PARAMETERS)(lambda old: without(old, "sigma")), "must have a sigma"),
    ("gaussian", at(*PARAMETERS, "delta")("1/2000000"), "the mechanism"),
    ("gaussian", at(*PARAMETERS)(lambda old: without(old, "calibration")), "must have a version"),
    ("gaussian", at(*PARAMETERS)(lambda old: without(old, "version")), "must have a version"),
    ("gaussian", at(*PARAMETERS, "version")("2"), "must have a version"),
    ("gaussian", at(*PARAMETERS, "sigma")(lambda old: scaled(old, "0.99")), "the mechanism"),
    ("gaussian", at(*PARAMETERS)(lambda old: without(old, "epsilon")), "must have a sigma"),
    ("gaussian", at("mechanism", "norm")("l1"), "must have a sigma"),
    ("for_person", at(*PARAMETERS, "sigma")(lambda old: scaled(old, "0.999")), "the mechanism"),
    ("for_person", at(*PARAMETERS, "sigma")(lambda old: scaled(old, "1.1")), "the mechanism"),
    ("for_person", at(*PARAMETERS, "sigma")(lambda old: scaled(old, "1.0002")), "the mechanism"),
    ("for_person", at(*CALIBRATED, "epsilon")("10003/10000"), "the mechanism"),
    ("for_person", at(*CALIBRATED, "delta")("1003/1000000000"), "the mechanism"),
    ("for_person", at(*CALIBRATED, "epsilon")("9/10"), "the mechanism"),
    ("for_person", at(*CALIBRATED, "epsilon")("11/10"), "the mechanism"),
    ("for_person", at(*CALIBRATED, "delta")("1/2000000"), "the mechanism"),
    ("for_person", at(*CALIBRATED, "length")(2), "what the noise was calibrated to"),
    ("for_person", at(*CALIBRATED, "exact")(False), "what the noise was calibrated to"),
    ("for_person", at(*CALIBRATED, "length")(None), "must have a squared length"),
    ("for_person", at(*CALIBRATED, "rho")("1"), "must have a squared length"),
    ("for_person", at(*CALIBRATED, "version")(2), "must follow the schema"),
    ("for_person", at(*CALIBRATED, "rule")("other"), "must follow the schema"),
    ("for_person", at("mechanism")(lambda old: without(old, "calibrated")), "the per-person loss"),
    ("for_person", at(*PERSON, "epsilon")("0.99"), "the per-person loss"),
    ("for_person", at(*PERSON, "delta")("9e-7"), "the per-person loss"),
    ("for_person_focused", at(*CALIBRATED, "rho")(lambda old: scaled(old, "0.9")), "what the noise was calibrated to"),
    ("for_person_focused", at(*CALIBRATED, "rho")(lambda old: scaled(old, "1.1")), "the mechanism"),
    ("for_person_focused", at("mechanism")(wider), "the mechanism"),
    ("for_person_focused", at(*CALIBRATED, "epsilon")("9/10"), "the mechanism"),
    ("for_person_focused", at("mechanism", "focus", 0, "rho")("1/100"), "what the noise was calibrated to"),
    ("tight", at(*PARAMETERS, "sigma")(lambda old: scaled(old, "0.9999")), "the mechanism"),
    ("tight", at(*PARAMETERS, "sigma")(lambda old: scaled(old, "1.1")), "the mechanism"),
    ("tight", at(*PARAMETERS, "calibration")("zcdp"), "the mechanism"),
    ("tight", at(*PARAMETERS, "calibration")("paper"), "the mechanism"),
    ("focused", at("mechanism", "focus")([]), "the distances"),
    ("focused", at("mechanism")(lambda old: without(old, "focus")), "the distances"),
    ("focused", at("mechanism", "focus", 0, "epsilon")("1/100"), "the per-person loss"),
    ("focused", at("mechanism", "focus", 0, "epsilon")("0"), "must be a positive number"),
    ("focused", at("mechanism", "focus", 0, "axes")(["state"]), "must be on totals that have noise"),
    ("focused", at("mechanism", "focus", 0, "axes")(["county", "sex"]), "must be stated once"),
    ("focused", at("mechanism", "focus", 0, "axes")(["sex"]), "the distances"),
    ("crossed", at("mechanism", "focus", 0, "axes")(["c"]), "the blocks"),
    ("crossed", at("mechanism", "focus", 0, "axes")(["a", "b"]), "the blocks"),
    ("crossed", at("mechanism", "focus", 1, "epsilon")("1/100"), "the per-person loss"),
    ("crossed", at(*PERSON, "distance", "focused")(lambda old: [old[0], 0]), "the distances"),
    ("crossed", at(*PERSON, "within", 0, "focused")([0, 0]), "the distances"),
    ("crossed", at(*BLOCK, "sampler", "method")("nested_totals"), "the blocks"),
    ("crossed", at(*BLOCK, "form", "kind")("table"), "the blocks"),
    ("crossed", at(*BLOCK, "form", "kind")("nested"), "the blocks"),
    ("crossed", at(*BLOCK, "form", "shape")([6, 2]), "the blocks"),
    ("crossed", at(*BLOCK, "form", "shape")([]), "the blocks"),
    ("crossed", at(*BLOCK, "form", "totals")(1), "the blocks"),
    ("crossed", at(*BLOCK, "form", "regions")(11), "the blocks"),
    ("crossed", at("accuracy", "focused_margins")([]), "the accuracy"),
    ("crossed", at("accuracy", "focused_margins")(lambda old: [old[0], 0]), "the accuracy"),
    ("crossed", at("accuracy", "simulated_draws")(0), "the accuracy"),
    ("focused", at("mechanism", "name")("gaussian"), "must have a sigma and the parameters"),
    ("focused", at("mechanism", "norm")("l2"), "must have an epsilon in the l1 norm, and a rho in the l2 norm"),
    ("divided", at("mechanism", "focus", 0, "epsilon")("1/9"), "must have an epsilon in the l1 norm, and a rho in"),
    ("divided", at("mechanism", "focus", 0, "rho")("9"), "the distances"),
    ("divided", at("mechanism", "parameters")({"sigma": "2"}), "with a focus in a certificate must have a sigma and"),
    ("divided", at(*PERSON, "distance", "focused")([4]), "the distances"),
    ("divided", at(*PERSON, "rho")("0.9"), "the per-person loss"),
    ("simulated", at("mechanism", "focus")([{"axes": ["a"], "epsilon": "1"}]), "must be on totals that have noise"),
    ("focused", at(*PERSON, "distance", "focused")(lambda old: [0, *old[1:]]), "the distances"),
    ("focused", at(*PERSON, "distance", "focused")([]), "the distances"),
    ("focused", at(*PERSON, "distance")(lambda old: without(old, "focused")), "the per-person loss"),
    ("focused", at(*FIRST, "any_value", "focused")(lambda old: [0, *old[1:]]), "the distances"),
    ("focused", at(*FIRST, "other_value", "focused")([1, 4]), "the distances"),
    ("focused", at(*FIRST, "any_value", "exact")(True), "the distances"),
    ("simulated", at(*FIRST, "any_value", "rule")("move"), "the distances"),
    ("holes", at(*FIRST, "any_value", "rule")("exchange"), "the distances"),
    ("holes", at(*FIRST, "any_value", "rule")(nothing), "the distances"),
    ("focused", at(*PERSON, "within", 0, "focused")([0, 0]), "the distances"),
    ("focused", at(*PERSON, "within")([]), "the distances"),
    ("simulated", at(*PERSON, "within")([{"length": 2, "exact": True}]), "the distances"),
    ("focused", at(*PERSON, "epsilon")("0.9"), "the per-person loss"),
    ("focused", at(*BLOCK, "sampler", "method")("part_by_part"), "the blocks"),
    ("focused", at(*BLOCK, "form", "totals")(0), "the blocks"),
    ("focused", at("accuracy", "focused_margins", 0)(1), "the accuracy"),
    ("focused", at("accuracy", "focused_margins")([]), "the accuracy"),
    ("simulated", at("accuracy", "focused_margins")([3]), "the accuracy"),
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
    ("simulated", at(*BLOCK, "form", "totals")(7), "the blocks"),
    ("computed", at("guarantee", "blocks", -1, "form", "totals")(2**53 - 1), "the blocks"),
    ("computed", at("guarantee", "blocks", -1, "form", "largest")(lambda old: old + 1), "the blocks"),
    ("rounded", lambda document: exact_by("solved_regions", document), "the blocks"),
    ("rounded", lambda document: exact_by("solved_regions", document, acceptance=0.01), "the blocks"),
    ("solved", lambda document: exact_by("layer_splitting", document, acceptance=0.9), "the blocks"),
    ("solved", as_eliminated, "the blocks"),
    ("axes_focused", lambda document: exact_by("column_splitting", document, acceptance=0.9), "the blocks"),
    ("margins_focused", lambda document: exact_by("axis_elimination", document, acceptance=0.9), "the blocks"),
    ("unequal", lambda document: exact_by("axis_elimination", document, acceptance=0.9), "the blocks"),
    ("holes", lambda document: exact_by("two_rows", document), "the blocks"),
    ("holes", lambda document: exact_by("uniform_compositions", document), "the blocks"),
    ("holes", lambda document: exact_by("part_by_part", document), "the blocks"),
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
    # Draws are claimed where nothing is simulated.
    ("computed", at("accuracy", "simulated_draws")(4000), "the accuracy"),
    ("computed", at("accuracy")(lambda old: old | {"typical_margin": 5, "simulated_draws": 4000}), "the accuracy"),
    ("focused", at("accuracy", "simulated_draws")(4000), "the accuracy"),
    ("of_width", at(*PERSON, "asked")({"attributes": None, "to": "any value"}), "the distances"),
    ("gaussian", at(*PARAMETERS)(lambda old: {"sigma": old["sigma"]}), "the per-person loss"),
    ("focused", at(*PERSON, "within", 0)(nothing), "the distances"),
    ("simulated", at(*PERSON, "epsilon")("1.0001"), "the per-person loss"),
    ("chains", at(*SAMPLING, "delta")(lambda old: str(float(old) * 1.005)), "the sampling"),
    ("simulated", at("accuracy", "simulated_draws")(0), "the accuracy"),
    ("simulated", at("postprocessing")([NONNEGATIVE, NONNEGATIVE]), "postprocessing"),
    ("simulated", at("software")({"numpy": "2.0"}), "the software"),
    ("simulated", at("software")({"keepsum": ""}), "the software"),
    ("simulated", at(*FIRST, "other_value")({"length": 6, "exact": False}), "the distances"),
    ("rounded", at("exposure", "not_checked")(1), "the exposed cells"),  # of a block all cells were checked, or none
]


@mostly_audit(("name", "change", "finding"), FOLLOWS)
def test_what_follows_must_not_change(name, change, finding):
    assert any(finding in found for found in wrong(name, change))
