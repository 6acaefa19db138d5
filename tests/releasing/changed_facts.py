"""Releases of every kind, and changes of single facts of their certificates."""

import copy
import json
from fractions import Fraction
from functools import cache

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import keepsum as ks
from keepsum.accuracy import simulation
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
    return ks.release(small_table((4, 4)), keep=["a", "b"], mechanism=ks.Laplace.per_unit(epsilon=0.25))


def computed():
    """Sums, cells under no total, a pinned and a bounded cell, a loss asked for one attribute; all is computed."""
    table = ks.Table.from_array(
        [[30, 40, 50], [1, 1, 0], [60, 70, 80]], axes={"a": ["x", "y", "z"], "b": ["p", "q", "r"]}
    )
    keep = ks.Invariants.subsets(9, [[0], [3, 4, 5]], names=["one", "three"]).over(table.domain)
    return ks.release(table, keep=keep, mechanism=ks.Laplace(epsilon=1, attributes=["b"]), accept_pinned="all")


def gaussian():
    return ks.release(
        small_table((3, 3, 3)), keep=[["a", "b"], ["c"]], mechanism=ks.Gaussian.per_unit(epsilon=0.5, delta="1e-6")
    )


def for_person():
    """Gaussian noise for the epsilon and delta of one person."""
    return ks.release(small_table((3, 4)), keep=["a", "b"], mechanism=ks.Gaussian(1, "1e-6"))


def for_person_focused():
    """The same with a focus: the dearest change has a rho."""
    mechanism = ks.Gaussian(1, "1e-6", focus={"a": 1})
    return ks.release(small_table((3, 4)), keep=[[]], mechanism=mechanism)


def tight():
    mechanism = ks.Gaussian.per_unit(epsilon=0.3, delta="1e-6", calibration="tight")
    return ks.release(small_table((3, 4)), keep=["a", "b"], mechanism=mechanism)


def chains():
    """Small tables have exact samplers; without these, and without rejection, chains draw them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "BUDGET", 1)
        patch.setattr(choosing, "REJECTION_PILOT", 1)
        patch.setattr(choosing_general, "BOUNDED", 0)
        patch.setattr(choosing_general, "MIXTURE_PILOT", 2 * 10**7)
        keep = cycle(2, 3, 2, 3)
        table, plan = table_over(keep), ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=1))
        plan = plan.certify(pairs=500)
        return plan.release(table, accept_delta="0.99")


def rounded():
    keep, mechanism = ROUNDED
    return ks.release(table_over(keep), keep=keep, mechanism=mechanism)


def holes():
    """Both margins of a 4 x 4 table with three structural zeros: 13 regions."""
    domain = ks.Domain({name: [f"{name}{k}" for k in range(4)] for name in "ab"})
    domain = domain.without(*({"a": f"a{k}", "b": f"b{k}"} for k in range(3)))
    return ks.release(
        ks.Table.from_array(np.arange(20, 33), domain), keep=["a", "b"], mechanism=ks.Laplace.per_unit(epsilon=1)
    )


def focused():
    """A focus on two levels, with states kept but for one that has no noise of its own; all is computed."""
    domain = ks.Domain(
        {"state": ["A", "B"], "county": {"A": ["a", "b", "c"], "B": ["d"]}, "sex": ["f", "m"]},
        within={"county": "state"},
    )
    table = ks.Table.from_array(np.arange(20, 28), domain)
    mechanism = ks.Laplace(epsilon=1, focus={"county": 1, ("county", "sex"): 2}, cell_share=3)
    return ks.release(table, keep=["state"], mechanism=mechanism)


def divided():
    """Gaussian noise with a focus on counties, which cross the kept totals."""
    domain = ks.Domain({"county": ["a", "b", "c"], "sex": ["f", "m"]})
    mechanism = ks.Gaussian(rho=1, focus={"county": 1}, cell_share=3)
    return ks.release(ks.Table.from_array(np.arange(20, 26), domain), keep=["sex"], mechanism=mechanism)


def crossed():
    """A focus on both margins of a table, whose entries are sums of two cells; margins of error are simulated."""
    mechanism = ks.Laplace.per_unit(epsilon="1/2", focus={"a": "1/10", "b": "1/5"})
    return ks.release(small_table((4, 3, 2)), keep=[[]], mechanism=mechanism)


def axes_focused():
    """A focus on two of three axes, with the totals of the third kept: axes are eliminated."""
    mechanism = ks.Laplace.per_unit(epsilon="1/2", focus={"a": "1/5", "b": "1/5"})
    return ks.release(small_table((3, 3, 2)), keep=["c"], mechanism=mechanism)


def margins_focused():
    """A focus on one two-way margin with the two others kept, which no families are summed out of."""
    mechanism = ks.Laplace.per_unit(epsilon="1/2", focus={("a", "c"): "1/4"})
    keep = [["a", "b"], ["b", "c"]]
    return ks.release(small_table((3, 3, 3)), keep=keep, mechanism=mechanism, accept_delta="1e-3")


def unequal():
    """A focus whose epsilons are so far apart that families are not summed out, though they could be."""
    focus = {"a": "2", "b": "1/20", "c": "2"}
    return ks.release(
        small_table((3, 3, 2)), keep=[], mechanism=ks.Laplace.per_unit(2, focus=focus), accept_delta="1e-2"
    )


def conservative():
    """Margins of error that are proved bounds, as those of tables that take long to simulate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "MOST_EFFORT", 0)
        mechanism = ks.Laplace.per_unit(epsilon="1/2", focus={"a": "1/10", "b": "1/5"})
        return ks.release(small_table((4, 3, 2)), keep=[[]], mechanism=mechanism)


