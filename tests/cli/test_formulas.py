"""``--quote-formulas`` and its key of a spec: the same table, the same command."""

from __future__ import annotations

import pytest

import keepsum as ks
from support import refusal

TEXT = "place,n\n=A(),12\n-B,3\nplain,11\n"
OPTIONS = ["--count", "n", "--keep-total", "--epsilon", "1", "--yes"]
SPEC = """version = 1
[source]
data = "in.csv"
count = "n"

[axes]
quote_formulas = true

[keep]
total = true

[mechanism]
epsilon = 1

[output]
path = "spec.csv"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in.csv").write_text(TEXT)
    (tmp_path / "people.csv").write_text("place\n=A()\n-B\n=A()\n")
    return tmp_path


def places(path):
    return [line.partition(",")[0] for line in path.read_text().splitlines()[1:]]


def test_an_option_and_a_key_release_the_same(run, folder):
    assert run("release", "in.csv", *OPTIONS, "--quote-formulas", "-o", "option.csv").returncode == 0
    (folder / "keepsum.toml").write_text(SPEC)
    assert run("release", "--yes").returncode == 0
    for name in ("option.csv", "spec.csv"):
        assert places(folder / name) == ["'-B", "'=A()", "plain"]
        assert run("verify", name).returncode == 0
    assert run("release", "in.csv", *OPTIONS, "-o", "plain.csv").returncode == 0
    assert places(folder / "plain.csv") == ["-B", "=A()", "plain"]


def test_records_and_plans_without_data(run, folder):
    records = ["--by", "place", "--categories", "place==A(),-B", "--quote-formulas"]
    options = ["--keep-total", "--epsilon", "1", "--yes", "-o", "counted.csv"]
    assert run("release", "people.csv", *records, *options).returncode == 0
    assert places(folder / "counted.csv") == ["'=A()", "'-B"]
    spec = """version = 1
[axes]
quote_formulas = true
categories = { place = ["=A()", "-B", "c"] }

[[keep.subset]]
cells = [{ place = ["'=A()", "'-B"] }]

[mechanism]
epsilon = 1
"""
    (folder / "keepsum.toml").write_text(spec)
    assert run("plan").returncode == 0
    (folder / "keepsum.toml").write_text(spec.replace("true", "false"))
    assert b"must be one of its categories" in run("plan").stderr


def test_two_labels_that_become_the_same(run, folder):
    (folder / "in.csv").write_text("place,n\n=A,1\n'=A,2\n")
    done = run("release", "in.csv", *OPTIONS, "--quote-formulas", "-o", "out.csv")
    assert done.returncode == refusal(done)
    assert done.stderr.decode() == (
        "keepsum: Labels of 'place' must be different once formulas are quoted, but two differ by an apostrophe in "
        "front alone. Rename one of them.\n"
    )


def test_a_spec_as_a_command_and_as_python(folder):
    from keepsum.specs.spec import Axes, Keep, NoiseSpec, SourceSpec, Spec
    from keepsum.specs.writing import command_of, snippet_of

    spec = Spec(
        source=SourceSpec(data="in.csv", count="n"), axes=Axes(quote_formulas=True), keep=Keep(total=True),
        mechanism=NoiseSpec(epsilon="1"),
    )  # fmt: skip
    assert "--quote-formulas" in command_of(spec)
    assert "quote_formulas=True" in snippet_of(spec)
    assert ks.read_table.__kwdefaults__["quote_formulas"] is False
