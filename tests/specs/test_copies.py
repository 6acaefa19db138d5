"""A spec as a command, as Python and as a file: each does what the spec says."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

import keepsum as ks
from keepsum.cli.app import run
from keepsum.cli.declaration import parsed
from keepsum.specs.building import kept_of, noise_of, table_of
from keepsum.specs.reading import read_spec
from keepsum.specs.spec import (
    Axes,
    Charged,
    Keep,
    NoiseSpec,
    Output,
    Postprocess,
    RecordsSpec,
    SourceSpec,
    Spec,
    Subset,
)
from keepsum.specs.writing import arguments_of, command_of, snippet_of, toml_of

COUNTS = (
    "state,county,sex,fips,n\nIL,Cook,f,1,15\nIL,Cook,m,1,9\nIL,Lake,f,2,4\nIL,Lake,m,2,6\nWI,Lake,f,3,8\n"
    "WI,Lake,m,3,3\n"
)
PEOPLE = "id,sex,age\na,f,3\nb,m,44\na,f,17\nc,m,70\n"
NESTED = [["IL", "Cook"], ["IL", "Lake"], ["WI", "Lake"]]

COUNTED = Spec(
    source=SourceSpec(data="counts.csv", count="n", carry={"fips": "county"}),
    axes=Axes(names=["state", "county", "sex"], within={"county": "state"}, categories={"county": NESTED}),
    keep=Keep(margins=["state", ["sex"]], total=True),
    mechanism=NoiseSpec(epsilon="1"),
    output=Output(path="released.csv"),
)
SPECS = {
    "counts": COUNTED,
    "gaussian": Spec(
        source=SourceSpec(data="counts.csv", count="n", drop=["fips"], drop_rows={"sex": "m"}),
        axes=Axes(within={"county": "state"}),
        keep=Keep(margins=[["state"]]),
        mechanism=NoiseSpec(kind="gaussian", epsilon="0.5", delta="1e-6", calibration="tight"),
        output=Output(path="released.csv", accept_pinned=["all"]),
    ),
    "focus": Spec(
        source=SourceSpec(data="counts.csv", count="n", drop=["fips"]),
        axes=Axes(within={"county": "state"}),
        keep=Keep(total=True),
        mechanism=NoiseSpec(epsilon="1", focus={"state": "1", "state,county": "2"}, cell_share="3"),
        postprocess=Postprocess(nonnegative=True, norm="l2"),
        output=Output(path="released.csv", accept_delta="0.001"),
    ),
    "gaussian focus": Spec(
        source=SourceSpec(data="counts.csv", count="n", drop=["fips"]),
        axes=Axes(within={"county": "state"}),
        keep=Keep(total=True),
        mechanism=NoiseSpec(
            kind="gaussian", epsilon="0.5", delta="1e-6", focus={"state": "1", "state,county": "2"}, cell_share="3"
        ),
        output=Output(path="released.csv"),
    ),
    "per unit": Spec(
        source=SourceSpec(data="counts.csv", count="n", drop=["fips"]),
        axes=Axes(within={"county": "state"}),
        keep=Keep(total=True),
        mechanism=NoiseSpec(epsilon="0.3", focus={"state": "0.1"}, per_unit=True),
        output=Output(path="released.csv"),
    ),
    "nothing kept": Spec(
        source=SourceSpec(data="counts.csv", count="n", drop=["fips"]),
        axes=Axes(within={"county": "state"}),
        keep=Keep(nothing=True),
        mechanism=NoiseSpec(kind="gaussian", rho="0.1", attributes=["sex"]),
        output=Output(path="released.csv"),
    ),
    "records": Spec(
        source=SourceSpec(data="people.csv"),
        records=RecordsSpec(by=["sex", "age"], bins={"age": ["0", "18", "65", ""]}, unit="id", max_rows_per_unit=2),
        axes=Axes(categories={"sex": ["f", "m"]}),
        keep=Keep(margins=["sex"]),
        mechanism=NoiseSpec(epsilon="2", norm="l2"),
        output=Output(path="released.csv"),
    ),
}  # fmt: skip


OF_RELEASE = ("--output", "--accept-pinned", "--accept-delta", "--nonnegative", "--nonnegative-norm")


@pytest.mark.parametrize("name", SPECS)
def test_the_command_says_what_the_spec_says(name):
    """What every command takes is parsed again; ``release`` takes the rest, which is tested by running it."""
    spec = SPECS[name]
    options = [option for option in arguments_of(spec) if option[0] not in OF_RELEASE]
    again = parsed([word for option in options for word in option]).options()
    assert list(arguments_of(again)) == options
    assert noise_of(again.mechanism) == noise_of(spec.mechanism)


@pytest.mark.parametrize("name", SPECS)
def test_the_command_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("counts.csv").write_text(COUNTS, encoding="utf-8")
    Path("people.csv").write_text(PEOPLE, encoding="utf-8")
    assert run([*shlex.split(command_of(SPECS[name]).replace("\\\n", ""))[1:], "--yes"]) == 0, capsys.readouterr().err
    assert ks.verify("released.csv")


@pytest.mark.parametrize(
    "name", ["a b", 'a,"b', "a:b", "a=b", "-n", "$(rm)", "it's", " x ", "naïve", "a\\b", "a;b", "a|b"]
)
def test_strange_names_survive_the_shell(name):
    spec = Spec(
        source=SourceSpec(
            data="counts.csv", count=name, drop=[name], drop_rows={name: [name, "x"]}, carry={name: name}
        ),
        records=RecordsSpec(by=[name]),
        axes=Axes(names=[name, "z"], within={name: "z"}, categories={name: [["z", name]], "z": [name]}),
        keep=Keep(margins=[[name, "z"], [name]]),
        mechanism=NoiseSpec(epsilon="1"),
    )
    again = parsed(shlex.split(command_of(spec).replace("\\\n", ""))[2:]).options()
    assert (again.source, again.records, again.mechanism) == (spec.source, spec.records, spec.mechanism)
    assert again.axes.categories == {name: {("z",): [name]}, "z": [name]}
    table = ks.Domain({name: ["a"], "z": ["b"]})
    from keepsum.specs.building import margin_of

    assert [margin_of(margin, table.axes) for margin in again.keep.margins] == [[name, "z"], [name]]


@pytest.mark.parametrize("name", SPECS)
def test_the_snippet_and_the_file_release_the_same_totals(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("counts.csv").write_text(COUNTS, encoding="utf-8")
    Path("people.csv").write_text(PEOPLE, encoding="utf-8")
    spec = SPECS[name]
    scope: dict[str, object] = {}
    with pytest.warns() if name != "records" else pytest.MonkeyPatch.context():
        exec(snippet_of(spec), scope)  # noqa: S102
    with pytest.warns() if name != "records" else pytest.MonkeyPatch.context():
        table = table_of(spec)
    kept = kept_of(spec, table)
    assert scope["keep"] == kept
    assert np.array_equal(scope["table"].counts, table.counts)
    release = scope["release"]
    assert kept.holds(table, release.unbiased)
    assert ks.verify("released.csv")
    Path("keepsum.toml").write_text(toml_of(spec), encoding="utf-8")
    assert toml_of(read_spec(Path("keepsum.toml"))[0]) == toml_of(spec)


def test_totals_over_sets_of_cells_are_in_the_file_and_in_python(tmp_path, monkeypatch, children):
    monkeypatch.chdir(tmp_path)
    children.to_frame("pandas").to_csv("children.csv", index=False)
    subset = Subset(name="rural", cells=[{"county": ["Alpha", "Beta"], "education": "Low"}, {"county": "Delta"}])
    spec = Spec(
        source=SourceSpec(data="children.csv"), keep=Keep(margins=["county"], subset=[subset]),
        mechanism=NoiseSpec(epsilon="1"), output=Output(path="released.csv"),
    )  # fmt: skip
    assert command_of(spec) == "keepsum release --spec keepsum.toml"
    Path("keepsum.toml").write_text(toml_of(spec), encoding="utf-8")
    file, _ = read_spec(Path("keepsum.toml"))
    assert file.keep == spec.keep
    with pytest.warns(ks.CategoriesFromDataWarning):
        kept = kept_of(spec, table_of(spec))
    scope: dict[str, object] = {}
    with pytest.warns(ks.CategoriesFromDataWarning):
        exec(snippet_of(spec), scope)  # noqa: S102
    assert (scope["keep"].coefficients != kept.coefficients).nnz == 0
    assert scope["keep"].names == kept.names


def test_a_ledger_is_named_in_both():
    spec = Spec(
        source=SourceSpec(data="a.csv"), ledger=Charged(path="l.db", dataset="d"), mechanism=NoiseSpec(epsilon="1")
    )
    assert "--ledger l.db --dataset d" in command_of(spec)
    assert "ledger='l.db', dataset='d'" in snippet_of(spec)
