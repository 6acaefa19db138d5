"""``keepsum.toml`` is read strictly, and what is wrong is told with the key and the line."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import msgspec
import pytest

from keepsum.errors import InputError
from keepsum.sources.declarations import domain_of
from keepsum.specs import spec as specs
from keepsum.specs.options import json_schema
from keepsum.specs.reading import read_spec
from keepsum.specs.spec import NoiseSpec, SourceSpec, Spec

GOOD = """
version = 1
[source]
data = "counts.csv"
count = "n"

[keep]
margins = ["county", ["county", "sex"]]

[mechanism]
epsilon = 0.5
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "keepsum.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_spec_as_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, GOOD)
    spec, lines = read_spec(Path("keepsum.toml"))
    assert spec.source == SourceSpec(data="counts.csv", count="n")
    assert spec.keep.margins == ["county", ["county", "sex"]]
    assert spec.mechanism == NoiseSpec(epsilon=0.5)
    assert lines.at(("mechanism", "epsilon")) == "keepsum.toml, line 11"


def test_paths_are_relative_to_the_spec_and_addresses_are_not(tmp_path: Path) -> None:
    text = """
        version = 1
        [source]
        data = ["a.csv", "/b.csv"]
        [axes]
        domain = "x/categories.toml"
        [keep]
        files = ["totals.toml"]
        [output]
        path = "out/"
        sign = "key.pem"
        [[table]]
        name = "one"
        source.data = "postgres://user@host/db"
        output.path = "-"
        [[marginal]]
        of = "one"
        output = "sums.csv"
    """
    spec, _ = read_spec(written(tmp_path, text))
    here = str(tmp_path)
    assert spec.source.data == [f"{here}/a.csv", "/b.csv"]
    assert spec.axes.domain == f"{here}/x/categories.toml"
    assert spec.keep.files == [f"{here}/totals.toml"]
    assert (spec.output.path, spec.output.sign) == (f"{here}/out/", f"{here}/key.pem")
    assert spec.table[0].source.data == "postgres://user@host/db"
    assert spec.table[0].output.path == "-"
    assert spec.marginal[0].output == f"{here}/sums.csv"


def test_dates_are_labels_as_text(tmp_path: Path) -> None:
    text = "version = 1\n[axes.categories]\nday = [2020-01-31, '2020-02-01']\n"
    text += "[records]\nbins.born = ['', 2000-01-01, '']\n"
    spec, _ = read_spec(written(tmp_path, text))
    assert spec.axes.categories == {"day": ["2020-01-31", "2020-02-01"]}
    assert spec.records.bins == {"born": ["", "2000-01-01", ""]}


