"""Options over a spec, and a table's own keys over those of the whole spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keepsum.cli.declaration import Declaration
from keepsum.errors import InputError
from keepsum.specs.job import jobs_of, nesting_of
from keepsum.specs.merging import for_columns, merged, overridden
from keepsum.specs.reading import read_spec
from keepsum.specs.spec import Axes, Keep, Noise, Output, Postprocess, Records, Source, Spec


def test_what_is_left_out_comes_from_below() -> None:
    below = Spec(source=Source(data="a.csv", count="n"), keep=Keep(margins=["county"], total=True))
    above = Spec(source=Source(data="b.csv"), keep=Keep(margins=["sex"]))
    both = merged(below, above)
    assert both.source == Source(data="b.csv", count="n")
    assert both.keep == Keep(margins=["sex"], total=True)
    assert merged(below, Spec()) == below
    assert merged(Spec(), below) == below


def test_tables_are_merged_key_by_key() -> None:
    below = Spec(axes=Axes(categories={"sex": ["f", "m"], "age": ["old", "young"]}, within={"a": "b"}))
    above = Spec(axes=Axes(categories={"sex": ["m", "f"]}, within={"c": "d"}))
    both = merged(below, above).axes
    assert both.categories == {"sex": ["m", "f"], "age": ["old", "young"]}
    assert both.within == {"a": "b", "c": "d"}


GAUSSIAN = {"kind": "gaussian"}


@pytest.mark.parametrize(
    ("below", "above", "both"),
    [
        ({"epsilon": 1}, {"epsilon": 2}, {"epsilon": 2}),
        ({**GAUSSIAN, "epsilon": 1, "delta": 1e-6}, {"epsilon": 2}, {**GAUSSIAN, "epsilon": 2, "delta": 1e-6}),
        ({**GAUSSIAN, "epsilon": 1, "delta": 1e-6}, {"rho": 2}, {**GAUSSIAN, "rho": 2}),
        ({**GAUSSIAN, "rho": 1}, {"sigma": 2}, {**GAUSSIAN, "sigma": 2}),
        ({**GAUSSIAN, "rho": 1}, {"epsilon": 2, "delta": 1e-6}, {**GAUSSIAN, "epsilon": 2, "delta": 1e-6}),
        ({**GAUSSIAN, "epsilon": 1, "delta": 1e-6}, {"kind": "laplace"}, {"kind": "laplace", "epsilon": 1}),
        ({**GAUSSIAN, "rho": 1}, {"kind": "laplace", "epsilon": 3}, {"kind": "laplace", "epsilon": 3}),
        ({"epsilon": 1, "norm": "l1"}, {**GAUSSIAN, "rho": 1}, {**GAUSSIAN, "epsilon": None, "rho": 1}),
        ({"epsilon": 1, "norm": "l2"}, {"per_person": True}, {"epsilon": 1, "norm": "l2", "per_person": True}),
    ],
)
def test_a_privacy_parameter_replaces_those_it_cannot_go_with(below: Any, above: Any, both: Any) -> None:
    assert merged(Spec(mechanism=Noise(**below)), Spec(mechanism=Noise(**above))).mechanism == Noise(**both)


TWO = """
[source]
data = "people.csv"
[axes]
categories = { county = ["A", "B"], sex = ["f", "m"] }
within = { town = "county" }
[records]
bins = { age = [0, 18, ""] }
[mechanism]
epsilon = 1
[[table]]
name = "by sex"
records.by = ["county", "sex"]
[[table]]
name = "by age"
records.by = ["county", "age"]
mechanism.epsilon = 2
[[marginal]]
of = "by age"
output = "x.csv"
"""


def test_tables_of_a_spec_share_what_concerns_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "keepsum.toml"
    path.write_text(TWO)
    (sex, age), marginals = jobs_of(*read_spec(path), Spec())
    assert (sex.name, age.name) == ("by sex", "by age")
    assert sex.spec.records == Records(by=["county", "sex"], bins={})
    assert sex.spec.axes == Axes(categories={"county": ["A", "B"], "sex": ["f", "m"]}, within={})
    assert age.spec.records == Records(by=["county", "age"], bins={"age": [0, 18, ""]})
    assert age.spec.axes == Axes(categories={"county": ["A", "B"]}, within={})
    assert (sex.spec.mechanism.epsilon, age.spec.mechanism.epsilon) == (1, 2)
    assert [marginal.of for marginal in marginals] == ["by age"]


def test_one_of_several_tables_with_options(tmp_path: Path) -> None:
    path = tmp_path / "keepsum.toml"
    path.write_text(TWO)
    options = Spec(mechanism=Noise(epsilon="0.1"))
    (job,), marginals = jobs_of(*read_spec(path), options, "by sex")
    assert (job.spec.mechanism.epsilon, marginals) == ("0.1", [])
    with pytest.raises(InputError, match=r"must be used with --only NAME, because .* \(by sex, by age\)"):
        jobs_of(*read_spec(path), options)
    with pytest.raises(InputError, match="must be a table of"):
        jobs_of(*read_spec(path), options, "by county")
    path.write_text("[source]\ndata = 'x'\n")
    with pytest.raises(InputError, match="requires a spec with several tables"):
        jobs_of(*read_spec(path), options, "by sex")


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("mechanism.epsilon = -1", "line 1: Epsilon must be a positive number"),
        ("mechanism.epsilon = 1\nmechanism.delta = 1", "line 2: Option --delta requires"),
        ("mechanism.norm = 'l1'\nmechanism.kind = 'gaussian'", "line 1: Option --norm must be l2"),
    ],
)
def test_an_error_of_the_library_has_a_line(key: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "keepsum.toml"
    path.write_text(key)
    (job,), _ = jobs_of(*read_spec(path), Spec())
    with pytest.raises(InputError, match=words):
        job.noise()


def test_a_spec_is_not_blamed_for_an_option(tmp_path: Path) -> None:
    path = tmp_path / "keepsum.toml"
    path.write_text("[source]\ndata = 'x'\n\n[mechanism]\nepsilon = 1\n")
    (job,), _ = jobs_of(*read_spec(path), Spec(mechanism=Noise(epsilon="-3")))
    with pytest.raises(InputError) as caught:
        job.noise()
    assert str(caught.value) == "Epsilon must be a positive number, got '-3'."


def test_false_and_empty_say_something() -> None:
    """Whoever withdraws an acceptance in a table must not find it accepted."""
    below = Spec(
        source=Source(keep_order=True, drop=["x"]),
        keep=Keep(margins=["state"], total=True),
        mechanism=Noise(per_person=True, attributes=["sex"]),
        postprocess=Postprocess(nonnegative=True),
        output=Output(accept_pinned=["all"]),
    )
    above = Spec(
        source=Source(keep_order=False, drop=[]),
        keep=Keep(margins=[], total=False),
        mechanism=Noise(per_person=False, attributes=[]),
        postprocess=Postprocess(nonnegative=False),
        output=Output(accept_pinned=[]),
        axes=Axes(categories={}),
    )
    assert merged(below, above) == above
    full = Spec(axes=Axes(categories={"a": ["x"]}))
    assert merged(full, Spec(axes=Axes(categories={}))).axes.categories == {}


def test_options_replace_what_they_are_about() -> None:
    below = Spec(
        source=Source(wide={"sex": ["f", "m"]}),
        keep=Keep(margins=["state"], total=True, files=["x.toml"]),
        axes=Axes(categories={"sex": ["f", "m"]}),
        records=Records(by=["county"], missing={"county": "unknown"}),
        output=Output(path="-", certificate="c.json"),
    )
    assert overridden(below, Spec(keep=Keep(margins=["sex"]))).keep == Keep(margins=["sex"])
    assert overridden(below, Spec(keep=Keep(total=True))).keep == Keep(total=True)
    assert overridden(below, Spec(source=Source(wide={"gender": ["f"]}))).source.wide == {"gender": ["f"]}
    assert overridden(below, Spec(axes=Axes(domain="d.toml"))).axes == Axes(domain="d.toml")
    assert overridden(below, Spec(records=Records(by=["sex"]))).records == Records(by=["sex"], missing={})
    assert overridden(below, Spec(output=Output(path="x.csv"))).output == Output(path="x.csv")


def test_options_know_the_nesting_of_the_spec(tmp_path: Path) -> None:
    path = tmp_path / "keepsum.toml"
    path.write_text("axes.within = { county = 'state' }\n[[table]]\nname = 'a'\naxes.within = { town = 'county' }\n")
    assert nesting_of(read_spec(path)[0]) == {"county": "state", "town": "county"}
    declared = Declaration(categories=["county:IL=Cook,Lake"])
    assert declared.options({"county": "state"}).axes.categories == {"county": {("IL",): ["Cook", "Lake"]}}


def test_the_parents_of_a_column_are_not_forgotten() -> None:
    """Counted by county alone, a table needs the states that counties are within."""
    common = Spec(
        axes=Axes(within={"county": "state", "a": "b"}, categories={"state": ["IL"], "sex": ["f"], "b": ["x"]})
    )
    kept = for_columns(common, ["county"]).axes
    assert kept == Axes(within={"county": "state"}, categories={"state": ["IL"]})