def spherical():
    """l2 Laplace noise: all cells share one random scale."""
    return ks.release(small_table((3, 4)), keep=["a", "b"], mechanism=ks.Laplace.per_unit(epsilon="1/3", norm="l2"))


def solved():
    """A three-way table of narrow noise, which is drawn by solving for regions: layers are not split."""
    keep = [["a", "b"], ["a", "c"], ["b", "c"]]
    with pytest.warns(ks.LargeLossWarning, match="little protection"):
        return ks.release(small_table((3, 3, 3)), keep=keep, mechanism=ks.Laplace.per_unit(epsilon="1.2"))


def per_record():
    """Records of which a person may have any number: no loss per person can be requested."""
    people = pa.table({"sex": ["f", "m"] * 60, "race": ["a", "b", "c"] * 40})
    table = ks.tabulate(people, ["sex", "race"], {"sex": ["f", "m"], "race": ["a", "b", "c"]})
    return ks.release(table, keep=["sex"], mechanism=ks.Gaussian.per_unit(rho="0.1"))


def of_width():
    """Gaussian noise of a given sigma, which no loss per person gives."""
    return ks.release(small_table((3, 4)), keep=["a"], mechanism=ks.Gaussian(sigma=3))


def chained(epsilon="1"):
    """Margins along a chain: in the middle three people change, along a junction tree."""
    keep = ks.Invariants.margins(
        ks.Domain({axis: [f"{axis}0", f"{axis}1"] for axis in "abcd"}), [["a", "b"], ["b", "c"], ["c", "d"]]
    )
    return ks.release(table_over(keep), keep=keep, mechanism=ks.Laplace.per_unit(epsilon=epsilon))


def chained_wide():
    """The same with wider noise."""
    return chained("1/4")


RELEASES = {
    made.__name__: made
    for made in (
        simulated, computed, focused, crossed, divided, gaussian, tight, chains, rounded, holes, conservative, solved,
        for_person, for_person_focused, per_record, of_width, spherical, chained, chained_wide, axes_focused,
        margins_focused, unequal,
    )
}  # fmt: skip


@cache
def release_of(name):
    """A release of that kind, made when it is first needed."""
    return RELEASES[name]()


def wrong(name, change):
    """What verify finds wrong after a change; the words of an error where it cannot go on."""
    release = release_of(name)
    document = json.loads(release.certificate.to_json())
    change(document)
    try:
        facts = ks.Certificate.from_json(msgspec.json.encode(document))
        return contradictions(facts, kept_invariants(facts, release.invariants_file), release.table)
    except (ks.KeepsumError, ArithmeticError) as error:
        return [str(error)]


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


def nothing(_):
    return None


def scaled(quotient, factor):
    return str(Fraction(quotient) * Fraction(factor))


PARAMETERS = ("mechanism", "parameters")
CALIBRATED = ("mechanism", "calibrated")
PERSON = ("guarantee", "person")
FIRST = (*PERSON, "attributes", 0)
SAMPLING = ("guarantee", "sampling")
BLOCK = ("guarantee", "blocks", 0)
SHOWN = (*BLOCK, "convergence")
