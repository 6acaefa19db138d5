"""A focus from the shell and from a spec."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import keepsum as ks
from support import mostly_audit, refusal

COUNTS = "state,county,sex,n\n" + "".join(
    f"{state},{state}{k},{sex},{30 + 7 * k}\n" for state in "AB" for k in range(3) for sex in "fm"
)
TABLE = ["counts.csv", "--count", "n", "--within", "county:state"]
SPEC = """version = 1
[source]
data = "counts.csv"
count = "n"

[axes]
within = { county = "state" }

[keep]
total = true

[mechanism]
epsilon = "0.3"
per_unit = true
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
    options = ["--keep-total", "--epsilon", "1", "--focus", "state=1", "--focus", "county=1"]
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


def test_gaussian_noise_is_released_shown_and_verified(run: Callable[..., Any], counts: Path) -> None:
    """Counties cross the kept totals of sexes."""
    noise = ["--keep", "sex", "--mechanism", "gaussian", "--rho", "0.03", "--focus", "county=0.02", "--per-unit"]
    made = run("release", *TABLE, *noise, "-o", "out/", "--yes")
    assert made.returncode == 0, made.stderr
    verified = run("verify", "out/")
    assert verified.returncode == 0, verified.stdout
    assert b"plus 0.02 in totals of county" in verified.stdout
    assert b"per total of county" in b" ".join(run("show", "out/").stdout.split())
    stated = json.loads((counts.parent / "out" / "certificate.json").read_text())
    assert stated["mechanism"]["focus"] == [{"axes": ["county"], "rho": "1/50"}]
    refused = run("plan", *TABLE, *noise, "--cell-share", "2")
    assert refused.returncode == refusal(refused)
    assert b"Option --cell-share must not be combined with --per-unit, because it is about the loss" in refused.stderr
    refused = run("plan", *TABLE, "--keep-total", "--mechanism", "gaussian", "--sigma", "3", "--focus", "county=1")
    assert b"Option --focus must be given with a loss, rho or epsilon and delta, got sigma." in refused.stderr


@pytest.mark.parametrize(
    ("noise", "shown"),
    [
        (
            ["--epsilon", "1", "--delta", "1e-6", "--focus", "county=1", "--cell-share", "3"],
            "Gaussian.per_unit(rho=0.0104576",
        ),
        (["--rho", "1", "--focus", "county=1"], "Gaussian.per_unit(rho=0.25, focus={'county': 0.25})"),
    ],
)
def test_a_loss_is_divided_in_gaussian_noise(run: Callable[..., Any], counts: Path, noise: Any, shown: str) -> None:
    made = run("plan", *TABLE, "--keep-total", "--mechanism", "gaussian", *noise, "--json")
    assert json.loads(made.stdout)["mechanism"].startswith(shown)
    (counts.parent / "keepsum.toml").write_text(
        SPEC.replace('epsilon = "0.3"', 'kind = "gaussian"\nrho = "0.3"').replace('state = "0.1", ', "")
    )
    stated = json.loads(run("plan", "--json").stdout)["mechanism"]
    assert stated == "Gaussian.per_unit(rho=0.3, focus={'county': 0.1})"


def test_totals_that_cross_are_released_and_verified(run: Callable[..., Any], counts: Path) -> None:
    options = ["--keep", "sex", "--epsilon", "0.3", "--focus", "county=0.1", "--per-unit"]
    made = run("release", *TABLE, *options, "-o", "out/", "--yes")
    assert made.returncode == 0, made.stderr
    verified = run("verify", "out/")
    assert verified.returncode == 0, verified.stdout
    shown = b" ".join(run("show", "out/", "--details").stdout.split()).decode()
    assert "table with both margins focused or kept" in shown
    assert "exact, by splitting the columns" in shown
    assert "per total of county" in shown


THREE = """
county,age,sex,people
A,young,F,5
A,young,M,7
A,old,F,3
A,old,M,8
B,young,F,4
B,young,M,9
B,old,F,1
B,old,M,6
C,young,F,2
C,young,M,3
C,old,F,11
C,old,M,5
"""


