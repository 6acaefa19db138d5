"""Options over a spec, and a table's own keys over those of the whole spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keepsum.cli.declaration import Declaration
from keepsum.errors import InputError
from keepsum.specs.job import for_columns, jobs_of, merged, nesting_of, overridden
from keepsum.specs.reading import read_spec
from keepsum.specs.spec import Axes, Keep, NoiseSpec, Output, Postprocess, RecordsSpec, SourceSpec, Spec
from support import refused_in_shell


def test_what_is_left_out_comes_from_below() -> None:
    below = Spec(source=SourceSpec(data="a.csv", count="n"), keep=Keep(margins=["county"], total=True))
    above = Spec(source=SourceSpec(data="b.csv"), keep=Keep(margins=["sex"]))
    both = merged(below, above)
    assert both.source == SourceSpec(data="b.csv", count="n")
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
        ({"epsilon": 1, "norm": "l2"}, {"per_unit": True}, {"epsilon": 1, "norm": "l2", "per_unit": True}),
        ({"epsilon": 1, "per_unit": True}, {"epsilon": 2}, {"epsilon": 2, "per_unit": True}),
        ({**GAUSSIAN, "rho": 1, "per_unit": True}, {"sigma": 2}, {**GAUSSIAN, "sigma": 2}),
    ],
)
def test_a_privacy_parameter_replaces_those_it_cannot_go_with(below: Any, above: Any, both: Any) -> None:
    assert merged(Spec(mechanism=NoiseSpec(**below)), Spec(mechanism=NoiseSpec(**above))).mechanism == NoiseSpec(**both)


TWO = """
version = 1
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
    assert sex.spec.records == RecordsSpec(by=["county", "sex"], bins={})
    assert sex.spec.axes == Axes(categories={"county": ["A", "B"], "sex": ["f", "m"]}, within={})
    assert age.spec.records == RecordsSpec(by=["county", "age"], bins={"age": [0, 18, ""]})
    assert age.spec.axes == Axes(categories={"county": ["A", "B"]}, within={})
    assert (sex.spec.mechanism.epsilon, age.spec.mechanism.epsilon) == (1, 2)
    assert [marginal.of for marginal in marginals] == ["by age"]


