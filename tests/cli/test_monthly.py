"""The same spec every month: names in braces, and all tables into one folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import keepsum as ks
from support import refusal

SPEC = """version = 1
[source]
data = "data-{month}.csv"
count = "n"
[mechanism]
epsilon = 0.5
[output]
title = "Counts of {month} {x}"
[[table]]
name = "by county"
keep.margins = ["county"]
output.path = "out/county-{month}.csv"
[[table]]
name = "by sex"
keep.margins = ["sex"]
[[marginal]]
of = "by sex"
axes = ["sex"]
output = "elsewhere/sex.csv"
"""
MONTH = ["--set", "month=2026-12"]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "keepsum.toml").write_text(SPEC)
    (tmp_path / "data-2026-12.csv").write_text("county,sex,n\nA,f,3\nA,m,4\nB,f,9\nB,m,12\n")
    return tmp_path


def sentence(done: Any) -> str:
    """The one line of a command that failed."""
    assert done.returncode == refusal(done), done.stdout
    return str(done.stderr.decode().splitlines()[-1].removeprefix("keepsum: "))


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_all_tables_go_into_one_folder(here: Path, inside: Callable[..., Any]) -> None:
    done = inside("release", "--yes", *MONTH, "-o", "2026-12/")
    assert done.returncode == 0, done.stderr
    assert files(here / "2026-12") == {
        "county-2026-12.csv", "county-2026-12.certificate.json",
        "by sex/table.csv", "by sex/certificate.json", "sex.csv",
    }  # fmt: skip
    for table in ("county-2026-12.csv", "by sex"):
        assert ks.verify(here / "2026-12" / table).passed
    before = (here / "2026-12" / "sex.csv").read_bytes()
    again = inside("release", "--yes", *MONTH, "-o", "2026-12/", "--force")
    assert again.returncode == 0, again.stderr
    assert (here / "2026-12" / "sex.csv").read_bytes() == before  # sums that are kept exactly


def test_a_folder_stays_only_if_something_was_released(here: Path, inside: Callable[..., Any]) -> None:
    wrong = (here / "keepsum.toml").read_text().replace('["sex"]\n[[', '["sexes"]\n[[')
    (here / "wrong.toml").write_text(wrong)
    refused = [*MONTH, "--spec", "wrong.toml", "-o", "2026-12/"]
    assert "got 'sexes'" in sentence(inside("release", "--yes", *refused))
    assert not (here / "2026-12").exists()
    (here / "2026-12").mkdir()
    assert "got 'sexes'" in sentence(inside("release", "--yes", *refused))
    assert (here / "2026-12").is_dir()
    assert inside("release", "--yes", *MONTH, "-o", "2026-12/").returncode == 0
    exists = inside("release", "--yes", *MONTH, "-o", "2026-12/")
    assert sentence(exists).startswith("Output '2026-12/county-2026-12.csv' already exists.")
    assert "must be in an existing folder" in sentence(inside("release", "--yes", *MONTH, "-o", "no/2026-12/"))
    assert not (here / "no").exists()


@pytest.mark.parametrize("name", ["..", ".", "a/b", "/x"])
def test_a_name_that_is_no_folder_needs_an_output(name: str, here: Path, inside: Callable[..., Any]) -> None:
    (here / "keepsum.toml").write_text(SPEC.replace("by sex", name))
    said = sentence(inside("release", "--yes", *MONTH, "-o", "2026-12/"))
    assert said.startswith("keepsum.toml, line 14: [[table]] 2 must have an output.path")
    assert files(here) == {"keepsum.toml", "data-2026-12.csv"}


def test_a_file_with_braces_in_its_name_can_be_set(here: Path, inside: Callable[..., Any]) -> None:
    (here / "data-{x}.csv").write_bytes((here / "data-2026-12.csv").read_bytes())
    assert inside("plan", "--set", "month={x}").returncode == 2  # the output's name is open, too, and x is not set
    (here / "one.toml").write_text(SPEC.partition("[output]")[0].replace("{month}", "{x}") + "[keep]\ntotal = true\n")
    assert inside("plan", "--spec", "one.toml", "--set", "x={x}").returncode == 0


def test_one_table_goes_where_the_option_says(here: Path, inside: Callable[..., Any]) -> None:
    done = inside("release", "--yes", *MONTH, "--only", "by county", "-o", "one/", "--json")
    assert done.returncode == 0, done.stderr
    assert files(here / "one") == {"table.csv", "certificate.json"}
    assert json.loads(done.stdout)["name"] == "by county"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "keepsum.toml, line 3: source.data must be told what {month} stands for. Pass --set month=TEXT."),
        (
            [*MONTH, "--set", "year=1"],
            "Spec 'keepsum.toml' must have a text with {year}, but has none. Leave out --set",
        ),
        (["--set", "month"], "Option --set must be a name and a text, such as month=2026-12, got 'month'."),
        (["--set", "month="], "Option --set must be a name and a text, such as month=2026-12, got 'month='."),
        ([*MONTH, *MONTH], "Option --set must have one text for each name, got two for 'month'."),
        ([*MONTH, "--no-spec", "data-2026-12.csv"], "Option --set requires --spec, or a file keepsum.toml"),
        ([*MONTH, "-o", "2026-12"], "Options that say what to release must be used with --only NAME, because"),
    ],
)
def test_wrong_settings_get_one_sentence(options: list[str], said: str, here: Path, inside: Any) -> None:
    assert sentence(inside("release", "--yes", *options)).startswith(said)
    assert files(here) == {"keepsum.toml", "data-2026-12.csv"}


def test_names_in_braces_stand_in_texts_alone(here: Path, inside: Callable[..., Any]) -> None:
    """In labels too, where a setting has the name; a key, and braces that are none, stay."""
    (here / "labels.toml").write_text(
        'version = 1\n[axes.categories]\n"{a}" = ["{a}", "{b}", "{}", "{ a}"]\n[keep]\ntotal = true\n'
        "[mechanism]\nepsilon = 1\n"
    )
    plan = json.loads(inside("plan", "--spec", "labels.toml", "--set", "a=left", "--json").stdout)
    assert '"{a}"' in json.dumps(plan)
    twice = sentence(inside("plan", "--spec", "labels.toml", "--set", "a={b}"))
    assert "'{b}'" in twice