@pytest.mark.parametrize("options", [["--focus", "age=0.2", "--focus", "sex=0.1"], ["--keep", "age", "--keep", "sex"]])
def test_totals_of_three_axes_are_released_exactly_and_verified(
    run: Callable[..., Any], tmp_path: Path, options: list[str]
) -> None:
    """A focus on all three axes, or on one beside kept ones."""
    (tmp_path / "three.csv").write_text(THREE.lstrip())
    noise = ["--epsilon", "0.3", "--focus", "county=0.1", "--per-unit", *options]
    made = run("release", "three.csv", "--count", "people", *noise, "-o", "out/", "--yes")
    assert made.returncode == 0, made.stderr
    verified = run("verify", "out/")
    assert verified.returncode == 0, verified.stdout
    shown = b" ".join(run("show", "out/", "--details").stdout.split()).decode()
    assert "exact, by eliminating one axis after another" in shown
    assert "per total of county" in shown
    stated = json.loads((tmp_path / "out/certificate.json").read_text())
    assert stated["guarantee"]["sampling"]["exactness"] == "exact"
    assert stated["guarantee"]["blocks"][0]["form"]["kind"] == "focused"


def test_a_spec_means_the_same(run: Callable[..., Any], counts: Path) -> None:
    (counts.parent / "keepsum.toml").write_text(SPEC)
    by_spec = json.loads(run("plan", "--json").stdout)
    options = ["--keep-total", "--epsilon", "0.3", "--focus", "state=0.1", "--focus", "county=0.1", "--per-unit"]
    assert json.loads(run("plan", *TABLE, *options, "--json").stdout) == by_spec
    assert by_spec["mechanism"] == "Laplace.per_unit(epsilon=0.3, norm='l1', focus={'state': 0.1, 'county': 0.1})"
    assert len(by_spec["person"]["within"]) == 2
    other = json.loads(run("plan", "--per-unit", "--focus", "county,sex=1/3", "--json").stdout)
    assert other["mechanism"] == "Laplace.per_unit(epsilon=0.3, norm='l1', focus={('county', 'sex'): 1/3})"
    gaussian = run("plan", "--mechanism", "gaussian", "--rho", "0.1", "--per-unit")
    assert gaussian.returncode == 0, gaussian.stderr


def test_nothing_need_be_kept_under_a_focus(run: Callable[..., Any], counts: Path) -> None:
    made = run("plan", *TABLE, "--epsilon", "0.3", "--focus", "county=0.1", "--focus", "=0.1", "--per-unit", "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["mechanism"].endswith("focus={'county': 0.1, (): 0.1})")


def test_accuracy_has_a_row_for_each_focus(run: Callable[..., Any], counts: Path) -> None:
    options = ["--keep-total", "--epsilon", "0.3", "--focus", "county,sex=0.1"]
    shown = b" ".join(run("accuracy", *TABLE, *options).stdout.split()).decode()
    assert "by state and county:" in shown
    options = ["--keep-total", "--epsilon", "0.3", "--focus", "county=0.1", "--per-unit"]
    shown = b" ".join(run("accuracy", *TABLE, *options).stdout.split()).decode()
    assert re.search(
        "by state and county: typical ±[0-9]+, the sum of [0-9]+ counts, with epsilon 0.1 of its own", shown
    )
    assert shown.count("of its own") == 1
    totals = json.loads(run("accuracy", *TABLE, *options, "--json").stdout)["totals"]
    assert [row["axes"] for row in totals if row.get("epsilon") == "0.1"] == [["state", "county"]]
    options = ["--keep-total", "--focus", "county=1", "--cell-share", "2", "--target-moe", "10"]
    found = b" ".join(run("accuracy", *TABLE, *options).stdout.split()).decode()
    assert "--focus county=1 --cell-share 2" in found