def test_one_of_several_tables_with_options(tmp_path: Path) -> None:
    path = tmp_path / "keepsum.toml"
    path.write_text(TWO)
    options = Spec(mechanism=NoiseSpec(epsilon="0.1"))
    (job,), marginals = jobs_of(*read_spec(path), options, "by sex")
    assert (job.spec.mechanism.epsilon, marginals) == ("0.1", [])
    with refused_in_shell(r"must be used with --only NAME, because .* \(by sex, by age\)"):
        jobs_of(*read_spec(path), options)
    with pytest.raises(InputError, match="must be a table of"):
        jobs_of(*read_spec(path), options, "by county")
    path.write_text("version = 1\n[source]\ndata = 'x'\n")
    with pytest.raises(InputError, match="requires a spec with several tables"):
        jobs_of(*read_spec(path), options, "by sex")


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("mechanism.epsilon = -1", "line 2: Epsilon must be a positive number"),
        ("mechanism.epsilon = 1\nmechanism.delta = 1", 'line 3: mechanism.delta requires mechanism.kind = "gaussian"'),
        ("mechanism.norm = 'l1'\nmechanism.kind = 'gaussian'", "line 2: mechanism.norm must be l2"),
    ],
)
def test_an_error_of_the_library_has_a_line(key: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "keepsum.toml"
    path.write_text(f"version = 1\n{key}")
    (job,), _ = jobs_of(*read_spec(path), Spec())
    with pytest.raises(InputError, match=words):
        job.noise()


def test_a_spec_is_not_blamed_for_an_option(tmp_path: Path) -> None:
    path = tmp_path / "keepsum.toml"
    path.write_text("version = 1\n[source]\ndata = 'x'\n\n[mechanism]\nepsilon = 1\n")
    (job,), _ = jobs_of(*read_spec(path), Spec(mechanism=NoiseSpec(epsilon="-3")))
    with pytest.raises(InputError) as caught:
        job.noise()
    assert str(caught.value) == "Epsilon must be a positive number, got '-3'."


def test_false_and_empty_say_something() -> None:
    """Whoever withdraws an acceptance in a table must not find it accepted."""
    below = Spec(
        source=SourceSpec(keep_order=True, drop=["x"]),
        keep=Keep(margins=["state"], total=True),
        mechanism=NoiseSpec(per_unit=True, attributes=["sex"]),
        postprocess=Postprocess(nonnegative=True),
        output=Output(accept_pinned=["all"]),
    )
    above = Spec(
        source=SourceSpec(keep_order=False, drop=[]),
        keep=Keep(margins=[], total=False),
        mechanism=NoiseSpec(per_unit=False, attributes=[]),
        postprocess=Postprocess(nonnegative=False),
        output=Output(accept_pinned=[]),
        axes=Axes(categories={}),
    )
    assert merged(below, above) == above
    full = Spec(axes=Axes(categories={"a": ["x"]}))
    assert merged(full, Spec(axes=Axes(categories={}))).axes.categories == {}


@pytest.mark.parametrize(
    ("spec", "options", "words"),
    [
        ({"epsilon": 1, "per_unit": True}, {"epsilon": "2"}, "Option --epsilon must be given with --per-unit, as"),
        ({"kind": "gaussian", "rho": 1, "per_unit": True}, {"rho": "2"}, "Option --rho must be given with --per-unit"),
        ({"epsilon": 1}, {"per_unit": True}, "Option --per-unit must be given with --epsilon or --rho, as the spec's"),
        (
            {"epsilon": 1, "focus": {"sex": 1}},
            {"epsilon": "1", "per_unit": True},
            "Option --per-unit must be given with --focus, as the values of the spec's focus are shares",
        ),
        (
            {"kind": "gaussian", "epsilon": 1, "delta": 1e-6},
            {"epsilon": "2", "per_unit": True},
            "Option --per-unit must be given with --delta, as the spec's delta is one person's",
        ),
        (
            {"epsilon": 1, "per_unit": True},
            {"kind": "gaussian", "delta": "1e-6"},
            "Option --delta must be given with --per-unit, as the spec's loss is per unit of distance",
        ),
        (
            {"kind": "gaussian", "epsilon": 1, "delta": 1e-6, "per_unit": True},
            {"delta": "1e-7"},
            "Option --delta must be given with --per-unit, as",
        ),
        (
            {"epsilon": 0.3, "per_unit": True},
            {"focus": {"state": "2"}},
            "Option --focus must be given with --per-unit, as .* For the focus of one person take per_unit out",
        ),
    ],
)
def test_no_number_of_a_spec_is_read_in_another_unit(spec: Any, options: Any, words: str) -> None:
    with refused_in_shell(words):
        overridden(Spec(mechanism=NoiseSpec(**spec)), Spec(mechanism=NoiseSpec(**options)))


def test_options_of_the_same_unit_override_a_spec() -> None:
    unit = Spec(mechanism=NoiseSpec(epsilon=1, per_unit=True))
    assert overridden(unit, Spec(mechanism=NoiseSpec(epsilon="2", per_unit=True))).mechanism.epsilon == "2"
    both = overridden(
        Spec(mechanism=NoiseSpec(epsilon=1)), Spec(mechanism=NoiseSpec(epsilon="2", per_unit=True))
    ).mechanism
    assert both == NoiseSpec(epsilon="2", per_unit=True)
    assert overridden(unit, Spec(mechanism=NoiseSpec(kind="gaussian", sigma="2"))).mechanism.per_unit is None


def test_numbers_that_are_replaced_are_in_no_unit() -> None:
    pair = Spec(mechanism=NoiseSpec(kind="gaussian", epsilon=1, delta=1e-6))
    for options in (NoiseSpec(rho="2", per_unit=True), NoiseSpec(kind="laplace", epsilon="2", per_unit=True)):
        assert overridden(pair, Spec(mechanism=options)).mechanism.delta is None
    both = overridden(pair, Spec(mechanism=NoiseSpec(epsilon="2", delta="1e-7", per_unit=True))).mechanism
    assert both == NoiseSpec(kind="gaussian", epsilon="2", delta="1e-7", per_unit=True)


def test_a_loss_to_be_found_begins_with_none_in_another_unit() -> None:
    found = overridden(Spec(mechanism=NoiseSpec(epsilon=1)), Spec(mechanism=NoiseSpec(per_unit=True)), found=True)
    assert found.mechanism == NoiseSpec(per_unit=True)
    unit = Spec(mechanism=NoiseSpec(epsilon=1, per_unit=True))
    assert overridden(unit, Spec(mechanism=NoiseSpec(per_unit=True)), found=True).mechanism.epsilon == 1
    spec = Spec(mechanism=NoiseSpec(kind="gaussian", epsilon=1, delta=1e-6))
    with refused_in_shell("must be given with --delta"):
        overridden(spec, Spec(mechanism=NoiseSpec(per_unit=True)), found=True)


@pytest.mark.parametrize(
    ("common", "table", "name"),
    [
        ("kind = 'gaussian'\nepsilon = 1\ndelta = 1e-6", "epsilon = 1, per_unit = true", "delta"),
        ("epsilon = 1", "per_unit = true", "epsilon"),
        ("epsilon = 1\nper_unit = true", "per_unit = false", "epsilon"),
        ("epsilon = 1\nfocus = { sex = 1 }", "epsilon = 1, per_unit = true", "focus"),
        ("epsilon = 1", "epsilon = 2, per_unit = true", None),
        ("epsilon = 1\nper_unit = true", "epsilon = 2", None),
        ("epsilon = 1\nper_unit = true", "per_unit = true", None),
    ],
)
def test_a_table_reads_no_number_of_the_whole_spec_in_another_unit(
    common: str, table: str, name: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "keepsum.toml"
    path.write_text(f"version = 1\n[mechanism]\n{common}\n[[table]]\nname = 'a'\nmechanism = {{ {table} }}\n")
    if name is None:
        (job,), _ = jobs_of(*read_spec(path), Spec())
        assert job.spec.mechanism.per_unit
        return
    with pytest.raises(
        InputError, match=rf"line \d+: per_unit of \[\[table\]\] 1 must be given with its own {name}, as"
    ):
        jobs_of(*read_spec(path), Spec())


def test_options_replace_what_they_are_about() -> None:
    below = Spec(
        source=SourceSpec(wide={"sex": ["f", "m"]}),
        keep=Keep(margins=["state"], total=True, files=["x.toml"]),
        axes=Axes(categories={"sex": ["f", "m"]}),
        records=RecordsSpec(by=["county"], missing={"county": "unknown"}),
        output=Output(path="-", certificate="c.json"),
    )
    assert overridden(below, Spec(keep=Keep(margins=["sex"]))).keep == Keep(margins=["sex"])
    assert overridden(below, Spec(keep=Keep(total=True))).keep == Keep(total=True)
    assert overridden(below, Spec(source=SourceSpec(wide={"gender": ["f"]}))).source.wide == {"gender": ["f"]}
    assert overridden(below, Spec(axes=Axes(domain="d.toml"))).axes == Axes(domain="d.toml")
    assert overridden(below, Spec(records=RecordsSpec(by=["sex"]))).records == RecordsSpec(by=["sex"], missing={})
    assert overridden(below, Spec(output=Output(path="x.csv"))).output == Output(path="x.csv")


def test_options_know_the_nesting_of_the_spec(tmp_path: Path) -> None:
    path = tmp_path / "keepsum.toml"
    path.write_text(
        "version = 1\naxes.within = { county = 'state' }\n[[table]]\nname = 'a'\naxes.within = { town = 'county' }\n"
    )
    assert nesting_of(read_spec(path)[0]) == {"county": "state", "town": "county"}
    declared = Declaration({"axes.categories": ["county:IL=Cook,Lake"]})
    assert declared.options({"county": "state"}).axes.categories == {"county": {("IL",): ["Cook", "Lake"]}}


def test_the_parents_of_a_column_are_not_forgotten() -> None:
    """Counted by county alone, a table needs the states that counties are within."""
    common = Spec(
        axes=Axes(within={"county": "state", "a": "b"}, categories={"state": ["IL"], "sex": ["f"], "b": ["x"]})
    )
    kept = for_columns(common, ["county"]).axes
    assert kept == Axes(within={"county": "state"}, categories={"state": ["IL"]})
