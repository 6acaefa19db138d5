"""A focus from the shell and from a spec."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import keepsum as ks

COUNTS = "state,county,sex,n\n" + "".join(
    f"{state},{state}{k},{sex},{30 + 7 * k}\n" for state in "AB" for k in range(3) for sex in "fm"
)
TABLE = ["counts.csv", "--count", "n", "--within", "county:state"]
SPEC = """
[source]
data = "counts.csv"
count = "n"

[axes]
within = { county = "state" }

[keep]
total = true

[mechanism]
epsilon = "0.3"
focus = { state = "0.1", county = "0.1" }

[output]
path = "out/"
"""


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    path = tmp_path / "counts.csv"
    path.write_text(COUNTS)
    return path


def test_three_levels_are_released_shown_and_verified(run: Callable[..., Any], counts: Path) -> None:
    options = ["--keep-total", "--epsilon", "1", "--per-person", "--focus", "state=1", "--focus", "county=1"]
    made = run("release", *TABLE, *options, "--cell-share", "3", "-o", "out/", "--yes")
    assert made.returncode == 0, made.stderr
    verified = run("verify", "out/")
    assert verified.returncode == 0, verified.stdout
    assert b"plus 0.1 per unit in totals of state" in verified.stdout
    shown = b" ".join(run("show", "out/").stdout.split())
    assert b"within one total of county: epsilon 0.6" in shown
    assert b"per total of state" in shown
    stated = json.loads((counts.parent / "out" / "certificate.json").read_text())
    assert stated["mechanism"]["focus"] == [
        {"axes": ["state"], "epsilon": "1/10"},
        {"axes": ["county"], "epsilon": "1/10"},
    ]
    assert ks.read_release(counts.parent / "out").plan.guarantee.person_epsilon == 1


def test_totals_that_cross_are_released_and_verified(run: Callable[..., Any], counts: Path) -> None:
    options = ["--keep", "sex", "--epsilon", "0.3", "--focus", "county=0.1"]
    made = run("release", *TABLE, *options, "-o", "out/", "--yes")
    assert made.returncode == 0, made.stderr
    verified = run("verify", "out/")
    assert verified.returncode == 0, verified.stdout
    shown = b" ".join(run("show", "out/").stdout.split()).decode()
    assert "table with both margins focused or kept" in shown
    assert "exact, by splitting the columns" in shown
    assert "per total of county" in shown


def test_a_spec_means_the_same(run: Callable[..., Any], counts: Path) -> None:
    (counts.parent / "keepsum.toml").write_text(SPEC)
    by_spec = json.loads(run("plan", "--json").stdout)
    options = ["--keep-total", "--epsilon", "0.3", "--focus", "state=0.1", "--focus", "county=0.1"]
    assert json.loads(run("plan", *TABLE, *options, "--json").stdout) == by_spec
    assert by_spec["mechanism"] == "Laplace(epsilon=0.3, norm='l1', focus={'state': 0.1, 'county': 0.1})"
    assert len(by_spec["person"]["within"]) == 2
    other = json.loads(run("plan", "--focus", "county,sex=1/3", "--json").stdout)
    assert other["mechanism"] == "Laplace(epsilon=0.3, norm='l1', focus={('county', 'sex'): 1/3})"
    gaussian = run("plan", "--mechanism", "gaussian", "--rho", "0.1")
    assert gaussian.returncode == 0, gaussian.stderr


def test_nothing_need_be_kept_under_a_focus(run: Callable[..., Any], counts: Path) -> None:
    made = run("plan", *TABLE, "--epsilon", "0.3", "--focus", "county=0.1", "--focus", "=0.1", "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["mechanism"].endswith("focus={'county': 0.1, (): 0.1})")


def test_accuracy_has_a_row_for_each_focus(run: Callable[..., Any], counts: Path) -> None:
    options = ["--keep-total", "--epsilon", "0.3", "--focus", "county,sex=0.1"]
    shown = b" ".join(run("accuracy", *TABLE, *options).stdout.split()).decode()
    assert "by state and county:" in shown
    options = ["--keep-total", "--per-person", "--focus", "county=1", "--cell-share", "2", "--target-moe", "10"]
    found = b" ".join(run("accuracy", *TABLE, *options).stdout.split()).decode()
    assert "--focus county=1 --cell-share 2" in found


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--focus", "county"], "Option --focus must be AXIS=EPSILON such as county=0.1, got 'county'."),
        (["--focus", "county="], "Option --focus must be AXIS=EPSILON such as county=0.1, got 'county='."),
        (["--focus", "county=0"], "The weight of totals of county in --focus must be a positive number, got '0'."),
        (["--focus", "town=1"], "An axis must be one of 'state', 'county', 'sex', got 'town'. Check the spelling."),
        (
            ["--focus", "county=1", "--focus", "county=2"],
            "Option --focus must name different totals, got 'county' twice.",
        ),
        (["--focus", "county=1", "--norm", "l2"], "A focus must be in the l1 norm, got norm='l2'. Leave the norm out."),
        (
            ["--focus", "county=1", "--mechanism", "gaussian", "--delta", "1e-6"],
            "Option --focus requires Laplace noise.",
        ),
        (["--cell-share", "3"], "Option --cell-share requires --per-person and --focus"),
        (
            ["--focus", "sex=1", "--focus", "state=1", "--focus", "county=1"],
            "must be the rows or the columns of two-way tables, and totals of sex and totals of state and totals of "
            "county are not. Focus on fewer totals, or keep fewer.",
        ),
        (["--focus", "county=1", "--keep", "county"], "the kept ones determine all totals of county."),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    run: Callable[..., Any], counts: Path, options: list[str], words: str
) -> None:
    made = run("release", *TABLE, "--keep-total", "--epsilon", "0.3", *options, "-o", "out/", "--yes")
    assert made.returncode == 2
    assert words in made.stderr.decode()
    assert "Traceback" not in made.stderr.decode()
    assert not (counts.parent / "out").exists()


def test_a_target_needs_shares(run: Callable[..., Any], counts: Path) -> None:
    made = run("accuracy", *TABLE, "--keep-total", "--target-moe", "10", "--focus", "county=0.1")
    assert made.returncode == 2
    assert b"Option --target-moe requires --per-person where there is a --focus" in made.stderr