SECTIONS = "source, records, axes, keep, mechanism, postprocess, output, ledger, version, table, marginal"
NOISE = (
    "kind, epsilon, delta, rho, sigma, norm, per_unit, attributes, to, calibration, focus, cell_share, focus_files, "
    "subset"
)
TWO = "[[table]]\nname = 'a'\n[[table]]\nname = "
WRONG = {
    "[mechanism]\nepsilo = 1": "line 3: mechanism must not have a key 'epsilo'. Did you mean 'epsilon'?",
    "[mechanism]\n\nxyz = 1": f"line 4: mechanism must not have a key 'xyz'. Its keys are {NOISE}.",
    "epsilon = 1": "line 2: the spec must not have a key 'epsilon'. Put it in [mechanism].",
    "norm = 'l2'": "line 2: the spec must not have a key 'norm'. Put it in [mechanism] or [postprocess].",
    "[source]\nmargins = []": "line 3: source must not have a key 'margins'. Put it in [keep].",
    "[mechanism]\nversion = 1": "line 3: mechanism must not have a key 'version'. Put it in the first line.",
    "[[table]]\nname = 'a'\nrho = 1": "line 4: [[table]] 1 must not have a key 'rho'. Write mechanism.rho.",
    "[sauce]\ndata = 1": "line 2: the spec must not have a key 'sauce'. Did you mean 'source'?",
    "password = 'x'": f"line 2: the spec must not have a key 'password'. Its keys are {SECTIONS}.",
    "[mechanism]\nepsilon = [1]": "line 3: mechanism.epsilon must be a number or text, got a list.",
    "[mechanism]\nkind = 'exponential'": "line 3: mechanism.kind must be 'laplace' or 'gaussian', got 'exponential'.",
    "[postprocess]\nnorm = 'l3'": "line 3: postprocess.norm must be 'l1' or 'l2', got 'l3'.",
    "[keep]\ntotal = 'yes'": "line 3: keep.total must be true or false, got text.",
    "keep = 3": "line 2: keep must be a table, got a whole number.",
    "[keep]\nmargins = 'county'": "line 3: keep.margins must be a list, got text.",
    "[keep]\nmargins = [\n  'a',\n  3]": "line 3: item 2 of keep.margins must be text or a list, got a whole number.",
    "[axes.categories]\nsex = [1.5]": "line 2: axes.categories must be a whole number or text or a list, got a number.",
    "[[keep.subset]]\nname = 'x'": "line 2: [[keep.subset]] 1 must have a key 'cells'.",
    "[[table]]\nkeep.total = true": "line 2: [[table]] 1 must have a key 'name'.",
    f"{TWO}'b'\n[table.keep]\ntotl = 1": "line 7: [[table]] 2 keep must not have a key 'totl'. Did you mean 'total'?",
    f"{TWO}'a'": "line 5: tables must have different names that are not empty.",
    f"{TWO}'b'\n[[marginal]]\noutput = 'x.csv'\nof = 'c'": "line 8: [[marginal]] 1 must say of which table it is, with "
    "'of'.",
    "[[marginal]]\noutput = 'x.csv'\nof = 'b'": "line 4: 'of' must be left out, because the spec has no [[table]].",
    "[[marginal]]\naxes = []": "line 2: [[marginal]] 1 must have a key 'output'.",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_its_line(text: str, tmp_path: Path) -> None:
    path = written(tmp_path, f"version = 1\n{text}")
    with pytest.raises(InputError) as caught:
        read_spec(path)
    assert str(caught.value) == f"{path}, {WRONG[text]}"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[a", "must be valid TOML, but is not (end of document)."),
        (b"x = 1\nx = 2\n", "must be valid TOML, but is not (line 2, column 6): a key or a table may be there twice."),
        (b"[x]\na = 1\n[x]\n", "(line 3, column 3): a key or a table may be there twice."),
        (b"[m]\nepsilon = 0,5\n", "(line 2, column 12): a number must have a decimal point, not a comma."),
        (b"[source]\ncount = n8675309\n", "(line 2, column 9): text must be in quotes."),
        (b"[keep]\nmargins = [county]\n", "(line 2, column 12): text must be in quotes."),
        (b"[keep]\nmargins = 8675309 8675309\n", "must be valid TOML, but is not (line 2, column 19)."),
        (b"\xff", "must be UTF-8 text"),
        (b"[" * 100_000, "must be valid TOML"),
        (b"[x]\n" + b"a." * 1500 + b"a = 1\n", "is not (line 2, column 1): a key must have at most 100 parts."),
        (b"\n[" + b"'a' . " * 20_000 + b"a]\n", "is not (line 2, column 1): a key must have at most 100 parts."),
        (b'x = {"\\"a"' + b'."b"' * 1500 + b" = 1}\n", "(line 1, column 1): a key must have at most 100 parts."),
        (b"x = " + (b"{" + b"a." * 99 + b"a = ") * 60 + b"1" + b"}" * 60, "must be valid TOML"),
    ],
)
def test_files_that_are_no_toml(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "keepsum.toml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_spec(path)
    assert words in str(caught.value)


def test_a_key_of_many_parts_takes_no_memory() -> None:
    """Refused before it is parsed, wherever TOML is read; so many dots in a text are none of its business."""
    long = "a." * 20_000 + "a = 1\n"
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"Lists must be valid TOML, but are not .*at most 100 parts"):
            domain_of(long, "Lists")
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()
    assert domain_of(f"{'a.' * 99}a = 1\nb = ['{'a.' * 90}', '{'.' * 5000}']\n", "Lists")["b"][1] == "." * 5000


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('source.data = "a\\u0000.csv"', "line 2: source.data"),
        ('source.data = ["a.csv", "b\\u0000.csv"]', "line 2: source.data"),
        ('[axes]\ndomain = "a\\u0000"', "line 3: axes.domain"),
        ('[keep]\nfiles = ["a\\u0000"]', "line 3: keep.files"),
        ('[ledger]\npath = "a\\u0000"', "line 3: ledger.path"),
        ('[output]\npath = "a\\u0000/"', "line 3: output.path"),
        ('[[table]]\nname = "t"\noutput.sign = "a\\u0000"', "line 4: [[table]] 1 output.sign"),
        ('[[marginal]]\naxes = []\noutput = "a\\u0000"', "line 4: [[marginal]] 1 output"),
    ],
)
def test_a_path_that_no_system_has_is_told_with_its_line(text: str, place: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_spec(written(tmp_path, f"version = 1\n{text}"))
    assert f"{place} must be a path, got text with a character that no path can contain." in str(caught.value)


PER_PERSON = (
    "mechanism must not have a key 'per_person', because epsilon and rho are the loss of one person. Leave it out, or "
    "write per_unit = true for the loss per unit of distance."
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD.replace("version = 1\n", ""), ": a spec must have version = 1 in its first line"),
        ("[mechanism]\nepsilon = 1\nper_person = true\n", "Leave out per_person = true; where it was not said, write"),
        ("", ": a spec must have version = 1 in its first line"),
        ("version = 2\n", ", line 1: version must be 1, got 2."),
        ("\nversion = true\n", ", line 2: version must be 1, got True."),
        ("version = '1'\n", ", line 1: version must be 1, got '1'."),
        ("version = [1]\n", ", line 1: version must be 1, got something else."),
        ("version = 1\n[mechanism]\nepsilon = 1\nper_person = true\n", f", line 4: {PER_PERSON}"),
        ("version = 1\n[mechanism]\nper_person = false\n", f", line 3: {PER_PERSON}"),
        ("version = 1\n[[table]]\nname = 'a'\nmechanism.per_person = true\n", f", line 4: [[table]] 1 {PER_PERSON}"),
    ],
)
def test_a_spec_of_another_meaning_is_refused_with_what_to_write(text: str, words: str, tmp_path: Path) -> None:
    """Without a version, epsilon was the loss per unit of distance: it is never read as that of a person."""
    with pytest.raises(InputError) as caught:
        read_spec(written(tmp_path, text))
    assert words in str(caught.value)


def test_an_error_repeats_no_value_that_could_be_a_secret(tmp_path: Path) -> None:
    path = written(tmp_path, "version = 1\n[source]\ndata = 'x'\n'postgres://u:hunter2@host/db 5' = 1\n")
    with pytest.raises(InputError) as caught:
        read_spec(path)
    assert "hunter2" not in str(caught.value)


def test_the_schema_is_that_of_the_code_and_accepts_what_is_accepted() -> None:
    published = Path(specs.__file__).with_name("spec.schema.json").read_bytes()
    assert published == json_schema()
    schema = msgspec.json.decode(published)
    names = set(schema["$defs"]["SpecFile"]["properties"])
    assert names == {*Spec.__struct_fields__, "version", "table", "marginal"}
    assert schema["$defs"]["SpecFile"]["required"] == ["version"]
    assert all(part.get("additionalProperties") is False for part in schema["$defs"].values() if "properties" in part)
