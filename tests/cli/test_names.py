"""Names of columns with commas, colons and blanks, in options and in answers to ``keepsum init``: one rule for all."""

from __future__ import annotations

import ast
import csv
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import keepsum as ks
from keepsum._saying import Text, arg
from keepsum.cli.questions import groups
from keepsum.specs.faces import SHELL, in_shell
from support import refusal

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
    assert wrong.returncode == refusal(wrong)
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
    assert groups("Age group,Age Region, state total", ",", axes) == ["Age group,Age", '"Region, state"', "total"]
    assert groups('Age group:"Region, state" Age:Age group', ":", axes) == ["Age group:Region, state", "Age:Age group"]


def test_messages_show_options_that_can_be_typed() -> None:
    nesting, columns = arg.within({"Age: years": "Age group"}), arg.drop(["a, b", "c"])
    said = in_shell(Text(f"{nesting:Pass}, leave them out {columns:with}."))
    assert said == """Pass --within '"Age: years":Age group', leave them out with --drop '"a, b",c'."""
    assert in_shell(Text(f"{arg.drop_rows({'a=b': 'Total, all'}):with}")) == """with --drop-rows '"a=b"="Total, all"'"""


# Arguments of calls that no command makes.
IN_PYTHON_ONLY = {
    *("cell_weight", "constant", "distance", "draw", "levels", "meet", "method", "most", "parameters"),
    *("progress", "refined", "same_table", "show_progress", "spark", "weights"),
}


def named_in_messages() -> set[str]:
    """The names of arguments that messages refer to, as ``arg.name``."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(ks.__file__).parent.rglob("*.py")]
    references = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return {node.attr for node in references if isinstance(node.value, ast.Name) and node.value.id == "arg"}


def flags_of(command: Any) -> set[str]:
    """The options of a command and of those below it."""
    below = getattr(command, "commands", {}).values()
    return {flag for option in command.params for flag in option.opts}.union(*map(flags_of, below))


def test_every_option_that_a_message_names_is_one(program: Any) -> None:
    """With a value and without, but for what is Python's alone."""
    names, flags = named_in_messages(), flags_of(program)
    assert len(names) > 50

    def strange(name: str) -> set[str]:
        said = f"{SHELL.option(arg[name], False)} {SHELL.option(arg[name]('x'), False)}"
        return set(re.findall(r"--[a-z-]+", said)) - flags

    assert {name for name in names if strange(name)} == IN_PYTHON_ONLY


def test_several_options_are_options() -> None:
    both = Text(f"{arg.unit} and {arg.max_rows_per_unit} must be given together. {arg.unit} is one.")
    assert both == "Arguments unit= and max_rows_per_unit= must be given together. Argument unit= is one."
    assert in_shell(both) == "Options --unit and --max-rows-per-unit must be given together. Option --unit is one."
    either = Text(f"{arg.unit} or {arg.by} must be given. {arg.unit:Pass} and {arg.by}.")
    assert in_shell(either) == "Option --unit or --by must be given. Pass --unit and --by."


@pytest.mark.parametrize("name", ['"epsilon"', "no JSON"])
def test_an_option_that_looks_like_a_reference_is_shown_as_it_was_typed(name, run):
    """Typer repeats what was typed; read as a reference it was another option, or a traceback."""
    done = run("plan", "counts.csv", f"--\ue0f0option\ue0f1{name}\ue0f1\ue0f3\ue0f1\ue0f1with\ue0f2", "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["subject"] is None
    assert error["problem"].startswith("No such option: --\\ue0f0option\\ue0f1")