SHARE = [*TABLE, "--keep-total", "--share-budget"]
WEIGHTS = ["--focus", "state=1", "--focus", "county=4", "--cell-share", "2"]


def test_shares_with_the_least_error_are_found_and_can_be_used(run: Callable[..., Any], counts: Path) -> None:
    options = ["--epsilon", "1", *WEIGHTS]
    found = json.loads(run("accuracy", *SHARE, *options, "--json").stdout)
    counties = {state: [f"{state}{k}" for k in range(3)] for state in "AB"}
    domain = ks.Domain({"state": ["A", "B"], "county": counties, "sex": ["f", "m"]}, within={"county": "state"})
    expected = ks.share_budget(domain, ["state", "county"], 1, {"county": 4}, cell_weight=2, keep=[[]])
    assert [float(level["share"]) for level in found["shares"]["levels"]] == [float(x.share) for x in expected.levels]
    assert [level["axes"] for level in found["shares"]["levels"]] == [["state"], ["county"], None]
    again = json.loads(run("plan", *TABLE, "--keep-total", *found["shares"]["options"].split(), "--json").stdout)
    assert again["mechanism"] == found["mechanism"]
    shown = run("accuracy", *SHARE, *options, "--plot", "shares.svg").stdout.decode()
    assert "expected rmse" in shown
    assert "To use them" in shown
    assert "share of totals of county" in (counts.parent / "shares.svg").read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--epsilon", "1", "--per-unit", *WEIGHTS[:4]], "Option --share-budget requires --epsilon without --per-unit"),
        (["--epsilon", "1"], "and a --focus for each level, such as --focus county=4, whose value is a weight."),
        (["--target-moe", "9", *WEIGHTS], "--share-budget must not be combined with --target-moe"),
        (
            ["--epsilon", "1", *WEIGHTS, "--mechanism", "gaussian", "--delta", "1e-6"],
            "Option --share-budget requires l1 Laplace noise. Leave out --mechanism gaussian.",
        ),
        (
            ["--epsilon", "1", "--focus", "county=1", "--focus", "sex=1"],
            "and these cross, or overlap. Name fewer levels, keep fewer totals, or give shares of your own.",
        ),
        (["--epsilon", "1", *WEIGHTS, "--to", "some other value"], "must not be combined"),
    ],
)
def test_budgets_that_cannot_be_shared(run: Callable[..., Any], counts: Path, options: list[str], words: str) -> None:
    made = run("accuracy", *SHARE, *options)
    assert made.returncode == refusal(made)
    assert words in " ".join(made.stderr.decode().split())
    assert not made.stdout


