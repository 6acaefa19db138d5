"""Names of columns with commas, colons and blanks, in options and in answers to ``keepsum init``: one rule for all."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keepsum.cli.questions import margins, nestings
from keepsum.cli.terms import in_shell_terms

ROWS = [
    ("Region, state", "Age: group", "Sex", "Code: region, state", "Number of people"),
    *(
        (region, age, sex, f"c-{region[0]}", 5)
        for region in ("Rome, NY", "Utica: north")
        for age in ("0-17", "18+")
        for sex in "fm"
    ),
]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    with (tmp_path / "odd.csv").open("w", newline="") as file:
        csv.writer(file).writerows(ROWS)
    with (tmp_path / "records.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("Person: id", "Region, state", "Visit"), *((k, "Rome, NY", "x") for k in "ab")])
    return tmp_path


def spec_in(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "keepsum.toml").read_text(encoding="utf-8"))


def test_options_take_names_in_double_quotes(run: Callable[..., Any], here: Path) -> None:
    table = ["odd.csv", "--count", '"Number of people"', "--epsilon", "1", "--yes", "-o", "out.csv"]
    axes = ["--axes", '"Region, state", Age: group,Sex']
    done = run(
        "release", *table, *axes, "--carry", '"Code: region, state":"Region, state"', "--keep", '"Region, state",Sex'
    )
    assert done.returncode == 0, done.stderr
    assert b'"Code: region, state"' in (here / "out.csv").read_bytes()
    summed = run("marginal", "out.csv", "--axes", '"Region, state",Age: group', "-o", "sums.csv")
    assert summed.returncode == 0, summed.stderr
    assert (here / "sums.csv").read_text().startswith('"Region, state",Age: group,')
    dropped = run("plan", *table[:5], "--drop", '"Code: region, state"', "--keep", "Region, state")
    assert dropped.returncode == 0, dropped.stderr
    wrong = run("plan", *table[:5], "--drop", '"Code: region', "--keep-total")
    assert wrong.returncode == 2
    assert b"Option --drop must be names with commas between them, a name with a comma in double quotes" in wrong.stderr


def test_records_are_counted_by_such_names(run: Callable[..., Any], here: Path) -> None:
    done = run(
        "release", "records.csv", "--by", '"Region, state"', "--categories", '"Region, state"="Rome, NY",Utica',
        "--unit", '"Person: id"', "--max-rows-per-unit", "1", "--keep-total", "--epsilon", "1", "--yes",
        "-o", "out.csv",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_answers_take_names_in_double_quotes(run: Callable[..., Any], answered: Callable[..., Any], here: Path) -> None:
    answers = ["", '"Region, state" "Age: group",Sex total', "y", "1", "n", "n", ""]
    done = answered(answers, "odd.csv", "--count", "Number of people")
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert (
        'Axes: "Region, state", "Age: group", Sex, several with a blank between; "Region, state","Age: group" for'
        in said
    )
    assert spec_in(here)["keep"] == {"margins": ["Region, state", ["Age: group", "Sex"]], "total": True}
    assert spec_in(here)["source"]["carry"] == {"Code: region, state": "Region, state"}
    assert run("release", "--yes").returncode == 0


def test_records_are_asked_about_by_such_names(answered: Callable[..., Any], here: Path) -> None:
    answers = ['Visit,"Region, state"', "", "x", "", '"Rome, NY",Utica', "", "y", '"Person: id"', "1"]
    answers += ["total", "y", "1", "n", ""]
    done = answered(["y", *answers], "records.csv")
    assert done.returncode == 0, done.stderr
    assert 'Columns: "Person: id", "Region, state", Visit.' in done.stderr.decode()
    records = spec_in(here)["records"]
    assert (records["by"], records["unit"]) == (["Visit", "Region, state"], "Person: id")


def test_known_names_need_no_quotes_in_an_answer() -> None:
    axes = ["Age group", "Region, state", "Age"]
    assert margins("Age group,Age Region, state total", axes) == [
        "--keep=Age group,Age", '--keep="Region, state"', "--keep-total",
    ]  # fmt: skip
    assert nestings('Age group:"Region, state" Age:Age group', axes) == [
        ("Age group", "Region, state"),
        ("Age", "Age group"),
    ]


def test_messages_show_options_that_can_be_typed() -> None:
    said = in_shell_terms("Pass within={'Age: years': 'Age group'}, leave them out with drop=['a, b', 'c'].")
    assert said == """Pass --within '"Age: years":Age group', leave them out with --drop '"a, b",c'."""
    assert in_shell_terms("with drop_rows={'a=b': 'Total, all'}") == """with --drop-rows '"a=b"="Total, all"'"""