@mostly_audit(
    ("options", "words"),
    [
        (["--focus", "county"], "Option --focus must be AXIS=SHARE such as county=2, got 'county'."),
        (["--focus", "county="], "Option --focus must be AXIS=SHARE such as county=2, got 'county='."),
        (["--focus", "county=0"], "The weight of 'totals of county' in --focus must be a positive number, got '0'."),
        (["--focus", "town=1"], "An axis must be one of 'state', 'county', 'sex', got 'town'. Check the spelling."),
        (
            ["--focus", "county=1", "--focus", "county=2"],
            "Option --focus must name different totals, got 'county' twice.",
        ),
        (
            ["--focus", "county=1", "--norm", "l2"],
            "A focus must be in the l1 norm, or that of Gaussian noise, got --norm l2. Leave the norm out.",
        ),
        (
            ["--focus", "county=1", "--mechanism", "gaussian", "--delta", "1e-6", "--calibration", "paper"],
            "Calibration must be 'lines' where there is a focus, got 'paper'.",
        ),
        (["--cell-share", "3"], "Option --cell-share requires --focus, whose values are shares. Leave it out."),
        (["--focus", "county=1", "--keep", "county"], "the kept ones determine all totals of county."),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    run: Callable[..., Any], counts: Path, options: list[str], words: str
) -> None:
    made = run("release", *TABLE, "--keep-total", "--epsilon", "0.3", *options, "-o", "out/", "--yes")
    assert made.returncode == refusal(made)
    assert words in made.stderr.decode()
    assert "Traceback" not in made.stderr.decode()
    assert not (counts.parent / "out").exists()


def test_a_target_needs_shares(run: Callable[..., Any], counts: Path) -> None:
    made = run("accuracy", *TABLE, "--keep-total", "--target-moe", "10", "--focus", "county=0.1", "--per-unit")
    assert made.returncode == refusal(made)
    assert b"Option --per-unit must not be combined with --target-moe where there is a --focus" in made.stderr


REGIONS = '[[total]]\nname = "north"\ncells = [{ county = ["A0", "B1"] }]\n'


def test_a_named_subset_is_focused_on_from_the_shell_and_from_a_spec(run: Callable[..., Any], counts: Path) -> None:
    (counts.parent / "regions.toml").write_text(REGIONS)
    options = ["--keep-total", "--epsilon", "0.3", "--focus", "north=0.1", "--focus", "county=0.2", "--per-unit"]
    made = run("release", *TABLE, *options, "--focus-file", "regions.toml", "-o", "out/", "--yes")
    assert made.returncode == 0, made.stderr
    verified = run("verify", "out/")
    assert verified.returncode == 0, verified.stdout
    assert b"plus 0.1 per unit in total 'north'" in verified.stdout
    assert b"per total 'north'" in b" ".join(run("show", "out/").stdout.split())
    stated = json.loads((counts.parent / "out" / "certificate.json").read_text())["mechanism"]["focus"]
    assert stated[0]["subsets"] == {"size": 12, "names": ["north"], "cells": [[0, 1, 8, 9]]}
    spec = SPEC.replace("state =", "north =").replace('county = "0.1"', 'county = "0.2"')
    subset = '\n[[mechanism.subset]]\nname = "north"\ncells = [{ county = ["A0", "B1"] }]\n'
    (counts.parent / "keepsum.toml").write_text(spec.replace("\n[output]", f"{subset}\n[output]"))
    by_spec = json.loads(run("plan", "--json").stdout)
    assert json.loads(run("plan", *TABLE, *options, "--focus-file", "regions.toml", "--json").stdout) == by_spec
    (counts.parent / "keepsum.toml").write_text(
        spec.replace('epsilon = "0.3"', 'epsilon = "0.3"\nfocus_files = ["regions.toml"]')
    )
    assert json.loads(run("plan", "--json").stdout) == by_spec
    gaussian = ["--keep", "sex", "--mechanism", "gaussian", "--rho", "0.1", "--focus", "north=0.1", "--per-unit"]
    shown = run("accuracy", *TABLE, *gaussian, "--focus-file", "regions.toml")
    assert shown.returncode == 0, shown.stderr
    assert b"total 'north': \xc2\xb1" in b" ".join(shown.stdout.split())


@mostly_audit(
    ("regions", "options", "words"),
    [
        (REGIONS, [], "Subsets must be in the focus by their names: pass --focus NAME=1, or leave them out."),
        (REGIONS, ["--focus", "south=1"], "'south'"),
        (REGIONS.replace("north", "sex"), ["--focus", "sex=1"], "must have names of their own, got 'sex' twice."),
        (REGIONS + "weight = 2\n", ["--focus", "north=1"], "must be of subsets, without weights."),
        (REGIONS.replace("A0", "C0"), ["--focus", "north=1"], "'C0'"),
        ("", ["--focus", "north=1"], "must contain a [[total]]"),
    ],
)
def test_subsets_that_cannot_be_meant_are_refused(
    run: Callable[..., Any], counts: Path, regions: str, options: list[str], words: str
) -> None:
    (counts.parent / "regions.toml").write_text(regions)
    made = run("plan", *TABLE, "--keep-total", "--epsilon", "1", *options, "--focus-file", "regions.toml")
    assert made.returncode == refusal(made)
    assert words in made.stderr.decode()
    assert "Traceback" not in made.stderr.decode()
